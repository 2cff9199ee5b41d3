# SPDX-License-Identifier: Apache-2.0
"""What is wrong with figures that are saved: what leaves its axes or the paper, and warnings."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np
import pytest

_LEAST, _OVERLAP = 1.0, 3.0  # [px]


@contextmanager
def examined_figures() -> Iterator[list[str]]:
    """Yield the names of the modules that save a figure meanwhile; fail at the first fault."""
    figures = pytest.importorskip('matplotlib.figure', reason='needs matplotlib')
    save, drawn = figures.Figure.savefig, []
    log = _Log()
    logging.getLogger('matplotlib').addHandler(log)

    def examined(figure: Any, *arguments: Any, **options: Any) -> None:
        save(figure, *arguments, **options)
        faults = faults_of(figure)
        assert not faults, '\n'.join(faults)
        drawn.append(str(arguments[0]))

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter('error')
        patch.setattr(figures.Figure, 'savefig', examined)
        try:
            yield drawn
        finally:
            logging.getLogger('matplotlib').removeHandler(log)
    assert log.lines == []
    assert drawn


def faults_of(figure: Any) -> list[str]:
    """Return as text what leaves its axes or the figure, and which texts cover each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    faults = []
    for axes in figure.axes:
        box = axes.bbox.padded(_LEAST)
        for artist in (*axes.lines, *axes.patches, *axes.collections, *axes.images):
            points = _points(artist, renderer)
            points = points[np.isfinite(points).all(axis=1)]
            inside = box.count_contains(points)
            if inside < len(points):
                where = f'{axes.get_xlabel()!r}, {axes.get_ylabel()!r}'
                faults.append(f'{artist} over {where}: {inside} of {len(points)} points inside')
    texts = [(text, text.get_window_extent(renderer)) for text in _texts(figure)]
    paper = figure.bbox.padded(_LEAST)
    faults += [
        f'{text.get_text()!r} leaves the figure'
        for text, box in texts
        if paper.count_contains(box.corners()) < 4
    ]
    for (one, a), (other, b) in combinations(texts, 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > _OVERLAP and high > min(a.height, b.height) / 3:
            faults.append(f'{one.get_text()!r} covers {other.get_text()!r}')
    return faults


def _points(artist: Any, renderer: Any) -> np.ndarray:
    """Return the vertices (k, 2) of a line or a patch, or the corners of another artist [px]."""
    if hasattr(artist, 'get_xydata'):
        return artist.get_transform().transform(artist.get_xydata())
    if hasattr(artist, 'get_patch_transform'):
        return artist.get_transform().transform_path(artist.get_path()).vertices
    return artist.get_window_extent(renderer).corners()


def _texts(figure: Any) -> list[Any]:
    """Return the texts that are drawn: of the ticks those within the axis alone."""
    from matplotlib.text import Text

    ticks, drawn = set(), []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks |= {axis.get_offset_text()}
            for tick in (*axis.majorTicks, *axis.minorTicks):
                ticks |= {tick.label1, tick.label2}
            if axes.axison and axis.get_visible():
                drawn += [tick.label1 for tick in axis._update_ticks()]
    others = [x for x in figure.findobj(Text) if x not in ticks]
    off = {
        x for axes in figure.axes if not axes.axison for x in (axes.xaxis.label, axes.yaxis.label)
    }
    return [x for x in [*drawn, *others] if x.get_visible() and x.get_text() and x not in off]


class _Log(logging.Handler):
    """What a library would write to standard error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.lines.append(record.getMessage())
