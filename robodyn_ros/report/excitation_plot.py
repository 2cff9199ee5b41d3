# SPDX-License-Identifier: Apache-2.0
"""A picture of a motion to identify an arm by: joints within their limits, and the tip's path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robodyn_ros.identification import Box, Excitation, HalfSpace
from robodyn_ros.kinematics import forward_kinematics
from robodyn_ros.model import RobotModel
from robodyn_ros.report.drawing import (
    Paper,
    imported_matplotlib,
    joint_curve,
    legend_above,
    save_picture,
)
from robodyn_ros.spatial import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RATE = 50.0
_ROOM = 1.1  # about what is shown
_LEAST_VIEW = 0.02  # [m]


def save_excitation_plot(
    model: RobotModel,
    found: Excitation,
    path: Path,
    obstacles: tuple[HalfSpace | Box, ...] = (),
) -> None:
    """
    Draw positions and speeds relative to their limits, and the tip's path from above and aside.

    Parameters
    ----------
    model : RobotModel
    found : Excitation
    path : Path
        Its ending says whether a PNG, an SVG or a PDF.
    obstacles : tuple of HalfSpace and Box
        Drawn where they are not turned, and reach into what is shown of the path.
    """
    motion = found.sampled(_RATE)
    limits = found.limits
    middle, half = limits.position.mean(axis=1), np.ptp(limits.position, axis=1) / 2
    tips = [forward_kinematics(model, motion.q, tip)[:, :3, 3] for tip in model.tip_links]

    def draw(figure: Figure) -> None:
        (positions, above), (speeds, aside) = figure.subplots(
            2, 2, gridspec_kw={'width_ratios': (1.4, 1)}
        )
        names = found.joint_names
        _draw_joints(positions, names, motion.time, (motion.q - middle) / half)
        positions.set_ylabel('position: −1 and 1 are its limits')
        _draw_joints(speeds, names, motion.time, motion.qd / limits.velocity)
        speeds.set_ylabel('velocity / its limit')
        speeds.set_xlabel('time [s]')
        legend_above(figure, positions.get_lines()[: len(names)])
        _draw_paths(above, tips, (0, 1), obstacles)
        above.set_title('path of the tip, from above')
        _draw_paths(aside, tips, (0, 2), obstacles)
        aside.set_title('from the side')

    save_picture(draw, path, 12, 8)


def _draw_joints(axes: Axes, names: tuple[str, ...], time: FloatArray, values: FloatArray) -> None:
    for j, column in enumerate(values.T):
        axes.plot(time, column, linewidth=1.0, **joint_curve(j, names[j]))
    for edge in (-1.0, 1.0):
        axes.axhline(edge, color=Paper.MUTED, linewidth=0.8, linestyle=':')
    axes.margins(x=0)
    reach = max(1.0, float(np.abs(values).max())) * _ROOM
    axes.set_ylim(-reach, reach)


def _draw_paths(
    axes: Axes,
    tips: list[FloatArray],
    shown: tuple[int, int],
    obstacles: tuple[HalfSpace | Box, ...],
) -> None:
    """Draw the paths and the base link's origin, and of the obstacles what is in the same view."""
    paths = [tip[:, shown] for tip in tips]
    points = np.vstack([*paths, np.zeros(2)])
    center = (points.min(axis=0) + points.max(axis=0)) / 2
    half = max(float(np.ptp(points, axis=0).max()), _LEAST_VIEW) / 2 * _ROOM
    low, high = center - half, center + half
    is_forbidden = 'obstacle'
    for each in obstacles:
        corners = np.stack(_bounds(each))[:, shown]
        lower, upper = np.maximum(corners[0], low), np.minimum(corners[1], high)
        # A floor is no area from above.
        if not np.isfinite(corners).any() or (upper <= lower).any():
            continue
        axes.add_patch(
            imported_matplotlib().patches.Rectangle(
                lower,
                *(upper - lower),
                facecolor=Paper.RED,
                alpha=0.25,
                linewidth=0,
                label=is_forbidden,
            )
        )
        is_forbidden = '_'  # named once
    for k, flat in enumerate(paths):
        axes.plot(*flat.T, color=Paper.BLUE, linewidth=0.9, label='' if k else 'tip')
    axes.plot(0.0, 0.0, 'o', color=Paper.TEXT, markersize=4, label='base link')
    axes.set_xlabel(f'{"xyz"[shown[0]]} [m]')
    axes.set_ylabel(f'{"xyz"[shown[1]]} [m]')
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect('equal', adjustable='box')
    axes.legend(loc='best', fontsize='small')


def _bounds(obstacle: HalfSpace | Box) -> tuple[FloatArray, FloatArray]:
    """Return the corners (3,), (3,) of what is forbidden; none where it is turned [m]."""
    nothing = np.full(3, np.inf)
    if isinstance(obstacle, HalfSpace):
        normal = np.asarray(obstacle.normal)
        if np.count_nonzero(normal) > 1:
            return nothing, -nothing
        axis, offset = np.abs(normal) > 0, obstacle.offset * normal
        return (
            np.where(axis & (normal < 0), offset, -np.inf),
            np.where(axis & (normal > 0), offset, np.inf),
        )
    pose, lower, upper = (np.asarray(x) for x in (obstacle.pose, obstacle.lower, obstacle.upper))
    if not np.array_equal(pose[:3, :3], np.eye(3)):
        return nothing, -nothing
    return lower + pose[:3, 3], upper + pose[:3, 3]
