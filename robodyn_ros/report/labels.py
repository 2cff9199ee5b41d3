# SPDX-License-Identifier: Apache-2.0
"""Labels put where they cover neither each other nor the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.spatial import FloatArray

_GAP = np.array([4.0, 1.0])
_LETTER, _LINE = 7.2, 13.0  # width and height of a letter [px]
_DIRECTIONS = np.radians(np.arange(0, 360, 22.5))
_DISTANCES = (1.0, 1.6, 2.4, 3.4, 4.6)
_ON_LABEL, _ON_LINE, _ASTRAY = 200.0, 3.0, 1.5
_HALF_LINE = 4.5  # half of a link's width, and a little [px]


@dataclass(frozen=True, eq=False)
class Label:
    """
    A text for a point (2,) [px].

    Attributes
    ----------
    color : str
    away_from : array, shape (2,), optional
        Another point: the label would best lie beyond the first, as seen from there.
    distance : float
        From the point [px], at best.
    """

    text: str
    point: FloatArray
    color: str
    away_from: FloatArray | None = None
    distance: float = 10.0

    @property
    def size(self) -> FloatArray:
        """Width and height (2,) [px], about."""
        return np.array([_LETTER * len(self.text), _LINE])


def placed_labels(
    labels: Sequence[Label], lines: FloatArray, paper: tuple[float, float]
) -> Iterator[tuple[Label, FloatArray]]:
    """
    Yield each label with the place (2,) [px] of its centre.

    Parameters
    ----------
    labels : sequence of Label
        Served in this order.
    lines : array, shape (k, 2)
        Points that should stay visible [px].
    paper : (float, float)
        Width and height [px]: labels stay on it.
    """
    taken: list[tuple[FloatArray, FloatArray]] = []
    for label in labels:
        half = label.size / 2
        best, least = label.point, np.inf
        for angle in _DIRECTIONS:
            direction = np.array([np.cos(angle), np.sin(angle)])
            for k in _DISTANCES:
                reach = label.distance * k + half * np.abs(direction)
                at = np.clip(label.point + direction * reach, half, np.array(paper) - half)
                cost = k + _cost(label, at, half, direction, taken, lines)
                if cost < least:
                    best, least = at, cost
        taken.append((best, half))
        yield label, best


def _cost(
    label: Label,
    at: FloatArray,
    half: FloatArray,
    direction: FloatArray,
    taken: Sequence[tuple[FloatArray, FloatArray]],
    lines: FloatArray,
) -> float:
    cost = _ON_LINE * float((np.abs(lines - at) < half + _HALF_LINE).all(axis=1).sum())
    for other, other_half in taken:
        if (np.abs(other - at) < half + other_half + _GAP).all():
            cost += _ON_LABEL
    if label.away_from is not None:
        along = label.point - label.away_from
        length = float(np.hypot(*along))
        if length > 1.0:
            cost += _ASTRAY * (1.0 - float(direction @ along) / length)
    return cost
