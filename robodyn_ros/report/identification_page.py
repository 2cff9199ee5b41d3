# SPDX-License-Identifier: Apache-2.0
"""The page on an identification, from a template that escapes its input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from robodyn_ros.identification import CandidateError, Identification, Prediction, RecordingErrors
from robodyn_ros.identification.recording import Recording
from robodyn_ros.model import RobotModel
from robodyn_ros.report.drawing import limit_ticks
from robodyn_ros.report.svg import Ink, inline_svg
from robodyn_ros.report.template import rendered_page
from robodyn_ros.report.text import number
from robodyn_ros.spatial import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 360, 190
_MOST_POINTS = 700
_BAND = 1.96


def identification_page(
    found: Identification, urdf: RobotModel, shown: Recording, *, title: str = ''
) -> str:
    """
    Return a page on an identification as HTML text that needs nothing else.

    Parameters
    ----------
    found : Identification
    urdf : RobotModel
        The arm before it.
    shown : Recording
        The motion that measured and predicted efforts are drawn of: one that was held out, where
        there is one.
    title : str
        Of the arm.
    """
    return rendered_page(
        'identification.html.jinja', of=identification_values(found, urdf, shown), title=title
    )


def identification_values(
    found: Identification, urdf: RobotModel, shown: Recording
) -> dict[str, Any]:
    """Return what templates show of an identification; see ``identification_page``."""
    held_out = [each for each in found.errors if each.role == 'validation']
    judged = (held_out or list(found.errors))[-1]
    return {
        'found': found,
        'held_out': held_out,
        'judged': judged,
        'recordings': [_recording_row(k, each) for k, each in enumerate(found.errors)],
        'tables': judged.tables(found.model.dh.prismatic),
        'warnings': [each for each in found.findings if each.level == 'warning'],
        'remarks': [
            each
            for each in found.findings
            if each.level != 'warning' and each.code != 'from_prior'
        ],
        'scaled': not np.all(found.effort_scale == 1.0),
        'figures': dict(_figures(found, urdf, shown)),
    }


def _recording_row(index: int, errors: RecordingErrors) -> dict[str, Any]:
    return {
        'name': f'recording {index + 1}, {errors.role}',
        'repeats': errors.repeats_training,
        'relative': [errors.relative(model) for model in ('urdf', 'urdf_friction', 'identified')],
    }


def _figures(
    found: Identification, urdf: RobotModel, shown: Recording
) -> Iterator[tuple[str, str]]:
    recording = shown.of_joints(found.model.joint_names)
    prediction, before = found.predict(recording), found.effort_before(urdf, recording)
    # As torques, whatever the drives' unit, like all errors.
    scale = found.effort_scale
    before = scale * before
    prediction = replace(
        prediction,
        effort=scale * prediction.effort,
        deviation=np.abs(scale) * prediction.deviation,
        measured=scale * prediction.measured,
    )
    for k in range(found.model.n):
        prismatic = bool(found.model.dh.prismatic[k])
        yield (
            f'effort-{k}',
            effort_chart(prediction, before, k, f'effort-{k}', prismatic=prismatic),
        )
        name = f'residual-{k}'
        yield name, residual_chart(prediction, before, recording, k, name, prismatic=prismatic)
    if found.candidates:
        terms = [each.terms for each in found.candidates]
        yield (
            'candidates',
            candidate_chart(found.candidates, terms.index(found.terms), 'candidates'),
        )


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
        limit_ticks(axes.yaxis, 5)
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
        limit_ticks(axes.yaxis, 5)

    label = f'Measured minus predicted torque of q{joint + 1} over its velocity'
    return inline_svg(draw, _WIDTH, _HEIGHT, name=name, label=label)


def candidate_chart(candidates: Sequence[CandidateError], chosen: int, name: str) -> str:
    """Return the cross-validated error of each kind of friction, the chosen one marked."""
    errors = [100 * each.relative_error for each in candidates]

    def draw(axes: Axes) -> None:
        colors = [Ink.ORANGE if k == chosen else Ink.BLUE for k in range(len(errors))]
        rows = np.arange(len(errors))
        axes.scatter(errors, rows, color=colors, s=50, zorder=3)
        for row, error in enumerate(errors):
            axes.annotate(
                number(error, 3), (error, row), (8, 0), textcoords='offset points', va='center'
            )
        axes.set_yticks(rows, [str(each.terms) for each in candidates])
        axes.set_ylim(len(errors) - 0.5, -0.5)
        axes.margins(x=0.15)
        axes.grid(axis='x')
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
