# SPDX-License-Identifier: Apache-2.0
"""
Joint states from their bytes to the buffer; what cannot be read is counted and logged.

rclpy makes Python objects of all that a message holds, however much that is: 0.4 s for a million
names, in which no cycle runs. ``core/joint_states.hpp`` reads the bytes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from robodyn_ros.control.core_binding import core
from robodyn_ros.control.joint_state_buffer import ElapsedTime, JointStateBuffer
from robodyn_ros.errors import MalformedData, Phrase
from robodyn_ros.ros import cdr, graph
from robodyn_ros.ros.qos import SENSOR
from robodyn_ros.ros.rclpy_workarounds import message_of, waiting_messages

LARGEST_SIZE, MOST_JOINTS = core.LARGEST_MESSAGE, core.MOST_JOINTS
"""Of a message that is read [bytes]; of its names."""

NO_CLOCK = 'use_sim_time is set and /clock has not come: set it false, or start the clock'
WARNING_PERIOD = 1.0  # between log entries that every message could cause [s]


class JointStateMessage(NamedTuple):
    """
    What a sensor_msgs/JointState says.

    Parameters
    ----------
    sec, nanosec : int
        Of the stamp.
    names : tuple of str
        Of the joints.
    position, velocity, effort : sequence of float
        Of whatever lengths the sender chose [rad, rad/s] or [m, m/s], the drives' unit.
    """

    sec: int
    nanosec: int
    names: tuple[str, ...]
    position: Sequence[float] | np.ndarray
    velocity: Sequence[float] | np.ndarray
    effort: Sequence[float] | np.ndarray

    @property
    def stamp(self) -> float:
        """In seconds."""
        return self.sec + 1e-9 * self.nanosec


def read_joint_state(content: bytes) -> JointStateMessage:
    """
    Return what a serialised message says.

    Raises
    ------
    MalformedData
        A message of more bytes than ``LARGEST_SIZE`` or more joints than ``MOST_JOINTS``, or
        bytes that are no such message.
    """
    found = core.read_joint_state(_plain(content))
    if not isinstance(found, tuple):
        what, allowed = core.words(found)
        raise MalformedData('message', Phrase(what.removeprefix('message: ')), allowed)
    return JointStateMessage(*found)


def take_in(
    joint_states: JointStateBuffer, content: bytes, now: float, clock: float
) -> str | None:
    """
    Take a serialised message that came at a steady time [s], and return what is wrong with it.

    The clock is that of its stamp [s]; NaN: how old the stamp is does not count.
    """
    try:
        return joint_states.receive_bytes(_plain(content), now, clock)
    except MalformedData as error:
        return str(error)


def _plain(content: bytes) -> bytes:
    """Return a message in plain CDR, little-endian, as nearly every one is; else by rclpy."""
    if content.startswith(cdr.LITTLE_ENDIAN) or len(content) > LARGEST_SIZE:
        return content
    return bytes(serialize_message(message_of(content, JointState)))


class Malformed(Protocol):
    """Counts what cannot be read, and keeps why the last one could not."""

    malformed: int
    last_malformed: str


class StateReception:
    """
    Receives joint states.

    Parameters
    ----------
    node : LifecycleNode
        Has the clock and the log.
    joint_states : JointStateBuffer
        Is given what the messages say.
    counts : Malformed
        Of what could not be read.
    """

    def __init__(
        self, node: LifecycleNode, joint_states: JointStateBuffer, counts: Malformed
    ) -> None:
        self._node, self._joint_states, self._counts = node, joint_states, counts

    def receive(self, content: bytes, now: float) -> None:
        """Take a joint state that came at a steady time [s]; count and log one that is none."""
        joint_states = self._joint_states
        is_simulated = joint_states.elapsed.is_simulated
        clock = ros_time(self._node) if is_simulated else time.time()
        fault = take_in(joint_states, content, now, clock)
        if fault is not None:
            self._counts.malformed += 1
            self._counts.last_malformed = fault
            self._node.get_logger().warning(
                f'joint state ignored: {fault}', throttle_duration_sec=WARNING_PERIOD
            )

    @property
    def no_publisher_hint(self) -> str:
        """That no joint state has come, and where there may be some, as text."""
        topic = self._node.resolve_topic_name('joint_states')
        words = f'no joint state has come yet on {topic}'
        if names := graph.publishers(self._node, topic):
            return f'{words}, where {graph.listed(names)} publishes'
        elsewhere = graph.publishing(self._node, 'sensor_msgs/msg/JointState')
        elsewhere.sort(key=lambda name: not name.endswith('joint_states'))
        if not elsewhere:
            return f'{words}: nobody publishes it'
        return (
            f'{words}: nobody publishes there, but on {graph.listed(elsewhere)}: '
            f'-r joint_states:={elsewhere[0]} takes it'
        )

    @staticmethod
    def waiting(subscription: Subscription) -> Iterator[bytes]:
        """Take the joint states that wait, as bytes, but no more than the queue holds."""
        return islice(waiting_messages(subscription, JointState), SENSOR.depth)


def elapsed_time(node: Node) -> ElapsedTime:
    """Return what measures how long ago joint states came, simulated time included."""
    is_simulated = node.get_parameter('use_sim_time').value
    return ElapsedTime((lambda: ros_time(node)) if is_simulated else None)


def ros_time(node: Node) -> float:
    """Return the node's time [s]."""
    clock = node.get_clock()
    if not clock.ros_time_is_active:
        return time.time()  # the same, in a tenth of the time
    return 1e-9 * clock.now().nanoseconds
