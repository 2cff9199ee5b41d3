# SPDX-License-Identifier: Apache-2.0
"""
Even samples, low-passed: states to compute with and efforts to compare with.

Every filter is a Butterworth of order 4 that runs forwards and backwards, so that nothing is
delayed. Positions and velocities are low-passed at twice the cut-off of the efforts, 10 Hz at
most; what is computed from them is low-passed again at that of the efforts (``low_passed``), so
that both sides of the equation of motion went through the same filter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.signal import butter, sosfiltfilt

from robodyn_ros.identification.even_samples import EvenSamples
from robodyn_ros.spatial import FloatArray

ORDER = 4
LOWEST_CUTOFF, HIGHEST_CUTOFF = 2.0, 10.0
_CUTOFF_PER_BANDWIDTH = 5.0
_ENERGY = 0.999
# Of the recording's rate: above it a digital filter is no longer the one that was asked for.
_HIGHEST_FRACTION = 0.4
_ROWS_PER_CUTOFF = 4
# Products of states reach several times their frequencies; they are formed at this rate [Hz].
_STATE_RATE = 100.0


@dataclass(frozen=True)
class Band:
    """
    Which frequencies are compared.

    Attributes
    ----------
    cutoff : float
        Of efforts, and of all that is compared with them [Hz].
    rows_per_cutoff : int
        Rate of the rows over the cut-off.
    """

    cutoff: float
    rows_per_cutoff: int = _ROWS_PER_CUTOFF

    @property
    def state_cutoff(self) -> float:
        """Of positions and velocities [Hz]."""
        return min(2.0 * self.cutoff, HIGHEST_CUTOFF)

    @property
    def row_rate(self) -> float:
        """How many rows of the regression there are in a second [Hz]."""
        return self.rows_per_cutoff * self.cutoff

    @property
    def oversampling(self) -> int:
        """How many states there are for each row."""
        return math.ceil(_STATE_RATE / self.row_rate)


@dataclass(frozen=True, eq=False)
class States:
    """
    Low-passed states of n joints at K even times, and the efforts at every so-manieth of them.

    Attributes
    ----------
    time : array, shape (K,)
        [s]
    q, qd, qdd : array, shape (K, n)
        [rad or m, and per s, s²]
    effort : array, shape (ceil(K / oversampling), n)
        Low-passed, in the drives' unit.
    band : Band
    even : EvenSamples
        What they were made of.
    """

    time: FloatArray
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    effort: FloatArray
    band: Band
    even: EvenSamples

    @property
    def step(self) -> float:
        """Between two states [s]."""
        return 1.0 / (self.band.row_rate * self.band.oversampling)

    @property
    def row_time(self) -> FloatArray:
        """Times of the rows [s]."""
        return self.time[:: self.band.oversampling]

    @property
    def row_velocity(self) -> FloatArray:
        """Velocities at the rows, array, shape (rows, n) [rad/s or m/s]."""
        return self.qd[:: self.band.oversampling]

    def rows(self, values: FloatArray) -> FloatArray:
        """Return values at all states, shape (K, ...), low-passed and taken at the rows."""
        rate = self.band.row_rate * self.band.oversampling
        return low_passed(values, self.band.cutoff, rate)[:: self.band.oversampling]


def motion_band(stretches: Sequence[EvenSamples]) -> Band:
    """
    Return the band of a motion: five times the frequency below which 99.9 % of it lies.

    The energy is that of all joints' velocities; the cut-off stays between 2 and 10 Hz, and
    within 0.4 times the slowest recording's rate.
    """
    bandwidth = max(_bandwidth(stretch) for stretch in stretches)
    cutoff = min(max(_CUTOFF_PER_BANDWIDTH * bandwidth, LOWEST_CUTOFF), HIGHEST_CUTOFF)
    return Band(_within(cutoff, min(stretch.rate for stretch in stretches)))


def band_with_cutoff(
    cutoff: float, stretches: Sequence[EvenSamples], rows_per_cutoff: int = _ROWS_PER_CUTOFF
) -> Band:
    """Return the band with this cut-off [Hz], or the highest that the recordings' rates allow."""
    return Band(_within(cutoff, min(stretch.rate for stretch in stretches)), rows_per_cutoff)


def _within(cutoff: float, rate: float) -> float:
    return min(cutoff, _HIGHEST_FRACTION * rate)


def _bandwidth(stretch: EvenSamples) -> float:
    velocity = stretch.velocity
    if velocity is None:
        cutoff = _within(HIGHEST_CUTOFF, stretch.rate)
        smooth = low_passed(stretch.position, cutoff, stretch.rate)
        velocity = np.gradient(smooth, 1.0 / stretch.rate, axis=0)
    velocity = velocity - velocity.mean(axis=0)
    energy = (np.abs(np.fft.rfft(velocity * np.hanning(len(velocity))[:, None], axis=0)) ** 2).sum(
        axis=1
    )
    total = np.cumsum(energy)
    if total[-1] == 0.0:
        return 0.0
    frequencies = np.fft.rfftfreq(len(velocity), 1.0 / stretch.rate)
    return float(frequencies[np.searchsorted(total, _ENERGY * total[-1])])


def states_of(stretch: EvenSamples, band: Band) -> States:
    """Return the low-passed states of a stretch, and the efforts at the band's rows."""
    cutoff = _within(band.state_cutoff, stretch.rate)
    position = CubicSpline(stretch.time, low_passed(stretch.position, cutoff, stretch.rate))
    if stretch.velocity is None:
        velocity = position.derivative()
    else:
        velocity = CubicSpline(stretch.time, low_passed(stretch.velocity, cutoff, stretch.rate))
    effort = CubicSpline(stretch.time, low_passed(stretch.effort, band.cutoff, stretch.rate))
    rate = band.row_rate * band.oversampling
    time = stretch.time[0] + np.arange(int((stretch.time[-1] - stretch.time[0]) * rate) + 1) / rate
    return States(
        time=time,
        q=position(time),
        qd=velocity(time),
        qdd=velocity.derivative()(time),
        effort=effort(time[:: band.oversampling]),
        band=band,
        even=stretch,
    )


def low_passed(values: FloatArray, cutoff: float, rate: float) -> FloatArray:
    """
    Return values, shape (K, ...), low-passed along time without delay.

    Parameters
    ----------
    values : array, shape (K, ...)
    cutoff, rate : float
        [Hz]
    """
    if cutoff >= 0.5 * rate:
        return values
    filter_ = butter(ORDER, cutoff, fs=rate, output='sos')
    # The filter's memory is a few periods of its cut-off.
    padding = min(len(values) - 1, int(3 * rate / cutoff))
    width = min(len(values), max(3, int(rate / cutoff)))
    start = 2.0 * _at_first(values[:width]) - values[padding:0:-1]
    end = 2.0 * _at_first(values[::-1][:width]) - values[-2 : -padding - 2 : -1]
    padded = np.concatenate([start, values, end])
    return sosfiltfilt(filter_, padded, axis=0, padlen=0)[padding : padding + len(values)]


def _at_first(values: FloatArray) -> FloatArray:
    """Return the value at the first sample of the straight line through all of them."""
    k = np.arange(len(values))
    size = len(values)
    weights = (2.0 * (2 * size - 1) - 6.0 * k) / (size * (size + 1))
    return np.tensordot(weights, values, axes=(0, 0))
