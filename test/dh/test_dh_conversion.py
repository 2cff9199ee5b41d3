# SPDX-License-Identifier: Apache-2.0
"""URDF -> DH table, exactly, for every way in which two axes can lie to each other."""

import functools
import math
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from known_arms import known_arm
from oracles import PinocchioArm, pose_difference, random_states, relative_difference
from robots import random_chain

import robodyn_ros as rd
from robodyn_ros.description.chain import serial_chain
from robodyn_ros.description.urdf import description_of_urdf
from robodyn_ros.dh.axes_to_dh import dh_table
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.spatial import (
    inverse_transform,
    rotation_about,
    rotation_from_rpy,
    rotation_x,
    rotation_y,
    rotation_z,
    transform,
)

STRAIGHT_AXIS = (0.0, 0.0, 1.0)


def axes_pose(frames, axes, prismatic, tip, q):
    """Return the tip pose straight from the joint frames and axes, without any DH table."""
    pose, before = np.eye(4), np.eye(4)
    for frame, axis, slides, position in zip(frames, axes, prismatic, q, strict=True):
        motion = (
            transform(translation=np.asarray(axis) * position)
            if slides
            else transform(rotation_about(axis, position))
        )
        pose = pose @ inverse_transform(before) @ frame @ motion
        before = frame
    return pose @ inverse_transform(before) @ tip


def table_pose(table, q):
    return frame_transforms(table, np.asarray(q, dtype=float))[-1] @ table.tip_transform


def check_pose(table, frames, slides, tip, q, tolerance=1e-12, axes=None):
    axes = [STRAIGHT_AXIS] * len(frames) if axes is None else axes
    expected = axes_pose(frames, axes, slides, tip, q)
    assert max(pose_difference(table_pose(table, q), expected)) < tolerance
    return expected


def standard_pose(table, q):
    """Return the product of standard rows Rz(theta) Tz(d) Tx(a) Rx(alpha) Ry(beta)."""
    pose = table.base_transform
    for i, position in enumerate(q):
        theta = table.theta[i] + (0 if table.prismatic[i] else position)
        d = table.d[i] + (position if table.prismatic[i] else 0)
        pose = pose @ transform(rotation_z(theta), (0, 0, d))
        pose = pose @ transform(
            rotation_x(table.alpha[i]) @ rotation_y(table.beta[i]),
            rotation_x(0) @ (table.a[i], 0, 0),
        )
    return pose @ table.tip_transform


def pair_table(rpy, xyz, kinds='RR', tip=(0.1, 0.2, 0.3)):
    frames = [np.eye(4), transform(rotation_from_rpy(rpy), xyz)]
    slides = [kind == 'P' for kind in kinds]
    tip_frame = frames[1] @ transform(translation=tip)
    table = dh_table(frames, [STRAIGHT_AXIS] * 2, slides, tip_frame)
    for q in ((0.0, 0.0), (0.7, -1.1), (-2.0, 3.0)):
        check_pose(table, frames, slides, tip_frame, q, 1e-11)
    return table


NEARLY = functools.partial(pytest.approx, abs=1e-15)
# How the second axis is turned and where it lies; the sizes of alpha and a of its row.
PAIRS = {
    'parallel': ((0, 0, 0.4), (0.3, 0.4, 0.5), 0, NEARLY(0.5)),
    'antiparallel': ((math.pi, 0, 0.4), (0.3, 0.4, 0.5), math.pi, NEARLY(0.5)),
    'coincident': ((0, 0, 0.4), (0, 0, 0.5), 0, 0),
    'intersecting': ((1.0, 0, 0), (0, 0, 0.5), NEARLY(1.0), 0),
    'skew': ((math.pi / 2, 0, 0), (0.3, 0.4, 0.5), math.pi / 2, NEARLY(0.3)),
}


