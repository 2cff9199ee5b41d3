# SPDX-License-Identifier: Apache-2.0
"""A node hears the commands of others on its own topic, and not its own."""

import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from graph_rig import GraphRig
from node_rig import PATIENCE
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from robodyn_ros.ros.command_conflicts import (
    CommandConflictMonitor,
    CommandListener,
    watchdog_name,
)
from robodyn_ros.ros.qos import RELIABLE

pytestmark = pytest.mark.ros

TOPIC = '/commands'


class Scene(GraphRig):
    """A node and others on one topic, in one process."""

    def __init__(self):
        super().__init__('arm_node')
        self.publisher = self.publisher_of(self.node)

    def publisher_of(self, node):
        return node.create_publisher(Float64MultiArray, TOPIC, RELIABLE)

    def settle(self):
        self.spin(0.2)

    def connected(self, publisher, listeners=1):
        self.until(lambda: publisher.get_subscription_count() == listeners)


@pytest.fixture
def scene():
    result = Scene()
    yield result
    result.close()


def command(value=1.0, label='joints'):
    message = Float64MultiArray(data=[value] * 3)
    message.layout.dim = [MultiArrayDimension(label=label, size=3, stride=3)]
    return message


def test_own_commands_are_not_counted_and_those_of_others_are_even_when_they_are_equal(scene):
    listener = CommandListener(scene.node, TOPIC)
    other = scene.publisher_of(scene.join('other'))
    scene.connected(other)
    scene.connected(scene.publisher)
    for value in (1.0, 1.0, 2.0):
        listener.sent(command(value).data.tobytes())
        scene.publisher.publish(command(value))
    scene.settle()
    assert listener.taken() == 0
    listener.sent(command().data.tobytes())
    for publisher in (scene.publisher, other):
        publisher.publish(command())
    scene.until(lambda: listener.last > 0.0)
    scene.settle()
    assert listener.taken() == 1 and listener.taken() == 0


def test_others_are_named_and_watchdogs_and_the_node_itself_are_not(scene):
    others = CommandConflictMonitor(scene.node, TOPIC)
    watchdog = scene.publisher_of(scene.join(watchdog_name('arm_node')))
    others.look()
    assert others.names == [] and others.text == ''
    other = scene.publisher_of(scene.join('other'))
    twin = scene.publisher_of(scene.join('arm_node'))
    scene.until(lambda: len(others.names) == 2, others.look)
    assert others.names == ['/arm_node', '/other']
    assert others.text == f'/arm_node, /other has a publisher on {TOPIC}, too'
    scene.connected(other)
    other.publish(command())
    scene.settle()
    others.look()
    assert others.count == others.recent == 1
    assert others.text == f'/arm_node, /other commands on {TOPIC}, too'
    assert watchdog.topic_name == twin.topic_name == TOPIC


@pytest.mark.parametrize('name', ['heard_before_activation', 'heard_recently'])
def test_whoever_commands_is_named_for_as_long_as_asked(scene, name):
    others = CommandConflictMonitor(scene.node, TOPIC)
    heard = getattr(others, name)
    assert heard(0.05) == ''
    other = scene.publisher_of(scene.join('other'))
    scene.connected(other)
    other.publish(command())
    scene.settle()
    assert heard(PATIENCE) == f'/other commands on {TOPIC}'
    time.sleep(0.1)
    assert heard(0.05) == ''


def test_node_subscribes_while_it_commands_only_where_somebody_else_publishes(scene, monkeypatch):
    others = CommandConflictMonitor(scene.node, TOPIC)
    assert others.listener is not None
    others.begin_commanding()
    others.look()
    assert others.listener is not None  # it has just begun
    monkeypatch.setattr('robodyn_ros.ros.command_conflicts.NEWCOMER_TIME', 0.0)
    others.look()
    assert others.listener is None
    stranger = scene.join('other')
    scene.publisher_of(stranger)
    scene.until(lambda: others.listener is not None, others.look)
    scene.executor.remove_node(stranger)
    stranger.destroy_node()
    scene.until(lambda: others.listener is None, others.look)
    others.end_commanding()
    assert others.listener is not None


def test_newcomer_infers_who_came_first_from_steady_commands(scene, monkeypatch):
    others = CommandConflictMonitor(scene.node, TOPIC)
    other = scene.publisher_of(scene.join('other'))
    scene.connected(other)
    for _ in range(5):  # the last ones of somebody who ended
        other.publish(command())
    scene.settle()
    others.begin_commanding()
    other.publish(command())
    scene.settle()
    others.look()
    assert others.count == 6
    assert others.recent == 1 and not others.came_first
    for _ in range(5):
        other.publish(command())
    scene.settle()
    others.look()
    assert others.came_first
    monkeypatch.setattr('robodyn_ros.ros.command_conflicts.NEWCOMER_TIME', 0.0)
    assert not others.came_first
