# SPDX-License-Identifier: Apache-2.0
"""Motions timed anew, as fast as the drives allow: ``retime``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from robodyn_ros.commands.drive_limits import ROTORS, limits_of, refuse_unknown
from robodyn_ros.commands.motion import (
    beside_file,
    columns_of,
    refuse_options_of_samples,
    rows_of,
)
from robodyn_ros.commands.options import (
    Answer,
    ArmWithRotors,
    OutputFile,
    OutputText,
    PerJoint,
    command,
    of_joints,
)
from robodyn_ros.control.feedforward_efforts import FeedforwardSettings, with_feedforward_efforts
from robodyn_ros.control.joint_path import Corners
from robodyn_ros.control.model_torque import ReferenceTorque, RigidBodyTorque
from robodyn_ros.control.motion_file import path_of_file
from robodyn_ros.control.retimed_trajectory import Retiming, knot_bound
from robodyn_ros.control.timed_motion import TimedMotion, TimingLimits
from robodyn_ros.errors import printable
from robodyn_ros.identification import Identification
from robodyn_ros.model import Payload
from robodyn_ros.motions import table_as_csv
from robodyn_ros.motions.trajectory_yaml import trajectory_as_yaml
from robodyn_ros.record import Record, table_of
from robodyn_ros.report.drawing import imported_matplotlib
from robodyn_ros.report.retiming_plot import save_retiming_plot


@dataclass(frozen=True, eq=False, repr=False)
class _RetimedJoint(Record):
    """
    What a motion takes of a joint.

    Attributes
    ----------
    joint : str
    largest_effort : float
        [N m or N]
    effort_share : float
        It in parts of its limit.
    rms : float
        [N m or N]
    at_limits : mapping of str to float
        How long each of its limits keeps the motion from being faster [s].
    """

    joint: str
    largest_effort: float
    effort_share: float
    rms: float
    at_limits: Mapping[str, float]

    _keys = {'joint': 'name'}
    _columns = ('joint', 'largest_effort', 'of_its_limit', 'rms', 'limits_that_bind')

    @property
    def of_its_limit(self) -> str:
        return f'{self.effort_share:.0%}' if self.effort_share else ''

    @property
    def limits_that_bind(self) -> str:
        return ', '.join(f'{limit} for {time:.3g} s' for limit, time in self.at_limits.items())


@command(
    'robodyn retime arm.urdf trajectory.yaml -o fast.yaml --plot fast.png',
    'robodyn retime arm.urdf motion.csv -o fast.csv --margin 0.05 --jerk-limit 500',
    'robodyn retime arm.urdf corners.yaml -o fast.yaml --corners blend --tolerance 0.05',
    'robodyn retime arm.urdf ends.yaml -o fast.yaml --corners goal --acceleration-limit 5',
)
def retime(
    arm: ArmWithRotors,
    motion: Path,
    *,
    output: OutputText | None = None,
    margin: float = 0.0,
    effort_limit: PerJoint = (),
    rms_limit: PerJoint = (),
    velocity_limit: PerJoint = (),
    acceleration_limit: PerJoint = (),
    jerk_limit: PerJoint = (),
    corners: Corners = 'spline',
    tolerance: float = 0.0,
    payload: float | None = None,
    identified: Path | None = None,
    no_effort: bool = False,
    plot: OutputFile | None = None,
    topic: str | None = None,
    cutoff: float | None = None,
) -> Answer:
    """
    Retime a motion, as fast as the drives allow.

    MOTION is the YAML of a trajectory_msgs/JointTrajectory, with times or without, or of a message
    of MoveIt that holds one; or a CSV file or a ROS bag. Its path stays; the time along it becomes
    the shortest within the limits of effort and velocity, with the model's friction. Of a CSV file
    or a bag it is the path of the positions, from rest to rest; where they were measured, --cutoff
    keeps their noise out of it. A LIMIT is one number for all joints, an option for each joint in
    the order of the chain, or JOINT=LIMIT.

    Parameters
    ----------
    output :
        File to write: CSV if it ends in .csv, else a JointTrajectory as YAML; -: YAML on
        standard output.
    margin :
        Fraction of the effort limits that is left to a controller.
    rms_limit : LIMIT
        Limit of the effort's root mean square over the motion [N m or N].
    velocity_limit : LIMIT
        Instead of the URDF's [rad/s or m/s]; one for all only lowers them.
    acceleration_limit : LIMIT
        Limit of the acceleration [rad/s² or m/s²].
    jerk_limit : LIMIT
        Limit of the jerk [rad/s³ or m/s³].
    corners :
        Path between points without velocities: a spline, lines with stops, or lines with rounded
        corners. With goal there is no path, only the first and the last point (Ruckig).
    tolerance : DISTANCE
        Largest distance of a round corner from its point [rad or m].
    payload : MASS
        Mass of the payload at the tip [kg].
    identified :
        YAML that ``robodyn identify`` wrote for the arm.
    no_effort :
        Write no effort into the YAML: controllers that command positions alone refuse it.
    plot :
        Plot to write: torque relative to its limits over time, before and after.
    """
    if plot is not None:
        imported_matplotlib()  # its absence is said before the work
    model = arm.model
    if identified is not None:
        model = Identification.load(identified).applied_to(model)
    effort = limits_of(effort_limit, model, '--effort-limit', model.effort_limits)
    acceleration = of_joints(acceleration_limit, model, '--acceleration-limit')
    if acceleration is None:
        refuse_unknown(model, effort, otherwise='--acceleration-limit')
    if payload is not None:
        model = model.with_payload(Payload(payload))
    torque = ReferenceTorque.of(model, torque=RigidBodyTorque('newton_euler'))
    limits = TimingLimits.of(
        model,
        effort,
        limits_of(velocity_limit, model, '--velocity-limit', model.velocity_limits),
        acceleration,
        margin,
        of_joints(jerk_limit, model, '--jerk-limit'),
        of_joints(rms_limit, model, '--rms-limit'),
    )
    retiming = Retiming(limits, corners, tolerance)
    refuse_options_of_samples(motion, topic, cutoff)
    given, is_timed = path_of_file(
        motion, model, topic=topic, cutoff=cutoff, has_waypoints=corners != 'spline'
    )
    found = retiming.of(given, torque)
    if others := [name for name in given.joint_names if name not in model.joint_names]:
        note = f'Note: left out: {", ".join(others)}, which move nothing of the model'
        click.echo(printable(note), err=True)
    fast = found.motion
    if not model.rotor_inertia.any() and any(
        each.limit == 'effort' for each in fast.active_limits
    ):
        click.echo(f'Note: {ROTORS}', err=True)
    if output is not None and output.suffix == '.csv':
        names = columns_of(model, '', '.velocity', '.acceleration', '.torque')
        columns = (fast.position, fast.velocity, fast.acceleration, fast.effort)
        text, points = table_as_csv(names, fast.time, *columns), len(fast.time)
    else:
        settings = FeedforwardSettings(limits.effort, knot_bound(fast, limits), np.ones(model.n))
        rows = rows_of(with_feedforward_efforts(found.trajectory, torque, settings).trajectory)
        if no_effort:
            rows = rows._replace(effort=[()] * len(rows.times))
        text, points = trajectory_as_yaml(rows), len(rows.times)
    joints = _joints(fast, limits)
    before, cost = found.given.duration if is_timed else None, fast.smoothing_cost
    lines = [
        f'no times before, {fast.duration:.4g} s after'
        if before is None
        else f'{before:.4g} s before, {fast.duration:.4g} s after: '
        f'{fast.duration / before:.3g} of the time',
        *([f'jerk limits cost {cost:.3g} s of it'] if cost else []),
        *([f'slowed to {fast.slowed}'] if fast.slowed else []),
        table_of(joints, model.dh.prismatic).text(),
        *(
            f'{each.begin:7.3f} to {each.end:.3f} s: {each.limit} of {each.joint!r}'
            for each in fast.active_limits
        ),
    ]
    record = {
        'duration_before': before,
        'duration': fast.duration,
        'smoothing_cost': cost,
        'slowed': fast.slowed,
        'joints': joints,
        'binding': [each._asdict() for each in fast.active_limits],
    }
    if plot is not None:
        save_retiming_plot(fast, found.given if is_timed else None, torque, limits, plot)
        lines.append(str(plot))
    return beside_file(record, lines, text, output, f'{points} points in {output}')


def _joints(motion: TimedMotion, limits: TimingLimits) -> list[_RetimedJoint]:
    at_limits: dict[str, dict[str, float]] = {name: {} for name in motion.joint_names}
    for each in motion.active_limits:
        of_joint = at_limits[each.joint]
        of_joint[each.limit] = of_joint.get(each.limit, 0.0) + each.end - each.begin
    peaks = np.abs(motion.effort).max(axis=0)
    columns = (peaks, peaks / limits.effort, motion.rms_effort)
    return [
        _RetimedJoint(name, peak, share, rms, at_limits[name])
        for name, peak, share, rms in zip(motion.joint_names, *(each.tolist() for each in columns))
    ]
