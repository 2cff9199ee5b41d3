# SPDX-License-Identifier: Apache-2.0
"""The clock of the joint states' stamps, held against the steady clock that we have ourselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

CLOCK_TOLERANCE = 0.1
"""How far the stamps' clock may get ahead of the steady one within ``WINDOW`` [s]."""

WINDOW = 1.0
"""Time over which the two clocks are compared [s]; twice that is looked back at most."""


SIMULATED_TOLERANCE = 0.05
"""By which a stamp may be ahead of the simulated time that messages have brought [s]."""


class ElapsedTime:
    """
    Says how long ago something came, by the steady clock, or by simulated time if that is less.

    A simulation that is paused, stepped or slower than time keeps nobody waiting: while its time
    stands still, nothing of it is late. What is stamped by another clock is not of it.

    Parameters
    ----------
    simulated_time : callable, optional
        Returns what the simulation's time is [s]; not given: time is not simulated.
    """

    def __init__(self, simulated_time: Callable[[], float] | None = None) -> None:
        self._simulated_time = simulated_time

    @property
    def is_simulated(self) -> bool:
        """Whether stamps are of simulated time."""
        return self._simulated_time is not None

    def time(self, now: float) -> float:
        """Return the time by which an arm moves [s]: simulated, or else the steady time given."""
        return now if self._simulated_time is None else self._simulated_time()

    def since(self, received: float, stamp: float, now: float) -> float:
        """
        Return the time [s] since something came, with a stamp.

        Parameters
        ----------
        received, now : float
            Steady time [s].
        stamp : float
            By the clock of stamps [s]; NaN: it had none.
        """
        steady = now - received
        if self._simulated_time is None:
            return steady
        simulated = self._simulated_time() - stamp
        # Not so for NaN, and for the stamps of another clock or of one that was set back.
        return min(steady, max(simulated, 0.0)) if simulated > -SIMULATED_TOLERANCE else steady


class ClockReading(NamedTuple):
    """
    What passed between two cycles.

    Parameters
    ----------
    elapsed : float
        [s], by the stamps where they are believed, else by the steady clock.
    is_believed : bool
        Whether references may go on by the stamps.
    """

    elapsed: float
    is_believed: bool


class StampClock:
    """
    Says from cycle to cycle how much time passed, and whether the stamps tell it.

    Stamps are believed while they neither jump, nor stand still, nor run faster or slower than
    the steady clock by more than ``CLOCK_TOLERANCE`` within ``WINDOW``. Behind it they may be for
    as long as states may be late. Simulated time may run at any pace, and stand still: of it only
    jumps are noticed, and stamps that stand still while it does not.

    Parameters
    ----------
    elapsed : ElapsedTime, optional
        Knows whether the stamps are of simulated time; not given: they are not.

    Notes
    -----
    Messages come late by some milliseconds, never early. So the clocks' difference is compared
    with that of the least delayed message of the window before, and, where it falls behind, of
    this one. In the first window nothing is known: its first messages may have waited while the
    node was configured, and the next ones seem to run ahead of them.
    """

    def __init__(self, elapsed: ElapsedTime | None = None) -> None:
        self._elapsed = elapsed or ElapsedTime()
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next cycle."""
        self._time: float | None = None
        self._now = self._moved = self._window_began = -math.inf
        self._least_delayed = -math.inf  # stamp minus steady time, in this window
        self._least_delayed_before = -math.inf  # and in the one before
        self._is_known = False  # whether there was one before
        self._disbelieved = self._distrusted_until = -math.inf
        self.is_stopped = False
        self.is_believed = True

    def advance(self, time: float, now: float, longest: float) -> ClockReading:
        """
        Return what passed since the last cycle.

        Parameters
        ----------
        time : float
            Of the joint state [s].
        now : float
            Steady time [s].
        longest : float
            Stamps that are further apart than this jumped, and those that do not move for so long
            stand still; messages may be so late [s].
        """
        if self._time is None:
            self._time, self._now, self._moved = time, now, now
            self._begin_window(time - now, now, is_known=False)
            return ClockReading(0.0, True)
        elapsed, steady = time - self._time, now - self._now
        self._time, self._now = time, now
        if elapsed != 0.0:
            self._moved = now
        self.is_stopped = self._elapsed.since(self._moved, time, now) > longest
        jumped = not 0.0 <= elapsed <= longest
        self.is_believed = not jumped and not self.is_stopped
        if jumped:
            self._begin_window(time - now, now, is_known=False)
        if self._elapsed.is_simulated:
            return ClockReading(elapsed if self.is_believed else steady, self.is_believed)
        if self.is_believed:
            self.is_believed = self._keeps_pace(time - now, now, longest)
        return ClockReading(steady, self.is_believed)

    def may_be_followed(self, now: float) -> bool:
        """Return whether the stamps did not run wrong repeatedly of late, nor stand still."""
        return not self.is_stopped and now >= self._distrusted_until

    def _keeps_pace(self, difference: float, now: float, longest: float) -> bool:
        """Return whether stamp minus steady time is where it was, and follow where it goes."""
        behind = max(self._least_delayed, self._least_delayed_before) - difference
        lateness = max(CLOCK_TOLERANCE, longest)
        is_behind = behind > lateness
        if self._is_known:
            # Not of this window: a clock that runs fast is the least delayed one in every cycle.
            is_ahead = difference - self._least_delayed_before > CLOCK_TOLERANCE
        else:
            is_ahead = difference - self._least_delayed > lateness
        if is_behind or is_ahead:
            if now - self._disbelieved < WINDOW:
                self._distrusted_until = now + WINDOW
            self._disbelieved = now
        if is_ahead:
            self._begin_window(difference, now, is_known=True)
            return False
        self._least_delayed = max(self._least_delayed, difference)
        if now - self._window_began > WINDOW:
            self._least_delayed_before, self._least_delayed = self._least_delayed, difference
            self._window_began, self._is_known = now, True
        return not is_behind

    def _begin_window(self, difference: float, now: float, is_known: bool) -> None:
        self._least_delayed = self._least_delayed_before = difference
        self._window_began, self._is_known = now, is_known
