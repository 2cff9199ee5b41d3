# SPDX-License-Identifier: Apache-2.0
"""Pages from templates that escape their input."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import robodyn_ros
from robodyn_ros.report.drawing import imported_jinja
from robodyn_ros.report.text import (
    coefficients,
    indexed,
    number,
    percent,
    plural,
    quantity,
    unbroken,
    visible,
)

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
    }
    page: str = environment.get_template(template).render(
        version=robodyn_ros.__version__,
        date=datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d %H:%M UTC'),
        style=_HERE.joinpath('page.css').read_text(encoding='utf-8'),
        **values,
    )
    return page
