# SPDX-License-Identifier: Apache-2.0
"""The torques of a motion, and its simulation: ``torque``, ``simulate``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from robodyn_ros.commands.drive_limits import limits_of, refuse_unknown
from robodyn_ros.commands.options import (
    Answer,
    ArmWithRotors,
    OutputText,
    PerJoint,
    command,
    lines_of,
    of_joints,
    written,
)
from robodyn_ros.control.feedforward_efforts import (
    ERROR_FRACTION,
    FeedforwardSettings,
    with_feedforward_efforts,
)
from robodyn_ros.control.law import Mode
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.motion_file import (
    is_trajectory_file,
    samples_of_file,
    trajectory_of_file,
)
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.dynamics import Method, inverse_dynamics, smooth_friction_torque
from robodyn_ros.model import RobotModel, force_unit, position_unit
from robodyn_ros.motions import MotionSamples, example_motion, table_as_csv
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows, trajectory_as_yaml
from robodyn_ros.record import Record, table_of
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.simulation.closed_loop import simulated_motion
from robodyn_ros.spatial import FloatArray

FRICTION_VELOCITY = ControlSettings().friction_velocity
"""Width of the smooth sign of Coulomb friction [rad/s or m/s], the dynamics node's."""


@dataclass(frozen=True, eq=False, repr=False)
class _Torques(Record):
    """
    What a motion takes.

    Attributes
    ----------
    joint_names : tuple of n str
    largest_torque, effort_limit : array, shape (n,)
        [N m or N]
    interpolation_error : array, shape (n,)
        Of the effort between two points of a trajectory, at most [N m or N].
    """

    joint_names: tuple[str, ...]
    largest_torque: FloatArray
    effort_limit: FloatArray
    interpolation_error: FloatArray | None = None


@command(
    'robodyn torque urdf/puma560.urdf motion.csv -o torques.csv',
    'robodyn torque arm.urdf recording.mcap --topic /joint_states --cutoff 5 --friction',
    'robodyn torque arm.urdf trajectory.yaml -o with_effort.yaml',
)
def torque(
    arm: ArmWithRotors,
    motion: Path,
    *,
    output: OutputText | None = None,
    method: Method = 'newton_euler',
    friction: bool = False,
    topic: str | None = None,
    cutoff: float | None = None,
    effort_limit: PerJoint = (),
    error_bound: PerJoint = (),
) -> Answer:
    """
    Turn a motion into the torques that cause it.

    MOTION is a CSV file, or a ROS bag with joint states. Columns: time [s], a column for each
    joint's position under its name, and, if known, NAME.velocity and NAME.acceleration; the rest
    is differentiated. Torques have the joints' names. MOTION may also be the YAML of a
    trajectory_msgs/JointTrajectory, or of a message of MoveIt that holds one: it is written with
    effort, which the joint trajectory controller adds. Friction is included with --friction only.

    Parameters
    ----------
    output :
        File to write; default, and -: standard output. The torques of a trajectory are CSV if the
        name ends in .csv.
    method :
        Algorithm; all give the same torques.
    friction :
        Add the URDF's friction: viscous, and Coulomb times tanh(velocity / 0.01), a smooth sign
        [rad/s or m/s].
    error_bound : TORQUE
        Largest error of the effort between two points of a trajectory [N m or N]: one value for
        all joints, one for each, or JOINT=TORQUE; default: 0.0001 of the effort limits.
    """
    model = arm.model
    found: tuple[dict[str, Any], str, _Torques, str]
    refuse_options_of_samples(motion, topic, cutoff)
    if is_trajectory_file(motion):
        given = trajectory_of_file(motion)
        settings = _filling_settings(model, effort_limit, error_bound)
        found = _with_effort(model, given, method, friction, settings, output)
    elif error_bound or effort_limit:
        raise click.UsageError('--error-bound and --effort-limit are for a trajectory in YAML')
    else:
        found = _of_motion(model, motion, topic, cutoff, method, friction)
    if not friction and (model.viscous_friction.any() or model.coulomb_friction.any()):
        click.echo("The URDF's friction is left out; --friction adds it.", err=True)
    record, text, largest, size = found
    about = [largest.as_text(model.dh.prismatic), f'{size} in {output}']
    lines = [text.removesuffix('\n')]
    return Answer(record, lines, is_long=True, output=output, about_output=about)