@pytest.mark.parametrize('relation', PAIRS)
def test_two_axes_have_the_angle_and_the_length_of_their_common_normal(relation):
    rpy, xyz, alpha, a = PAIRS[relation]
    table = pair_table(rpy, xyz)
    assert abs(table.alpha[1]) == alpha
    assert abs(table.a[1]) == a
    assert table.beta[1] == 0
    # What turns or slides about parallel axes does so in one row alone.
    if relation == 'parallel':
        assert table.d[0] == 0
    if relation == 'coincident':
        assert table.theta[0] == 0


@pytest.mark.parametrize('angle', [1.57, 1.5707, 1.5707963])
def test_rounded_right_angles_are_not_snapped(angle):
    table = pair_table((angle, 0, 0), (0.3, 0.4, 0.5))
    assert abs(table.alpha[1]) == pytest.approx(angle, abs=1e-14)
    assert table.beta[1] == 0


def test_rounded_straight_angle_is_not_snapped():
    table = pair_table((3.1415, 0, 0), (0.3, 0.4, 0.5))
    assert table.alpha[1] != math.pi
    assert table.beta[1] != 0


@pytest.mark.parametrize('angle', [1e-11, 1e-9, 1e-6, 1e-3, 0.04])
def test_nearly_parallel_axes_get_beta_and_stay_near(angle):
    for rpy in ((angle, 0, 0), (0, angle, 0), (angle, angle / 3, 0.4), (math.pi - angle, 0, 1.0)):
        table = pair_table(rpy, (0.3, 0.4, 0.5))
        assert np.abs(table.a).max() < 1.0
        assert np.abs(table.d).max() < 1.0
        assert table.beta[1] != 0 or table.alpha[1] not in (0, math.pi, -math.pi)


def test_calibrated_arm_keeps_its_size():
    # Axes 2, 3 and 4 of a factory-calibrated arm: parallel but for a milliradian. Without beta
    # the common normal lies hundreds of metres away.
    frames = [
        transform(rotation_from_rpy((math.pi / 2, 0, 0)), (0, 0, 0.09)),
        transform(rotation_from_rpy((math.pi / 2 + 7e-4, 1e-4, 0)), (0.425, 0, 0.09)),
        transform(rotation_from_rpy((math.pi / 2 - 2e-4, 3e-4, 0)), (0.81, 0.1, 0.09)),
    ]
    tip = transform(translation=(1.0, 0.2, 0.1))
    table = dh_table(frames, [STRAIGHT_AXIS] * 3, [False] * 3, tip)
    assert np.abs(table.d).max() < 1.0
    check_pose(table, frames, [False] * 3, tip, (0.3, -0.8, 1.2))


@pytest.mark.parametrize('kinds', ['PR', 'RP', 'PP', 'RR'])
@pytest.mark.parametrize(
    'rpy', [(0, 0, 0), (math.pi, 0, 0), (math.pi / 2, 0, 0), (0.3, 0, 0.2), (1e-6, 0, 0)]
)
def test_prismatic_joints_beside_any_neighbour(kinds, rpy):
    pair_table(rpy, (0.1, 0.2, 0.3), kinds)


@pytest.mark.parametrize('antiparallel', [False, True])
@pytest.mark.parametrize('kinds', ['PRR', 'RPR', 'RRP'])
def test_revolute_joint_beside_a_parallel_prismatic_one_has_no_offset(kinds, antiparallel):
    turn = (math.pi if antiparallel else 0.0, 0, 0.3)
    side = rotation_from_rpy((math.pi / 2, 0, 0))
    frames = [np.eye(4)]
    for i, step in enumerate(['parallel', 'side'] if kinds != 'RRP' else ['side', 'parallel']):
        rotation = rotation_from_rpy(turn) if step == 'parallel' else side
        frames.append(frames[i] @ transform(rotation, (0.1, 0.2, 0.3)))
    slides = [kind == 'P' for kind in kinds]
    table = dh_table(frames, [STRAIGHT_AXIS] * 3, slides, frames[-1])
    for i in (1, 2):
        if math.sin(table.alpha[i]) < 1e-12 and slides[i] != slides[i - 1]:
            assert table.d[i - 1 if slides[i] else i] == 0
    check_pose(table, frames, slides, frames[-1], (0.2, -0.4, 0.5))


