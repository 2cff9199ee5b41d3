# SPDX-License-Identifier: Apache-2.0
"""The dynamics node's end of the line to the process that answers its services."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe

from rclpy.node import Node

from robodyn_ros.control.load import Load
from robodyn_ros.model import RobotModel
from robodyn_ros.ros.services import service_node as service_node
from robodyn_ros.ros.services.service_node import (
    Acknowledgement,
    Change,
    NewRobot,
    Opening,
    Outcome,
)
from robodyn_ros.ros.services.state_snapshot import StateSnapshot

READY_TIMEOUT = 5.0  # that the process is given to take in a robot [s]
END_TIMEOUT = 2.0  # that it is given to end by itself [s]


class ServiceProcess:
    """
    A forked process that answers services; make it before ``rclpy.init`` and before any thread.

    Parameters
    ----------
    args : sequence of str, optional
        The ROS arguments of the command line; the process's own where not given.

    Attributes
    ----------
    snapshot : StateSnapshot
        To put up the measured state on.
    has_ended : bool
        Whether the process is gone, so that nobody answers any more.
    """

    def __init__(self, args: Sequence[str] | None = None) -> None:
        self.snapshot = StateSnapshot()
        self._connection, theirs = Pipe()
        self._is_ready = threading.Event()
        self._is_closing = False
        self.has_ended = False
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            self._connection.close()
            code = 1
            try:
                service_node.run(theirs, self.snapshot, args)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                # Nothing of the parent's is to be run or closed from here.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        theirs.close()

    def open(self, node: Node, put_in_force: Callable[[Change], Outcome]) -> None:
        """
        Offer the services under a node's name.

        Parameters
        ----------
        node : Node
            Its remappings decide the services' names.
        put_in_force : callable
            Takes a change, between two control cycles, and tells what became of it.
        """
        self._node = node
        self._put_in_force = put_in_force
        names = {name: node.resolve_service_name(f'~/{name}') for name in service_node.SERVICES}
        self._send(Opening(f'_{node.get_name()}_services', node.get_namespace(), names))
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def take(self, arm: RobotModel, load: Load) -> None:
        """Answer about an arm from now on; returns when it does."""
        self.snapshot.clear()
        self._is_ready.clear()
        self._send(NewRobot.of(arm, load))
        if not self._is_ready.wait(READY_TIMEOUT):
            self._node.get_logger().error('the services are not ready: nobody answers')

    def forget(self) -> None:
        """Answer that there is no robot."""
        self.snapshot.clear()
        self._send(NewRobot(None, None))

    def close(self) -> None:
        """End the process."""
        self._is_closing = True
        self._send(None)
        deadline = time.monotonic() + END_TIMEOUT
        with suppress(ChildProcessError):
            while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    os.kill(self._pid, signal.SIGKILL)
                    deadline = math.inf
                time.sleep(0.005)
        self._connection.close()

    def _send(self, message: object) -> None:
        with suppress(OSError):  # it has ended, which the listener tells
            self._connection.send(message)

    def _listen(self) -> None:
        """Take in what the process says; runs in a thread that waits nearly always."""
        with suppress(EOFError, OSError):
            while True:
                message = self._connection.recv()
                if isinstance(message, Acknowledgement):
                    self._is_ready.set()
                elif self._node.executor is not None:
                    # The events executor knows no guard conditions; a task wakes any executor.
                    self._node.executor.create_task(self._on_change, message)
        self.has_ended = True
        self._is_ready.set()
        if not self._is_closing:
            self._node.get_logger().error('the process that answers the services has ended')

    def _on_change(self, change: Change) -> None:
        if time.monotonic() > change.deadline:
            self._send(Outcome(change.number, None, 'asked for too long ago'))
            return
        try:
            self._send(self._put_in_force(change))
        except (
            Exception
        ):  # out of an executor's task it would end the process without a stop command
            self._node.get_logger().error(f'a change failed: {traceback.format_exc()}')
            self._send(Outcome(change.number, None, 'it failed; see the log'))
