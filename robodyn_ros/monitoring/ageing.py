# SPDX-License-Identifier: Apache-2.0
"""
Wear, warm-up and payloads told apart over many motions: findings in words with numbers.

Of each joint the friction of the last motions, a sliding window, is compared with that of the
first, the reference. Cold drives have more friction: the logarithm of friction is taken as

    y = level + a c,    c = exp(-t / tau)  or  c = (T_warm - T) / 30 K

with the time t since the start, or a temperature T. The amplitude a is estimated within sessions,
from one start to the next, where no wear happens; its uncertainty, times how much colder or warmer
one group of motions is than the other, is part of the deviation. Where neither time nor
temperature is known the whole prior of a is: friction may then be said to differ, wear may not.

A change is a finding where its confidence bound exceeds a minimum effect. The bound is Student's
at a level so that all tests in 10,000 motions, together, exceed it in a healthy arm with a
probability under 1 % (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from robodyn_ros.description.records import Finding, Level, differs_from_zero, warning
from robodyn_ros.identification import Identification
from robodyn_ros.monitoring.motion_terms import TERMS, MotionTerms
from robodyn_ros.record import Record, Table, quantity
from robodyn_ros.spatial import FloatArray

REFERENCE, WINDOW = 10, 10
"""How many motions a history begins with to compare with, and how many are compared."""

FEWEST = 5
"""Motions of a window in which a joint has to tell something."""

PAYLOAD_WINDOW = 3
"""Motions that must agree on a payload."""

MINIMUM_EFFECT, MINIMUM_OFFSET, MINIMUM_PAYLOAD = 0.1, 0.2, 0.005
"""Least relative change to report: of friction, of its torque, of the moving mass."""

_MOTIONS_TESTED, _FALSE_ALARM_RATE = 10_000, 0.01
_RECENT = 400  # motions that the warm-up is estimated from
# Scatter from motion to motion that is expected, and how many motions that counts for.
_SCATTER, _OFFSET_SCATTER, _PAYLOAD_SCATTER, _COUNT = 0.02, 0.02, 0.002, 6
# Cold drives have so much more friction, as a logarithm, before any motion has shown it.
WARM_UP = 0.4
_TIME_CONSTANTS = (300.0, 600.0, 1200.0, 2400.0, 4800.0)  # s
_TEMPERATURE_SPAN = 30.0  # K
# Largest relative deviation of a term that is used.
_LARGEST_DEVIATION = 0.15
_LEAST_RATIO = 0.05
_HUBER = 3.0
_ANY = 5.0  # wear of a drive that still moves, relative
_LARGEST_SIZE = np.log(1e6)  # of a change, as a logarithm, that is ever found


@dataclass(frozen=True, eq=False, repr=False)
class MotionEntry(Record):
    """
    One motion of a history.

    Attributes
    ----------
    terms : MotionTerms
    source : str
        Where it comes from: the name of a recording.
    stamp : float
        When it began, by its own clock [s].
    since_start : float
        Since the drives were switched on [s]; NaN: unknown.
    temperature : float
        Of the drives [°C]; NaN: unknown.
    """

    terms: MotionTerms
    source: str
    stamp: float
    since_start: float = float('nan')
    temperature: float = float('nan')


@dataclass(frozen=True, eq=False, repr=False)
class Condition(Record):
    """
    What a history says of an arm of n joints.

    Attributes
    ----------
    joint_names : tuple of n str
    findings : tuple of Finding
    friction, friction_deviation : array, shape (n,)
        Of the last motions relative to the identified model's, warm where that can be told; NaN
        where they say nothing.
    since_reference, since_reference_deviation : array, shape (n,)
        The same relative to the first motions of the history; NaN where there are not enough.
    least_change, least_wear : array, shape (n,)
        From which size on that change is found, and told from warm-up; NaN where it never is.
    warm_up, warm_up_deviation : array, shape (n,)
        Friction of cold drives above that of warm ones, relative; NaN: never seen.
    payload, payload_deviation : float
        Mass at the tip beyond the model's, of the last motions [kg].
    motions : int
        How many were compared.
    series : array, shape (K, n)
        Friction of each motion relative to the model's, as it was measured.
    warm_series : array, shape (K, n)
        The same without warm-up; NaN where that is not known.
    """

    joint_names: tuple[str, ...]
    findings: tuple[Finding, ...]
    friction: FloatArray
    friction_deviation: FloatArray
    since_reference: FloatArray
    since_reference_deviation: FloatArray
    least_change: FloatArray
    least_wear: FloatArray
    warm_up: FloatArray
    warm_up_deviation: FloatArray
    payload: float
    payload_deviation: float
    motions: int
    series: FloatArray
    warm_series: FloatArray

    @property
    def verdict(self) -> str:
        """What was found if nothing was, and what could not have been found, and why."""
        if np.isnan(self.least_change).all():
            least = f'{REFERENCE + FEWEST} motions in which it moves enough'
            return f'No change is found before a joint has {least}, {REFERENCE} to compare with.'
        hidden = ', '.join(
            f'{"at all" if np.isnan(size) else _percentage(size)} (joint {name!r})'
            for name, size in zip(self.joint_names, self.least_change)
        )
        said = '' if self.findings else 'No change beyond normal scatter. '
        unseen = f' change of friction is not found below {hidden}.'
        if not (self.least_wear > 1.2 * self.least_change).any():
            return f'{said}A{unseen}'
        compared = np.r_[self.series[:REFERENCE], self.series[-WINDOW:]]
        warm = np.r_[self.warm_series[:REFERENCE], self.warm_series[-WINDOW:]]
        why = 'These motions are colder or warmer than the first'
        if (np.isfinite(compared) & np.isnan(warm)).any():
            why = 'Neither the time since the start (--started) nor a temperature is known'
        least_wear = float(np.nanmin(self.least_wear))
        wear = f'wear of less than {_percentage(least_wear)}' if least_wear < _ANY else 'any wear'
        return f'{said}{why}: warm-up may hide {wear}, and a{unseen}'

    def _tables(self) -> list[Table]:
        names = ('friction', 'since_reference', 'warm_up')
        compared = [(getattr(self, x), getattr(self, f'{x}_deviation')) for x in names]
        rows = [
            [name, *(_percent(value[k], deviation[k]) for value, deviation in compared)]
            for k, name in enumerate(self.joint_names)
        ]
        header = ('joint', 'against the model', 'against the first motions', 'cold against warm')
        return [Table(header, rows, f'friction in the last {self.motions} motions')]


def _percent(value: float, deviation: float) -> str:
    if not np.isfinite(value):
        return 'unknown'
    return f'{round(100 * value) + 0.0:+.0f} ± {max(100 * deviation, 1.0):.0f} %'


def _percentage(size: float) -> str:
    return f'{float(f"{100 * size:.2g}"):.0f} %'


def condition(found: Identification, motions: Sequence[MotionEntry]) -> Condition:
    """
    Return what a history of motions says of an arm.

    Parameters
    ----------
    found : Identification
        The baseline of all the motions.
    motions : sequence of MotionEntry
        In the order in which they happened; the first ``REFERENCE`` are the reference.

    Notes
    -----
    Only the first ``REFERENCE`` and the last 400 motions decide. A joint's window is the last
    ``WINDOW`` motions in which it tells something.
    """
    every = _Series.of(motions, found.model.n)
    decisive = every
    if len(motions) > REFERENCE + _RECENT:
        chosen = np.r_[0:REFERENCE, len(motions) - _RECENT : len(motions)]
        decisive = every.at(chosen)
    names = found.model.joint_names
    warm = _WarmUp.of(decisive)
    results = [_joint(found, decisive, warm, j) for j in range(len(names))]
    findings = [finding for _, found_of in results for finding in found_of]
    mass = _payload(found, decisive)
    findings += mass.findings
    levels = [level for level, _ in results]
    return Condition(
        joint_names=names,
        findings=tuple(findings),
        friction=np.array([level.now for level in levels]),
        friction_deviation=np.array([level.now_deviation for level in levels]),
        since_reference=np.array([level.change for level in levels]),
        since_reference_deviation=np.array([level.deviation for level in levels]),
        least_change=_least([level.margin_without_warm_up for level in levels]),
        least_wear=_least([level.margin for level in levels]),
        warm_up=np.where(warm.is_seen, np.expm1(warm.amplitude), np.nan),
        warm_up_deviation=np.where(warm.is_seen, np.exp(warm.amplitude) * warm.deviation, np.nan),
        payload=mass.now,
        payload_deviation=mass.now_deviation,
        motions=min(WINDOW, len(motions)),
        series=np.expm1(every.friction),
        warm_series=np.expm1(every.friction - warm.share(every)),
    )


def _least(margins: Sequence[float]) -> FloatArray:
    """Return from which relative size on changes of friction are found."""
    sizes = np.log1p(MINIMUM_EFFECT) + np.array(margins)
    return np.expm1(np.where(sizes < _LARGEST_SIZE, sizes, np.nan))


def quantile(joints: int, freedom: float) -> float:
    """
    Return how many standard deviations a change must lie beyond the minimum effect.

    Parameters
    ----------
    joints : int
    freedom : float
        Degrees of freedom of the deviation.
    """
    tests = _MOTIONS_TESTED * (joints * (2 + len(TERMS)) + 2)
    return float(student.isf(_FALSE_ALARM_RATE / tests, freedom))


# --- the history as arrays -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Series:
    """K motions as arrays; friction as a logarithm (K, n), what is not known as NaN."""

    friction: FloatArray
    variance: FloatArray
    terms: FloatArray
    term_deviation: FloatArray
    offset: FloatArray
    offset_deviation: FloatArray
    level: FloatArray
    payload: FloatArray
    payload_deviation: FloatArray
    since_start: FloatArray
    temperature: FloatArray
    session: np.ndarray

    @classmethod
    def of(cls, motions: Sequence[MotionEntry], n: int) -> _Series:
        def stacked(name: str, width: tuple[int, ...] = (n,)) -> FloatArray:
            values = [getattr(each.terms, name) for each in motions]
            return np.array(values, dtype=float).reshape(-1, *width)

        ratio = 1.0 + stacked('friction')
        ratio = np.where(np.isnan(ratio), np.nan, np.maximum(ratio, _LEAST_RATIO))
        since_start = np.array([each.since_start for each in motions], dtype=float)
        stamp = np.array([each.stamp for each in motions], dtype=float)
        begin = stamp - since_start
        # A start: time since then is less than before, or the clocks say that it was another one.
        is_start = np.ones(len(motions), dtype=bool)
        if len(motions):
            apart = np.abs(np.diff(begin)) > 60.0
            is_start[1:] = (np.diff(since_start) < 0) | apart
        return cls(
            friction=np.log(ratio),
            variance=(stacked('friction_deviation') / ratio) ** 2,
            terms=stacked('terms', (n, len(TERMS))),
            term_deviation=stacked('term_deviation', (n, len(TERMS))),
            offset=stacked('offset'),
            offset_deviation=stacked('offset_deviation'),
            level=stacked('level'),
            payload=stacked('payload', (4,)),
            payload_deviation=stacked('payload_deviation', (4,)),
            since_start=since_start,
            temperature=np.array([each.temperature for each in motions], dtype=float),
            session=np.cumsum(is_start),
        )

    def at(self, chosen: np.ndarray) -> _Series:
        return _Series(**{name: values[chosen] for name, values in vars(self).items()})


# --- warm-up -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _WarmUp:
    """
    Friction of cold drives above that of warm ones, as a logarithm.

    Attributes
    ----------
    amplitude, deviation : array, shape (n,)
    is_seen : array of bool, shape (n,)
        Whether sessions show it.
    time_constant : float
        [s]; 0: by temperature.
    warmest : float
        The temperature that counts as warm [°C].
    """

    amplitude: FloatArray
    deviation: FloatArray
    is_seen: np.ndarray
    time_constant: float
    warmest: float

    @classmethod
    def of(cls, series: _Series) -> _WarmUp:
        """Return the amplitude that the differences within sessions show."""
        n = series.friction.shape[1]
        warmest = 0.0
        if np.isfinite(series.temperature).any():
            warmest = float(np.nanmax(series.temperature))
        constants: tuple[float, ...] = _TIME_CONSTANTS
        if np.isfinite(series.temperature).sum() >= np.isfinite(series.since_start).sum() > 0 or (
            not np.isfinite(series.since_start).any()
        ):
            constants = (0.0,)
        best: _WarmUp | None = None
        least = np.inf
        for constant in constants:
            trial = cls(np.zeros(n), np.full(n, WARM_UP), np.zeros(n, bool), constant, warmest)
            fitted, left = trial._fitted(series)
            if best is None or left < least:
                best, least = fitted, left
        assert best is not None
        return best

    def covariate(self, series: _Series) -> FloatArray:
        """Return how cold each motion's drives are, shape (K,), 1 at the start; NaN: unknown."""
        if self.time_constant:
            return np.exp(-np.maximum(series.since_start, 0.0) / self.time_constant)
        return (self.warmest - series.temperature) / _TEMPERATURE_SPAN

    def share(self, series: _Series) -> FloatArray:
        """Return the part of the logarithm of friction that is warm-up, shape (K, n)."""
        return self.covariate(series)[:, None] * self.amplitude

    def _fitted(self, series: _Series) -> tuple[_WarmUp, float]:
        """
        Return the amplitudes, and how much they leave.

        A session's slope is that of friction over the covariate, both less their session's means.
        Sessions are combined by their weights, those that lie apart weighted down (Huber): wear
        that begins within a session is no warm-up.
        """
        covariate = self.covariate(series)
        n = series.friction.shape[1]
        amplitude, deviation = np.zeros(n), np.full(n, WARM_UP)
        is_seen, left = np.zeros(n, dtype=bool), 0.0
        for j in range(n):
            slopes, squares, rest = [], [], []
            y = series.friction[:, j]
            for session in np.unique(series.session):
                mine = (series.session == session) & np.isfinite(y) & np.isfinite(covariate)
                if mine.sum() < 3:
                    continue
                c, v = covariate[mine] - covariate[mine].mean(), y[mine] - y[mine].mean()
                square = float(c @ c)
                if square < 1e-4:
                    continue
                slopes.append(float(c @ v) / square)
                squares.append(square)
                rest.append(v - slopes[-1] * c)
            if not slopes:
                continue
            slope: FloatArray = np.array(slopes)
            weight_of_session: FloatArray = np.array(squares)
            spare = sum(len(each) - 2 for each in rest) + _COUNT
            scatter = (float(sum(each @ each for each in rest)) + _COUNT * _SCATTER**2) / spare
            size = np.sqrt(scatter / weight_of_session)
            middle = _weighted_median(slope, weight_of_session)
            away = np.abs(slope - middle) / (_HUBER * size)
            weight = weight_of_session / scatter / np.maximum(away, 1.0)
            # What is left of each session with the common amplitude.
            precision = float(weight.sum()) + 1.0 / WARM_UP**2
            amplitude[j] = float(weight @ slope) / precision
            deviation[j] = precision**-0.5
            is_seen[j] = deviation[j] < 0.5 * WARM_UP
            excess = np.minimum(np.abs(slope - amplitude[j]) / size, _HUBER) ** 2
            left += (
                float(excess @ np.ones_like(excess))
                + float(sum(each @ each for each in rest)) / _SCATTER**2
            )
        return (
            _WarmUp(amplitude, deviation, is_seen, self.time_constant, self.warmest),
            left,
        )


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, 0.5 * sums[-1])])


