# SPDX-License-Identifier: Apache-2.0
"""Arms of two joints of Fu, Gonzalez and Lee 1987, 3.2.6 and problems, in closed form."""

import numpy as np
import pytest
from paper_arms import TWO_LINK
from probing import coefficients_by
from robots import two_link_urdf
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.dynamics import METHODS, generalized_dalembert

# Masses [kg] and lengths [m] of the rods: those of the file in urdf/, and others.
NUMBERS = {'the file': (1.0, 1.0, 1.0), 'other numbers': (2.3, 1.7, 0.9)}
M1, M2 = NUMBERS['other numbers'][:2]
G = 9.81
STATES = np.random.default_rng(3).uniform(-3, 3, (3, 1000, 2))


@pytest.fixture(params=NUMBERS)
def pair(request):
    """The masses and the length of an arm, and its model."""
    numbers = NUMBERS[request.param]
    if request.param == 'the file':
        return numbers, TWO_LINK.model()
    return numbers, rd.RobotModel.from_urdf(two_link_urdf(*numbers), gravity=(0, -G, 0))


def closed_form(m1, m2, length):
    """Return D (N, 2, 2), h (N, 2, 2, 2) and c (N, 2) of section 3.2.6, (3.2-26), at STATES."""
    q1, q2 = STATES[0].T
    square = length**2
    inertia = np.empty((len(q1), 2, 2))
    inertia[:, 0, 0] = m1 * square / 3 + 4 * m2 * square / 3 + m2 * square * np.cos(q2)
    inertia[:, 0, 1] = inertia[:, 1, 0] = m2 * square / 3 + m2 * square * np.cos(q2) / 2
    inertia[:, 1, 1] = m2 * square / 3
    swing = m2 * square * np.sin(q2) / 2
    velocity = np.zeros((len(q1), 2, 2, 2))
    velocity[:, 0, 1, 1] = velocity[:, 0, 0, 1] = velocity[:, 0, 1, 0] = -swing
    velocity[:, 1, 0, 0] = swing
    outer = m2 * G * length * np.cos(q1 + q2) / 2
    gravity = np.stack([(m1 / 2 + m2) * G * length * np.cos(q1) + outer, outer], axis=-1)
    return inertia, velocity, gravity


@pytest.mark.parametrize(
    'road',
    [
        'lagrange_euler',
        'lagrange_euler, complete',
        'lagrangian_coefficients',
        'newton_euler',
        'public',
    ],
)
def test_coefficients_are_the_closed_forms(pair, road):
    numbers, arm = pair
    for value, expected in zip(coefficients_by(road, arm, STATES[0]), closed_form(*numbers)):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-11)


def test_torques_and_coriolis_matrix_are_the_closed_forms(pair):
    numbers, arm = pair
    q, qd, qdd = STATES
    inertia, velocity, gravity = closed_form(*numbers)
    coriolis = np.einsum('nijk,nk->nij', velocity, qd)
    np.testing.assert_allclose(rd.coriolis_matrix(arm, q, qd), coriolis, rtol=0, atol=1e-11)
    expected = gravity + (inertia @ qdd[..., None] + coriolis @ qd[..., None])[..., 0]
    for method in METHODS:
        torque = rd.inverse_dynamics(arm, *STATES, method=method)
        np.testing.assert_allclose(torque, expected, rtol=0, atol=1e-10)


def test_generalized_dalembert_parts(pair):
    # Section 3.4.2: the rods' own moments m l2 / 12 turn, everything else is translation.
    (m1, m2, length), arm = pair
    q, qd, _ = STATES
    inertia, velocity, _ = closed_form(m1, m2, length)
    translational, rotational = generalized_dalembert.inertia_matrices(arm, q)
    own = length**2 / 12 * np.array([[m1 + m2, m2], [m2, m2]])
    np.testing.assert_allclose(rotational, np.broadcast_to(own, (1000, 2, 2)), atol=1e-12)
    np.testing.assert_allclose(translational + rotational, inertia, atol=1e-12)
    h_translational, h_rotational = generalized_dalembert.coriolis_torques(arm, q, qd)
    np.testing.assert_allclose(h_rotational, 0, atol=1e-12)
    expected = np.einsum('nijk,nj,nk->ni', velocity, qd, qd)
    np.testing.assert_allclose(h_translational, expected, atol=1e-11)


# The problems' arms are of point masses at the ends of links. Figures with the angles' zeros are
# not in the scan.


def test_arm_of_problems_3_16_and_3_17_hung_from_the_ceiling():
    # Gravity along +x of the base: both angles zero, the arm hangs.
    d1, d2 = 0.8, 0.5
    text = robot(
        link('l0'),
        joint('j1', 'l0', 'l1'),
        link('l1', M1, center=(d1, 0, 0)),
        joint('j2', 'l1', 'l2', xyz=(d1, 0, 0)),
        link('l2', M2, center=(d2, 0, 0)),
    )
    arm = rd.RobotModel.from_urdf(text, gravity=(G, 0, 0))
    (q1, q2), (w1, w2), (a1, a2) = (x.T for x in STATES)
    mixed, outer = M2 * d1 * d2, M2 * d2**2
    c2, s2 = np.cos(q2), np.sin(q2)
    torque = (
        ((M1 + M2) * d1**2 + outer + 2 * mixed * c2) * a1 + (outer + mixed * c2) * a2
        - mixed * s2 * (2 * w1 * w2 + w2**2)
        + (M1 + M2) * G * d1 * np.sin(q1) + M2 * G * d2 * np.sin(q1 + q2),
        (outer + mixed * c2) * a1 + outer * a2 + mixed * s2 * w1**2
        + M2 * G * d2 * np.sin(q1 + q2),
    )  # fmt: skip
    for method in METHODS:
        found = rd.inverse_dynamics(arm, *STATES, method=method)
        np.testing.assert_allclose(found, np.stack(torque, axis=-1), atol=1e-10)


def test_theta_d_arm_of_problem_3_18():
    # The boom slides out along x of link 1; gravity along -y: theta is measured from the horizon.
    r1 = 0.4
    text = robot(
        link('l0'),
        joint('j1', 'l0', 'l1'),
        link('l1', M1, center=(r1, 0, 0)),
        joint('j2', 'l1', 'l2', 'prismatic', axis=(1, 0, 0)),
        link('l2', M2),
    )
    arm = rd.RobotModel.from_urdf(text, gravity=(0, -G, 0))
    (angle, d), (w, v), (a, b) = (x.T for x in STATES)
    torque = (
        (M1 * r1**2 + M2 * d**2) * a + 2 * M2 * d * w * v
        + (M1 * r1 + M2 * d) * G * np.cos(angle),
        M2 * b - M2 * d * w**2 + M2 * G * np.sin(angle),
    )  # fmt: skip
    for method in METHODS:
        found = rd.inverse_dynamics(arm, *STATES, method=method)
        np.testing.assert_allclose(found, np.stack(torque, axis=-1), atol=1e-10)
