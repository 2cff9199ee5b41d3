# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians of every link of public arms, sensors and fingers too."""

import numpy as np
import pytest
from oracles import PinocchioArm, pose_difference, random_states
from robots import public_urdf, two_link_urdf

import robodyn_ros as rd

# With what is fixed to them or held beside the chain: a gripper's fingers, flanges, a camera.
ARMS = {
    'panda with its hand': ('panda.urdf', 'panda_link0', 'panda_link8', {}),
    'panda with open fingers': (
        'panda.urdf',
        'panda_link0',
        'panda_link8',
        {'panda_finger_joint1': 0.03, 'panda_finger_joint2': 0.03},
    ),
    'ur5': ('ur5_robot.urdf', 'base_link', 'tool0', {}),
    'an arm of a tree': ('tiago.urdf', 'torso_lift_link', 'arm_tool_link', {}),
    'a chain that ends early': ('panda.urdf', 'panda_link1', 'panda_link5', {}),
}


@pytest.fixture(scope='module', params=ARMS, ids=str)
def pair(request):
    file, base, tip, locked = ARMS[request.param]
    path = public_urdf(file)
    arm = rd.RobotModel.from_urdf(path, base_link=base, tip_link=tip, locked_positions=locked)
    return arm, PinocchioArm.of(path, arm, locked)


def test_pose_of_every_link_is_pinocchios(pair):
    arm, oracle = pair
    q, _, _ = random_states(arm, 5, seed=3)
    assert len(arm.link_frames) > arm.n
    for link in arm.link_frames:
        for pose, row in zip(rd.forward_kinematics(arm, q, link), q, strict=True):
            assert max(pose_difference(pose, oracle.link_pose(row, link))) < 1e-9, link


def test_jacobian_of_every_link_is_pinocchios(pair):
    arm, oracle = pair
    q, _, _ = random_states(arm, 5, seed=4)
    for link in arm.link_frames:
        for value, row in zip(rd.jacobian(arm, q, link), q, strict=True):
            np.testing.assert_allclose(value, oracle.link_jacobian(row, link), atol=1e-9)


def test_the_tip_is_the_link_where_none_is_named(pair):
    arm, _ = pair
    q, _, _ = random_states(arm, 3, seed=6)
    for function in (rd.forward_kinematics, rd.jacobian):
        assert (function(arm, q) == function(arm, q, arm.tip_link)).all()
        assert (function(arm, q) == function(arm, q, link=None)).all()


def test_links_of_the_planar_arm_are_where_trigonometry_has_them():
    arm = rd.RobotModel.from_urdf(two_link_urdf(length=0.5))
    q = np.array([0.3, 0.4])
    # Frame of link2: at the end of link1, turned by both angles.
    pose = rd.forward_kinematics(arm, q, 'link2')
    np.testing.assert_allclose(pose[:3, 3], [0.5 * np.cos(0.3), 0.5 * np.sin(0.3), 0], atol=1e-15)
    np.testing.assert_allclose(pose[:2, 0], [np.cos(0.7), np.sin(0.7)], atol=1e-15)
    np.testing.assert_allclose(rd.jacobian(arm, q, 'link1'), [[0, 0]] * 5 + [[1, 0]], atol=1e-15)
    assert (rd.forward_kinematics(arm, q, 'base') == np.eye(4)).all()
    assert (rd.jacobian(arm, q, 'base') == 0).all()


def test_a_pose_of_what_stands_still_is_the_callers_own():
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    rd.forward_kinematics(arm, [0, 0], 'base')[0, 3] = 5.0
    assert rd.forward_kinematics(arm, [0, 0], 'base')[0, 3] == 0.0


def test_a_link_that_is_not_there_is_answered_by_those_that_are():
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    for wrong in ('gripper', 2, ['link1']):
        for function in (rd.forward_kinematics, rd.jacobian):
            with pytest.raises(rd.NoSuchName, match="argument link: .*'base', 'link1', 'link2'"):
                function(arm, [0, 0], wrong)
