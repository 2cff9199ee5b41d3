# SPDX-License-Identifier: Apache-2.0
"""One way to run a node: until a signal ends it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robodyn_ros.errors import RobodynError
from robodyn_ros.ros import command_line
from robodyn_ros.ros.parameter_overrides import in_parameters
from robodyn_ros.ros.plain_text import plain
from robodyn_ros.ros.signals import StopRequested, StopSignal

SIGNAL_PERIOD = 0.05  # between looks at whether a signal has come, while the node is idle [s]
LOG_PERIOD = 1.0  # an error that every message could cause is logged once in so long [s]

PACKAGE = __name__.partition('.')[0]

RCLError = rclpy_implementation.RCLError


def run_until_signal(
    name: str,
    build: Callable[[], Node],
    args: Sequence[str] | None = None,
    *,
    executor: Callable[[], Executor] = SingleThreadedExecutor,
    stop_signal: StopSignal | None = None,
) -> int:
    """
    Run a node until a signal ends it, and return the exit code of the process.

    Parameters
    ----------
    name : str
        Of the logger where the node cannot be built.
    build : callable
        Returns the node; ROS has been initialised when it is called.
    args : sequence of str, optional
        The ROS arguments of the command line; the process's own where not given.
    executor : callable, optional
        Returns what runs the node's callbacks.
    stop_signal : StopSignal, optional
        One that was made before, where something else had to be started in between.

    Returns
    -------
    int
        0 after a signal; 1 where a parameter, the robot or the middleware cannot be used, with a
        FATAL log entry, or a line on stderr where there is no log yet.

    Notes
    -----
    Messages that rclpy itself cannot take in (a parameter of a type that does not exist, a clock
    before zero) end neither the node nor the control cycle: they are logged as ERROR, at most
    once a second. See ``is_rejected_message``. Every other exception, which is a bug, leaves this
    function, and so does the process; the node's ``destroy_node``, which sends the stop command,
    runs before.
    """
    stop_signal = stop_signal or StopSignal()
    # rclpy's own handlers would close the publishers before the stop command.
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RCLError as error:  # where security is enforced and lacks its files, for instance
        print(f'{name}: {_words_of_rcl(error)}', file=sys.stderr)
        return 1
    try:
        try:
            node = build()
        except (RobodynError, ParameterException) as error:
            rclpy.logging.get_logger(name).fatal(plain(in_parameters(error)))
            return 1
        except RCLError as error:
            rclpy.logging.get_logger(name).fatal(plain(_words_of_rcl(error)))
            return 1
        for problem in command_line.ignored_files(args, node.get_fully_qualified_name()):
            node.get_logger().warning(problem)
        try:
            _spin(node, executor(), stop_signal)
        except StopRequested:
            node.get_logger().info('told to stop while it was configuring')
        finally:
            node.destroy_node()
    finally:
        rclpy.shutdown()
    return 0


def _words_of_rcl(error: Exception) -> str:
    """Return what rcl says, without where in its code."""
    return str(error).partition(', at /')[0]


def is_rejected_message(error: Exception) -> bool:
    """
    Return whether what was caught around an executor is rclpy's refusal of a message's content.

    Notes
    -----
    It is where it is one of those that Python raises for a bad value, and no code of this package
    ran between the executor and where it was raised: rclpy was converting the message. An
    exception under a callback of ours has a frame of this package in its traceback, and is a bug.
    """
    if not isinstance(error, (ValueError, TypeError, OverflowError)):
        return False
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]  # of the executor
    modules = [frame.f_globals.get('__name__', '') for frame in frames]
    return bool(modules) and all(module.partition('.')[0] != PACKAGE for module in modules)


def _spin(node: Node, executor: Executor, stop_signal: StopSignal) -> None:
    executor.add_node(node)
    while not stop_signal.has_come:
        try:
            executor.spin_once(timeout_sec=SIGNAL_PERIOD)
        except Exception as error:
            if not is_rejected_message(error):
                raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            node.get_logger().error(
                f'a message was not taken in: {error} ({place.filename}:{place.lineno})',
                throttle_duration_sec=LOG_PERIOD,
            )
    node.get_logger().info('told to stop')


def fastest_executor() -> Executor:
    """
    Return an executor for one thread, to be driven by ``spin_once`` with a timeout.

    Notes
    -----
    The single-threaded executor builds a wait set of everything a node owns before each callback,
    which takes longer than computing a torque. The events executor is told what is ready. It is
    experimental: where rclpy does not have it yet (Jazzy before 7.1.4) the usual one serves. Its
    ``spin()`` never ran a callback in rclpy 7.1.6; ``spin_once(timeout)`` has no such fault.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()
