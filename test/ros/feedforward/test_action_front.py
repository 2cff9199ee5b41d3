# SPDX-License-Identifier: Apache-2.0
"""FollowJointTrajectory over DDS, between rclpy's client and a controller like the real one."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('control_msgs', reason='needs control_msgs')

from action_rig import ABORTED, CANCELED, HAS_INDEX, SUCCEEDED, ActionRig
from control_msgs.action import FollowJointTrajectory
from feedforward_rig import MODEL, POSITION, trajectory

import robodyn_ros as rd

pytestmark = pytest.mark.ros


@pytest.fixture
def rig():
    rig = ActionRig()
    yield rig
    rig.close()


def test_goal_is_passed_on_filled_and_its_result_comes_back(rig):
    handle = rig.ask()
    assert handle.accepted
    (sent,) = rig.controller.goals
    given = rig.goal()
    np.testing.assert_allclose(
        sent.trajectory.points[0].effort, rd.gravity_torque(MODEL, POSITION), atol=1e-9
    )
    assert sent.goal_tolerance == given.goal_tolerance
    assert sent.goal_time_tolerance == given.goal_time_tolerance
    result = handle.get_result_async()
    rig.controller.finish(SUCCEEDED, 0, 'Goal successfully reached!')
    answer = rig.answer(result)
    assert answer.status == SUCCEEDED
    assert answer.result.error_string == 'Goal successfully reached!'
    assert len(rig.controller.goals) == 1


def test_feedback_comes_back_with_the_index_of_the_given_points_if_it_has_one(rig):
    rig.ask(trajectory(POSITION + 0.05, POSITION))
    last = len(rig.controller.goals[0].trajectory.points) - 1
    for index in (0, last):
        rig.controller.tell(index)
    rig.until(lambda: len(rig.feedback) == 2)
    if HAS_INDEX:
        assert [message.feedback.index for message in rig.feedback] == [0, 1]
    assert list(rig.feedback[0].feedback.error.positions) == [0.25] * 7


def test_rejection_is_passed_back(rig):
    rig.controller.accepts = False
    assert not rig.ask().accepted


def test_torque_beyond_a_limit_aborts_with_joint_time_and_torque_and_nothing_is_sent(rig):
    moving = rig.ask()
    bad = trajectory(POSITION + 2.0)
    bad.points[0].time_from_start.sec = 0
    bad.points[0].time_from_start.nanosec = 200_000_000
    answer = rig.answer(rig.ask(bad).get_result_async())
    assert answer.status == ABORTED
    assert answer.result.error_code == FollowJointTrajectory.Result.INVALID_GOAL
    assert (
        'torque at' in answer.result.error_string and 'panda_joint' in answer.result.error_string
    )
    assert len(rig.controller.goals) == 1
    # The goal that runs goes on.
    result = moving.get_result_async()
    rig.controller.finish(SUCCEEDED)
    assert rig.answer(result).status == SUCCEEDED


def test_cancel_goes_through_and_the_arm_is_held_with_gravity_in_effort(rig):
    handle = rig.ask()
    result = handle.get_result_async()
    answer = rig.answer(handle.cancel_goal_async())
    assert len(answer.goals_canceling) == 1
    assert rig.answer(result).status == CANCELED
    rig.until(lambda: len(rig.controller.goals) == 2)
    held = rig.controller.goals[1].trajectory
    np.testing.assert_allclose(
        held.points[-1].effort, rd.gravity_torque(MODEL, POSITION), atol=1e-6
    )


def test_new_goal_preempts_in_the_controller_and_no_hold_comes_between(rig):
    first = rig.ask()
    result = first.get_result_async()
    second = rig.ask()
    answer = rig.answer(result)
    assert (answer.status, answer.result.error_string) == (ABORTED, 'preempted')
    result = second.get_result_async()
    rig.controller.finish(SUCCEEDED)
    assert rig.answer(result).status == SUCCEEDED
    assert len(rig.controller.goals) == 2


def test_controller_that_goes_away_aborts_its_goals(rig):
    result = rig.ask().get_result_async()
    rig.controller.close()
    answer = rig.answer(result)
    assert answer.status == ABORTED
    assert 'went away' in answer.result.error_string
    assert not rig.ask().accepted
