# SPDX-License-Identifier: Apache-2.0
"""Every chain of every public URDF, root to leaf, and the tree of all, against Pinocchio."""

import pytest
from convert_robots import compare_file
from oracles import PinocchioArm, pose_difference, random_states, relative_difference
from parameter_arms import pinocchio_regressor, ranks
from robots import public_urdfs

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.description.chain import LinkTree
from robodyn_ros.description.urdf import description_of_urdf

NO_ROBOTS = {'ur3.urdf': errors.MalformedUrdf, 'test.urdf': errors.MalformedUrdf}


@pytest.mark.longer
@pytest.mark.repeats(check=4, test=8)
@pytest.mark.parametrize('path', public_urdfs(), ids=lambda path: path.name)
def test_chains_of(path):
    if path.name in NO_ROBOTS:
        with pytest.raises(NO_ROBOTS[path.name]):
            rd.RobotModel.from_urdf(path)
        return
    worst = compare_file(path)
    assert worst.distance < 1e-9
    assert worst.angle < 1e-9
    assert worst.torque < 1e-8
    assert set(worst.refused) <= {'NoChain'}


# Too many joints for the rank of Pinocchio's regressor in a test; the others have 55 at most.
LARGE = 'tiago_dual.urdf'


@pytest.mark.longer
@pytest.mark.repeats(check=4, test=8)
@pytest.mark.parametrize('path', public_urdfs(), ids=lambda path: path.name)
def test_tree_of(path):
    if path.name in NO_ROBOTS:
        return
    tree = LinkTree(description_of_urdf(path))
    tips = [
        link
        for link, joints in tree.child_joints.items()
        if not joints and any(joint.kind != 'fixed' for joint in tree.path(tree.base(None), link))
    ]
    if not tips:  # a flying base alone
        return
    arm = rd.RobotModel.from_urdf(path, tip_link=tips, mimic='independent')
    oracle = PinocchioArm.of(path, arm)
    states = random_states(arm, 4, seed=0)
    torques, masses = rd.inverse_dynamics(arm, *states), rd.mass_matrix(arm, states[0])
    poses = {tip: rd.forward_kinematics(arm, states[0], tip) for tip in tips}
    for k, state in enumerate(zip(*states)):
        for tip in tips:
            difference = pose_difference(poses[tip][k], oracle.link_pose(state[0], tip))
            assert max(difference) < 1e-9
        assert relative_difference(torques[k], oracle.torque(*state)) < 1e-8
        assert relative_difference(masses[k], oracle.mass_matrix(state[0])) < 1e-8
    if path.name != LARGE:
        base = rd.base_parameters(arm)
        states = random_states(arm, 12 + 2 * arm.n, seed=1)
        counts = ranks(pinocchio_regressor(oracle, states))
        # Of two files the axes are parallel, or upright, only up to rounded angles.
        assert base.depends_on_tolerance if len(counts) > 1 else counts == {base.count}


def test_all_public_robots_are_there():
    assert len(public_urdfs()) > 70
