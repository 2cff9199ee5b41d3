# SPDX-License-Identifier: Apache-2.0
"""
The fastest motion to a goal where no path is given: Ruckig's, slowed to what the drives carry.

References
----------
Berscheid and Kröger 2021, Jerk-limited Real-time Trajectory Generation with Arbitrary Target
States, Robotics: Science and Systems XVII.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.timed_motion import (
    ROUNDING,
    Course,
    TimingLimits,
    check_positions,
)
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.errors import InvalidArgument, NoBackend, NoSolution, Phrase
from robodyn_ros.model import force_unit
from robodyn_ros.spatial import FloatArray

_PARTS_OF_SPEED = (1.0, 0.8, 0.6, 0.4, 0.2)  # that are tried, where torque is beyond its limit
_PARTS = 50  # at least, even in time; between two knots torque is checked at nine places
_SLOWER = 1.25  # times the time, until torques suffice
_SLOWEST = 1e3
_PRECISION = 1e-3  # of the time scale
_SHORTEST = 1e-6  # between two knots [s]


def motion_to_goal(
    torque: ReferenceTorque,
    ends: FloatArray,
    velocities: FloatArray,
    limits: TimingLimits,
) -> Waypoints:
    """
    Return the fastest motion from a state to a goal, all joints there at the same time.

    Where a torque would be beyond its limit, accelerations and jerks are reduced as a longer time
    reduces them; velocities, too, where that is faster, but none beneath that of an end.

    Parameters
    ----------
    torque : ReferenceTorque
        Of the arm with what it carries.
    ends : array, shape (2, n)
        Start and goal [rad or m].
    velocities : array, shape (2, n)
        There [rad/s or m/s].
    limits : TimingLimits
        Velocities and accelerations have to be finite.

    Raises
    ------
    NoBackend
        Ruckig cannot be imported.
    InvalidArgument
        Limits or states that Ruckig refuses, or a position beyond its limits on the way.
    NoSolution
        A torque is beyond its limit however slow the motion is.
    """
    for name, values in (
        ('velocity_limits', limits.velocity),
        ('acceleration_limits', limits.acceleration),
    ):
        if not np.isfinite(values).all():
            raise InvalidArgument(
                f'argument {name}', values.tolist(), "finite numbers, with corners='goal'"
            )
    fastest = np.abs(velocities).max(axis=0)

    def motion(part: float, scale: float) -> Waypoints:
        jerks = np.full(len(fastest), np.inf) if limits.jerk is None else limits.jerk / scale**3
        speeds = np.maximum(part * limits.velocity, fastest)
        return _by_ruckig(ends, velocities, speeds, limits.acceleration / scale**2, jerks)

    best: Waypoints | None = None
    refusal: NoSolution | None = None
    for part in _PARTS_OF_SPEED:
        try:
            best = _slow_enough(torque, limits, partial(motion, part), best)
        except NoSolution as error:  # friction at that speed may be beyond a limit
            refusal = refusal or error
    if best is None:
        assert refusal is not None
        raise refusal
    q = np.stack(best.polynomials.extremes(0), axis=1)
    check_positions(torque.model, q, lambda k: f'at {best.time[k]:.3f} s on the way')
    return best


def _slow_enough(
    torque: ReferenceTorque,
    limits: TimingLimits,
    motion: Callable[[float], Waypoints],
    other: Waypoints | None = None,
) -> Waypoints:
    """
    Return the motion at the smallest scale at which torques keep their limits, or a faster one.

    Raises
    ------
    NoSolution
    """

    def share(found: Waypoints) -> FloatArray:
        return Course(torque, found, limits).shares()['effort'].max(axis=0)

    low = high = 1.0
    found = motion(high)
    if other is not None and found.duration >= other.duration:
        return other
    while (shares := share(found)).max() > 1.0 + ROUNDING:
        low, high = high, _SLOWER * high
        if high > _SLOWEST:
            j = int(shares.argmax())
            unit = force_unit(torque.model.dh.prismatic[j])
            raise NoSolution(
                f'joint {torque.model.joint_names[j]!r} torque to the goal',
                float(shares[j] * limits.effort[j]),
                f'at most {limits.effort[j]:.6g} {unit}, however slow',
                unit=unit,
            )
        found = motion(high)
        if other is not None and motion(low).duration >= other.duration:
            return other
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        between = motion(middle)
        if share(between).max() <= 1.0 + ROUNDING:
            high, found = middle, between
        else:
            low = middle
    return found if other is None or found.duration < other.duration else other


def _by_ruckig(
    ends: FloatArray,
    velocities: FloatArray,
    velocity_limits: FloatArray,
    acceleration_limits: FloatArray,
    jerk_limits: FloatArray,
) -> Waypoints:
    """Return Ruckig's motion, with a knot wherever a joint's jerk changes: cubics between."""
    ruckig = _imported_ruckig()
    n = ends.shape[1]
    given = ruckig.InputParameter(n)
    given.current_position, given.target_position = ends.tolist()
    given.current_velocity, given.target_velocity = velocities.tolist()
    given.max_velocity = velocity_limits.tolist()
    given.max_acceleration = acceleration_limits.tolist()
    given.max_jerk = jerk_limits.tolist()
    # On a straight line, where it can: joints with a shorter way need not accelerate in full.
    given.synchronization = ruckig.Synchronization.Phase
    found = ruckig.Trajectory(n)
    try:
        refusal = ruckig.Ruckig(n).calculate(given, found).name
    except ruckig.RuckigError as error:
        refusal = str(error).strip().partition('\n')[0]
    except ValueError:  # its enum lacks the result of a duration beyond its limits
        refusal = 'no motion within its numerical limits'
    if refusal != ruckig.Result.Working.name:
        raise InvalidArgument(
            'argument waypoints',
            Phrase(f'Ruckig: {refusal}'),
            'states and limits that Ruckig can join',
        )
    times = [np.linspace(0.0, found.duration, _PARTS + 1)]
    for profile in found.profiles[0]:
        times.append(np.cumsum([*profile.brake.t, *profile.t]))
    time = np.unique(np.clip(np.concatenate(times), 0.0, found.duration))[:-1]
    apart = np.diff(time, append=found.duration) > _SHORTEST
    apart[0] = True
    time = np.append(time[apart], found.duration)
    states = [found.at_time(float(each)) for each in time]
    return Waypoints(time, np.array([s[0] for s in states]), np.array([s[1] for s in states]))


def _imported_ruckig() -> Any:
    try:
        import ruckig
    except ImportError as error:
        raise NoBackend('ruckig', Phrase(str(error)), 'pip install ruckig') from error
    return ruckig
