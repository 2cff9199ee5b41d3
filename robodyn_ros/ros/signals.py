# SPDX-License-Identifier: Apache-2.0
"""The signals that tell a node to stop, and what each of its processes does with them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What shells, launch and systemd send to stop a process. At any other that ends the node the
watchdog sends the stop command, as after SIGKILL."""

_PAUSES = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class StopRequested(BaseException):
    """The process was told to stop in the midst of what ``StopSignal.may_interrupt`` holds."""


class StopSignal:
    """
    Handles the stop signals, and stores that one has come.

    SIGHUP stays ignored where it is ignored already, as under ``nohup``. The others do not: a
    shell starts what is put in the background by a script with SIGINT and SIGQUIT ignored.

    Attributes
    ----------
    has_come : bool
        Whether a stop signal has come.
    """

    def __init__(self) -> None:
        self.has_come = False
        self._interrupts = False
        self.take()

    def take(self) -> None:
        """Take the signals again, from a library that has taken them meanwhile."""
        for number in STOP_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    @contextmanager
    def may_interrupt(self) -> Iterator[None]:
        """
        Raise ``StopRequested`` in this context when a signal comes, for long operations.

        Raises
        ------
        StopRequested
            A signal has come.
        """
        if self.has_come:
            raise StopRequested
        self._interrupts = True
        try:
            yield
        finally:
            self._interrupts = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.has_come = True
        if self._interrupts:
            self._interrupts = False  # a second signal is not to interrupt what is tidied up
            raise StopRequested


def leave_stop_signals_to_the_node(*, even_pauses: bool = False) -> None:
    """
    Ignore the stop signals in a forked process: they come to the whole group, for the node.

    Parameters
    ----------
    even_pauses : bool
        Go on, too, where Ctrl-Z in the terminal stops the node.
    """
    for number in STOP_SIGNALS + (_PAUSES if even_pauses else ()):
        signal.signal(number, signal.SIG_IGN)
