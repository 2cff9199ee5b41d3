# SPDX-License-Identifier: Apache-2.0
"""The dynamics node's end of the connection to its service process."""

from __future__ import annotations

import atexit
import multiprocessing
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from rclpy.node import Node

from robodyn_ros.control.load import Load
from robodyn_ros.errors import ChangeRefused
from robodyn_ros.model import RobotModel
from robodyn_ros.ros.plain_text import trace
from robodyn_ros.ros.services import service_node
from robodyn_ros.ros.services.exchange import (
    LONGEST_AGE,
    Acknowledgement,
    Change,
    NewRobot,
    Opening,
    Outcome,
    Ping,
)
from robodyn_ros.ros.services.motion_history import MotionHistory
from robodyn_ros.ros.services.state_snapshot import StateSnapshot

READY_TIMEOUT = 5.0  # that the process is given to take in a robot [s]
END_TIMEOUT = 2.0  # that it is given to end by itself [s]
PING_PERIOD = 1.0  # between a ping that came back and the next [s]
PING_TIMEOUT = 4.0  # longer than a change may take; then the process counts as hung [s]
START_TIMEOUT = 30.0  # the same for the first ping, which waits for ROS to start [s]

Status = Literal['answering', 'hung', 'ended']


class ServiceProcess:
    """
    A forked process that offers services; make it before ``rclpy.init`` and before any thread.

    Parameters
    ----------
    args : sequence of str, optional
        The ROS arguments of the command line; the process's own where not given.

    Attributes
    ----------
    snapshot : StateSnapshot
        To write the measured state to.
    has_ended : bool
        Whether the process is gone, so that nobody responds any more.

    Notes
    -----
    The process ends on ``close``, at the exit of this process at the latest, and when this process
    is killed. Nothing here waits for a process that hangs, but ``take`` for ``READY_TIMEOUT``,
    ``forget`` and ``close`` for ``END_TIMEOUT``: a thread sends, another receives, and both wait
    nearly always.
    """

    def __init__(self, args: Sequence[str] | None = None) -> None:
        self.snapshot = StateSnapshot()
        self.history = MotionHistory()
        self.has_ended = False
        self._is_ready = threading.Event()
        self._robots = 0  # handed over so far, and the number of the last one
        self._is_closing = False
        self._ping = Ping(0)
        self._pinged: float | None = None  # steady time of a ping that has not come back [s]
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        context = multiprocessing.get_context('fork')
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=service_node.run,
            args=(theirs, self._connection, self.snapshot, self.history, args),
            name='services',
            daemon=True,
        )
        self._process.start()
        theirs.close()
        # multiprocessing ends daemons by SIGTERM, which the process ignores, and waits for ever.
        atexit.register(self.close)
        threading.Thread(target=self._send, daemon=True).start()

    @property
    def status(self) -> Status:
        """Whether the process responds, as far as the last ping tells."""
        if self.has_ended:
            return 'ended'
        pinged = self._pinged
        timeout = START_TIMEOUT if self._ping.number == 1 else PING_TIMEOUT
        if pinged is not None and time.monotonic() - pinged > timeout:
            return 'hung'
        return 'answering'

    def open(self, node: Node, apply: Callable[[Change], Outcome]) -> None:
        """
        Offer the services under a node's name.

        Parameters
        ----------
        node : Node
            Its remappings decide the services' names.
        apply : callable
            Applies a change, between two control cycles, and returns what became of it.
        """
        self._node = node
        self._apply = apply
        names = {name: node.resolve_service_name(f'~/{name}') for name in service_node.SERVICES}
        self._outbox.put(Opening(f'_{node.get_name()}_services', node.get_namespace(), names))
        threading.Thread(target=self._listen, daemon=True).start()

    def take(
        self,
        arm: RobotModel,
        load: Load,
        longest_age: float = LONGEST_AGE,
        parameter_deviation: np.ndarray | None = None,
        effort_scale: np.ndarray | None = None,
    ) -> None:
        """
        Respond about an arm from now on; returns when the process does.

        Parameters
        ----------
        arm : RobotModel
            Without payloads.
        load : Load
            Payloads and gravity that apply.
        longest_age : float
            Of a measured state that a request without a position is computed at [s].
        parameter_deviation : array, shape (count,), optional
            Of the base parameters, where the arm was identified.
        effort_scale : array, shape (n,), optional
            Torque for a unit of measured effort; 1 where not given.
        """
        robot = NewRobot(arm, load, longest_age, parameter_deviation, effort_scale)
        if not self._hand_over(robot, READY_TIMEOUT):
            self._node.get_logger().error('the services are not ready: nobody answers')

    def forget(self) -> None:
        """Respond that there is no robot; returns when the process does, if it responds at all."""
        self._hand_over(NewRobot(), END_TIMEOUT if self.status == 'answering' else 0.0)

    def _hand_over(self, robot: NewRobot, timeout: float) -> bool:
        """Send what to respond about; return whether the process has taken it in a time [s]."""
        self.snapshot.clear()
        self._robots += 1  # first: from now on one that was given up is not waited for
        self._is_ready.clear()
        self._outbox.put(replace(robot, number=self._robots))
        return not self.has_ended and self._is_ready.wait(timeout)

    def close(self) -> None:
        """End the process, by force if need be."""
        if self._is_closing:
            return
        self._is_closing = True
        atexit.unregister(self.close)
        self._outbox.put(None)
        self._process.join(END_TIMEOUT)
        self._process.kill()
        self._process.join()

    # --- in threads ----------------------------------------------------------------------------

    def _send(self) -> None:
        """Send what the node says; only this thread waits where the process does not read."""
        with suppress(OSError):  # it has ended, which the listener tells
            while True:
                self._connection.send(message := self._outbox.get())
                if message is None:
                    return

    def _listen(self) -> None:
        """Receive what the process says, and ping it."""
        next_ping = time.monotonic()
        with suppress(EOFError, OSError):
            while True:
                if self._pinged is None and time.monotonic() >= next_ping:
                    self._ping = Ping(self._ping.number + 1)
                    self._pinged = time.monotonic()
                    self._outbox.put(self._ping)
                if not self._connection.poll(PING_PERIOD):
                    continue
                message = self._connection.recv()
                if isinstance(message, Ping):
                    self._pinged, next_ping = None, time.monotonic() + PING_PERIOD
                elif isinstance(message, Acknowledgement):
                    if message.number == self._robots:
                        self._is_ready.set()
                elif self._node.executor is not None:
                    # The events executor knows no guard conditions; a task wakes any executor.
                    self._node.executor.create_task(self._on_change, message)
        self.has_ended = True
        self._is_ready.set()
        if not self._is_closing:
            self._node.get_logger().error('the service process has ended')

    # --- between two control cycles ------------------------------------------------------------

    def _on_change(self, change: Change) -> None:
        if time.monotonic() > change.deadline:
            late = ChangeRefused('the control cycle', 'busy for too long', 'a running node')
            self._outbox.put(Outcome(change.number, None, late))
            return
        try:
            self._outbox.put(self._apply(change))
        except Exception:
            # Out of an executor's task it would end the process without a stop command.
            self._node.get_logger().error(f'a change failed: {trace()}')
            failed = ChangeRefused('the control cycle', 'it failed; see the log', 'no bug')
            self._outbox.put(Outcome(change.number, None, failed))
