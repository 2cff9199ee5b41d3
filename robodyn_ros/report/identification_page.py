# SPDX-License-Identifier: Apache-2.0
"""The page on an identification, through a template that escapes whatever it is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from robodyn_ros.identification import Identification, RecordingErrors
from robodyn_ros.identification.recording import Recording
from robodyn_ros.report.identification_charts import (
    candidate_chart,
    effort_chart,
    residual_chart,
)
from robodyn_ros.report.template import rendered_page


def identification_page(found: Identification, shown: Recording, *, title: str = '') -> str:
    """
    Return a page on an identification as HTML text that needs nothing else.

    Parameters
    ----------
    found : Identification
    shown : Recording
        The motion that measured and predicted efforts are drawn of: one that was held out, where
        there is one.
    title : str
        Of the arm.
    """
    held_out = [each for each in found.errors if each.role == 'validation']
    return rendered_page(
        'identification.html.jinja',
        found=found,
        model=found.model,
        title=title,
        held_out=held_out,
        judged=(held_out or list(found.errors))[-1],
        recordings=[_recording_row(k, each) for k, each in enumerate(found.errors)],
        joints=_joint_rows((held_out or list(found.errors))[-1]),
        warnings=[each for each in found.findings if each.level == 'warning'],
        remarks=[
            each
            for each in found.findings
            if each.level != 'warning' and each.code != 'from_prior'
        ],
        scaled=not np.all(found.effort_scale == 1.0),
        units=['N' if prismatic else 'N m' for prismatic in found.model.dh.prismatic],
        figures=dict(_figures(found, shown)),
    )


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


def _figures(found: Identification, shown: Recording) -> Iterator[tuple[str, str]]:
    recording = shown.of_joints(found.model.joint_names)
    prediction = found.predict(recording)
    for k in range(found.model.n):
        yield f'effort-{k}', effort_chart(prediction, k, f'effort-{k}')
        yield f'residual-{k}', residual_chart(prediction, recording, k, f'residual-{k}')
    if found.candidates:
        terms = [each.terms for each in found.candidates]
        yield (
            'candidates',
            candidate_chart(found.candidates, terms.index(found.terms), 'candidates'),
        )
