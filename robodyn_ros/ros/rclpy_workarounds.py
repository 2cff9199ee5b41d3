# SPDX-License-Identifier: Apache-2.0
"""
Workarounds for rclpy: missing functions, and fixes.

Nothing else in this package uses rclpy's private parts. Each entry says why it is there, and the
upstream issue or pull request by its number (github.com/ros2/rclpy). All are needed with rclpy
7.1.5, Jazzy's of 2025; look through them with each new release.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

import rclpy
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import CallbackGroup
from rclpy.client import Client
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.impl import rcutils_logger
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.parameter_service import ParameterService
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from robodyn_ros.errors import MalformedData, Phrase

SomeMessage = TypeVar('SomeMessage')

RCLError = rclpy_implementation.RCLError
"""What rcl refuses; it has no public name. Issue: none known."""


def words_of_rcl(error: Exception) -> str:
    """Return what rcl says, without where in its code. Issue: none known."""
    return str(error).partition(', at /')[0]


# --- executors ---------------------------------------------------------------------------------

PACKAGE = __name__.partition('.')[0]


def fastest_executor() -> Executor:
    """
    Return an executor for one thread, to be driven by ``spin_once`` with a timeout.

    Notes
    -----
    The single-threaded executor builds a wait set of everything a node owns before each callback,
    which takes longer than computing a torque. The events executor is told what is ready (pull
    request 1391). It is experimental: where rclpy does not have it yet (before 7.1.4) the usual
    one serves. Its ``spin()`` never ran a callback in rclpy 7.1.6, and it answers no service whose
    callback is a coroutine (issue 1473); ``spin_once(timeout)`` and callbacks have no such fault.

    It is made here without ``rclpy.experimental.EventsExecutor``, which enables faulthandler: on
    the stack of some kilobytes that this gives the main thread for signals, a few at once
    overflow (SIGSEGV). Issue: none known.
    """
    kind = getattr(rclpy_implementation, 'EventsExecutor', None)
    if kind is None:
        return SingleThreadedExecutor()
    context = rclpy.get_default_context()
    executor = kind(context)
    context.on_shutdown(executor.wake)
    return executor


def is_rejected_message(error: Exception) -> bool:
    """
    Return whether an exception of an executor is rclpy's refusal of a message's content.

    Notes
    -----
    A parameter of a type that does not exist, or a clock before zero, raises out of the executor
    and would end the process. It is such a refusal where it is one of the exceptions that Python
    raises for a bad value, and no code of this package ran between the executor and where it was
    raised: rclpy was converting the message. An exception under a callback of ours has a frame of
    this package in its traceback, and is a bug. Issue: none known for rclpy; 3257 of ros2/rclcpp.
    """
    if not isinstance(error, (ValueError, TypeError, OverflowError)):
        return False
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]  # of the executor
    modules = [frame.f_globals.get('__name__', '') for frame in frames]
    return bool(modules) and all(module.partition('.')[0] != PACKAGE for module in modules)


# --- messages that come as bytes -----------------------------------------------------------------


def message_of(content: bytes, kind: type[SomeMessage]) -> SomeMessage:
    """
    Return the message that bytes are, which anybody may have sent. Issue: none known.

    What rclpy raises for bytes that are none is not documented, and a thread that it ends reads no
    more.

    Raises
    ------
    MalformedData
    """
    try:
        return deserialize_message(content, kind)
    except Exception as error:
        package = kind.__module__.partition('.')[0]
        raise MalformedData(
            'message', Phrase(f'{len(content)} bytes'), f'a {package}/{kind.__name__}'
        ) from error


# --- messages that wait, where no executor runs --------------------------------------------------


class PolledCallbackGroup(CallbackGroup):
    """
    The group of subscriptions that an executor passes over: their messages are taken as they wait.

    rclpy wakes an executor for every message; a thousand a second cost a twentieth of a core.
    """

    def can_execute(self, entity: Any) -> bool:
        """Return that an executor neither runs it nor waits for it."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Not called."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Not called."""


def waiting_messages(subscription: Subscription, kind: Any) -> Iterator[bytes]:
    """
    Take the queued messages of a subscription, as bytes.

    In a callback no executor runs, and rclpy has no ``take``, as rclcpp has. Issue: none known.
    """
    while True:
        with subscription.handle:
            taken = subscription.handle.take_message(kind, True)
        if taken is None:
            return
        yield taken[0]


def waiting_response(client: Client, kind: Any) -> Any:
    """Take a service's response that waits for a client, or None; the same."""
    with client.handle:
        return client.handle.take_response(kind.Response)[1]


# --- lifecycle ---------------------------------------------------------------------------------

