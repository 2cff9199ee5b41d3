# SPDX-License-Identifier: Apache-2.0
"""
Whether a controller of ros2_control is active, by its controller manager; its deactivation.

Commands to an inactive controller move nothing. A reference that is followed meanwhile would run
away from the arm, and the activation would throw it there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from lifecycle_msgs.msg import State
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from robodyn_ros.control.command_pipeline import CommandPipeline
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import InvalidArgument, Phrase, RejectedTrajectory
from robodyn_ros.ros.parameter_overrides import check_name
from robodyn_ros.ros.rclpy_workarounds import waiting_response

_MESSAGES = 'controller_manager_msgs'
_ACTIVITY = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
UNKNOWN = 'of unknown state'
LONGEST_DEACTIVATION = 0.5  # [s], while gravity is commanded


class ControllerActivity:
    """
    Knows the state of one controller.

    Parameters
    ----------
    node : Node
    manager : str
        Name of the controller manager's node.
    controller : str
        Name of the controller.
    on_begin : callable, optional
        Called when the controller has become active, which it was known not to be.

    Attributes
    ----------
    state : str
        The label of its lifecycle state, ``not loaded`` or ``UNKNOWN``.

    Raises
    ------
    InvalidArgument
        The messages of the controller manager are not installed, a name is none of ROS's, or only
        one of the two is given.

    Notes
    -----
    The topic ``activity`` is the controller manager's from ros2_control 4.27 (Jazzy) on.
    """

    def __init__(
        self,
        node: Node,
        manager: str,
        controller: str,
        on_begin: Callable[[], None] | None = None,
    ) -> None:
        for name, value in (('controller_manager', manager), ('controller', controller)):
            if not value:
                raise InvalidArgument(f'parameter {name}', value, 'a name, as the other one has')
            check_name(name, value)
        if find_spec(_MESSAGES) is None:
            raise InvalidArgument(
                'parameter controller_manager', manager, f'none where {_MESSAGES} is not installed'
            )
        self.controller = controller
        self.state = UNKNOWN
        self._on_begin = on_begin
        self._node = node
        # Not a module of every ROS installation: only those with ros2_control have it.
        messages: Any = import_module(f'{_MESSAGES}.msg')
        self._subscription = node.create_subscription(
            messages.ControllerManagerActivity, f'{manager}/activity', self._on_activity, _ACTIVITY
        )

    @property
    def is_active(self) -> bool:
        """Whether what is commanded acts."""
        return self.state == 'active'

    @property
    def may_be_active(self) -> bool:
        """Whether what is commanded acts as far as is known."""
        return self.state in ('active', UNKNOWN)

    def destroy(self) -> None:
        """Listen no more."""
        self._node.destroy_subscription(self._subscription)

    def _on_activity(self, message: Any) -> None:
        was_idle = not self.may_be_active
        states = {each.name: each.state for each in message.controllers}
        state = states.get(self.controller)
        if state is None:
            self.state = 'not loaded'
        elif state.id == State.PRIMARY_STATE_ACTIVE:
            self.state = 'active'
        else:
            self.state = state.label or 'not active'
        if self.is_active and was_idle and self._on_begin is not None:
            self._on_begin()


class ControllerWatch(ControllerActivity):
    """
    Knows the state of one controller, and can deactivate it.

    Parameters
    ----------
    node : Node
    manager : str
        Name of the controller manager's node.
    controller : str
        Name of the controller.

    Raises
    ------
    InvalidArgument
        As ``ControllerActivity``.
    """

    def __init__(self, node: Node, manager: str, controller: str) -> None:
        super().__init__(node, manager, controller, self._begin)
        self._has_begun = False  # to be active, and the pipeline does not know it yet
        self._follows = False  # whether a trajectory was let through since it became active
        self._switch: Any = import_module(f'{_MESSAGES}.srv').SwitchController
        self._client = node.create_client(self._switch, f'{manager}/switch_controller')

    @classmethod
    def of(cls, node: Node, settings: ControlSettings) -> ControllerWatch | None:
        """Return that of the controller which the settings name, None where they name none."""
        manager, controller = settings.controller_manager, settings.controller
        return cls(node, manager, controller) if manager or controller else None

    def check_active(self) -> None:
        """
        Check that a trajectory can be followed.

        Raises
        ------
        RejectedTrajectory
            The controller is not active, or not known to be.
        """
        if not self.is_active:
            raise RejectedTrajectory(
                'trajectory',
                Phrase(f'while controller {self.controller} is {self.state}'),
                'an active controller',
            )
        self._follows = True

    def keep_from_following(self, pipeline: CommandPipeline, now: float) -> None:
        """
        Leave a pipeline only gravity to compensate while the controller is not active.

        Where it has become active the stream of commands begins: the arm may have moved since it
        was let go, for no torque acted before, and is damped.
        """
        if self._has_begun:
            self._has_begun = False
            if pipeline.is_enabled and pipeline.reference_status == 'none':
                pipeline.disable()
                pipeline.enable(now)
        if self.is_active or pipeline.reference_status == 'none':
            return
        if self._follows:  # and not only a brake, which an arm that others move begins by itself
            self._follows = False
            self._node.get_logger().warning(
                f'reference dropped: {self.controller} is {self.state}'
            )
        pipeline.disable()
        pipeline.enable(now)

    def deactivate(self, carry: Callable[[], None]) -> None:
        """
        Have the controller deactivated, where it is active.

        Parameters
        ----------
        carry : callable
            Goes on commanding for a moment; called again and again until the answer comes. No
            executor runs meanwhile.
        """
        if not self.is_active or not self._client.service_is_ready():
            return
        request = self._switch.Request()
        request.deactivate_controllers = [self.controller]
        request.strictness = self._switch.Request.BEST_EFFORT
        request.timeout.sec = 1
        self._client.call_async(request)
        begin = time.monotonic()
        while (response := waiting_response(self._client, self._switch)) is None:
            if time.monotonic() - begin > LONGEST_DEACTIVATION:
                why = f'no answer in {LONGEST_DEACTIVATION} s'
                self._node.get_logger().error(f'{self.controller} was not deactivated: {why}')
                return
            carry()
        if response.ok:
            self.state = 'inactive'
        else:
            why = getattr(response, 'message', '')  # which old releases do not have
            self._node.get_logger().error(f'{self.controller} was not deactivated: {why}')

    def destroy(self) -> None:
        """Watch no more."""
        super().destroy()
        self._node.destroy_client(self._client)

    def _begin(self) -> None:
        self._has_begun = True
