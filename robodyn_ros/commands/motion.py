# SPDX-License-Identifier: Apache-2.0
"""The torques of a motion, and its simulation: ``torque``, ``simulate``."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from robodyn_ros.commands.options import (
    OUTPUT_FILE,
    ChosenArm,
    UserPath,
    arm_options,
    cutoff_option,
    examples,
    in_a_folder_that_is_there,
    motion_topic_option,
    rotor_inertia_option,
)
from robodyn_ros.control.feedforward_efforts import (
    ERROR_FRACTION,
    FeedforwardSettings,
    FeedforwardTrajectory,
    with_feedforward_efforts,
)
from robodyn_ros.control.law import MODES, Mode
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.dynamics import METHODS, Method, inverse_dynamics, smooth_friction_torque
from robodyn_ros.model import RobotModel
from robodyn_ros.motions import MotionSamples, example_motion, read_motion, table_as_csv
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.motions.trajectory_yaml import (
    TrajectoryRows,
    trajectory_as_yaml,
    trajectory_of_yaml,
)
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.simulation.closed_loop import simulated_motion
from robodyn_ros.spatial import FloatArray

FRICTION_VELOCITY = ControlSettings().friction_velocity
"""Width of the smooth sign of Coulomb friction [rad/s or m/s], the dynamics node's."""

_OUTPUT = click.option(
    '-o', '--output', type=OUTPUT_FILE, callback=in_a_folder_that_is_there, help='File to write.'
)


@click.command(
    epilog=examples(
        'robodyn torque urdf/puma560.urdf motion.csv -o torques.csv',
        'robodyn torque arm.urdf recording.mcap --topic /joint_states --cutoff 5 --friction',
        'robodyn torque arm.urdf trajectory.yaml --trajectory -o with_effort.yaml',
    )
)
@arm_options
@rotor_inertia_option
@click.argument('motion', type=UserPath())
@_OUTPUT
@click.option(
    '--method', type=click.Choice(list(METHODS)), default='newton_euler', show_default=True
)
@click.option(
    '--friction',
    is_flag=True,
    help="Add the URDF's friction: viscous, and Coulomb times tanh(velocity / "
    f'{FRICTION_VELOCITY:g}), a smooth sign [rad/s or m/s].',
)
@motion_topic_option
@cutoff_option
@click.option(
    '--trajectory',
    'is_trajectory',
    is_flag=True,
    help='MOTION is the YAML of a trajectory_msgs/JointTrajectory: write it with effort, for the '
    'joint trajectory controller to add.',
)
@click.option(
    '--error-bound',
    type=click.FloatRange(min=0.0, min_open=True),
    metavar='TORQUE',
    help='How far the effort between two points of a trajectory may be off [N m or N]; not given: '
    f'{ERROR_FRACTION:g} of the effort limits.',
)
def torque(
    arm: ChosenArm,
    motion: Path,
    output: Path | None,
    as_json: bool,
    method: Method,
    friction: bool,
    topic: str | None,
    cutoff: float | None,
    is_trajectory: bool,
    error_bound: float | None,
) -> None:
    """
    Turn a motion into the torques that cause it.

    MOTION is a CSV file, or a ROS bag with joint states. Columns: time [s], a column for each
    joint's position under its name, and, where they are known, NAME.velocity and
    NAME.acceleration; what is not known is derived. Torques come out under the joints' names.
    They are without friction, unless --friction is given.
    """
    model = arm.model
    if is_trajectory:
        if topic is not None or cutoff is not None:
            raise click.UsageError('--topic and --cutoff are for measured motions')
        _write_trajectory_with_effort(
            model,
            motion,
            output,
            as_json=as_json,
            method=method,
            friction=friction,
            error_bound=error_bound,
        )
        _say_what_is_left_out(model, friction)
        return
    if error_bound is not None:
        raise click.UsageError('--error-bound is for --trajectory')
    if motion.suffix in ('.yaml', '.yml'):
        raise click.UsageError('MOTION is CSV or a bag; a trajectory in YAML after --trajectory')
    given = motion_of_file(model, motion, topic, cutoff)
    torques = inverse_dynamics(model, given.q, given.qd, given.qdd, method=method)
    if friction:
        torques = torques + smooth_friction_torque(model, FRICTION_VELOCITY, given.qd, torques)
    if as_json:
        record = {
            'joint_names': model.joint_names,
            'units': ['N' if prismatic else 'N m' for prismatic in model.dh.prismatic],
            'derived': given.derived,
            'time': given.time.tolist(),
            'torque': torques.tolist(),
        }
        text = json.dumps(record, allow_nan=False) + '\n'
    else:
        text = table_as_csv(model.joint_names, given.time, torques)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding='utf-8')
        peaks = np.abs(torques).max(axis=0)
        for name, peak, prismatic in zip(
            model.joint_names, peaks, model.dh.prismatic, strict=True
        ):
            click.echo(f'{name!r}: at most {peak:.4g} {"N" if prismatic else "N m"}')
        click.echo(f'{len(given.time)} samples in {output}')
    if given.derived:
        click.echo(f'{given.derived} were derived from what {motion} gives.', err=True)
    _say_what_is_left_out(model, friction)


