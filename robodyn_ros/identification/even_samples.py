# SPDX-License-Identifier: Apache-2.0
"""Recordings at even times, from the first motion to the last, cut where stamps pause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator

from robodyn_ros.errors import TooShortRecording
from robodyn_ros.identification.recording import Recording
from robodyn_ros.spatial import FloatArray

# A pause in the stamps that nothing is interpolated across: so many samples, and so long [s].
_GAP_SAMPLES, _GAP = 10.0, 0.25
_SHORTEST = 1.0
# Below this velocity [rad/s or m/s] stiction decides what a joint's drive has to do.
STANDSTILL = 0.02
_AVERAGED = 0.1


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
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None
    effort: FloatArray
    rate: float


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
    TooShortRecording
        No stretch of motion is as long as a second.
    """
    if not standing:
        recording = _in_motion(recording)
    steps = np.diff(recording.time)
    step = float(np.median(steps))
    cuts = np.flatnonzero(steps > max(_GAP, _GAP_SAMPLES * step)) + 1
    stretches = []
    for part in np.split(np.arange(len(recording.time)), cuts):
        time = recording.time[part]
        if len(part) >= 2 and time[-1] - time[0] >= _SHORTEST:
            stretches.append(_even(recording, part))
    if not stretches:
        raise TooShortRecording(
            'recording', f'{recording.duration:.3g} s of motion', f'{_SHORTEST:g} s at least'
        )
    return tuple(stretches)


def _in_motion(recording: Recording) -> Recording:
    velocity = recording.velocity
    if velocity is None:
        velocity = np.gradient(_smoothed(recording), recording.time, axis=0)
    moving = np.flatnonzero((np.abs(velocity) > STANDSTILL).any(axis=1))
    if not len(moving):
        raise TooShortRecording('recording', 'an arm that never moves', 'a motion')
    first, last = recording.time[moving[0]], recording.time[moving[-1]]
    if last - first < _SHORTEST:
        raise TooShortRecording(
            'recording', f'{last - first:.3g} s of motion', f'{_SHORTEST:g} s at least'
        )
    return recording.between(first, last)


def _smoothed(recording: Recording) -> FloatArray:
    """Return positions averaged over a tenth of a second: their noise is no motion."""
    step = float(np.median(np.diff(recording.time)))
    width = max(1, int(_AVERAGED / step))
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
    )
