# SPDX-License-Identifier: Apache-2.0
"""
Write a PlotJuggler layout for ~/dynamics_state.

    python docs/write_plot_layout.py [--joints 7] [--node /dynamics_node] [--output XML] [--check]

A tab for the torque of every joint, taken apart; one for where the joints are and should be; one
for the control cycle itself. Open it with

    ros2 run plotjuggler plotjuggler --layout config/dynamics_state.plotjuggler.xml
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lxml import etree
from written_files import ROOT, write_or_check

LAYOUT = ROOT / 'config' / 'dynamics_state.plotjuggler.xml'
COLUMNS = 2
PARTS = {
    'total': '#000000',
    'gravity': '#1f77b4',
    'inertial': '#d62728',
    'coriolis': '#2ca02c',
    'friction': '#9467bd',
    'feedback': '#ff7f0e',
    'effort': '#17becf',
}
TRACKING = {'position': '#1f77b4', 'reference_position': '#d62728'}


def layout(joints: int, node: str) -> str:
    """Return the layout's text for a node that moves so many joints."""
    topic = f'{node}/dynamics_state'
    root = etree.Element('root')
    window = etree.SubElement(root, 'tabbed_widget', name='Main Window', parent='main_window')
    for title, fields in (('Torque, taken apart', PARTS), ('Tracking', TRACKING)):
        _add_tab(
            window,
            title,
            [
                (
                    f'joint {i + 1}',
                    {f'{topic}/{name}[{i}]': color for name, color in fields.items()},
                )
                for i in range(joints)
            ],
        )
    _add_tab(
        window,
        'Cycle',
        [
            ('time from joint state to command [s]', {f'{topic}/cycle_time': '#1f77b4'}),
            ('held back by the effort limit', _each(topic, 'effort_limited', joints)),
            ('held back by the rate limit', _each(topic, 'rate_limited', joints)),
        ],
    )
    etree.SubElement(window, 'currentTabIndex', index='0')
    etree.SubElement(root, 'use_relative_time_offset', enabled='1')
    plugins = etree.SubElement(root, 'Plugins')
    for plugin in ('DataLoad MCAP', 'DataLoad ROS2 bags', 'ROS2 Topic Subscriber'):
        element = etree.SubElement(plugins, 'plugin', ID=plugin)
        etree.SubElement(element, 'use_header_stamp', value='true')
        etree.SubElement(element, 'selected_topics', value=topic)
    etree.SubElement(root, 'previouslyLoaded_Datafiles')
    etree.SubElement(root, 'previouslyLoaded_Streamer', name='ROS2 Topic Subscriber')
    etree.SubElement(root, 'customMathEquations')
    comment = etree.Comment(
        f' SPDX-License-Identifier: Apache-2.0\n  For {joints} joints; another number, or another '
        'node: python docs/write_plot_layout.py '
    )
    root.addprevious(comment)
    return etree.tostring(
        root.getroottree(), pretty_print=True, xml_declaration=True, encoding='UTF-8'
    ).decode()


def _each(topic: str, field: str, joints: int) -> dict[str, str]:
    colors = list(PARTS.values())
    return {f'{topic}/{field}[{i}]': colors[i % len(colors)] for i in range(joints)}


def _add_tab(window: etree._Element, title: str, plots: list[tuple[str, dict[str, str]]]) -> None:
    tab = etree.SubElement(window, 'Tab', tab_name=title, containers='1')
    container = etree.SubElement(tab, 'Container')
    rows = [plots[i : i + COLUMNS] for i in range(0, len(plots), COLUMNS)]
    outer = _splitter(container, '-', len(rows))
    for row in rows:
        inner = _splitter(outer, '|', len(row))
        for name, curves in row:
            area = etree.SubElement(inner, 'DockArea', name=name)
            plot = etree.SubElement(
                area, 'plot', mode='TimeSeries', style='Lines', flip_x='false', flip_y='false'
            )
            for curve, color in curves.items():
                etree.SubElement(plot, 'curve', name=curve, color=color)


def _splitter(parent: etree._Element, orientation: str, count: int) -> etree._Element:
    sizes = ';'.join([f'{1 / count:.6g}'] * count)
    return etree.SubElement(
        parent, 'DockSplitter', orientation=orientation, count=str(count), sizes=sizes
    )


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--joints', type=int, default=7)
    parser.add_argument('--node', default='/dynamics_node')
    parser.add_argument('--output', type=Path, default=LAYOUT)
    parser.add_argument('--check', action='store_true')
    arguments = parser.parse_args()
    text = layout(arguments.joints, arguments.node)
    write_or_check({arguments.output: text}, arguments.check)
