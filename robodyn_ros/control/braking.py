# SPDX-License-Identifier: Apache-2.0
"""The motion that brings a moving arm to rest, inside what its drives can do."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.computed_torque import ControlLaw
from robodyn_ros.control.reference import Reference, ReferenceState

REST_SPEED = 0.01
"""A joint that is slower is at rest [rad/s] or [m/s]."""

STILL = 0.0005
"""Slower than this a torque that stays as it is may be left behind [rad/s] or [m/s]."""

SHORTEST_BRAKING, LONGEST_BRAKING = 0.1, 2.0
"""Bounds of the time that braking takes [s]: a stop is to be over within four seconds."""

_RESERVE = 0.8  # fraction of the effort limits that braking may take: the rest is the feedback's
_RATE_RESERVE = 0.5
_PEAK = 1.5  # largest deceleration of the quintic, in those of a constant one of that duration


def braking_reference(
    law: ControlLaw,
    position: np.ndarray,
    velocity: np.ndarray,
    now: float,
    *,
    effort_limits: np.ndarray,
    rate_limits: np.ndarray,
    braking_acceleration: np.ndarray,
    position_limits: np.ndarray,
) -> Reference:
    """
    Return the reference that leads from a state to rest without turning back, and holds there.

    All joints decelerate in one time, so that the arm stays on its path: the shortest in which no
    joint exceeds its braking acceleration, nor, at this state, four fifths of its effort limit and
    half of its rate limit.

    Parameters
    ----------
    law : ControlLaw
        Knows the arm.
    position, velocity : array, shape (n,)
        Where the motion begins [rad, rad/s] or the same in metres.
    now : float
        On the clock that references are sampled with [s].
    effort_limits, rate_limits : array, shape (n,)
        [N m] or [N], and that per second.
    braking_acceleration : array, shape (n,)
        Largest deceleration [rad/s²] or [m/s²]; infinite: what the effort limits allow.
    position_limits : array, shape (n, 2)
        [rad] or [m]; the motion ends inside, if it begins there.
    """
    duration = braking_time(
        law, position, velocity, effort_limits, rate_limits, braking_acceleration
    )
    zero = np.zeros_like(position)
    moving = ReferenceState(position, velocity, zero, zero)
    return Reference.stopping(moving, now, duration, position_limits)


def braking_time(
    law: ControlLaw,
    position: np.ndarray,
    velocity: np.ndarray,
    effort_limits: np.ndarray,
    rate_limits: np.ndarray,
    braking_acceleration: np.ndarray,
) -> float:
    """Return the time [s] that ``braking_reference`` takes."""
    bias, inertial = law.bias_and_inertial_torque(position, velocity)
    # tau = bias - rate M qd, with rate [1/s]: how fast may all velocities fall together?
    limits = _RESERVE * effort_limits
    with np.errstate(divide='ignore', invalid='ignore'):
        by_effort = np.where(inertial > 0.0, limits + bias, limits - bias) / np.abs(inertial)
        by_acceleration = braking_acceleration / np.abs(velocity)
    by_effort[inertial == 0.0] = np.inf
    by_acceleration[velocity == 0.0] = np.inf
    rate = float(min(by_effort.min(), by_acceleration.min()))
    if not rate > 0.0:  # gravity alone takes all that there is
        return LONGEST_BRAKING
    # The deceleration rises at 6 |qd| / T² at first.
    by_rate = float(np.sqrt((6.0 * np.abs(inertial) / (_RATE_RESERVE * rate_limits)).max()))
    return min(max(_PEAK / rate, by_rate, SHORTEST_BRAKING), LONGEST_BRAKING)


def is_at_rest(velocity: np.ndarray, speed: float = REST_SPEED) -> bool:
    """Return whether all joints are slower than a speed; unknown velocities are not."""
    return all(abs(each) < speed for each in velocity.tolist())
