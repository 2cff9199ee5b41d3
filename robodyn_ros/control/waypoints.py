# SPDX-License-Identifier: Apache-2.0
"""Waypoints of joints in time, and the polynomials between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robodyn_ros.control.polynomials import PLACES, Polynomials
from robodyn_ros.spatial import FloatArray

_MOST_APART = 1 / 1600  # of the motion, where knots are few


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
        return Polynomials.interpolating(
            self.time, self.position, self.velocity, self.acceleration
        )

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
