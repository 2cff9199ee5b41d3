# SPDX-License-Identifier: Apache-2.0
"""What the rigs of the tests wait with: a topic that never runs dry starves no other."""

import time

import domains
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

import rclpy
from fair_spinning import spin_until
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import Empty

pytestmark = pytest.mark.ros


@pytest.fixture
def node():
    domain = domains.claim()
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    made = rclpy.create_node('test', context=context)
    yield made
    made.destroy_node()
    rclpy.shutdown(context=context)
    domains.release(domain)


def test_a_topic_that_never_runs_dry_starves_none_that_was_subscribed_to_later(node):
    flood = node.create_publisher(Empty, 'flood', 10)
    seldom = node.create_publisher(Empty, 'seldom', 10)
    heard = []

    def answer(_):
        flood.publish(Empty())
        flood.publish(Empty())
        if not heard:
            seldom.publish(Empty())

    node.create_subscription(Empty, 'flood', answer, 10)
    node.create_subscription(Empty, 'seldom', heard.append, 10)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    begin = time.monotonic()
    while not heard and time.monotonic() < begin + 20.0:
        flood.publish(Empty())
        spin_until(executor, time.monotonic() + 0.1)
    executor.shutdown()
    assert heard