# --- one quantity: the last motions against the first ------------------------------------------


@dataclass(frozen=True, eq=False)
class _Change:
    """
    A quantity now, and its change since the reference.

    Attributes
    ----------
    now, now_deviation : float
        Mean of the window, relative to the model; NaN where it says nothing.
    change, deviation : float
        Against the reference; NaN where there is none.
    common : float
        The part of ``deviation`` that comes from warm-up.
    margin, margin_without_warm_up : float
        How far off the change may be; the same if no warm-up were possible.
    now_bound : float
        How far from zero ``now`` lies for certain.
    count : int
        Motions of the window.
    """

    now: float
    now_deviation: float
    change: float
    deviation: float
    common: float
    margin: float
    margin_without_warm_up: float
    now_bound: float
    count: int

    @property
    def bound(self) -> float:
        """How far from zero the change lies for certain, at least; NaN where there is none."""
        return abs(self.change) - self.margin

    @property
    def bound_without_warm_up(self) -> float:
        """The same if no warm-up were possible."""
        return abs(self.change) - self.margin_without_warm_up


_NAN = float('nan')
_NOTHING = _Change(_NAN, _NAN, _NAN, _NAN, _NAN, _NAN, _NAN, 0.0, 0)


def _compared(
    values: FloatArray,
    variance: FloatArray,
    cold: FloatArray,
    warm_deviation: float,
    scatter: float,
    joints: int,
    model_deviation: float = 0.0,
    longest: int = WINDOW,
) -> _Change:
    """
    Return the last motions of a quantity (K,) against the first ones, NaN where it is unknown.

    Parameters
    ----------
    values, variance : array, shape (K,)
        Of each motion, less its warm-up.
    cold : array, shape (K,)
        How cold the drives were; NaN: unknown.
    warm_deviation : float
        Of the warm-up's amplitude.
    scatter : float
        From motion to motion, expected.
    joints : int
    model_deviation : float
        Of what the values are relative to.
    longest : int
        Motions of the window.
    """
    fewest = min(FEWEST, longest)
    known = np.flatnonzero(np.isfinite(values))
    window = known[-longest:]
    if not len(window):
        return _NOTHING
    reference = known[known < REFERENCE]
    groups = [window]
    has_reference = len(reference) >= FEWEST and len(known) >= len(reference) + fewest
    if has_reference:
        window = window[window >= REFERENCE]
        groups = [window, reference]
    rest = np.concatenate([values[each] - values[each].mean() for each in groups])
    freedom = len(rest) - len(groups) + _COUNT
    spread = (float(rest @ rest) + _COUNT * scatter**2) / freedom
    own = [float(variance[each].mean()) for each in groups]
    # The rest holds the noise of each motion already, where there are motions to show it.
    single = [max(spread, each) / len(group) for each, group in zip(own, groups)]
    now = float(values[window].mean())
    now_deviation = float(np.hypot(np.sqrt(single[0]), model_deviation))
    z = quantile(joints, freedom)
    now_bound = max(abs(now) - z * now_deviation, 0.0)
    if not has_reference:
        count = len(window)
        return _Change(now, now_deviation, _NAN, _NAN, _NAN, _NAN, _NAN, now_bound, count)
    apart = float(cold[window].mean() - cold[reference].mean())
    common = (1.0 if np.isnan(apart) else abs(apart)) * warm_deviation
    change = now - float(values[reference].mean())
    alone = float(np.sqrt(sum(single)))
    deviation = float(np.hypot(alone, common))
    margin, without = z * deviation, z * alone
    if len(window) < fewest:
        margin, without, now_bound = _NAN, _NAN, 0.0
    return _Change(
        now, now_deviation, change, deviation, common, margin, without, now_bound, len(window)
    )


