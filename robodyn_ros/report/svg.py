# SPDX-License-Identifier: Apache-2.0
"""
Matplotlib figures as SVG embedded in a page, with the page's fonts and colours.

Figures are drawn in the colours of ``Ink``, which stand for CSS variables: the page says what they
look like in light, in dark and in print. Text stays text, and nothing of a URDF is written in it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from lxml import etree

from robodyn_ros.report.drawing import imported_matplotlib, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Ink:
    """Colours that the page decides upon; the numbers only tell them apart."""

    TEXT = '#010101'
    MUTED = '#020202'
    GRID = '#030303'
    PAPER = '#040404'
    BLUE = '#050505'
    ORANGE = '#060606'
    RED = '#070707'
    GREEN = '#080808'
    BODY = '#090909'


_VARIABLES = {
    color: f'var(--{name.lower()})'
    for name, color in vars(Ink).items()
    if not name.startswith('_')
}
_STYLE = {
    **style(Ink.TEXT, Ink.MUTED, Ink.GRID),
    'svg.fonttype': 'none',
    'svg.hashsalt': 'robodyn',
}
_LARGEST_SCALE = 1.25
_PIXELS_PER_INCH = 72  # of matplotlib's SVG: at its own size, one unit is one pixel
_SVG = '{http://www.w3.org/2000/svg}'
_LINK = '{http://www.w3.org/1999/xlink}href'
_FONT = re.compile(r'font-family:[^;\"]*(?:;\s*)?|font: (?P<size>[\d.]+px)[^;\"]*')
_PIXELATED = re.compile('image-rendering:[^;]*;?')
_COLOR = re.compile('#0[1-9]0[1-9]0[1-9]')


def inline_svg(
    draw: Callable[[Axes], None], width: float, height: float, *, name: str, label: str
) -> str:
    """
    Return a figure as an ``<svg>`` element.

    Parameters
    ----------
    draw : callable
        Draws on the axes.
    width, height : float
        [px]
    name : str
        Unique in the page: ids begin with it.
    label : str
        What a screen reader says.
    """
    file = io.StringIO()
    nothing = dict.fromkeys(('Date', 'Creator', 'Format', 'Type'))
    matplotlib = imported_matplotlib()
    with matplotlib.rc_context(_STYLE):
        size = width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH
        figure = matplotlib.figure.Figure(figsize=size, layout='constrained')
        draw(figure.subplots())
        figure.savefig(file, format='svg', transparent=True, metadata=nothing)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    root = etree.fromstring(file.getvalue().encode(), parser)
    for element in [*root.iter(f'{_SVG}style'), *root.iter(f'{_SVG}metadata')]:
        element.getparent().remove(element)
    for element in root.iter():
        _adopt(element, name)
    for attribute in ('width', 'height', 'version'):
        root.attrib.pop(attribute, '')
    root.set('role', 'img')
    root.set('aria-label', label)
    root.set('style', f'max-width: {_LARGEST_SCALE * width:.0f}px')
    return etree.tostring(root, encoding='unicode')


def _adopt(element: etree._Element, name: str) -> None:
    """Give an element ids of its own, and the page's font and colours."""
    if 'id' in element.attrib:
        element.set('id', f'{name}-{element.get("id")}')
    link = element.get(_LINK)
    if link and link.startswith('#'):
        element.set(_LINK, f'#{name}-{link[1:]}')
    clip = element.get('clip-path')
    if clip:
        element.set('clip-path', clip.replace('url(#', f'url(#{name}-'))
    style = element.get('style')
    if style:
        style = _FONT.sub(lambda m: f'font-size: {m["size"]}' if m['size'] else '', style)
        style = _PIXELATED.sub('', style)
        element.set('style', _COLOR.sub(lambda m: _VARIABLES[m[0]], style))
