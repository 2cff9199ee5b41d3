# SPDX-License-Identifier: Apache-2.0
"""The torque along a trajectory's path, and the knots between which straight lines follow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.polynomials import Polynomials
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.errors import Phrase, RejectedTrajectory
from robodyn_ros.model import force_unit

_PARTS = 8  # of a line between knots, at whose ends the torque is compared with it
_GRID = np.linspace(0.0, 1.0, _PARTS + 1)
_MIDDLE = _PARTS // 2
_CONTINUOUS = 0.1  # a jump of torque under this fraction of the bound needs no second point
_ROUNDING = 1e-9  # of the arm's largest torque, that no line is held to
_AT_REST = 1e-6  # slower than this [rad/s] or [m/s] a motion begins at rest


@dataclass(frozen=True, eq=False)
class PathTorque:
    """
    The path between K waypoints of all n joints, and the torque along it.

    Parameters
    ----------
    points : Waypoints
        Accelerations are NaN where cubics are meant.
    torque : ReferenceTorque
    """

    points: Waypoints
    torque: ReferenceTorque

    @property
    def times(self) -> np.ndarray:
        """Of the waypoints, shape (K,) [s]."""
        return self.points.time

    @property
    def motion(self) -> Polynomials:
        """Between them, in time."""
        return self.points.polynomials

    @property
    def is_cubic(self) -> np.ndarray:
        """Which segments are, shape (K - 1,)."""
        bare = np.isnan(self.points.states.acceleration).any(axis=1)
        return bare[:-1] | bare[1:]

    @property
    def rest_effort(self) -> np.ndarray:
        """The torque that holds the end, shape (n,) [N m] or [N]."""
        zero = np.zeros((1, self.torque.model.n))
        return self.torque.at(self.points.position[-1:], zero, zero)[0]

    def times_of(self, segment: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return the times of places in segments, shape (P,) like each argument [s]."""
        return self.times[segment] + s * self.motion.steps[segment]

    def at(self, segment: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return the torque, shape (P, m, n), at m places of each of P segments, (P, m)."""
        states = self.motion.states(segment, s)
        shape = states[0].shape
        rows = [part.reshape(-1, shape[-1]) for part in states]
        return self.torque.at(*rows).reshape(shape)

    def check(self, effort_limits: np.ndarray) -> None:
        """
        Check the numbers of the waypoints, and the torque at the end and here and there.

        Raises
        ------
        RejectedTrajectory
        """
        segment = np.arange(len(self.times) - 1)
        grid = np.tile(_GRID, (len(segment), 1))
        with np.errstate(over='ignore', invalid='ignore'):
            is_finite = np.isfinite(self.motion.coefficients).all() and all(
                np.isfinite(part).all() for part in self.motion.states(segment, grid)
            )
            if not is_finite:
                raise RejectedTrajectory(
                    'trajectory',
                    Phrase('numbers too large to interpolate'),
                    'values an arm can follow',
                )
            torques = self.at(segment, grid)
        self.check_torques(segment, grid, torques, effort_limits)
        end = self.rest_effort[None, None]
        self.check_torques(np.zeros(1, int), np.zeros((1, 1)), end, effort_limits, at_end=True)

    def check_torques(
        self,
        segment: np.ndarray,
        s: np.ndarray,
        torques: np.ndarray,
        effort_limits: np.ndarray,
        *,
        at_end: bool = False,
    ) -> None:
        """
        Check torques (P, m, n) at m places of each of P segments, (P, m), or at the end.

        Raises
        ------
        RejectedTrajectory
        """
        size = np.where(np.isnan(torques), np.inf, np.abs(torques))
        is_beyond = size > effort_limits
        if not is_beyond.any():
            return
        excess = np.where(is_beyond, size / effort_limits, 0.0)
        line, place, joint = np.unravel_index(int(np.argmax(excess)), excess.shape)
        time = self.times[-1]
        if not at_end:
            time = self.times_of(segment[line : line + 1], s[line, place : place + 1])[0]
        unit = force_unit(self.torque.model.dh.prismatic[joint])
        raise RejectedTrajectory(
            f'trajectory joint {self.torque.model.joint_names[joint]!r} torque at {time:.3f} s',
            float(torques[line, place, joint]),
            f'at most its effort limit, {effort_limits[joint]:g} {unit}',
            unit=unit,
        )


@dataclass(frozen=True, eq=False)
class EffortKnots:
    """
    Points between which the effort is linear, in the order of time; made by ``effort_knots``.

    Parameters
    ----------
    segment : array of int, shape (P,)
        That of the path in which each knot but the last lies.
    begin, end : array, shape (P,)
        Where each of them and the one after it lie, in parts of the segment, 0 to 1.
    effort : array, shape (P, n)
        At each of them [N m] or [N].
    last_effort : array, shape (n,)
        At the last knot, the last waypoint.
    settles : bool
        Whether another knot after the last one changes the torque to that which holds the arm.
    largest_error, largest_torque : array, shape (n,)
        Between knots, but for the changes after jumps [N m] or [N].
    excess : float
        The largest error in parts of the bound; 1 where none is beyond it.
    """

    segment: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    effort: np.ndarray
    last_effort: np.ndarray
    settles: bool
    largest_error: np.ndarray
    largest_torque: np.ndarray
    excess: float

    def check(self, path: PathTorque, effort_limits: np.ndarray) -> None:
        """
        Check the torque at the knots and between them.

        Raises
        ------
        RejectedTrajectory
        """
        if (self.largest_torque <= effort_limits).all():
            return
        s = self.begin[:, None] + (self.end - self.begin)[:, None] * _GRID
        path.check_torques(self.segment, s, path.at(self.segment, s), effort_limits)


def effort_knots(path: PathTorque, bound: np.ndarray, period: float, most: int) -> EffortKnots:
    """
    Return knots between which straight lines err by no more than a bound, or the best there are.

    Parameters
    ----------
    path : PathTorque
        Of no more than ``most`` waypoints.
    bound : array, shape (n,)
        [N m] or [N]; zero: as well as numbers allow.
    period : float
        Within it the torque changes where it jumps; a line shorter than twice this is not
        halved [s].
    most : int
        How many knots there may be.
    """
    count, durations = len(path.times) - 1, path.motion.steps
    ends = path.at(np.arange(count), np.tile([0.0, 1.0], (count, 1)))
    rest = path.rest_effort
    largest = max(float(np.abs(ends).max(initial=0.0)), float(np.abs(rest).max(initial=0.0)))
    bound = np.maximum(bound, max(_ROUNDING * largest, np.finfo(float).tiny))
    before = np.vstack([_first_effort(path, ends), ends[:, 1]])
    after = np.vstack([ends[:, 0], rest])
    jumps = _jumps(np.abs(after - before) / bound, durations > 2.0 * period, most - count - 1)
    # Where there is no second knot, one between the two torques serves both segments.
    at_waypoints = np.where(jumps[:, None], before, 0.5 * (before + after))
    if not jumps[-1]:
        at_waypoints[-1] = rest
    behind = np.flatnonzero(jumps[:-1])
    s = period / durations[behind]
    second = path.at(behind, s[:, None])[:, 0]
    begin, begin_effort = np.zeros(count), at_waypoints[:-1].copy()
    begin[behind], begin_effort[behind] = s, second
    lines = _Lines.of(
        path, np.arange(count), begin, np.ones(count), begin_effort, at_waypoints[1:], period
    )
    room = most - count - 1 - int(jumps.sum())
    while room > 0 and (worst := lines.ratio(bound).max(initial=0.0)) > 1.0:
        # The worst lines first, a batch at a time: there may be no room for all.
        ratio = lines.ratio(bound)
        split = ratio > max(1.0, 0.5 * worst)
        if split.sum() > room:
            split = np.zeros_like(split)
            split[np.argsort(ratio)[-room:]] = True
        room -= int(split.sum())
        lines = lines.halved(path, split, period)
    # The changes after jumps are lines, too; they last one period, and nothing measures them.
    segment = np.concatenate([behind, lines.segment])
    begin = np.concatenate([np.zeros_like(s), lines.begin])
    order = np.lexsort((begin, segment))
    peaks = np.vstack([np.abs(before), np.abs(after), lines.peak])
    return EffortKnots(
        segment[order],
        begin[order],
        np.concatenate([s, lines.end])[order],
        np.vstack([at_waypoints[behind], lines.begin_effort])[order],
        at_waypoints[-1],
        bool(jumps[-1]),
        lines.error.max(axis=0, initial=0.0),
        peaks.max(axis=0),
        max(1.0, float(lines.ratio(bound).max(initial=0.0))),
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


class _Lines(NamedTuple):
    """Lines between knots with their errors; each array has P rows."""

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
    ) -> _Lines:
        """Return the lines between these efforts with their errors."""
        torques = path.at(segment, begin[:, None] + (end - begin)[:, None] * _GRID)
        rise = (end_effort - begin_effort)[:, None]
        errors = np.abs(torques - begin_effort[:, None] - rise * _GRID[:, None])[:, 1:-1]
        error = errors.max(axis=1, initial=0.0)
        error[(end - begin) * path.motion.steps[segment] <= 2.0 * period] = 0.0
        peak = np.abs(torques).max(axis=1, initial=0.0)
        return cls(segment, begin, end, begin_effort, end_effort, error, torques[:, _MIDDLE], peak)

    def ratio(self, bound: np.ndarray) -> np.ndarray:
        """Return each line's largest error in parts of the bound, shape (P,)."""
        return (self.error / bound).max(axis=1, initial=0.0)

    def halved(self, path: PathTorque, split: np.ndarray, period: float) -> _Lines:
        """Return the lines with some of them halved."""
        segment, begin, end, effort, end_effort, _, effort_there, _ = (
            part[split] for part in self
        )
        middle = 0.5 * (begin + end)
        halves = _Lines.of(
            path,
            np.concatenate([segment, segment]),
            np.concatenate([begin, middle]),
            np.concatenate([middle, end]),
            np.concatenate([effort, effort_there]),
            np.concatenate([effort_there, end_effort]),
            period,
        )
        return _Lines(
            *(np.concatenate([old[~split], new]) for old, new in zip(self, halves, strict=True))
        )


def _first_effort(path: PathTorque, ends: np.ndarray) -> np.ndarray:
    """Return the torque before the first waypoint: that which holds an arm at rest."""
    zero = np.zeros((1, path.torque.model.n))
    moves = np.abs(path.points.velocity[0]).max() > _AT_REST
    if moves and len(ends):
        return ends[0, 0]
    return path.torque.at(path.points.position[:1], zero, zero)[0]
