# SPDX-License-Identifier: Apache-2.0
"""Waypoints of joints in time, and the polynomials between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robodyn_ros.control.core_binding import core
from robodyn_ros.spatial import FloatArray

PLACES = np.linspace(0.0, 1.0, 9)
"""Between two knots, at which torque is computed."""

_MOST_APART = 1 / 1600  # of the motion, where knots are few
_TINY = 1e-14  # relative, of a leading coefficient that counts as none


@dataclass(frozen=True, eq=False)
class Polynomials:
    """
    Motions of n joints that are polynomials between N knots; of cubics or quintics.

    Parameters
    ----------
    time : array, shape (N,)
        [s], or another parameter.
    coefficients : array, shape (N - 1, d, n)
        Of 1, s, s², ... with s running from 0 to 1 over the segment; d is 4 or 6 [rad or m].
    """

    time: FloatArray
    coefficients: FloatArray

    @classmethod
    def through(
        cls,
        time: FloatArray,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray | None = None,
    ) -> Polynomials:
        """
        Return those through states (N, n) at N times, as the joint trajectory controller has them.

        A joint's segment is a quintic where its accelerations are finite at both ends, else a
        cubic.
        """
        bare = np.full_like(position, np.nan)
        states = np.stack([position, velocity, bare if acceleration is None else acceleration])
        coefficients = core.segments(states, np.diff(time))
        return cls(time, coefficients[:, :4] if acceleration is None else coefficients)

    @cached_property
    def steps(self) -> FloatArray:
        """Of the segments, (N - 1,) [s]."""
        return np.diff(self.time)

    def states(
        self, segment: np.ndarray, s: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return q, qd, qdd, each (P, m, n), at m places (P, m) of each of P segments."""
        return self._states(self.coefficients[segment], self.steps[segment], s)

    def between(self, places: FloatArray = PLACES) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return q, qd, qdd, each (N - 1, P, n), at places (P,) of each segment."""
        return self._states(self.coefficients, self.steps, places)

    def at(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return q, qd, qdd (M, n) at times (M,) [s]; outside of the motion those at its ends."""
        time = np.clip(time, self.time[0], self.time[-1])
        last = len(self.steps) - 1
        segment = np.clip(np.searchsorted(self.time, time, side='right') - 1, 0, last)
        s = (time - self.time[segment]) / self.steps[segment]
        q, qd, qdd = self.states(segment, s[:, None])
        return q[:, 0], qd[:, 0], qdd[:, 0]

    @staticmethod
    def _states(
        coefficients: FloatArray, steps: FloatArray, s: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        order, step = np.arange(coefficients.shape[1]), steps[:, None, None]
        powers = s[..., None] ** order
        first = order * s[..., None] ** np.maximum(order - 1, 0)
        second = order * (order - 1) * s[..., None] ** np.maximum(order - 2, 0)
        return (
            powers @ coefficients,
            first @ coefficients / step,
            second @ coefficients / step**2,
        )

    def extremes(self, order: int) -> tuple[FloatArray, FloatArray]:
        """
        Return the lowest and the highest value of a derivative in each segment, (N - 1, n) each.

        Parameters
        ----------
        order : int
            0 of the position, to 3 of the jerk.
        """
        values = list(self.coefficients.transpose(1, 0, 2))
        for _ in range(order):
            values = _derived(values)
        first, last = values[0], sum(values[1:], start=values[0])
        lowest, highest = np.minimum(first, last), np.maximum(first, last)
        for s in _roots(_derived(values)):
            found = values[-1]
            for value in values[-2::-1]:
                found = found * s + value
            lowest, highest = np.minimum(lowest, found), np.maximum(highest, found)
        unit = self.steps[:, None] ** order
        return lowest / unit, highest / unit

    def largest(self, order: int) -> FloatArray:
        """Return the largest size of a derivative in each segment, (N - 1, n)."""
        lowest, highest = self.extremes(order)
        return np.maximum(-lowest, highest)


@dataclass(frozen=True, eq=False)
class Waypoints:
    """
    Where n joints are at N times; between them they move along polynomials.

    Parameters
    ----------
    time : array, shape (N,)
        [s]
    position, velocity : array, shape (N, n)
        [rad or m], [rad/s or m/s]
    acceleration : array, shape (N, n), optional
        [rad/s² or m/s²]; not given, or NaN: cubics.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray | None = None

    @property
    def duration(self) -> float:
        """From the first to the last [s]."""
        return float(self.time[-1] - self.time[0])

    @cached_property
    def polynomials(self) -> Polynomials:
        """The motion between them."""
        return Polynomials.through(self.time, self.position, self.velocity, self.acceleration)

    @property
    def places(self) -> FloatArray:
        """Places between two of them that are dense enough for torque, (P,) from 0 to 1."""
        count = max(len(PLACES), int(np.ceil(1.0 / (_MOST_APART * (len(self.time) - 1)))) + 1)
        return PLACES if count == len(PLACES) else np.linspace(0.0, 1.0, count)

    def slower(self, scale: float) -> Waypoints:
        """Return the motion in so many times its time, 1 or more."""
        if scale == 1.0:
            return self
        begin, bend = self.time[0], self.acceleration
        return Waypoints(
            begin + scale * (self.time - begin),
            self.position,
            self.velocity / scale,
            None if bend is None else bend / scale**2,
        )

    def rows(self, kept: np.ndarray) -> Waypoints:
        """Return some of them, in the order of their indices (K,)."""
        bend = self.acceleration
        return replace(
            self,
            time=self.time[kept],
            position=self.position[kept],
            velocity=self.velocity[kept],
            acceleration=None if bend is None else bend[kept],
        )

    def spans(self, before: np.ndarray, after: np.ndarray) -> Polynomials:
        """Return the polynomials from waypoints to other ones, (P,) each: P segments in a row."""
        wide = self.rows(np.stack([before, after], axis=1).ravel()).polynomials
        return Polynomials(
            np.concatenate([[0.0], np.cumsum(wide.steps[::2])]), wide.coefficients[::2]
        )


def _derived(values: list[FloatArray]) -> list[FloatArray]:
    """Return the coefficients of the derivatives of polynomials, from that of 1 on."""
    return [k * value for k, value in enumerate(values)][1:]


def _roots(values: list[FloatArray]) -> list[FloatArray]:
    """Return the roots of polynomials; any numbers from 0 to 1 where there are fewer."""
    found: list[FloatArray] = []
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        if len(values) == 2:
            found = [-values[0] / values[1]]
        elif len(values) == 3:
            c, b, a = values
            q = -0.5 * (b + np.copysign(np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0)), b))
            found = [q / a, c / q]
        elif len(values) > 3:
            table = np.stack([value.ravel() for value in values], axis=1)
            degree, leading = len(values) - 1, table[:, -1]
            least = np.maximum(_TINY * np.abs(table).max(axis=1), np.finfo(float).tiny)
            leading = np.where(np.abs(leading) < least, least, leading)
            companion = np.tile(np.eye(degree, k=-1), (len(table), 1, 1))
            companion[:, :, -1] = -table[:, :-1] / leading[:, None]
            companion[~np.isfinite(companion)] = 0.0
            roots = np.linalg.eigvals(companion).real
            found = [root.reshape(values[0].shape) for root in roots.T]
    return [np.clip(np.nan_to_num(root, posinf=1.0, neginf=0.0), 0.0, 1.0) for root in found]
