# SPDX-License-Identifier: Apache-2.0
"""Polynomials between knots: values, derivatives and exact extremes of joints in time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from robodyn_ros.control.core_binding import core
from robodyn_ros.spatial import FloatArray

PLACES = np.linspace(0.0, 1.0, 9)
"""Between two knots, at which torque is computed."""

_TINY = 1e-14  # relative, of a leading coefficient that counts as none


@dataclass(frozen=True, eq=False)
class Polynomials:
    """
    Motions of n joints that are polynomials between N knots; of cubics or quintics.

    Parameters
    ----------
    knots : array, shape (N,)
        Times [s], or another parameter.
    coefficients : array, shape (N - 1, d, n)
        Of 1, s, s², ... with s running from 0 to 1 over the segment; d is 4 or 6 [rad or m].
    """

    knots: FloatArray
    coefficients: FloatArray

    @classmethod
    def interpolating(
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
        return np.diff(self.knots)

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
        time = np.clip(time, self.knots[0], self.knots[-1])
        last = len(self.steps) - 1
        segment = np.clip(np.searchsorted(self.knots, time, side='right') - 1, 0, last)
        s = (time - self.knots[segment]) / self.steps[segment]
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
        # One product: of many small matrices each call takes long.
        found = np.concatenate([powers, first, second], axis=-2) @ coefficients
        q, qd, qdd = np.split(found, 3, axis=-2)
        return q, qd / step, qdd / step**2

    def extremes(
        self, order: int, within: tuple[FloatArray, FloatArray] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """
        Return the lowest and the highest value of a derivative in each segment, (N - 1, n) each.

        Parameters
        ----------
        order : int
            0 of the position, to 3 of the jerk.
        within : two arrays, shape (n,), optional
            Of what stays between them the values at the ends suffice.
        """
        with np.errstate(over='ignore', invalid='ignore'):
            return self._extremes(order, within)

    def _extremes(
        self, order: int, within: tuple[FloatArray, FloatArray] | None
    ) -> tuple[FloatArray, FloatArray]:
        values = list(self.coefficients.transpose(1, 0, 2))
        for _ in range(order):
            values = _derived(values)
        unit = self.steps[:, None] ** order
        first, last = values[0], sum(values[1:], start=values[0])
        lowest, highest = np.minimum(first, last), np.maximum(first, last)
        chosen = np.full(lowest.shape, True)
        if within is not None:
            hull = [value / unit for value in _hull(values)]  # the curve stays in it
            least, most = np.minimum.reduce(hull), np.maximum.reduce(hull)
            chosen = ~((least >= within[0]) & (most <= within[1]))
        values = [value[chosen] for value in values]
        low, high = lowest[chosen], highest[chosen]
        for s in _roots(_derived(values)):
            found = values[-1]
            for value in values[-2::-1]:
                found = found * s + value
            low, high = np.minimum(low, found), np.maximum(high, found)
        lowest[chosen], highest[chosen] = low, high
        return lowest / unit, highest / unit

    def largest(self, order: int) -> FloatArray:
        """Return the largest size of a derivative in each segment, (N - 1, n)."""
        lowest, highest = self.extremes(order)
        return np.maximum(-lowest, highest)


def _derived(values: list[FloatArray]) -> list[FloatArray]:
    """Return the coefficients of the derivatives of polynomials, from that of 1 on."""
    return [k * value for k, value in enumerate(values)][1:]


def _hull(values: list[FloatArray]) -> list[FloatArray]:
    """Return the Bernstein coefficients of polynomials: from 0 to 1 they stay among them."""
    degree = len(values) - 1
    return [
        sum((comb(j, i) / comb(degree, i) * values[i] for i in range(1, j + 1)), start=values[0])
        for j in range(degree + 1)
    ]


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