def test_one_joint():
    frame = transform(rotation_from_rpy((0.1, 0.2, 0.3)), (1, 2, 3))
    axis = np.array([0.6, 0.0, 0.8])
    tip = transform(translation=(4, 5, 6))
    for slides in (False, True):
        table = dh_table([frame], [axis], [slides], tip)
        check_pose(table, [frame], [slides], tip, [0.7], 1e-13, [axis])
        assert not table.alpha.any() | table.a.any() | table.theta.any() | table.d.any()


def test_panda_has_the_table_its_maker_prints():
    arm = known_arm('panda')
    right = math.pi / 2
    np.testing.assert_allclose(
        arm.dh.alpha, [0, -right, right, right, -right, right, right], atol=0
    )
    np.testing.assert_allclose(arm.dh.a, [0, 0, 0, 0.0825, -0.0825, 0, 0.088], atol=1e-12)
    np.testing.assert_allclose(arm.dh.d, [0, 0, 0.316, 0, 0.384, 0, 0], atol=1e-12)
    np.testing.assert_allclose(arm.dh.theta, 0, atol=0)
    np.testing.assert_allclose(arm.dh.base_transform[:3, 3], [0, 0, 0.333], atol=1e-12)
    np.testing.assert_allclose(arm.dh.tip_transform[:3, 3], [0, 0, 0.107], atol=1e-12)


def test_first_row_is_zero_and_last_row_has_no_joint_constants():
    for seed in range(20):
        generator = np.random.default_rng(seed)
        table = rd.RobotModel.from_urdf(random_chain(generator, 5), tip_link='tip').dh
        first = (table.alpha[0], table.a[0], table.beta[0], table.theta[0], table.d[0])
        assert first == (0, 0, 0, 0, 0)
        assert table.theta[-1] == table.d[-1] == 0


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('block', range(10))
def test_random_hard_chains_match_pinocchio_in_both_conventions(block):
    for seed in range(50 * block, 50 * block + 50):
        generator = np.random.default_rng(seed)
        n = 30 if seed % 50 == 0 else int(generator.integers(1, 9))
        check_chain(random_chain(generator, n), seed)


def check_chain(text, seed):
    arm = rd.RobotModel.from_urdf(text, tip_link='tip')
    oracle = PinocchioArm.of(text, arm)
    states = random_states(arm, 3, seed)
    standard = arm.dh.standard()
    assert standard.convention == 'standard'
    poses = rd.forward_kinematics(arm, states[0])
    torques = rd.inverse_dynamics(arm, *states)
    for pose, torque, *state in zip(poses, torques, *states, strict=True):
        expected = oracle.tip_pose(state[0])
        assert max(pose_difference(pose, expected)) < 1e-9
        assert max(pose_difference(standard_pose(standard, state[0]), expected)) < 1e-9
        assert relative_difference(torque, oracle.torque(*state)) < 1e-8
    check_that_frames_stay_near(arm.dh, *joint_origins_and_reach(text))


def check_that_frames_stay_near(table, origins, reach):
    for origin in frame_transforms(table, np.zeros(table.n))[:, :3, 3]:
        assert np.linalg.norm(origins - origin, axis=1).min() <= 2 * reach


def joint_origins_and_reach(text):
    chain = serial_chain(description_of_urdf(text), tip_link='tip')
    origins = np.array(list(accumulate(chain.joint_transforms, np.matmul)))[:, :3, 3]
    distances = np.linalg.norm(np.diff(origins, axis=0), axis=1).sum()
    travel = sum(
        joint.limit.upper - joint.limit.lower
        for joint in chain.joints
        if joint.kind == 'prismatic'
    )
    return origins, max(0.1, distances + travel)


