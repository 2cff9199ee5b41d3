# SPDX-License-Identifier: Apache-2.0
"""
Write what the marks of tests say into the pages that show it.

    python docs/write_fault_table.py [--check]

Every fault, what happens then and the test of it stand in docs/evidence.md; every mistake and
what the node says to it, at the end of docs/troubleshooting.md.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest
from written_files import ROOT, exit_with, write_or_check

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
    fewest : int
        Fewer rows than these mean that tests were not found.
    written : callable
        Returns the Markdown of the rows.
    """

    mark: str
    files: str
    page: Path
    fewest: int
    written: Callable[[Sequence[Row]], str]

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
        nothing = (f'no mark: {self.mark}', '', '')
        rows = []
        for item in collector.items:
            mark = item.get_closest_marker(self.mark)
            test = item.nodeid.split('[')[0].split('/')[-1].replace('.py::', ': ')
            rows.append((*(mark.args if mark else nothing), test))
        return rows

    def with_table(self, text: str, rows: Sequence[Row]) -> str:
        """Return the page's text with the rows between its marks."""
        begin, end = f'<!-- {self.mark}s: begin -->\n', f'<!-- {self.mark}s: end -->'
        between = re.compile(f'(?<={re.escape(begin)}).*?(?={re.escape(end)})', re.S)
        written, count = between.subn(lambda _: self.written(rows), text)
        if count != 1:
            raise ValueError(f'{self.page.name}: {count} places between {begin.strip()} and {end}')
        return written

    def text(self, rows: Sequence[Row]) -> str:
        """Return the page's text with the rows."""
        return self.with_table(self.page.read_text(encoding='utf-8'), rows)

    def faults(self, rows: Sequence[Row]) -> list[str]:
        """Return what is wrong with the marks: missing ones, and what two of them call alike."""
        found = [f'{row[-1]}: {row[0]}' for row in rows if row[0].startswith('no mark')]
        names = [row[0] for row in rows]
        twice = {name for name in names if names.count(name) > 1} - {f'no mark: {self.mark}'}
        found += [f'{self.files}: two marks say: {name}' for name in sorted(twice)]
        if len(rows) < self.fewest:
            found.append(f'{self.files}: {len(rows)} tests were found of {self.fewest} at least')
        return found


def list_of_faults(rows: Sequence[Row]) -> str:
    """Return a folded list for each file of tests; what one test shows alike is one item."""
    lines = []
    for file, of_file in groupby(rows, lambda row: row[-1].partition(': ')[0]):
        found: list[Row] = []
        for row in of_file:
            found.append((row[0], found[-1][1], row[-1]) if row[1] == 'The same.' else row)
        title = file.removeprefix('test_').replace('_', ' ').capitalize()
        lines += [f'<details><summary>{title}: {len(found)}</summary>', '']
        for test, of_test in groupby(found, lambda row: row[-1].partition(': ')[2]):
            items = [
                f'**{"; ".join(_cell(row[0]) for row in alike)}.** {_cell(happens)}'
                for happens, alike in groupby(of_test, lambda row: row[1])
            ]
            lines.append(f'- {" ".join(items)} `{test}`')
        lines += ['', '</details>', '']
    return '\n'.join(lines)


def table_of_mistakes(rows: Sequence[Row]) -> str:
    """Return a table of what is done and the message, in the log or in diagnostics alone."""
    lines = ['| mistake | message |', '|---|---|']
    for done, log, diagnostics, _ in rows:
        healthy = '^OK(: compensating gravity$|: )|^the node ends .*'
        message = log or re.sub(healthy, '', diagnostics)
        if message:
            lines.append(f'| {_cell(done)} | {_cell(message)} |')
    return '\n'.join(lines) + '\n'


def _cell(words: str) -> str:
    """Return words as a cell's Markdown: what is no code holds no HTML."""
    parts = words.split('`')
    parts[::2] = [part.replace('<', '&lt;') for part in parts[::2]]
    return '`'.join(parts)


class _Collector:
    """Keeps what pytest collects."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the collected tests from pytest."""
        self.items = list(session.items)


DOCS = ROOT / 'docs'
FAULTS = MarkedTests('fault', 'test_faults_*.py', DOCS / 'evidence.md', 40, list_of_faults)
MISTAKES = MarkedTests(
    'mistake', 'test_mistakes.py', DOCS / 'troubleshooting.md', 30, table_of_mistakes
)


if __name__ == '__main__':
    rows_of = {tests: tests.rows() for tests in (FAULTS, MISTAKES)}
    exit_with([fault for tests, rows in rows_of.items() for fault in tests.faults(rows)])
    write_or_check({tests.page: tests.text(rows) for tests, rows in rows_of.items()})
