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
        values = self.coefficients.transpose(0, 2, 1)
        for _ in range(order):
            values = _derived(values)
        slope = _derived(values)
        roots = _roots(slope.reshape(-1, slope.shape[-1])).reshape(*slope.shape[:2], -1)
        ends = np.broadcast_to([0.0, 1.0], (*slope.shape[:2], 2))
        s = np.concatenate([ends, roots], axis=2)
        found = values[..., -1:] + 0.0 * s
        for k in reversed(range(values.shape[-1] - 1)):
            found = found * s + values[..., k : k + 1]
        found /= self.steps[:, None, None] ** order
        return found.min(axis=2), found.max(axis=2)

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


def _derived(values: FloatArray) -> FloatArray:
    """Return the coefficients (..., d - 1) of the derivatives of polynomials (..., d)."""
    if values.shape[-1] == 1:
        return 0.0 * values
    return values[..., 1:] * np.arange(1, values.shape[-1])


def _roots(values: FloatArray) -> FloatArray:
    """Return the roots (M, k) of polynomials (M, d); any number from 0 to 1 where one is not."""
    degree = values.shape[1] - 1
    found: FloatArray
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        if degree <= 0:
            found = np.zeros((len(values), 0))
        elif degree == 1:
            found = -values[:, :1] / values[:, 1:]
        elif degree == 2:
            c, b, a = values.T
            q = -0.5 * (b + np.copysign(np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0)), b))
            found = np.stack([q / a, c / q], axis=1)
        else:
            size = np.abs(values).max(axis=1)
            least = np.maximum(_TINY * size, np.finfo(float).tiny)
            leading = values[:, -1]
            leading = np.where(np.abs(leading) < least, least, leading)
            companion = np.tile(np.eye(degree, k=-1), (len(values), 1, 1))
            companion[:, :, -1] = -values[:, :-1] / leading[:, None]
            companion[~np.isfinite(companion)] = 0.0
            found = np.linalg.eigvals(companion).real
    return np.clip(np.nan_to_num(found, posinf=1.0, neginf=0.0), 0.0, 1.0)
