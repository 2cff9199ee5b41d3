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

    They are blocked, in this thread and in those that are started later, and looked for among the
    pending ones. A thread that was there before, such as one of NumPy's, may still take one: its
    handler remembers it, too. On this thread handlers would nest: rclpy's events executor enables
    faulthandler, whose stack for signals, of some kilobytes, a few at once overflow (SIGSEGV).

    What this process starts inherits the mask: forked processes call
    ``leave_stop_signals_to_the_node``, and other programs are started in ``may_interrupt``.

    SIGHUP stays ignored where it is ignored already, as under ``nohup``. The others do not: a
    shell starts what is put in the background by a script with SIGINT and SIGQUIT ignored. What a
    library has a handler of its own for, written in C, is left to it.

    """

    def __init__(self) -> None:
        self._has_come = False
        self._interrupts = False
        self._taken: set[signal.Signals | int] = set()
        for number in STOP_SIGNALS:
            present = signal.getsignal(number)
            is_under_nohup = number == signal.SIGHUP and present is signal.SIG_IGN
            if present is not None and not is_under_nohup:
                signal.signal(number, self._on_signal)
                self._taken.add(number)
        signal.pthread_sigmask(signal.SIG_BLOCK, self._taken)

    @property
    def has_come(self) -> bool:
        """Whether the process was told to stop."""
        if not self._has_come:
            self._has_come = not self._taken.isdisjoint(signal.sigpending())
        return self._has_come

    @contextmanager
    def may_interrupt(self) -> Iterator[None]:
        """
        End what is done in this context where a signal comes, for what may take long.

        Raises
        ------
        StopRequested
            A signal has come.
        """
        if self.has_come:
            raise StopRequested
        self._interrupts = True
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._taken)
            yield
        finally:
            self._interrupts = False
            signal.pthread_sigmask(signal.SIG_BLOCK, self._taken)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._has_come = True
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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
