# SPDX-License-Identifier: Apache-2.0
"""Trees of bodies, drawn at random: poses, torques, matrices and base parameters of Pinocchio."""

from functools import cache

import numpy as np
import pytest
from oracles import PinocchioArm, pose_difference, random_states, relative_difference
from parameter_arms import pinocchio_regressor, ranks
from robots import random_chain, random_tree, two_link_urdf
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.dynamics import METHODS
from robodyn_ros.parameters.energy import energy_regressor

TREES = 200
BLOCK = 20
TOLERANCE = 1e-9


@cache
def drawn(seed):
    """Return a tree of two joints to ten, the same in Pinocchio, and states."""
    generator = np.random.default_rng(seed)
    text, tips = random_tree(generator, 2 + seed % 9, generator.choice([0, 0.3, 1]))
    gravity = generator.normal(size=3) * 6
    arm = rd.RobotModel.from_urdf(text, tip_link=tips, gravity=gravity)
    return arm, PinocchioArm.of(text, arm), random_states(arm, 3, seed)


pytestmark = pytest.mark.repeats(check=2)
blocks = pytest.mark.parametrize('first', range(0, TREES, BLOCK))


def trees(first):
    return map(drawn, range(first, first + BLOCK))


@blocks
def test_tips_are_where_pinocchio_has_them(first):
    for arm, oracle, (q, _, _) in trees(first):
        for tip in arm.tip_links:
            poses, rows = rd.forward_kinematics(arm, q, tip), rd.jacobian(arm, q, tip)
            for k, position in enumerate(q):
                difference = pose_difference(poses[k], oracle.link_pose(position, tip))
                assert max(difference) < TOLERANCE
                expected = oracle.link_jacobian(position, tip)
                assert relative_difference(rows[k], expected) < TOLERANCE


@blocks
def test_every_formulation_gives_the_torque_under_wrenches_on_all_tips(first):
    for arm, oracle, states in trees(first):
        generator = np.random.default_rng(first)
        wrenches = {tip: 10 * generator.normal(size=(3, 6)) for tip in arm.tip_links}
        expected = [oracle.torque(*state) for state in zip(*states)]
        for k, q in enumerate(states[0]):
            for tip, wrench in wrenches.items():
                expected[k] = expected[k] + oracle.link_jacobian(q, tip).T @ wrench[k]
        for method in METHODS:
            torque = rd.inverse_dynamics(arm, *states, method=method, tip_wrench=wrenches)
            assert relative_difference(torque, np.array(expected)) < TOLERANCE, method
        in_order = np.concatenate([wrenches[tip] for tip in arm.tip_links], axis=1)
        np.testing.assert_array_equal(
            rd.inverse_dynamics(arm, *states, tip_wrench=in_order),
            rd.inverse_dynamics(arm, *states, tip_wrench=wrenches),
        )


@blocks
def test_matrices_and_derivatives_are_those_of_pinocchio(first):
    for arm, oracle, (q, qd, qdd) in trees(first):
        masses, coriolis = rd.mass_matrix(arm, q), rd.coriolis_matrix(arm, q, qd)
        symbols = rd.christoffel_symbols(arm, q)
        derivatives = rd.inverse_dynamics_derivatives(arm, q, qd, qdd)
        accelerations = rd.forward_dynamics(arm, q, qd, qdd)
        kinetic = energy_regressor(arm, q, qd)[0] @ arm.inertial_parameters.ravel()
        for k, state in enumerate(zip(q, qd, qdd)):
            mass = oracle.mass_matrix(q[k])
            assert relative_difference(masses[k], mass) < TOLERANCE
            expected = oracle.coriolis_matrix(q[k], qd[k]) @ qd[k]
            assert relative_difference(coriolis[k] @ qd[k], expected) < TOLERANCE
            # Those of the symbols, of which two joints of two branches have none.
            assert relative_difference(coriolis[k], symbols[k] @ qd[k]) < TOLERANCE
            for found, wanted in zip(derivatives, oracle.torque_derivatives(*state)):
                assert relative_difference(found[k], wanted) < TOLERANCE
            net = qdd[k] - oracle.torque(q[k], qd[k], np.zeros(arm.n))
            assert relative_difference(mass @ accelerations[k], net) < TOLERANCE
            assert relative_difference(kinetic[k], qd[k] @ mass @ qd[k] / 2) < TOLERANCE


@blocks
def test_base_parameters_are_as_many_as_pinocchios_regressor_has_rank(first):
    apart = []
    for seed in range(first, first + BLOCK):
        arm, oracle, _ = drawn(seed)
        states = random_states(arm, 40 + 2 * arm.n, seed)
        base = rd.base_parameters(arm)
        counts = ranks(pinocchio_regressor(oracle, states))
        expected = np.array([oracle.torque(*state) for state in zip(*states)])
        assert relative_difference(base.regressor(*states) @ base.values, expected) < TOLERANCE
        regrouped = arm.with_inertial_parameters(base.to_inertial_parameters())
        torque = rd.inverse_dynamics(regrouped, *states)
        assert relative_difference(torque, expected) < TOLERANCE
        if len(counts) > 1:  # axes that are nearly parallel, as among the random chains
            apart.append(seed)
            assert base.depends_on_tolerance, seed
        else:
            assert counts == {base.count}, seed
    assert len(apart) <= BLOCK / 3, apart


# --- which joints, in which order, and what is refused -------------------------------------------


