# SPDX-License-Identifier: Apache-2.0
"""Arms of two joints of Fu, Gonzalez and Lee 1987, 3.2.6 and problems, in closed form."""

import numpy as np
import pytest
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.dynamics import METHODS

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


# The problems' arms, point masses at the ends of links: kind of joint, its origin, and the mass
# centre, along x of the link before. Figures with the angles' zeros are not in the scan.
def arm_of_point_masses(*links, gravity):
    parts = ['<robot name="r"><link name="l0"/>']
    for k, (kind, origin, axis, mass, center) in enumerate(links, start=1):
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="l{k - 1}"/><child link="l{k}"/>'
            f'<origin xyz="{origin} 0 0"/><axis xyz="{axis}"/>'
            '<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>'
            f'<link name="l{k}"><inertial><origin xyz="{center} 0 0"/><mass value="{mass}"/>'
            '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>'
        )
    text = ''.join([*parts, '</robot>'])
    return rd.RobotModel.from_urdf(text, gravity=gravity)


@pytest.mark.parametrize('method', METHODS)
def test_arm_of_problems_3_16_and_3_17_hung_from_the_ceiling(method, states):
    # Gravity along +x of the base: both angles zero, the arm hangs.
    d1, d2 = 0.8, 0.5
    arm = arm_of_point_masses(
        ('continuous', 0, '0 0 1', M1, d1), ('continuous', d1, '0 0 1', M2, d2), gravity=(G, 0, 0)
    )
    (q1, q2), (w1, w2), (a1, a2) = (x.T for x in states)
    mixed, outer = M2 * d1 * d2, M2 * d2**2
    c2, s2 = np.cos(q2), np.sin(q2)
    torque = (
        ((M1 + M2) * d1**2 + outer + 2 * mixed * c2) * a1 + (outer + mixed * c2) * a2
        - mixed * s2 * (2 * w1 * w2 + w2**2)
        + (M1 + M2) * G * d1 * np.sin(q1) + M2 * G * d2 * np.sin(q1 + q2),
        (outer + mixed * c2) * a1 + outer * a2 + mixed * s2 * w1**2
        + M2 * G * d2 * np.sin(q1 + q2),
    )  # fmt: skip
    found = rd.inverse_dynamics(arm, *states, method=method)
    np.testing.assert_allclose(found, np.stack(torque, axis=-1), atol=1e-10)


@pytest.mark.parametrize('method', METHODS)
def test_theta_d_arm_of_problem_3_18(method, states):
    # The boom slides out along x of link 1; gravity along -y: theta is measured from the horizon.
    r1 = 0.4
    arm = arm_of_point_masses(
        ('continuous', 0, '0 0 1', M1, r1), ('prismatic', 0, '1 0 0', M2, 0), gravity=(0, -G, 0)
    )
    (angle, d), (w, v), (a, b) = (x.T for x in states)
    torque = (
        (M1 * r1**2 + M2 * d**2) * a + 2 * M2 * d * w * v
        + (M1 * r1 + M2 * d) * G * np.cos(angle),
        M2 * b - M2 * d * w**2 + M2 * G * np.sin(angle),
    )  # fmt: skip
    found = rd.inverse_dynamics(arm, *states, method=method)
    np.testing.assert_allclose(found, np.stack(torque, axis=-1), atol=1e-10)
