# SPDX-License-Identifier: Apache-2.0
"""Motions timed anew, as fast as the drives allow: ``retime``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from robodyn_ros.commands.motion import motion_of_file, rows_of
from robodyn_ros.commands.options import (
    OUTPUT_FILE,
    ChosenArm,
    UserPath,
    arm_options,
    cutoff_option,
    examples,
    in_a_folder_that_is_there,
    motion_topic_option,
    one_or_each,
    rotor_inertia_option,
)
from robodyn_ros.control.feedforward_efforts import FeedforwardSettings, with_feedforward_efforts
from robodyn_ros.control.joint_path import CORNERS, Corners
from robodyn_ros.control.model_torque import ReferenceTorque, RigidBodyTorque
from robodyn_ros.control.retimed_trajectory import RetimedTrajectory, Retiming, knot_bound
from robodyn_ros.control.timed_motion import LIMITS, TimingLimits, positive_limits
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.identification import Identification
from robodyn_ros.model import Payload, RobotModel
from robodyn_ros.motions import MotionSamples, table_as_csv
from robodyn_ros.motions.trajectory_yaml import trajectory_as_yaml, trajectory_of_yaml
from robodyn_ros.report.drawing import imported_matplotlib
from robodyn_ros.report.retiming_plot import save_retiming_plot
from robodyn_ros.spatial import FloatArray


def _limit_option(
    name: str, help_text: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return an option of one number, or of one for each joint."""
    return click.option(
        name, type=float, multiple=True, callback=one_or_each, metavar='LIMIT', help=help_text
    )


@click.command(
    epilog=examples(
        'robodyn retime arm.urdf trajectory.yaml -o fast.yaml --plot fast.png',
        'robodyn retime arm.urdf motion.csv -o fast.csv --margin 0.05 --jerk-limit 500',
        'robodyn retime arm.urdf corners.yaml -o fast.yaml --corners blend --tolerance 0.05',
        'robodyn retime arm.urdf ends.yaml -o fast.yaml --corners goal --acceleration-limit 5',
    )
)
@arm_options
@rotor_inertia_option
@click.argument('motion', type=UserPath())
@click.option(
    '-o',
    '--output',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    help='File to write: CSV where it ends so, else a JointTrajectory as YAML.',
)
@click.option(
    '--margin',
    type=float,
    default=0.0,
    show_default=True,
    help='Part of the effort limits that is left to a controller.',
)
@_limit_option('--effort-limit', "Instead of the URDF's [N m or N].")
@_limit_option('--rms-limit', 'Of the effort over the motion [N m or N].')
@_limit_option('--velocity-limit', "Instead of the URDF's [rad/s or m/s].")
@_limit_option('--acceleration-limit', '[rad/s² or m/s²]')
@_limit_option('--jerk-limit', '[rad/s³ or m/s³]')
@click.option(
    '--corners',
    type=click.Choice(CORNERS),
    default=CORNERS[0],
    show_default=True,
    help='Where no velocities are given: a spline through the points, lines with stops, or lines '
    'with round corners. With goal there is no path, only the first and the last point (Ruckig).',
)
@click.option(
    '--tolerance',
    type=float,
    default=0.0,
    metavar='DISTANCE',
    help='By which a round corner may pass its point [rad or m].',
)
@click.option('--payload', type=float, metavar='MASS', help='What the tip carries [kg].')
@click.option(
    '--identified', type=UserPath(), help='YAML that ``robodyn identify`` wrote for the arm.'
)
@click.option(
    '--plot',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    help='Picture to write: torque over its limits along the path, before and after.',
)
@motion_topic_option
@cutoff_option
def retime(
    arm: ChosenArm,
    motion: Path,
    output: Path | None,
    margin: float,
    effort_limit: float | list[float] | None,
    rms_limit: float | list[float] | None,
    velocity_limit: float | list[float] | None,
    acceleration_limit: float | list[float] | None,
    jerk_limit: float | list[float] | None,
    corners: Corners,
    tolerance: float,
    payload: float | None,
    identified: Path | None,
    plot: Path | None,
    topic: str | None,
    cutoff: float | None,
    as_json: bool,
) -> None:
    """
    Time a motion anew, as fast as the drives allow.

    MOTION is the YAML of a trajectory_msgs/JointTrajectory, or a CSV file or a ROS bag. Its path
    stays; the time along it becomes the shortest within the limits of effort and velocity, with
    the model's friction. Of a CSV file or a bag it is the path of the positions, from rest to
    rest; where they were measured, --cutoff keeps their noise out of it. Limits are one number, or
    an option for each joint.
    """
    if plot is not None:
        imported_matplotlib()  # its absence is said before the work
    model = arm.model
    if identified is not None:
        model = Identification.load(identified).applied_to(model)
    if payload is not None:
        model = model.with_payload(Payload(payload))
    torque = ReferenceTorque.of(model, torque=RigidBodyTorque('newton_euler'))
    limits = TimingLimits.of(model, effort_limit, velocity_limit, acceleration_limit, margin)
    retiming = Retiming(
        limits,
        positive_limits('jerk_limits', jerk_limit, model.n),
        positive_limits('rms_effort_limits', rms_limit, model.n),
        corners,
        tolerance,
    )
    given = _given(model, motion, topic, cutoff, has_waypoints=corners != 'spline')
    found = retiming.of(given, torque)
    rows = None
    if output is None or output.suffix != '.csv':
        bound = knot_bound(found.motion, limits)
        settings = FeedforwardSettings(limits.effort, bound, np.ones(model.n))
        filled = with_feedforward_efforts(found.trajectory, torque, settings)
        rows = rows_of(filled.trajectory)
    if output is not None:
        text = _as_csv(found) if rows is None else trajectory_as_yaml(rows)
        output.write_text(text, encoding='utf-8')
    if plot is not None:
        save_retiming_plot(found.motion, found.given, torque, limits, plot)
    if as_json:
        click.echo(json.dumps(_record(found, limits), indent=2, allow_nan=False))
        return
    for line in _words(model, found, limits):
        click.echo(line)
    if output is not None:
        points = len(found.motion.time) if rows is None else len(rows.times)
        click.echo(f'{points} points in {output}')
    if plot is not None:
        click.echo(plot)


