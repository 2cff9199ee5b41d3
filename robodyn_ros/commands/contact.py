# SPDX-License-Identifier: Apache-2.0
"""From recordings without contact to the thresholds of contacts: ``contact-thresholds``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import yaml
from numpy.typing import ArrayLike

from robodyn_ros.commands.options import (
    Answer,
    ChosenArm,
    InputFile,
    OutputFile,
    PerJoint,
    command,
    lines_of,
    of_joints,
    written,
)
from robodyn_ros.control.contact_thresholds import contact_thresholds as thresholds_of
from robodyn_ros.control.contact_thresholds import observed_recording
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import InsufficientRecording
from robodyn_ros.identification import Identification
from robodyn_ros.identification.effort_examination import effort_doubts, given_effort_scale
from robodyn_ros.identification.recording import findings_of, recording_of_file
from robodyn_ros.identification.rows import Rows, TrainingData
from robodyn_ros.record import Table, quantity
from robodyn_ros.ros_parameters import checked, parameters_of


@command(
    'robodyn contact-thresholds arm.urdf free.mcap --identified found.yaml -o contact.yaml',
    'robodyn contact-thresholds arm.urdf one.csv two.csv --effort-scale 11.5',
)
def contact_thresholds(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    *,
    topic: str | None = None,
    identified: InputFile | None = None,
    effort_scale: PerJoint = (),
    gain: float = ControlSettings().observer_gain[0],
    output: OutputFile | None = None,
) -> Answer:
    """
    Compute contact thresholds from recordings without contact.

    RECORDINGS are ROS bags with joint states, or CSV files with the columns time, NAME,
    NAME.velocity and NAME.effort, of motions like the later ones, with stops and without contact.
    Prints the external torque of each joint above which a contact is reported.

    Parameters
    ----------
    identified :
        YAML that ``robodyn identify`` wrote for the arm: its model and effort scale.
    gain :
        Gain of the momentum observer [1/s].
    output :
        Parameter file to write, with the gain and the thresholds.
    """
    model, presliding = arm.model, 0.0
    scale: ArrayLike = 1.0
    if identified is not None:
        found = Identification.load(identified)
        model, scale = found.applied_to(model), found.effort_scale
        presliding = found.terms.presliding
    given = of_joints(effort_scale, model, '--effort-scale')
    scale = given_effort_scale(model, scale if given is None else given)
    recorded = [recording_of_file(path, model, topic) for path in recordings]
    observed = [
        observed_recording(model, each, gain, effort_scale=scale, presliding=presliding)
        for each in recorded
    ]
    thresholds = thresholds_of(model, observed)
    moving, stationary = thresholds.moving.tolist(), thresholds.stationary.tolist()
    parameters = {
        'observer_gain': [gain],
        'contact_threshold_moving': [float(f'{x:.4g}') for x in moving],
        'contact_threshold_stationary': [float(f'{x:.4g}') for x in stationary],
    }
    # The node must take what is written.
    checked((p for p in parameters_of('dynamics_node') if p.name in parameters), parameters)
    joints = list(map(repr, model.joint_names))
    table = [
        (joint, *(quantity(x, 'N m or N', is_prismatic=bool(side)) for x in both))
        for joint, side, *both in zip(joints, model.dh.prismatic, moving, stationary, strict=True)
    ]
    lines = [Table(('joint', 'moving', 'stationary'), table).text()]
    rows: list[Rows] = []
    for each in recorded:
        with suppress(InsufficientRecording):  # at rest: it shows what the efforts are to none
            rows += TrainingData.of(model, [each]).rows(model, scale)
    doubts = effort_doubts(model, rows) if rows else ()
    lines += lines_of((*findings_of(recorded), *doubts))
    if output is not None:
        document = {'/**': {'ros__parameters': parameters}}
        text = yaml.safe_dump(document, default_flow_style=None, sort_keys=False)
        head = '# Written by robodyn contact-thresholds, in the order of the chain'
        lines += written(f'{head}: {", ".join(joints)}.\n{text}', output, str(output))
    return Answer({'joint_names': model.joint_names, **parameters}, lines)
