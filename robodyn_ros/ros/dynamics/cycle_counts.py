# SPDX-License-Identifier: Apache-2.0
"""What has happened in a node's control cycles, counted."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from robodyn_ros.control.command_pipeline import Command
from robodyn_ros.ros.rejections import Rejections

GAP_WINDOW = 5.0  # in which gaps between joint states are counted together [s]
MOST_GAPS = 100  # that are remembered
PERCENTILES = (50, 90, 99, 100)  # of the cycle times; the last is the longest


@dataclass(frozen=True)
class Recent:
    """
    The cycles since the last report.

    Parameters
    ----------
    cycles : int
        How many.
    rate : float
        [1/s]
    cycle_times : array, shape (4,)
        The ``PERCENTILES`` of the time from a joint state to its command [s].
    saturated, beyond : array of int
        Indices of the joints that an effort limit held back, and of those beyond a position limit.
    refused : int
        States that no command followed from.
    lateness : float
        By which the watchdog timer came too late, at worst [s].
    gaps : list of float
        For how long joint states were missed, each time within ``GAP_WINDOW`` [s].
    """

    cycles: int
    rate: float
    cycle_times: np.ndarray
    saturated: np.ndarray
    beyond: np.ndarray
    refused: int
    lateness: float
    gaps: list[float]


@dataclass
class CycleCounts:
    """
    What has happened since the node was configured, and since the last report.

    Parameters
    ----------
    cycles, missed_cycles : int
        Control cycles, and times that joint states failed to come in time.
    effort_limited, rate_limited : int
        Cycles in which that limit changed a torque.
    malformed : int
        Joint states that could not be read.
    last_malformed : str
        Why the last joint state was refused; empty: none was.
    rejections : Rejections
        Of trajectories.
    late_watchdogs : int
        Times that the watchdog timer came later than by its period.
    """

    cycles: int = 0
    missed_cycles: int = 0
    effort_limited: int = 0
    rate_limited: int = 0
    malformed: int = 0
    last_malformed: str = ''
    rejections: Rejections = field(default_factory=Rejections)
    late_watchdogs: int = 0
    _refused: int = 0
    _lateness: float = 0.0
    _gaps: list[tuple[float, float]] = field(default_factory=list)
    _since: float = field(default_factory=time.monotonic)
    _cycle_times: list[float] = field(default_factory=list)
    _saturated: np.ndarray | None = None
    _beyond: np.ndarray | None = None

    def count(self, command: Command, cycle_time: float) -> None:
        """Count one control cycle that took a time [s]."""
        self.cycles += 1
        self._cycle_times.append(cycle_time)
        if not command.is_limited:
            return
        if command.effort_limited.any():
            self.effort_limited += 1
            before = False if self._saturated is None else self._saturated
            self._saturated = command.effort_limited | before
        if command.position_limited.any():
            before = False if self._beyond is None else self._beyond
            self._beyond = command.position_limited | before
        self.rate_limited += bool(command.rate_limited.any())

    def late(self, lateness: float) -> None:
        """Count a watchdog timer that came too late by a time [s]."""
        self.late_watchdogs += 1
        self._lateness = max(self._lateness, lateness)

    def recovered(self, gap: float, now: float) -> None:
        """Count that joint states are back after a gap [s], at a steady time [s]."""
        self._gaps = [*self._gaps[1 - MOST_GAPS :], (now, gap)]

    def recent(self, now: float, refused: int) -> Recent:
        """Return what happened since this was last asked; so many states were refused in all."""
        times = self._cycle_times
        elapsed = now - self._since
        saturated, beyond = (
            np.empty(0, int) if joints is None else np.flatnonzero(joints)
            for joints in (self._saturated, self._beyond)
        )
        newly_refused, lateness = refused - self._refused, self._lateness
        gaps = [gap for ended, gap in self._gaps if now - ended < GAP_WINDOW]
        self._since, self._cycle_times, self._saturated, self._beyond = now, [], None, None
        self._refused, self._lateness = refused, 0.0
        return Recent(
            len(times),
            len(times) / elapsed if elapsed > 0.0 else 0.0,
            np.percentile(times or [0.0], PERCENTILES),
            saturated,
            beyond,
            newly_refused,
            lateness,
            gaps,
        )
