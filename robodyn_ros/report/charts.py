# SPDX-License-Identifier: Apache-2.0
"""The report's charts: matrices, maps, bars of ranges, torques, times; joints are q1 to qn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robodyn_ros.analysis.ranges import Range
from robodyn_ros.analysis.simplification import SimplifiedModel
from robodyn_ros.report.drawing import imported_matplotlib, limit_ticks
from robodyn_ros.report.facts import CallTimes, CouplingMap, JointSpaceCoupling, MotionTorques
from robodyn_ros.report.svg import Ink, inline_svg
from robodyn_ros.report.text import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 360
_LEAST_CELL = 20.0  # that a number fits in [px]
_LEAST_NAMED, _LEAST_LETTER = 18.0, 9.0  # a cell with a name, a letter's size [px]
_MOST_TICKS = 5
_ROOM = 0.5  # to either side of a joint that does not move [rad or m]
_COLORS = 'cividis'
PARTS = {
    'gravity': Ink.BLUE,
    'inertial': Ink.ORANGE,
    'coriolis': Ink.RED,
    'friction': Ink.GREEN,
}
"""Parts of a torque and their colours."""


def coupling_matrix(coupling: JointSpaceCoupling, name: str) -> str:
    """Return the coupling of all pairs: the largest above the diagonal, the mean below."""
    values = np.triu(coupling.largest, 1) + np.tril(coupling.mean, -1)
    return _matrix(values, _short_texts(values), name, 'Coupling of every two joints')


def simplification_matrix(simplified: SimplifiedModel, name: str) -> str:
    """Return the fraction of each inertial coefficient's terms that is kept."""
    n = simplified.n
    fractions = np.full((n, n), np.nan)
    texts = [[''] * n for _ in range(n)]
    for i, j, found in zip(*np.triu_indices(n), simplified.inertia):
        kept = len(found.formula.terms)
        complete = kept + found.dropped_terms
        fractions[i, j] = kept / complete if complete else 0.0
        texts[i][j] = str(kept) if complete else ''
    return _matrix(fractions, texts, name, 'Terms kept of each coefficient of the mass matrix')


def _matrix(values: np.ndarray, texts: list[list[str]], name: str, label: str) -> str:
    """Return a square table of fractions as colours; a joint stands where there is no text."""
    n = len(values)
    cell = min(44.0, 340.0 / n)
    colors = imported_matplotlib().colormaps[_COLORS]
    patches = imported_matplotlib().patches

    def draw(axes: Axes) -> None:
        for (i, j), value in np.ndenumerate(values):
            if not np.isfinite(value) or not texts[i][j]:
                continue
            corner, shade = (j - 0.47, i - 0.47), colors(value)
            axes.add_patch(patches.Rectangle(corner, 0.94, 0.94, facecolor=shade, linewidth=0))
            if cell > _LEAST_CELL:
                color = 'white' if value < 0.5 else 'black'
                axes.text(j, i, texts[i][j], ha='center', va='center', color=color, fontsize=10.5)
        for i in range(n):
            if cell < _LEAST_NAMED and i and (i + 1) % 5:
                continue
            # Beside the row where the diagonal is taken.
            at = (i, i) if not texts[i][i] else (-0.75, i)
            size = min(11.5, max(cell / 2, _LEAST_LETTER))
            axes.text(at[0], at[1], f'q{i + 1}', ha='center', va='center', fontsize=size)
        axes.set_xlim(-0.5 if not texts[0][0] else -1.1, n - 0.5)
        axes.set_ylim(n - 0.5, -0.5)
        axes.set_aspect('equal')
        axes.set_axis_off()

    side = max(cell * n, 150.0)
    return inline_svg(draw, side, side, name=name, label=label)


def _short_texts(values: np.ndarray) -> list[list[str]]:
    """Return fractions as texts of two digits, nothing on the diagonal."""
    texts = [[''] * len(values) for _ in values]
    for (i, j), value in np.ndenumerate(values):
        if i != j:
            texts[i][j] = '0' if value < 0.005 else '1' if value > 0.995 else f'{value:.2f}'[1:]
    return texts


def coupling_map(found: CouplingMap, prismatic: np.ndarray, name: str, largest: float) -> str:
    """Return the coupling of a pair of joints over two others; the scale ends at ``largest``."""
    a, b = found.over

    def draw(axes: Axes) -> None:
        image = axes.imshow(
            found.values,
            origin='lower',
            aspect='auto',
            extent=(*_ends(found.second), *_ends(found.first)),
            cmap=_COLORS,
            vmin=0.0,
            vmax=largest,
            interpolation='none',
        )
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.06, pad=0.03)
        bar.outline.set_visible(False)
        bar.locator = imported_matplotlib().ticker.MaxNLocator(5)
        axes.set_xlabel(f'q{b + 1} [{"m" if prismatic[b] else "rad"}]')
        axes.set_ylabel(f'q{a + 1} [{"m" if prismatic[a] else "rad"}]')

    i, j = found.pair
    label = f'Coupling of q{i + 1} and q{j + 1} over q{a + 1} and q{b + 1}'
    return inline_svg(draw, _WIDTH, 280, name=name, label=label)