@dataclass(frozen=True, eq=False, repr=False)
class _FollowedJoint(Record):
    """
    How well a joint followed.

    Attributes
    ----------
    joint, unit : str
    rms_error, largest_error : float
        [rad or m]
    largest_torque : float
        [N m or N]
    time_at_effort_limit : float
        Part of the time.
    """

    joint: str
    unit: str
    rms_error: float
    largest_error: float
    largest_torque: float
    time_at_effort_limit: float

    _keys = {'joint': 'name'}
    _columns = ('joint', 'rms_error', 'largest_error', 'largest_torque', 'at_its_effort_limit')

    @property
    def at_its_effort_limit(self) -> str:
        share = self.time_at_effort_limit
        return f'{share:.0%} of the time' if share > 0.0 else ''


@command(
    'robodyn simulate urdf/puma560.urdf -o motion.csv',
    'robodyn simulate urdf/puma560.urdf --motion motion.csv --law gravity_compensation',
)
def simulate(
    arm: ArmWithRotors,
    *,
    motion: Path | None = None,
    law: Mode | Literal['free'] = 'computed_torque',
    kp: float = 100.0,
    kd: float = 20.0,
    ignore_effort_limits: bool = False,
    time_step: float = 0.001,
    output: OutputText | None = None,
    topic: str | None = None,
    cutoff: float | None = None,
) -> Answer:
    """
    Move an arm in MuJoCo by the computed torques, without ROS.

    Prints the tracking error. Torques are clipped to the URDF's effort limits. The CSV file can
    be given to ``robodyn torque``, ``plot`` and ``report``: time, positions, velocities, then
    NAME.torque as commanded, and NAME.reference. With computed_torque and feedforward these
    torques include the URDF's friction.

    Parameters
    ----------
    law :
        Mode of the dynamics node, or 'free': no torque.
    kp :
        Position gain [1/s²].
    kd :
        Velocity gain [1/s].
    ignore_effort_limits :
        Do not clip torques to the effort limits of the URDF.
    time_step :
        Time step of physics and control law [s].
    output :
        File to write; -: standard output.
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
    columns = (
        np.sqrt(np.mean(did.error**2, axis=0)),
        np.abs(did.error).max(axis=0),
        np.abs(did.torque).max(axis=0),
        np.mean(np.abs(did.torque) >= limits, axis=0),
    )
    joints = [
        _FollowedJoint(name, position_unit(slides), *numbers)
        for name, slides, *numbers in zip(
            model.joint_names, model.dh.prismatic, *(each.tolist() for each in columns)
        )
    ]
    duration = float(did.time[-1])
    title = f'{law}, {duration:.4g} s at {1 / time_step:.6g} Hz'
    table = table_of(joints, model.dh.prismatic, title).text()
    names = columns_of(model, '', '.velocity', '.torque', '.reference')
    reference = did.position + did.error
    text = table_as_csv(names, did.time, did.position, did.velocity, did.torque, reference)
    record = {'law': law, 'duration': duration, 'joints': joints}
    if law == 'feedforward':
        click.echo('feedforward is open loop: nothing corrects these errors.', err=True)
    return beside_file(record, [table], text, output, f'{len(did.time)} samples in {output}')


def columns_of(model: RobotModel, *suffixes: str) -> list[str]:
    """Return the names of a table's columns: of each suffix one for each joint."""
    return [f'{name}{suffix}' for suffix in suffixes for name in model.joint_names]


def beside_file(
    record: object, lines: list[str], text: str, output: Path | None, about: str
) -> Answer:
    """Return an answer of lines; standard error has them where standard output has the text."""
    if output is None:
        return Answer(record, lines)
    said = written(text, output, about)
    if str(output) == '-':
        return Answer(record, said, notes=lines)
    return Answer(record, [*lines, *said])


