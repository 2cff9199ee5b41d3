# SPDX-License-Identifier: Apache-2.0
"""From the bytes of joint states to the buffer; what cannot be read is counted and logged."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from robodyn_ros.control.joint_state_buffer import JointStateBuffer
from robodyn_ros.control.stamp_clock import ElapsedTime
from robodyn_ros.errors import MalformedJointState
from robodyn_ros.ros import cdr, graph
from robodyn_ros.ros.dynamics.cycle_counts import CycleCounts
from robodyn_ros.ros.joint_state_message import JointStateMessage, JointStateReader
from robodyn_ros.ros.qos import SENSOR

WARNING_PERIOD = 1.0  # what every message could cause is written once in so long [s]


class StateReception:
    """
    Takes in joint states as they come.

    Parameters
    ----------
    node : LifecycleNode
        Has the clock and the log.
    joint_states : JointStateBuffer
        Is given what the messages say.
    counts : CycleCounts
        Of what could not be read.
    """

    def __init__(
        self, node: LifecycleNode, joint_states: JointStateBuffer, counts: CycleCounts
    ) -> None:
        self._node, self._joint_states, self._counts = node, joint_states, counts
        self._reader = JointStateReader()

    def receive(self, content: bytes, now: float) -> JointStateMessage | None:
        """Take in a joint state that came at a steady time [s]; None: it cannot be read."""
        joint_states = self._joint_states
        try:
            message = self._reader.read(content)
        except MalformedJointState as error:
            self._ignore(str(error))
            return None
        stamp = cdr.seconds(message.sec, message.nanosec)
        age = ros_time(self._node) - stamp if stamp > 0.0 else 0.0
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
        """That no joint state has come, and where there may be some, in words."""
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
        for _ in range(SENSOR.depth):
            with subscription.handle:
                taken = subscription.handle.take_message(JointState, True)
            if taken is None:
                return
            yield taken[0]

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
