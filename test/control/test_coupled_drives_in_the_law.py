# SPDX-License-Identifier: Apache-2.0
"""Drives that turn with several joints, in torques, observer and ranges: closed forms."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from compiled_arms import coupled_arm
from compilers import needs_compiler
from control_arm import torque_parts

from robodyn_ros import inverse_dynamics
from robodyn_ros.control.contact import MomentumObserver
from robodyn_ros.control.control_stack import control_law
from robodyn_ros.control.law import Terms
from robodyn_ros.control.model_torque import ReferenceTorque, RigidBodyTorque
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.timed_motion import effort_range
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.dynamics.friction import friction_of

SEED = 3


def law_of(arm, algorithm, **settings):
    given = ControlSettings(kp=(1.0,), kd=(1.0,), effort_limits=(100.0,), **settings)
    return control_law(arm, given, RigidBodyTorque.of(arm, algorithm))


@pytest.mark.parametrize(
    'algorithm', ['newton_euler', pytest.param('compiled', marks=needs_compiler)]
)
def test_a_coupled_drive_is_commanded_at_the_desired_velocity(algorithm):
    arm, generator = coupled_arm(SEED), np.random.default_rng(0)
    law = law_of(arm, algorithm, mode='feedforward', friction_velocity=0.2)
    q, qd, qdd = generator.uniform(-1, 1, (3, arm.n))
    still = np.zeros(arm.n)
    found = torque_parts(law, still)(q, still, ReferenceState(q, qd, qdd, still))
    rigid = inverse_dynamics(arm, q, qd, qdd)
    expected = smooth_friction_torque(arm, 0.2, qd, rigid)
    np.testing.assert_allclose(found.friction, expected, atol=1e-9)
    np.testing.assert_allclose(found.total - found.friction, rigid, atol=1e-9)


def test_its_friction_is_compensated_beyond_its_own_dead_zone():
    arm, dead_zone = coupled_arm(SEED), 0.1
    law = law_of(
        arm,
        'newton_euler',
        mode='gravity_compensation',
        friction_compensation=0.5,
        friction_dead_zone=dead_zone,
    )
    # Its joints are within the dead zone, it is beyond.
    qd, still = np.zeros(arm.n), np.zeros(arm.n)
    qd[-2:] = -0.09, 0.09
    found = torque_parts(law, still)(still, qd, None)
    rate = arm.coupling @ qd
    direction = np.concatenate([0.0 * qd, np.sign(rate) * np.tanh(rate / dead_zone - 1.0)])
    direction[arm.n] = 0.0
    load = inverse_dynamics(arm, still, still, still)
    expected = 0.5 * friction_of(arm, qd, direction, load)
    assert rate[1] == pytest.approx(0.18)
    np.testing.assert_allclose(found.friction, expected, atol=1e-12)


@pytest.mark.parametrize('presliding', [0.0, 1e-3])
def test_the_observer_takes_its_friction_for_no_contact(presliding):
    arm, width, step = coupled_arm(SEED), 0.02, 1e-3
    observers = [
        MomentumObserver(
            partial(inverse_dynamics, each),
            partial(friction_of, each),
            np.full(arm.n, 30.0),
            is_held=True,
            friction_velocity=width,
            presliding=presliding,
            coupling=each.coupling,
        )
        for each in (arm, replace(arm, coupled_friction=np.zeros((2, 4))))
    ]
    drives = np.vstack([np.eye(arm.n), arm.coupling])
    frequency = 1.0 + np.arange(arm.n)
    z = np.zeros(len(drives))
    q0 = np.sin(0.0 * frequency)
    qd0 = frequency * np.cos(0.0 * frequency)
    for observer in observers:
        observer.update(q0, qd0, q0, 0.0)
    found = []
    for k in range(1, 400):
        q, qd = np.sin(frequency * k * step), frequency * np.cos(frequency * k * step)
        half = 0.5 * (qd + qd0)
        rate = drives @ half
        z = np.sign(rate) + np.exp(-np.abs(rate) * step / 1e-3) * (z - np.sign(rate))
        direction = z if presliding else np.tanh(rate / width)
        rigid = inverse_dynamics(arm, q - 0.5 * step * half, half, (qd - qd0) / step)
        torque = rigid + friction_of(arm, half, direction, rigid)
        found = [each.update(q, qd, torque, k * step) for each in observers]
        np.testing.assert_allclose(found[0], 0.0, atol=1e-8)
        qd0 = qd
    assert np.abs(found[1]).max() > 0.5


def test_the_range_of_a_motion_has_both_directions_of_a_drive_that_turns_round():
    arm = coupled_arm(SEED)
    torque = ReferenceTorque(arm, partial(inverse_dynamics, arm), Terms(), 1e-7)
    qd = np.ones((1, 2, arm.n))
    qd[0, :, -2] = 1.0 - 1e-5, 1.0 + 1e-5  # the last drive turns with their difference
    rigid = np.zeros_like(qd)
    lowest, highest = effort_range(torque, rigid, qd)
    coulomb = arm.coupled_friction[1, 1]
    np.testing.assert_allclose((highest - lowest)[0, -2:], 2 * coulomb, rtol=1e-3)
    assert ((highest - lowest)[0, :-2] < 1e-3).all()
