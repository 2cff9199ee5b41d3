# SPDX-License-Identifier: Apache-2.0
"""The signals that tell a node to stop, and what each of its processes does with them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_FAULTS = {'SIGSEGV', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGABRT', 'SIGTRAP', 'SIGSYS'}
_UNCATCHABLE = {'SIGKILL', 'SIGSTOP'}
_HARMLESS = {'SIGCHLD', 'SIGCONT', 'SIGURG', 'SIGWINCH', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU'}
_IGNORED_BY_PYTHON = {'SIGPIPE', 'SIGXFSZ'}
_OTHERS = _FAULTS | _UNCATCHABLE | _HARMLESS | _IGNORED_BY_PYTHON

_STOPS = frozenset((signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU))

STOP_SIGNALS = frozenset(
    number for number in signal.valid_signals() if getattr(number, 'name', '') not in _OTHERS
)
"""All that would end a process which does nothing about them, but for crashes: SIGINT, SIGTERM,
SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, ..., and the real-time signals."""


class StopRequested(BaseException):
    """The process was told to stop in the midst of what ``StopSignal.may_interrupt`` holds."""


class StopSignal:
    """
    Takes the stop signals from now on, and remembers that one has come.

    SIGHUP stays ignored where it is ignored already, as under ``nohup``. The others do not: a
    shell starts what is put in the background by a script with SIGINT and SIGQUIT ignored. What a
    library has a handler of its own for, written in C, is left to it.

    Attributes
    ----------
    has_come : bool
        Whether the process was told to stop.
    """

    def __init__(self) -> None:
        self.has_come = False
        self._interrupts = False
        for number in STOP_SIGNALS:
            present = signal.getsignal(number)
            is_under_nohup = number == signal.SIGHUP and present is signal.SIG_IGN
            if present is not None and not is_under_nohup:
                signal.signal(number, self._on_signal)

    @contextmanager
    def may_interrupt(self) -> Iterator[None]:
        """
        End what is done in this context where a signal comes, for what may take long.

        Raises
        ------
        StopRequested
            A signal has come.
        """
        self._interrupts = True
        try:
            if self.has_come:
                raise StopRequested
            yield
        finally:
            self._interrupts = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.has_come = True
        if self._interrupts:
            self._interrupts = False  # a second signal is not to interrupt what is tidied up
            raise StopRequested


def leave_stop_signals_to_the_node(*, even_stops: bool = False) -> None:
    """
    Ignore the stop signals in a forked process: they come to the whole group, for the node.

    Parameters
    ----------
    even_stops : bool
        Go on, too, where Ctrl-Z in the terminal stops the node.
    """
    for number in STOP_SIGNALS | (_STOPS if even_stops else frozenset()):
        signal.signal(number, signal.SIG_IGN)
