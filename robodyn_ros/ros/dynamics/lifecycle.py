# SPDX-License-Identifier: Apache-2.0
"""Two things that rclpy's lifecycle nodes leave to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from robodyn_ros.ros.plain_text import trace

SomeNode = TypeVar('SomeNode', bound=LifecycleNode)
Transition = Callable[[SomeNode, LifecycleState], TransitionCallbackReturn]


def log_exceptions(transition: Transition) -> Transition:
    """Return the transition with its bugs in the log, where rclpy would swallow them."""

    @wraps(transition)
    def surfaced(node: SomeNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().fatal(trace())
            raise

    return surfaced


def reject_invalid_transitions(node: LifecycleNode) -> None:
    """Refuse a transition that the state does not allow, where rclpy would end the process."""
    change_state = node._service_change_state.callback

    def answer(request: ChangeState.Request, response: ChangeState.Response) -> Any:
        try:
            return change_state(request, response)
        except RuntimeError as error:
            present = node._state_machine.current_state[1]
            node.get_logger().warning(f'no such transition from {present}: {error}')
            response.success = False
            return response

    node._service_change_state.callback = answer
