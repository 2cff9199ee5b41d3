# SPDX-License-Identifier: Apache-2.0
"""What a cycle publishes, and for whom."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from robodyn_ros.control.command_pipeline import Command
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.ros.dynamics import outputs
from robodyn_ros.ros.dynamics.outputs import CycleOutputs

pytestmark = pytest.mark.ros

TORQUE = np.array([1.0, 2.0])
RATE = 50.0  # of the states [Hz]


class Publisher:
    """Counts what it is given."""

    def __init__(self, topic):
        self.topic_name = topic
        self.subscribers = 0
        self.published = []

    def get_subscription_count(self):
        return self.subscribers

    def publish(self, message):
        self.published.append(message)


@pytest.fixture
def publishers():
    """By topic."""
    return {}


@pytest.fixture
def cycle_outputs(publishers, monkeypatch):
    def create_lifecycle_publisher(_kind, topic, _qos):
        return publishers.setdefault(topic, Publisher(topic))

    monkeypatch.setattr(
        outputs, 'CommandConflictMonitor', lambda *_: SimpleNamespace(listener=None, destroy=None)
    )
    node = SimpleNamespace(create_lifecycle_publisher=create_lifecycle_publisher)
    scale = np.array([-3.0, 0.5])
    return CycleOutputs(node, ('shoulder', 'elbow'), np.array([1, 0]), scale, RATE)


@pytest.fixture
def command():
    state = MeasuredState(np.zeros(2), np.zeros(2), 1.0)
    none = np.zeros(2, bool)
    return Command(TORQUE, none, none, none, False, np.tile(TORQUE / 6, (6, 1)), None, state)


def test_commands_are_published_whoever_listens_and_what_nobody_reads_is_not(
    cycle_outputs, publishers, command
):
    cycle_outputs.look_for_subscribers()
    cycle_outputs.publish_command(command, 0.0)
    cycle_outputs.publish_details(command, Time(), 'gravity_compensation', 0.0, 0.0)
    (message,) = publishers['~/commands'].published
    message = deserialize_message(message, Float64MultiArray)
    # The elbow first, each in its drive's unit.
    assert list(message.data) == [0.5 * 2.0, -3.0 * 1.0]
    (dimension,) = message.layout.dim
    assert (dimension.label, dimension.size, dimension.stride) == ('joints', 2, 2)
    assert publishers['~/torques'].published == publishers['~/dynamics_state'].published == []


@pytest.mark.parametrize('topic', ['~/torques', '~/dynamics_state'])
def test_what_somebody_begins_to_read_is_published_from_the_next_look_on(
    cycle_outputs, publishers, command, topic
):
    publishers[topic].subscribers = 1
    cycle_outputs.look_for_subscribers()
    cycle_outputs.publish_command(command, 0.0)
    assert {name for name, one in publishers.items() if one.published} == {'~/commands'}
    stamp = Time(sec=7, nanosec=8)
    cycle_outputs.publish_details(command, stamp, 'gravity_compensation', 0.0, 0.0)
    assert {name for name, one in publishers.items() if one.published} == {'~/commands', topic}
    (message,) = publishers[topic].published
    if topic == '~/torques':
        message = deserialize_message(message, JointState)
        assert message.name == ['shoulder', 'elbow']
        assert list(message.position) == list(message.velocity) == []
    torque = message.effort if topic == '~/torques' else message.total
    assert list(torque) == [1.0, 2.0]
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (7, 8)


def test_states_come_no_more_often_than_asked_for_and_torques_with_every_cycle(
    cycle_outputs, publishers, command
):
    for topic in ('~/torques', '~/dynamics_state'):
        publishers[topic].subscribers = 1
    cycle_outputs.look_for_subscribers()
    for k in range(1000):
        cycle_outputs.publish_details(command, Time(), 'gravity_compensation', k * 1e-3, 0.0)
    assert len(publishers['~/torques'].published) == 1000
    assert len(publishers['~/dynamics_state'].published) == pytest.approx(RATE, abs=2)
