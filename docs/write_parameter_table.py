# SPDX-License-Identifier: Apache-2.0
"""
Write the node's parameter table, made from its declarations, into README.md.

    python docs/write_parameter_table.py
"""

from __future__ import annotations

import re
from pathlib import Path

from robodyn_ros.ros.node_parameters import PARAMETERS, NodeParameter

README = Path(__file__).resolve().parent.parent / 'README.md'
_UNBOUNDED = 1e9
BETWEEN_MARKS = re.compile(
    r'(?<=<!-- parameters: begin -->\n).*?(?=<!-- parameters: end -->)', re.S
)


def table() -> str:
    """Return the table as Markdown."""
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
    if parameter.bounds:
        low, high = parameter.bounds
        if high < _UNBOUNDED:
            return f'{low:g} to {high:g}'
        if low <= -_UNBOUNDED:
            return 'finite'
        return f'at least {low:g}' if low == 0 else 'positive'
    return ''


def with_table(text: str) -> str:
    """Return the README's text with the table between its marks."""
    return BETWEEN_MARKS.sub(lambda _: table(), text)


if __name__ == '__main__':
    README.write_text(with_table(README.read_text(encoding='utf-8')), encoding='utf-8')
