# SPDX-License-Identifier: Apache-2.0
"""The page on an arm that ages: a trend for each joint, today against the baseline."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from robodyn_ros.description.records import stated
from robodyn_ros.identification import Identification
from robodyn_ros.monitoring.ageing import REFERENCE, WINDOW, Condition, MotionEntry
from robodyn_ros.monitoring.motions import is_date
from robodyn_ros.report.drawing import limit_ticks
from robodyn_ros.report.svg import Ink, inline_svg
from robodyn_ros.report.template import rendered_page
from robodyn_ros.report.text import true_minus, unbroken
from robodyn_ros.spatial import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 360, 170
_MOST_POINTS = 600
_DAY = 86400.0
_SAME = 0.01  # of friction
_LEAST_SPAN = 12.0  # of a chart [%]: noise of a per cent is not to look like a mountain


def monitor_page(
    found: Identification,
    motions: Sequence[MotionEntry],
    now: Condition,
    notes: Sequence[str] = (),
    *,
    title: str = '',
) -> str:
    """
    Return a page on a history of motions as HTML text that needs nothing else.

    Parameters
    ----------
    found : Identification
        The baseline.
    motions : sequence of MotionEntry
    now : Condition
        What they say.
    notes : sequence of str
        What could not be used.
    title : str
        Of the arm.
    """
    model = found.model
    time, label = _times(motions)
    return rendered_page(
        'monitor.html.jinja',
        title=title or f'{model.base_link} to {model.tip_link}',
        count=len(motions),
        dates=_dates(motions),
        now=now,
        tables=now.tables(),
        warnings=[each for each in now.findings if each.level == 'warning'],
        remarks=[each for each in now.findings if each.level != 'warning'],
        notes=notes,
        reference=min(REFERENCE, len(motions)),
        window=WINDOW,
        has_raw=bool(np.isfinite(_raw(now)).any()),
        has_warm=bool(np.isfinite(now.warm_series).any()),
        figures=[_joint_chart(now, k, time, label) for k in range(model.n)] if motions else [],
        payload=_payload_chart(motions, time, label) if motions else '',
        payload_now=_payload_text(now),
    )


def _payload_text(now: Condition) -> str:
    if math.isnan(now.payload):
        return 'unknown'
    return unbroken(true_minus(stated(now.payload, 'kg', now.payload_deviation)))


def _times(motions: Sequence[MotionEntry]) -> tuple[FloatArray, str]:
    """Return what the motions are drawn over, and what that is."""
    stamps = np.array([each.stamp for each in motions], dtype=float)
    if len(stamps) and all(map(is_date, stamps.tolist())) and np.ptp(stamps) > 0.1 * _DAY:
        return (stamps - stamps[0]) / _DAY, 'days'
    return np.arange(1.0, len(stamps) + 1.0), 'motion'


def _dates(motions: Sequence[MotionEntry]) -> str:
    """Return from when to when, where stamps are dates."""
    stamps = [each.stamp for each in motions if is_date(each.stamp)]
    if not stamps:
        return ''
    first, last = (
        datetime.datetime.fromtimestamp(each, datetime.timezone.utc).strftime('%Y-%m-%d')
        for each in (min(stamps), max(stamps))
    )
    return first if first == last else f'{first} to {last}'


def _some(count: int) -> np.ndarray:
    """Return the numbers of at most so many motions: the first and last, some between."""
    if count <= _MOST_POINTS:
        return np.arange(count)
    between = np.linspace(REFERENCE, count - WINDOW - 1, _MOST_POINTS - REFERENCE - WINDOW)
    return np.r_[0:REFERENCE, between.astype(int), count - WINDOW : count]


def _raw(now: Condition) -> FloatArray:
    """Return the friction as measured (K, n), NaN where warm-up is hardly anything of it."""
    return np.where(np.abs(now.series - now.warm_series) < _SAME, np.nan, now.series)


def _joint_chart(now: Condition, joint: int, time: FloatArray, label: str) -> str:
    """Return a joint's friction against the identified model's over the motions."""
    chosen = _some(len(time))
    x = time[chosen]
    raw, warm = 100 * _raw(now)[chosen, joint], 100 * now.warm_series[chosen, joint]
    is_recent = chosen >= len(time) - now.motions
    latest = np.where(is_recent, np.where(np.isfinite(warm), warm, raw), np.nan)
    today, deviation = 100 * now.friction[joint], 100 * now.friction_deviation[joint]

    def draw(axes: Axes) -> None:
        axes.axhline(0.0, color=Ink.MUTED, linewidth=0.9)
        known = np.append(np.concatenate([raw, warm]), 0.0)
        if np.isfinite(today):
            ends, band = x[is_recent][[0, -1]], today + 2 * deviation * np.array([-1.0, 1.0])
            axes.fill_between(ends, *band, color=Ink.ORANGE, alpha=0.2, linewidth=0)
            axes.plot(ends, [today, today], color=Ink.ORANGE, linewidth=2)
            known = np.append(known, band)
        for values, color, size in (
            (raw, Ink.MUTED, 2.5),
            (warm, Ink.BLUE, 3.5),
            (latest, Ink.ORANGE, 5),
        ):
            if np.isfinite(values).any():
                axes.plot(x, values, 'o', color=color, markersize=size, markeredgewidth=0)
        known = known[np.isfinite(known)]
        middle = 0.5 * (known.max() + known.min())
        half = 0.55 * max(float(np.ptp(known)), _LEAST_SPAN)
        axes.set_ylim(middle - half, middle + half)
        axes.set_xlabel(label)
        axes.set_ylabel('friction [%]')
        limit_ticks(axes.xaxis, 5, integer=True)
        limit_ticks(axes.yaxis, 4)

    text = f'Friction of q{joint + 1} against the identified model over the motions'
    return inline_svg(draw, _WIDTH, _HEIGHT, name=f'trend-{joint}', label=text)


def _payload_chart(motions: Sequence[MotionEntry], time: FloatArray, label: str) -> str:
    """Return the mass at the tip beyond the model's over the motions."""
    chosen = _some(len(motions))
    mass = np.array([motions[k].terms.payload[0] for k in chosen], dtype=float)

    def draw(axes: Axes) -> None:
        axes.axhline(0.0, color=Ink.MUTED, linewidth=0.9)
        axes.plot(time[chosen], mass, 'o', color=Ink.GREEN, markersize=3.5, markeredgewidth=0)
        axes.set_xlabel(label)
        axes.set_ylabel('mass [kg]')
        limit_ticks(axes.xaxis, 5, integer=True)
        limit_ticks(axes.yaxis, 4)

    text = 'Mass at the tip beyond the identified model over the motions'
    return inline_svg(draw, _WIDTH, _HEIGHT, name='payload', label=text)
