# SPDX-License-Identifier: Apache-2.0
"""Are stamps in seconds? Samples far apart are in milli-, micro- or nanoseconds."""

from __future__ import annotations

import numpy as np

from robodyn_ros.errors import MalformedData, Phrase
from robodyn_ros.spatial import FloatArray

CLOCKS = {1e3: 'in ms?', 1e6: 'in us?', 1e9: 'in ns?'}
"""Factors of other clocks' stamps to those in seconds, as questions."""

# Samples further apart [s] show no motion. A motion that is planned may have such points.
_LONGEST_STEP = 0.5
# A pause in the stamps that nothing is interpolated across: so many samples, and so long [s].
_PAUSE_SAMPLES, _PAUSE = 10.0, 0.25
# From sample to sample there is less in these units, at 5 Hz and more. Days lie between no points.
_SLOWEST = {'in ms?': 200.0, 'in us?': 2e5}
_LONGEST_PAUSE = _SLOWEST['in us?']
# So many points, whose velocity hardly changes from one to the next, are samples. What their
# velocity [rad/s or m/s] is in milliseconds, no arm's is.
_SAMPLES, _CHANGE, _FASTEST = 40, 0.5, 0.01
# A joint that moves has come so far [rad or m]. Its velocity has a clock's ratio within a factor.
_NO_MOTION, _TOLERANCE = 0.002, 2.0


def pauses(time: FloatArray) -> np.ndarray:
    """Return between which stamps (N,) nothing is interpolated, array of bool (N - 1,)."""
    steps = np.diff(time)
    return np.asarray(steps > max(_PAUSE, _PAUSE_SAMPLES * float(np.median(steps))))


def check_stamps_of_samples(time: FloatArray) -> None:
    """
    Refuse stamps (N,) of measured samples that are so far apart that they are not in seconds.

    Raises
    ------
    MalformedData
    """
    step = _step(time)
    if step > _LONGEST_STEP:
        raise _refused(step, f'{_LONGEST_STEP:g} s at most, stamps in s; {_unit(step)}')


def check_stamps_of_motion(
    time: FloatArray, position: FloatArray, velocity: FloatArray | None
) -> None:
    """
    Refuse the stamps of a motion, measured or planned, that are not in seconds.

    Where there are velocities, they decide. Else a motion of many samples in which the arm nearly
    stands is refused. A motion of few points is not, if they are less than two days apart.

    Parameters
    ----------
    time : array, shape (N,)
        [s], increasing.
    position : array, shape (N, n)
        [rad or m]
    velocity : array, shape (N, n), or None
        [rad/s or m/s]; None: not known.

    Raises
    ------
    MalformedData
    """
    step = _step(time)
    if step <= _LONGEST_STEP:
        return
    if velocity is not None:
        moves = np.ptp(position, axis=0) > _NO_MOTION
        ratio = velocity_ratios(time, position, velocity)[moves]
        for factor, question in CLOCKS.items():
            if moves.any() and _are(factor, ratio).all():
                raise _refused(step, f'stamps in s, as velocities are per s; {question}')
        if _are(1.0, ratio).any():
            return
    if step > _LONGEST_PAUSE or _nearly_stands(time, position):
        raise _refused(step, f'stamps in s, or velocities that prove them; {_unit(step)}')


def velocity_ratios(time: FloatArray, position: FloatArray, velocity: FloatArray) -> FloatArray:
    """Return the ratio (n,) of velocities to the changes of positions (N, n); 0: of no changes."""
    steps = np.diff(time)[:, None]
    with np.errstate(over='ignore', invalid='ignore'):
        way = np.cumsum(0.5 * (velocity[1:] + velocity[:-1]) * steps, axis=0)
        moved = position[1:] - position[:1]
        way, moved = way - way.mean(axis=0), moved - moved.mean(axis=0)
        squares = (moved**2).sum(axis=0)
        ratio: FloatArray = (way * moved).sum(axis=0) / np.where(squares > 0.0, squares, np.inf)
    return ratio


def _step(time: FloatArray) -> float:
    return float(np.median(np.diff(time))) if len(time) > 1 else 0.0


def _unit(step: float) -> str:
    return next((question for question, most in _SLOWEST.items() if step < most), 'in ns?')


def _refused(step: float, allowed: str) -> MalformedData:
    return MalformedData(
        'time', Phrase(f'{step:.4g} s from sample to sample, in the median'), allowed
    )


def _are(factor: float, ratio: FloatArray) -> np.ndarray:
    return (ratio > factor / _TOLERANCE) & (ratio < factor * _TOLERANCE)


def _nearly_stands(time: FloatArray, position: FloatArray) -> bool:
    """Return whether these are samples of a motion that is slower than any."""
    stride = 1
    while len(time) // stride >= _SAMPLES:  # of every second, every fourth there is less noise
        with np.errstate(over='ignore', invalid='ignore'):
            velocity = np.diff(position[::stride], axis=0) / np.diff(time[::stride])[:, None]
            change = np.sqrt((np.diff(velocity, axis=0) ** 2).mean())
            is_smooth = change < _CHANGE * np.sqrt((velocity**2).mean())
        if is_smooth and np.abs(velocity).max() < _FASTEST:
            return True
        stride *= 2
    return False
