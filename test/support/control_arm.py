# SPDX-License-Identifier: Apache-2.0
"""Arms for the control tests: one of two joints, to be checked by hand, and random ones."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from robots import random_chain

import robodyn_ros as rd
from robodyn_ros.control.command_pipeline import CommandPipeline, ControlLaw
from robodyn_ros.control.core_binding import core, core_arm
from robodyn_ros.control.joint_state_buffer import ElapsedTime, JointStateBuffer
from robodyn_ros.control.law import (
    IMPEDANCES,
    MODES,
    Friction,
    InverseDynamics,
    TorqueParts,
)
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.settings import ArmSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.motions.possible_positions import PossiblePositions

NAMES = ('shoulder', 'elbow')
MASS = np.array([2.0, 0.5])
WEIGHT = np.array([20.0, 4.0])
VISCOUS = np.array([0.3, 0.1])
POSITION_LIMITS = np.array([[-2.0, 2.0], [-np.inf, np.inf]])
CONTINUOUS = np.array([False, True])
Q = np.array([0.1, 0.2])
GRAVITY = WEIGHT * np.cos(Q)
NO_RATE_LIMIT = {'torque_rate_limit': np.array([np.inf, np.inf])}
WATCHDOG_PERIOD = 0.01  # s
# Whose formulas are in reference_law; those of an impedance are in test_impedance.
STIFF_MODES = tuple(mode for mode in MODES if mode not in IMPEDANCES)


def inverse_dynamics(q, qd, qdd):
    return MASS * qdd + 0.4 * qd * qd + WEIGHT * np.cos(q)


def friction(qd, direction, rigid_torque=None):
    return VISCOUS * qd


@dataclass(frozen=True)
class Kind:
    """
    What an arm is, whatever its settings.

    Parameters
    ----------
    names : tuple of n str
    under : callable
        Returns the inverse dynamics under a load, 0 to 3.
    friction : callable
    position_limits : array, shape (n, 2)
        [rad] or [m]
    velocity_limits, effort_limits : array, shape (n,)
        With the last ones it can be carried under every load.
    continuous : array of bool, shape (n,)
    kp, kd : array, shape (n,)
        [1/s²], [1/s]
    prismatic : array of bool, shape (n,), or bool
    """

    names: tuple[str, ...]
    under: Callable[[float], InverseDynamics]
    friction: Friction
    position_limits: np.ndarray
    velocity_limits: np.ndarray
    effort_limits: np.ndarray
    continuous: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    prismatic: np.ndarray | bool = False

    @property
    def n(self):
        return len(self.names)

    @property
    def possible(self):
        prismatic = np.broadcast_to(self.prismatic, self.n)
        return PossiblePositions(self.names, self.position_limits, prismatic)

    def law(self, mode='computed_torque', **changes):
        return ControlLaw(self.under(0.0), self.friction, self.settings(mode=mode, **changes))

    def settings(self, **changes):
        settings = {
            'mode': 'computed_torque',
            'kp': self.kp,
            'kd': self.kd,
            'terms_gravity_factor': np.ones(self.n),
            'soft_limit_width': 0.1,
            'impedance_stiffness': np.zeros(self.n),
            'impedance_nullspace_stiffness': np.zeros(self.n),
            'effort_limits': self.effort_limits,
            'torque_rate_limit': np.full(self.n, 1000.0),
            'braking_acceleration': np.full(self.n, np.inf),
            'max_following_error': np.inf,
            'damping': 0.0,
            'observer_gain': np.full(self.n, 30.0),
        }
        return ArmSettings(**{**settings, **changes})

    @property
    def reference_limits(self):
        return ReferenceLimits(
            self.names,
            self.position_limits,
            self.velocity_limits,
            self.continuous,
            self.possible,
        )


def _two_joints_under(load):
    if load == 0.0:
        return inverse_dynamics
    return lambda q, qd, qdd: load * inverse_dynamics(q, qd, qdd) + 0.1 * q**3  # may overflow


TWO_JOINTS = Kind(
    NAMES,
    _two_joints_under,
    friction,
    POSITION_LIMITS,
    velocity_limits=np.array([20.0, 20.0]),
    effort_limits=np.array([60.0, 30.0]),
    continuous=CONTINUOUS,
    kp=np.array([100.0, 64.0]),
    kd=np.array([20.0, 16.0]),
)


@lru_cache(maxsize=64)
def random_kind(seed, n, algorithm='newton_euler'):
    """
    Return a random arm of n joints, some without position limits, with all that friction has.

    None where it cannot be computed by an algorithm here.
    """
    generator = np.random.default_rng(seed)
    text = random_chain(generator, n)
    model = rd.RobotModel.from_urdf(text, base_link='base', tip_link='tip')
    continuous = ~model.dh.prismatic & (generator.random(n) < 0.5)
    model = replace(
        model,
        viscous_friction=generator.uniform(0.0, 1.0, n),
        coulomb_friction=generator.uniform(0.0, 2.0, n),
        effort_offset=generator.uniform(-1.0, 1.0, n),
        friction_curve=generator.uniform(-1.0, 1.0, (n, 2)),
        load_friction=generator.uniform(0.0, 0.1, n),
    )
    torque = RigidBodyTorque.of(model, algorithm)
    if torque.algorithm != algorithm:
        return None
    states = generator.uniform(-4.0, 4.0, (1000, n))
    loaded = model.with_payload(rd.Payload(3.0, (0.1, 0.0, 0.0)))
    return Kind(
        model.joint_names,
        cache(lambda load: torque.under(model.with_payload(rd.Payload(load, (0.1, 0.0, 0.0))))),
        torque.friction(model),
        np.where(continuous[:, None], [-np.inf, np.inf], generator.uniform(1.0, 3.0) * _SIDES),
        velocity_limits=np.full(n, 20.0),
        effort_limits=1.5 * np.abs(rd.gravity_torque(loaded, states)).max(axis=0) + 10.0,
        continuous=continuous,
        kp=generator.uniform(50.0, 150.0, n),
        kd=generator.uniform(10.0, 25.0, n),
    )


_SIDES = np.array([-1.0, 1.0])


def control_law(mode='computed_torque', **changes):
    return TWO_JOINTS.law(mode, **changes)


def with_settings(law, **changes):
    return replace(law, settings=replace(law.settings, **changes))


def terms(inertial=True, coriolis=True, gravity=True, friction=True):
    """Return the settings of the terms."""
    return {
        'terms_inertial': inertial,
        'terms_coriolis': coriolis,
        'terms_gravity': gravity,
        'terms_friction': friction,
    }


def torque_parts(law, continuous=CONTINUOUS):
    """Return the core's parts of a torque, as a function of state and reference."""
    tip, n = (law.forward_kinematics, law.jacobian), len(law.settings.kp)
    arm = core_arm(law.inverse_dynamics, law.friction, n, tip, coupling=law.coupling)
    none = np.full(2 * n, np.inf)
    settings = core.Settings(law.settings, none, none[:n], np.asarray(continuous, dtype=float))

    def parts(q, qd, reference):
        rows = None if reference is None else reference.rows
        found = core.torque_parts(arm, settings, q, qd, rows)
        return None if found is None else TorqueParts(*found)

    return parts


