# SPDX-License-Identifier: Apache-2.0
"""What follows the series on request: slow strokes that show friction, and poses to stand in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits
from robodyn_ros.motions.point_to_point import PointToPoint
from robodyn_ros.spatial import FloatArray

SLOW_SPEEDS = (0.02, 0.06, 0.2)
"""Largest speeds of the slow strokes [rad/s or m/s], each there and back."""

LONGEST_STROKE = 10.0
"""[s]"""

DWELL = 1.0
"""In each pose [s]."""

_TRAVEL_FRACTION = 0.5
_MEAN_TO_LARGEST = 15 / 8
_LARGEST_ACCELERATION = 10 / np.sqrt(3)
_SHRINKINGS = 6
_TRIES = 200

Allowed = Callable[[PointToPoint], bool]
"""Whether a motion keeps all limits."""


@dataclass(frozen=True, eq=False, repr=False)
class Rest(ArrayRecord):
    """
    Standing still.

    Attributes
    ----------
    start : array, shape (n,)
        Where [rad or m].
    duration : float
        [s]
    """

    start: FloatArray
    duration: float

    @property
    def goal(self) -> FloatArray:
        """Where it ends: where it began."""
        return self.start

    def position(self, time: FloatArray) -> FloatArray:
        """Return the positions (N, n)."""
        return np.tile(self.start, (len(time), 1))

    def velocity(self, time: FloatArray) -> FloatArray:
        """Return the velocities (N, n): zero."""
        return np.zeros((len(time), len(self.start)))

    def acceleration(self, time: FloatArray) -> FloatArray:
        """Return the accelerations (N, n): zero."""
        return self.velocity(time)


def slow_strokes(start: FloatArray, limits: MotionLimits, allowed: Allowed) -> list[PointToPoint]:
    """
    Return strokes from a position and back to it, at each of ``SLOW_SPEEDS``.

    All joints move at the same time, neighbours in opposite directions, each towards the middle of
    its range. A quintic passes all speeds up to its largest one.

    Parameters
    ----------
    start : array, shape (n,)
    limits : MotionLimits
    allowed : callable
        Strokes are made shorter until it agrees, and left out where it never does.
    """
    middle = limits.position.mean(axis=1)
    inwards = np.where(start <= middle, 1.0, -1.0)
    room = np.maximum(limits.position[:, 1] - start, start - limits.position[:, 0])
    result: list[PointToPoint] = []
    for speed in SLOW_SPEEDS:
        speeds = np.minimum(speed, limits.velocity)
        travel = np.minimum(speeds * LONGEST_STROKE / _MEAN_TO_LARGEST, _TRAVEL_FRACTION * room)
        for shrinking in range(_SHRINKINGS):
            goal = start + inwards * travel * 0.5**shrinking
            duration = float(max(0.5, (_MEAN_TO_LARGEST * np.abs(goal - start) / speeds).max()))
            there, back = (PointToPoint(a, b, duration) for a, b in ((start, goal), (goal, start)))
            if allowed(there) and allowed(back):
                result += [there, back]
                break
    return result


def static_poses(
    start: FloatArray,
    count: int,
    limits: MotionLimits,
    allowed: Allowed,
    generator: np.random.Generator,
) -> list[PointToPoint]:
    """
    Return motions from a position through random poses and back to it.

    Parameters
    ----------
    start : array, shape (n,)
    count : int
        Of poses; fewer are visited where limits allow no more.
    limits : MotionLimits
    allowed : callable
        Whether a motion keeps all limits.
    generator : numpy.random.Generator
    """
    result: list[PointToPoint] = []
    here = start
    for _ in range(_TRIES):
        if len(result) >= count:
            break
        goal = generator.uniform(limits.position[:, 0], limits.position[:, 1])
        there, back = _unhurried(here, goal, limits), _unhurried(goal, start, limits)
        if allowed(there) and allowed(back):
            result.append(there)
            here = goal
    if result:
        result.append(_unhurried(here, start, limits))
    return result


def with_rests(motions: Sequence[PointToPoint], dwell: float) -> list[PointToPoint | Rest]:
    """Return motions with a rest after each."""
    return [part for motion in motions for part in (motion, Rest(motion.goal, dwell))]


def _unhurried(start: FloatArray, goal: FloatArray, limits: MotionLimits) -> PointToPoint:
    """Return the motion between two positions at half the limits."""
    travel = np.abs(goal - start)
    slowest = (_MEAN_TO_LARGEST * travel / (0.5 * limits.velocity)).max()
    growth = np.sqrt((_LARGEST_ACCELERATION * travel / (0.5 * limits.acceleration)).max())
    return PointToPoint(start, goal, float(max(0.5, slowest, growth)))
