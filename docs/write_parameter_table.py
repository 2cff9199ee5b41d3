# SPDX-License-Identifier: Apache-2.0
"""
Write what users read of the parameters: the tables of the pages, and config/dynamics_node.yaml.

    python docs/write_parameter_table.py [--check]
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from written_files import ROOT, write_or_check

from robodyn_ros.ros_parameters import AT_START, Parameter, parameters_in, parameters_of

CONTROLLER = ROOT / 'robodyn_controllers' / 'src' / 'inverse_dynamics_controller.yaml'
BETWEEN_MARKS = re.compile(
    r'(?<=<!-- parameters: begin -->\n).*?(?=<!-- parameters: end -->)', re.S
)
CONFIG_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
#
# Every parameter of dynamics_node with its default, written by docs/write_parameter_table.py.
# [configure]: takes effect at configure, and is refused while the node has a robot; [start]: read
# when the node starts, and never again; all others may be changed at any time. An array holds one
# value, or one for each joint.
#
#   ros2 run robodyn_ros dynamics_node --ros-args --params-file dynamics_node.yaml

/**:
  ros__parameters:
"""
TITLES = {
    'robot': 'the robot',
    'command_pipeline': 'the law, limits, stopping, contacts',
    'dynamics_node': 'drives, controllers, what others add, starting',
}


def files() -> dict[Path, str]:
    """Return the text of each file that is written from the parameters."""
    node = parameters_of('dynamics_node')
    tables = {
        'parameters.md': table(node, is_lifecycle=True),
        'beside_your_driver.md': table(own(parameters_of('feedforward'), 'feedforward')),
        'inside_the_controller_manager.md': table(
            own(parameters_in(CONTROLLER), CONTROLLER.stem), is_lifecycle=False
        ),
    }
    pages = {ROOT / 'docs' / name: text for name, text in tables.items()}
    return {
        **{page: _with_table(page.read_text(encoding='utf-8'), pages[page]) for page in pages},
        ROOT / 'config' / 'dynamics_node.yaml': CONFIG_HEAD + ''.join(_entries(node)),
    }


def own(parameters: Iterable[Parameter], file: str) -> list[Parameter]:
    """Return the parameters that are not shared."""
    return [parameter for parameter in parameters if parameter.file == file]


def table(parameters: Iterable[Parameter], is_lifecycle: bool = False) -> str:
    """Return a table of parameters; those of a lifecycle node say whether they are live."""
    rows = ['| parameter | default | meaning |', '|---|---|---|']
    for p in parameters:
        change = 'live' if is_lifecycle and not p.is_read_only else ''
        more = change or ('' if p.constraints == AT_START else p.constraints)
        # A default shows its type.
        kind = '; '.join(filter(None, ['' if p.default_text else p.kind, _allowed(p), more]))
        words = f'{p.description} *{kind}*' if kind else p.description
        rows.append(f'| `{p.name}` | {p.default_text} | {words} |')
    return '\n'.join(rows) + '\n'


def _with_table(page: str, text: str) -> str:
    written, count = BETWEEN_MARKS.subn(lambda _: text, page)
    if count != 1:
        raise ValueError(f'{count} places between marks for the table: {text[:200]}')
    return written


def _allowed(parameter: Parameter) -> str:
    return parameter.allowed.removeprefix('one of ').removeprefix('each ')


def _entries(parameters: Iterable[Parameter]) -> Iterable[str]:
    file = group = ''
    for p in parameters:
        if p.file != file:
            yield f'\n    # --- {TITLES[p.file]} ---\n'
        if (above := p.name.rpartition('.')[0]) not in ('', group):
            yield f'\n    {above}:\n'
        file, group = p.file, above
        indent = '      ' if group else '    '
        mark = {'before configure': '[configure] ', 'at any time': ''}.get(p.change, '[start] ')
        allowed = f' ({p.allowed})' if p.allowed else ''
        text = f'{mark}{p.description.removesuffix(".")}{allowed}'
        lines = textwrap.wrap(text, 96 - len(indent), break_on_hyphens=False)
        yield ('' if group else '\n') + ''.join(f'{indent}# {line}\n' for line in lines)
        value = {'string[]': "['']", 'string': "''"}.get(p.kind, '[]')
        given = '# ' if p.default == () and p.kind != 'string[]' else ''
        yield f'{indent}{given}{p.name.rpartition(".")[2]}: {p.default_text or value}\n'


if __name__ == '__main__':
    write_or_check(files())
