# SPDX-License-Identifier: Apache-2.0
"""A picture of a motion to identify an arm by: joints within their limits, and the tip's path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robodyn_ros.identification import Box, Excitation, HalfSpace
from robodyn_ros.kinematics import forward_kinematics
from robodyn_ros.model import RobotModel
from robodyn_ros.report.drawing import imported_matplotlib
from robodyn_ros.spatial import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RATE = 50.0
_MUTED, _PATH, _FORBIDDEN = '#555555', '#0072b2', '#d55e00'


def save_excitation_plot(
    model: RobotModel,
    found: Excitation,
    path: Path,
    obstacles: tuple[HalfSpace | Box, ...] = (),
) -> None:
    """
    Draw positions and speeds relative to their limits, and the tip's path from above and aside.

    Parameters
    ----------
    model : RobotModel
    found : Excitation
        Joints are called q1, q2 ... in chain order.
    path : Path
        Its ending says whether a PNG, an SVG or a PDF.
    obstacles : tuple of HalfSpace and Box
        Drawn where they are not turned.
    """
    motion = found.sampled(_RATE)
    limits = found.limits
    middle, half = limits.position.mean(axis=1), np.ptp(limits.position, axis=1) / 2
    figure = imported_matplotlib().figure.Figure(
        figsize=(12, 8), dpi=120, facecolor='white', layout='constrained'
    )
    (positions, above), (speeds, aside) = figure.subplots(
        2, 2, gridspec_kw={'width_ratios': (1.4, 1)}
    )
    _draw_joints(positions, motion.time, (motion.q - middle) / half, 'position in its limits')
    _draw_joints(speeds, motion.time, motion.qd / limits.velocity, 'velocity of its limit')
    speeds.set_xlabel('time [s]')
    positions.legend(loc='upper right', ncols=len(found.joint_names), fontsize='small')
    tip = forward_kinematics(model, motion.q)[:, :3, 3]
    _draw_path(above, tip, (0, 1), obstacles)
    _draw_path(aside, tip, (0, 2), obstacles)
    figure.savefig(path)


def _draw_joints(axes: Axes, time: FloatArray, values: FloatArray, label: str) -> None:
    for j, column in enumerate(values.T):
        axes.plot(time, column, linewidth=1.0, label=f'q{j + 1}')
    for edge in (-1.0, 1.0):
        axes.axhline(edge, color=_MUTED, linewidth=0.8, linestyle=':')
    axes.set_ylabel(label)
    axes.margins(x=0)
    axes.set_ylim(-1.15, 1.15)


def _draw_path(
    axes: Axes,
    tip: FloatArray,
    shown: tuple[int, int],
    obstacles: tuple[HalfSpace | Box, ...],
) -> None:
    first, second = shown
    axes.plot(tip[:, first], tip[:, second], color=_PATH, linewidth=0.9)
    axes.plot(0.0, 0.0, 'o', color=_MUTED, markersize=4)
    axes.set_xlabel(f'{"xyz"[first]} of the tip [m]')
    axes.set_ylabel(f'{"xyz"[second]} of the tip [m]')
    axes.set_aspect('equal', adjustable='datalim')
    axes.autoscale(False)
    for each in obstacles:
        if isinstance(each, HalfSpace):
            if np.asarray(each.normal)[second] == 1.0:
                axes.axhline(each.offset, color=_FORBIDDEN, linewidth=1.2)
            continue
        pose, lower, upper = (np.asarray(x) for x in (each.pose, each.lower, each.upper))
        if np.array_equal(pose[:3, :3], np.eye(3)):
            corner, size = lower + pose[:3, 3], upper - lower
            axes.add_patch(
                imported_matplotlib().patches.Rectangle(
                    (corner[first], corner[second]),
                    size[first],
                    size[second],
                    color=_FORBIDDEN,
                    alpha=0.3,
                )
            )
