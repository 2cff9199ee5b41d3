# SPDX-License-Identifier: Apache-2.0
"""What pages and pictures are made with, the extra ``report``: imported when one is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from robodyn_ros.errors import InvalidArgument, NoBackend, Phrase
from robodyn_ros.report.text import visible

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_REMEDY = (
    "pip install 'robodyn-ros[report]', or sudo apt install python3-matplotlib python3-jinja2"
)


class Paper:
    """Colours of a picture in a file: those of a printed page, in ``page.css``."""

    TEXT, MUTED, GRID = '#000000', '#555555', '#dddddd'
    BLUE, ORANGE, RED = '#0066a6', '#c77700', '#c4421a'


# Curves of joints, of Okabe and Ito, which can be told apart; those beyond the eighth are dashed.
_CURVES = (
    '#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#b8a800',
)  # fmt: skip
_LONGEST_NAME = 28  # characters
_LETTER, _HANDLE = 6.0, 40.0  # width of a legend's letter, and of its line [pt]


def style(text: str, muted: str, grid: str) -> dict[Any, Any]:
    """Return the style of every figure of the package, in three colours."""
    return {
        'font.size': 11.0,
        'axes.edgecolor': muted,
        'axes.labelcolor': text,
        'axes.linewidth': 0.8,
        'axes.spines.top': False,
        'axes.spines.right': False,
        'axes.titlelocation': 'left',
        'axes.titlesize': 11.0,
        'axes.unicode_minus': True,
        'grid.color': grid,
        'grid.linewidth': 0.8,
        'legend.frameon': False,
        'text.color': text,
        'text.parse_math': False,
        'xtick.color': muted,
        'ytick.color': muted,
        'xtick.labelcolor': text,
        'ytick.labelcolor': text,
    }


def save_picture(
    draw: Callable[[Figure], None],
    path: Path,
    width: float,
    height: float,
    *,
    dpi: float = 120.0,
    area: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0),
) -> None:
    """
    Save a figure in the package's style.

    Parameters
    ----------
    draw : callable
        Draws in the figure.
    path : Path
        Its ending says whether a PNG, an SVG or a PDF.
    width, height : float
        [inch]
    dpi : float
        Of a PNG.
    area : (float, float, float, float)
        Left, bottom, width and height of what axes and their labels fill, 0 to 1.

    Raises
    ------
    InvalidArgument
        The ending is another one.
    """
    matplotlib = imported_matplotlib()
    if path.suffix.lower() not in ('.png', '.svg', '.pdf'):
        raise InvalidArgument('picture', path.name, 'a file that ends in .png, .svg or .pdf')
    with matplotlib.rc_context(style(Paper.TEXT, Paper.MUTED, Paper.GRID)):
        layout = matplotlib.layout_engine.ConstrainedLayoutEngine(rect=area)
        figure = matplotlib.figure.Figure(
            figsize=(width, height), dpi=dpi, facecolor='white', layout=layout
        )
        draw(figure)
        figure.savefig(path)


def joint_curve(joint: int, name: str) -> dict[str, Any]:
    """Return colour, line style and label of a joint's curve; joints count from 0."""
    is_beyond = joint // len(_CURVES) % 2
    return {
        'color': _CURVES[joint % len(_CURVES)],
        'linestyle': '--' if is_beyond else '-',
        'label': f'q{joint + 1} {drawable(name)}',
    }


def drawable(name: str) -> str:
    r"""Return a name of a description with what the font lacks as \uXXXX, and not too long."""
    manager = imported_matplotlib().font_manager
    font = manager.get_font(manager.findfont(manager.FontProperties()))
    text = ''.join(
        letter
        if font.get_char_index(ord(letter))
        else letter.encode('unicode_escape').decode('ascii')
        for letter in visible(name)
    )
    return text if len(text) <= _LONGEST_NAME else f'{text[: _LONGEST_NAME - 1]}…'


def legend_above(figure: Figure, handles: Iterable[Artist]) -> None:
    """Draw a legend above all axes, in as many columns as there is room for."""
    entries = list(handles)
    longest = max(len(str(each.get_label())) for each in entries)
    room = 72 * figure.get_figwidth() / (_LETTER * longest + _HANDLE)
    rows = math.ceil(len(entries) / max(1.0, room // 1))
    figure.legend(
        handles=entries,
        loc='outside upper center',
        ncols=math.ceil(len(entries) / rows),
        fontsize='small',
    )


def imported_matplotlib() -> ModuleType:
    """
    Return matplotlib, with the modules that are imported below.

    Raises
    ------
    NoBackend
        It cannot be imported.
    """
    try:
        import matplotlib.figure
        import matplotlib.font_manager
        import matplotlib.layout_engine
        import matplotlib.patches
        import matplotlib.ticker
    except ImportError as error:
        raise NoBackend('matplotlib', Phrase(str(error)), _REMEDY) from error
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
        raise NoBackend('jinja2', Phrase(str(error)), _REMEDY) from error
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
