# SPDX-License-Identifier: Apache-2.0
"""Which samples of a recording can be believed; the others are counted, never repaired."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.description.records import Finding
from robodyn_ros.errors import MalformedRecording, NoEffort
from robodyn_ros.spatial import FloatArray

BoolArray = NDArray[np.bool_]

# No joint's position [rad or m] or velocity [per s] has such numbers.
_LARGEST_POSITION = 1e4
_LARGEST_VELOCITY = 1e3
# A value so many times further from the median than all but 0.5 % of the others is no measurement.
_OUTLYING = 50.0
_ORDINARY = 99.5
# A joint does not jump by so much [rad or m] at such a velocity [per s].
_JUMP = 0.05
_JUMP_VELOCITY = 30.0
_MOST_JUMPS = 0.02
_MOST_BACKWARDS = 0.05
_LEAST_SAMPLES = 2


def usable_samples(
    joint_names: Sequence[str],
    time: FloatArray,
    position: FloatArray,
    velocity: FloatArray | None,
    effort: FloatArray,
) -> tuple[BoolArray, tuple[Finding, ...]]:
    """
    Return which samples can be used, array of bool (N,), and what was wrong with the others.

    A sample is corrupt where a number of it is not finite, is one that no arm has, or lies 50
    times further from the median than others do. Of stamps that run backwards the longest
    increasing series is kept.

    Parameters
    ----------
    joint_names : sequence of n str
    time : array, shape (N,)
        [s]
    position : array, shape (N, n)
        [rad or m]
    velocity : array, shape (N, n), or None
        [rad/s or m/s]
    effort : array, shape (N, n)
        In the drives' unit.

    Raises
    ------
    NoEffort
        No sample of a joint's effort is a number, or all joints' are zero.
    MalformedRecording
        Too few samples are left, stamps run backwards again and again, or positions jump as those
        of two robots do.
    """
    _check_effort(joint_names, effort)
    sound = np.isfinite(time) & _plausible(position, _LARGEST_POSITION) & _plausible(effort)
    if velocity is not None:
        sound &= _plausible(velocity, _LARGEST_VELOCITY)
    sound[sound] = _plausible_stamps(time[sound])
    corrupt = int((~sound).sum())
    if sound.sum() < _LEAST_SAMPLES:
        raise MalformedRecording('recording', f'{sound.sum()} sound samples', 'at least two')
    findings = []
    if corrupt:
        findings.append(
            Finding(
                'corrupt_samples',
                'warning' if corrupt > len(time) // 100 else 'info',
                'recording',
                corrupt,
                f'{corrupt} of {len(time)} samples are corrupt and were dropped',
            )
        )
    stamps = time[sound]
    backwards = int((np.diff(stamps) < 0).sum())
    if backwards > max(3.0, _MOST_BACKWARDS * len(stamps)):
        raise MalformedRecording(
            'time', f'runs backwards {backwards} times', 'stamps that increase'
        )
    kept = _increasing(stamps)
    lost = len(stamps) - int(kept.sum())
    if backwards:
        if lost > max(3.0, _MOST_BACKWARDS * len(stamps)):
            raise MalformedRecording(
                'time', f'{lost} of {len(stamps)} stamps lie before others', 'stamps that increase'
            )
        findings.append(
            Finding(
                'stamps_backwards',
                'warning',
                'time',
                lost,
                f'{lost} samples are stamped out of order and were dropped',
            )
        )
    sound[sound] = kept
    _check_jumps(joint_names, time[sound], position[sound])
    return sound, tuple(findings)


def _check_effort(joint_names: Sequence[str], effort: FloatArray) -> None:
    for name, column in zip(joint_names, effort.T, strict=True):
        if not np.isfinite(column).any():
            raise NoEffort(f'effort of joint {name!r}', 'no numbers', 'measured efforts')
    if not np.nan_to_num(effort).any():
        raise NoEffort('effort', 'zero in all samples of all joints', 'measured efforts')


def _plausible(values: FloatArray, largest: float = np.inf) -> BoolArray:
    """Return which rows (N,) hold finite numbers, none of them out of all proportion."""
    finite = np.isfinite(values) & (np.abs(np.nan_to_num(values)) <= largest)
    plausible: BoolArray = np.asarray(finite.all(axis=1))
    if plausible.any():
        middle = np.median(values[plausible], axis=0)
        distance = np.abs(np.where(finite, values, middle) - middle)
        # A column that hardly ever moves has no spread to compare with: 1 in its place.
        ordinary = np.percentile(distance[plausible], _ORDINARY, axis=0)
        plausible &= (distance <= _OUTLYING * np.where(ordinary > 0, ordinary, 1.0)).all(axis=1)
    return plausible


def _plausible_stamps(time: FloatArray) -> BoolArray:
    if len(time) < _LEAST_SAMPLES:
        return np.ones(len(time), dtype=bool)
    first, last = np.percentile(time, (5.0, 95.0))
    span = max(last - first, 1e-9)
    return np.asarray((time >= first - span) & (time <= last + span))


def _increasing(time: FloatArray) -> BoolArray:
    """Return which entries make up the longest strictly increasing series."""
    kept = np.ones(len(time), dtype=bool)
    if (np.diff(time) > 0).all():
        return kept
    # Patience sorting: the last entry of the best series of each length, and who came before it.
    tails: list[float] = []
    ends: list[int] = []
    before = np.full(len(time), -1)
    for k, stamp in enumerate(time.tolist()):
        length = bisect_left(tails, stamp)
        before[k] = ends[length - 1] if length else -1
        tails[length : length + 1] = [stamp]
        ends[length : length + 1] = [k]
    kept[:] = False
    k = ends[-1]
    while k >= 0:
        kept[k] = True
        k = int(before[k])
    return kept


def _check_jumps(joint_names: Sequence[str], time: FloatArray, position: FloatArray) -> None:
    if len(time) < _LEAST_SAMPLES:
        raise MalformedRecording('recording', f'{len(time)} sound samples', 'at least two')
    step = np.abs(np.diff(position, axis=0))
    jumps = (step > _JUMP) & (step > _JUMP_VELOCITY * np.diff(time)[:, None])
    often = jumps.mean(axis=0)
    worst = int(often.argmax())
    if jumps[:, worst].sum() > 2 and often[worst] > _MOST_JUMPS:
        raise MalformedRecording(
            f'position of joint {joint_names[worst]!r}',
            f'jumps at {often[worst]:.0%} of the samples',
            'the positions of one robot: are there two under the same names?',
        )
