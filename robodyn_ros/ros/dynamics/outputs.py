# SPDX-License-Identifier: Apache-2.0
"""The dynamics node's three publishers of a control cycle, with reused messages."""

from __future__ import annotations

import math
import time
from array import array

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from robodyn_interfaces.msg import DynamicsState
from robodyn_ros.control.command_pipeline import Command
from robodyn_ros.control.law import TorqueParts
from robodyn_ros.ros import graph
from robodyn_ros.ros.cdr import SerializedEfforts, head
from robodyn_ros.ros.command_conflicts import CommandConflictMonitor
from robodyn_ros.ros.conversions import floats
from robodyn_ros.ros.dynamics.contact_topics import ContactTopics
from robodyn_ros.ros.qos import RELIABLE

_NONE = array('d')


class CycleOutputs:
    """
    Publishes commands first, then their parts, while they have subscribers.

    Parameters
    ----------
    node : LifecycleNode
        Owns the publishers; they are silent while it is not active.
    joint_names : tuple of str, length n
        In chain order.
    order : array of int, shape (n,)
        The chain's index of each joint, in the order of the commands.
    command_scale : array, shape (n,)
        The commands' unit per torque, in chain order; nothing else that is published is scaled.
    state_publish_rate : float
        Of the parts of the torques [Hz]; 0: never.

    Attributes
    ----------
    others : CommandConflictMonitor
        Other publishers on the commands' topic.
    are_states_heard : bool
        Whether the parts of the torques have subscribers.
    contacts : ContactTopics or None
        Knows the external torques.
    """

    def __init__(
        self,
        node: LifecycleNode,
        joint_names: tuple[str, ...],
        order: np.ndarray,
        command_scale: np.ndarray,
        state_publish_rate: float,
    ) -> None:
        self._node = node
        self._order = order
        self._command_scale = command_scale[order]
        in_order = order.tolist() == list(range(len(order)))
        self._is_plain = in_order and bool((command_scale == 1.0).all())
        self._commands = node.create_lifecycle_publisher(Float64MultiArray, '~/commands', RELIABLE)
        self._torques = node.create_lifecycle_publisher(JointState, '~/torques', RELIABLE)
        self._states = node.create_lifecycle_publisher(DynamicsState, '~/dynamics_state', RELIABLE)
        names = list(joint_names)
        self.others = CommandConflictMonitor(node, self._commands.topic_name)
        n = len(names)
        command = Float64MultiArray()
        command.layout.dim = [MultiArrayDimension(label='joints', size=n, stride=n)]
        self._command_head = head(command, 'data', n)
        self._torque = SerializedEfforts(names)
        self._state = DynamicsState(joint_names=names)
        self._state_period = 1.0 / state_publish_rate if state_publish_rate else math.inf
        self._last_state = -math.inf  # when it was published, by the steady clock [s]
        self.contacts: ContactTopics | None = None
        self.look_for_subscribers()

    def look_for_subscribers(self) -> None:
        """Update whether the torques and their parts have subscribers; call it periodically."""
        self._has_torque_subscribers = self._torques.get_subscription_count() > 0
        self.are_states_heard = (
            self._state_period < math.inf and self._states.get_subscription_count() > 0
        )

    def publish_command(self, command: Command, received: float) -> float:
        """
        Publish one command and return the time from receipt to its publication [s].

        Parameters
        ----------
        command : Command
            In chain order.
        received : float
            When the joint state came, by the steady clock [s].
        """
        torque = command.torque
        if not self._is_plain:
            torque = self._command_scale * torque[self._order]
        data = torque.tobytes()
        if self.others.listener is not None:
            self.others.listener.sent(data)
        self._commands.publish(self._command_head + data)
        return time.monotonic() - received

    def publish_details(
        self, command: Command, stamp: Time, mode: str, received: float, cycle_time: float
    ) -> None:
        """
        Publish the torques and their parts, while they have subscribers.

        Parameters
        ----------
        command : Command
            In chain order, already published.
        stamp : Time
            Of the joint state that caused it.
        mode : str
            The law's mode.
        received : float
            When the joint state came, by the steady clock [s].
        cycle_time : float
            From receipt to the publication of the command [s].
        """
        if self._has_torque_subscribers:
            self._torques.publish(self._torque.message(stamp, command.torque))
        is_due = self.are_states_heard and received - self._last_state >= self._state_period
        if is_due and (parts := command.parts) is not None:
            self._last_state = received
            self._publish_state(command, parts, stamp, mode, cycle_time)

    @property
    def subscribers(self) -> int:
        """Number of subscribers to the commands or the torques, without this node."""
        own = int(self.others.listener is not None)
        return (
            self._commands.get_subscription_count() - own + self._torques.get_subscription_count()
        )

    @property
    def no_subscriber_hint(self) -> str:
        """A message that nobody subscribes to the commands, and where a subscriber may be."""
        topic = self._commands.topic_name
        words = f'nobody subscribes to the commands on {topic}'
        awaited = graph.subscribing(self._node, 'std_msgs/msg/Float64MultiArray')
        if not awaited:
            return words
        return (
            f'{words}; Float64MultiArray is awaited on {graph.listed(awaited)}: '
            f'-r "~/commands:={awaited[0]}" sends them there'
        )

    def wait_for_delivery(self, timeout: float) -> None:
        """Wait until the commands' subscribers have acknowledged them, or the time [s] is over."""
        self._commands.wait_for_all_acked(Duration(seconds=timeout))

    def destroy(self) -> None:
        """Close the publishers."""
        self.others.destroy()
        for publisher in (self._commands, self._torques, self._states):
            self._node.destroy_lifecycle_publisher(publisher)

    def _publish_state(
        self,
        command: Command,
        parts: TorqueParts,
        stamp: Time,
        mode: str,
        cycle_time: float,
    ) -> None:
        message, reference = self._state, command.reference
        message.header.stamp = stamp
        message.position = floats(command.state.position)
        message.velocity = floats(command.state.velocity)
        if reference is None:
            message.reference_position = _NONE
            message.reference_velocity = _NONE
            message.reference_acceleration = _NONE
        else:
            message.reference_position = floats(reference.position)
            message.reference_velocity = floats(reference.velocity)
            message.reference_acceleration = floats(reference.acceleration)
        message.inertial = floats(parts.inertial)
        message.coriolis = floats(parts.coriolis)
        message.gravity = floats(parts.gravity)
        message.friction = floats(parts.friction)
        message.feedback = floats(parts.feedback)
        message.effort = floats(parts.effort)
        message.total = floats(command.torque)
        message.effort_limited = command.effort_limited.tolist()
        message.rate_limited = command.rate_limited.tolist()
        outside = None if self.contacts is None else self.contacts.torque
        message.external_torque = _NONE if outside is None else floats(outside)
        message.in_contact = self.contacts is not None and self.contacts.in_contact
        message.mode = mode
        message.cycle_time = cycle_time
        self._states.publish(message)
