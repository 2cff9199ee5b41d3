# SPDX-License-Identifier: Apache-2.0
"""Pages from templates that escape their input."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import robodyn_ros
from robodyn_ros.record import Table
from robodyn_ros.report.drawing import imported_jinja
from robodyn_ros.report.text import (
    coefficients,
    indexed,
    number,
    percent,
    plural,
    quantity,
    true_minus,
    unbroken,
    visible,
)

if TYPE_CHECKING:
    from markupsafe import Markup

_HERE = Path(__file__).parent


def rendered_page(template: str, **values: Any) -> str:
    """
    Return a page as HTML text that needs nothing else.

    Parameters
    ----------
    template : str
        A file of this folder; it gets the style, the version and the date besides.
    **values : object
        What it shows. Names of a URDF and of recordings are escaped; what must not be is marked
        so in the template.
    """
    jinja2 = imported_jinja()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        'number': number,
        'percent': percent,
        'visible': visible,
        'plural': plural,
        'quantity': quantity,
        'unbroken': unbroken,
        'coefficients': coefficients,
        'indexed': indexed,
        'tables': _tables,
    }
    page: str = environment.get_template(template).render(
        version=robodyn_ros.__version__,
        date=datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d %H:%M UTC'),
        style=_HERE.joinpath('page.css').read_text(encoding='utf-8'),
        **values,
    )
    return page


def _tables(tables: Iterable[Table]) -> Markup:
    """Return the tables of a record as a page has them; its columns stand in rows on a phone."""
    from markupsafe import Markup, escape

    def row(cells: Sequence[str], header: Sequence[str], k: int) -> str:
        first, *others = cells
        if header[0] == 'joint':
            name = visible(first)
            first = Markup('<span class="q">q{}</span> <bdi>{}</bdi>').format(k, name)
        shown = (
            Markup('<td data-label="{}">{}</td>').format(head, unbroken(true_minus(visible(cell))))
            for head, cell in zip(header[1:], others)
        )
        return f'<tr><th scope="row">{escape(first)}</th>{"".join(shown)}</tr>'

    found = ''
    for each in tables:
        caption = Markup('<caption>{}</caption>').format(each.caption) if each.caption else ''
        head = ''.join(Markup('<th>{}</th>').format(cell) for cell in each.header)
        rows = '\n'.join(row(cells, each.header, k) for k, cells in enumerate(each.rows, start=1))
        found += f'<table class="wide">{caption}\n<thead><tr>{head}</tr></thead>\n'
        found += f'<tbody>\n{rows}\n</tbody></table>\n'
    return Markup(found)