SomeNode = TypeVar('SomeNode', bound=LifecycleNode)
Transition = Callable[[SomeNode, LifecycleState], TransitionCallbackReturn]


def lifecycle_state(node: LifecycleNode) -> str:
    """Return the label of a node's state, which rclpy only offers by a service."""
    return node._state_machine.current_state[1]


def log_exceptions(transition: Transition) -> Transition:
    """Return the transition with its bugs in the log: rclpy swallows them (1673, 1696)."""

    @wraps(transition)
    def surfaced(node: SomeNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            # Indented: a line of a log entry that begins at the margin looks like another entry.
            node.get_logger().fatal(traceback.format_exc().rstrip().replace('\n', '\n  '))
            raise

    return surfaced


def reject_invalid_transitions(node: LifecycleNode) -> None:
    """
    Refuse a transition that the state does not allow, where rclpy ends the process.

    Issue 1209, mended by pull request 1319 after Jazzy.
    """
    change_state = node._service_change_state.callback

    def answer(request: ChangeState.Request, response: ChangeState.Response) -> Any:
        try:
            return change_state(request, response)
        except RuntimeError as error:
            present = lifecycle_state(node)
            node.get_logger().warning(f'no such transition from {present}: {error}')
            response.success = False
            return response

    node._service_change_state.callback = answer


# --- parameters --------------------------------------------------------------------------------


def given_overrides(node: Node) -> dict[str, Parameter]:
    """
    Return what the user gives for parameters that are not declared yet; it may be changed.

    rclpy has no public way to see it, nor to convert it. Issue: none known.
    """
    return node._parameter_overrides


MOST_ENTRIES = 60
"""Of one request: more than there are parameters. No cycle runs while they change."""

_TYPES = {kind.value for kind in Parameter.Type}
WARNING_PERIOD = 1.0  # between log entries about refused requests [s]


class BoundedParameterService(ParameterService):
    """
    Offers a node's parameters; make the node with ``start_parameter_services=False``.

    A request of more than ``MOST_ENTRIES`` is refused as a whole: a thousand entries held the
    control cycle up for 0.7 s, and rclpy has no bound. So is one with a type that does not exist:
    rclpy raises for it, out of the executor, and answers nothing. Issue: none known.
    """

    def _describe_parameters_callback(self, request: Any, response: Any) -> Any:
        if self._refusal(request.names):
            return response
        return super()._describe_parameters_callback(request, response)

    def _get_parameters_callback(self, request: Any, response: Any) -> Any:
        if self._refusal(request.names):
            return response
        return super()._get_parameters_callback(request, response)

    def _get_parameter_types_callback(self, request: Any, response: Any) -> Any:
        if self._refusal(request.names):
            return response
        return super()._get_parameter_types_callback(request, response)

    def _set_parameters_callback(self, request: Any, response: Any) -> Any:
        refusal = self._refusal_to_set(request.parameters)
        if refusal:
            result = SetParametersResult(successful=False, reason=refusal)
            response.results = [result] * len(request.parameters)
            return response
        return super()._set_parameters_callback(request, response)

    def _set_parameters_atomically_callback(self, request: Any, response: Any) -> Any:
        refusal = self._refusal_to_set(request.parameters)
        if refusal:
            response.result = SetParametersResult(successful=False, reason=refusal)
            return response
        return super()._set_parameters_atomically_callback(request, response)

    def _refusal_to_set(self, parameters: Sequence[Any]) -> str:
        """Return why parameters are not set, after logging it; empty: they are, if rclpy does."""
        for each in parameters[:MOST_ENTRIES]:
            if each.value.type not in _TYPES:
                refusal = f'request: parameter type {each.value.type}; allowed: 0 to {max(_TYPES)}'
                self._get_node().get_logger().warning(
                    refusal, throttle_duration_sec=WARNING_PERIOD
                )
                return refusal
        return self._refusal(parameters)

    def _refusal(self, entries: Sequence[Any]) -> str:
        """Return why this number of entries is refused, after logging it; empty: it is not."""
        if len(entries) <= MOST_ENTRIES:
            return ''
        refusal = f'request: {len(entries)} parameters; allowed: at most {MOST_ENTRIES} at once'
        self._get_node().get_logger().warning(refusal, throttle_duration_sec=WARNING_PERIOD)
        return refusal


# --- the log -----------------------------------------------------------------------------------


RcutilsLogger = rcutils_logger.RcutilsLogger
"""What ``get_logger`` returns; it has no public name. Issue: none known."""


def count_as_the_logger(file: str) -> None:
    """
    Have rclpy look past a file where it asks which line logs.

    It tells the lines apart, whose repetitions it counts, by the first file of the stack that is
    none of its own. Issue: none known.
    """
    rcutils_logger._internal_callers.append(os.path.realpath(file))
