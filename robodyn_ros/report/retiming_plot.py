# SPDX-License-Identifier: Apache-2.0
"""A picture of a retimed motion: torque over its limits in time, before and after."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.timed_motion import LIMITS, TimedMotion, TimingLimits, torque_of
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.report.drawing import (
    Paper,
    imported_matplotlib,
    joint_curve,
    legend_above,
    save_picture,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEAST_SHOWN = 1.15  # of the limit
_THINNEST = 2e-3  # bar, of the duration
_PLACES = np.linspace(0.0, 1.0, 4)  # between two knots
_HATCHES = dict(zip(LIMITS, ('', '////', '....'), strict=True))


def save_retiming_plot(
    motion: TimedMotion,
    given: Waypoints | None,
    torque: ReferenceTorque,
    limits: TimingLimits,
    path: Path,
) -> None:
    """
    Draw each joint's torque over its limit in time, before and after, and what binds when.

    Parameters
    ----------
    motion : TimedMotion
    given : Waypoints or None
        The motion before; None: it had no times.
    torque : ReferenceTorque
    limits : TimingLimits
    path : Path
        Its ending says whether a PNG, an SVG or a PDF.
    """

    def draw(figure: Figure) -> None:
        drawn = [('after', motion.waypoints)]
        if given is not None:
            drawn.insert(0, ('before', given))
        ratios = (*(1.0 for _ in drawn), 0.55)
        *curves, binds = figure.subplots(len(ratios), 1, gridspec_kw={'height_ratios': ratios})
        after = curves[-1]
        binds.sharex(after)
        names = motion.joint_names
        for axes, (what, shown) in zip(curves, drawn, strict=True):
            share = torque_of(torque, shown.polynomials.between(_PLACES)) / limits.effort
            _draw(axes, names, shown, share)
            axes.set_title(f'{what}: {shown.duration:.3f} s')
        legend_above(figure, after.get_lines()[: len(names)])
        _draw_binding(binds, motion)
        binds.set_xlabel('time [s]')

    save_picture(draw, path, 11, 8.5)


def _draw(axes: Axes, names: tuple[str, ...], given: Waypoints, share: np.ndarray) -> None:
    time = given.time - given.time[0]
    along = time[:-1, None] + np.diff(time)[:, None] * _PLACES
    for j, name in enumerate(names):
        axes.plot(along.ravel(), share[..., j].ravel(), linewidth=1.1, **joint_curve(j, name))
    for edge in (-1.0, 1.0):
        axes.axhline(edge, color=Paper.MUTED, linewidth=0.9, linestyle='--')
    reach = max(_LEAST_SHOWN, 1.05 * float(np.abs(share).max()))
    axes.set_ylim(-reach, reach)
    axes.set_xlim(0.0, time[-1])
    axes.set_ylabel('torque / limit')


def _draw_binding(axes: Axes, motion: TimedMotion) -> None:
    """Draw a bar where a joint's limit keeps the motion from being faster."""
    names = motion.joint_names
    order = sorted(motion.active_limits, key=lambda each: (names.index(each.joint), each.limit))
    for (joint, limit), bars in groupby(order, key=lambda each: (each.joint, each.limit)):
        j = names.index(joint)
        for begin, end in _joined([(each.begin, each.end) for each in bars], motion.duration):
            axes.barh(
                j,
                end - begin,
                left=begin,
                height=0.8,
                color=joint_curve(j, '')['color'],
                hatch=_HATCHES[limit],
                edgecolor='white',
                linewidth=0.0,
            )
    patches = imported_matplotlib().patches
    met = {each.limit for each in motion.active_limits}
    axes.legend(
        handles=[
            patches.Patch(
                facecolor=Paper.MUTED, hatch=_HATCHES[limit], edgecolor='white', label=limit
            )
            for limit in LIMITS
            if limit in met
        ],
        loc='lower right',
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(LIMITS),
        fontsize='small',
    )
    axes.set_title('limit that binds' if met else 'no limit binds')
    axes.set_yticks(range(len(names)), [f'q{j + 1}' for j in range(len(names))], fontsize='small')
    axes.set_ylim(len(names) - 0.4, -0.6)


def _joined(bars: list[tuple[float, float]], duration: float) -> list[tuple[float, float]]:
    """Return times (begin, end) in order, as one where they meet, none too short to be seen."""
    thinnest = _THINNEST * duration
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(bars):
        end = min(max(end, begin + thinnest), duration)
        begin = max(0.0, min(begin, end - thinnest))
        if joined and begin <= joined[-1][1]:
            begin, end = joined[-1][0], max(end, joined.pop()[1])
        joined.append((begin, end))
    return joined
