# SPDX-License-Identifier: Apache-2.0
"""The page on what efforts are: a picture for each joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from robodyn_ros.identification import EffortFindings, JointEffort, Recording
from robodyn_ros.identification.effort_examination import (
    GRAVITY,
    INERTIAL,
    JointRegression,
    joint_regressions,
)
from robodyn_ros.identification.rows import TrainingData
from robodyn_ros.model import RobotModel
from robodyn_ros.record import table_of
from robodyn_ros.report.drawing import limit_ticks
from robodyn_ros.report.svg import Ink, inline_svg
from robodyn_ros.report.template import rendered_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 360, 240
_MOST_POINTS = 800
_MORE = ('rigid_share', 'residual', 'delay')


def effort_page(
    model: RobotModel, found: EffortFindings, recordings: Sequence[Recording], *, title: str = ''
) -> str:
    """
    Return a page on what the efforts of recordings are, as HTML text that needs nothing else.

    Parameters
    ----------
    model : RobotModel
    found : EffortFindings
        Of these recordings.
    recordings : sequence of Recording
    title : str
        Of the arm.
    """
    rows = TrainingData.of(model, recordings).rows(model, np.ones(model.n))
    regressions = joint_regressions(model, rows)
    figures = {
        j: effort_chart(each, found.joints[j], j, 'N' if model.dh.prismatic[j] else 'N m')
        for j, each in regressions.items()
    }
    return rendered_page(
        'effort.html.jinja',
        found=found,
        figures=figures,
        title=title or f'{model.base_link} to {", ".join(model.tip_links)}',
        tables=[table_of(found.joints, model.dh.prismatic, columns=_MORE)],
    )


def effort_chart(found: JointRegression, verdict: JointEffort, joint: int, unit: str) -> str:
    """Return a joint's effort less friction and offset, over the model's rigid-body torque."""
    chosen = np.linspace(0, len(found.effort) - 1, min(len(found.effort), _MOST_POINTS)).astype(
        int
    )
    rigid = found.parts[chosen][:, [GRAVITY, INERTIAL]].sum(axis=1)
    friction = found.parts[chosen][:, INERTIAL + 1 :] @ found.coefficients[INERTIAL + 1 :]
    effort = found.effort[chosen] - friction
    ends = np.array([rigid.min(), rigid.max()])
    is_scaled = verdict.unit != 'undecided' and verdict.gravity != 'removed'
    found_line = ends / verdict.factor if is_scaled else ends[:0]

    def draw(axes: Axes) -> None:
        axes.plot(rigid, effort, '.', color=Ink.BLUE, markersize=4)
        low, high = _limits(np.concatenate([effort, found_line]), ends)
        equal = np.clip(ends, low, high)
        if equal[0] < equal[1]:
            axes.plot(equal, equal, color=Ink.MUTED, linewidth=0.9, linestyle='--')
        if len(found_line):
            axes.plot(ends, found_line, color=Ink.ORANGE, linewidth=1.2)
        axes.set_ylim(low, high)
        axes.set_xlabel(f'{"force" if unit == "N" else "torque"} of the model [{unit}]')
        axes.set_ylabel(f'effort [{unit}]' if verdict.unit == 'torque' else 'effort as recorded')
        limit_ticks(axes.xaxis, 5)
        limit_ticks(axes.yaxis, 5)

    label = f'Effort of q{joint + 1} without friction, over the torque of the model'
    return inline_svg(draw, _WIDTH, _HEIGHT, name=f'effort-{joint}', label=label)


def _limits(effort: np.ndarray, ends: np.ndarray) -> tuple[float, float]:
    """Return limits that show the efforts, whatever the dashed line does."""
    low, high = float(effort.min()), float(effort.max())
    margin = 0.08 * max(high - low, 1e-9)
    near = max(abs(low), abs(high)) > 0.2 * float(np.abs(ends).max())
    if near:
        low, high = min(low, float(ends.min())), max(high, float(ends.max()))
    return low - margin, high + margin
