# SPDX-License-Identifier: Apache-2.0
"""
Display of results in a notebook: tables as HTML, formulas as LaTeX.

Names of links and joints are data: in both they are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar, TypeVar


@dataclass(frozen=True)
class Table:
    """A table's headings, its rows and what stands above it."""

    header: Sequence[str]
    rows: Iterable[Sequence[str]]
    caption: str = ''

    def html(self) -> str:
        """Return it as HTML; every text in it is escaped, and no dollar in a name is a formula."""
        title = f'<caption>{escape(self.caption)}</caption>' if self.caption else ''
        head = ''.join(f'<th>{escape(cell)}</th>' for cell in self.header)
        body = ''.join(
            f'<tr>{"".join(f"<td>{escape(cell)}</td>" for cell in row)}</tr>' for row in self.rows
        )
        inside = f'{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        return f'<table class="mathjax_ignore tex2jax_ignore">{inside}</table>'


class Tabular:
    """What shows as tables in a notebook, and as ``str`` of it in a terminal of IPython."""

    def _tables(self) -> Iterable[Table]:
        """Return the tables, one below the other."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return ''.join(table.html() for table in self._tables())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class Row:
    """What makes one row of a table."""

    _row_header: ClassVar[tuple[str, ...]] = ()

    def _row(self) -> Sequence[str]:
        """Return its cells as text."""
        raise NotImplementedError


class TabularRow(Row, Tabular):
    """What makes one row of a table, and shows as that where it stands alone."""

    def _tables(self) -> Iterable[Table]:
        return [Table(self._row_header, [self._row()])]


R = TypeVar('R', bound=Row)


class Rows(tuple[R, ...], Tabular):
    """A tuple of what makes the rows of one table; ``str`` has a line for each."""

    def _tables(self) -> Iterable[Table]:
        return [Table(self[0]._row_header if self else ('none',), [each._row() for each in self])]

    def __str__(self) -> str:
        return '\n'.join(map(str, self))


def latex_number(value: float) -> str:
    """Return a number with six digits, powers of ten written out."""
    digits, _, power = f'{value:.6g}'.partition('e')
    return rf'{digits} \cdot 10^{{{int(power)}}}' if power else digits


def latex_symbol(name: str) -> str:
    """Return a symbol such as d_12, c_23(1), q3 or XXR2 with its indices below it."""
    derivative = re.fullmatch(r'd (.+) / d (q\d+)', name)
    if derivative:
        above, below = map(latex_symbol, derivative.groups())
        return rf'\frac{{\partial {above}}}{{\partial {below}}}'
    symbol = re.fullmatch(r'([A-Za-z]+)_?(\d+(?:,\d+)*)(\(\d+\))?', name)
    if symbol is None:
        return latex_text(name)
    letters, index, of = symbol.groups()
    upright = letters if len(letters) == 1 else rf'\mathit{{{letters}}}'
    return f'{upright}_{{{index}}}{of or ""}'


def latex_text(text: str) -> str:
    """Return any text, a link's name, that means nothing to LaTeX but its letters."""
    spelled = {
        '\\': r'\textbackslash{}',
        '^': r'\textasciicircum{}',
        '~': r'\textasciitilde{}',
        **{each: f'\\{each}' for each in '{}$&#%_'},
    }
    shown = (spelled.get(each, each if each.isprintable() else ' ') for each in text)
    return rf'\text{{{"".join(shown)}}}'
