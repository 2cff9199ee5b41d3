# SPDX-License-Identifier: Apache-2.0
"""The wrench at the tip: found, weighted, damped, and which directions cannot be told."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_arms import public_arm
from scipy.spatial.transform import Rotation

from robodyn_ros import forward_kinematics, jacobian
from robodyn_ros.control.contact import EXPECTED_FORCE, EXPECTED_MOMENT, tip_wrench
from robodyn_ros.control.core_binding import core

AT_TIP = np.zeros(3)


def bent(model):
    return np.array([0.3, -0.8, 0.9, -1.4, 0.8, 1.2, 0.2][: model.n])


def turned_to_base(model, q, wrench):
    rotation = forward_kinematics(model, q)[:3, :3]
    return np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])


@pytest.mark.parametrize('point', [AT_TIP, np.array([0.0, 0.05, 0.2])])
@pytest.mark.parametrize('name', ['ur5', 'panda'])
def test_a_wrench_at_a_point_is_found_from_the_torques_it_causes(name, point):
    model = public_arm(name)
    q = bent(model)
    force, moment = np.array([12.0, -30.0, 8.0]), np.array([1.0, -2.0, 0.5])  # in the tip's axes
    at_tip = np.concatenate([force, moment + np.cross(point, force)])
    torque = jacobian(model, q).T @ turned_to_base(model, q, at_tip)
    found = tip_wrench(model, q, torque, np.full(model.n, 0.02), point)
    np.testing.assert_allclose(found.wrench, [*force, *moment], atol=0.02)
    assert len(found.undetermined) == 0


def test_a_joint_that_stands_may_hide_its_coulomb_friction():
    known, coulomb = np.array([3.0, 3.0, 3.0]), np.sqrt(3.0) * np.array([4.0, 4.0, 0.0])
    velocity = np.array([0.01, -0.03, 0.0])
    found = core.torque_deviation(known, coulomb, velocity)
    np.testing.assert_allclose(found, [5.0, 3.0, 3.0])


@pytest.mark.parametrize('joints', [2, 6, 7])
def test_it_is_that_of_numpys_singular_values_for_any_jacobian_pose_and_point(joints):
    generator = np.random.default_rng(joints)
    expected = np.repeat([EXPECTED_FORCE, EXPECTED_MOMENT], 3)
    for _ in range(200):
        jacobian_at_tip = generator.normal(size=(6, joints)) * 10.0 ** generator.uniform(-3, 0)
        if generator.random() < 0.3:
            jacobian_at_tip[:, 1] = 2.0 * jacobian_at_tip[:, 0]
        torque = generator.normal(size=joints)
        deviation = 10.0 ** generator.uniform(-2, 1, joints)
        pose, point = np.eye(4), generator.normal(size=3)
        pose[:3, :3] = Rotation.random(random_state=generator).as_matrix()
        at_point = np.kron(np.eye(2), pose[:3, :3].T) @ jacobian_at_tip
        at_point[:3] += np.cross(at_point[3:], point, axis=0)
        scaled = at_point.T * expected / deviation[:, None]
        left, sizes, directions = np.linalg.svd(scaled)
        weighed = np.zeros(6)  # S U^T (torque / deviation)
        weighed[: len(sizes)] = sizes * (left.T @ (torque / deviation))[: len(sizes)]
        sizes = np.pad(sizes, (0, 6 - len(sizes)))
        wanted = expected * (directions.T @ (weighed / (1.0 + sizes**2)))
        covariance = (directions.T / (1.0 + sizes**2)) @ directions
        wrench, found, undetermined = core.tip_wrench(
            pose, jacobian_at_tip, point, torque, deviation
        )
        np.testing.assert_allclose(wrench, wanted, atol=1e-6 * np.abs(wanted).max())
        np.testing.assert_allclose(found, expected * np.sqrt(np.diag(covariance)), rtol=1e-6)
        hidden = directions[sizes < 1.0]
        assert undetermined.shape == hidden.shape
        np.testing.assert_allclose(undetermined.T @ undetermined, hidden.T @ hidden, atol=1e-6)


def test_an_arm_in_a_singular_position_does_not_determine_the_force_along_it():
    # Stretched out, a force along the arm goes straight into the base.
    ur5, q = public_arm('ur5'), np.zeros(6)
    found = tip_wrench(ur5, q, np.ones(6), np.full(6, 0.1), AT_TIP)
    assert len(found.undetermined) >= 1
    expected = np.repeat([EXPECTED_FORCE, EXPECTED_MOMENT], 3)
    for direction in found.undetermined:
        assert np.linalg.norm(direction) == pytest.approx(1.0)
        shown = jacobian(ur5, q).T @ turned_to_base(ur5, q, expected * direction)
        assert (np.abs(shown) <= 0.1).all()
    assert np.isfinite(found.wrench).all()
    assert (np.abs(found.wrench) < 1e3).all()