def at_middle(pipeline, q, qd, reference, period, before=None):
    """
    Return state and reference half a period [s] later, for which the law's torque is computed.

    Along the motion that is followed, with the errors of now and the period's mean acceleration;
    along that of before the cycle, if it was dropped when a law that needs none had come in.
    """
    followed = pipeline._core.followed or before
    if reference is None or followed is None or not period > 0.0:
        return q, qd, reference
    after = ReferenceState(*followed.sample(pipeline.state.time + period))
    way, change = (
        0.5 * (after.position - reference.position),
        0.5 * (after.velocity - reference.velocity),
    )
    middle = ReferenceState(
        reference.position + way,
        reference.velocity + change,
        2.0 * change / period,
        0.5 * (reference.effort + after.effort),
    )
    return q + way, qd + change, middle


def to(position, time=1.0, names=NAMES, effort=()):
    """Return a trajectory of one point, from wherever the arm is."""
    return Trajectory.from_points(names, [time], [position], [()], [()], [effort])


class Arm:
    """A command pipeline with its buffer and a steady clock that the test turns."""

    def __init__(
        self,
        mode='computed_torque',
        simulated_time=None,
        kind=TWO_JOINTS,
        **settings,
    ):
        self.now, self.kind = 100.0, kind
        law = kind.law(mode, **settings)
        self.buffer = JointStateBuffer(
            kind.names,
            law.settings.state_timeout,
            kind.continuous,
            kind.possible,
            ElapsedTime(simulated_time),
        )
        self.pipeline = CommandPipeline(law, self.buffer, kind.reference_limits)

    def change(self, **changes):
        self.pipeline.settings = replace(self.pipeline.settings, **changes)

    def break_model(self, is_broken):
        """Make the model give no finite torques, or heal it again."""
        self.is_broken = is_broken
        if not isinstance(self.pipeline.law.inverse_dynamics, types.MethodType):
            self.pipeline.change_load(self._inverse_dynamics)

    def _inverse_dynamics(self, q, qd, qdd):
        return np.full_like(q, np.nan) if self.is_broken else inverse_dynamics(q, qd, qdd)

    def receive(self, position, velocity=None, *, stamp=None, names=None, age=0.0):
        """Take in one message and return the command it causes."""
        names = self.kind.names if names is None else names
        self.buffer.receive(
            names,
            position,
            np.zeros(len(names)) if velocity is None else velocity,
            received=self.now,
            stamp=self.now if stamp is None else stamp,
            age=age,
        )
        if not self.buffer.is_complete:
            return None
        return self.pipeline.step(self.buffer.take(), self.now)

    def run(self, duration, position=(0.1, 0.2), velocity=None, period=0.001):
        """Return the commands of regular messages over a time [s], which end at a position."""
        speed = np.zeros(self.kind.n) if velocity is None else np.asarray(velocity, dtype=float)
        speed = np.nan_to_num(speed) if len(speed) else np.zeros(self.kind.n)
        count, commands = round(duration / period), []
        for i in range(count):
            self.now += period
            left = (count - 1 - i) * period * speed
            commands.append(self.receive(np.asarray(position) - left, velocity))
        return commands

    def watch(self, duration):
        """Return the watchdog's commands over a time [s] without joint states."""
        commands = []
        for _ in range(round(duration / WATCHDOG_PERIOD)):
            self.now += WATCHDOG_PERIOD
            commands.append(self.pipeline.watchdog(self.now))
        return commands

    def run_elsewhere(self, duration, position=(0.1, 0.2), velocity=None):
        """Return the same where the arm came unseen: its velocities are not held against that."""
        self.now += 0.04
        return self.run(duration, position, velocity)


def enabled(*args, **kwargs):
    """Return an arm whose command pipeline is enabled."""
    arm = Arm(*args, **kwargs)
    arm.pipeline.enable(arm.now)
    return arm


def following(*args, goal=(0.5, 0.2), time=1.0, settle=0.01, after=0.0, **kwargs):
    """Return an arm that is on its way to a goal, some time [s] after it began."""
    arm = enabled(*args, **kwargs)
    arm.run(settle)
    arm.pipeline.follow(to(goal, time))
    arm.run(after)
    return arm
