# SPDX-License-Identifier: Apache-2.0
"""The charts of an identification: what was measured beside what was predicted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from robodyn_ros.identification import CandidateError, Prediction
from robodyn_ros.identification.recording import Recording
from robodyn_ros.report.svg import Ink, inline_svg
from robodyn_ros.spatial import FloatArray

_WIDTH, _HEIGHT = 360, 190
_MOST_POINTS = 700
_BAND = 1.96


def effort_chart(
    prediction: Prediction, before: FloatArray, joint: int, name: str, *, prismatic: bool
) -> str:
    """
    Return measured and predicted torque of a joint over time, with the 95 % band.

    ``before`` (K, n) is what the URDF predicts; both, as the prediction, [N m or N].
    """
    chosen = _some(len(prediction.time))
    time = prediction.time[chosen] - prediction.time[0]
    effort = prediction.effort[chosen, joint]
    half = _BAND * prediction.deviation[chosen, joint]

    def draw(axes: Axes) -> None:
        axes.fill_between(time, effort - half, effort + half, color=Ink.GRID, linewidth=0)
        axes.plot(time, before[chosen, joint], color=Ink.MUTED, linewidth=1.0)
        axes.plot(time, prediction.measured[chosen, joint], color=Ink.ORANGE, linewidth=2.6)
        axes.plot(time, effort, color=Ink.BLUE, linewidth=1.1)
        axes.set_xlabel('time [s]')
        axes.set_ylabel(_torque_label(prismatic))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0)

    label = f'Measured and predicted torque of q{joint + 1}'
    return inline_svg(draw, _WIDTH, _HEIGHT, name=name, label=label)


def residual_chart(
    prediction: Prediction,
    before: FloatArray,
    recording: Recording,
    joint: int,
    name: str,
    *,
    prismatic: bool,
) -> str:
    """Return measured minus predicted torque of a joint over its velocity, before and after."""
    chosen = _some(len(prediction.time))
    time = prediction.time[chosen]
    position = recording.position[:, joint]
    velocity = (
        np.gradient(position, recording.time)
        if recording.velocity is None
        else recording.velocity[:, joint]
    )
    velocity = np.interp(time, recording.time, velocity)
    measured = prediction.measured[chosen, joint]
    left = [measured - effort[chosen, joint] for effort in (before, prediction.effort)]

    def draw(axes: Axes) -> None:
        axes.axhline(0.0, color=Ink.MUTED, linewidth=0.8)
        for residual, color in zip(left, (Ink.MUTED, Ink.BLUE), strict=True):
            axes.plot(velocity, residual, '.', color=color, markersize=2.5)
        axes.set_ylabel(_torque_label(prismatic))
        axes.set_xlabel(f'velocity [{"m/s" if prismatic else "rad/s"}]')
        axes.yaxis.set_major_locator(MaxNLocator(5))

    label = f'Measured minus predicted torque of q{joint + 1} over its velocity'
    return inline_svg(draw, _WIDTH, _HEIGHT, name=name, label=label)


def candidate_chart(candidates: Sequence[CandidateError], chosen: int, name: str) -> str:
    """Return the cross-validated error of each kind of friction as bars, the chosen one marked."""
    errors = [100 * each.relative_error for each in candidates]

    def draw(axes: Axes) -> None:
        colors = [Ink.ORANGE if k == chosen else Ink.BLUE for k in range(len(errors))]
        rows = np.arange(len(errors))
        axes.barh(rows, errors, color=colors, height=0.7)
        axes.set_yticks(rows, [str(each.terms) for each in candidates])
        axes.invert_yaxis()
        axes.set_xlabel('cross-validated error [%]')

    height = 22 * len(errors) + 50
    return inline_svg(
        draw, 640, height, name=name, label='Cross-validated error of each kind of friction'
    )


def _torque_label(prismatic: bool) -> str:
    return 'force [N]' if prismatic else 'torque [N m]'


def _some(count: int) -> np.ndarray:
    """Return the numbers of at most so many samples, evenly spread."""
    return np.linspace(0, count - 1, min(count, _MOST_POINTS)).astype(int)
