# SPDX-License-Identifier: Apache-2.0
"""
A Fourier series for each joint, its bounds at every time, and all series within given limits.

    q(t) = center + sum over k of sine_k sin(k w t) + cosine_k cos(k w t),    w = 2 pi / duration

Bounds hold at every time, not at samples only: a trigonometric polynomial p of degree H is known
from samples up to a factor that is near one. Where m > 2 H samples are spread evenly over a
period, max |p| <= max |p(t_i)| / cos(pi H / m) (Ehlich and Zeller 1964).

``Shapes`` is a map from numbers without limits to all series within a joint's limits. For each
joint, numbers x (2 H - 1,) stand for the mean position and the series at rest. They are divided by
(1 + g⁴)^(1/4), where g is the largest relative use of a limit of position, velocity or
acceleration, taken as a p-norm over samples and enlarged by what can be between them: whatever x
is, the limits are kept, and every motion within them is reached up to the p-norm's few percent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

# Samples per harmonic: of what must hold at every time, and of what a search goes by.
_SAMPLES_FOR_BOUNDS, _SAMPLES_PER_HARMONIC = 40, 20
_P = 24.0
_SOFTNESS = 4.0
_BISECTIONS = 20


@dataclass(frozen=True, eq=False, repr=False)
class FourierMotion(Record):
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
        return _angular_frequencies(self._harmonics, self.duration)

    @property
    def _between_samples(self) -> float:
        return 1.0 / float(np.cos(np.pi / _SAMPLES_FOR_BOUNDS))

    def _evenly(self, order: int) -> FloatArray:
        count = _SAMPLES_FOR_BOUNDS * self._harmonics
        return self._derivative(np.arange(count) * (self.duration / count), order)

    def _derivative(self, time: ArrayLike, order: int) -> FloatArray:
        inside = np.clip(np.asarray(time, dtype=float), 0.0, self.duration)
        sine, cosine = _harmonic_columns(inside, self._frequencies, order)
        return sine @ self.sines.T + cosine @ self.cosines.T


def _angular_frequencies(harmonics: int, duration: float) -> FloatArray:
    """Return those of the harmonics of a period, array, shape (H,) [rad/s]."""
    return np.asarray(np.arange(1, harmonics + 1) * (2 * np.pi / duration), dtype=float)


def _harmonic_columns(
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


# --- all series within limits --------------------------------------------------------------------


@dataclass(frozen=True)
class Shapes:
    """
    The series of a duration and a number of harmonics within limits.

    Attributes
    ----------
    limits : MotionLimits
    duration : float
        [s]
    harmonics : int
    """

    limits: MotionLimits
    duration: float
    harmonics: int

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.limits.velocity)

    @property
    def size(self) -> int:
        """How many numbers stand for a joint."""
        return 2 * self.harmonics - 1

    @cached_property
    def time(self) -> FloatArray:
        """Of the samples, one period without its end, array, shape (N,) [s]."""
        count = _SAMPLES_PER_HARMONIC * self.harmonics
        return np.asarray(np.arange(count) * (self.duration / count), dtype=float)

    @cached_property
    def columns(self) -> FloatArray:
        """Of position, velocity and acceleration at the samples, (3, N, 2 H - 2)."""
        sines, cosines = series_at_rest(self.harmonics)
        frequencies = _angular_frequencies(self.harmonics, self.duration)
        parts = [_harmonic_columns(self.time, frequencies, order) for order in range(3)]
        return np.stack([sine @ sines + cosine @ cosines for sine, cosine in parts])

    @cached_property
    def _middle_and_half(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = self.limits.position.T
        return (lower + upper) / 2, (upper - lower) / 2

    @cached_property
    def _uses(self) -> FloatArray:
        """Relative uses of limits at the samples as a matrix times x, (n, 3 N, 2 H - 1)."""
        _, half = self._middle_and_half
        relative = np.stack(
            [np.ones(self.n), half / self.limits.velocity, half / self.limits.acceleration]
        )
        series = relative.T[:, :, None, None] * self.columns
        middle = np.zeros((self.n, 3, len(self.time), 1))
        middle[:, 0] = 1.0
        uses = np.concatenate([middle, series], axis=-1)
        between = 1.0 / np.cos(np.pi / _SAMPLES_PER_HARMONIC)
        return between * uses.reshape(self.n, -1, self.size)

    def _largest_use(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the p-norm (n,) of the uses, and its gradient (n, size)."""
        uses = (self._uses @ x[:, :, None])[..., 0]
        top = np.maximum(np.abs(uses).max(axis=1, keepdims=True), 1e-300)
        relative = np.abs(uses) / top
        norm = (relative**_P).sum(axis=1, keepdims=True) ** (1 / _P)
        slope = np.sign(uses) * (relative / norm) ** (_P - 1)
        return (norm * top)[:, 0], np.einsum('jr,jrp->jp', slope, self._uses)

    def inside(self, x: FloatArray) -> FloatArray:
        """Return numbers (n, size) as they are used, within the limits."""
        use, _ = self._largest_use(x)
        return x * ((1 + use**_SOFTNESS) ** (-1 / _SOFTNESS))[:, None]

    def pulled_back(self, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient by x of a function whose gradient by ``inside(x)`` is given."""
        use, slope = self._largest_use(x)
        factor = (1 + use**_SOFTNESS) ** (-1 / _SOFTNESS)
        growth = -(use ** (_SOFTNESS - 1)) * factor / (1 + use**_SOFTNESS)
        along = (gradient * x).sum(axis=1)
        return factor[:, None] * gradient + (along * growth)[:, None] * slope

    def states(self, inside: FloatArray) -> FloatArray:
        """Return q, qd, qdd at the samples, (3, N, n)."""
        middle, half = self._middle_and_half
        states = self.columns @ (half[:, None] * inside[:, 1:]).T
        states[0] += middle + half * inside[:, 0]
        return states

    def center(self, inside: FloatArray) -> FloatArray:
        """Return the mean positions, array, shape (n,) [rad or m]."""
        middle, half = self._middle_and_half
        return middle + half * inside[:, 0]

    def gradient(self, by_states: FloatArray, by_center: FloatArray) -> FloatArray:
        """Return a gradient by ``inside`` from those by states (3, N, n) and center (n,)."""
        _, half = self._middle_and_half
        series = np.einsum('stj,stp->jp', by_states, self.columns)
        middle = by_states[0].sum(axis=0) + by_center
        return half[:, None] * np.concatenate([middle[:, None], series], axis=1)

    def motion(self, inside: FloatArray) -> FourierMotion:
        """Return the motion."""
        _, half = self._middle_and_half
        sines, cosines = series_at_rest(self.harmonics)
        series = half[:, None] * inside[:, 1:]
        return FourierMotion(
            self.center(inside), series @ sines.T, series @ cosines.T, self.duration
        )

    def random(
        self, generator: np.random.Generator, part: tuple[float, float] = (0.5, 0.95)
    ) -> FloatArray:
        """Return numbers (n, size) of a random motion that uses a part of its limits."""
        x = generator.normal(size=(self.n, self.size))
        x[:, 0] = generator.uniform(-0.7, 0.7, self.n)
        wanted = generator.uniform(*part, self.n)
        series = np.concatenate([np.zeros((self.n, 1)), x[:, 1:]], axis=1)
        x[:, 1:] /= self._largest_use(series)[0][:, None]
        # The mean position stays; the series grows until both together use that part.
        low, high = np.zeros((2, self.n))
        high += 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            tried = np.concatenate([x[:, :1], x[:, 1:] * middle[:, None]], axis=1)
            over = self._largest_use(tried)[0] > wanted
            high, low = np.where(over, middle, high), np.where(over, low, middle)
        x[:, 1:] *= low[:, None]
        return x

    def raw(self, inside: FloatArray) -> FloatArray:
        """Return the numbers x of which these are the ``inside`` ones; uses must be under one."""
        use, _ = self._largest_use(inside)
        return inside / ((1 - np.minimum(use, 0.99) ** _SOFTNESS) ** (1 / _SOFTNESS))[:, None]
