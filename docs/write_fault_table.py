# SPDX-License-Identifier: Apache-2.0
"""
Write the table of faults, made from the marks of the tests that show them, into docs/safety.md.

    python docs/write_fault_table.py
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAFETY = ROOT / 'docs' / 'safety.md'
BETWEEN_MARKS = re.compile(r'(?<=<!-- faults: begin -->\n).*?(?=<!-- faults: end -->)', re.S)


class Collector:
    """Keeps what pytest collects."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the collected tests from pytest."""
        self.items = list(session.items)


def faults() -> list[tuple[str, str, str]]:
    """Return fault, what happens, and the test that shows it, for every test of the suite."""
    files = sorted(str(path) for path in (ROOT / 'test').rglob('test_faults_*.py'))
    collector = Collector()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(
            [
                '--collect-only',
                '-q',
                '-p',
                'no:cacheprovider',
                f'--rootdir={ROOT}',
                '-c',
                str(ROOT / 'setup.cfg'),
                *files,
            ],
            plugins=[collector],
        )
    rows = []
    for item in collector.items:
        mark = item.get_closest_marker('fault')
        name, happens = mark.args if mark else ('not marked with a fault', '')
        test = item.nodeid.split('/')[-1].split('[')[0].replace('.py::', ': ')
        rows.append((name, happens, test))
    return rows


def table(rows: list[tuple[str, str, str]]) -> str:
    """Return the table as Markdown."""
    lines = ['| | fault | what happens | shown by |', '|---|---|---|---|']
    lines += [
        f'| {number} | {name} | {happens} | `{test}` |'
        for number, (name, happens, test) in enumerate(rows, start=1)
    ]
    return '\n'.join(lines) + '\n'


def with_table(text: str, rows: list[tuple[str, str, str]]) -> str:
    """Return the document's text with the table between its marks."""
    return BETWEEN_MARKS.sub(lambda _: table(rows), text)


if __name__ == '__main__':
    SAFETY.write_text(with_table(SAFETY.read_text(encoding='utf-8'), faults()), encoding='utf-8')
