# SPDX-License-Identifier: Apache-2.0
"""
Are recorded velocities those of the positions? Sign, unit, scale, delay, zeros, order of joints.

Both are compared as changes of position over windows: the integral of the velocity, and the
difference of the positions. So coarse encoders and noise of the velocity hardly count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.description.records import Finding, warning
from robodyn_ros.errors import MalformedData, Phrase
from robodyn_ros.motions.possible_positions import OTHER_UNITS, UNIT_RATIOS, velocity_error
from robodyn_ros.motions.stamps import CLOCKS, pauses
from robodyn_ros.spatial import FloatArray

# A lag that a driver's filter may have [s], as for the core's states, to which a difference adds
# half the time between samples; how far another one is looked for, and in which steps.
_USUAL_LAG, _FARTHEST_LAG, _LAG_STEP = 0.035, 0.5, 0.005
# A filter of 30 ms takes a tenth of a motion of 2.5 Hz; noise with such a ratio is zero.
_SCALE_TOLERANCE, _ZERO = 0.1, 0.05
# Of the velocity's square: what its positions may leave unexplained, and those of another joint.
_UNEXPLAINED, _ANOTHERS = 0.05, 0.02
# A lag is certain where it leaves so little of what the usual ones leave, in terms of this F.
_LEFT, _CERTAIN = 0.5, 16.0
# Factors of all joints that differ by less have one cause.
_UNANIMOUS = 0.05
# Windows [s]: the shortest over which a joint moves by this part of its range.
_WINDOWS, _PART = (0.1, 0.2, 0.5, 1.0, 2.0), 0.1
# How many samples a window has, how many windows follow one another, how many are compared.
_FEWEST_SAMPLES, _FEWEST, _MOST = 3, 4, 500
_LEAST_SAMPLES = 20
# Smaller changes [rad or m] are no motion, nor are those under so many deviations of noise.
_NO_MOTION, _NOISES = 0.002, 5.0
_STANDSTILL = 0.02  # rad/s or m/s
# A position that changes by so much [rad or m] between two samples was counted from another turn.
_TURN = 3.0


def velocity_findings(
    joint_names: Sequence[str],
    time: FloatArray,
    position: FloatArray,
    velocity: FloatArray,
) -> tuple[Finding, ...]:
    """
    Return which joints' velocities are not those of their positions; then none is to be used.

    Parameters
    ----------
    joint_names : sequence of n str
    time : array, shape (N,)
        [s], increasing.
    position, velocity : array, shape (N, n)
        [rad or m], [rad/s or m/s]

    Raises
    ------
    MalformedData
        The positions are not to be believed either: velocities or positions are in degrees or
        millimetres, are those of each other's joints, or differ by one factor on all joints.
    """
    if len(time) < _LEAST_SAMPLES:
        return ()
    is_pause = pauses(time)
    joints = [
        _Joint.of(time, position[:, j], velocity[:, j], is_pause) for j in range(len(joint_names))
    ]
    wrong = {j: mistake for j, each in enumerate(joints) if (mistake := each.mistake())}
    if not wrong:
        return ()
    names = [f'velocity of joint {name!r}' for name in joint_names]
    _check_order(names, joint_names, joints, list(wrong))
    factors = {j: each.ratio for j, each in wrong.items() if 0.0 < each.ratio < np.inf}
    _check_clock(factors, sum(each.moves for each in joints))
    _check_units(names, factors)
    alike: dict[str, list[int]] = {}
    for j, each in wrong.items():
        alike.setdefault(each.words, []).append(j)
    findings = []
    for words, (first, *rest) in alike.items():
        others = ', '.join(repr(joint_names[j]) for j in rest)
        also = f' (and of {others})' if others else ''
        ratio = wrong[first].ratio
        findings.append(
            warning(
                'wrong_velocity',
                ', '.join(f'joint {joint_names[j]!r}' for j in (first, *rest)),
                float(f'{ratio:.3g}') if np.isfinite(ratio) else words,
                f'{names[first]}{also} {words}: all velocities are taken from positions instead',
            )
        )
    return tuple(findings)


@dataclass(frozen=True)
class _Mistake:
    """What is wrong with a velocity, and its ratio to that of the positions; NaN: it has none."""

    words: str
    ratio: float = float('nan')


# --- refusals ------------------------------------------------------------------------------------


def _check_order(
    names: Sequence[str], joint_names: Sequence[str], joints: Sequence[_Joint], wrong: list[int]
) -> None:
    """Refuse velocities that are those of one another's joints."""
    owner = {}
    for i in wrong:
        left = {k: joints[i].unexplained_by(joints[k]) for k in wrong if k != i}
        best = min(left, key=lambda k: left[k], default=i)
        if best != i and left[best] < _ANOTHERS:
            owner[i] = best
    for i, k in owner.items():
        if k in owner and i in owner.values():
            raise MalformedData(
                names[i],
                Phrase(f'that of joint {joint_names[k]!r}'),
                'positions, velocities and efforts in one order of joints',
            )


