# SPDX-License-Identifier: Apache-2.0
"""The action FollowJointTrajectory in front of a controller's own, where control_msgs is there."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.ros.feedforward.filled_message import given_indices
from robodyn_ros.ros.feedforward.goal_relay import GoalRelay, Outgoing

LOOKING_PERIOD = 0.5  # for whether the controller is still there [s]


def is_available() -> bool:
    """Return whether control_msgs is installed."""
    return find_spec('control_msgs') is not None


class ActionFront:
    """
    Takes goals of ``~/follow_joint_trajectory`` and passes them on, filled.

    Parameters
    ----------
    node : Node
    controller : str
        Name of the joint trajectory controller.
    fill : callable
        (message) to the message of the filled trajectory; raises RobodynError.
    hold : callable
        Returns the message that holds the arm, or None.
    """

    def __init__(
        self,
        node: Node,
        controller: str,
        fill: Callable[[JointTrajectory], JointTrajectory],
        hold: Callable[[], JointTrajectory | None],
    ) -> None:
        # Not a module of every ROS installation: only those with ros2_control have it.
        action: Any = import_module('control_msgs.action').FollowJointTrajectory
        self._action, self._fill, self._hold = action, fill, hold
        # Callbacks await answers that come by other callbacks of the same group.
        group = ReentrantCallbackGroup()
        self.client = ActionClient(
            node, action, f'{controller}/follow_joint_trajectory', callback_group=group
        )
        self.relay = GoalRelay(
            self.client,
            self._outgoing,
            self._holding_goal,
            lambda text: action.Result(error_code=action.Result.INVALID_GOAL, error_string=text),
            node.get_logger().warning,
        )
        self._server = ActionServer(
            node,
            action,
            '~/follow_joint_trajectory',
            _ended_elsewhere,
            callback_group=group,
            goal_callback=self._on_goal,
            handle_accepted_callback=self.relay.on_accepted,
            cancel_callback=self._on_cancel,
        )
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(LOOKING_PERIOD, self._look, clock=steady)

    def destroy(self) -> None:
        """Close both sides of the action."""
        self._server.destroy()
        self.client.destroy()

    async def _on_goal(self, goal: Any) -> GoalResponse:
        is_accepted = await self.relay.on_goal(goal)
        return GoalResponse.ACCEPT if is_accepted else GoalResponse.REJECT

    async def _on_cancel(self, handle: Any) -> CancelResponse:
        is_accepted = await self.relay.on_cancel(handle)
        return CancelResponse.ACCEPT if is_accepted else CancelResponse.REJECT

    def _look(self) -> None:
        if self.relay.count and not self.client.server_is_ready():
            self.relay.lose_controller()

    def _outgoing(self, goal: Any) -> Outgoing:
        fields = {name: getattr(goal, name) for name in goal.get_fields_and_field_types()}
        given = goal.trajectory
        fields['trajectory'] = self._fill(given)
        indices = given_indices(_times(given), _times(fields['trajectory']))
        return Outgoing(self._action.Goal(**fields), indices)

    def _holding_goal(self) -> Any:
        message = self._hold()
        return None if message is None else self._action.Goal(trajectory=message)


def _ended_elsewhere(handle: Any) -> Any:
    raise RuntimeError('a goal is executed by the callback that it is given at its end')


def _times(message: JointTrajectory) -> np.ndarray:
    times = [point.time_from_start for point in message.points]
    return np.array([time.sec + 1e-9 * time.nanosec for time in times])
