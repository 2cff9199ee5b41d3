# SPDX-License-Identifier: Apache-2.0
"""The wrench at the tip: found, weighted, damped, and which directions cannot be told."""

from __future__ import annotations

import numpy as np
import pytest
from robots import public_urdf, two_link_urdf

from robodyn_ros import RobotModel, forward_kinematics, jacobian
from robodyn_ros.control.contact import EXPECTED_FORCE, EXPECTED_MOMENT, tip_wrench
from robodyn_ros.control.core_binding import core

AT_TIP = np.zeros(3)


@pytest.fixture(scope='module')
def ur5():
    return RobotModel.from_urdf(
        public_urdf('ur5_robot.urdf'), base_link='base_link', tip_link='tool0'
    )


@pytest.fixture(scope='module')
def panda():
    return RobotModel.from_urdf(
        public_urdf('panda.urdf'), base_link='panda_link0', tip_link='panda_link8'
    )


def bent(model):
    return np.array([0.3, -0.8, 0.9, -1.4, 0.8, 1.2, 0.2][: model.n])


def turned_to_base(model, q, wrench):
    rotation = forward_kinematics(model, q)[:3, :3]
    return np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])


@pytest.mark.parametrize('arm', ['ur5', 'panda'])
def test_a_wrench_is_found_from_the_torques_it_causes(arm, request):
    model = request.getfixturevalue(arm)
    q = bent(model)
    wrench = np.array([12.0, -30.0, 8.0, 1.0, -2.0, 0.5])  # in the tip's axes
    torque = jacobian(model, q).T @ turned_to_base(model, q, wrench)
    found = tip_wrench(model, q, torque, np.full(model.n, 0.05), AT_TIP)
    np.testing.assert_allclose(found.wrench, wrench, atol=0.02)
    assert len(found.undetermined) == 0


def test_a_joint_that_stands_may_hide_its_coulomb_friction():
    known, coulomb = np.array([3.0, 3.0, 3.0]), np.sqrt(3.0) * np.array([4.0, 4.0, 0.0])
    velocity = np.array([0.01, -0.03, 0.0])
    found = core.torque_deviation(known, coulomb, velocity)
    np.testing.assert_allclose(found, [5.0, 3.0, 3.0])


def test_the_moment_is_about_the_point(ur5):
    # A pure force at a point 0.2 m ahead of the tip: no moment there, r x f at the tip.
    q, point, force = bent(ur5), np.array([0.0, 0.05, 0.2]), np.array([10.0, 5.0, -3.0])
    at_tip = np.concatenate([force, np.cross(point, force)])
    torque = jacobian(ur5, q).T @ turned_to_base(ur5, q, at_tip)
    deviation = np.full(6, 0.02)
    found = tip_wrench(ur5, q, torque, deviation, point)
    np.testing.assert_allclose(found.wrench, [*force, 0.0, 0.0, 0.0], atol=0.02)
    np.testing.assert_allclose(
        tip_wrench(ur5, q, torque, deviation, AT_TIP).wrench, at_tip, atol=0.02
    )


def test_it_is_the_bayesian_estimate_of_the_normal_equations(panda):
    q = bent(panda)
    generator = np.random.default_rng(2)
    torque, deviation = generator.normal(size=7), generator.uniform(0.2, 2.0, 7)
    rotation = forward_kinematics(panda, q)[:3, :3]
    turn = np.kron(np.eye(2), rotation)
    transposed = (turn.T @ jacobian(panda, q)).T
    expected = np.repeat([EXPECTED_FORCE, EXPECTED_MOMENT], 3)
    weight = np.diag(1.0 / deviation**2)
    covariance = np.linalg.inv(transposed.T @ weight @ transposed + np.diag(1.0 / expected**2))
    found = tip_wrench(panda, q, torque, deviation, AT_TIP)
    np.testing.assert_allclose(found.wrench, covariance @ transposed.T @ weight @ torque)
    np.testing.assert_allclose(found.deviation, np.sqrt(np.diag(covariance)))