def _check_clock(factors: dict[int, float], moving: int) -> None:
    """Refuse velocities that differ from those of the positions by one factor on all joints."""
    if len(factors) < max(2, moving) or np.ptp(np.log(list(factors.values()))) > _UNANIMOUS:
        return
    factor = float(np.exp(np.mean(np.log(list(factors.values())))))
    question = next(
        (words for unit, words in CLOCKS.items() if abs(factor / unit - 1.0) < _UNANIMOUS), ''
    )
    if question or not (_unit_of(factor) or _unit_of(1.0 / factor)):
        raise MalformedData(
            'velocities of all joints',
            Phrase(f'{factor:.3g} times the changes of their positions'),
            'those per second, and stamps in s; '
            + (f'stamps {question}' if question else 'another unit, or stamps of another clock?'),
        )


def _check_units(names: Sequence[str], factors: dict[int, float]) -> None:
    """Refuse velocities, or positions, in degrees or millimetres."""
    for j, factor in factors.items():
        for inverse, whose in ((False, ''), (True, 'positions ')):
            question = _unit_of(1.0 / factor if inverse else factor)
            if question:
                raise MalformedData(
                    names[j],
                    Phrase(f'{factor:.3g} times the change of its position'),
                    f'that per second; {whose}{question}',
                )


def _unit_of(factor: float) -> str:
    """Return which unit has such a factor to the one wanted, as a question; empty: none."""
    for question, (low, high) in zip(OTHER_UNITS, UNIT_RATIOS, strict=True):
        if low < factor < high:
            return question
    return ''


