# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo under one of the control laws, in this process: no ROS, no waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.control.computed_torque import Mode
from robodyn_ros.control.control_stack import control_law
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.rigid_body import RigidBodyTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import InvalidNumber, UnknownOption
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.spatial import FloatArray

Law = Literal[Mode, 'free']
LAWS: tuple[Law, ...] = get_args(Law)
"""The modes of the dynamics node, and no torque at all."""


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedMotion(ArrayRecord):
    """
    What an arm did at N times.

    Attributes
    ----------
    time : array, shape (N,)
        [s]
    desired, position, velocity, torque : array, shape (N, n)
        [rad or m], [rad/s or m/s], [N m or N]; the torque is what was commanded at that time.
    """

    time: FloatArray
    desired: FloatArray
    position: FloatArray
    velocity: FloatArray
    torque: FloatArray

    @property
    def error(self) -> FloatArray:
        """Desired minus simulated position (N, n) [rad or m]."""
        return self.desired - self.position


def simulated_motion(
    simulation: ArmSimulation,
    model: RobotModel,
    motion: MotionSamples,
    law: Law = 'computed_torque',
    *,
    kp: float = 100.0,
    kd: float = 20.0,
) -> SimulatedMotion:
    """
    Return what an arm does that is asked for a motion, from rest at its first position.

    Parameters
    ----------
    simulation : ArmSimulation
        Where the arm is; its time step is that of control, too.
    model : RobotModel
        What the law knows of the arm; another one, and the law is wrong about it.
    motion : MotionSamples
    law : str
        One of ``LAWS``.
    kp, kd : float
        Gains of computed torque [1/s²], [1/s].

    Raises
    ------
    UnknownOption
        No such law.
    InvalidNumber
        A gain is negative.
    """
    if law not in LAWS:
        raise UnknownOption('law', law, ', '.join(LAWS))
    for name, gain in (('kp', kp), ('kd', kd)):
        if not 0 <= gain < np.inf:
            raise InvalidNumber(name, gain, 'zero or more')
    steps = max(1, round((motion.time[-1] - motion.time[0]) / simulation.time_step))
    time = np.arange(steps + 1) * simulation.time_step
    q, qd, qdd = _sampled(motion, motion.time[0] + time)
    asked = ReferenceState(q, qd, qdd, np.zeros_like(q))
    # The node's own law: its friction, its shorter way round for joints that turn without end.
    settings = ControlSettings(
        mode='gravity_compensation' if law == 'free' else law, kp=(kp,), kd=(kd,)
    )
    control = control_law(model, settings, RigidBodyTorque('newton_euler'))
    simulation.reset(asked.position[0])
    position, velocity, torque = np.zeros((3, steps + 1, model.n))
    for k in range(steps + 1):
        position[k], velocity[k] = simulation.position, simulation.velocity
        if law != 'free':
            torque[k] = control.torque(position[k], velocity[k], asked.row(k)).total
        simulation.step(torque[k])
    return SimulatedMotion(time, asked.position, position, velocity, torque)


def _sampled(motion: MotionSamples, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return positions, velocities and accelerations between the samples, by straight lines."""
    q, qd, qdd = (
        np.stack([np.interp(time, motion.time, column) for column in table.T], axis=1)
        for table in (motion.q, motion.qd, motion.qdd)
    )
    return q, qd, qdd
