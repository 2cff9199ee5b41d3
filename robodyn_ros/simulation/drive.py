# SPDX-License-Identifier: Apache-2.0
"""
What stands between a command and a joint's torque: rows of one formula.

    tau = kp (q_d - q) + kd (qd_d - qd) + tau_ff + g(q) + fraction * friction(qd),  clipped

================================== ==============================================================
drive                              what it has of the formula
================================== ==============================================================
torque source                      tau_ff
effort drive that compensates      tau_ff, g(q) with or without the payload, friction
servo with torque beside           kp, kd, tau_ff
servo that takes positions alone   kp, kd; its desired velocity is zero
================================== ==============================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_gains, checked_states
from robodyn_ros.dynamics import gravity_torque, smooth_friction_torque
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.record import Record
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.simulation.closed_loop import SimulatedMotion
from robodyn_ros.spatial import FloatArray

# Width of the sign by which a drive compensates friction: it measures the velocity [rad/s].
FRICTION_VELOCITY = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Drive(Record):
    """
    The drives of an arm; without more than a model, they are torque sources.

    Parameters
    ----------
    model : RobotModel
        What the drives know of the arm: their effort limits, and what they compensate. One with a
        payload: they were told of it.
    position_gain, velocity_gain : array-like, shape (n,) or one for all
        kp [N m/rad], kd [N m s/rad] or the same in metres; zero or more.
    compensates_gravity : bool
        Whether they add the model's gravity torque.
    compensates_friction : float
        The fraction of the model's friction torque that they add, by the measured velocity.

    Raises
    ------
    InvalidArgument, NonFiniteValue
        A gain or the fraction is negative or not finite, or there are neither one nor n gains.
    """

    model: RobotModel
    position_gain: Any = 0.0
    velocity_gain: Any = 0.0
    compensates_gravity: bool = False
    compensates_friction: float = 0.0

    def __post_init__(self) -> None:
        for name in ('position_gain', 'velocity_gain'):
            gains = checked_gains(name, getattr(self, name), self.model.n)
            object.__setattr__(self, name, gains)
        checked_gains('compensates_friction', self.compensates_friction, 1)
        super().__post_init__()

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        *,
        effort: FloatArray | float = 0.0,
        desired_position: FloatArray | None = None,
        desired_velocity: FloatArray | float = 0.0,
    ) -> FloatArray:
        """
        Return the torque that acts (n,) [N m or N] on an arm in a state (n,).

        Parameters
        ----------
        position, velocity : array, shape (n,)
            Of the arm [rad or m], [rad/s or m/s].
        effort : array, shape (n,), or float
            The command's torque [N m or N].
        desired_position, desired_velocity : array, shape (n,)
            The command's; no position: that of the arm.
        """
        desired = position if desired_position is None else desired_position
        torque = self.position_gain * (desired - position) + effort
        torque = torque + self.velocity_gain * (desired_velocity - velocity)
        if self.compensates_gravity:
            torque = torque + gravity_torque(self.model, position)
        if self.compensates_friction:
            friction = smooth_friction_torque(self.model, FRICTION_VELOCITY, velocity)
            torque = torque + self.compensates_friction * friction
        limits = known_effort_limits(self.model)
        return np.clip(torque, -limits, limits)


def driven_motion(
    simulation: ArmSimulation,
    drive: Drive,
    desired: ArrayLike,
    *,
    desired_position: ArrayLike | None = None,
    desired_velocity: ArrayLike | None = None,
    effort: ArrayLike | None = None,
) -> SimulatedMotion:
    """
    Return what an arm does whose drives get a row of commands at each time step.

    Parameters
    ----------
    simulation : ArmSimulation
        It starts at rest at the first desired position.
    drive : Drive
    desired : array-like, shape (N, n)
        Where the arm should be [rad or m]; errors are relative to it.
    desired_position, desired_velocity, effort : array-like, shape (N, n), optional
        What is commanded; not given: ``desired``, zero and zero.

    Raises
    ------
    InvalidArgument, NonFiniteValue
        Of an array.
    NoSolution
        The arm goes faster than MuJoCo can count.
    """
    zero: FloatArray = np.zeros(np.shape(desired))
    given: dict[str, ArrayLike] = {
        'desired': desired,
        'desired_position': desired if desired_position is None else desired_position,
        'desired_velocity': zero if desired_velocity is None else desired_velocity,
        'effort': zero if effort is None else effort,
    }
    wanted, *commands = checked_states(simulation.n, **given)
    shape = wanted.shape
    position, velocity, torque = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    simulation.reset(wanted[0])
    for k in range(len(wanted)):
        position[k], velocity[k] = simulation.position, simulation.velocity
        at, speed, added = (command[k] for command in commands)
        torque[k] = drive.torque(
            position[k], velocity[k], effort=added, desired_position=at, desired_velocity=speed
        )
        simulation.step(torque[k])
    time = simulation.time_step * np.arange(len(wanted), dtype=float)
    return SimulatedMotion(time, wanted, position, velocity, torque)
