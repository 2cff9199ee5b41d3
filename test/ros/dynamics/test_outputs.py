# SPDX-License-Identifier: Apache-2.0
"""What a cycle publishes, and for whom."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message
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


def test_commands_are_published_in_any_case_and_the_rest_from_the_next_count_of_subscribers_on(
    cycle_outputs, publishers, command
):
    stamp = Time(sec=7, nanosec=8)
    for topic in ('', '~/torques', '~/dynamics_state'):
        for name, publisher in publishers.items():
            publisher.published.clear()
            publisher.subscribers = int(name == topic)
        cycle_outputs.look_for_subscribers()
        cycle_outputs.publish_command(command, 0.0)
        cycle_outputs.publish_details(command, stamp, 'gravity_compensation', 0.0, 0.0)
        published = {name for name, one in publishers.items() if one.published}
        assert published == {'~/commands', topic} - {''}
        (message,) = publishers['~/commands'].published
        message = deserialize_message(message, Float64MultiArray)
        # The elbow first, each in its drive's unit.
        assert list(message.data) == [0.5 * 2.0, -3.0 * 1.0]
        (dimension,) = message.layout.dim
        assert (dimension.label, dimension.size, dimension.stride) == ('joints', 2, 2)
    (state,) = publishers['~/dynamics_state'].published
    assert list(state.total) == [1.0, 2.0] and state.header.stamp == stamp


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
