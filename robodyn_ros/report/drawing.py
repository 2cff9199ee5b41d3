# SPDX-License-Identifier: Apache-2.0
"""What pages and pictures are made with, the extra ``report``: imported when one is made."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from robodyn_ros.errors import NoBackend

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_REMEDY = (
    "pip install 'robodyn-ros[report]', or sudo apt install python3-matplotlib python3-jinja2"
)


def imported_matplotlib() -> ModuleType:
    """
    Return matplotlib, with ``figure``, ``patches`` and ``ticker``.

    Raises
    ------
    NoBackend
        It cannot be imported.
    """
    try:
        import matplotlib.figure
        import matplotlib.patches
        import matplotlib.ticker
    except ImportError as error:
        raise NoBackend('matplotlib', str(error), _REMEDY) from error
    return matplotlib


def limit_ticks(axis: Axis, most: int, *, integer: bool = False) -> None:
    """Give an axis round ticks, no more than so many intervals of them."""
    axis.set_major_locator(imported_matplotlib().ticker.MaxNLocator(most, integer=integer))


def imported_jinja() -> ModuleType:
    """
    Return jinja2.

    Raises
    ------
    NoBackend
        It cannot be imported.
    """
    try:
        import jinja2
    except ImportError as error:
        raise NoBackend('jinja2', str(error), _REMEDY) from error
    return jinja2


def check_pages_can_be_made() -> None:
    """
    Say before the work that a page will need what is missing.

    Raises
    ------
    NoBackend
        Matplotlib or Jinja cannot be imported.
    """
    imported_matplotlib()
    imported_jinja()
