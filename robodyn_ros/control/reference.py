# SPDX-License-Identifier: Apache-2.0
"""An immutable reference: piecewise polynomials in time that end at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.control.core_binding import core
from robodyn_ros.control.polynomials import Polynomials


@dataclass(frozen=True, eq=False)
class ReferenceState:
    """
    Where the joints should be at one instant, or at k of them.

    Parameters
    ----------
    position, velocity, acceleration : array, shape (n,) or (k, n)
        [rad], [rad/s], [rad/s²] or the same in metres.
    effort : array, shape (n,) or (k, n)
        Feedforward torque that the trajectory asks for [N m] or [N].
    """

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray

    @classmethod
    def at_rest(cls, position: np.ndarray, effort: np.ndarray | None = None) -> ReferenceState:
        """Return the state that stays at a position."""
        zero = np.zeros_like(position)
        return cls(position.copy(), zero, zero, zero if effort is None else effort)

    @property
    def rows(self) -> np.ndarray:
        """Its arrays one after the other, shape (4, n), for the core."""
        return np.stack([self.position, self.velocity, self.acceleration, self.effort])

    def row(self, i: int) -> ReferenceState:
        """Return the i-th of states whose arrays have shape (k, n)."""
        return ReferenceState(
            self.position[i], self.velocity[i], self.acceleration[i], self.effort[i]
        )


class Reference:
    """
    A motion that can be sampled at any time, piecewise polynomials that end at rest.

    Made by ``through``, ``hold`` or ``stopping``; ``core/reference.hpp`` says how it is sampled.

    Parameters
    ----------
    motion : core.Motion
        For the core.

    Attributes
    ----------
    knots : list of float, length K + 1
        Times at which the K segments begin, and the end [s].
    coefficients : array, shape (K, 6, n)
        Of 1, s, ..., s^5 with s running from 0 to 1 over the segment.
    start_state, end_state : ReferenceState
        At the first knot; and from the last knot on, at rest.
    """

    def __init__(self, motion: core.Motion) -> None:
        self.motion = motion
        self.knots: list[float] = motion.knots
        self.coefficients: np.ndarray = motion.coefficients
        self.start_state = ReferenceState(*motion.start)
        self.end_state = ReferenceState(*motion.end)

    @classmethod
    def hold(cls, position: np.ndarray, now: float) -> Reference:
        """Return the reference that stays at a position, shape (n,), from now on."""
        return cls.through([now], ReferenceState.at_rest(position[None]), 0.0)

    @classmethod
    def stopping(
        cls, state: ReferenceState, now: float, duration: float, position_limits: np.ndarray
    ) -> Reference:
        """
        Return the reference that brings a state to rest, without reversing.

        It stops half a duration times the velocity ahead, inside the position limits (n, 2) if it
        began there.
        """
        return cls(core.stop(state.rows, now, duration, position_limits.ravel()))

    @classmethod
    def through(
        cls,
        times: Sequence[float],
        points: ReferenceState,
        settle_time: float,
        before: Reference | None = None,
    ) -> Reference:
        """
        Return the reference through the states at some times, with arrays of shape (k, n).

        A joint's segment is a quintic where its accelerations are finite at both ends, else a
        cubic. A last point that still moves is followed by a settling segment back to it. Its
        acceleration counts only if it is a setpoint of its own: planners end trajectories with the
        deceleration still on, and settling from that would overshoot their goal. Until the first
        time, the previous reference goes on.
        """
        knots = [float(time) for time in times]
        begin, last = points.row(0), points.row(-1)
        end = ReferenceState.at_rest(last.position, last.effort)
        segments = _segments(points, np.diff(knots))
        efforts = points.effort
        if last.velocity.any() and settle_time > 0.0:
            acceleration = np.zeros_like(last.position)
            if len(knots) <= 2:
                acceleration = np.nan_to_num(last.acceleration)
            moving = ReferenceState(last.position, last.velocity, acceleration, last.effort)
            settling = _segments(joined(moving, end), np.array([settle_time]))
            segments = np.concatenate([segments, settling])
            efforts = np.vstack([efforts, last.effort])
            knots.append(knots[-1] + settle_time)
        followed = None if before is None else before.motion
        return cls(core.Motion(knots, segments, efforts, begin.rows, end.rows, followed))

    def sample(self, time: float) -> ReferenceState:
        """Return the reference at a time [s]; after the end, the last position at rest."""
        return ReferenceState(*self.motion.sample(time))

    def followed_at(self, time: float) -> Reference:
        """Return the reference that applies at a time, without parts that are over by then."""
        motion = self.motion.followed_at(time)
        return self if motion is self.motion else Reference(motion)

    def is_finished(self, time: float) -> bool:
        """Return whether the reference only holds its last point from this time [s] on."""
        return time >= self.knots[-1]

    @property
    def polynomials(self) -> Polynomials:
        """Its segments."""
        return Polynomials(np.array(self.knots), self.coefficients)


def joined(first: ReferenceState, rest: ReferenceState) -> ReferenceState:
    """Return the states one after the other, with arrays of shape (k, n)."""
    return ReferenceState(
        np.vstack([first.position, rest.position]),
        np.vstack([first.velocity, rest.velocity]),
        np.vstack([first.acceleration, rest.acceleration]),
        np.vstack([first.effort, rest.effort]),
    )


def _segments(points: ReferenceState, durations: np.ndarray) -> np.ndarray:
    """Return the coefficients, shape (k - 1, 6, n), of the polynomials between k states."""
    states = np.stack([points.position, points.velocity, points.acceleration])
    return core.segments(states, durations)
