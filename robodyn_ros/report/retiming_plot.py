# SPDX-License-Identifier: Apache-2.0
"""A picture of a retimed motion: torque over its limits along the path, before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.timed_motion import LIMITS, Cubics, TimedMotion, TimingLimits, torque_of
from robodyn_ros.report.drawing import imported_matplotlib
from robodyn_ros.spatial import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MUTED = '#555555'
# Of Okabe and Ito, which can be told apart; joints beyond the eighth begin anew.
_COLORS = (
    '#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#b8a800',
)  # fmt: skip
_LEAST_SHOWN = 1.15  # of the limit


def save_retiming_plot(
    motion: TimedMotion,
    given: Cubics,
    torque: ReferenceTorque,
    limits: TimingLimits,
    path: Path,
) -> None:
    """
    Draw each joint's torque over its limit along the path, before and after, and what binds where.

    Parameters
    ----------
    motion : TimedMotion
    given : Cubics
        The motion before.
    torque : ReferenceTorque
    limits : TimingLimits
    path : Path
        Its ending says whether a PNG, an SVG or a PDF.
    """
    figure = imported_matplotlib().figure.Figure(
        figsize=(11, 8.5), dpi=120, facecolor='white', layout='constrained'
    )
    before, after, binds = figure.subplots(
        3, 1, sharex=True, gridspec_kw={'height_ratios': (1.0, 1.0, 0.55)}
    )
    _draw(before, given, _progress(given, motion), torque, limits, 'before', motion)
    cubics = Cubics(motion.time, motion.position, motion.velocity)
    _draw(after, cubics, motion.progress, torque, limits, 'after', motion)
    lines, names = after.get_legend_handles_labels()
    figure.legend(
        lines, names, loc='outside upper center', ncols=min(len(names), 8), fontsize='small'
    )
    _draw_binding(binds, motion)
    binds.set_xlabel('part of the path')
    binds.set_xlim(0.0, 1.0)
    figure.savefig(path)


def _progress(given: Cubics, motion: TimedMotion) -> FloatArray:
    """Return the part of the path that is done at the knots of the given motion."""
    # Both go along the same path; the nearest place of the motion that is not before the last one.
    result, since = np.zeros(len(given.time)), 0
    for k, position in enumerate(given.position):
        distances = np.linalg.norm(motion.position[since:] - position, axis=1)
        near = distances <= distances.min() + 1e-3
        since += int(near.argmax())
        result[k] = motion.progress[since]
    return result


def _draw(
    axes: Axes,
    cubics: Cubics,
    progress: FloatArray,
    torque: ReferenceTorque,
    limits: TimingLimits,
    what: str,
    motion: TimedMotion,
) -> None:
    places = np.linspace(0.0, 1.0, 4)
    share = torque_of(torque, cubics.states(places)) / limits.effort
    along = progress[:-1, None] + np.diff(progress)[:, None] * places
    for j, name in enumerate(motion.joint_names):
        color = _COLORS[j % len(_COLORS)]
        axes.plot(along.ravel(), share[..., j].ravel(), color=color, linewidth=1.1, label=name)
    for edge in (-1.0, 1.0):
        axes.axhline(edge, color=_MUTED, linewidth=0.9, linestyle='--')
    reach = max(_LEAST_SHOWN, 1.05 * float(np.abs(share).max()))
    axes.set_ylim(-reach, reach)
    axes.set_ylabel('torque / limit')
    axes.set_title(f'{what}: {cubics.duration:.3f} s', loc='left', fontsize='medium')


def _draw_binding(axes: Axes, motion: TimedMotion) -> None:
    """Draw a bar where a joint's limit keeps the motion from being faster."""
    names = motion.joint_names
    hatches = dict(zip(LIMITS, ('', '////', '....'), strict=True))
    seen: set[str] = set()
    for each in motion.binding:
        begin, end = np.interp([each.begin, each.end], motion.time, motion.progress)
        j = names.index(each.joint)
        axes.barh(
            j,
            max(end - begin, 2e-3),
            left=begin,
            height=0.8,
            color=_COLORS[j % len(_COLORS)],
            hatch=hatches[each.limit],
            edgecolor='white',
            linewidth=0.0,
        )
        seen.add(each.limit)
    for limit in LIMITS:
        if limit in seen:
            axes.bar(0, 0, color=_MUTED, hatch=hatches[limit], edgecolor='white', label=limit)
    if seen:
        axes.legend(
            loc='lower right',
            bbox_to_anchor=(1.0, 1.0),
            ncols=3,
            fontsize='small',
            frameon=False,
        )
    axes.set_title('limit that binds', loc='left', fontsize='medium')
    axes.set_yticks(range(len(names)), names, fontsize='small')
    axes.set_ylim(len(names) - 0.4, -0.6)
