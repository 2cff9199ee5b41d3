# SPDX-License-Identifier: Apache-2.0
"""
Write the node's parameters, as they are declared, into docs/parameters.md.

    python docs/write_parameter_table.py
"""

from __future__ import annotations

import re
from pathlib import Path

from robodyn_ros.control.parameter_table import PARAMETERS, NodeParameter

PAGE = Path(__file__).resolve().parent / 'parameters.md'
BETWEEN_MARKS = re.compile(
    r'(?<=<!-- parameters: begin -->\n).*?(?=<!-- parameters: end -->)', re.S
)


def with_table(text: str) -> str:
    """Return the page's text with the table between its marks."""
    lines = [
        '| parameter | default | meaning |',
        '|---|---|---|',
        *(f'| `{p.name}` | {_default(p)} | {p.description} *{_kind(p)}* |' for p in PARAMETERS),
    ]
    return BETWEEN_MARKS.sub(lambda _: '\n'.join(lines) + '\n', text)


def _default(parameter: NodeParameter) -> str:
    value = parameter.default
    if isinstance(value, tuple):
        return f'[{", ".join(map(str, value))}]' if value else ''
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _kind(parameter: NodeParameter) -> str:
    allowed = ', '.join(parameter.choices) or parameter.allowed.removeprefix('each ')
    change = 'live' if parameter.is_live and not parameter.is_read_only else ''
    if parameter.meanwhile:
        change = f'meanwhile {parameter.meanwhile}'
    return '; '.join(filter(None, [parameter.kind, allowed, change]))


if __name__ == '__main__':
    PAGE.write_text(with_table(PAGE.read_text(encoding='utf-8')), encoding='utf-8')
