# SPDX-License-Identifier: Apache-2.0
"""What an arm did, as a picture: ``plot``."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from robodyn_ros.commands.motion import motion_of_file
from robodyn_ros.commands.options import (
    Answer,
    ChosenArm,
    OutputFile,
    PerJoint,
    command,
    of_joints,
)
from robodyn_ros.dynamics import inverse_dynamics
from robodyn_ros.errors import InsufficientRecording
from robodyn_ros.identification import Recording
from robodyn_ros.identification.effort_examination import given_effort_scale
from robodyn_ros.identification.recording import csv_numbers
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.bag import is_bag
from robodyn_ros.report.drawing import imported_matplotlib
from robodyn_ros.report.session_plot import Session, save_session_plot
from robodyn_ros.spatial import FloatArray


@command(
    'robodyn plot urdf/puma560.urdf motion.csv -o session.png',
    'robodyn plot arm.urdf recording.mcap --cutoff 5 -o session.pdf',
)
def plot(
    arm: ChosenArm,
    recording: Path,
    *,
    output: OutputFile = Path('session.png'),
    topic: str | None = None,
    cutoff: float | None = None,
    effort_scale: PerJoint = (),
) -> Answer:
    """
    Plot a recording: positions, torques and errors of each joint, and their limits.

    RECORDING is a ROS bag or a CSV file: what ``robodyn record`` or ``robodyn simulate`` wrote, or
    one with time, positions under the joints' names and, if known, NAME.torque or
    NAME.effort, and NAME.reference. A trajectory in YAML has positions alone.

    Parameters
    ----------
    output :
        Picture to write: PNG, SVG or PDF, by its extension.
    cutoff : HZ
        Also draw the model's torque, of the motion low-passed so.
    """
    imported_matplotlib()
    model = arm.model
    scale = of_joints(effort_scale, model, '--effort-scale')
    scale = given_effort_scale(model, 1.0 if scale is None else scale)
    session = _session(recording, model, topic, cutoff, scale)
    save_session_plot(session, model, output)
    missing = [name for name in ('torque', 'reference') if getattr(session, name) is None]
    notes = [f'{recording} has no {" and no ".join(missing)}'] if missing else []
    record = {'samples': len(session.time), 'missing': missing, 'output': str(output)}
    return Answer(record, [f'{len(session.time)} samples in {output}'], notes)


def _session(
    path: Path,
    model: RobotModel,
    topic: str | None,
    cutoff: float | None,
    scale: FloatArray,
) -> Session:
    """Return what is in a recording, and what the model says of it where a cutoff is given."""
    motion = motion_of_file(model, path, topic, None)
    time, position, reference, torque = motion.time, motion.q, None, None
    torque_name = 'effort'
    if is_bag(path):
        try:
            found = Recording.from_bag(path, model, topic)
            time, position, torque = found.time, found.position, scale * found.effort
        except InsufficientRecording:
            pass  # positions alone
    elif path.suffix not in ('.yaml', '.yml'):
        reference = _columns(path, model, '.reference')
        torque, torque_name = _columns(path, model, '.torque'), 'commanded torque'
        if torque is None and (effort := _columns(path, model, '.effort')) is not None:
            torque, torque_name = scale * effort, 'effort'
    predicted = None
    if cutoff is not None:
        smooth = motion.low_passed(cutoff)
        rows = inverse_dynamics(model, smooth.q, smooth.qd, smooth.qdd)
        start = motion.time[0] - time[0]
        predicted = np.stack([np.interp(time, motion.time - start, row) for row in rows.T], axis=1)
    return Session(time - time[0], position, reference, torque, torque_name, predicted)


def _columns(path: Path, model: RobotModel, suffix: str) -> FloatArray | None:
    """Return columns of a CSV file that has been read before, NaN for what is no number."""
    with path.open(encoding='utf-8-sig', newline='') as file:
        rows = csv.reader(file)
        names = [name.strip() for name in next(filter(any, rows))]
        wanted = [f'{name}{suffix}' for name in model.joint_names]
        if not set(wanted) <= set(names):
            return None
        return csv_numbers(rows, [names.index(name) for name in wanted])
