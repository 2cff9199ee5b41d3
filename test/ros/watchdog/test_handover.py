# SPDX-License-Identifier: Apache-2.0
"""The watchdog of a node that has gone hands over to the next node, on one machine."""

import socket
import threading

import domains
import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

import rclpy
from handing_over import hand_over

from robodyn_ros.ros.watchdog import handover

pytestmark = pytest.mark.ros

TOPIC = '/commands'
LIMITS = np.array([10.0, 20.0])


@pytest.fixture
def node():
    domain = domains.claim()
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    result = rclpy.create_node('arm_node', context=context)
    yield result
    result.destroy_node()
    rclpy.shutdown(context=context)
    domains.release(domain)


@pytest.fixture
def waiting(node):
    result = handover.Handover(node, TOPIC)
    yield result
    result.close()


def taken(node, waiting, torque, limits=LIMITS):
    thread = threading.Thread(target=hand_over, args=(waiting, np.array(torque)))
    thread.start()
    result = handover.take_over(node, TOPIC, limits)
    thread.join()
    return result


def test_torque_and_time_come_over_exactly(node, waiting):
    torque, sent = taken(node, waiting, [0.1, -20.0])
    assert torque.tolist() == [0.1, -20.0] and np.isfinite(sent)


@pytest.mark.parametrize('torque', [[10.1, 0.0], [np.nan, 0.0], [0.0], [0.0] * 3], ids=str)
def test_torque_that_is_none_of_this_robot_is_not_continued(node, waiting, torque):
    assert taken(node, waiting, torque) is None


def test_nobody_is_asked_where_nobody_waits(node, waiting):
    assert handover.take_over(node, '/other', LIMITS) is None
    assert not waiting.hand_over(0.0, LIMITS)
    waiting.close()
    assert handover.take_over(node, TOPIC, LIMITS) is None


def test_what_is_no_request_gets_no_answer(node, waiting):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.bind('')  # where an answer would arrive
        for data in (b'', b'c', b'x' * 60000):
            stranger.sendto(data, handover._address(node, TOPIC))
        assert not waiting.hand_over(0.0, LIMITS)


def test_second_watchdog_of_a_topic_waits_for_nobody(node, waiting):
    second = handover.Handover(node, TOPIC)
    torque, _ = taken(node, waiting, [1.0, 2.0])
    assert torque.tolist() == [1.0, 2.0] and not second.hand_over(0.0, LIMITS)
