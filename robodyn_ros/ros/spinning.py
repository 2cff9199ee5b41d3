# SPDX-License-Identifier: Apache-2.0
"""One way to begin and to end a node: from the command line, until a signal or its own end."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robodyn_ros.errors import RobodynError
from robodyn_ros.ros import command_line
from robodyn_ros.ros.parameter_overrides import in_parameters
from robodyn_ros.ros.plain_text import plain
from robodyn_ros.ros.rclpy_workarounds import RCLError, is_rejected_message, words_of_rcl
from robodyn_ros.ros.signals import StopRequested, StopSignal
from robodyn_ros.ros_parameters import Parameter

SIGNAL_PERIOD = 0.05  # between looks at whether a signal has come, while the node is idle [s]
LOG_PERIOD = 1.0  # between log entries that every message could cause [s]


def run_from_command_line(
    name: str,
    about: str,
    parameters: Sequence[Parameter],
    build: Callable[[], Node],
    args: Sequence[str] | None,
    **options: Any,
) -> int:
    """Answer a command line (``command_line.exit_code``), or run the node until a signal."""
    code = command_line.exit_code(args, name, about, parameters)
    return run_until_signal(name, build, args, **options) if code is None else code


def run_until_signal(
    name: str,
    build: Callable[[], Node],
    args: Sequence[str] | None = None,
    *,
    executor: Callable[[], Executor] = SingleThreadedExecutor,
    stop_signal: StopSignal | None = None,
    spin: Callable[[Any, Executor, StopSignal], int] | None = None,
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
    spin : callable, optional
        Runs the node, and returns the exit code; not given: its callbacks, until a signal comes.

    Returns
    -------
    int
        0 after a signal, or what ``spin`` returns; 1 where a parameter, the robot or the
        middleware cannot be used, with a FATAL log entry, or a line on stderr where there is no
        log yet.

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
        print(f'{name}: {words_of_rcl(error)}', file=sys.stderr)
        return 1
    try:
        try:
            node = build()
        except (RobodynError, ParameterException) as error:
            rclpy.logging.get_logger(name).fatal(plain(in_parameters(error)))
            return 1
        except RCLError as error:
            rclpy.logging.get_logger(name).fatal(plain(words_of_rcl(error)))
            return 1
        for problem in command_line.ignored_files(args, node.get_fully_qualified_name()):
            node.get_logger().warning(problem)
        running = executor()  # to the end: when it goes, it may take the signals' handlers along
        stop_signal.take()  # newer releases of the events executor have taken SIGINT and SIGTERM
        try:
            return (spin or _spin)(node, running, stop_signal)
        except StopRequested:
            node.get_logger().info('stop requested while configuring')
            return 0
        finally:
            node.destroy_node()
    finally:
        rclpy.shutdown()


def _spin(node: Node, executor: Executor, stop_signal: StopSignal) -> int:
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
    node.get_logger().info('stop requested')
    return 0
