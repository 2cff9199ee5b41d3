# SPDX-License-Identifier: Apache-2.0
"""A motion as samples: positions, and the velocities and accelerations that go with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.description.records import Finding
from robodyn_ros.errors import InvalidArgument, MalformedData, Phrase, later_than
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

_ORDER = 4

LARGEST_ERROR = 0.01
"""Of a motion in fewer points than it has samples [rad or m]."""


@dataclass(frozen=True, eq=False, repr=False)
class MotionSamples(Record):
    """
    A motion of n joints at N times.

    Attributes
    ----------
    time : array, shape (N,)
        [s], increasing.
    q, qd, qdd : array, shape (N, n)
        Positions, velocities and accelerations [rad or m, and per s, s2].
    derived : str
        What of it was not given but derived: '', 'accelerations', or
        'velocities and accelerations'.
    findings : tuple of Finding
        Which velocities were given and are not those of the positions: all are derived then.
    """

    time: FloatArray
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    derived: str = ''
    findings: tuple[Finding, ...] = ()

    @classmethod
    def from_samples(
        cls,
        time: FloatArray,
        q: FloatArray,
        qd: FloatArray | None = None,
        qdd: FloatArray | None = None,
    ) -> MotionSamples:
        """
        Return the motion, with what is missing taken from splines through what is given.

        Raises
        ------
        MalformedData
            There are no samples, times do not increase, or a slope is not finite.
        """
        if not len(time):
            raise MalformedData('motion', Phrase('no samples'), 'at least one')
        late = np.diff(time) <= 0
        if late.any():
            k = int(late.argmax()) + 1
            allowed = later_than('sample', float(time[k - 1] - time[k]))
            raise MalformedData(f'time of sample {k + 1}', float(time[k]), allowed, unit='s')
        derived = ''
        if qd is None:
            derived = 'velocities and accelerations'
            qd, qdd = _derivative(time, q, 1), _derivative(time, q, 2)
        elif qdd is None:
            derived = 'accelerations'
            qdd = _derivative(time, qd, 1)
        return cls(time, q, qd, qdd, derived)

    def chosen(self, most: int) -> np.ndarray:
        """
        Return the indices of at most so many samples, between which it is kept best.

        Raises
        ------
        InvalidArgument
            The cubics between them leave the others by more than ``LARGEST_ERROR``.
        """
        count = len(self.time)
        if count <= most:
            return np.arange(count)
        from scipy.interpolate import CubicHermiteSpline

        # Even ones would miss what a long motion does in little time.
        found = np.linspace(0, count - 1, max(2, most // 8)).round().astype(int)
        while True:
            between = CubicHermiteSpline(self.time[found], self.q[found], self.qd[found])
            error = np.abs(between(self.time) - self.q).max(axis=1)
            worst = np.maximum.reduceat(error, found[:-1]) * (np.diff(found) > 1)
            room = most - len(found)
            if room <= 0 or not (worst > 0.0).any():
                break
            split = np.argsort(worst)[-((room + 1) // 2) :]
            middle = (found[split] + found[split + 1]) // 2
            found = np.unique(np.concatenate([found, middle[worst[split] > 0.0]]))
        if not error.max() <= LARGEST_ERROR:
            off = Phrase(f'{most} points leave its samples by {error.max():.3g}')
            allowed = f'at most {LARGEST_ERROR:g} rad or m: slower, low-passed or in parts'
            raise InvalidArgument('motion', off, allowed)
        return found

    def low_passed(self, cutoff: float) -> MotionSamples:
        """
        Return the motion with filtered positions, and derivatives recomputed from them.

        For measured motions: what a spline makes of noise, twice derived, is mostly noise.

        Parameters
        ----------
        cutoff : float
            [Hz], of a Butterworth filter that runs forwards and backwards: it delays nothing.

        Raises
        ------
        InvalidArgument
            The cutoff is not between zero and half the rate of the samples.
        MalformedData
            There are too few samples to filter.
        """
        # Here, as in _derivative, because it takes half a second, and few commands need it.
        from scipy.signal import butter, sosfiltfilt

        steps = len(self.time) - 1
        least = 3 * (2 * _ORDER + 1)
        if steps < least:
            raise MalformedData(
                'motion', Phrase(f'{steps + 1} samples'), f'more than {least} to filter'
            )
        rate = steps / (self.time[-1] - self.time[0])
        if not 0 < cutoff < rate / 2:
            raise InvalidArgument(
                'cutoff', cutoff, f'more than 0, less than {rate / 2:.6g} Hz', unit='Hz'
            )
        # The filter wants even steps; recorders do not keep them.
        even = np.linspace(self.time[0], self.time[-1], steps + 1)
        columns = [np.interp(even, self.time, column) for column in self.q.T]
        filter_ = butter(_ORDER, cutoff, fs=rate, output='sos')
        return MotionSamples.from_samples(even, sosfiltfilt(filter_, np.stack(columns, 1), axis=0))


def _derivative(time: FloatArray, values: FloatArray, order: int) -> FloatArray:
    if len(time) == 1:
        return np.zeros_like(values)
    from scipy.interpolate import CubicSpline

    try:
        with np.errstate(over='ignore', invalid='ignore'):
            result = CubicSpline(time, values)(time, order)
    except ValueError:  # a difference of theirs overflows
        result = np.array(np.nan)
    if not np.isfinite(result).all():
        raise MalformedData(
            'motion',
            Phrase('numbers so large, or times so close'),
            'those whose slopes are finite',
        )
    return result
