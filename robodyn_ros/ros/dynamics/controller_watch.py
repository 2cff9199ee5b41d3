# SPDX-License-Identifier: Apache-2.0
"""
The ros2_control controller that takes the commands: whether it is active, and its deactivation.

Commands to an inactive controller move nothing. A reference that is followed meanwhile would run
away from the arm, and the activation would throw it there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rclpy.node import Node

from robodyn_ros.control.command_pipeline import CommandPipeline
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.ros.controller_activity import MESSAGES, ControllerActivity
from robodyn_ros.ros.rclpy_workarounds import waiting_response

LONGEST_DEACTIVATION = 0.5  # [s], while the arm is carried


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
    UnknownOption
        As ``ControllerActivity``.
    """

    def __init__(self, node: Node, manager: str, controller: str) -> None:
        super().__init__(node, manager, controller, self._begin)
        self._has_begun = False  # to be active, which the pipeline is to be told of
        self._follows = False  # whether a trajectory was let through since it became active
        self._switch: Any = import_module(f'{MESSAGES}.srv').SwitchController
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
                f'while controller {self.controller} is {self.state}',
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
