# SPDX-License-Identifier: Apache-2.0
"""The tables of the pages in docs/, so that tests can hold their numbers to the program."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / 'docs'


def tables(page: str, *heads: str) -> list[list[list[str]]]:
    """
    Return the cells of a page's tables that have ``heads`` among their column heads, row by row.

    The first row is that of the heads.
    """
    text = (DOCS / page).read_text(encoding='utf-8')
    found = []
    for block in re.findall(r'(?:^\|.*\|\n)+', text, re.M):
        rows = [[cell.strip() for cell in line[1:-1].split('|')] for line in block.splitlines()]
        if set(heads) <= set(rows[0]):
            found.append([rows[0], *rows[2:]])
    return found


def numbers(cell: str) -> list[float]:
    """Return the numbers in a cell, a minus of either kind in front."""
    return [float(x.replace('−', '-')) for x in re.findall(r'[-−]?\d+(?:\.\d+)?', cell)]
