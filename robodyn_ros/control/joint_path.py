# SPDX-License-Identifier: Apache-2.0
"""
The path of joints without time: through waypoints, along a trajectory, round corners or to them.

A path is polynomials in a parameter that grows with the distance [rad or m] between waypoints, so
that its first derivative is of size one. Where it has a corner the arm has to stop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array, checked_number
from robodyn_ros.control.polynomials import Polynomials
from robodyn_ros.control.reference import Reference
from robodyn_ros.errors import InvalidArgument, Phrase, WrongType
from robodyn_ros.spatial import FloatArray

Corners = Literal['spline', 'stop', 'blend', 'goal']
CORNERS: tuple[Corners, ...] = get_args(Corners)
"""
Through waypoints a path is a spline, or lines with stops or with round corners; or there is none,
only a goal.
"""

MOST_WAYPOINTS = 1_000
LARGEST_POSITION = 1e6  # farther away no joint is [rad] or [m]
_SHORTEST = 1e-9  # closer waypoints are the same [rad] or [m]
# That the path of a motion in time is put through, at least; of each segment.
_PLACES_OF_MOTION, _PLACES_OF_SEGMENT = 200, 4
_CLOSEST, _MOST_APART = 1e-4, 1e-3  # of its length, but no more [rad or m], between two of them
_AT_REST = 1e-6  # slower a motion stops [rad/s or m/s]
_STRAIGHT = 1e-2  # a smaller change of direction, at rest, is no corner
_SHARP = 0.5  # a larger one is a corner: samples of a motion that turned between two of them
_MOST_OF_SEGMENT, _FEWEST_OF_PIECE = 4, 40  # intervals of a grid that a short one gets
_REVERSAL = 1e-3  # of two directions whose sum is shorter, no blend leads from one to the other

# Where the first interval after a rest is cut: from rest each part takes as long as all before.
_CUTS = np.array([0.0, 1 / 64, 1 / 16, 1 / 4, 1.0])

# Bezier coefficients of a quintic to those of 1, t, ..., t^5.
_BEZIER = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [-5, 5, 0, 0, 0, 0],
        [10, -20, 10, 0, 0, 0],
        [-10, 30, -30, 10, 0, 0],
        [5, -20, 30, -20, 5, 0],
        [-1, 5, -10, 10, -5, 1],
    ],
    dtype=float,
)
# A corner's blend passes it by this times its reach and the difference of directions.
_BLEND_DEVIATION = 7 / 64


@dataclass(frozen=True, eq=False)
class JointPath(Polynomials):
    """
    A path of n joints of K - 1 segments; build it with ``through``.

    Parameters
    ----------
    knots : array, shape (K,)
        The parameter at which segments begin, and the end [rad or m].
    coefficients : array, shape (K - 1, 6, n)
        Of 1, t, ..., t^5 with t running from 0 to 1 over the segment [rad or m].
    waypoints : array, shape (W,)
        The parameter at which the waypoints are, or the corners nearest to them.
    is_stop : array of bool, shape (K,)
        At which knots the arm has to stop: corners.
    """

    waypoints: FloatArray
    is_stop: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    @classmethod
    def through(
        cls,
        waypoints: FloatArray,
        corners: Corners = 'spline',
        tolerance: float = 0.0,
        parameters: FloatArray | None = None,
    ) -> JointPath:
        """
        Return the path through checked waypoints (K, n), of which no two in a row are equal.

        Parameters
        ----------
        waypoints : array, shape (K, n)
            [rad or m]
        corners : str
            ``'spline'``: the cubic spline whose third derivative is continuous at the second and
            the last but one waypoint, as SciPy's and toppra's. ``'stop'``: straight lines, a stop
            at each waypoint where the direction changes. ``'blend'``: straight lines, each corner
            rounded by a quintic. Not ``'goal'``.
        tolerance : float
            Distance by which a blend may pass its waypoint [rad or m].
        parameters : array, shape (K,), optional
            Of the spline; not given: the distance along the waypoints.

        Raises
        ------
        InvalidArgument, WrongType
            A tolerance that does not go with the corners.
        """
        distance = checked_number('tolerance', tolerance)
        if not 0.0 <= distance < np.inf or (corners == 'blend') != (distance > 0.0):
            raise InvalidArgument(
                'argument tolerance', distance, "more than zero with corners='blend', else zero"
            )
        lengths = np.linalg.norm(np.diff(waypoints, axis=0), axis=1)
        knots = np.concatenate([[0.0], np.cumsum(lengths)])
        if corners == 'spline':
            return cls._spline(knots if parameters is None else parameters, waypoints)
        directions = np.diff(waypoints, axis=0) / lengths[:, None]
        turn = np.linalg.norm(np.diff(directions, axis=0), axis=1)
        is_corner = turn > 1e-9
        reach = np.zeros(len(waypoints))
        if corners == 'blend':
            can = is_corner & (
                np.linalg.norm(directions[1:] + directions[:-1], axis=1) > _REVERSAL
            )
            most = 0.5 * np.minimum(lengths[1:], lengths[:-1])
            wanted = tolerance / (_BLEND_DEVIATION * np.where(can, turn, 1.0))
            reach[1:-1] = np.where(can, np.minimum(most, wanted), 0.0)
        is_stop = np.concatenate([[False], is_corner, [False]]) & (reach == 0.0)
        return cls._lines(waypoints, directions, lengths, reach, is_stop)

    @classmethod
    def along(cls, reference: Reference, waypoints: FloatArray) -> JointPath:
        """
        Return the path of a motion in time; it stops where the motion stops and turns, or turns
        sharply.

        Parameters
        ----------
        reference : Reference
        waypoints : array, shape (W,)
            The times of its waypoints [s].

        Raises
        ------
        InvalidArgument
            Nothing moves, or numbers are too large.

        Notes
        -----
        Waits are left out. It is a spline through places of the motion, some of each segment.
        """
        count = len(reference.coefficients)
        parts = max(_PLACES_OF_SEGMENT, -(-_PLACES_OF_MOTION // count))
        s = np.tile(np.linspace(0.0, 1.0, parts + 1)[:-1], (count, 1))
        motion = reference.polynomials
        q, qd, _ = motion.states(np.arange(count), s)
        n = q.shape[-1]
        last = reference.coefficients[-1].sum(axis=0)
        points = np.vstack([q.reshape(-1, n), last])
        if not (np.isfinite(points).all() and np.abs(points).max() <= LARGEST_POSITION):
            raise InvalidArgument(
                'trajectory positions',
                Phrase('not finite or too large'),
                f'at most {LARGEST_POSITION:g}',
            )
        times = (motion.knots[:-1, None] + s * motion.steps[:, None]).ravel()
        times = np.append(times, reference.knots[-1])
        speed = np.append(np.linalg.norm(qd.reshape(-1, n), axis=1), 0.0)
        rests = speed <= _AT_REST
        way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        if way[-1] <= _SHORTEST:
            raise InvalidArgument('trajectory', Phrase('no motion'), 'one that moves')
        kept = _apart(
            points, np.arange(0, len(points), parts), min(_CLOSEST * way[-1], _MOST_APART)
        )
        places = points[kept]
        directions = np.diff(places, axis=0)
        chords = np.linalg.norm(directions, axis=1)
        if chords.min() <= _SHORTEST:  # it trembles, and ends where it began
            raise InvalidArgument('trajectory', Phrase('no motion'), 'one that moves')
        directions /= chords[:, None]
        turns = np.linalg.norm(np.diff(directions, axis=0), axis=1)
        near_rest = np.zeros(len(kept), bool)
        index = np.searchsorted(kept, np.flatnonzero(rests), side='left')
        near_rest[np.minimum(index, len(kept) - 1)] = True
        is_stop = np.zeros(len(kept), bool)
        is_stop[1:-1] = np.where(near_rest[1:-1], turns > _STRAIGHT, turns > _SHARP)
        path = cls._splines(places, is_stop)
        at = np.interp(waypoints, times[kept], path.knots)
        return replace(path, waypoints=at)

    @classmethod
    def _splines(cls, points: FloatArray, is_stop: np.ndarray) -> JointPath:
        """Return splines through points (K, n), from stop to stop."""
        bounds = [0, *np.flatnonzero(is_stop).tolist(), len(points) - 1]
        lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
        knots = np.concatenate([[0.0], np.cumsum(lengths)])
        parts = [
            cls._spline(knots[i : j + 1], points[i : j + 1]).coefficients
            for i, j in zip(bounds[:-1], bounds[1:], strict=True)
        ]
        return cls(knots, np.concatenate(parts), knots, is_stop)

    @classmethod
    def _spline(cls, knots: FloatArray, waypoints: FloatArray) -> JointPath:
        from scipy.interpolate import CubicSpline  # half a second

        spline = CubicSpline(knots, waypoints)
        steps = np.diff(knots)[:, None, None]
        coefficients = np.zeros((len(steps), 6, waypoints.shape[1]))
        coefficients[:, :4] = spline.c[::-1].transpose(1, 0, 2) * steps ** np.arange(4)[:, None]
        return cls(knots, coefficients, knots, np.zeros(len(knots), bool))

    @classmethod
    def _lines(
        cls,
        waypoints: FloatArray,
        directions: FloatArray,
        lengths: FloatArray,
        reach: FloatArray,
        is_stop: np.ndarray,
    ) -> JointPath:
        """Return lines, and blends where corners have a reach; all by their Bezier points."""
        points, spans, stops, at = [], [], [False], [0.0]
        for k, (direction, length) in enumerate(zip(directions, lengths, strict=True)):
            begin, end = reach[k], length - reach[k + 1]
            if end - begin > _SHORTEST:
                places = np.linspace(begin, end, 6)
                points.append(waypoints[k] + places[:, None] * direction)
                spans.append(end - begin)
                stops.append(bool(is_stop[k + 1]))
            if reach[k + 1] > 0.0:
                # Evenly spaced on either line: the second derivative is zero at both ends.
                places = reach[k + 1] * np.array([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0])
                sides = np.stack([direction] * 3 + [directions[k + 1]] * 3)
                points.append(waypoints[k + 1] + places[:, None] * sides)
                spans.append(2.5 * reach[k + 1])
                stops.append(False)
                at.append(sum(spans) - 0.5 * spans[-1])
            else:
                at.append(sum(spans))
        knots = np.concatenate([[0.0], np.cumsum(spans)])
        return cls(knots, _BEZIER @ np.array(points), np.array(at), np.array(stops))

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.coefficients.shape[2]

    @property
    def length(self) -> float:
        """The parameter at the end, from that at the beginning [rad or m]."""
        return float(self.knots[-1] - self.knots[0])

    def grid(self, points: int) -> tuple[np.ndarray, FloatArray]:
        """
        Return the segment of each interval of a grid, (N,), and its two ends in it, (N, 2).

        N is about ``points``, or more where segments or pieces between stops are many. Where the
        arm is at rest intervals are shorter: it is there for longest.
        """
        steps = np.diff(self.knots)
        piece = np.concatenate([[0], np.cumsum(self.is_stop[1:-1])])
        of_piece = np.bincount(piece, weights=steps)
        share = np.maximum(
            points * steps / steps.sum(), _FEWEST_OF_PIECE * steps / of_piece[piece]
        )
        fewest = np.clip(points // len(steps), 1, _MOST_OF_SEGMENT)
        counts = np.maximum(np.ceil(share - 1e-9), fewest).astype(int)
        segment = np.repeat(np.arange(len(steps)), counts)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        place = np.arange(len(segment)) - first[segment]
        ends = (place[:, None] + np.array([0.0, 1.0])) / counts[segment][:, None]
        return self._refined(segment, ends)

    def _refined(self, segment: np.ndarray, ends: FloatArray) -> tuple[np.ndarray, FloatArray]:
        """Return a grid whose first and last interval of each piece are cut."""
        is_begin = np.concatenate([[True], self.is_stop[1:-1]])
        is_end = np.concatenate([self.is_stop[1:-1], [True]])
        is_first = is_begin[segment] & (ends[:, 0] == 0.0)
        is_last = is_end[segment] & (ends[:, 1] == 1.0) & ~is_first
        count = len(_CUTS) - 1
        row = np.repeat(np.arange(len(segment)), np.where(is_first | is_last, count, 1))
        cut = np.arange(len(row)) - np.searchsorted(row, row)
        pairs = np.stack([_CUTS[:-1], _CUTS[1:]], axis=1)
        part = np.tile([0.0, 1.0], (len(row), 1))
        part[is_first[row]] = pairs[cut[is_first[row]]]
        part[is_last[row]] = 1.0 - pairs[::-1, ::-1][cut[is_last[row]]]
        low, high = ends[row, :1], ends[row, 1:]
        return segment[row], np.where(part == 1.0, high, low + part * (high - low))

    def parameter(self, segment: np.ndarray, t: FloatArray) -> FloatArray:
        """Return the parameter at places t in segments [rad or m]."""
        return self.knots[segment] + t * self.steps[segment]

    def nearest_waypoint(self, parameter: float) -> int:
        """Return the index of the waypoint that is nearest along the path."""
        return int(np.abs(self.waypoints - parameter).argmin())


def _apart(points: FloatArray, first: np.ndarray, least: float) -> np.ndarray:
    """
    Return indices of places of which each is so far from the next: the first named, then others.

    Parameters
    ----------
    points : array, shape (P, n)
        Where places are [rad or m]; the first and the last one are kept.
    first : array of int
        Indices that are kept before others, 0 among them.
    least : float
    """
    last = len(points) - 1

    def is_apart(i: int, k: int) -> bool:
        return math.dist(points[i], points[k]) >= least

    named: list[int] = [0]
    for k in first[1:].tolist():
        if is_apart(k, named[-1]):
            named.append(k)
    while len(named) > 1 and not is_apart(named[-1], last):
        named.pop()
    named.append(last)
    kept = []
    for begin, end in zip(named[:-1], named[1:], strict=True):
        kept.append(begin)
        for k in range(begin + 1, end):
            if is_apart(k, kept[-1]) and is_apart(k, end):
                kept.append(k)
    return np.array([*kept, last])


def checked_waypoints(waypoints: ArrayLike, n: int) -> FloatArray:
    """
    Return waypoints (K, n) as floats; their number is looked at before they are copied.

    Raises
    ------
    WrongType, InvalidArgument, NonFiniteValue
        No array, too many, fewer than two, of other joints, too large, two in a row equal.
    """
    try:
        count = len(waypoints)  # type: ignore[arg-type]
    except TypeError as error:
        raise WrongType(
            'argument waypoints', type(waypoints).__name__, 'an array (K, n)'
        ) from error
    if not 2 <= count <= MOST_WAYPOINTS:
        raise InvalidArgument(
            'argument waypoints', Phrase(f'{count} waypoints'), f'2 to {MOST_WAYPOINTS}'
        )
    shape = getattr(waypoints, 'shape', None)
    if shape is not None and shape != (count, n):
        raise InvalidArgument(
            'argument waypoints', Phrase(f'shape {shape}'), f'shape ({count}, {n})'
        )
    points = checked_array('waypoints', waypoints, (count, n))
    large = np.abs(points) > LARGEST_POSITION
    if large.any():
        k, j = np.argwhere(large)[0]
        raise InvalidArgument(
            f'argument waypoints[{k}][{j}]', float(points[k, j]), f'at most {LARGEST_POSITION:g}'
        )
    equal = np.linalg.norm(np.diff(points, axis=0), axis=1) <= _SHORTEST
    if equal.any():
        k = int(equal.argmax()) + 1
        raise InvalidArgument(
            f'argument waypoints[{k}]', Phrase('equal to the one before'), 'another position'
        )
    return points
