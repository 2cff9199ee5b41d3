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

Arrays hold one value for all joints, or one for each in the order of `joints`. A value outside
what is allowed is refused with a reason: at start the node ends and names it, later the call
fails. What may change only before configure is refused while the node has a robot.

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
