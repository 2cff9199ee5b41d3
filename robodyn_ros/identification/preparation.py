# SPDX-License-Identifier: Apache-2.0
"""
Recordings without their standstill, at even times, low-passed: states, efforts to compare with.

A recording is taken from its first motion to its last, and cut where stamps pause. Every filter is
a Butterworth of order 4 that runs forwards and backwards, so that nothing is delayed. Positions
and velocities are low-passed at twice the cut-off of the efforts, 10 Hz at most; what is computed
from them is low-passed again at that of the efforts (``low_passed``), so that both sides of the
equation of motion went through the same filter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.signal import butter, sosfiltfilt

from robodyn_ros.errors import InsufficientRecording, Phrase
from robodyn_ros.identification.recording import STANDSTILL, Recording, clipped
from robodyn_ros.motions.stamps import pauses
from robodyn_ros.spatial import FloatArray

_SHORTEST = 1.0  # s
_AVERAGED = 0.1  # s
_ORDER = 4
_LOWEST_CUTOFF, _HIGHEST_CUTOFF = 2.0, 10.0  # Hz
_CUTOFF_PER_BANDWIDTH = 5.0
_ENERGY = 0.999
# Of the recording's rate: above it a digital filter is no longer the one that was asked for.
_HIGHEST_FRACTION = 0.4
_ROWS_PER_CUTOFF = 4
# Products of states reach several times their frequencies; they are formed at this rate [Hz].
_STATE_RATE = 100.0


@dataclass(frozen=True, eq=False)
class EvenSamples:
    """
    A stretch of a recording at even times: K samples of n joints.

    Attributes
    ----------
    time : array, shape (K,)
        [s]
    position, effort : array, shape (K, n)
        [rad or m], the drives' unit.
    velocity : array, shape (K, n), or None
        [rad/s or m/s]; None where there are no measured ones.
    rate : float
        [Hz]
    clipped : array of bool, shape (K, n)
        Where the effort is no more than the largest that is reported.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None
    effort: FloatArray
    rate: float
    clipped: np.ndarray


def even_samples(recording: Recording, *, standing: bool = False) -> tuple[EvenSamples, ...]:
    """
    Return the recording at even times, at its own rate, from its first to its last motion.

    Before and after it the arm stands, and its brakes and stiction decide what the drives report.
    Where stamps pause the recording is cut.

    Parameters
    ----------
    recording : Recording
    standing : bool
        Whether what comes before the first motion and after the last is kept.

    Raises
    ------
    InsufficientRecording
        No stretch of motion is as long as a second.
    """
    if not standing:
        recording = _in_motion(recording)
    cuts = np.flatnonzero(pauses(recording.time)) + 1
    stretches = []
    for part in np.split(np.arange(len(recording.time)), cuts):
        time = recording.time[part]
        if len(part) >= 2 and time[-1] - time[0] >= _SHORTEST:
            stretches.append(_even(recording, part))
    if not stretches:
        raise InsufficientRecording(
            'recording',
            Phrase(f'{recording.duration:.3g} s of motion'),
            f'{_SHORTEST:g} s at least',
        )
    return tuple(stretches)


def _in_motion(recording: Recording) -> Recording:
    velocity = recording.velocity
    if velocity is None:
        velocity = np.gradient(_smoothed(recording), recording.time, axis=0)
    moving = np.flatnonzero((np.abs(velocity) > STANDSTILL).any(axis=1))
    if not len(moving):
        raise InsufficientRecording('recording', Phrase('the arm never moves'), 'a motion')
    first, last = recording.time[moving[0]], recording.time[moving[-1]]
    if last - first < _SHORTEST:
        raise InsufficientRecording(
            'recording', Phrase(f'{last - first:.3g} s of motion'), f'{_SHORTEST:g} s at least'
        )
    return recording.between(first, last)


def _smoothed(recording: Recording) -> FloatArray:
    """Return positions averaged over a tenth of a second: their noise is no motion."""
    step = float(np.median(np.diff(recording.time)))
    width = min(max(1, int(_AVERAGED / step)), len(recording.time))
    padded = np.pad(recording.position, ((width, width), (0, 0)), mode='edge')
    sums = np.cumsum(padded, axis=0)
    half = width // 2
    start = np.arange(len(recording.time)) + width - half - 1
    return (sums[start + width] - sums[start]) / width


def _even(recording: Recording, part: np.ndarray) -> EvenSamples:
    time = recording.time[part]
    # As many even samples as there were: the mean rate, which jitter leaves alone.
    even = np.linspace(time[0], time[-1], len(time))

    def at_even(values: FloatArray) -> FloatArray:
        return PchipInterpolator(time, values[part])(even)

    return EvenSamples(
        time=even,
        position=at_even(recording.position),
        velocity=None if recording.velocity is None else at_even(recording.velocity),
        effort=at_even(recording.effort),
        rate=(len(time) - 1) / float(time[-1] - time[0]),
        clipped=at_even(clipped(recording).astype(float)) > 0.0,
    )


# --- states --------------------------------------------------------------------------------------


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
        return min(2.0 * self.cutoff, _HIGHEST_CUTOFF)

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
    Low-passed states of n joints at K even times, and the efforts at the rows, which are fewer.

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

    @property
    def row_clipped(self) -> np.ndarray:
        """Whether an effort is clipped within half a period of the cut-off, bool (rows, n)."""
        before = np.concatenate([np.zeros((1, self.effort.shape[1])), self.even.clipped])
        count, half = before.cumsum(axis=0), 0.5 / self.band.cutoff
        first, last = (
            np.searchsorted(self.even.time, self.row_time + each) for each in (-half, half)
        )
        return np.asarray(count[last] > count[first])

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
    cutoff = min(max(_CUTOFF_PER_BANDWIDTH * bandwidth, _LOWEST_CUTOFF), _HIGHEST_CUTOFF)
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
        cutoff = _within(_HIGHEST_CUTOFF, stretch.rate)
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
    filter_ = butter(_ORDER, cutoff, fs=rate, output='sos')
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
