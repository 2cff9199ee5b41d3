# SPDX-License-Identifier: Apache-2.0
"""The control law adds up the parts that its mode and its terms name, and no others."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import (
    MASS,
    NAMES,
    VISCOUS,
    WEIGHT,
    control_law,
    enabled,
    inverse_dynamics,
    torque_parts,
)

from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import InvalidArgument, NonFiniteValue, RejectedTrajectory

Q = np.array([0.3, -0.4])
QD = np.array([0.5, 1.0])
WANTED = ReferenceState(
    np.array([0.35, -0.3]), np.array([0.6, 0.9]), np.array([1.0, -2.0]), np.array([0.7, 0.0])
)
# Bounds of kd T and sqrt(kp) T, and how far beyond them what is followed is kept.
LARGEST_KD_T, LARGEST_ROOT_KP_T, TOLERATED_SLOWNESS = 0.5, np.sqrt(1.0 / 8.0), 1.5
OFF = {'inertial': False, 'coriolis': False, 'gravity': False, 'friction': False}


def test_computed_torque_is_the_law_of_the_documentation():
    law = control_law()
    correction = law.kd * (WANTED.velocity - QD) + law.kp * (WANTED.position - Q)
    parts = torque_parts(law)(Q, QD, WANTED)
    assert parts.total == pytest.approx(
        inverse_dynamics(Q, QD, WANTED.acceleration + correction)
        + VISCOUS * WANTED.velocity
        + WANTED.effort
    )
    assert parts.gravity == pytest.approx(WEIGHT * np.cos(Q))
    assert parts.coriolis == pytest.approx(0.4 * QD * QD)
    assert parts.inertial == pytest.approx(MASS * WANTED.acceleration)
    assert parts.feedback == pytest.approx(MASS * correction)


def test_feedforward_is_the_inverse_dynamics_of_the_reference_alone():
    parts = torque_parts(control_law('feedforward'))(Q, QD, WANTED)
    assert parts.total == pytest.approx(
        inverse_dynamics(WANTED.position, WANTED.velocity, WANTED.acceleration)
        + VISCOUS * WANTED.velocity
        + WANTED.effort
    )
    assert parts.feedback == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize('mode', ['gravity_compensation', 'feedforward', 'computed_torque'])
def test_every_mode_compensates_gravity_without_a_reference(mode):
    parts = torque_parts(control_law(mode))(Q, QD, None)
    assert parts.total == pytest.approx(WEIGHT * np.cos(Q))


def test_all_terms_off_leave_the_feedback():
    law = control_law(**OFF)
    correction = law.kd * (WANTED.velocity - QD) + law.kp * (WANTED.position - Q)
    parts = torque_parts(law)
    assert parts(Q, QD, WANTED).total == pytest.approx(MASS * correction + WANTED.effort)
    assert parts(Q, QD, None).total == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize('term', OFF)
def test_each_term_can_be_switched_off_alone(term):
    full = torque_parts(control_law())(Q, QD, WANTED)
    parts = torque_parts(control_law(**{term: False}))(Q, QD, WANTED)
    assert not getattr(parts, term).any()
    assert parts.total == pytest.approx(full.total - getattr(full, term))


def test_error_of_a_continuous_joint_is_the_shorter_way_round():
    zero = np.zeros(2)
    parts = torque_parts(control_law())
    for turned in np.linspace(-40.0, 40.0, 41):
        wanted = ReferenceState(np.array([turned, turned]), zero, zero, zero)
        shorter = np.arctan2(np.sin(turned), np.cos(turned))
        assert parts(zero, zero, wanted).feedback == pytest.approx(
            MASS * [100.0 * turned, 64.0 * shorter]
        )


def test_a_torque_that_no_model_gives_is_none():
    def refusing(q, qd, qdd):
        raise NonFiniteValue('argument q', 'nan', 'finite numbers')

    assert torque_parts(replace(control_law(), inverse_dynamics=refusing))(Q, QD, WANTED) is None


def test_an_error_of_the_model_comes_through():
    def wrong(q, qd, qdd):
        raise ZeroDivisionError('in the model')

    with pytest.raises(ZeroDivisionError, match='in the model'):
        torque_parts(replace(control_law(), inverse_dynamics=wrong))(Q, QD, WANTED)


def test_a_model_that_answers_in_another_shape_is_refused_and_nothing_is_read_beyond_it():
    law = replace(control_law(), inverse_dynamics=lambda q, qd, qdd: np.zeros((1, 1)))
    with pytest.raises(ValueError, match='a result of the model: 1 numbers'):
        torque_parts(law)(Q, QD, WANTED)


def test_unknown_mode_is_named():
    with pytest.raises(InvalidArgument, match='computed_torque'):
        control_law('impedance')


def growth(kp, kd, period):
    """Return how an error grows in a period, if the feedback is held and acts one late."""
    # Position and velocity of a double integrator, and the acceleration that waits.
    step = np.array([[1.0, period, 0.5 * period**2], [0.0, 1.0, period], [-kp, -kd, 0.0]])
    return np.abs(np.linalg.eigvals(step)).max()


def test_beyond_the_bounds_of_the_gains_twice_as_large_ones_are_unstable():
    generator = np.random.default_rng(0)
    for kp_t2, kd_t in generator.uniform(0.0, 1.0, (2000, 2)) * [0.5, 2.0]:
        if kd_t > LARGEST_KD_T or np.sqrt(kp_t2) > LARGEST_ROOT_KP_T:
            assert growth(2.0 * kp_t2, 2.0 * kd_t, 1.0) > 1.0
    # And no smaller bounds would do.
    assert growth(0.002, 2.0 * 0.49, 1.0) < 1.0
    assert growth(2.0 * (LARGEST_ROOT_KP_T - 0.01) ** 2, 2.0 * 0.31, 1.0) < 1.0


@pytest.mark.parametrize('kp', [25.0, 100.0, 900.0])
def test_critically_damped_gains_are_stable_for_as_long_as_slowness_is_tolerated(kp):
    needed = 4.0 * np.sqrt(kp)  # kd = 2 sqrt(kp) is what asks for most
    assert growth(kp, 2.0 * np.sqrt(kp), TOLERATED_SLOWNESS / needed) < 1.0
    at_states(0.99 / needed, kp).pipeline.follow(GOAL)
    with pytest.raises(RejectedTrajectory, match=f'need {needed:g} Hz'):
        at_states(1.01 / needed, kp).pipeline.follow(GOAL)


def test_a_law_without_feedback_needs_no_rate():
    at_states(0.2, 900.0, 'feedforward').pipeline.follow(GOAL)


GOAL = Trajectory.from_points(NAMES, [1.0], [Q], [()], [()], [()])


def at_states(period, kp, mode='computed_torque'):
    """Return an arm at rest whose states come once in a period [s], with critical damping."""
    arm = enabled(mode, state_timeout=0.25)
    kd = np.full(2, 2.0 * np.sqrt(kp))
    arm.pipeline.change_law(replace(control_law(mode), kp=np.full(2, kp), kd=kd))
    arm.run(10.0 * period, Q, period=period)
    return arm
