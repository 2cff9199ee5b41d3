# SPDX-License-Identifier: Apache-2.0
"""
The action FollowJointTrajectory in front of a controller's own, if control_msgs is installed.

Every goal, cancel, feedback and result goes through once. The controller alone decides what
becomes of a goal: whether it is accepted, that a new one preempts it, whether it can be cancelled.
Only a goal that cannot be filled does not get there; it is accepted and aborted here, because a
goal that is not accepted has no words to say why.

``GoalRelay`` needs no ROS: the two sides are given as objects with the methods of rclpy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.errors import RobodynError
from robodyn_ros.ros.conversions import seconds

LOOKING_PERIOD = 0.5  # for whether the controller is still there [s]


def is_available() -> bool:
    """Return whether control_msgs is installed."""
    return find_spec('control_msgs') is not None


class ControllerLost(Exception):
    """The controller's action server ended during a request."""


class Outgoing(NamedTuple):
    """
    The message that is sent for a goal.

    Parameters
    ----------
    goal : object
        Of the action's type.
    indices : sequence of int
        For each of its points which point of the given goal is next.
    """

    goal: Any
    indices: Sequence[int]


@dataclass(eq=False)
class _Relayed:
    """A goal in progress."""

    goal: Any
    indices: Sequence[int] = ()
    refusal: str = ''
    theirs: Any = None  # the handle of the goal that was sent
    ours: Any = None  # the handle of the goal that came
    early_feedback: list[Any] = field(default_factory=list)
    open_cancels: int = 0  # that the controller has not answered
    answer: Any = None  # what became of it: status and result


