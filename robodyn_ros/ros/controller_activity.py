# SPDX-License-Identifier: Apache-2.0
"""Whether a controller of ros2_control is active, as its controller manager tells."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from lifecycle_msgs.msg import State
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from robodyn_ros.errors import UnknownOption
from robodyn_ros.ros.parameter_overrides import check_name

MESSAGES = 'controller_manager_msgs'
ACTIVITY = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
UNKNOWN = 'of unknown state'


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
    UnknownOption
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
                raise UnknownOption(f'parameter {name}', value, 'a name, as the other one has')
            check_name(name, value)
        if find_spec(MESSAGES) is None:
            raise UnknownOption(
                'parameter controller_manager', manager, f'none where {MESSAGES} is not installed'
            )
        self.controller = controller
        self.state = UNKNOWN
        self._on_begin = on_begin
        self._node = node
        # Not a module of every ROS installation: only those with ros2_control have it.
        messages: Any = import_module(f'{MESSAGES}.msg')
        self._subscription = node.create_subscription(
            messages.ControllerManagerActivity, f'{manager}/activity', self._on_activity, ACTIVITY
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
