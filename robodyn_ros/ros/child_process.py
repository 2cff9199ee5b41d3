# SPDX-License-Identifier: Apache-2.0
"""A process beside a node, forked before ROS starts in either of them."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

END_TIMEOUT = 3.0  # that a process is given to end by itself [s]


def priority_of(pid: int) -> str:
    """Return the priority that the system gives a process (0: this one), as text."""
    try:
        policy, niceness = os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid)
        if policy in (os.SCHED_FIFO, os.SCHED_RR):
            return f'real time {os.sched_getparam(pid).sched_priority}'
    except (AttributeError, OSError):  # another system, or the process has ended
        return 'unknown'
    return f'niceness {niceness}, not real time'


class ChildProcess:
    """
    Runs a function; make it before ``rclpy.init`` and before any thread.

    Parameters
    ----------
    run : callable
        All that the process does. It is given this process's number, and is to return soon after
        ``os.getppid()`` is another one, which is how it learns that this process has ended.
    """

    def __init__(self, run: Callable[[int], None]) -> None:
        self._has_ended = False
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                run(parent)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                # Nothing of the parent's is to be run or closed from here.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        if not self._has_ended:
            try:
                self._has_ended = os.waitpid(self._pid, os.WNOHANG) != (0, 0)
            except ChildProcessError:
                self._has_ended = True
        return self._has_ended

    @property
    def priority(self) -> str:
        """The priority that the system gives it, as text."""
        return priority_of(self._pid)

    def kill(self) -> None:
        """End it by force."""
        if not self.has_ended:  # else the number may be another's by now
            os.kill(self._pid, signal.SIGKILL)

    def join(self, timeout: float = END_TIMEOUT) -> None:
        """Wait until it has ended, by force after a time [s]."""
        deadline = time.monotonic() + timeout
        while not self.has_ended:
            if time.monotonic() > deadline:
                self.kill()
            time.sleep(0.005)