def _joint(
    found: Identification, series: _Series, warm: _WarmUp, j: int
) -> tuple[_Change, list[Finding]]:
    """Return friction of a joint, relative, and the findings about it."""
    n, name = found.model.n, found.model.joint_names[j]
    cold = warm.covariate(series)
    is_known = np.isfinite(cold)
    share = np.where(is_known, warm.amplitude[j] * cold, 0.0)
    friction = _compared(
        series.friction[:, j] - share,
        series.variance[:, j],
        cold,
        float(warm.deviation[j]),
        _SCATTER,
        n,
        _model_deviation(found, j),
    )
    terms = []
    for k in range(len(TERMS)):
        values = (1.0 + series.terms[:, j, k]) / np.exp(share)
        telling = series.term_deviation[:, j, k] <= _LARGEST_DEVIATION
        values = np.where(telling, np.log(np.maximum(values, _LEAST_RATIO)), np.nan)
        terms.append(
            _compared(
                values,
                series.term_deviation[:, j, k] ** 2,
                cold,
                float(warm.deviation[j]),
                _SCATTER,
                n,
            )
        )
    findings = list(_friction_findings(name, friction, terms))
    level = float(np.nanmean(series.level[:, j])) if np.isfinite(series.level[:, j]).any() else 0.0
    if level > 0.0:
        offset = _compared(
            series.offset[:, j] / level,
            (series.offset_deviation[:, j] / level) ** 2,
            np.zeros(len(cold)),
            0.0,
            _OFFSET_SCATTER,
            n,
        )
        if offset.bound > MINIMUM_OFFSET:
            unit = 'N' if found.model.dh.prismatic[j] else 'N m'
            value = level * offset.change
            message = (
                f'the offset of joint {name!r} is '
                f'{quantity(abs(value), unit, level * offset.deviation)} '
                f'{"larger" if value > 0 else "smaller"} than in the first motions, '
                f'{_of_motions(offset.count)}'
            )
            findings.append(warning('offset_changed', f'joint {name!r}', _rounded(value), message))
    return _relative(friction), findings


