# SPDX-License-Identifier: Apache-2.0
"""feedforward holds the arm when the controller becomes active, if told of its manager."""

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from feedforward_rig import MODEL, POSITION, Rig, trajectory
from rclpy.qos import DurabilityPolicy, QoSProfile
from trajectory_msgs.msg import JointTrajectory

import robodyn_ros as rd
from robodyn_ros.ros.controller_activity import UNKNOWN, ControllerActivity

pytestmark = pytest.mark.ros

CONTROLLER = 'joint_trajectory_controller'
STATES = {'unconfigured': 1, 'inactive': 2, 'active': 3}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
OFFER = 2.5  # [s], of which the hold is offered once each


@pytest.fixture
def rig():
    rig = Rig()
    rig.until(lambda: rig.node.count_subscribers(rig.node._output.topic_name) > 0)
    yield rig
    rig.close()


@pytest.fixture
def activity(rig):
    """Return the node's ear for the controller manager, without the messages of ros2_control."""
    activity = ControllerActivity.__new__(ControllerActivity)
    activity.controller, activity.state = CONTROLLER, UNKNOWN
    activity._on_begin = rig.node._on_begin
    rig.node._activity = activity
    return activity


def tell(activity, **states):
    controllers = [
        SimpleNamespace(name=name, state=SimpleNamespace(id=STATES[label], label=label))
        for name, label in states.items()
    ]
    activity._on_activity(SimpleNamespace(controllers=controllers))


def assert_it_holds(sent):
    assert sent.joint_names == list(MODEL.joint_names)
    for point in sent.points:
        np.testing.assert_allclose(point.positions, POSITION, atol=1e-12)
        np.testing.assert_allclose(point.effort, rd.gravity_torque(MODEL, POSITION), atol=1e-9)


@pytest.mark.longer
def test_arm_is_held_when_the_controller_becomes_active(rig, activity):
    rig.drive()
    tell(activity, joint_trajectory_controller='inactive')
    count = len(rig.out)  # no joint state comes from here on
    tell(activity, joint_trajectory_controller='active')
    rig.until(lambda: len(rig.out) > count)
    assert_it_holds(rig.out[-1])
    count = len(rig.out)
    tell(activity, joint_trajectory_controller='active', another='active')
    rig.spin(OFFER)
    assert len(rig.out) == count  # a motion that is under way would end


def test_hold_at_activation_begins_where_the_arm_is_whatever_was_sent_before(rig, activity):
    rig.drive()
    tell(activity, joint_trajectory_controller='active')
    rig.send(trajectory(POSITION + 0.005))
    tell(activity, joint_trajectory_controller='inactive')
    count = len(rig.out)
    tell(activity, joint_trajectory_controller='active')
    rig.until(lambda: len(rig.out) > count)
    assert_it_holds(rig.out[-1])


def test_trajectory_that_an_inactive_controller_ignored_is_not_gone_on_from(rig, activity):
    rig.drive()
    tell(activity, joint_trajectory_controller='inactive')
    for _ in range(2):
        sent = rig.send(trajectory(POSITION + 0.005))
        np.testing.assert_allclose(sent.points[0].positions, POSITION, atol=1e-12)


def test_only_an_activity_that_is_known_and_no_other_sender_make_it_the_only_command(
    rig, activity
):
    rig.drive()

    def is_only_command():
        rig.send(trajectory(POSITION))
        return rig.node._filler.sent.is_only_command

    assert not is_only_command()
    tell(activity, joint_trajectory_controller='active')
    assert is_only_command()
    topic = rig.node._output.topic_name
    other = rig.tester.create_publisher(JointTrajectory, topic, 10)
    rig.until(lambda: rig.node.count_publishers(topic) == 2)
    assert not is_only_command()
    rig.tester.destroy_publisher(other)
    rig.until(lambda: rig.node.count_publishers(topic) == 1)
    assert is_only_command()


def test_arm_is_held_with_the_first_state_where_none_had_come(rig, activity):
    tell(activity, joint_trajectory_controller='inactive')
    tell(activity, joint_trajectory_controller='active')
    rig.spin(0.3)
    assert rig.out == []
    rig.drive()
    rig.until(lambda: rig.out)
    assert_it_holds(rig.out[0])


def test_trajectory_that_was_sent_meanwhile_is_not_ended_by_the_hold(rig, activity):
    rig.drive()
    tell(activity, joint_trajectory_controller='inactive')
    rig.node._is_hold_due = True  # as if it had become active while the states were stale
    rig.trajectories.publish(trajectory(POSITION + 0.2))
    rig.until(lambda: not rig.node._is_hold_due)
    rig.until(lambda: rig.out)
    rig.drive()
    rig.tell_state()
    rig.spin(0.3)
    np.testing.assert_allclose(rig.out[-1].points[-1].positions, POSITION + 0.2)


@pytest.mark.longer
@pytest.mark.parametrize('states', [{}, {'joint_trajectory_controller': 'inactive'}])
def test_hold_is_offered_while_the_controller_is_known_not_to_be_active(rig, activity, states):
    rig.drive()
    tell(activity, **states)
    rig.until(lambda: len(rig.out) > 1, rig.tell_state)
    assert_it_holds(rig.out[-1])


@pytest.mark.longer
@pytest.mark.parametrize('states', [None, {'joint_trajectory_controller': 'active'}])
def test_controller_that_may_be_moving_the_arm_is_left_alone(rig, activity, states):
    # What was active before the node was there is asked for nothing, nor what nobody tells of.
    rig.drive()
    if states is not None:
        tell(activity, **states)
    rig.spin(OFFER)
    assert rig.out == []


@pytest.mark.longer
def test_nothing_is_sent_unasked_where_no_manager_is_given(rig):
    assert rig.node._activity is None
    rig.drive()
    rig.spin(OFFER)
    assert rig.out == []


@pytest.mark.skipif(
    find_spec('controller_manager_msgs') is None, reason='needs controller_manager_msgs'
)
def test_what_the_manager_publishes_is_received():
    from controller_manager_msgs.msg import ControllerManagerActivity, NamedLifecycleState

    rig = Rig(controller_manager='controller_manager')
    try:
        publisher = rig.tester.create_publisher(
            ControllerManagerActivity, 'controller_manager/activity', LATCHED
        )
        for label in ('inactive', 'active'):
            each = NamedLifecycleState(name=CONTROLLER)
            each.state.id, each.state.label = STATES[label], label
            publisher.publish(ControllerManagerActivity(controllers=[each]))
            rig.until(lambda label=label: rig.node._activity.state == label)
        rig.drive()
        rig.until(lambda: rig.out)
        assert_it_holds(rig.out[-1])
    finally:
        rig.close()
