# SPDX-License-Identifier: Apache-2.0
"""The dynamics node's end of the line to the process that watches it."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from rclpy.node import Node

from robodyn_ros.control.command_pipeline import Command
from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.model import RobotModel
from robodyn_ros.ros.other_commanders import watchdog_name
from robodyn_ros.ros.watchdog import watchdog_node
from robodyn_ros.ros.watchdog.shared_command import (
    Opening,
    SharedCommand,
    WatchdogSettings,
)

RETURN_TIMEOUT = 1.0  # that it is given to leave the commands to a node that asks [s]
LONGEST_WAIT = 0.05  # that counts between two times of asking [s]
END_TIMEOUT = 3.0  # that the process is given to end by itself [s]


class WatchdogProcess:
    """
    A forked process that commands when this one no longer does.

    Make it before ``rclpy.init`` and before any thread, and before other processes are forked.

    Parameters
    ----------
    args : sequence of str, optional
        The ROS arguments of the command line; the process's own where not given.

    Notes
    -----
    ``beat`` and ``sent`` write a few hundred bytes of shared memory and never wait. Before every
    command look at ``has_commands``, and after it was true at ``continues_from``.
    """

    def __init__(self, args: Sequence[str] | None = None) -> None:
        self._shared = SharedCommand()
        wake, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self.has_ended = False
        self.node_name, self.namespace = '', ''
        self._continues_from: tuple[float, np.ndarray] | None = None
        self._was_taken = False
        self._asked_takeover = 0  # for whose commands it was asked,
        self._asked = self._waited = 0.0  # when last, and for how long it was waited for [s]
        self._is_left = False  # whether it ended while it commanded, and that was noticed
        self._opened = -math.inf  # when [s]
        self._model: RobotModel | None = None  # as it was told of
        self._told: tuple[object, object] = (None, None)
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._wake)
            code = 1
            try:
                watchdog_node.run(self._shared, wake, parent, args)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                # Nothing of the parent's is to be run or closed from here.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        os.close(wake)

    # --- what it is told -----------------------------------------------------------------------

    def open(self, node: Node) -> None:
        """Publish on a node's command topic from now on; its remappings decide the names."""
        self.node_name, self.namespace = watchdog_name(node.get_name()), node.get_namespace()
        self._shared.open(
            Opening(
                self.node_name,
                self.namespace,
                node.resolve_topic_name('~/commands'),
                node.resolve_topic_name('joint_states'),
            )
        )
        self._wake_up()
        self._opened = time.monotonic()

    def beat(self, stack: ControlStack, watchdog_period: float, now: float) -> None:
        """Live at a steady time [s], with a period [s] to the next beat, on what is running."""
        self._look_for_end()
        pipeline = stack.pipeline
        if stack.model is not self._model:
            self._model = stack.model
            if not self._shared.set_arm(stack.model):
                self._model = None  # of thousands of joints: nothing is taken over
        if self._model is None:
            return
        told = pipeline.settings, pipeline.law
        if told[0] is not self._told[0] or told[1] is not self._told[1]:
            self._told = told
            self._shared.set_settings(watchdog_settings(stack, watchdog_period))
        self._shared.beat(now, pipeline.is_enabled and pipeline.state is not None)

    def sent(self, command: Command, now: float) -> None:
        """Have sent a command at a steady time [s]."""
        self._shared.sent(now, command.torque, command.state.position)

    def close(self) -> None:
        """End the process; whatever it commands ends with it."""
        self._shared.close()
        self._wake_up()
        deadline = time.monotonic() + END_TIMEOUT
        while not self._look_for_end():
            if time.monotonic() > deadline:
                self._kill()
                deadline = math.inf
            time.sleep(0.005)
        os.close(self._wake)

    # --- what it tells -------------------------------------------------------------------------

    @property
    def has_commands(self) -> bool:
        """
        Whether it commands, so that the node must not; asks it to stop.

        One that does not for ``RETURN_TIMEOUT``, because it hangs or is stopped, is killed.
        """
        if not self._shared.is_taken:
            if self._was_taken:
                self._was_taken = False
                self._continues_from = self._shared.last_of_watchdog
            return False
        if self._look_for_end():
            if not self._is_left:
                self._is_left = True
                self._continues_from = self._last_of_the_killed()
            return False
        self._was_taken = True
        self._wait()
        self._shared.want_back()
        return True

    def continues_from(self) -> tuple[float, np.ndarray] | None:
        """Return once when and what it commanded last: the rate limit goes on from there."""
        result, self._continues_from = self._continues_from, None
        return result

    @property
    def takeovers(self) -> int:
        """How often it has taken over."""
        return self._shared.takeovers

    def lateness(self, now: float) -> float:
        """Return by how much it looked too late of late, or when it looked last [s]; the worse."""
        last, lateness = self._shared.last_look
        return max(lateness, now - max(last, self._opened) - watchdog_node.WAKE_PERIOD, 0.0)

    def _look_for_end(self) -> bool:
        if not self.has_ended:
            try:
                self.has_ended = os.waitpid(self._pid, os.WNOHANG) != (0, 0)
            except ChildProcessError:
                self.has_ended = True
        return self.has_ended

    def _last_of_the_killed(self) -> tuple[float, np.ndarray] | None:
        """Return when and what it commanded last, where that was after the node's last one."""
        own, last = self._shared.command, self._shared.last_while_taken
        return None if last is None or (own is not None and own.time > last[0]) else last

    def _wait(self) -> None:
        """Kill a process that has been asked for the commands again and again."""
        now, takeover = time.monotonic(), self._shared.takeovers
        if takeover != self._asked_takeover:
            self._asked_takeover, self._waited = takeover, 0.0
        else:  # both may have stood still
            self._waited += min(now - self._asked, LONGEST_WAIT)
        self._asked = now
        if self._waited > RETURN_TIMEOUT:
            self._kill()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def _wake_up(self) -> None:
        with suppress(OSError):  # full, or the process is gone
            os.write(self._wake, b'!')


def watchdog_settings(stack: ControlStack, watchdog_period: float) -> WatchdogSettings:
    """Return what the watchdog is to do, as a control stack would."""
    law = stack.pipeline.law
    return WatchdogSettings(
        order=stack.order,
        command_scale=stack.units.command_scale,
        watchdog_period=watchdog_period,
        safety=stack.pipeline.settings,
        limits=stack.pipeline.reference_limits,
        mode='feedforward' if law.mode == 'feedforward' else 'gravity_compensation',
        terms=law.terms,
        kd=law.kd,
        limit_width=law.limit_width,
    )
