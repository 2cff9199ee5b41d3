# SPDX-License-Identifier: Apache-2.0
"""D, h and c of the two-link arm (Fu, Gonzalez and Lee 1987, 3.2.6) by every formulation."""

import numpy as np
import probing
import pytest
from paper_arms import TWO_LINK

import robodyn_ros as rd
from robodyn_ros.dynamics import (
    METHODS,
    generalized_dalembert,
    lagrange_euler,
    lagrangian_coefficients,
)

M1 = M2 = L = 1.0
G = 9.81


@pytest.fixture(scope='module')
def arm():
    return TWO_LINK.model()


@pytest.fixture(scope='module')
def states():
    return np.random.default_rng(3).uniform(-3, 3, (3, 1000, 2))


def closed_form(q):
    """Return D (N, 2, 2), h (N, 2, 2, 2) and c (N, 2), (3.2-26) with section 3.2.6's numbers."""
    q1, q2 = q.T
    inertia = np.empty((len(q), 2, 2))
    inertia[:, 0, 0] = M1 * L**2 / 3 + 4 * M2 * L**2 / 3 + M2 * L**2 * np.cos(q2)
    inertia[:, 0, 1] = inertia[:, 1, 0] = M2 * L**2 / 3 + M2 * L**2 * np.cos(q2) / 2
    inertia[:, 1, 1] = M2 * L**2 / 3
    swing = M2 * L**2 * np.sin(q2) / 2
    velocity = np.zeros((len(q), 2, 2, 2))
    velocity[:, 0, 1, 1] = velocity[:, 0, 0, 1] = velocity[:, 0, 1, 0] = -swing
    velocity[:, 1, 0, 0] = swing
    outer = M2 * G * L * np.cos(q1 + q2) / 2
    gravity = np.stack([(M1 / 2 + M2) * G * L * np.cos(q1) + outer, outer], axis=-1)
    return inertia, velocity, gravity


ROADS = {
    'lagrange_euler': lagrange_euler.shortened_coefficients,
    'lagrange_euler, complete': lagrange_euler.complete_coefficients,
    'lagrangian_coefficients': lambda arm, q: (
        lagrangian_coefficients.inertial_coefficients(arm, q),
        lagrangian_coefficients.christoffel_symbols(arm, q),
        lagrangian_coefficients.gravitational_coefficients(arm, q),
    ),
    'newton_euler, probed': lambda arm, q: (
        probing.probed_inertia(arm, q),
        probing.probed_velocity_coefficients(arm, q),
        probing.probed_gravity(arm, q),
    ),
    'public': lambda arm, q: (
        rd.mass_matrix(arm, q),
        rd.christoffel_symbols(arm, q),
        rd.gravity_torque(arm, q),
    ),
}


@pytest.mark.parametrize('road', ROADS)
def test_coefficients_are_the_closed_forms(arm, states, road):
    for value, expected in zip(ROADS[road](arm, states[0]), closed_form(states[0])):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize('method', METHODS)
def test_torques_are_the_closed_forms(arm, states, method):
    q, qd, qdd = states
    inertia, velocity, gravity = closed_form(q)
    expected = np.einsum('nij,nj->ni', inertia, qdd) + gravity
    expected += np.einsum('nijk,nj,nk->ni', velocity, qd, qd)
    np.testing.assert_allclose(
        rd.inverse_dynamics(arm, q, qd, qdd, method=method), expected, rtol=0, atol=1e-10
    )


def test_generalized_dalembert_parts(arm, states):
    # Section 3.4.2: the rods' own moments m l2 / 12 turn, everything else is translation.
    q, qd, _ = states
    translational, rotational = generalized_dalembert.inertia_matrices(arm, q)
    own = L**2 / 12
    expected = np.array([[M1 * own + M2 * own, M2 * own], [M2 * own, M2 * own]])
    np.testing.assert_allclose(rotational, np.broadcast_to(expected, (1000, 2, 2)), atol=1e-12)
    np.testing.assert_allclose(translational + rotational, closed_form(q)[0], atol=1e-12)
    h_translational, h_rotational = generalized_dalembert.coriolis_torques(arm, q, qd)
    np.testing.assert_allclose(h_rotational, 0, atol=1e-12)
    expected = np.einsum('nijk,nj,nk->ni', closed_form(q)[1], qd, qd)
    np.testing.assert_allclose(h_translational, expected, atol=1e-11)


def test_coriolis_matrix(arm, states):
    q, qd, _ = states
    expected = np.einsum('nijk,nk->nij', closed_form(q)[1], qd)
    np.testing.assert_allclose(rd.coriolis_matrix(arm, q, qd), expected, rtol=0, atol=1e-11)
