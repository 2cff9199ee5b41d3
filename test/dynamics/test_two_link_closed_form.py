# SPDX-License-Identifier: Apache-2.0
"""The two-link arm of Fu, Gonzalez and Lee 1987, section 3.2.6, in closed form."""

import numpy as np
import pytest
from robots import two_link_urdf

import robodyn_ros as rd

M1, M2, L, G = 2.3, 1.7, 0.9, 9.81


@pytest.fixture(scope='module')
def arm():
    return rd.RobotModel.from_urdf(two_link_urdf(M1, M2, L), gravity=(0, -G, 0))


@pytest.fixture(scope='module')
def states(arm):
    return np.random.default_rng(3).uniform(-3, 3, (3, 1000, 2))


def test_mass_matrix(arm, states):
    q = states[0]
    c2 = np.cos(q[:, 1])
    m = rd.mass_matrix(arm, q)
    np.testing.assert_allclose(
        m[:, 0, 0], M1 * L**2 / 3 + 4 * M2 * L**2 / 3 + M2 * c2 * L**2, atol=1e-12
    )
    np.testing.assert_allclose(m[:, 0, 1], M2 * L**2 / 3 + M2 * L**2 * c2 / 2, atol=1e-12)
    np.testing.assert_allclose(m[:, 1, 0], m[:, 0, 1], atol=0)
    np.testing.assert_allclose(m[:, 1, 1], M2 * L**2 / 3, atol=1e-12)


def test_gravity_torque(arm, states):
    q1, q2 = states[0].T
    g = rd.gravity_torque(arm, states[0])
    np.testing.assert_allclose(
        g[:, 0],
        M1 * G * L * np.cos(q1) / 2 + M2 * G * L * np.cos(q1 + q2) / 2 + M2 * G * L * np.cos(q1),
        atol=1e-11,
    )
    np.testing.assert_allclose(g[:, 1], M2 * G * L * np.cos(q1 + q2) / 2, atol=1e-11)


def test_coriolis_and_centrifugal_torque(arm, states):
    q, qd, _ = states
    h = rd.inverse_dynamics(arm, q, qd, 0 * q) - rd.gravity_torque(arm, q)
    s2 = np.sin(q[:, 1])
    w1, w2 = qd.T
    np.testing.assert_allclose(
        h[:, 0], -M2 * L**2 * s2 * w2**2 / 2 - M2 * L**2 * s2 * w1 * w2, atol=1e-11
    )
    np.testing.assert_allclose(h[:, 1], M2 * L**2 * s2 * w1**2 / 2, atol=1e-11)


def test_tip_pose(arm, states):
    folded = rd.RobotModel.from_urdf(two_link_urdf(M1, M2, L), tip_link='link2')
    q1, q2 = states[0].T
    pose = rd.forward_kinematics(folded, states[0])
    np.testing.assert_allclose(pose[:, 0, 3], L * np.cos(q1), atol=1e-12)
    np.testing.assert_allclose(pose[:, 0, 0], np.cos(q1 + q2), atol=1e-12)
    np.testing.assert_allclose(pose[:, 1, 0], np.sin(q1 + q2), atol=1e-12)
