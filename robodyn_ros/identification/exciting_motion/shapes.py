# SPDX-License-Identifier: Apache-2.0
"""
All Fourier series within a joint's limits, as a map from numbers without limits.

For each joint, numbers x (2 H - 1,) stand for the mean position and the series at rest. They are
divided by (1 + g⁴)^(1/4), where g is the largest relative use of a limit of position, velocity or
acceleration, taken as a p-norm over samples and enlarged by what can be between them: whatever x
is, the limits are kept, and every motion within them is reached up to the p-norm's few percent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robodyn_ros.identification.exciting_motion.fourier import (
    FourierMotion,
    angular_frequencies,
    harmonic_columns,
    series_at_rest,
)
from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits
from robodyn_ros.spatial import FloatArray

_SAMPLES_PER_HARMONIC = 20
_P = 24.0
_SOFTNESS = 4.0
_BISECTIONS = 20


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
        frequencies = angular_frequencies(self.harmonics, self.duration)
        parts = [harmonic_columns(self.time, frequencies, order) for order in range(3)]
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
