# SPDX-License-Identifier: Apache-2.0
"""
An arm drawn from its DH table: links as the table's lengths, joints as their axes, frames.

Labels are put where they cover neither each other nor the drawing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.model import RobotModel
from robodyn_ros.report.svg import Ink, inline_svg
from robodyn_ros.spatial import FloatArray, rotation_x, rotation_z

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _TALLEST, _LOWEST = 380.0, 400.0, 220.0
_MARGIN = 32.0
_LEAST_SIZE = 1e-6  # [m]
_FAR = 3.0  # of the arm's size
_DOTS_APART = 6.0
_LARGEST_DISC = 22.0
_ELEVATION = np.radians(24)
_ASIDE = np.radians(25)
_TURN = np.linspace(0, 2 * np.pi, 61)
_DISC = np.stack([np.cos(_TURN), np.sin(_TURN), np.zeros_like(_TURN)], axis=1)
_ARROW, _AXIS, _GROUND = 0.13, 0.055, 0.11  # of the arm's size
_SENSE, _ALONG = 0.042, 0.075  # radius of the arc about a joint's axis, and where on it; the same
_ARC = np.radians(np.linspace(20.0, 290.0, 28))
_MOST_LABELS, _APART = 8, 5
_BAR, _BAR_END = 0.3, 4.0  # largest length of the scale bar, of the width; height of its ends [px]

# Labels: their size, and what a place costs that hides something.
_GAP = np.array([4.0, 1.0])  # [px]
_LETTER, _LINE = 7.2, 13.0  # width and height of a letter [px]
_DIRECTIONS = np.radians(np.arange(0, 360, 22.5))
_DISTANCES = (1.0, 1.6, 2.4, 3.4, 4.6)
_ON_LABEL, _ON_LINE, _ASTRAY = 200.0, 3.0, 1.5
_HALF_LINE = 4.5  # half of a link's width, and a little [px]


def frames_drawing(model: RobotModel, q: FloatArray, name: str, label: str) -> str:
    """Return an arm at q (n,) [rad or m] with its DH frames, as an ``<svg>`` element."""
    picture = _Picture(model, q)

    def draw(axes: Axes) -> None:
        picture.draw_body(axes)
        for i, frame in enumerate(picture.frames, start=1):
            picture.draw_frame(axes, frame, i)
            if not model.dh.prismatic[i - 1]:
                picture.draw_sense(axes, frame, i)
        picture.draw_scale(axes)
        picture.draw_labels(axes)

    return inline_svg(draw, _WIDTH, picture.height, name=name, label=label)


def masses_drawing(model: RobotModel, q: FloatArray, name: str, label: str) -> str:
    """Return an arm with a disc at each centre of mass, its area the mass, as ``<svg>``."""
    picture = _Picture(model, q, with_masses=True)
    masses = model.inertial_parameters[:, 9]
    least = np.sort(masses)[-_MOST_LABELS:][0]

    def draw(axes: Axes) -> None:
        picture.draw_body(axes)
        for i, (center, mass) in enumerate(zip(picture.mass_centers, masses), start=1):
            if mass > 0 and not picture.is_far[i - 1]:
                radius = _LARGEST_DISC * np.sqrt(mass / masses.max())
                text = f'{i}: {mass:.3g} kg' if mass >= least else ''
                picture.draw_mass(axes, center, radius, text)
        picture.draw_scale(axes)
        picture.draw_labels(axes)

    return inline_svg(draw, _WIDTH, picture.height, name=name, label=label)


def masses_off_paper(model: RobotModel, q: FloatArray) -> list[int]:
    """Return which joints, from 0, move a centre of mass too far from the arm to be drawn."""
    return [int(k) for k in np.flatnonzero(_Picture(model, q, with_masses=True).is_far)]


def mass_centers(model: RobotModel, frames: FloatArray) -> FloatArray:
    """Return the centres of mass (n, 3) [m] in the base, of DH frames (n, 4, 4)."""
    rows = model.inertial_parameters
    centers = np.divide(
        rows[:, 6:9], rows[:, 9:], out=np.zeros((len(rows), 3)), where=rows[:, 9:] != 0
    )
    return np.einsum('kij,kj->ki', frames[:, :3, :3], centers) + frames[:, :3, 3]


def shown_points(points: FloatArray, centers: FloatArray) -> FloatArray:
    """
    Return what shows how large an arm is (k, 3) [m].

    Its frames' points are; where all of them coincide, as those of one joint may, the centres of
    mass, too.
    """
    is_one_point = float(np.ptp(points, axis=0).max()) <= _LEAST_SIZE
    return np.vstack([points, centers]) if is_one_point else points


def is_labelled(index: int, n: int, is_second: bool = False) -> bool:
    """Return whether a frame's axis is named: of long arms some, and one axis of each, are."""
    if n <= _MOST_LABELS:
        return True
    return not is_second and (index in (1, n) or index % _APART == 0)