def _friction_findings(name: str, friction: _Change, terms: Sequence[_Change]) -> list[Finding]:
    """Return what is to be said of a joint's friction, in one finding at most."""
    least = np.log1p(MINIMUM_EFFECT)
    named = [friction, *terms]
    words = ('friction', 'viscous friction', 'Coulomb friction', 'load friction')
    certain = [k for k, each in enumerate(named) if each.bound > least]
    if certain:
        # One term alone that changed is named, the others being for certain as they were.
        single = [k for k in certain if k]
        others = [
            each
            for k, each in enumerate(named)
            if k and k not in single and np.isfinite(each.change)
        ]
        is_one = len(single) == 1 and all(
            abs(each.change) + 3.0 * each.deviation < 2.0 * least for each in others
        )
        chosen = single[0] if is_one and others else (0 if 0 in certain else single[0])
        return [_finding('wear', 'warning', name, words[chosen], named[chosen], ', warm-up apart')]
    if friction.bound_without_warm_up > least:
        why = (
            ': neither time since the start nor temperature is known, and warm-up may explain it'
            if np.isnan(friction.deviation) or friction.common >= WARM_UP * 0.999
            else ': these motions are colder or warmer than the first, and warm-up may explain it'
        )
        return [_finding('friction_changed', 'info', name, words[0], friction, why)]
    if np.isnan(friction.change) and friction.now_bound > least:
        of_now = replace(friction, change=friction.now, deviation=friction.now_deviation)
        why = (
            ': no earlier motions to compare with; wear, warm-up, or an identification of other '
            'motions may explain it'
        )
        return [
            _finding(
                'friction_differs', 'info', name, words[0], of_now, why, 'of the identified model'
            )
        ]
    return []


