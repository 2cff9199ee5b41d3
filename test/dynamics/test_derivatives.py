# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the dynamics, against Pinocchio, finite differences and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_arms import chain_and_oracle, random_arm
from oracles import random_states, relative_difference
from robots import two_link_urdf

import robodyn_ros as rd

PAYLOAD = rd.Payload(2.5, (0.05, -0.1, 0.2), np.diag([0.03, 0.02, 0.04]))


@pytest.mark.repeats(check=5)
@pytest.mark.parametrize('block', range(20))
def test_derivatives_are_pinocchio_s_on_random_chains(block):
    for seed in range(10 * block, 10 * block + 10):
        arm, oracle = chain_and_oracle(seed)
        q, qd, qdd = random_states(arm, 2, seed)
        tau = rd.inverse_dynamics(arm, q, qd, qdd)
        torques = rd.inverse_dynamics_derivatives(arm, q, qd, qdd)
        accelerations = rd.forward_dynamics_derivatives(arm, q, qd, tau)
        condition = np.linalg.cond(rd.mass_matrix(arm, q)).max()
        for k in range(2):
            for given, wanted in zip(
                torques, oracle.torque_derivatives(q[k], qd[k], qdd[k]), strict=True
            ):
                assert relative_difference(given[k], wanted) < 1e-9, seed
            for given, wanted in zip(
                accelerations, oracle.acceleration_derivatives(q[k], qd[k], tau[k]), strict=True
            ):
                assert relative_difference(given[k], wanted) < max(1e-9, 1e-14 * condition), seed


def slopes(function, x, step=1e-6):
    """Return the derivatives (m, n) of a function of x (n,) by central differences."""
    steps = step * np.eye(len(x))
    return np.array([(function(x + h) - function(x - h)) / (2 * step) for h in steps]).T


@pytest.mark.parametrize('seed', range(12))
def test_derivatives_are_finite_differences_with_payload_gravity_and_rotors(seed):
    arm = random_arm(500 + seed, rotors=True).with_payload(PAYLOAD).with_gravity((3, -5, 7))
    q, qd, qdd = (x[0] for x in random_states(arm, 1, seed))
    tau = rd.inverse_dynamics(arm, q, qd, qdd)
    by_position, by_velocity = rd.inverse_dynamics_derivatives(arm, q, qd, qdd)
    wanted = slopes(lambda x: rd.inverse_dynamics(arm, x, qd, qdd), q)
    assert relative_difference(by_position, wanted) < 1e-7
    wanted = slopes(lambda x: rd.inverse_dynamics(arm, q, x, qdd), qd)
    assert relative_difference(by_velocity, wanted) < 1e-7
    forward = rd.forward_dynamics_derivatives(arm, q, qd, tau)
    for given, wanted in zip(
        forward,
        (
            slopes(lambda x: rd.forward_dynamics(arm, x, qd, tau), q),
            slopes(lambda x: rd.forward_dynamics(arm, q, x, tau), qd),
            slopes(lambda x: rd.forward_dynamics(arm, q, qd, x), tau),
        ),
        strict=True,
    ):
        assert relative_difference(given, wanted) < 1e-6


@pytest.mark.parametrize('seed', range(6))
def test_linear_motion_is_the_arm_s_for_small_deviations(seed):
    arm = random_arm(seed, rotors=True)
    q, qd, qdd = (x[0] for x in random_states(arm, 1, seed))
    tau = rd.inverse_dynamics(arm, q, qd, qdd)
    a, b = rd.linearization(arm, q, qd, tau)
    n = arm.n

    def rate(x, torque):
        return np.concatenate([x[n:], rd.forward_dynamics(arm, x[:n], x[n:], torque)])

    x = np.concatenate([q, qd])
    assert relative_difference(a, slopes(lambda y: rate(y, tau), x)) < 1e-6
    assert relative_difference(b, slopes(lambda y: rate(x, y), tau)) < 1e-6
    np.testing.assert_allclose(rate(x, tau)[n:], qdd, rtol=1e-6, atol=1e-6)


def test_pendulum_hangs_as_an_oscillator_and_stands_as_an_unstable_one():
    # A slender rod of length 1 about its end: I = m / 3, and g m / 2 sin(q) holds it.
    arm = rd.RobotModel.from_urdf(two_link_urdf(m2=0.0), tip_link='link1', gravity=(9.81, 0, 0))
    for q, sign in ((0.0, -1.0), (np.pi, 1.0)):
        a, b = rd.linearization(arm, [q], [0.0], [0.0])
        np.testing.assert_allclose(a, [[0, 1], [sign * 1.5 * 9.81, 0]], atol=1e-12)
        np.testing.assert_allclose(b, [[0.0], [3.0]], atol=1e-12)


def test_bias_torque_is_the_torque_without_acceleration():
    arm = random_arm(4, rotors=True)
    q, qd, _ = random_states(arm, 4, 3)
    coriolis = np.einsum('kij,kj->ki', rd.coriolis_matrix(arm, q, qd), qd)
    expected = coriolis + rd.gravity_torque(arm, q)
    np.testing.assert_allclose(rd.bias_torque(arm, q, qd), expected, atol=1e-10)


def test_motion_of_massless_links_has_no_derivatives():
    massless = rd.RobotModel.from_urdf(two_link_urdf(m1=0.0, m2=0.0))
    with pytest.raises(rd.NoSolution):
        rd.linearization(massless, [0, 0], [0, 0], [0, 0])