def scale_bar(pixels_per_metre: float) -> float:
    """Return the length [m] of a scale bar: the largest 1, 2 or 5 that is not too long."""
    longest = _BAR * _WIDTH / pixels_per_metre
    power = 10.0 ** np.floor(np.log10(longest))
    return float(max(x for x in (power, 2 * power, 5 * power) if x <= longest))


def sense_of_rotation(frame: FloatArray, size: float) -> FloatArray:
    """Return points (k, 3) of an arc about a joint's axis, in the order in which q grows."""
    circle = np.stack([np.cos(_ARC), np.sin(_ARC)], axis=1) @ frame[:3, :2].T
    return frame[:3, 3] + size * (_ALONG * frame[:3, 2] + _SENSE * circle)


@dataclass
class _Picture:
    """An arm on paper: where everything lies in pixels, and what labels have to keep clear of."""

    model: RobotModel
    q: FloatArray
    with_masses: bool = False
    labels: list[Label] = field(default_factory=list)
    lines: list[FloatArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        dh = self.model.dh
        self.frames = frame_transforms(dh, self.q)
        self.tip = self.frames[-1] @ dh.tip_transform
        before = np.concatenate([dh.base_transform[None], self.frames[:-1]])
        # Each row goes along x by a, then along z by d.
        feet = [frame @ np.array([a, 0.0, 0.0, 1.0]) for frame, a in zip(before, dh.a)]
        self.feet = np.array(feet)[:, :3]
        self.starts, self.origins = before[:, :3, 3], self.frames[:, :3, 3]
        self.mass_centers = mass_centers(self.model, self.frames)
        points = np.vstack([np.zeros(3), self.starts, self.feet, self.origins, self.tip[:3, 3]])
        if self.with_masses:
            points = shown_points(points, self.mass_centers)
        self.size = max(float(np.ptp(points, axis=0).max()), _LEAST_SIZE)
        _, self.view = view_of(points)
        arrows = self.size * _ARROW * np.swapaxes(self.frames[:, :3, [0, 2]], 1, 2)
        ends = (self.origins[:, None] + arrows).reshape(-1, 3)
        seen = [points, ends, self.size * _GROUND * _DISC]
        if self.with_masses:
            seen.append(self.mass_centers[~self.is_far])
        flat = np.vstack(seen) @ self.view.T
        low, high = flat.min(axis=0), flat.max(axis=0)
        room = np.array([_WIDTH, _TALLEST]) - 2 * _MARGIN
        self.scale = float((room / np.maximum(high - low, 1e-9)).min())
        self.height = max(float(self.scale * (high - low)[1]) + 2 * _MARGIN, _LOWEST)
        self.shift = np.array([_WIDTH, self.height]) / 2 - self.scale * (low + high) / 2

    @property
    def is_far(self) -> NDArray[np.bool_]:
        """Whether each centre of mass (n,) lies where a wrong URDF alone puts it."""
        away = np.linalg.norm(self.mass_centers - self.origins, axis=1)
        return (away > _FAR * self.size) & (self.model.inertial_parameters[:, 9] > 0)

    def on_paper(self, points: FloatArray) -> FloatArray:
        """Return points (..., 3) [m] as pixels (..., 2)."""
        return self.scale * (points @ self.view.T) + self.shift

    def draw_body(self, axes: Axes) -> None:
        """Draw ground, links, joints; and set the axes up."""
        axes.set_xlim(0, _WIDTH)
        axes.set_ylim(0, self.height)
        axes.set_aspect('equal')
        axes.set_axis_off()
        ground = self.on_paper(self.size * _GROUND * _DISC)
        axes.fill(*ground.T, facecolor=Ink.GRID, edgecolor=Ink.MUTED, linewidth=0.8)
        self._line(axes, [np.zeros(3), self.starts[0]])
        for start, foot, origin, prismatic in zip(
            self.starts, self.feet, self.origins, self.model.dh.prismatic
        ):
            self._line(axes, [start, foot])
            self._line(axes, [foot, origin], prismatic=bool(prismatic))
        self._line(axes, [self.origins[-1], self.tip[:3, 3]])
        for i, (frame, prismatic) in enumerate(zip(self.frames, self.model.dh.prismatic), start=1):
            half = self.size * _AXIS * frame[:3, 2]
            ends = self.on_paper(np.stack([frame[:3, 3] - half, frame[:3, 3] + half]))
            self.lines.append(_dots(ends[0], ends[1]))
            cap = 'butt' if prismatic else 'round'
            axes.plot(
                *ends.T,
                color=Ink.TEXT,
                linewidth=11,
                solid_capstyle=cap,
                zorder=3,
                gid=f'axis-{i}',
            )
            axes.plot(*ends.T, color=Ink.PAPER, linewidth=8.6, solid_capstyle=cap, zorder=3)
        axes.plot(*self.on_paper(self.tip[:3, 3]), 'o', color=Ink.TEXT, markersize=5, zorder=4)
        self.labels.append(Label('tip', self.on_paper(self.tip[:3, 3]), Ink.TEXT))

    def draw_frame(self, axes: Axes, frame: FloatArray, index: int) -> None:
        """Draw x and z of a frame as arrows."""
        start = self.on_paper(frame[:3, 3])
        for column, letter, color in ((0, 'x', Ink.RED), (2, 'z', Ink.BLUE)):
            end = self.on_paper(frame[:3, 3] + self.size * _ARROW * frame[:3, column])
            axes.annotate(
                '',
                (end[0], end[1]),
                (start[0], start[1]),
                arrowprops={
                    'arrowstyle': '-|>,head_width=0.22,head_length=0.5',
                    'color': color,
                    'linewidth': 1.7,
                    'shrinkA': 0,
                    'shrinkB': 0,
                },
                zorder=5,
            )
            self.lines.append(_dots(start, end))
            if is_labelled(index, self.model.n, letter == 'x'):
                self.labels.append(Label(f'{letter}{index}', end, color, away_from=start))

    def draw_sense(self, axes: Axes, frame: FloatArray, index: int) -> None:
        """Draw the way in which a revolute joint's position grows, as an arc with a head."""
        arc = self.on_paper(sense_of_rotation(frame, self.size))
        axes.plot(*arc.T, color=Ink.BLUE, linewidth=1.1, zorder=4, gid=f'sense-{index}')
        axes.annotate(
            '',
            (arc[-1, 0], arc[-1, 1]),
            (arc[-3, 0], arc[-3, 1]),
            arrowprops={
                'arrowstyle': '-|>,head_width=0.16,head_length=0.32',
                'color': Ink.BLUE,
                'linewidth': 1.1,
                'shrinkA': 0,
                'shrinkB': 0,
            },
            zorder=4,
        )
        self.lines.append(arc[::3])

    def draw_scale(self, axes: Axes) -> None:
        """Draw a bar of a round length in the lower left corner; none beside a mere point."""
        if self.size <= _LEAST_SIZE:
            return
        length = scale_bar(self.scale)
        left, y = _MARGIN / 4, _MARGIN / 3
        right = left + self.scale * length
        x = [left, left, left, right, right, right]
        heights = [y - _BAR_END, y + _BAR_END, y, y, y + _BAR_END, y - _BAR_END]
        axes.plot(x, heights, color=Ink.MUTED, linewidth=1.2, zorder=4, gid='scale')
        axes.text(right + 6, y, f'{length:g} m', color=Ink.TEXT, va='center', fontsize=10.5)
        self.lines.append(_dots(np.array([left, y]), np.array([right + 40, y])))

    def draw_mass(self, axes: Axes, center: FloatArray, radius: float, text: str) -> None:
        """Draw a disc of a radius in pixels."""
        at = self.on_paper(center)
        axes.plot(
            *at,
            'o',
            color=Ink.ORANGE,
            alpha=0.55,
            markersize=2 * radius,
            markeredgewidth=0,
            zorder=5,
        )
        axes.plot(*at, 'o', color=Ink.TEXT, markersize=2.5, zorder=6)
        self.lines.append(at + radius * _DISC[::4, :2])
        self.lines.append(at + radius / 2 * _DISC[::8, :2])
        if text:
            self.labels.append(Label(text, at, Ink.TEXT, distance=0.8 * radius + 4))

    def draw_labels(self, axes: Axes) -> None:
        """Write every label where it hides nothing."""
        for label, at in placed_labels(self.labels, np.vstack(self.lines), (_WIDTH, self.height)):
            axes.text(
                at[0],
                at[1],
                label.text,
                color=label.color,
                ha='center',
                va='center',
                fontsize=11.5,
                zorder=7,
            )

    def _line(self, axes: Axes, points: list[FloatArray], prismatic: bool = False) -> None:
        flat = self.on_paper(np.array(points))
        width, color = (3.0, Ink.ORANGE) if prismatic else (7.0, Ink.BODY)
        axes.plot(*flat.T, color=color, linewidth=width, solid_capstyle='round', zorder=2)
        self.lines.append(_dots(flat[0], flat[1]))


def _dots(start: FloatArray, end: FloatArray) -> FloatArray:
    """Return points (k, 2) [px] along a line, so close that no label fits in between."""
    return np.linspace(start, end, 2 + int(np.hypot(*(end - start)) / _DOTS_APART))


def view_of(points: FloatArray) -> tuple[tuple[float, float], FloatArray]:
    """
    Return from where an arm is widest, a little aside.

    Parameters
    ----------
    points : array, shape (k, 3)
        Of the arm [m].

    Returns
    -------
    angles : (float, float)
        Azimuth and elevation [rad].
    flat : array, shape (2, 3)
        The rows that flatten the world.
    """
    azimuths = np.radians(np.arange(0, 180, 15))
    widths = [np.std(points @ rotation_z(-azimuth)[0]) for azimuth in azimuths]
    azimuth = float(azimuths[int(np.argmax(widths))] + _ASIDE)
    flat = (rotation_x(_ELEVATION) @ rotation_z(-azimuth))[[0, 2]]
    return (azimuth, float(_ELEVATION)), flat


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
