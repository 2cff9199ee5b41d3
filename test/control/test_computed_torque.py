# SPDX-License-Identifier: Apache-2.0
"""The control law adds up the parts that its mode and its terms name, and no others."""

import numpy as np
import pytest
from control_arm import MASS, WEIGHT, control_law, friction_torque, inverse_dynamics

from robodyn_ros.control.computed_torque import wrapped
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.errors import UnknownOption

Q = np.array([0.3, -0.4])
QD = np.array([0.5, 1.0])
WANTED = ReferenceState(
    np.array([0.35, -0.3]), np.array([0.6, 0.9]), np.array([1.0, -2.0]), np.array([0.7, 0.0])
)
OFF = {'inertial': False, 'coriolis': False, 'gravity': False, 'friction': False}


def test_computed_torque_is_the_law_of_the_documentation():
    law = control_law()
    correction = law.kd * (WANTED.velocity - QD) + law.kp * (WANTED.position - Q)
    parts = law.torque(Q, QD, WANTED)
    assert parts.total == pytest.approx(
        inverse_dynamics(Q, QD, WANTED.acceleration + correction)
        + friction_torque(0.01, WANTED.velocity)
        + WANTED.effort
    )
    assert parts.gravity == pytest.approx(WEIGHT * np.cos(Q))
    assert parts.coriolis == pytest.approx(0.4 * QD * QD)
    assert parts.inertial == pytest.approx(MASS * WANTED.acceleration)
    assert parts.feedback == pytest.approx(MASS * correction)


def test_feedforward_is_the_inverse_dynamics_of_the_reference_alone():
    parts = control_law('feedforward').torque(Q, QD, WANTED)
    assert parts.total == pytest.approx(
        inverse_dynamics(WANTED.position, WANTED.velocity, WANTED.acceleration)
        + friction_torque(0.01, WANTED.velocity)
        + WANTED.effort
    )
    assert parts.feedback == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize('mode', ['gravity_compensation', 'feedforward', 'computed_torque'])
def test_every_mode_compensates_gravity_without_a_reference(mode):
    assert control_law(mode).torque(Q, QD, None).total == pytest.approx(WEIGHT * np.cos(Q))


def test_all_terms_off_leave_the_feedback():
    law = control_law(**OFF)
    correction = law.kd * (WANTED.velocity - QD) + law.kp * (WANTED.position - Q)
    assert law.torque(Q, QD, WANTED).total == pytest.approx(MASS * correction + WANTED.effort)
    assert law.torque(Q, QD, None).total == pytest.approx([0.0, 0.0])
    assert law.gravity_torque(Q) == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize('term', OFF)
def test_each_term_can_be_switched_off_alone(term):
    full = control_law().torque(Q, QD, WANTED)
    parts = control_law(**{term: False}).torque(Q, QD, WANTED)
    assert not getattr(parts, term).any()
    assert parts.total == pytest.approx(full.total - getattr(full, term))


def test_error_of_a_continuous_joint_is_the_shorter_way_round():
    error = control_law().position_error(np.array([3.1, 3.1]), np.array([-3.1, -3.1]))
    assert error == pytest.approx([-6.2, 2 * np.pi - 6.2])


def test_wrapped_angles_are_within_half_a_turn():
    assert wrapped(np.array([0.0, 7.0, -7.0])) == pytest.approx(
        [0.0, 7.0 - 2 * np.pi, 2 * np.pi - 7.0]
    )


def test_unknown_mode_is_named():
    with pytest.raises(UnknownOption, match='computed_torque'):
        control_law('impedance')
