# SPDX-License-Identifier: Apache-2.0
"""
Shows an arm live in a browser of this machine, and moves nothing: ``watch_node``.

========== ============================================== ======================================
direction  name                                           notes
========== ============================================== ======================================
sub        ``dynamics_node/dynamics_state``               while a browser looks
sub        ``dynamics_node/contact``                      the same
sub        ``robot_description``                          where ``urdf_file`` is not given
========== ============================================== ======================================

No executor runs: the newest message is taken when a frame is due, so that a node that publishes a
thousand a second costs this process little more than the thirty that are shown. The force on the
tip is fitted here, to the external torques of those thirty: subscribed to, the node's own wrench
would cost the node a fit, and both a message, in each of its cycles.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from std_msgs.msg import String

from robodyn_interfaces.msg import Contact, DynamicsState
from robodyn_ros.control.contact import contact_thresholds_of
from robodyn_ros.control.control_stack import configured_arm
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.law import OfPosition
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import MalformedData, MalformedUrdf, RobodynError, UnreadableSource
from robodyn_ros.model import RobotModel
from robodyn_ros.monitoring.live_server import LiveServer
from robodyn_ros.report.watch_page import JOINT_NUMBERS, live_frame, residual_bands, watch_page
from robodyn_ros.ros.dynamics.description_topic import DescriptionTopic
from robodyn_ros.ros.joint_states import LARGEST_SIZE
from robodyn_ros.ros.parameter_overrides import declared_values, in_parameters
from robodyn_ros.ros.plain_text import PlainLoggerMixin, plain
from robodyn_ros.ros.qos import LATCHED
from robodyn_ros.ros.rclpy_workarounds import message_of, waiting_messages
from robodyn_ros.ros.signals import StopSignal
from robodyn_ros.ros.spinning import LOG_PERIOD, run_from_command_line
from robodyn_ros.ros_parameters import parameters_of
from robodyn_ros.spatial import FloatArray

ABOUT = (
    'Shows an arm live in a browser of this machine: the arm as it turns, torque by part, the '
    'force on its tip, contacts, the residual against its band. It reads only.'
)
PARAMETERS = parameters_of('watch_node')
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Of what only the newest message is shown of; never does its publisher wait for this process."""

NEWEST_CONTACT = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_LONGEST_NAME = 100
_PERIOD = 0.1  # between looks at signals [s]
_AT_TIP = np.zeros(3)