def motion_of_file(
    model: RobotModel, path: Path, topic: str | None, cutoff: float | None
) -> MotionSamples:
    """Return the motion in a file, low-passed where a cutoff is given."""
    refuse_options_of_samples(path, topic, cutoff)
    motion = samples_of_file(path, model, topic=topic)
    for line in lines_of(motion.findings):
        click.echo(line, err=True)
    return motion if cutoff is None else motion.low_passed(cutoff)


def refuse_options_of_samples(path: Path, topic: str | None, cutoff: float | None) -> None:
    """Refuse --topic and --cutoff beside a trajectory."""
    if is_trajectory_file(path) and not (topic is None and cutoff is None):
        raise click.UsageError('--topic and --cutoff are for measured motions')


def _of_motion(
    model: RobotModel,
    path: Path,
    topic: str | None,
    cutoff: float | None,
    method: Method,
    friction: bool,
) -> tuple[dict[str, Any], str, _Torques, str]:
    """Return the record, the CSV, the largest torques of a motion, and how long it is."""
    given = motion_of_file(model, path, topic, cutoff)
    torques = inverse_dynamics(model, given.q, given.qd, given.qdd, method=method)
    if friction:
        torques = torques + smooth_friction_torque(model, FRICTION_VELOCITY, given.qd, torques)
    if given.derived:
        click.echo(f'{given.derived} were derived from what {path} gives.', err=True)
    record = {
        'joint_names': model.joint_names,
        'units': [force_unit(slides) for slides in model.dh.prismatic],
        'derived': given.derived,
        'time': given.time,
        'torque': torques,
    }
    text = table_as_csv(model.joint_names, given.time, torques)
    largest = _Torques(model.joint_names, np.abs(torques).max(axis=0), _known(model.effort_limits))
    return record, text, largest, f'{len(given.time)} samples'


def _known(limits: FloatArray) -> FloatArray:
    """Return limits, NaN where there is none."""
    return np.where(np.isfinite(limits) & (limits > 0.0), limits, np.nan)


def _with_effort(
    model: RobotModel,
    trajectory: Trajectory,
    method: Method,
    friction: bool,
    settings: FeedforwardSettings,
    output: Path | None,
) -> tuple[dict[str, Any], str, _Torques, str]:
    """Return the same of a trajectory, with the torques as its effort."""
    torque = replace(
        ReferenceTorque.of(model, ControlSettings(terms_friction=friction)),
        inverse_dynamics=partial(inverse_dynamics, model, method=method),
    )
    filled = with_feedforward_efforts(trajectory, torque, settings)
    for note in filled.notes:
        click.echo(note, err=True)
    rows = rows_of(filled.trajectory)
    names = ('joint_names', 'time', 'positions', 'velocities', 'accelerations', 'effort')
    record = {
        **dict(zip(names, rows)),
        'inserted': filled.inserted,
        'largest_error': dict(zip(model.joint_names, filled.largest_error)),
        'largest_torque': dict(zip(model.joint_names, filled.largest_torque)),
        'notes': filled.notes,
    }
    limits = _known(settings.effort_limits)
    largest = _Torques(model.joint_names, filled.largest_torque, limits, filled.largest_error)
    size = f'{len(rows.times)} points, {filled.inserted} of them new,'
    text = trajectory_as_yaml(rows)
    if output is not None and output.suffix == '.csv':
        text = table_as_csv(rows.joint_names, np.array(rows.times), filled.trajectory.efforts)
    return record, text, largest, size


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


def _filling_settings(
    model: RobotModel, effort_limit: PerJoint, error_bound: PerJoint
) -> FeedforwardSettings:
    limits = limits_of(effort_limit, model, '--effort-limit', model.effort_limits)
    default = ERROR_FRACTION * limits
    given = of_joints(error_bound, model, '--error-bound', default)
    bound = np.full(model.n, default if given is None else given)
    if not (bound > 0.0).all():
        raise click.UsageError('--error-bound: each more than zero')
    refuse_unknown(model, bound, otherwise='--error-bound')
    return FeedforwardSettings(limits, bound, np.ones(model.n))
