# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo under one of the control laws, in this process: no ROS, no waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from robodyn_ros.arguments import checked_type
from robodyn_ros.control.command_pipeline import core_settings
from robodyn_ros.control.control_stack import continuous_joints, control_law, reference_limits
from robodyn_ros.control.core_binding import core, core_arm
from robodyn_ros.control.law import FOLLOWING, Mode
from robodyn_ros.control.model_torque import Algorithm, RigidBodyTorque
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import InvalidArgument, NoSolution, Phrase
from robodyn_ros.model import RobotModel, checked_model, position_unit
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.record import Record
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.spatial import FloatArray

Law = Literal[Mode, 'free']
# The modes of the dynamics node, and no torque at all.
LAWS: tuple[Law, ...] = get_args(Law)

# With a larger one an arm under a law that tracks has left its motion [rad or m].
LARGEST_ERROR = np.pi

# Beyond it the simulation has diverged [rad/s or m/s].
LARGEST_VELOCITY = 1e3


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedMotion(Record):
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
    effort_limits: bool = True,
    algorithm: Algorithm = 'newton_euler',
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
    effort_limits : bool
        Whether torques are clipped to the model's effort limits, as drives do.
    algorithm : str
        How the law computes the inverse dynamics, as the nodes' parameter: ``'compiled'`` is
        faster, after seconds of compiling, once for an arm.

    Raises
    ------
    InvalidArgument
        No such law.
        A gain is negative.
    NoSolution
        The arm left the motion by more than ``LARGEST_ERROR`` under a law that tracks, or went
        faster than ``LARGEST_VELOCITY``: it is stopped there.
    """
    checked_type('simulation', simulation, ArmSimulation, 'an ArmSimulation')
    checked_model(model)
    checked_type('motion', motion, MotionSamples, 'MotionSamples, as example_motion(model)')
    if law not in LAWS:
        raise InvalidArgument('law', law, ', '.join(LAWS))
    for name, gain in (('kp', kp), ('kd', kd)):
        if not 0 <= gain < np.inf:
            raise InvalidArgument(name, gain, 'zero or more')
    steps = max(1, round((motion.time[-1] - motion.time[0]) / simulation.time_step))
    time = np.arange(steps + 1) * simulation.time_step
    q, qd = _sampled(motion, motion.time[0] + time)
    # As the command pipeline: the law of the middle of a time step, for which its torque is held.
    half_way, half_change = (0.5 * np.diff(x, axis=0, append=x[-1:]) for x in (q, qd))
    mean = 2.0 * half_change / simulation.time_step
    asked = ReferenceState(q + half_way, qd + half_change, mean, np.zeros_like(q))
    # The node's own law: its friction, its shorter way round for joints that turn without end.
    settings = ControlSettings(
        mode='gravity_compensation' if law == 'free' else law,
        kp=(kp,),
        kd=(kd,),
        effort_limits=(np.inf,),  # they are applied below
    )
    law_of_node = control_law(model, settings, RigidBodyTorque.of(model, algorithm))
    tip = law_of_node.forward_kinematics, law_of_node.jacobian
    arm = core_arm(
        law_of_node.inverse_dynamics, law_of_node.friction, model.n, tip, coupling=model.coupling
    )
    arguments = arm, core_settings(law_of_node.settings, reference_limits(model))
    limits = known_effort_limits(model) if effort_limits else np.full(model.n, np.inf)
    simulation.reset(q[0])
    position, velocity, torque = np.zeros((3, steps + 1, model.n))
    for k in range(steps + 1):
        position[k], velocity[k] = simulation.position, simulation.velocity
        _check_on_the_way(model, law, time[k], q[k], position[k], velocity[k])
        if law != 'free':
            state = position[k] + half_way[k], velocity[k] + half_change[k]
            total = core.torque_parts(*arguments, *state, asked.row(k).rows).sum(axis=0)
            torque[k] = np.clip(total, -limits, limits)
        simulation.step(torque[k])
    return SimulatedMotion(time, q, position, velocity, torque)


def _check_on_the_way(
    model: RobotModel,
    law: Law,
    time: float,
    asked: FloatArray,
    position: FloatArray,
    velocity: FloatArray,
) -> None:
    """Raise NoSolution where an arm has left its motion."""
    error = np.abs(position - asked)
    # A continuous joint may take the shorter way round: a turn of its error is none.
    excess = error - LARGEST_ERROR - 2 * np.pi * continuous_joints(model)
    worst = int(np.argmax(excess))
    tracks = law in FOLLOWING
    if not (tracks and excess[worst] > 0 or np.abs(velocity).max() > LARGEST_VELOCITY):
        return
    unit = position_unit(model.dh.prismatic[worst])
    helps = (
        'computed_torque: feedforward is open loop, and nothing brings the arm back'
        if law == 'feedforward'
        else 'a slower motion within the effort limits, a shorter time step, or smaller gains'
    )
    raise NoSolution(
        f'{law} at {time:.3g} s',
        Phrase(
            f'joint {model.joint_names[worst]!r} is {error[worst]:.3g} {unit} '
            'from where it should be'
        ),
        helps,
    )


def _sampled(motion: MotionSamples, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return positions and velocities between the samples, by straight lines."""
    q, qd = (
        np.stack([np.interp(time, motion.time, column) for column in table.T], axis=1)
        for table in (motion.q, motion.qd)
    )
    return q, qd
