# SPDX-License-Identifier: Apache-2.0
"""Which gains a law may have at the rate of the states, and models that give no torque."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import Q, control_law, enabled, to, torque_parts

from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.errors import NonFiniteValue, RejectedTrajectory

WANTED = ReferenceState.at_rest(Q)
# Bounds of kd T and sqrt(kp) T, and how far beyond them what is followed is kept.
LARGEST_KD_T, LARGEST_ROOT_KP_T, TOLERATED_SLOWNESS = 0.5, np.sqrt(1.0 / 8.0), 1.5


def test_a_torque_that_no_model_gives_is_none():
    def refusing(q, qd, qdd):
        raise NonFiniteValue('argument q', 'nan', 'finite numbers')

    assert torque_parts(replace(control_law(), inverse_dynamics=refusing))(Q, Q, WANTED) is None


def test_an_error_of_the_model_comes_through():
    def wrong(q, qd, qdd):
        raise ZeroDivisionError('in the model')

    with pytest.raises(ZeroDivisionError, match='in the model'):
        torque_parts(replace(control_law(), inverse_dynamics=wrong))(Q, Q, WANTED)


def test_a_model_that_answers_in_another_shape_is_refused_and_nothing_is_read_beyond_it():
    law = replace(control_law(), inverse_dynamics=lambda q, qd, qdd: np.zeros((1, 1)))
    with pytest.raises(ValueError, match='a result of the model: 1 numbers'):
        torque_parts(law)(Q, Q, WANTED)


def test_unknown_mode_is_named():
    with pytest.raises(ValueError, match="mode: 'impedance'; allowed: .*computed_torque"):
        torque_parts(control_law('impedance'))


def growth(kp, kd, period):
    """Return how an error grows in a period, if the feedback is held and acts one late."""
    # Position and velocity of a double integrator, and the acceleration that waits.
    step = np.array([[1.0, period, 0.5 * period**2], [0.0, 1.0, period], [-kp, -kd, 0.0]])
    return np.abs(np.linalg.eigvals(step)).max()


@pytest.mark.parametrize('kp', [25.0, 100.0, 900.0])
def test_critically_damped_gains_are_stable_for_as_long_as_slowness_is_tolerated(kp):
    needed = 4.0 * np.sqrt(kp)  # kd = 2 sqrt(kp) is what asks for most
    assert growth(kp, 2.0 * np.sqrt(kp), TOLERATED_SLOWNESS / needed) < 1.0
    at_states(0.99 / needed, kp).pipeline.follow(to(Q))
    with pytest.raises(RejectedTrajectory, match=f'need {needed:g} Hz'):
        at_states(1.01 / needed, kp).pipeline.follow(to(Q))


@pytest.mark.parametrize('period', [0.001, 0.004, 0.01])
def test_velocities_from_positions_count_as_late_as_they_are(period):
    weight = -np.expm1(-period / 0.005)  # of the filter
    lag = period * (1.0 / weight - 0.5)
    needed = 1.0 / (period + lag)
    at_states(period, (0.99 * needed / 4.0) ** 2, velocity=[]).pipeline.follow(to(Q))
    with pytest.raises(RejectedTrajectory, match=f'from positions, {1e3 * lag:.2g} ms late'):
        at_states(period, (1.01 * needed / 4.0) ** 2, velocity=[]).pipeline.follow(to(Q))


def test_a_law_without_feedback_needs_no_rate():
    at_states(0.2, 900.0, 'feedforward').pipeline.follow(to(Q))


def at_states(period, kp, mode='computed_torque', velocity=None):
    """Return an arm at rest whose states come once in a period [s], with critical damping."""
    arm = enabled(mode, state_timeout=0.25)
    kd = np.full(2, 2.0 * np.sqrt(kp))
    arm.change(kp=np.full(2, kp), kd=kd)
    arm.run(100.0 * period, Q, velocity, period=period)
    return arm
