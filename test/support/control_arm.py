# SPDX-License-Identifier: Apache-2.0
"""A two-joint arm for the control tests: simple enough to be checked by hand."""

import types
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from robodyn_ros.control.command_pipeline import CommandPipeline
from robodyn_ros.control.compiled_step import CompiledStep
from robodyn_ros.control.computed_torque import ControlLaw, Terms
from robodyn_ros.control.joint_state_buffer import JointStateBuffer
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.possible_positions import PossiblePositions
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.stamp_clock import ElapsedTime
from robodyn_ros.errors import NoBackend

NAMES = ('shoulder', 'elbow')
MASS = np.array([2.0, 0.5])
WEIGHT = np.array([20.0, 4.0])
VISCOUS = np.array([0.3, 0.1])
POSITION_LIMITS = np.array([[-2.0, 2.0], [-np.inf, np.inf]])
POSSIBLE = PossiblePositions(NAMES, POSITION_LIMITS, np.zeros(2, dtype=bool))


def inverse_dynamics(q, qd, qdd):
    return MASS * qdd + 0.4 * qd * qd + WEIGHT * np.cos(q)


def friction_torque(width, qd, rigid_torque=None):
    return VISCOUS * qd


def control_law(mode='computed_torque', limit_width=0.1, **terms):
    return ControlLaw(
        inverse_dynamics,
        friction_torque,
        mode,
        Terms(**terms),
        kp=np.array([100.0, 64.0]),
        kd=np.array([20.0, 16.0]),
        continuous=np.array([False, True]),
        limit_width=limit_width,
    )


def reference_limits(max_reference_step=0.1, settle_time=0.2):
    return ReferenceLimits(
        NAMES,
        POSITION_LIMITS,
        np.array([20.0, 20.0]),
        max_reference_step,
        settle_time,
        np.zeros(2, dtype=bool),
        POSSIBLE,
    )


def safety_settings(**changes):
    settings = {
        'effort_limits': np.array([60.0, 30.0]),
        'torque_rate_limits': np.array([1000.0, 1000.0]),
        'ramp_time': 0.5,
        'state_timeout': 0.1,
        'on_stale_state': 'hold_gravity',
        'stale_hold_time': 1.0,
        'on_stop': 'hold_gravity',
    }
    return SafetySettings(**{**settings, **changes})


@cache
def compiled_step():
    """Return the machine code of the pipeline's numeric step, or skip the test."""
    try:
        return CompiledStep.of(control_law(), np.array([60.0, 30.0]), POSITION_LIMITS)
    except NoBackend as error:
        pytest.skip(str(error))


class Arm:
    """A command pipeline with its buffer and a steady clock that the test turns."""

    def __init__(
        self,
        mode='computed_torque',
        terms=None,
        limit_width=0.1,
        compiled=None,
        simulated_time=None,
        **settings,
    ):
        self.now = 100.0
        safety = safety_settings(**settings)
        self.buffer = JointStateBuffer(
            NAMES,
            safety.state_timeout,
            np.array([False, True]),
            POSSIBLE,
            ElapsedTime(simulated_time),
        )
        self.pipeline = CommandPipeline(
            control_law(mode, limit_width, **(terms or {})),
            self.buffer,
            safety,
            reference_limits(),
            compiled=compiled,
        )

    def break_model(self, is_broken):
        """Make the model give no finite torques, or heal it again."""
        self.is_broken = is_broken
        if isinstance(self.pipeline.law.inverse_dynamics, types.MethodType):
            return
        self.pipeline.change_model(
            replace(self.pipeline.law, inverse_dynamics=self._inverse_dynamics)
        )

    def _inverse_dynamics(self, q, qd, qdd):
        return np.full_like(q, np.nan) if self.is_broken else inverse_dynamics(q, qd, qdd)

    def receive(self, position, velocity=(0.0, 0.0), *, stamp=None, names=NAMES, age=0.0):
        """Take in one message and return the command it causes."""
        self.buffer.receive(
            names,
            position,
            velocity,
            received=self.now,
            stamp=self.now if stamp is None else stamp,
            age=age,
        )
        if not self.buffer.is_complete:
            return None
        return self.pipeline.step(self.buffer.take(), self.now)

    def run(self, duration, position=(0.1, 0.2), velocity=(0.0, 0.0), period=0.001):
        """Return the commands of regular messages over a time [s]."""
        commands = []
        for _ in range(round(duration / period)):
            self.now += period
            commands.append(self.receive(position, velocity))
        return commands


def enabled(*args, **kwargs):
    """Return an arm whose command pipeline is enabled."""
    arm = Arm(*args, **kwargs)
    arm.pipeline.enable(arm.now)
    return arm