def _say_what_is_left_out(model: RobotModel, friction: bool) -> None:
    if not friction and (model.viscous_friction.any() or model.coulomb_friction.any()):
        click.echo("The URDF's friction is left out; --friction adds it.", err=True)


@click.command(
    epilog=examples(
        'robodyn simulate urdf/puma560.urdf -o motion.csv',
        'robodyn simulate urdf/puma560.urdf --motion motion.csv --law gravity_compensation',
    )
)
@arm_options
@rotor_inertia_option
@click.option(
    '--motion',
    type=UserPath(),
    help="CSV file or bag; not given: one within the arm's limits.",
)
@click.option(
    '--law',
    type=click.Choice([*MODES, 'free']),
    default='computed_torque',
    show_default=True,
    help="A mode of the dynamics node, or 'free': no torque.",
)
@click.option('--kp', type=float, default=100.0, show_default=True, help='[1/s²]')
@click.option('--kd', type=float, default=20.0, show_default=True, help='[1/s]')
@click.option(
    '--ignore-effort-limits',
    is_flag=True,
    help='Apply torques beyond the effort limits of the URDF, too.',
)
@click.option(
    '--time-step', type=float, default=0.001, show_default=True, help='[s], of physics and law.'
)
@_OUTPUT
@motion_topic_option
@cutoff_option
def simulate(
    arm: ChosenArm,
    motion: Path | None,
    law: Mode | Literal['free'],
    kp: float,
    kd: float,
    ignore_effort_limits: bool,
    time_step: float,
    output: Path | None,
    as_json: bool,
    topic: str | None,
    cutoff: float | None,
) -> None:
    """
    Move an arm in MuJoCo by our torques; needs no ROS.

    Says how far the arm was off. Torques are clipped to the URDF's effort limits. The CSV file can
    be given to ``robodyn torque`` and ``robodyn report``: time, positions, velocities, then
    NAME.torque as it was commanded. With computed_torque and feedforward these torques include the
    URDF's friction.
    """
    model = arm.model
    asked = motion_of_file(model, motion, topic, cutoff) if motion else example_motion(model)
    simulation = ArmSimulation(
        arm.chain, gravity=model.gravity, time_step=time_step, rotor_inertia=model.rotor_inertia
    )
    did = simulated_motion(
        simulation, model, asked, law, kp=kp, kd=kd, effort_limits=not ignore_effort_limits
    )
    limits = np.inf if ignore_effort_limits else known_effort_limits(model)
    at_limit = np.mean(np.abs(did.torque) >= limits, axis=0)
    if output is not None:
        names = [
            f'{name}{suffix}'
            for suffix in ('', '.velocity', '.torque')
            for name in model.joint_names
        ]
        text = table_as_csv(names, did.time, did.position, did.velocity, did.torque)
        output.write_text(text, encoding='utf-8')
    joints: list[dict[str, Any]] = [
        {
            'name': name,
            'unit': 'm' if prismatic else 'rad',
            'rms_error': float(np.sqrt(np.mean(error**2))),
            'largest_error': float(np.abs(error).max()),
            'largest_torque': float(np.abs(torque).max()),
            'time_at_effort_limit': float(limited),
        }
        for name, prismatic, error, torque, limited in zip(
            model.joint_names, model.dh.prismatic, did.error.T, did.torque.T, at_limit, strict=True
        )
    ]
    if as_json:
        record = {'law': law, 'duration': float(did.time[-1]), 'joints': joints}
        click.echo(json.dumps(record, indent=2, allow_nan=False))
        return
    click.echo(f'{law}, {did.time[-1]:.4g} s at {1 / time_step:.6g} Hz')
    for joint in joints:
        unit = joint['unit']
        limited = ''
        if joint['time_at_effort_limit'] > 0:
            limited = f' (its effort limit, {joint["time_at_effort_limit"]:.0%} of the time)'
        click.echo(
            f'{joint["name"]!r}: error {joint["rms_error"]:.2e} {unit} RMS, '
            f'{joint["largest_error"]:.2e} {unit} at most; '
            f'torque {joint["largest_torque"]:.4g} {"N" if unit == "m" else "N m"} at most'
            f'{limited}'
        )
    if law == 'feedforward':
        click.echo('feedforward is open loop: nothing corrects these errors.', err=True)


