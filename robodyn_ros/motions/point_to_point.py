# SPDX-License-Identifier: Apache-2.0
"""A point-to-point motion that any arm can make within its own limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_number
from robodyn_ros.dynamics import friction_torque, inverse_dynamics
from robodyn_ros.errors import Overload
from robodyn_ros.model import RobotModel, checked_model, force_unit
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

LARGEST_TURN = 1.0
"""A revolute joint travels so far at the most [rad]."""

LARGEST_SLIDE = 0.2
"""A prismatic joint travels so far at the most [m]."""

RANGE_FRACTION = 0.7
VELOCITY_FRACTION = 0.6
EFFORT_FRACTION = 0.8

SHORTEST_DURATION = 1.5
"""[s]"""

LONGEST_DURATION = 60.0
"""[s]"""

# Of the quintic from 0 to 1, orders 1 to 4.
_LARGEST_DERIVATIVES = np.array([15 / 8, 10 / np.sqrt(3), 60.0, 360.0])


@dataclass(frozen=True, eq=False, repr=False)
class PointToPoint(Record):
    """
    A motion from rest to rest along a quintic, all joints at the same time.

    Parameters
    ----------
    start, goal : array, shape (n,)
        [rad] or [m].
    duration : float
        [s]
    """

    start: FloatArray
    goal: FloatArray
    duration: float

    def position(self, time: ArrayLike) -> FloatArray:
        """Return the position (N, n) at times (N,) [s] after the start; before and after, rest."""
        s = self._phase(time)
        return self._along(s**3 * (10 - 15 * s + 6 * s**2), self.start)

    def velocity(self, time: ArrayLike) -> FloatArray:
        """Return the velocity (N, n) [rad/s or m/s] at times (N,) [s]."""
        s = self._phase(time)
        return self._along(30 * s**2 * (1 - s) ** 2 / self.duration)

    def acceleration(self, time: ArrayLike) -> FloatArray:
        """Return the acceleration (N, n) [rad/s² or m/s²] at times (N,) [s]."""
        s = self._phase(time)
        return self._along(60 * s * (1 - s) * (1 - 2 * s) / self.duration**2)

    def range_bound(self) -> FloatArray:
        """Return what positions stay within, array, shape (n, 2) [rad or m]."""
        return np.sort(np.stack([self.start, self.goal], axis=1), axis=1)

    def derivative_bounds(self) -> FloatArray:
        """Return bounds of the derivatives of order 1 to 4 of each joint, array, shape (4, n)."""
        orders = np.arange(1, 5)[:, None]
        return (
            _LARGEST_DERIVATIVES[:, None] * np.abs(self.goal - self.start) / self.duration**orders
        )

    def _phase(self, time: ArrayLike) -> FloatArray:
        return np.clip(np.asarray(time, dtype=float) / self.duration, 0.0, 1.0)

    def _along(self, fraction: FloatArray, offset: float | FloatArray = 0.0) -> FloatArray:
        return offset + fraction[:, None] * (self.goal - self.start)


def suitable_motion(model: RobotModel) -> PointToPoint:
    """
    Return a motion within the arm's limits of position, velocity and effort.

    It runs about the middle of each joint's range, neighbouring joints in opposite directions, and
    is as fast as the velocity and effort limits allow, but no faster than ``SHORTEST_DURATION``.
    A limit that the model does not have, or has as zero, does not bound it.

    Raises
    ------
    Overload
        A joint's effort limit is less than gravity and friction need along the motion.
    """
    lower, upper = checked_model(model).position_limits.T
    bounded = np.isfinite(lower) & np.isfinite(upper)
    middle = np.clip(0.0, lower, upper)
    middle[bounded] = (lower[bounded] + upper[bounded]) / 2
    reach = np.where(bounded, upper - lower, np.inf)
    travel = np.minimum(
        RANGE_FRACTION * reach, np.where(model.dh.prismatic, LARGEST_SLIDE, LARGEST_TURN)
    )
    displacement = travel / 2 * np.where(np.arange(model.n) % 2 == 0, 1.0, -1.0)
    start, goal = middle - displacement, middle + displacement
    # The quintic's largest velocity is 15/8 of the mean.
    velocity_limits = np.where(model.velocity_limits > 0, model.velocity_limits, np.inf)
    durations = 15 / 8 * travel / (VELOCITY_FRACTION * velocity_limits)
    duration = max(SHORTEST_DURATION, *durations.tolist())
    while True:
        motion = PointToPoint(start, goal, duration)
        excess = largest_torque(model, motion) - EFFORT_FRACTION * known_effort_limits(model)
        if np.all(excess <= 0):
            return motion
        duration *= 1.25
        if duration > LONGEST_DURATION:
            break
    joint = int(np.argmax(excess))
    raise Overload(
        f'joint {model.joint_names[joint]!r} effort limit',
        float(model.effort_limits[joint]),
        f'enough to carry the arm through the middle of its range, with '
        f'{1 - EFFORT_FRACTION:.0%} to spare',
        unit=force_unit(model.dh.prismatic[joint]),
    )


def example_motion(model: RobotModel, samples: int = 501) -> MotionSamples:
    """
    Return ``suitable_motion`` sampled at even times.

    Raises
    ------
    Overload
    """
    motion = suitable_motion(model)
    time = np.linspace(0.0, motion.duration, int(checked_number('samples', samples)))
    return MotionSamples.from_samples(
        time, motion.position(time), motion.velocity(time), motion.acceleration(time)
    )


def largest_torque(model: RobotModel, motion: PointToPoint) -> FloatArray:
    """Return the largest torque (n,) [N m or N] of each joint along the motion."""
    time = np.linspace(0.0, motion.duration, 101)
    velocity = motion.velocity(time)
    torque = inverse_dynamics(model, motion.position(time), velocity, motion.acceleration(time))
    return np.max(np.abs(torque + friction_torque(model, velocity)), axis=0)


def known_effort_limits(model: RobotModel) -> FloatArray:
    """Return the effort limits (n,) [N m or N], infinite where the URDF gives none or zero."""
    return np.where(model.effort_limits > 0, model.effort_limits, np.inf)