class WatchNode(PlainLoggerMixin, Node):
    """
    Serves the page, and what the newest messages say.

    Its parameters are ``PARAMETERS``, all read once.

    Attributes
    ----------
    server : LiveServer or None
        None until the robot is known.

    Raises
    ------
    RobodynError
        A parameter or the robot cannot be used, the port is taken, or websockets is missing.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('watch_node', start_parameter_services=False, **node_options)
        self._given = declared_values(self, PARAMETERS)
        self.server: LiveServer | None = None
        self._model: RobotModel | None = None
        self._topics: dict[str, tuple[Subscription, Any]] = {}
        self._link = ''
        self._deviation = np.empty(0)  # of the external torques, (n,) [N m or N]
        self._tip: tuple[OfPosition, OfPosition] | None = None  # its pose and Jacobian
        self._description: Subscription | None = None
        if self._given['urdf_file']:
            self._begin(None)
        else:
            self._description = self.create_subscription(
                String, 'robot_description', lambda _: None, LATCHED, raw=True
            )
            self.get_logger().info('waiting for robot_description')

    def look(self) -> None:
        """
        Begin once the robot's description has come; call it periodically.

        Raises
        ------
        RobodynError
            The robot cannot be used.
        NotReady
            The page is served no more.
        """
        if self.server is not None:
            self.server.check()
        if self._description is None:
            return
        newest = DescriptionTopic()
        for content in waiting_messages(self._description, String):
            newest.receive(content)
        try:
            text = newest.text()
            if text is None:
                return
            self._begin(text)
        except (UnreadableSource, MalformedUrdf) as error:  # anybody may have sent it
            self.get_logger().warning(str(error), throttle_duration_sec=LOG_PERIOD)
            return
        self.destroy_subscription(self._description)
        self._description = None

    def destroy_node(self) -> None:
        """End the server, and its subscriptions with it, then the node."""
        if self.server is not None:
            self.server.close()
        super().destroy_node()

    def _begin(self, description: str | None) -> None:
        given = self._given
        settings = ControlSettings(
            **{name: given[name] for name in ('urdf_file', 'base_link', 'tip_link')},
            identified_model=given['identified_model'],
        )
        arm = configured_arm(settings, description)
        thresholds = contact_thresholds_of(arm.model, settings, arm.residual)
        self._model = arm.model
        moving = None if thresholds is None else thresholds.moving
        self._deviation = residual_bands(arm.model, moving) / core.DEVIATIONS
        # The node's own compiled functions, as a rule from the cache: in NumPy they are half of
        # what a frame costs.
        torque = RigidBodyTorque.of(arm.model, 'compiled')
        self._tip = torque.forward_kinematics(arm.model), torque.jacobian(arm.model)
        page = watch_page(arm.model, moving)
        self.server = LiveServer(
            page,
            self.frame,
            host=given['host'],
            port=given['port'],
            rate=given['rate'],
            on_browsers=self._on_browsers,
        )
        self.get_logger().info(f'open {self.server.address}')

    # --- in the server's thread --------------------------------------------------------------

    def _on_browsers(self, count: int) -> None:
        if count and not self._topics:
            node = self._given['watched_node']
            for name, kind, quality in (
                ('dynamics_state', DynamicsState, NEWEST),
                ('contact', Contact, NEWEST_CONTACT),
            ):
                subscription = self.create_subscription(
                    kind, f'{node}/{name}', lambda _: None, quality, raw=True
                )
                self._topics[name] = subscription, kind
        elif not count:
            for subscription, _ in self._topics.values():
                self.destroy_subscription(subscription)
            self._topics.clear()
            self._link = ''

    def frame(self) -> bytes | None:
        """Return what the newest messages say, as the page reads it; None where no state came."""
        state, contact = self._newest('dynamics_state'), self._newest('contact')
        if contact is not None:
            self._link = '' if contact.is_over else plain(contact.link)[:_LONGEST_NAME]
        model = self._model
        if state is None or model is None:
            return None
        if tuple(state.joint_names) != model.joint_names:
            self.get_logger().warning(
                'the node reports another arm than this page shows', throttle_duration_sec=5.0
            )
            return None
        unknown = np.full(model.n, np.nan).tobytes()
        numbers = [getattr(state, name).tobytes() or unknown for name in JOINT_NUMBERS]
        if any(len(each) != len(unknown) for each in numbers):
            return None
        mode = plain(state.mode)[:_LONGEST_NAME]
        words = {'contact': state.in_contact, 'link': self._link, 'mode': mode}
        return live_frame(json.dumps(words).encode(), numbers, self._force(model, state))

    def _force(self, model: RobotModel, state: DynamicsState) -> FloatArray:
        """Return the force on the tip in the base link's axes, (3,) [N]; NaN: it is not known."""
        position, velocity, outside = map(
            np.asarray, (state.position, state.velocity, state.external_torque)
        )
        if self._tip is None or not len(position) == len(velocity) == len(outside):
            return np.full(3, np.nan)
        pose, columns = (function(position) for function in self._tip)
        deviation = core.torque_deviation(self._deviation, model.dry_friction, velocity)
        wrench, _, _ = core.tip_wrench(pose, columns, _AT_TIP, outside, deviation)
        return pose[:3, :3] @ wrench[:3]

    def _newest(self, name: str) -> Any:
        """Return the newest message of a topic, or None: none came, or it cannot be read."""
        if name not in self._topics:
            return None
        content, (subscription, kind) = None, self._topics[name]
        for newer in waiting_messages(subscription, kind):
            content = newer
        if content is None or len(content) > LARGEST_SIZE:
            return None
        try:
            return message_of(content, kind)
        except MalformedData as error:
            self.get_logger().warning(str(error), throttle_duration_sec=LOG_PERIOD)
            return None


def _spin(node: WatchNode, executor: Executor, stop_signal: StopSignal) -> int:
    """Look for what comes until a signal does; 1 where the robot or the page cannot be shown."""
    try:
        while not stop_signal.has_come:
            node.look()
            time.sleep(_PERIOD)
    except RobodynError as error:
        node.get_logger().fatal(in_parameters(error))
        return 1
    return 0


def main(args: list[str] | None = None) -> int:
    """Run the node; 0 after a signal, 1 where what it is given is wrong, 2 for a wrong option."""
    return run_from_command_line('watch_node', ABOUT, PARAMETERS, WatchNode, args, spin=_spin)


if __name__ == '__main__':
    sys.exit(main())