angles = st.floats(-math.pi, math.pi)
lengths = st.floats(-1.0, 1.0)
placements = st.tuples(
    st.tuples(lengths, lengths, lengths),
    st.one_of(
        st.tuples(angles, angles, angles),
        st.tuples(st.just(0.0), st.just(0.0), angles),
        st.tuples(st.sampled_from([math.pi / 2, -math.pi / 2, math.pi]), st.just(0.0), angles),
        st.tuples(st.floats(-0.06, 0.06), st.floats(-0.06, 0.06), angles),
    ),
    st.booleans(),
)


@given(st.lists(placements, min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_any_chain_of_axes_converts(steps, seed):
    placed = [transform(rotation_from_rpy(rpy), xyz) for xyz, rpy, _ in steps]
    frames = list(accumulate(placed, np.matmul))
    pose, slides = frames[-1], [step[2] for step in steps]
    table = dh_table(frames, [STRAIGHT_AXIS] * len(steps), slides, pose)
    q = np.random.default_rng(seed).uniform(-3, 3, len(steps))
    expected = check_pose(table, frames, slides, pose, q, 1e-9)
    assert max(pose_difference(standard_pose(table.standard(), q), expected)) < 1e-9
    origins = np.array(frames)[:, :3, 3]
    reach = max(0.1, np.linalg.norm(np.diff(origins, axis=0), axis=1).sum())
    check_that_frames_stay_near(table, origins, reach)


@given(
    st.integers(0, 10_000),
    st.integers(0, 3),
    st.floats(-13, -1),
    st.tuples(angles, angles),
)
@example(seed=1, which=0, exponent=-9.0, direction=(2.2250738585072014e-308,) * 2)
def test_moving_an_axis_a_little_moves_the_tip_a_little(seed, which, exponent, direction):
    text = random_chain(np.random.default_rng(seed), 4)
    chain = serial_chain(description_of_urdf(text), tip_link='tip')
    frames = np.array(list(accumulate(chain.joint_transforms, np.matmul)))
    tip = frames[-1] @ chain.tip_transforms[0]
    slides = [joint.kind == 'prismatic' for joint in chain.joints]
    axes = [joint.axis for joint in chain.joints]
    size = 10.0**exponent
    moved_axes = list(axes)
    turn = rotation_from_rpy((direction[0] * size / 4, direction[1] * size / 4, 0))
    moved_axes[which] = turn @ axes[which]
    q = np.random.default_rng(seed).uniform(-2, 2, 4)
    distance, angle = pose_difference(
        table_pose(dh_table(frames, axes, slides, tip), q),
        table_pose(dh_table(frames, moved_axes, slides, tip), q),
    )
    # An axis that turns by at most `size * pi / 2` turns what it carries by at most 2 sin(q / 2)
    # times that, which is under 2, and shifts it by that times the distance from the axis.
    bound = size * math.pi
    reach = sum(np.linalg.norm(step[:3, 3]) for step in chain.joint_transforms)
    reach += np.linalg.norm(chain.tip_transforms[0, :3, 3]) + 2 * sum(slides)
    assert angle <= bound + 1e-10
    assert distance <= bound * (reach + 2) + 1e-10


def test_printed_table_has_symbols_for_variables_and_right_angles():
    arm = known_arm('panda')
    lines = str(arm.dh).splitlines()
    assert lines[0].split() == ['i', 'α', '[rad]', 'a', '[m]', 'θ', '[rad]', 'd', '[m]']
    assert lines[3].split() == ['3', 'π/2', '0', 'q3', '0.316']
    standard = str(arm.dh.standard()).splitlines()
    assert standard[3].split() == ['3', 'q3', '0.316', '0.0825', 'π/2']


def test_printed_table_shows_beta_only_where_there_is_one_and_prismatic_variables_under_d():
    table = pair_table((1e-3, 0, 0.4), (0.3, 0.4, 0.5), 'RP')
    assert 'β' in str(table)
    assert str(table).splitlines()[2].split()[-1].startswith('q2')
