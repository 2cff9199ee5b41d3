# SPDX-License-Identifier: Apache-2.0
"""The arm's state, assembled by joint name: ``core/joint_states.hpp`` for Python, and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.core_binding import core
from robodyn_ros.motions.possible_positions import PossiblePositions

_LONGEST_NAME = 40  # in a report

# A stamp older than this is of another clock, not late [s].
WRONG_CLOCK = 1.0


class ElapsedTime:
    """
    Measures the age of messages by the steady clock, or by simulated time if that is less.

    So a simulation may be paused, stepped or slow: while its time stands still, nothing of it is
    late. What is stamped by another clock does not belong to it.

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

    @property
    def simulated(self) -> float:
        """Simulated time [s]; NaN: time is not simulated."""
        return math.nan if self._simulated_time is None else self._simulated_time()

    @property
    def lacks_clock(self) -> bool:
        """Whether time is simulated and none has come."""
        return self.simulated == 0.0

    def time(self, now: float) -> float:
        """Return the time of the arm's motion [s]: simulated, or else the given steady time."""
        return now if self._simulated_time is None else self._simulated_time()


class MeasuredState(NamedTuple):
    """
    One complete state of the arm, at the start of a control cycle.

    Parameters
    ----------
    position : array, shape (n,)
        [rad] or [m], always finite.
    velocity : array, shape (n,)
        [rad/s] or [m/s]; NaN where it is not known yet.
    time : float
        What a reference is sampled with [s]: the newest stamp, or the time of receipt where
        drivers do not stamp.
    stamped : bool
        Whether the time is a stamp.
    effort : array, shape (n,), or None
        As reported, in the drives' unit; NaN where it is not known, None where none came.
    lag : float
        How much later than the position the velocity is, where it is taken from positions [s].
    """

    position: np.ndarray
    velocity: np.ndarray
    time: float
    stamped: bool = True
    effort: np.ndarray | None = None
    lag: float = 0.0

    @property
    def has_velocities(self) -> bool:
        """Whether all velocities are known; on arrays this short, quicker than numpy's way."""
        return all(map(isfinite, self.velocity.tolist()))


class JointStateBuffer(core.JointStates):
    """
    The newest position and velocity of every joint, and when they came.

    What of a message is taken, and what the velocity is of a joint whose driver sends none, is
    said in ``core/joint_states.hpp``.

    Parameters
    ----------
    joint_names : sequence of str, length n
        In chain order.
    timeout : float
        Age of its last sample from which a joint is stale [s].
    continuous : array of bool, shape (n,)
        Joints whose position may jump by whole turns.
    possible : PossiblePositions, optional
        Those of the arm; not given: all are.
    elapsed : ElapsedTime, optional
        Measures how long ago a state came; not given: by the steady clock.
    velocity_limits : array, shape (n,), optional
        [rad/s] or [m/s]; a position much further away than they allow gives no velocity.

    Attributes
    ----------
    is_complete, has_begun : bool
        Whether every joint was refreshed since the last ``take``; whether a sample has come.
    received : float
        When the oldest joint's sample came, by the steady clock [s].
    stamp_age : float
        How old the stamp of the last message was when it came [s]; 0: it had none.
    stamp : tuple of int
        Of the last message that came as bytes: seconds, nanoseconds.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        timeout: float,
        continuous: np.ndarray | None = None,
        possible: PossiblePositions | None = None,
        elapsed: ElapsedTime | None = None,
        velocity_limits: np.ndarray | None = None,
    ) -> None:
        self.elapsed = elapsed or ElapsedTime()
        n = len(joint_names)
        unlimited = np.full((n, 2), [-np.inf, np.inf]), np.zeros(n, dtype=bool)
        self._possible = possible or PossiblePositions(joint_names, *unlimited)
        super().__init__(
            joint_names,
            timeout,
            np.zeros(n) if continuous is None else continuous,
            self._possible.lowest,
            self._possible.highest,
            np.full(n, np.inf) if velocity_limits is None else velocity_limits,
        )

    def take(self) -> MeasuredState:
        """Return the complete state, and start to collect the next one."""
        return MeasuredState(*super().take())

    def stale_joints(self, now: float) -> tuple[str, ...]:
        """Return the joints whose last sample is older than the timeout, by ``elapsed``."""
        if self.age(now) <= self.timeout:
            return ()
        return self.stale_at(now, self.elapsed.simulated)

    def standstill(self, now: float) -> float:
        """Return for how long a simulation has stood still [s]; 0: not, or not for long."""
        return self.standstill_at(now, self.elapsed.simulated)

    def trouble(self) -> str:
        """Return what is wrong with the joint states that come, as text; empty: nothing."""
        positions, names = self.unusable, self.joint_names
        bad = [f'position of {names[i]} is {x}' for i, x in positions.items() if not isfinite(x)]
        if impossible := self._possible.describe_impossible(positions):
            bad.append(impossible)
        if bad:
            return ', '.join(bad)
        if self.strangers and not self.has_begun:
            # From a topic into the log, which a terminal may show: as text with no escapes.
            shown = ', '.join(repr(name[:_LONGEST_NAME])[1:-1] for name in self.strangers)
            return f'joint states name {shown}; none is on the chain'
        if self.stamp_age <= self.timeout:
            return ''
        if self.stamp_age > WRONG_CLOCK:
            return (
                f'joint states have stamps of another clock ({self.stamp_age:.0f} s behind this '
                "node's): set use_sim_time as their source does"
            )
        words = f'joint states are stamped {self.stamp_age:.3f} s ago; allowed: state_timeout = '
        return f'{words}{self.timeout:g}'