def _finding(
    code: str,
    level: Level,
    name: str,
    what: str,
    found: _Change,
    why: str,
    than: str = 'of the first motions',
) -> Finding:
    size = float(np.expm1(found.change))
    percent, deviation = 100 * size, 100 * (1 + size) * found.deviation
    if code == 'friction_changed':
        why += f', with which the deviation is {deviation:.0f} %'
        deviation = (
            100 * (1 + size) * float(np.sqrt(max(found.deviation**2 - found.common**2, 0.0)))
        )
    message = (
        f'{what} of joint {name!r} is {abs(percent):.0f} ± {max(deviation, 1.0):.0f} % '
        f'{"above" if percent > 0 else "below"} that {than}'
    )
    if than == 'of the first motions' and differs_from_zero(found.now, found.now_deviation):
        now = 100 * float(np.expm1(found.now))
        message += f' ({abs(now):.0f} % {"above" if now > 0 else "below"} the identified model)'
    message += f', {_of_motions(found.count)}{why}'
    return Finding(code, level, f'joint {name!r}', round(percent, 1), message)


def _of_motions(count: int) -> str:
    return 'in 1 motion' if count == 1 else f'in the last {count} motions'


def _relative(found: _Change) -> _Change:
    """Return a change of logarithms as one of the quantity, relative."""
    now, change = float(np.expm1(found.now)), float(np.expm1(found.change))
    return replace(
        found,
        now=now,
        now_deviation=(1.0 + now) * found.now_deviation,
        change=change,
        deviation=(1.0 + change) * found.deviation,
    )


