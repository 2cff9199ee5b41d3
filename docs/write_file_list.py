# SPDX-License-Identifier: Apache-2.0
"""
Write the end of docs/development.md: every file of package and controller, by its first sentence.

    python docs/write_file_list.py [--check]
"""

from __future__ import annotations

import ast
import re
from itertools import groupby
from pathlib import Path

from written_files import ROOT, write_or_check

PAGE = ROOT / 'docs' / 'development.md'
ROOMS = ('robodyn_ros', 'robodyn_controllers/include')
HEADING = """## Every file

Each of Python, C and C++ in its own first sentence; written by `python docs/write_file_list.py`.
The controller's `.cpp` files are beside its headers in `src/`. What is no code: parameters in
`ros_parameters/*.yaml`, `launch/`, the pages and scripts of `report/`.
"""


def files() -> list[Path]:
    """Return the files of the package and the controller, folder by folder."""
    found = [
        path
        for room in ROOMS
        for path in (ROOT / room).rglob('*')
        if path.suffix in ('.py', '.hpp', '.cpp', '.h', '.c') and path.name != '__init__.py'
    ]
    return sorted(found, key=lambda path: (str(path.parent), path.name))


def first_sentence(path: Path) -> str:
    """Return what a file says of itself."""
    text = path.read_text(encoding='utf-8')
    if path.suffix == '.py':
        words = ast.get_docstring(ast.parse(text)) or ''
    else:
        # The first comment that is not the licence's.
        comments = re.findall(r'/\*(.*?)\*/|((?:^//.*\n)+)', text, re.S | re.M)
        lines = '\n'.join(''.join(each) for each in comments).splitlines()
        cleaned = [re.sub(r'^\s*(//|\*)?\s?', '', line).rstrip() for line in lines]
        words = '\n'.join(line for line in cleaned if 'SPDX' not in line).strip()
    paragraph = ' '.join(words.split('\n\n')[0].split())
    return re.split(r'(?<=[.])\s', paragraph)[0].replace('|', r'\|').replace('<', r'\<')


def page() -> str:
    """Return the page with the list as its last section."""
    parts = [PAGE.read_text(encoding='utf-8').partition(HEADING.split('\n')[0])[0] + HEADING]
    for folder, paths in groupby(files(), key=lambda path: path.parent):
        rows = [f'| `{path.name}` | {first_sentence(path)} |' for path in paths]
        title = f'### `{folder.relative_to(ROOT)}/`'
        parts.append(
            '\n'.join([title, '', '| file | what it is about |', '|---|---|', *rows]) + '\n'
        )
    return '\n'.join(parts)


if __name__ == '__main__':
    write_or_check({PAGE: page()})