@pytest.mark.parametrize('joints', [2, 6, 7])
def test_it_is_that_of_numpys_singular_values_for_any_jacobian(joints):
    generator = np.random.default_rng(joints)
    expected = np.repeat([EXPECTED_FORCE, EXPECTED_MOMENT], 3)
    for _ in range(200):
        jacobian_at_tip = generator.normal(size=(6, joints)) * 10.0 ** generator.uniform(-3, 0)
        if generator.random() < 0.3:
            jacobian_at_tip[:, 1] = 2.0 * jacobian_at_tip[:, 0]
        torque = generator.normal(size=joints)
        deviation = 10.0 ** generator.uniform(-2, 1, joints)
        scaled = jacobian_at_tip.T * expected / deviation[:, None]
        left, sizes, directions = np.linalg.svd(scaled)
        weighed = np.zeros(6)  # S U^T (torque / deviation)
        weighed[: len(sizes)] = sizes * (left.T @ (torque / deviation))[: len(sizes)]
        sizes = np.pad(sizes, (0, 6 - len(sizes)))
        wanted = expected * (directions.T @ (weighed / (1.0 + sizes**2)))
        covariance = (directions.T / (1.0 + sizes**2)) @ directions
        wrench, found, undetermined = core.tip_wrench(
            np.eye(4), jacobian_at_tip, AT_TIP, torque, deviation
        )
        np.testing.assert_allclose(wrench, wanted, atol=1e-6 * np.abs(wanted).max())
        np.testing.assert_allclose(found, expected * np.sqrt(np.diag(covariance)), rtol=1e-6)
        hidden = directions[sizes < 1.0]
        assert undetermined.shape == hidden.shape
        np.testing.assert_allclose(undetermined.T @ undetermined, hidden.T @ hidden, atol=1e-6)


def test_deviations_hold_what_noise_does(ur5):
    q, deviation = bent(ur5), np.array([2.0, 2.0, 1.0, 0.3, 0.3, 0.2])
    noise = np.random.default_rng(3).normal(size=(4000, 6)) * deviation
    found = np.array([tip_wrench(ur5, q, each, deviation, AT_TIP).wrench for each in noise])
    stated = tip_wrench(ur5, q, noise[0], deviation, AT_TIP).deviation
    assert (found.std(axis=0) <= 1.05 * stated).all()
    assert (found.std(axis=0) >= 0.8 * stated).all()


def test_a_joint_known_better_counts_for_more(panda):
    # Seven joints tell more than six numbers: what one says wrong the others put right.
    q, wrench = bent(panda), np.array([5.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    torque = jacobian(panda, q).T @ turned_to_base(panda, q, wrench)
    wrong = torque + np.array([0, 3.0, 0, 0, 0, 0, 0])
    doubted = np.array([0.1, 50.0, 0.1, 0.1, 0.1, 0.1, 0.1])
    found = tip_wrench(panda, q, wrong, doubted, AT_TIP)
    np.testing.assert_allclose(found.wrench, wrench, atol=0.05)
    even = tip_wrench(panda, q, wrong, np.full(7, 0.1), AT_TIP)
    assert np.abs(even.wrench - wrench).max() > 1.0


def test_an_arm_in_a_singular_position_cannot_tell_the_direction_along_it(ur5):
    # Stretched out, a force along the arm goes straight into the base.
    q = np.zeros(6)
    found = tip_wrench(ur5, q, np.ones(6), np.full(6, 0.1), AT_TIP)
    assert len(found.undetermined) >= 1
    expected = np.repeat([EXPECTED_FORCE, EXPECTED_MOMENT], 3)
    for direction in found.undetermined:
        assert np.linalg.norm(direction) == pytest.approx(1.0)
        shown = jacobian(ur5, q).T @ turned_to_base(ur5, q, expected * direction)
        assert (np.abs(shown) <= 0.1).all()
    assert np.isfinite(found.wrench).all()
    assert (np.abs(found.wrench) < 1e3).all()


def test_an_arm_of_two_joints_tells_two_directions():
    model = RobotModel.from_urdf(two_link_urdf(), gravity=(0.0, -9.81, 0.0))
    q = np.array([0.3, 0.9])
    found = tip_wrench(model, q, np.array([3.0, 1.0]), np.full(2, 0.01), AT_TIP)
    assert len(found.undetermined) == 4
    np.testing.assert_allclose(
        jacobian(model, q).T @ turned_to_base(model, q, found.wrench), [3.0, 1.0], rtol=1e-3
    )