def hand(*more, fingers=('thumb', 'index', 'little')):
    """Return an arm of one joint whose hand has a finger of two joints for each name."""
    parts = [link('base'), link('palm', 0.5), joint('shoulder', 'base', 'palm', axis=(0, 1, 0))]
    for k, finger in enumerate(fingers):
        near, tip = f'{finger}_near', f'{finger}_tip'
        parts += [link(near, 0.1, (0.02, 0, 0)), link(tip, 0.05, (0.01, 0, 0.01))]
        place = {'xyz': (0.1, 0.03 * k, 0.01 * k), 'rpy': (0.3 * k, 0, 0.2 * k)}
        parts.append(joint(f'{finger}_1', 'palm', near, **place))
        parts.append(joint(f'{finger}_2', near, tip, xyz=(0.04, 0, 0), axis=(0, 1, 0)))
    return robot(*parts, *more)


def test_joints_come_depth_first_in_the_order_of_the_tips():
    arm = rd.RobotModel.from_urdf(hand(), tip_link=['little_tip', 'palm', 'thumb_tip'])
    assert arm.joint_names == ('shoulder', 'little_1', 'little_2', 'thumb_1', 'thumb_2')
    assert arm.parents.tolist() == [-1, 0, 1, 0, 3]
    assert arm.dh.tips.tolist() == [2, 0, 4]
    assert arm.dh.structure == '3R + 2R'
    assert arm.link_frames['index_tip'][0] == 0  # a finger that is not asked for is held


def test_a_subtree_stays_together_whatever_the_order_of_the_tips():
    text = hand(link('other', 0.2), joint('other_joint', 'base', 'other'))
    arm = rd.RobotModel.from_urdf(text, tip_link=['thumb_tip', 'other', 'index_tip'])
    assert arm.joint_names[:5] == ('shoulder', 'thumb_1', 'thumb_2', 'index_1', 'index_2')
    assert arm.parents.tolist() == [-1, 0, 1, 0, 3, -1]
    assert arm.dh.ends.tolist() == [5, 3, 3, 5, 5, 6]


def test_one_tip_in_a_sequence_is_a_chain():
    text = random_chain(np.random.default_rng(1), 5)
    one = rd.RobotModel.from_urdf(text, tip_link='tip')
    assert rd.RobotModel.from_urdf(text, tip_link=['tip']) == one
    assert one.dh.is_chain and one.parents.tolist() == [-1, 0, 1, 2, 3]


@pytest.mark.parametrize('tips', [[], ['link2', 'link2']])
def test_tips_are_one_or_more_each_once(tips):
    with pytest.raises(rd.InvalidArgument, match='one link or more, each once'):
        rd.RobotModel.from_urdf(two_link_urdf(), tip_link=tips)


def test_a_tree_has_no_tip_that_is_meant_without_a_name():
    arm = rd.RobotModel.from_urdf(hand(), tip_link=['thumb_tip', 'index_tip'])
    still = np.zeros(arm.n)
    for call in (
        lambda: rd.forward_kinematics(arm, still),
        lambda: rd.jacobian(arm, still),
        lambda: arm.with_payload(rd.Payload(1.0)),
    ):
        with pytest.raises(rd.InvalidArgument, match="one of 'thumb_tip', 'index_tip'"):
            call()
    with pytest.raises(rd.InvalidArgument, match=r'shape \(12,\)'):
        rd.inverse_dynamics(arm, still, still, still, tip_wrench=np.zeros(6))
    with pytest.raises(rd.NoSuchName, match="one of 'thumb_tip', 'index_tip'"):
        rd.inverse_dynamics(arm, still, still, still, tip_wrench={'palm': np.zeros(6)})


def test_a_tree_has_no_standard_table():
    arm = rd.RobotModel.from_urdf(hand(), tip_link=['thumb_tip', 'index_tip'])
    with pytest.raises(rd.InvalidArgument, match='modified for a tree'):
        arm.dh.standard()


def test_a_payload_is_carried_on_any_tip():
    text = hand()
    tips = ['thumb_tip', 'index_tip']
    load = rd.Payload(0.7, (0.02, -0.03, 0.08), np.diag([1e-3, 2e-3, 2.5e-3]), link='index_tip')
    arm = rd.RobotModel.from_urdf(text, tip_link=tips)
    q, qd, qdd = random_states(arm, 5, seed=1)
    # The same as the wrench that a body on this tip takes: here of its weight and of nothing else.
    still = np.zeros_like(q)
    pose = rd.forward_kinematics(arm, q, 'index_tip')
    lever = pose[:, :3, :3] @ load.center_of_mass
    force = np.broadcast_to([0.0, 0.0, 9.81 * load.mass], lever.shape)
    wrench = np.concatenate([force, np.cross(lever, force)], axis=1)
    np.testing.assert_allclose(
        rd.gravity_torque(arm.with_payload(load), q),
        rd.inverse_dynamics(arm, q, still, still, tip_wrench={'index_tip': wrench}),
        atol=1e-12,
    )


def test_the_printed_table_has_the_row_before_each_one_and_the_turn_of_second_children():
    arm = rd.RobotModel.from_urdf(hand(), tip_link=['thumb_tip', 'index_tip'])
    header, *rows = str(arm.dh).splitlines()
    assert header.split() == 'i parent γ [rad] b [m] α [rad] a [m] θ [rad] d [m]'.split()
    assert [row.split()[1] for row in rows] == ['0', '1', '2', '1', '4']
    chain = rd.RobotModel.from_urdf(hand(), tip_link='thumb_tip')
    assert 'γ' not in str(chain.dh)
