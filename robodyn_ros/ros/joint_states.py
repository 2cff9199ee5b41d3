# SPDX-License-Identifier: Apache-2.0
"""
Joint states from their bytes to the buffer; what cannot be read is counted and logged.

They are read in a sixth of the time that rclpy takes, whatever their size.

rclpy makes Python objects of all that a message holds, however much that is: 0.4 s for a million
names, in which no cycle runs. Drivers send the same joints again and again: here what the messages
of one driver have in common is compared with what was read before, and only numbers are taken out.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from robodyn_ros.control.core_binding import core
from robodyn_ros.control.joint_state_buffer import ElapsedTime, JointStateBuffer
from robodyn_ros.errors import MalformedData, Phrase
from robodyn_ros.ros import cdr, graph
from robodyn_ros.ros.qos import SENSOR
from robodyn_ros.ros.rclpy_workarounds import message_of, waiting_messages

LARGEST_SIZE = 200_000
"""Of a message that is read [bytes]; two thousand joints take half of it."""

MOST_JOINTS = 2000

NO_CLOCK = 'use_sim_time is set and /clock has not come: set it false, or start the clock'
WARNING_PERIOD = 1.0  # between log entries that every message could cause [s]

_STAMP_END = cdr.ENCODING + cdr.TIME.size
_MOST_LAYOUTS = 8  # that are remembered: as many drivers report parts of an arm, or other devices


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


class _Layout(NamedTuple):
    """
    What the messages of one driver have in common.

    Parameters
    ----------
    head : bytes
        From behind the stamp to the number of positions.
    names : tuple of str
        In it.
    numbers : StateLayout
        Where positions, velocities and efforts lie.
    """

    head: bytes
    names: tuple[str, ...]
    numbers: core.StateLayout


class JointStateReader:
    """Reads joint states, and remembers how they are laid out."""

    def __init__(self) -> None:
        self._layouts: list[_Layout] = []

    def read(self, message: bytes) -> JointStateMessage:
        """
        Return what a serialised message says.

        Raises
        ------
        MalformedData
            A message of more bytes than ``LARGEST_SIZE`` or more joints than ``MOST_JOINTS``, or
            bytes that are no such message.
        """
        if len(message) > LARGEST_SIZE:
            raise MalformedData(
                'message', Phrase(f'{len(message)} bytes'), f'at most {LARGEST_SIZE}'
            )
        try:
            if message[:2] != cdr.LITTLE_ENDIAN:
                return _converted(message_of(message, JointState))
            for layout in self._layouts:
                if message.startswith(layout.head, _STAMP_END):
                    found = _read_numbers(message, layout)
                    if found is not None:
                        return found
            layout = _layout(message[cdr.ENCODING :])
        except struct.error as error:
            raise MalformedData(
                'message', Phrase(f'{len(message)} bytes'), 'a sensor_msgs/JointState'
            ) from error
        self._layouts = [layout, *self._layouts[: _MOST_LAYOUTS - 1]]
        found = _read_numbers(message, layout)
        assert found is not None
        return found


def _read_numbers(message: bytes, layout: _Layout) -> JointStateMessage | None:
    """Return a message of this layout; None where it has other numbers of numbers."""
    found = layout.numbers.read(message)
    if found is None:
        return None
    sec, nanosec, position, velocity, effort = found
    return JointStateMessage(sec, nanosec, layout.names, position, velocity, effort)


def _layout(data: bytes) -> _Layout:
    """Return the layout of a message in plain CDR, little-endian, without its encoding."""
    _, at = cdr.text(data, cdr.TIME.size)  # the frame
    count, at = cdr.integer(data, at)
    if count > MOST_JOINTS:
        raise MalformedData('names', count, f'at most {MOST_JOINTS}')
    names, at = cdr.texts(data, at, count)
    positions, begin, end = cdr.numbers(data, at)
    head = data[cdr.TIME.size : cdr.aligned(at) + cdr.INTEGER.size]
    velocities, first, velocities_end = cdr.numbers(data, end)
    gap = first - end - cdr.INTEGER.size
    efforts, last, size = cdr.numbers(data, velocities_end)
    last_gap = last - velocities_end - cdr.INTEGER.size
    if size > len(data):
        raise struct.error('the message ends too soon')
    return _Layout(
        head,
        names,
        core.StateLayout(cdr.ENCODING + begin, (positions, velocities, efforts), (gap, last_gap)),
    )


def _converted(message: JointState) -> JointStateMessage:
    stamp = message.header.stamp
    return JointStateMessage(
        stamp.sec,
        stamp.nanosec,
        tuple(message.name),
        message.position,
        message.velocity,
        message.effort,
    )


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
        self._reader = JointStateReader()

    def receive(self, content: bytes, now: float) -> JointStateMessage | None:
        """Take a joint state that came at a steady time [s]; None: it cannot be read."""
        joint_states = self._joint_states
        try:
            message = self._reader.read(content)
        except MalformedData as error:
            self._ignore(str(error))
            return None
        stamp = message.stamp
        age = 0.0
        if stamp > 0.0:
            is_simulated = joint_states.elapsed.is_simulated
            age = (ros_time(self._node) if is_simulated else time.time()) - stamp
        fault = joint_states.receive(
            message.names,
            message.position,
            message.velocity,
            received=now,
            stamp=stamp,
            age=age,
            effort=message.effort,
        )
        if fault is not None:
            self._ignore(fault)
        return message

    @property
    def unheard(self) -> str:
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

    def _ignore(self, fault: str) -> None:
        """Count and log a joint state that cannot be read."""
        self._counts.malformed += 1
        self._counts.last_malformed = fault
        self._node.get_logger().warning(
            f'joint state ignored: {fault}', throttle_duration_sec=WARNING_PERIOD
        )


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
