# SPDX-License-Identifier: Apache-2.0
"""The dynamics node's interface to its watchdog process."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.ros.child_process import ChildProcess
from robodyn_ros.ros.shared_memory import SharedMemory, WatchdogSettings
from robodyn_ros.ros.watchdog import watchdog_node

RETURN_TIMEOUT = 1.0  # that it is given to leave the commands to a node that asks [s]
LONGEST_WAIT = 0.05  # that counts between two times of asking [s]


class WatchdogProcess:
    """
    A forked process that takes over when this one no longer commands.

    Make it before ``rclpy.init`` and before any thread, and before other processes are forked.

    Parameters
    ----------
    shared : SharedMemory
        What it is told; the node's names are all that it waits for.
    args : sequence of str, optional
        The ROS arguments of the command line; the process's own where not given.

    Attributes
    ----------
    opened : float
        When the names were set, by the steady clock [s].

    Notes
    -----
    Before every command look at ``has_commands``, and after it was true at ``continues_from``.
    """

    def __init__(self, shared: SharedMemory, args: Sequence[str] | None = None) -> None:
        self.opened = -math.inf
        self._shared = shared
        self._continues_from: tuple[float, np.ndarray] | None = None
        self._was_taken = False
        self._asked_takeover = 0  # for whose commands it was asked,
        self._asked = self._waited = 0.0  # when last, and for how long it was waited for [s]
        self._is_left = False  # whether it ended while it commanded, and that was noticed
        self._told: tuple[object, object] = (None, None)
        self._process = ChildProcess(partial(watchdog_node.run, shared, args))

    # --- from the node ------------------------------------------------------------------------

    def beat(self, stack: ControlStack, watchdog_period: float, now: float) -> None:
        """Write a heartbeat at a steady time [s], and the settings if they have changed."""
        pipeline = stack.pipeline
        told = pipeline.settings, pipeline.law
        if told[0] is not self._told[0] or told[1] is not self._told[1]:
            self._told = told
            self._shared.settings.set(watchdog_settings(stack, watchdog_period))
        self._shared.beat(now, pipeline.is_enabled and pipeline.state is not None)

    def close(self) -> None:
        """End the process; whatever it commands ends with it."""
        self._shared.close()
        self._process.join()

    # --- to the node --------------------------------------------------------------------------

    @property
    def priority(self) -> str:
        """The priority that the system gives the process, as text: a real-time one if it may."""
        return self._process.priority

    @property
    def has_ended(self) -> bool:
        """Whether the watchdog has ended."""
        return self._process.has_ended

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
        if self.has_ended:
            if not self._is_left:
                self._is_left = True
                self._continues_from = self._last_of_the_killed()
            return False
        self._was_taken = True
        self._wait()
        self._shared.want_back()
        return True

    def continues_from(self) -> tuple[float, np.ndarray] | None:
        """Return once its last command and time: the rate limit continues from there."""
        result, self._continues_from = self._continues_from, None
        return result

    @property
    def takeovers(self) -> int:
        """How often it has taken over."""
        return self._shared.takeovers

    def lateness(self, now: float) -> float:
        """Return its largest recent lateness, or that of the check that is due [s]."""
        last, lateness = self._shared.last_look
        return max(lateness, now - max(last, self.opened) - watchdog_node.WAKE_PERIOD, 0.0)

    def _last_of_the_killed(self) -> tuple[float, np.ndarray] | None:
        """Return time and torque of its last command, if that was after the node's last one."""
        own, last = self._shared.cycles.last(), self._shared.last_of_watchdog
        return None if last is None or (own is not None and own.sent > last[0]) else last

    def _wait(self) -> None:
        """Kill the process if it has not returned control in time."""
        now, takeover = time.monotonic(), self._shared.takeovers
        if takeover != self._asked_takeover:
            self._asked_takeover, self._waited = takeover, 0.0
        else:  # both may have stood still
            self._waited += min(now - self._asked, LONGEST_WAIT)
        self._asked = now
        if self._waited > RETURN_TIMEOUT:
            self._process.kill()


def watchdog_settings(stack: ControlStack, watchdog_period: float) -> WatchdogSettings:
    """Return the watchdog's settings for a control stack."""
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
