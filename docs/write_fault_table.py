# SPDX-License-Identifier: Apache-2.0
"""
Write the tables of faults and of mistakes, made from the marks of the tests that show them.

    python docs/write_fault_table.py

The faults are in docs/safety.md, the mistakes in docs/mistakes.md.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

Row = tuple[str, ...]
"""What a mark says, and the test that shows it."""


@dataclass(frozen=True)
class MarkedTests:
    """
    The tests with a mark, and the page that lists them.

    Parameters
    ----------
    mark : str
        The pytest mark; its arguments fill a row.
    files : str
        Pattern of the files that they stand in.
    page : Path
    columns : tuple of str
        Names of the mark's arguments.
    """

    mark: str
    files: str
    page: Path
    columns: tuple[str, ...]

    def rows(self) -> list[Row]:
        """Return a row for every test in the files, without the mark's words where it has none."""
        collector = _Collector()
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
                    *sorted(str(path) for path in (ROOT / 'test').rglob(self.files)),
                ],
                plugins=[collector],
            )
        nothing = (f'no mark: {self.mark}', *('' for _ in self.columns[1:]))
        rows = []
        for item in collector.items:
            mark = item.get_closest_marker(self.mark)
            test = item.nodeid.split('[')[0].split('/')[-1].replace('.py::', ': ')
            rows.append((*(mark.args if mark else nothing), test))
        return rows

    def table(self, rows: Sequence[Row]) -> str:
        """Return the table as Markdown."""
        lines = [
            f'| | {" | ".join(self.columns)} | shown by |',
            '|---' * (len(self.columns) + 2) + '|',
        ]
        for number, (*words, test) in enumerate(rows, start=1):
            cells = ' | '.join(map(_cell, words))
            lines.append(f'| {number} | {cells} | `{test}` |')
        return '\n'.join(lines) + '\n'

    def with_table(self, text: str, rows: Sequence[Row]) -> str:
        """Return the page's text with the table between its marks."""
        begin, end = f'<!-- {self.mark}s: begin -->\n', f'<!-- {self.mark}s: end -->'
        between = re.compile(f'(?<={re.escape(begin)}).*?(?={re.escape(end)})', re.S)
        return between.sub(lambda _: self.table(rows), text)

    def write(self) -> None:
        """Write the table into its page."""
        text = self.with_table(self.page.read_text(encoding='utf-8'), self.rows())
        self.page.write_text(text, encoding='utf-8')


def _cell(words: str) -> str:
    """Return words as a cell's Markdown: what is no code holds no HTML."""
    parts = words.split('`')
    parts[::2] = [part.replace('<', '&lt;') for part in parts[::2]]
    return '`'.join(parts) or 'nothing'


class _Collector:
    """Keeps what pytest collects."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the collected tests from pytest."""
        self.items = list(session.items)


FAULTS = MarkedTests(
    'fault', 'test_faults_*.py', ROOT / 'docs' / 'safety.md', ('fault', 'what happens')
)
MISTAKES = MarkedTests(
    'mistake',
    'test_mistakes.py',
    ROOT / 'docs' / 'mistakes.md',
    ('what is done', 'what the log says', 'what `/diagnostics` says'),
)


if __name__ == '__main__':
    FAULTS.write()
    MISTAKES.write()
