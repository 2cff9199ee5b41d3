# SPDX-License-Identifier: Apache-2.0
"""Targets of the tip: what they are checked for, and where a trajectory of poses is in time."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import to
from scipy.spatial.transform import Rotation, Slerp

from robodyn_ros.control import control_stack
from robodyn_ros.control.command_pipeline import NotFollowing
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.settings import checked
from robodyn_ros.control.tip_target import (
    MOST_POSES,
    PoseTrajectory,
    RejectedTarget,
    TipPose,
    checked_times,
)
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.kinematics import forward_kinematics, tip_jacobian

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
HERE = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])


def test_a_pose_between_two_is_on_the_line_and_on_the_shorter_arc():
    turns = Rotation.from_rotvec([[0.0, 0.0, 0.2], [1.0, -2.0, 0.5]])
    xyzw = turns.as_quat()
    one = TipPose.checked([0.0, 1.0, 2.0], xyzw[0])
    other = TipPose.checked([1.0, 1.0, 0.0], -xyzw[1])
    poses = PoseTrajectory((2.0, 4.0), (one, other))
    for time in (2.0, 2.3, 3.0, 3.9, 4.0):
        found = poses.at(time)
        fraction = (time - 2.0) / 2.0
        np.testing.assert_allclose(
            found.position, [fraction, 1.0, 2.0 - 2.0 * fraction], atol=1e-15
        )
        expected = Slerp([2.0, 4.0], turns)(time)
        assert (Rotation.from_quat(found.xyzw) * expected.inv()).magnitude() < 1e-12
    assert poses.at(0.0) is one
    assert poses.at(9.0) is other


def test_a_quaternion_is_normalised_or_refused_by_its_norm():
    found = TipPose.checked((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0009))
    assert found.xyzw.tolist() == [0.0, 0.0, 0.0, 1.0]
    with pytest.raises(RejectedTarget, match=r'norm of the quaternion x, y, z, w: 0;.*1 with'):
        TipPose.checked((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))
    with pytest.raises(RejectedTarget, match=r'norm .*: 1\.002;'):
        TipPose.checked((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.002))


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_a_pose_that_is_not_finite_is_refused(bad):
    for numbers in ([bad, 0.0, 0.0, *UPRIGHT], [0.0, 0.0, 0.0, 0.0, bad, 0.0, 1.0]):
        with pytest.raises(RejectedTarget, match='finite numbers'):
            TipPose.checked(numbers[:3], numbers[3:])


@pytest.mark.parametrize(
    'times', [[], [0.0] * (MOST_POSES + 1), [1.0, 1.0], [2.0, 1.0], [-1.0], [np.nan]]
)
def test_times_that_are_none_or_do_not_increase_are_refused(times):
    with pytest.raises(RejectedTarget):
        checked_times(times)


class Held:
    """A pipeline in an impedance whose states say that the arm stands still."""

    def __init__(self, urdf, **parameters):
        given = {'urdf_file': urdf, 'tip_link': 'panda_link8', 'algorithm': 'newton_euler'}
        self.settings = checked({**given, 'mode': 'cartesian_impedance', **parameters})
        self.stack = control_stack.build_control_stack(self.settings, None)
        self.pipeline, self.now = self.stack.pipeline, 100.0
        self.pipeline.enable(self.now)

    def run(self, cycles=1):
        """Do some cycles, 10 ms apart."""
        for _ in range(cycles):
            self.now += 0.01
            self.stack.joint_states.receive(
                self.stack.model.joint_names,
                HERE,
                np.zeros(7),
                received=self.now,
                stamp=self.now,
                age=0.0,
            )
            state = self.stack.joint_states.take()
            assert isinstance(state, MeasuredState)
            command = self.pipeline.step(state, self.now)
        return command


@pytest.fixture
def held(panda_urdf):
    found = Held(panda_urdf)
    found.run(60)
    return found


def test_the_reference_is_where_the_tip_is_held(held):
    pose = forward_kinematics(held.stack.model, HERE)
    np.testing.assert_allclose(held.pipeline.tip_reference.position, pose[:3, 3], atol=1e-6)


def test_a_wrench_is_rendered_and_ends_when_it_is_stale(held):
    before = held.run().torque
    held.pipeline.add_wrench([0.0, 0.0, 10.0, 0.0, 0.0, 0.0], held.now)
    timeout = held.settings.state_timeout
    held.run(round(timeout / 0.01))
    assert 5.0 < held.pipeline.spring_wrench[2] < 10.0
    assert np.abs(held.run().torque - before).max() > 1.0
    held.run(60)
    np.testing.assert_allclose(held.run().torque, before, atol=0.01)


def test_a_wrench_in_axes_of_the_tip_is_turned(held):
    rotation = forward_kinematics(held.stack.model, HERE)[:3, :3]
    for _ in range(40):
        held.pipeline.add_wrench([5.0, 0.0, 0.0, 0.0, 0.0, 2.0], held.now, is_relative=True)
        held.run()
    expected = np.concatenate([rotation @ [5.0, 0.0, 0.0], rotation @ [0.0, 0.0, 2.0]])
    np.testing.assert_allclose(held.pipeline.spring_wrench, expected, atol=0.02)


@pytest.mark.parametrize('stiffness', [400.0, 1e5])
def test_a_wrench_acts_in_full_however_little_of_the_stiffness_the_rate_leaves(
    panda_urdf, stiffness
):
    held = Held(panda_urdf, **{'impedance.tip_stiffness': [stiffness] * 6})
    before = held.run(60).torque
    for _ in range(60):
        held.pipeline.add_wrench([0.0, 5.0, 0.0, 0.0, 0.0, 2.0], held.now)
        added = held.run().torque - before
    jacobian = tip_jacobian(held.stack.model, HERE)
    np.testing.assert_allclose(added, jacobian.T @ [0.0, 5.0, 0.0, 0.0, 0.0, 2.0], atol=1e-3)


@pytest.mark.parametrize(
    ('wrench', 'words'),
    [
        ([np.nan, 0, 0, 0, 0, 0], 'target wrench: .*finite numbers'),
        ([40.0, 40.0, 0, 0, 0, 0], r'force: 56\.5685 N; .*impedance.largest_force = 50 N'),
        ([0, 0, 0, 0, 6.0, 0], r'moment: 6 N m; .*impedance.largest_moment = 5 N m'),
    ],
)
def test_a_wrench_out_of_bounds_is_refused(held, wrench, words):
    with pytest.raises(RejectedTarget, match=words):
        held.pipeline.add_wrench(wrench, held.now)


def test_a_target_beyond_the_reach_is_refused(held):
    with pytest.raises(RejectedTarget, match='the reach of the arm'):
        held.pipeline.aim_tip(TipPose.checked([3.0, 0.0, 0.0], UPRIGHT))


@pytest.mark.parametrize('axis', range(3))
def test_the_core_itself_takes_no_target_that_is_no_number(held, axis):
    for bad in (np.nan, np.inf):
        position = np.where(np.arange(3) == axis, bad, 0.0)
        assert held.pipeline._core.aim_tip(position, UPRIGHT).cause.name == 'not_finite'


def test_a_trajectory_of_poses_with_one_beyond_the_reach_is_refused_and_the_target_stays(held):
    near = TipPose.checked([0.0, 0.0, 0.05], UPRIGHT)
    held.pipeline.aim_tip(near, is_relative=True)
    for far in ([9.0, 0.0, 0.0], [0.0, 0.0, 3.0]):
        with pytest.raises(RejectedTarget, match='the reach of the arm'):
            held.pipeline.follow_poses(
                [1.0, 2.0], [near, TipPose.checked(far, UPRIGHT)], is_relative=True
            )
    assert held.pipeline._core.has_tip_target
    assert not held.pipeline.is_following_poses


def test_a_pose_in_the_frame_of_the_tips_reference_is_that_of_the_two_transforms(held):
    reference, turn = held.pipeline.tip_reference, Rotation.random(random_state=1)
    given = [-0.3, 0.02, 0.01]
    refusal, position, xyzw = held.pipeline._core.pose_in_base(given, turn.as_quat(), True)
    assert refusal.cause.name == 'none'
    first = Rotation.from_quat(reference.xyzw)
    np.testing.assert_allclose(position, reference.position + first.apply(given), atol=1e-15)
    assert ((first * turn).inv() * Rotation.from_quat(xyzw)).magnitude() < 1e-12


def test_the_reference_goes_to_a_target_critically_damped(held):
    begin = held.pipeline.tip_reference.position
    held.pipeline.aim_tip(TipPose.checked([0.0, 0.0, 0.005], UPRIGHT), is_relative=True)
    ways = []
    for _ in range(30):
        held.run()
        ways.append(np.linalg.norm(held.pipeline.tip_reference.position - begin))
    # v' = 4 k (k e - v), k = 4 / s, from rest: e / e0 = (1 + 2 k t) exp(-2 k t); steps of 10 ms.
    time = 0.01 * np.arange(1, 31)
    expected = 0.005 * (1.0 - (1.0 + 8.0 * time) * np.exp(-8.0 * time))
    np.testing.assert_allclose(ways[9:], expected[9:], rtol=0.1)


def test_nothing_is_relative_to_a_reference_that_no_cycle_has_computed(panda_urdf):
    held = Held(panda_urdf, mode='computed_torque')
    held.run(60)
    names = held.stack.model.joint_names
    trajectory = Trajectory.from_points(names, [0.0], [list(HERE)], [()], [()], [()])
    held.pipeline.follow(trajectory)
    held.run(2)
    held.pipeline.settings = replace(held.pipeline.settings, mode='cartesian_impedance')
    near = TipPose.checked([0.0, 0.0, 0.05], UPRIGHT)
    with pytest.raises(NotFollowing, match='nothing is followed'):
        held.pipeline.aim_tip(near, is_relative=True)
    with pytest.raises(NotFollowing, match='nothing is followed'):
        held.pipeline.follow_poses([1.0], [near])
    with pytest.raises(NotFollowing, match='nothing is followed'):
        held.pipeline.add_wrench([0.0, 0.0, 5.0, 0.0, 0.0, 0.0], held.now, is_relative=True)


def test_a_mode_without_a_spring_at_the_tip_refuses_a_target(panda_urdf):
    held = Held(panda_urdf, mode='joint_impedance')
    held.run(60)
    with pytest.raises(NotFollowing, match='joint_impedance: set parameter mode to cartesian_imp'):
        held.pipeline.aim_tip(TipPose.checked([0.3, 0.0, 0.5], UPRIGHT))
    held.pipeline.add_wrench([1.0, 0, 0, 0, 0, 0], held.now)  # any impedance adds one


def test_nothing_followed_and_nothing_active_refuse_a_target(panda_urdf):
    held = Held(panda_urdf)
    target = TipPose.checked([0.3, 0.0, 0.5], UPRIGHT)
    with pytest.raises(NotFollowing, match='nothing is followed'):
        held.pipeline.aim_tip(target)
    held.pipeline.disable()
    with pytest.raises(NotFollowing, match='nothing is commanded'):
        held.pipeline.aim_tip(target)
    soft = Held(panda_urdf, **{'impedance.tip_stiffness': (0.0,) * 6})
    soft.run(60)
    with pytest.raises(NotFollowing, match=r'impedance\.tip_stiffness'):
        soft.pipeline.aim_tip(target)


@pytest.mark.longer
def test_a_contact_that_stops_ends_poses_and_wrench_until_it_is_acknowledged(held):
    reference = held.pipeline.tip_reference
    target = TipPose.checked([0.0, 0.0, 0.1], UPRIGHT)
    held.pipeline.follow_poses([1.0], [target], is_relative=True)
    held.pipeline.add_wrench([0.0, 0.0, 10.0, 0.0, 0.0, 0.0], held.now)
    held.run(20)
    held.pipeline.react_to_contact('stop', 'contact at a test')
    assert not held.pipeline.is_following_poses
    moved = held.pipeline.tip_reference.position
    held.run(100)
    assert np.linalg.norm(held.pipeline.tip_reference.position - moved) < 0.02
    assert np.linalg.norm(held.pipeline.tip_reference.position - reference.position) < 0.06
    for refused in (
        lambda: held.pipeline.aim_tip(target),
        lambda: held.pipeline.add_wrench(np.zeros(6), held.now),
    ):
        with pytest.raises(RejectedTarget, match='after contact at a test'):
            refused()
    held.pipeline.cancel()
    held.run(10)
    held.pipeline.aim_tip(target, is_relative=True)


def test_a_contact_that_stops_ends_a_wrench_that_is_not_stale(panda_urdf):
    held = Held(panda_urdf, state_timeout=5.0)
    before = held.run(60).torque
    held.pipeline.add_wrench([0.0, 0.0, 10.0, 0.0, 0.0, 0.0], held.now)
    assert np.abs(held.run(60).torque - before).max() > 1.0
    held.pipeline.react_to_contact('stop', 'contact at a test')
    np.testing.assert_allclose(held.run(60).torque, before, atol=0.01)


@pytest.mark.longer
def test_a_tip_on_its_way_back_stops_where_it_is_after_a_contact(held):
    begin = held.pipeline.tip_reference.position
    held.pipeline.aim_tip(TipPose.checked([0.0, 0.0, 0.1], UPRIGHT), is_relative=True)
    held.run(200)
    held.pipeline.follow(to(HERE, 2.0, held.stack.model.joint_names))  # gives the target up
    held.run(10)
    away = held.pipeline.tip_reference.position
    held.pipeline.react_to_contact('stop', 'contact at a test')
    held.run(200)
    assert np.linalg.norm(away - begin) > 0.08
    assert np.linalg.norm(held.pipeline.tip_reference.position - away) < 1e-3


def test_a_stale_state_ends_a_trajectory_of_poses(held):
    target = TipPose.checked([0.0, 0.0, 0.1], UPRIGHT)
    held.pipeline.follow_poses([5.0], [target], is_relative=True)
    held.run(20)
    held.now += 1.0
    assert held.pipeline.watchdog(held.now) is not None
    held.run(60)
    assert not held.pipeline.is_following_poses
    pose = forward_kinematics(held.stack.model, HERE)
    np.testing.assert_allclose(held.pipeline.tip_reference.position, pose[:3, 3], atol=1e-6)


@pytest.mark.longer
def test_poses_start_from_the_reference_and_at_their_stamp(held):
    begin = held.pipeline.tip_reference.position
    target = TipPose.checked(begin + [0.0, 0.0, 0.04], held.pipeline.tip_reference.xyzw)
    held.pipeline.follow_poses([1.0], [target], start=held.now + 1.0)
    held.run(90)
    np.testing.assert_allclose(held.pipeline.tip_reference.position, begin, atol=1e-4)
    held.run(80)
    assert 0.01 < held.pipeline.tip_reference.position[2] - begin[2] < 0.035
    held.run(150)
    np.testing.assert_allclose(held.pipeline.tip_reference.position, target.position, atol=1e-3)
    with pytest.raises(RejectedTarget, match='over'):
        held.pipeline.follow_poses([1.0], [target], start=held.now - 5.0)