def _given(
    model: RobotModel, path: Path, topic: str | None, cutoff: float | None, *, has_waypoints: bool
) -> Trajectory:
    """Return the motion in a file: of samples no more than a trajectory holds, rest to rest."""
    if path.suffix in ('.yaml', '.yml'):
        if topic is not None or cutoff is not None:
            raise click.UsageError('--topic and --cutoff are for measured motions')
        return Trajectory.from_points(*trajectory_of_yaml(path))
    samples = motion_of_file(model, path, topic, cutoff)
    # Measured velocities are not quite those of the positions, and at rest have any direction.
    samples = MotionSamples.from_samples(samples.time, samples.q)
    count = len(samples.time)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(int))
    velocities = samples.qd[chosen]
    velocities[[0, -1]] = 0.0
    if has_waypoints:
        velocities = np.empty((len(chosen), 0))
    times = samples.time[chosen] - samples.time[0]
    nothing: list[tuple[float, ...]] = [()] * len(chosen)
    return Trajectory.from_points(
        model.joint_names,
        times.tolist(),
        samples.q[chosen].tolist(),
        velocities.tolist(),
        nothing,
        nothing,
    )


def _as_csv(found: RetimedTrajectory) -> str:
    motion = found.motion
    names = [
        f'{name}{suffix}'
        for suffix in ('', '.velocity', '.acceleration', '.torque')
        for name in motion.joint_names
    ]
    tables = motion.position, motion.velocity, motion.acceleration, motion.effort
    return table_as_csv(names, motion.time, *tables)


def _shares(found: RetimedTrajectory, limits: TimingLimits) -> FloatArray:
    """Return the largest effort of each joint in parts of its limit, (n,)."""
    return np.abs(found.motion.effort).max(axis=0) / limits.effort


def _record(found: RetimedTrajectory, limits: TimingLimits) -> dict[str, Any]:
    motion = found.motion
    return {
        'duration_before': found.given.duration,
        'duration': motion.duration,
        'smoothing_cost': motion.smoothing_cost,
        'joints': [
            {'name': name, 'largest_effort': float(peak), 'effort_share': float(share), 'rms': rms}
            for name, peak, share, rms in zip(
                motion.joint_names,
                np.abs(motion.effort).max(axis=0),
                _shares(found, limits),
                motion.rms_effort.tolist(),
                strict=True,
            )
        ],
        'binding': [each._asdict() for each in motion.binding],
    }


def _words(model: RobotModel, found: RetimedTrajectory, limits: TimingLimits) -> Iterator[str]:
    motion, before = found.motion, found.given.duration
    yield (
        f'{before:.4g} s before, {motion.duration:.4g} s after: '
        f'{motion.duration / before:.3g} of the time'
    )
    if motion.smoothing_cost:
        yield f'jerk limits cost {motion.smoothing_cost:.3g} s of it'
    bound = {name: dict.fromkeys(LIMITS, 0.0) for name in motion.joint_names}
    for each in motion.binding:
        bound[each.joint][each.limit] += each.end - each.begin
    for name, peak, share, rms, slides in zip(
        motion.joint_names,
        np.abs(motion.effort).max(axis=0),
        _shares(found, limits),
        motion.rms_effort,
        model.dh.prismatic,
        strict=True,
    ):
        unit = 'N' if slides else 'N m'
        binds = [
            f'its {limit} limit binds for {time:.3g} s'
            for limit, time in bound[name].items()
            if time > 0.0
        ]
        of_limit = f', {share:.0%} of its limit' if np.isfinite(limits.effort).all() else ''
        yield '; '.join(
            [f'{name!r}: at most {peak:.4g} {unit}{of_limit}, {rms:.4g} {unit} RMS', *binds]
        )
    for each in motion.binding:
        yield f'{each.begin:7.3f} to {each.end:.3f} s: {each.limit} of {each.joint!r}'
