# SPDX-License-Identifier: Apache-2.0
"""Panda and UR5 against Pinocchio at 1000 seeded states."""

import numpy as np
import pytest
from oracles import PinocchioArm, pose_difference, random_states, relative_difference
from robots import public_urdf

import robodyn_ros as rd

ARMS = {
    'panda': ('panda.urdf', 'panda_link0', 'panda_link8'),
    'ur5': ('ur5_robot.urdf', 'base_link', 'tool0'),
}


@pytest.fixture(scope='module', params=ARMS, ids=str)
def pair(request):
    file, base, tip = ARMS[request.param]
    path = public_urdf(file)
    arm = rd.RobotModel.from_urdf(path, base_link=base, tip_link=tip)
    return arm, PinocchioArm.of(path, arm), random_states(arm, 1000, seed=1)


def test_tip_pose(pair):
    arm, oracle, (q, _, _) = pair
    for pose, row in zip(rd.forward_kinematics(arm, q), q):
        distance, angle = pose_difference(pose, oracle.tip_pose(row))
        assert distance < 1e-9
        assert angle < 1e-9


def test_jacobian(pair):
    arm, oracle, (q, _, _) = pair
    for value, row in zip(rd.jacobian(arm, q[:200]), q):
        assert relative_difference(value, oracle.tip_jacobian(row)) < 1e-9


def test_inverse_dynamics(pair):
    arm, oracle, states = pair
    for value, *state in zip(rd.inverse_dynamics(arm, *states), *states):
        assert relative_difference(value, oracle.torque(*state)) < 1e-8


def test_gravity_torque(pair):
    arm, oracle, (q, _, _) = pair
    still = np.zeros(arm.n)
    for value, row in zip(rd.gravity_torque(arm, q), q):
        assert relative_difference(value, oracle.torque(row, still, still)) < 1e-8


def test_mass_matrix(pair):
    arm, oracle, (q, _, _) = pair
    for value, row in zip(rd.mass_matrix(arm, q), q):
        assert relative_difference(value, oracle.mass_matrix(row)) < 1e-8


def test_forward_dynamics(pair):
    arm, oracle, (q, qd, tau) = pair
    for value, *state in zip(rd.forward_dynamics(arm, q, qd, tau), q, qd, tau):
        assert relative_difference(value, oracle.acceleration(*state)) < 1e-8


def test_one_configuration_gives_what_a_batch_gives(pair):
    arm, _, (q, qd, qdd) = pair
    np.testing.assert_allclose(
        rd.inverse_dynamics(arm, q[3], qd[3], qdd[3]),
        rd.inverse_dynamics(arm, q[:5], qd[:5], qdd[:5])[3],
        rtol=0,
        atol=1e-12,
    )
    assert rd.forward_kinematics(arm, q[0]).shape == (4, 4)
    assert rd.jacobian(arm, q[0]).shape == (6, arm.n)
    assert rd.mass_matrix(arm, q[0]).shape == (arm.n, arm.n)
    assert rd.forward_dynamics(arm, q[0], qd[0], qdd[0]).shape == (arm.n,)


def test_tip_wrench_is_met_by_the_transposed_jacobian(pair):
    arm, oracle, (q, qd, qdd) = pair
    wrench = np.random.default_rng(7).normal(size=(20, 6)) * 10
    torques = rd.inverse_dynamics(arm, q[:20], qd[:20], qdd[:20], tip_wrench=wrench)
    for value, w, *state in zip(torques, wrench, q, qd, qdd):
        expected = oracle.torque(*state) + oracle.tip_jacobian(state[0]).T @ w
        assert relative_difference(value, expected) < 1e-8


def test_gravity_in_any_direction():
    file, base, tip = ARMS['panda']
    path = public_urdf(file)
    tilted = rd.RobotModel.from_urdf(path, base_link=base, tip_link=tip, gravity=(3.0, -4.0, 5.0))
    oracle = PinocchioArm.of(path, tilted)
    for state in zip(*random_states(tilted, 20, seed=2)):
        assert (
            relative_difference(rd.inverse_dynamics(tilted, *state), oracle.torque(*state)) < 1e-8
        )
