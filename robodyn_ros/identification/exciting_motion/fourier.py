# SPDX-License-Identifier: Apache-2.0
"""
A Fourier series for each joint, and bounds on it that hold at every time, not at samples only.

    q(t) = center + sum over k of sine_k sin(k w t) + cosine_k cos(k w t),    w = 2 pi / duration

A trigonometric polynomial p of degree H is known from samples up to a factor that is near one:
where m > 2 H samples are spread evenly over a period, max |p| <= max |p(t_i)| / cos(pi H / m)
(Ehlich and Zeller 1964).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.spatial import FloatArray

_SAMPLES_PER_HARMONIC = 40


@dataclass(frozen=True, eq=False, repr=False)
class FourierMotion(ArrayRecord):
    """
    One period of a Fourier series for each of n joints.

    Attributes
    ----------
    center : array, shape (n,) [rad or m]
        Mean positions.
    sines, cosines : array, shape (n, H) [rad or m]
    duration : float
        Of the period [s].
    """

    center: FloatArray
    sines: FloatArray
    cosines: FloatArray
    duration: float

    @property
    def start(self) -> FloatArray:
        """Where it begins and ends, array, shape (n,) [rad or m]."""
        return self.center + self.cosines.sum(axis=1)

    @property
    def goal(self) -> FloatArray:
        """Where it ends: where it began."""
        return self.start

    def position(self, time: ArrayLike) -> FloatArray:
        """Return the positions (N, n) at times (N,) [s]; before and after, it stands."""
        return self.center + self._derivative(time, 0)

    def velocity(self, time: ArrayLike) -> FloatArray:
        """Return the velocities (N, n) [rad/s or m/s] at times (N,) [s]."""
        return self._derivative(time, 1)

    def acceleration(self, time: ArrayLike) -> FloatArray:
        """Return the accelerations (N, n) [rad/s² or m/s²] at times (N,) [s]."""
        return self._derivative(time, 2)

    def scaled(self, factor: float) -> FourierMotion:
        """Return the motion with its amplitudes about the mean positions multiplied."""
        return FourierMotion(
            self.center, factor * self.sines, factor * self.cosines, self.duration
        )

    def range_bound(self) -> FloatArray:
        """Return what positions stay within at every time, array, shape (n, 2) [rad or m]."""
        sampled = self.center + self._evenly(0)
        low, high = sampled.min(axis=0), sampled.max(axis=0)
        middle, half = (low + high) / 2, (high - low) / 2 * self._between_samples
        return np.stack([middle - half, middle + half], axis=1)

    def rate_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return what speeds and accelerations (n,) stay within at every time."""
        speed, acceleration = (
            np.abs(self._evenly(order)).max(axis=0) * self._between_samples for order in (1, 2)
        )
        return speed, acceleration

    def derivative_bounds(self) -> FloatArray:
        """Return bounds of the derivatives of order 1 to 4 of each joint, array, shape (4, n)."""
        amplitude = np.hypot(self.sines, self.cosines)
        orders = np.arange(1, 5)[:, None, None]
        coarse = (amplitude * self._frequencies**orders).sum(axis=-1)
        coarse[:2] = np.minimum(coarse[:2], self.rate_bounds())
        return coarse

    @property
    def _harmonics(self) -> int:
        return self.sines.shape[1]

    @property
    def _frequencies(self) -> FloatArray:
        return angular_frequencies(self._harmonics, self.duration)

    @property
    def _between_samples(self) -> float:
        return 1.0 / float(np.cos(np.pi / _SAMPLES_PER_HARMONIC))

    def _evenly(self, order: int) -> FloatArray:
        count = _SAMPLES_PER_HARMONIC * self._harmonics
        return self._derivative(np.arange(count) * (self.duration / count), order)

    def _derivative(self, time: ArrayLike, order: int) -> FloatArray:
        inside = np.clip(np.asarray(time, dtype=float), 0.0, self.duration)
        sine, cosine = harmonic_columns(inside, self._frequencies, order)
        return sine @ self.sines.T + cosine @ self.cosines.T


def angular_frequencies(harmonics: int, duration: float) -> FloatArray:
    """Return those of the harmonics of a period, array, shape (H,) [rad/s]."""
    return np.asarray(np.arange(1, harmonics + 1) * (2 * np.pi / duration), dtype=float)


def harmonic_columns(
    time: FloatArray, frequencies: FloatArray, order: int
) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of an order of sin(w t) and cos(w t), shape (N, H) each."""
    phase = time[:, None] * frequencies + order * np.pi / 2
    growth = frequencies**order
    return growth * np.sin(phase), growth * np.cos(phase)


def series_at_rest(harmonics: int) -> tuple[FloatArray, FloatArray]:
    """
    Return all series that begin and end at rest, as sines and cosines (H, 2 H - 2) each.

    Columns are orthonormal; velocity and acceleration are zero at the beginning:
    sum of k sine_k = 0 and sum of k² cosine_k = 0.
    """
    k = np.arange(1.0, harmonics + 1)
    sines, cosines = null_space(k[None, :] ** 1), null_space(k[None, :] ** 2)
    nothing = np.zeros((harmonics, harmonics - 1))
    return np.hstack([sines, nothing]), np.hstack([nothing, cosines])