class GoalRelay:
    """
    Relays goals between the clients of an action and the controller.

    Parameters
    ----------
    controller : rclpy.action.ActionClient
        ``server_is_ready`` and ``send_goal_async`` are used of it.
    fill : callable
        A goal to the ``Outgoing`` one; raises RobodynError where it cannot.
    hold : callable
        Returns the goal that holds the arm, or None; asked for when a goal ended before its end
        and no other is there, since the controller then holds the arm without any effort.
    invalid_result : callable
        (text) to a result that says that the goal is invalid.
    warn : callable
        Takes a sentence for the log.

    Notes
    -----
    An rclpy executor that has a coroutine to resume does not sleep. So only the answers to goals
    and cancels, which come at once, are awaited; the end of a goal is called back, and the goal
    that came is in the state ACCEPTED until then.
    """

    def __init__(
        self,
        controller: Any,
        fill: Callable[[Any], Outgoing],
        hold: Callable[[], Any],
        invalid_result: Callable[[str], Any],
        warn: Callable[[str], None],
    ) -> None:
        self._controller = controller
        self._fill = fill
        self._hold = hold
        self._invalid_result = invalid_result
        self._warn = warn
        self._relayed: list[_Relayed] = []
        self._awaited: list[Any] = []

    @property
    def count(self) -> int:
        """Number of goals in progress."""
        return len(self._relayed)

    async def on_goal(self, goal: Any) -> bool:
        """Pass a goal on, and return whether it is accepted."""
        if not self._controller.server_is_ready():
            self._warn('goal rejected: the controller has no action server')
            return False
        try:
            outgoing = self._fill(goal)
        except RobodynError as error:
            self._warn(f'goal refused: {error}')
            self._relayed.append(_Relayed(goal, refusal=str(error)))
            return True
        relayed = _Relayed(goal, outgoing.indices)
        self._relayed.append(relayed)
        try:
            relayed.theirs = await self._answer(
                self._controller.send_goal_async(
                    outgoing.goal,
                    feedback_callback=lambda message: self._on_feedback(relayed, message),
                )
            )
        except ControllerLost:
            self._warn('goal rejected: the controller went away')
        if relayed.theirs is None or not relayed.theirs.accepted:
            self._relayed.remove(relayed)
            return False
        return True

    def on_accepted(self, handle: Any) -> None:
        """Take the handle of an accepted goal, and wait for its result."""
        relayed = self._of(handle)
        if relayed is None:
            return
        relayed.ours = handle
        for feedback in relayed.early_feedback:
            handle.publish_feedback(feedback)
        if relayed.refusal:
            self._finish(relayed)
        else:
            result = relayed.theirs.get_result_async()
            result.add_done_callback(lambda future: self._on_result(relayed, future.result()))

    async def on_cancel(self, handle: Any) -> bool:
        """Pass the cancellation of a goal on, and return whether it is accepted."""
        relayed = self._of(handle)
        if relayed is None or relayed.theirs is None:
            return False
        relayed.open_cancels += 1
        try:
            response = await self._answer(relayed.theirs.cancel_goal_async())
        except ControllerLost:
            return False
        finally:
            relayed.open_cancels -= 1
            if relayed.answer is not None and relayed.open_cancels == 0:
                self._finish(relayed)
        return bool(response.goals_canceling)

    def hold(self) -> None:
        """Hold the arm at its position, if no goal is in progress."""
        if not self._relayed and (goal := self._hold()) is not None:
            # As a goal of its own: it cannot overtake one that is sent behind it.
            self._controller.send_goal_async(goal)

    def lose_controller(self) -> None:
        """Abort all requests to the controller, which will not be answered any more."""
        for future in list(self._awaited):
            if not future.done():
                future.set_exception(ControllerLost())
        for relayed in list(self._relayed):
            if relayed.ours is not None and relayed.answer is None and not relayed.refusal:
                relayed.refusal = 'the controller went away'
                self._warn(f'goal aborted: {relayed.refusal}')
                self._finish(relayed)

    async def _answer(self, future: Any) -> Any:
        self._awaited.append(future)
        try:
            return await future
        finally:
            self._awaited.remove(future)

    def _on_feedback(self, relayed: _Relayed, message: Any) -> None:
        feedback = message.feedback
        index = getattr(feedback, 'index', -1)  # control_msgs 5, Jazzy's, has none
        if 0 <= index < len(relayed.indices):
            feedback.index = relayed.indices[index]
        if relayed.ours is None:
            relayed.early_feedback.append(feedback)
        else:
            relayed.ours.publish_feedback(feedback)

    def _on_result(self, relayed: _Relayed, answer: Any) -> None:
        if relayed.answer is not None or relayed not in self._relayed:
            return
        relayed.answer = answer
        if relayed.open_cancels == 0:  # else their answer decides in which state the goal ends
            self._finish(relayed)

    def _finish(self, relayed: _Relayed) -> None:
        """End a goal after the callbacks that run now, for instance a cancel response."""
        if relayed in self._relayed:
            self._relayed.remove(relayed)
            relayed.ours.execute(lambda handle: self._end(relayed, handle))

    def _end(self, relayed: _Relayed, handle: Any) -> Any:
        """End the received goal like the one that was sent, and return its result."""
        if relayed.refusal:
            handle.abort()
            return self._invalid_result(relayed.refusal)
        status = relayed.answer.status
        if status == GoalStatus.STATUS_SUCCEEDED:
            handle.succeed()
        elif status == GoalStatus.STATUS_CANCELED and handle.is_cancel_requested:
            handle.canceled()
        else:
            if status == GoalStatus.STATUS_CANCELED:  # rclpy lets no goal end so by itself
                self._warn('goal aborted: the controller cancelled it, without being asked to')
            handle.abort()
        if status != GoalStatus.STATUS_SUCCEEDED:
            self.hold()
        return relayed.answer.result

    def _of(self, handle: Any) -> _Relayed | None:
        for relayed in self._relayed:
            if relayed.goal is handle.request:
                return relayed
        return None


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
    forget : callable
        Called where the controller does not take what was filled.
    """

    def __init__(
        self,
        node: Node,
        controller: str,
        fill: Callable[[JointTrajectory], JointTrajectory],
        hold: Callable[[], JointTrajectory | None],
        forget: Callable[[], None],
    ) -> None:
        # Not a module of every ROS installation: only those with ros2_control have it.
        action: Any = import_module('control_msgs.action').FollowJointTrajectory
        self._action, self._fill, self._hold, self._forget = action, fill, hold, forget
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
        if not is_accepted:
            self._forget()
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
    return np.array([seconds(point.time_from_start) for point in message.points])


def given_indices(given: np.ndarray, filled: np.ndarray) -> list[int]:
    """Return for each filled point which given one is next, by their times [s]."""
    if filled[-1] < given[-1] - 1e-6:  # timed anew: about as far as its part of the time
        filled = filled * (given[-1] / filled[-1])
    # A point that was given may be a rounding error from where it was.
    after = np.searchsorted(given, filled - 0.5e-9)
    return np.minimum(after, len(given) - 1).tolist()