def _ends(positions: np.ndarray) -> tuple[float, float]:
    """Return where an axis of positions ends; one that a joint cannot leave has some room."""
    first, last = float(positions[0]), float(positions[-1])
    return (first, last) if last > first else (first - _ROOM, first + _ROOM)


def range_chart(
    ranges: tuple[Range, ...], name: str, *, label: str, joints: list[int], logarithmic: bool
) -> str:
    """Return bars from the smallest to the largest value of some joints, all in one unit."""
    unit = ranges[joints[0]].unit
    lows = [ranges[k].smallest.value for k in joints]
    highs = [ranges[k].largest.value for k in joints]

    def draw(axes: Axes) -> None:
        for row, (low, high) in enumerate(zip(lows, highs, strict=True)):
            axes.plot(
                [low, high],
                [row, row],
                color=Ink.BLUE,
                linewidth=6,
                solid_capstyle='butt',
                zorder=3,
            )
            axes.plot(
                [low, high],
                [row, row],
                '|',
                color=Ink.BLUE,
                markersize=14,
                markeredgewidth=2.2,
                zorder=3,
            )
        if logarithmic:
            _make_logarithmic(axes, min(lows), max(highs))
        else:
            axes.axvline(0, color=Ink.MUTED, linewidth=0.8)
            limit_ticks(axes.xaxis, 5)
        axes.set_yticks(range(len(joints)), [f'q{k + 1}' for k in joints])
        axes.set_ylim(len(joints) - 0.5, -0.5)
        axes.set_xlabel(f'[{unit}]')
        axes.grid(axis='x', linewidth=0.8)
        axes.tick_params(axis='y', length=0)
        axes.spines['left'].set_visible(False)

    return inline_svg(draw, _WIDTH, 70 + 30 * len(joints), name=name, label=label)


def _make_logarithmic(axes: Axes, low: float, high: float) -> None:
    """Give the horizontal axis powers of ten, or ones, twos and fives where it is short."""
    axes.set_xscale('log')
    axes.set_xlim(low / 1.7, high * 1.7)
    subs = (1.0,) if high > 30 * low else (1.0, 2.0, 5.0)
    ticker = imported_matplotlib().ticker
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=subs, numticks=_MOST_TICKS))
    axes.xaxis.set_major_formatter('{x:g}')
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())


def torque_chart(torques: MotionTorques, joint: int, unit: str, name: str) -> str:
    """Return the torque of one joint along the motion, and its parts."""

    def draw(axes: Axes) -> None:
        time = torques.motion.time - torques.motion.time[0]
        for part, color in PARTS.items():
            values = getattr(torques, part)[:, joint]
            if np.any(values):
                axes.plot(time, values, color=color, linewidth=1.6)
        axes.plot(time, torques.total[:, joint], color=Ink.TEXT, linewidth=2.4, zorder=2.5)
        axes.axhline(0, color=Ink.MUTED, linewidth=0.6)
        axes.set_xlabel('time [s]')
        axes.grid(axis='y', linewidth=0.8)
        axes.margins(x=0.01)
        limit_ticks(axes.yaxis, 5)
        axes.yaxis.set_major_formatter('{x:g}')
        axes.set_ylabel(f'[{unit}]')

    label = f'Torque of joint q{joint + 1} along the motion'
    return inline_svg(draw, _WIDTH, 220, name=name, label=label)


def call_time_chart(call_times: CallTimes, name: str) -> str:
    """Return the time of each function, the fastest first, on a logarithmic axis."""
    times = sorted(call_times.microseconds.items(), key=lambda item: item[1])

    def draw(axes: Axes) -> None:
        for row, (function, microseconds) in enumerate(times):
            compiled = function.startswith('compiled ')
            color = Ink.BLUE if compiled else Ink.ORANGE
            axes.plot(microseconds, row, 'o', color=color, markersize=8)
            axes.annotate(
                number(microseconds, 3),
                (microseconds, row),
                (8, 0),
                textcoords='offset points',
                va='center',
                fontsize=10,
            )
        names = [function.removeprefix('compiled ').replace('_', ' ') for function, _ in times]
        axes.set_yticks(range(len(times)), names)
        axes.set_ylim(len(times) - 0.5, -0.5)
        _make_logarithmic(axes, times[0][1], 4 * times[-1][1])
        axes.set_xlabel('microseconds for a call')
        axes.grid(axis='x', linewidth=0.8)
        axes.tick_params(axis='y', length=0)

    return inline_svg(draw, 380, 70 + 24 * len(times), name=name, label='Time of each function')