def _model_deviation(found: Identification, j: int) -> float:
    """Return how well Coulomb and viscous friction of the model are known, relative."""
    drive = found.drive_model
    count, names = drive.terms.count, drive.terms.names
    start = drive.base.count + j * count
    chosen = [start + names.index(name) for name in ('Fv', 'Fc')]
    coefficients = drive.coefficients[j, [names.index(name) for name in ('Fv', 'Fc')]]
    size = float(np.abs(coefficients).sum())
    covariance = drive.covariance[np.ix_(chosen, chosen)]
    return float(np.sqrt(max(covariance.sum(), 0.0))) / max(size, 1e-12)


# --- payload -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Mass:
    now: float
    now_deviation: float
    findings: list[Finding]


def _payload(found: Identification, series: _Series) -> _Mass:
    """Return the mass at the tip beyond the model's, and a finding where it changed."""
    moved = float(np.abs(found.model.inertial_parameters[:, 9]).sum())
    whole = max(moved, 1e-9)
    mass, short = (
        _compared(
            series.payload[:, 0] / whole,
            (series.payload_deviation[:, 0] / whole) ** 2,
            np.zeros(len(series.payload)),
            0.0,
            _PAYLOAD_SCATTER,
            found.model.n,
            longest=longest,
        )
        for longest in (WINDOW, PAYLOAD_WINDOW)
    )
    # A gripper is changed from one motion to the next; a load that varies takes more of them.
    if short.bound > MINIMUM_PAYLOAD or short.now_bound > MINIMUM_PAYLOAD >= mass.now_bound:
        mass = short
    now, deviation = whole * mass.now, whole * mass.now_deviation
    change, of_change, than = mass.change, mass.deviation, 'in the first motions'
    bound = mass.bound
    if np.isnan(change):
        change, of_change, than, bound = (
            mass.now,
            mass.now_deviation,
            'the identified model has',
            mass.now_bound,
        )
    if not bound > MINIMUM_PAYLOAD:
        return _Mass(now, deviation, [])
    known = np.flatnonzero(np.isfinite(series.payload[:, 0]))[-mass.count :]
    mean = series.payload[known].mean(axis=0)
    beyond = 'nothing distinguishable from zero beyond the model'
    if differs_from_zero(now, deviation):
        where = ', '.join(f'{x:.0f}' for x in 1e3 * mean[1:] / mean[0])
        beyond = f'{quantity(now, "kg", deviation)} beyond the model, centre at {where} mm'
    kilograms = whole * change
    message = (
        f'the tip carries {quantity(abs(kilograms), "kg", whole * of_change)} '
        f'{"more" if kilograms > 0 else "less"} than {than}, {_of_motions(mass.count)}: a payload '
        f'or a gripper, not friction; {beyond}'
    )
    finding = warning('payload', 'payload', _rounded(kilograms), message)
    return _Mass(now, deviation, [finding])


def _rounded(value: float) -> float:
    return float(f'{value:.4g}')
