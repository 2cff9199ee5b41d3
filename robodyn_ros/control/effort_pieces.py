# SPDX-License-Identifier: Apache-2.0
"""Where straight lines between torques must be broken to stay close to the torque of a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.path_torque import GRID, PARTS, PathTorque

_HALF = PARTS // 2
_CONTINUOUS = 0.1  # a jump of torque under this fraction of the bound needs no second point
_AT_REST = 1e-6  # slower than this [rad/s] or [m/s] a motion begins at rest


@dataclass(frozen=True, eq=False)
class Pieces:
    """
    Between points, in the order of time; made by ``refined``.

    Parameters
    ----------
    segment : array of int, shape (P,)
        Of the path.
    begin, end : array, shape (P,)
        In parts of the segment, 0 to 1.
    begin_effort : array, shape (P, n)
        [N m] or [N]
    last_effort : array, shape (n,)
        At the last waypoint.
    settles : bool
        Whether another point behind the last one changes the torque to that which holds the arm.
    largest_error, largest_torque : array, shape (n,)
        Between points, but for the changes behind jumps [N m] or [N].
    excess : float
        The largest error in parts of the bound; 1 where none is beyond it.
    """

    segment: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    begin_effort: np.ndarray
    last_effort: np.ndarray
    settles: bool
    largest_error: np.ndarray
    largest_torque: np.ndarray
    excess: float

    def check(self, path: PathTorque, effort_limits: np.ndarray) -> None:
        """
        Check the torque at the points and between them.

        Raises
        ------
        RejectedTrajectory
        """
        if (self.largest_torque <= effort_limits).all():
            return
        s = self.begin[:, None] + (self.end - self.begin)[:, None] * GRID
        path.check_torques(self.segment, s, path.at(self.segment, s), effort_limits)


def refined(path: PathTorque, bound: np.ndarray, period: float, most: int) -> Pieces:
    """
    Return pieces on which straight lines err by no more than a bound, or the best there may be.

    Parameters
    ----------
    path : PathTorque
        Of no more than ``most`` waypoints.
    bound : array, shape (n,)
        [N m] or [N]
    period : float
        In so long the torque changes where it jumps, and shorter than twice this no piece is
        halved [s].
    most : int
        Points.
    """
    count, durations = len(path.times) - 1, np.diff(path.times)
    ends = path.at(np.arange(count), np.tile([0.0, 1.0], (count, 1)))
    rest = path.rest_effort
    before = np.vstack([_first_effort(path, ends), ends[:, 1]])
    after = np.vstack([ends[:, 0], rest])
    jumps = _jumps(np.abs(after - before) / bound, durations > 2.0 * period, most - count - 1)
    knots = np.where(jumps[:, None], before, 0.5 * (before + after))
    if not jumps[-1]:
        knots[-1] = rest
    behind = np.flatnonzero(jumps[:-1])
    s = period / durations[behind]
    second = path.at(behind, s[:, None])[:, 0]
    begin, begin_effort = np.zeros(count), knots[:-1].copy()
    begin[behind], begin_effort[behind] = s, second
    pieces = _Measured.of(
        path, np.arange(count), begin, np.ones(count), begin_effort, knots[1:], period
    )
    room = most - count - 1 - int(jumps.sum())
    while room > 0 and (worst := pieces.ratio(bound).max(initial=0.0)) > 1.0:
        ratio = pieces.ratio(bound)
        split = ratio > max(1.0, 0.5 * worst)
        if split.sum() > room:
            split = np.zeros_like(split)
            split[np.argsort(ratio)[-room:]] = True
        room -= int(split.sum())
        pieces = pieces.halved(path, split, period)
    # The changes behind jumps are pieces, too.
    segment = np.concatenate([behind, pieces.segment])
    begin = np.concatenate([np.zeros_like(s), pieces.begin])
    order = np.lexsort((begin, segment))
    peaks = np.vstack([np.abs(before), np.abs(after), pieces.peak])
    return Pieces(
        segment[order],
        begin[order],
        np.concatenate([s, pieces.end])[order],
        np.vstack([knots[behind], pieces.begin_effort])[order],
        knots[-1],
        bool(jumps[-1]),
        pieces.error.max(axis=0, initial=0.0),
        peaks.max(axis=0),
        max(1.0, float(pieces.ratio(bound).max(initial=0.0))),
    )


def _jumps(sizes: np.ndarray, has_time: np.ndarray, most: int) -> np.ndarray:
    """Return which jumps, in parts of the bound (K, n), get a second point: at most so many."""
    size = sizes.max(axis=1)
    size[:-1][~has_time] = 0.0
    jumps = size > _CONTINUOUS
    if jumps.sum() > most:
        jumps = np.zeros_like(jumps)
        jumps[np.argsort(size)[len(size) - most :]] = True
    return jumps


class _Measured(NamedTuple):
    """Pieces with their errors: each array has P rows."""

    segment: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    begin_effort: np.ndarray
    end_effort: np.ndarray
    error: np.ndarray  # zero where they are too short to be halved
    middle: np.ndarray
    peak: np.ndarray

    @classmethod
    def of(
        cls,
        path: PathTorque,
        segment: np.ndarray,
        begin: np.ndarray,
        end: np.ndarray,
        begin_effort: np.ndarray,
        end_effort: np.ndarray,
        period: float,
    ) -> _Measured:
        """Return pieces with the errors of the straight lines between their efforts."""
        torques = path.at(segment, begin[:, None] + (end - begin)[:, None] * GRID)
        rise = (end_effort - begin_effort)[:, None]
        errors = np.abs(torques - begin_effort[:, None] - rise * GRID[:, None])[:, 1:-1]
        error = errors.max(axis=1, initial=0.0)
        error[(end - begin) * np.diff(path.times)[segment] <= 2.0 * period] = 0.0
        peak = np.abs(torques).max(axis=1, initial=0.0)
        return cls(segment, begin, end, begin_effort, end_effort, error, torques[:, _HALF], peak)

    def ratio(self, bound: np.ndarray) -> np.ndarray:
        """Return each piece's largest error in parts of the bound, shape (P,)."""
        return (self.error / bound).max(axis=1, initial=0.0)

    def halved(self, path: PathTorque, split: np.ndarray, period: float) -> _Measured:
        """Return the pieces with some of them halved."""
        segment, begin, end, effort, end_effort, _, effort_there, _ = (
            part[split] for part in self
        )
        middle = 0.5 * (begin + end)
        halves = _Measured.of(
            path,
            np.concatenate([segment, segment]),
            np.concatenate([begin, middle]),
            np.concatenate([middle, end]),
            np.concatenate([effort, effort_there]),
            np.concatenate([effort_there, end_effort]),
            period,
        )
        return _Measured(
            *(np.concatenate([old[~split], new]) for old, new in zip(self, halves, strict=True))
        )


def _first_effort(path: PathTorque, ends: np.ndarray) -> np.ndarray:
    """Return the torque before the first waypoint: that which holds an arm at rest."""
    zero = np.zeros((1, path.torque.model.n))
    moves = np.abs(path.points.velocity[0]).max() > _AT_REST
    if moves and len(ends):
        return ends[0, 0]
    return path.torque.at(path.points.position[:1], zero, zero)[0]
