# SPDX-License-Identifier: Apache-2.0
"""A picture of what an arm did: positions, torques and errors of each joint, and their limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robodyn_ros.model import RobotModel, force_unit, position_unit
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.report.drawing import Paper, drawable, legend_above, limit_ticks, save_picture
from robodyn_ros.spatial import FloatArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROOM = 0.08  # beside the curves, of their range
_LEAST_RANGE = 1e-3  # of an axis, in its unit
_DID: dict[str, Any] = {'label': 'recorded', 'color': Paper.BLUE, 'linewidth': 1.1}
_ASKED: dict[str, Any] = {
    'label': 'reference, or torque of the model',
    'color': Paper.ORANGE,
    'linewidth': 2.2,
}
_LIMIT: dict[str, Any] = {
    'label': 'limit',
    'color': Paper.RED,
    'linewidth': 1.0,
    'linestyle': '--',
}


@dataclass(frozen=True, eq=False)
class Session:
    """
    What an arm of n joints did at N times, NaN where it is not known.

    Parameters
    ----------
    time : array, shape (N,)
        [s]
    position : array, shape (N, n)
        [rad or m]
    reference : array, shape (N, n), or None
        Where it was to be [rad or m].
    torque : array, shape (N, n), or None
        [N m or N]
    torque_name : str
        What it is.
    model : array, shape (N, n), or None
        What the model says of the torque [N m or N].
    """

    time: FloatArray
    position: FloatArray
    reference: FloatArray | None = None
    torque: FloatArray | None = None
    torque_name: str = 'torque'
    model: FloatArray | None = None


def save_session_plot(session: Session, model: RobotModel, path: Path) -> None:
    """
    Draw a row for each joint: position, torque and error with their limits, as far as known.

    Parameters
    ----------
    session : Session
    model : RobotModel
        Names, units and limits.
    path : Path
        Its ending says whether a PNG, an SVG or a PDF.
    """
    effort, boundless = known_effort_limits(model), np.full(model.n, np.inf)
    lower, upper = model.position_limits.T
    error = None if session.reference is None else 1e3 * (session.reference - session.position)
    shown: list[Any] = [
        ('position', session.reference, session.position, lower, upper, position_unit),
        (session.torque_name, session.model, session.torque, -effort, effort, force_unit),
        ('reference − position', None, error, -boundless, boundless, _thousandth),
    ]
    shown = [each for each in shown if each[2] is not None]

    def draw(figure: Figure) -> None:
        rows = figure.subplots(model.n, len(shown), sharex=True, squeeze=False)
        handles: dict[str, Artist] = {}
        for k, (title, asked, did, low, high, unit) in enumerate(shown):
            for j, axes in enumerate(rows[:, k]):
                if asked is not None:
                    axes.plot(session.time, asked[:, j], **_ASKED)
                axes.plot(session.time, did[:, j], **_DID)
                given = [each[:, j] for each in (asked, did) if each is not None]
                limits = float(low[j]), float(high[j])
                _finish(axes, np.concatenate(given), limits, unit(model.dh.prismatic[j]))
                handles |= {str(line.get_label()): line for line in axes.get_lines()}
            rows[0, k].set_title(f'{title}\n{rows[0, k].get_title("left")}')
            rows[-1, k].set_xlabel('time [s]')
        for axes, name in zip(rows[:, 0], model.joint_names):
            axes.set_ylabel(f'{drawable(name)}\n{axes.get_ylabel()}')
        rows[0, 0].set_xlim(session.time[0], session.time[-1])
        figure.align_ylabels()
        legend = [style['label'] for style in (_DID, _ASKED, _LIMIT)]
        legend_above(figure, [handles[label] for label in legend if label in handles])

    save_picture(draw, path, 4.2 * len(shown), 1.0 + 1.45 * model.n)


def _thousandth(prismatic: bool) -> str:
    return f'm{position_unit(prismatic)}'


def _finish(axes: Axes, values: FloatArray, limits: tuple[float, float], unit: str) -> None:
    """Give axes their range, the limits within it, and their texts."""
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    room = max(_ROOM * (high - low), _LEAST_RANGE)
    axes.set_ylim(low - room, high + room)
    for limit in limits:
        if low - room <= limit <= high + room:
            axes.axhline(limit, **_LIMIT)
    if len(values):
        axes.set_title(
            _extent(round(low, 9), round(high, 9), limits, unit),
            fontsize='small',
            color=Paper.MUTED,
        )
    axes.set_ylabel(f'[{unit}]')
    axes.grid(axis='y')
    limit_ticks(axes.yaxis, 4)


def _extent(low: float, high: float, limits: tuple[float, float], unit: str) -> str:
    """Return where values were, and between what they may be, as text."""
    if not np.isfinite(limits).all():
        return f'at most {max(-low, high):.3g} {unit}'
    if limits[0] == -limits[1]:
        return f'at most {max(-low, high):.3g} of {limits[1]:.4g} {unit}'
    return f'{low:.3g} to {high:.3g} of {limits[0]:.4g} to {limits[1]:.4g} {unit}'
