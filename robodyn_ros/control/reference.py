# SPDX-License-Identifier: Apache-2.0
"""An immutable reference: piecewise polynomials in time that end at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from robodyn_ros.control.core_binding import core

# Bernstein coefficients of a quintic out of its monomial ones: the curve stays in their hull.
_BERNSTEIN = np.array(
    [[comb(i, j) / comb(5, j) if j <= i else 0.0 for j in range(6)] for i in range(6)]
)
# Bernstein coefficients of its two halves out of those of a whole.
_FIRST_HALF = np.array([[comb(i, j) / 2**i for j in range(6)] for i in range(6)])
_SECOND_HALF = _FIRST_HALF[::-1, ::-1]
_SPEED_SAMPLES = 17  # of each segment
_MOST_HALVINGS = 30  # the hull is 4^30 times closer to the curve than at first


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

    def largest_speeds(self) -> np.ndarray:
        """Return each joint's largest speed, shape (n,), to within a hundredth."""
        durations = np.diff(self.knots)
        if not len(durations):
            return np.abs(self.start_state.velocity)
        with np.errstate(over='ignore', invalid='ignore'):
            speeds = np.abs(_SPEED_ROWS @ self.coefficients) / durations[:, None, None]
        return speeds.max(axis=(0, 1))

    def extremes(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        Return bounds of each joint's position, each of shape (n,).

        They are positions that the path has, outside the limits (n,) where it leaves them at all.
        Segments are halved until their hulls are inside; a joint that was found outside is not
        looked at again, so that the time this takes is bounded.
        """
        ends = np.vstack(
            [
                self.start_state.position[None],
                self.end_state.position[None],
                self.coefficients[:, 0],
            ]
        )
        lowest, highest = ends.min(axis=0), ends.max(axis=0)
        with np.errstate(over='ignore', invalid='ignore'):
            hulls = (_BERNSTEIN @ self.coefficients).transpose(0, 2, 1)
        if not np.isfinite(hulls).all():
            return np.full_like(lowest, -np.inf), np.full_like(highest, np.inf)
        joint = np.tile(np.arange(len(lowest)), len(hulls))
        hulls = hulls.reshape(-1, 6)
        for _ in range(_MOST_HALVINGS):
            inside = (lowest >= lower) & (highest <= upper)
            may_leave = inside[joint] & (
                (hulls.min(axis=1) < lower[joint]) | (hulls.max(axis=1) > upper[joint])
            )
            if not may_leave.any():
                break
            hulls, joint = hulls[may_leave], joint[may_leave]
            hulls = np.vstack([hulls @ _FIRST_HALF.T, hulls @ _SECOND_HALF.T])
            joint = np.tile(joint, 2)
            for on_the_path in (hulls[:, 0], hulls[:, 5]):
                np.minimum.at(lowest, joint, on_the_path)
                np.maximum.at(highest, joint, on_the_path)
        return lowest, highest


def _speed_rows() -> np.ndarray:
    """Return the rows (k, 6) that give derivatives by s at k places of a segment."""
    s = np.linspace(0.0, 1.0, _SPEED_SAMPLES)[:, None]
    powers = np.arange(6)
    return powers * s ** np.maximum(powers - 1, 0)


_SPEED_ROWS = _speed_rows()


def polynomial_states(
    coefficients: np.ndarray, durations: np.ndarray, segment: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return values and two derivatives, each (P, m, n), at m places of each of P segments.

    Parameters
    ----------
    coefficients : array, shape (K, 6, n)
        As ``Reference.coefficients``.
    durations : array, shape (K,)
        Of the segments.
    segment : array of int, shape (P,)
    s : array, shape (P, m)
        0 to 1 over the segment.
    """
    duration = durations[segment][:, None, None]
    order = np.arange(6)
    powers = s[..., None] ** order
    first = order * s[..., None] ** np.maximum(order - 1, 0)
    second = order * (order - 1) * s[..., None] ** np.maximum(order - 2, 0)
    polynomials = coefficients[segment]
    return (
        powers @ polynomials,
        first @ polynomials / duration,
        second @ polynomials / duration**2,
    )


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
