# SPDX-License-Identifier: Apache-2.0
"""
Write the node's parameters, as they are declared, into README.md and docs/parameters.md.

    python docs/write_parameter_table.py
"""

from __future__ import annotations

import re
from pathlib import Path

from robodyn_ros.control.parameter_table import PARAMETERS, NodeParameter

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / 'README.md'
REFERENCE = DOCS / 'parameters.md'
BETWEEN_MARKS = re.compile(
    r'(?<=<!-- parameters: begin -->\n).*?(?=<!-- parameters: end -->)', re.S
)
INTRODUCTION = """\
# Parameters of dynamics_node

Made by docs/write_parameter_table.py from robodyn_ros/control/parameter_table.py;
`ros2 param describe` shows the same. The file
[config/dynamics_node.yaml](../config/dynamics_node.yaml) holds all of them with their defaults; it
is what the tests start the node with.

Arrays hold one value for all joints, or one for each in the order of `joints`; a single number is
taken for an array (`kp:=100.0`), a whole one where a number is meant. A value outside what is
allowed is refused with a reason: at start the node ends with code 1 and names it, later the call
fails. So is a name that is almost one of these, or stands under one (`effort_limits_scale`,
`terms.x`), with the right one; any other unknown name is a warning. What may change only before
configure is refused while the node has a robot.

`dynamics_node --help` prints this table. Parameters are read after `--ros-args` only, as in
`dynamics_node --ros-args -p kp:=50 --params-file FILE`; without it they are refused. ROS itself
would ignore `0.5` after a file's `1`, as it holds numbers of two types apart: that is refused, too
(exit code 2); write both alike.

"""


def table() -> str:
    """Return the README's table as Markdown."""
    lines = [
        '| parameter | default | allowed | live | |',
        '|---|---|---|---|---|',
        *(
            f'| `{p.name}` | {_default(p)} | {_allowed(p)} | {"yes" if p.is_live else ""} '
            f'| {p.description} |'
            for p in PARAMETERS
        ),
    ]
    return '\n'.join(lines) + '\n'


def reference() -> str:
    """Return the whole of docs/parameters.md."""
    lines = [
        '| parameter | type | default | allowed | may change | |',
        '|---|---|---|---|---|---|',
        *(
            f'| `{p.name}` | {p.kind} | {_default(p)} | {_allowed(p)} | {_change(p)} '
            f'| {p.description} |'
            for p in PARAMETERS
        ),
    ]
    return INTRODUCTION + '\n'.join(lines) + '\n'


def _change(parameter: NodeParameter) -> str:
    return parameter.change + (parameter.meanwhile and f'; meanwhile {parameter.meanwhile}')


def _default(parameter: NodeParameter) -> str:
    value = parameter.default
    if isinstance(value, tuple):
        return f'[{", ".join(map(str, value))}]' if value else ''
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _allowed(parameter: NodeParameter) -> str:
    if parameter.choices:
        return ', '.join(f'`{choice}`' for choice in parameter.choices)
    return parameter.allowed.removeprefix('each ')


def with_table(text: str) -> str:
    """Return the README's text with the table between its marks."""
    return BETWEEN_MARKS.sub(lambda _: table(), text)


if __name__ == '__main__':
    README.write_text(with_table(README.read_text(encoding='utf-8')), encoding='utf-8')
    REFERENCE.write_text(reference(), encoding='utf-8')
