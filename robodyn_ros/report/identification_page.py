# SPDX-License-Identifier: Apache-2.0
"""The page on an identification, through a template that escapes whatever it is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from robodyn_ros.identification import Identification, RecordingErrors
from robodyn_ros.identification.recording import Recording
from robodyn_ros.model import RobotModel
from robodyn_ros.report.identification_charts import (
    candidate_chart,
    effort_chart,
    residual_chart,
)
from robodyn_ros.report.template import rendered_page


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
        'joints': _joint_rows(judged),
        'warnings': [each for each in found.findings if each.level == 'warning'],
        'remarks': [
            each
            for each in found.findings
            if each.level != 'warning' and each.code != 'from_prior'
        ],
        'scaled': not np.all(found.effort_scale == 1.0),
        'units': ['N' if prismatic else 'N m' for prismatic in found.model.dh.prismatic],
        'figures': dict(_figures(found, urdf, shown)),
    }


def _recording_row(number_: int, errors: RecordingErrors) -> dict[str, Any]:
    return {
        'name': f'recording {number_ + 1}, {errors.role}',
        'repeats': errors.repeats_training,
        'relative': [errors.relative(model) for model in ('urdf', 'urdf_friction', 'identified')],
    }


def _joint_rows(errors: RecordingErrors) -> list[dict[str, Any]]:
    columns = zip(
        errors.joint_names,
        errors.torque,
        errors.urdf,
        errors.urdf_friction,
        errors.identified,
        errors.identified_moving,
        strict=True,
    )
    names = ('name', 'torque', 'urdf', 'urdf_friction', 'identified', 'moving')
    return [dict(zip(names, row, strict=True)) for row in columns]


def _figures(
    found: Identification, urdf: RobotModel, shown: Recording
) -> Iterator[tuple[str, str]]:
    recording = shown.of_joints(found.model.joint_names)
    prediction, before = found.predict(recording), found.effort_before(urdf, recording)
    # As torques, whatever the drives' unit, as all errors are told.
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
