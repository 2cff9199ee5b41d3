# SPDX-License-Identifier: Apache-2.0
"""External torques, tip wrench and contacts on topics; and added efforts of another node."""

from __future__ import annotations

import time
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState

from robodyn_interfaces.msg import Contact as ContactMessage
from robodyn_ros.control.contact import Contact
from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.settings import ContactAction, ControlSettings
from robodyn_ros.errors import MalformedData
from robodyn_ros.ros.cdr import SerializedEfforts
from robodyn_ros.ros.conversions import floats
from robodyn_ros.ros.joint_states import WARNING_PERIOD, read_joint_state
from robodyn_ros.ros.qos import LATCHED, RELIABLE, SENSOR
from robodyn_ros.spatial import FloatArray


class ContactTopics:
    """
    Publishes external torques, the wrench at the tip and contacts, while they have subscribers.

    Nothing is computed without subscribers and without a reaction to contacts.

    Parameters
    ----------
    node : LifecycleNode
        Owns the topics; publishers are silent while it is not active.
    stack : ControlStack
        What runs.
    settings : ControlSettings
        What it was configured with.

    Attributes
    ----------
    action : ContactAction
        What is to follow from a contact.
    is_active : bool
        Whether anything is to be computed.
    last : Contact or None
        The newest that began or ended.
    undetermined : int
        Undetermined directions of the last wrench at the tip.
    deviation : array, shape (6,), or None
        Of that wrench [N], [N m].
    """

    def __init__(
        self,
        node: LifecycleNode,
        stack: ControlStack,
        settings: ControlSettings,
    ) -> None:
        self.action: ContactAction = settings.on_contact
        self.last: Contact | None = None
        self.undetermined = 0
        self.deviation: FloatArray | None = None
        self._node, self._stack = node, stack
        self._was_active = False
        names = list(stack.model.joint_names)
        self._torques = node.create_lifecycle_publisher(JointState, '~/external_torques', RELIABLE)
        self._wrenches = node.create_lifecycle_publisher(WrenchStamped, '~/tip_wrench', RELIABLE)
        self._contacts = node.create_lifecycle_publisher(ContactMessage, '~/contact', LATCHED)
        self._torque = SerializedEfforts(names)
        self._wrench = WrenchStamped()
        self._wrench.header.frame_id = stack.model.tip_link
        self._contact = ContactMessage(joint_names=names)
        self._subscription: Any = None
        if settings.external_effort_topic:
            self._subscription = node.create_subscription(
                JointState, settings.external_effort_topic, self._on_effort, SENSOR, raw=True
            )
        self.look_for_subscribers()

    def look_for_subscribers(self, *, are_states_heard: bool = False) -> None:
        """Update which topics have subscribers; call it periodically."""
        self._has_torque_subscribers = self._torques.get_subscription_count() > 0
        self._are_wrenches_heard = self._wrenches.get_subscription_count() > 0
        self.is_active = (
            self._has_torque_subscribers
            or self._are_wrenches_heard
            or are_states_heard
            or self.action != 'report'
            or self._contacts.get_subscription_count() > 0
        )
        if not self.is_active and self._was_active:
            self._stack.monitor.reset()
        self._was_active = self.is_active

    @property
    def torque(self) -> FloatArray | None:
        """The external torques, shape (n,) [N m] or [N]; None where they are not estimated."""
        monitor = self._stack.monitor
        return monitor.torque if self.is_active and monitor.has_estimate else None

    @property
    def in_contact(self) -> bool:
        """Whether there is a contact; False where external torques are not estimated."""
        return self.torque is not None and self._stack.monitor.contact is not None

    @property
    def facts(self) -> dict[str, object]:
        """The facts for diagnostics."""
        monitor, added = self._stack.monitor, self._stack.pipeline.added
        lasting = monitor.contact
        deviation = '' if self.deviation is None else self.deviation
        return {
            'on_contact': self.action,
            'contact_observer': monitor.trouble or ('active' if self.is_active else 'idle'),
            'contact_thresholds': 'none' if monitor.detector is None else 'known',
            'contact': '' if lasting is None else str(lasting),
            'contacts': 0 if monitor.detector is None else monitor.detector.count,
            'last_contact': '' if self.last is None else str(self.last),
            'tip_wrench_undetermined': self.undetermined,
            'tip_wrench_deviation': ' '.join(f'{each:.3g}' for each in deviation),
            'external_efforts_refused': 0 if added is None else added.refused,
        }

    def update(self, state: MeasuredState, commanded: FloatArray | None, stamp: Time) -> None:
        """
        Take the state of a control cycle, publish, and react to a contact.

        Parameters
        ----------
        state : MeasuredState
        commanded : array, shape (n,), or None
            The torque that brought the arm there.
        stamp : Time
            Of the joint state.
        """
        monitor, pipeline = self._stack.monitor, self._stack.pipeline
        contact = monitor.update(state, commanded, pipeline.settings)
        if contact is not None:
            if not contact.is_over:
                pipeline.react_to_contact(self.action, str(contact))
            self._publish_contact(contact, stamp)
        if not monitor.has_estimate:
            return
        if self._has_torque_subscribers:
            self._torques.publish(self._torque.message(stamp, monitor.torque))
        if self._are_wrenches_heard:
            self._publish_wrench(state, stamp)

    def destroy(self) -> None:
        """Close the topics."""
        for publisher in (self._torques, self._wrenches, self._contacts):
            self._node.destroy_lifecycle_publisher(publisher)
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _publish_wrench(self, state: MeasuredState, stamp: Time) -> None:
        found = self._stack.monitor.tip_wrench(state)
        self.undetermined, self.deviation = len(found.undetermined), found.deviation
        self._wrench.header.stamp = stamp
        force, moment = self._wrench.wrench.force, self._wrench.wrench.torque
        force.x, force.y, force.z, moment.x, moment.y, moment.z = found.wrench.tolist()
        self._wrenches.publish(self._wrench)

    def _publish_contact(self, contact: Contact, stamp: Time) -> None:
        self.last = contact
        message = self._contact
        message.header.stamp = stamp
        message.is_over = contact.is_over
        message.joint, message.link = contact.joint, contact.link
        message.torque, message.threshold = contact.torque, contact.threshold
        message.duration = contact.time - contact.began
        message.external_torque = floats(self._stack.monitor.torque)
        self._contacts.publish(message)
        self._node.get_logger().warning(str(contact), throttle_duration_sec=WARNING_PERIOD)

    def _on_effort(self, content: bytes) -> None:
        added = self._stack.pipeline.added
        if added is None:
            return
        try:
            message = read_joint_state(content)
            fault = added.receive(message.names, message.effort, time.monotonic())
        except MalformedData as error:
            fault = added.refuse(str(error))
        if fault:
            self._node.get_logger().warning(
                f'external effort ignored: {fault}', throttle_duration_sec=WARNING_PERIOD
            )