# --- one joint -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Joint:
    """
    Changes of one joint's position over K windows.

    Attributes
    ----------
    time, position : array, shape (N,)
        [s], [rad or m]
    window : float
        [s]
    start : array, shape (K,)
        Of the windows [s].
    integral : array, shape (K,)
        Of the velocity over them.
    usual_lag : float
        [s]
    noise, integral_noise : float
        Deviations of a change that the positions show, and of the integral [rad or m].
    count : float
        Of windows that follow one another.
    """

    time: FloatArray
    position: FloatArray
    window: float
    start: FloatArray
    integral: FloatArray
    usual_lag: float
    noise: float
    integral_noise: float
    count: float

    @classmethod
    def of(
        cls, time: FloatArray, position: FloatArray, velocity: FloatArray, is_pause: np.ndarray
    ) -> _Joint:
        """Return those of the shortest window over which the joint moves by much of its range."""
        steps = np.diff(time)
        step = float(np.median(steps))
        is_cut = is_pause | (np.abs(np.diff(position)) > _TURN)
        pauses = np.concatenate([[0], np.cumsum(is_cut)])
        is_whole = ~(is_cut[1:] | is_cut[:-1])
        integral = np.concatenate([[0.0], np.cumsum(0.5 * (velocity[1:] + velocity[:-1]) * steps)])
        noise = float(np.sqrt(2.0)) * max(_noise(position, is_whole), _resolution(position))
        enough = max(_PART * np.ptp(position), 2.0 * _NOISES * noise)
        start, window, count = np.empty(0), _WINDOWS[0], 0.0
        for candidate in _WINDOWS:
            begin = _starts(time, pauses, candidate)
            number = float(np.minimum(np.diff(begin), candidate).sum()) / candidate
            if candidate < _FEWEST_SAMPLES * step or number < _FEWEST:
                continue
            start, window, count = begin, candidate, number
            if _size(_change(time, position, begin, candidate)) >= enough:
                break
        rounded = window * _resolution(velocity)
        return cls(
            time,
            position,
            window,
            start,
            _change(time, integral, start, window),
            _USUAL_LAG + 0.5 * step + 1e-9,
            noise,
            float(np.hypot(np.sqrt(window * step) * _noise(velocity, is_whole), rounded)),
            count,
        )

    def change(self, lag: FloatArray | float = 0.0, of: _Joint | None = None) -> FloatArray:
        """Return what positions, its own or another's, changed so long [s] before the windows."""
        position = self.position if of is None else of.position
        return _change(self.time, position, self.start - np.reshape(lag, (-1, 1)), self.window)

    @property
    def moves(self) -> bool:
        """Whether its positions do."""
        return _size(self.change()) > max(_NO_MOTION, _NOISES * self.noise)

    def mistake(self) -> _Mistake | None:
        """Return what is wrong with the velocity; None where nothing is, or nothing is known."""
        if self.count < _FEWEST:
            return None
        said, least = _size(self.integral), _NOISES * self.integral_noise
        if not self.moves:
            known = max(_STANDSTILL * self.window, least, 2.0 * _size(self.change()))
            if said > max(known, _NO_MOTION):
                return _Mistake(velocity_error(np.inf), np.inf)
            return None
        if not self.integral.any():
            return _Mistake(velocity_error(0.0), 0.0)
        usual, other = self._fits()
        if abs(usual.ratio) < _ZERO and usual.left > _UNEXPLAINED:
            return _Mistake(velocity_error(0.0), 0.0)
        gain = usual.left / max(other.left, 1e-12) - 1.0
        is_late = other.left < _LEFT * usual.left and gain * self.count > _CERTAIN
        if usual.unexplained < _UNEXPLAINED:
            if abs(usual.ratio - 1.0) > _SCALE_TOLERANCE + 3.0 * usual.deviation:
                return _Mistake(velocity_error(usual.ratio, zero=0.0), usual.ratio)
            return _Mistake(_late(other.lag)) if is_late else None
        if is_late and other.unexplained < _UNEXPLAINED and other.ratio > 0.0:
            return _Mistake(_late(other.lag))
        return _Mistake(
            f'does not follow its position, which explains {1.0 - usual.unexplained:.0%} of it'
        )

    def unexplained_by(self, other: _Joint) -> float:
        """Return which part of the velocity's square is not another joint's change of position."""
        changes = self.change(_lags(self.usual_lag), other)
        size = max(_size(self.integral), _size(changes[len(changes) // 2]), _NO_MOTION)
        left = np.sqrt(((self.integral - changes) ** 2).mean(axis=1).min())
        return float(left / size) ** 2

    def _fits(self) -> tuple[_FittedLag, _FittedLag]:
        """Return the lags, of the usual ones and of all, at which positions explain it best."""
        lags = _lags(_FARTHEST_LAG)
        changes = self.change(lags)
        own, squares = float((self.integral**2).sum()), (changes**2).sum(axis=1)
        ratio = changes @ self.integral / squares
        left = np.maximum(own - ratio**2 * squares, 0.0)
        count = len(self.integral)

        def best(farthest: float) -> _FittedLag:
            k = int(np.where(np.abs(lags) <= farthest, left, np.inf).argmin())
            noise = count * (self.integral_noise**2 + (ratio[k] * self.noise) ** 2)
            return _FittedLag(
                float(lags[k]),
                float(ratio[k] / (1.0 - count * self.noise**2 / squares[k])),
                float(np.sqrt(left[k] / (squares[k] * self.count))),
                float(left[k] / own),
                float(max(left[k] - noise, 0.0) / own),
            )

        return best(self.usual_lag), best(_FARTHEST_LAG)


@dataclass(frozen=True)
class _FittedLag:
    """
    A lag [s], the ratio that velocities have at it to those of positions, and its deviation.

    Of the velocity's square ``left`` is left, ``unexplained`` without what noise explains.
    """

    lag: float
    ratio: float
    deviation: float
    left: float
    unexplained: float


def _late(lag: float) -> str:
    return f'is {1e3 * abs(lag):.0f} ms {"behind" if lag > 0.0 else "ahead of"} its position'


def _lags(farthest: float) -> FloatArray:
    count = int(farthest / _LAG_STEP + 1e-9)
    return np.asarray(_LAG_STEP * np.arange(-count, count + 1), dtype=float)


def _starts(time: FloatArray, pauses: np.ndarray, window: float) -> FloatArray:
    """Return where windows begin that no pause, and no end of the recording, lies near."""
    first, last = time[0] + _FARTHEST_LAG, time[-1] - _FARTHEST_LAG - window
    inside = time[(time >= first) & (time <= last)]
    inside = inside[:: max(1, len(inside) // _MOST)]
    before = np.searchsorted(time, inside - _FARTHEST_LAG, side='right') - 1
    after = np.searchsorted(time, inside + window + _FARTHEST_LAG)
    return inside[pauses[before] == pauses[np.minimum(after, len(time) - 1)]]


def _change(time: FloatArray, values: FloatArray, start: FloatArray, window: float) -> FloatArray:
    return np.interp(start + window, time, values) - np.interp(start, time, values)


def _size(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def _noise(values: FloatArray, is_whole: np.ndarray) -> float:
    """Return the deviation of white noise on a signal that is smooth between these samples."""
    return _size(np.diff(values, 2)[is_whole]) / np.sqrt(6.0)


def _resolution(values: FloatArray) -> float:
    """Return the deviation that rounding to the smallest step of a signal has."""
    steps = np.abs(np.diff(values))
    return float(np.min(steps, where=steps > 0.0, initial=np.ptp(values))) / np.sqrt(12.0)