def motion_of_file(
    model: RobotModel, path: Path, topic: str | None, cutoff: float | None
) -> MotionSamples:
    """Return the motion in a CSV file or a bag, low-passed where a cutoff is given."""
    motion = read_motion(path, model.joint_names, topic=topic)
    return motion if cutoff is None else motion.low_passed(cutoff)


def _write_trajectory_with_effort(
    model: RobotModel,
    path: Path,
    output: Path | None,
    *,
    as_json: bool,
    method: Method,
    friction: bool,
    error_bound: float | None,
) -> None:
    """Fill the trajectory of a YAML file, and say what was done to it on standard error."""
    trajectory = Trajectory.from_points(*trajectory_of_yaml(path))
    torque = replace(
        ReferenceTorque.of(model, ControlSettings(terms_friction=friction)),
        inverse_dynamics=partial(inverse_dynamics, model, method=method),
    )
    filled = with_feedforward_efforts(trajectory, torque, _filling_settings(model, error_bound))
    rows = rows_of(filled.trajectory)
    if as_json:
        text = json.dumps(_record_of_filled(model, filled, rows)) + '\n'
    else:
        text = trajectory_as_yaml(rows)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding='utf-8')
        units = ['N' if prismatic else 'N m' for prismatic in model.dh.prismatic]
        for name, unit, peak, error in zip(
            model.joint_names, units, filled.largest_torque, filled.largest_error, strict=True
        ):
            click.echo(f'{name!r}: at most {peak:.4g} {unit}, interpolated within {error:.2g}')
        click.echo(f'{len(rows.times)} points, {filled.inserted} of them new, in {output}')
    for note in filled.notes:
        click.echo(note, err=True)


def rows_of(trajectory: Trajectory) -> TrajectoryRows:
    """Return what a message says of a trajectory: nothing where it is NaN."""

    def known(rows: FloatArray) -> list[list[float]]:
        return [row.tolist() if np.isfinite(row).all() else [] for row in rows]

    return TrajectoryRows(
        trajectory.joint_names,
        trajectory.times.tolist(),
        known(trajectory.positions),
        known(trajectory.velocities),
        known(trajectory.accelerations),
        trajectory.efforts.tolist(),
    )


def _filling_settings(model: RobotModel, error_bound: float | None) -> FeedforwardSettings:
    limits = known_effort_limits(model)
    if error_bound is not None:
        bound = np.full(model.n, error_bound)
    else:
        bound = ERROR_FRACTION * limits
        for name, limit in zip(model.joint_names, limits, strict=True):
            if not np.isfinite(limit):
                raise click.UsageError(
                    f'joint {name!r} has no effort limit: --error-bound says how far the torque '
                    'between two points may be off'
                )
    return FeedforwardSettings(limits, bound, np.ones(model.n))


def _record_of_filled(
    model: RobotModel, filled: FeedforwardTrajectory, rows: TrajectoryRows
) -> dict[str, object]:
    names = ('positions', 'velocities', 'accelerations', 'effort')
    return {
        'joint_names': list(rows.joint_names),
        'time': list(rows.times),
        **{name: list(values) for name, values in zip(names, rows[2:], strict=True)},
        'inserted': filled.inserted,
        'largest_error': dict(zip(model.joint_names, filled.largest_error.tolist())),
        'largest_torque': dict(zip(model.joint_names, filled.largest_torque.tolist())),
        'notes': list(filled.notes),
    }
