# SPDX-License-Identifier: Apache-2.0
"""From recordings to an identified model: ``identify``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from robodyn_ros import identification
from robodyn_ros.commands.options import (
    Answer,
    ChosenArm,
    Jobs,
    OutputFile,
    OutputFolder,
    PerJoint,
    as_json_text,
    check_joints,
    command,
    of_joints,
)
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.errors import InsufficientRecording
from robodyn_ros.identification import Identification, Recording, with_driver_gravity
from robodyn_ros.identification.comparison import MODELS
from robodyn_ros.identification.parameters import coupled_name
from robodyn_ros.identification.progress import Progress, reporting
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.model import RobotModel
from robodyn_ros.monitoring.jobs import run_jobs
from robodyn_ros.payload import Payload
from robodyn_ros.report.drawing import check_pages_can_be_made
from robodyn_ros.report.identification_page import identification_page
from robodyn_ros.spatial import FloatArray

_FILES = ('identified.urdf', 'identified.yaml', 'identified.json', 'identified.html')
_FRICTION = ('viscous_friction', 'coulomb_friction', 'friction_curve', 'load_friction')
_COUPLED = ('coupling', 'coupled_rotor_inertia', 'coupled_friction')
_OF_MODEL = ('joint_names', 'rotor_inertia', 'effort_offset', *_FRICTION, *_COUPLED)


@command(
    'robodyn identify arm.urdf motion.mcap --validate other.mcap -o identified/',
    'robodyn identify arm.urdf one.csv two.csv --effort-scale 11.5 --base base_link',
    'robodyn identify arm.urdf one.mcap two.mcap --each --jobs 8 -o identified',
    'robodyn identify tx40.urdf motion.csv --coupling joint_6=joint_5:1',
    'robodyn identify ur.urdf motion/ --effort-without-gravity --driver-payload 1.2 0 0 0.05',
)
def identify(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    *,
    validate: tuple[Path, ...] = (),
    topic: str | None = None,
    effort_scale: PerJoint = (),
    effort_without_gravity: bool = False,
    driver_payload: tuple[float, float, float, float] | None = None,
    balance: PerJoint = (),
    coupling: tuple[str, ...] = (),
    output: OutputFolder = Path('identified'),
    mjcf: OutputFile | None = None,
    each: bool = False,
    jobs: Jobs | None = None,
    dask: str | None = None,
) -> Answer:
    """
    Identify masses, inertias and friction from recorded efforts.

    RECORDINGS are ROS bags with joint states, or CSV files with the columns time, NAME,
    NAME.velocity and NAME.effort. Writes the URDF with identified inertials and friction, the
    identified model as YAML and JSON, and an HTML page on its accuracy and on what to distrust.

    Parameters
    ----------
    effort_without_gravity :
        Add the URDF's gravity, which the driver subtracts from the efforts.
    driver_payload : MASS X Y Z
        Payload at the tip link that is set in the driver: mass [kg], centre of mass [m]; with
        --effort-without-gravity.
    balance :
        Constant force or torque of a counterweight or a spring on a joint [N or N m], JOINT=VALUE;
        default: estimated for joints on which gravity is constant.
    coupling : JOINT=OTHER:RATIO
        The drive of JOINT also turns with OTHER, times RATIO; default: sums and differences of
        neighbouring joints are tried.
    output :
        Folder to write to; it is created if missing.
    mjcf :
        Also write the identified model for MuJoCo, with the rotor inertia that a URDF lacks.
    each :
        Identify from each recording separately, on all cores, into a folder of its name inside the
        output. Exit code 1: one of them failed.
    """
    if driver_payload and not effort_without_gravity:
        raise click.UsageError('--driver-payload needs --effort-without-gravity')
    if each and mjcf is not None:
        raise click.UsageError('--mjcf is of one model: without --each')
    check_pages_can_be_made()
    mass, *center = driver_payload or (0.0, 0.0, 0.0, 0.0)
    job = IdentifyJob(
        arm,
        recordings,
        output,
        validate,
        topic,
        of_joints(effort_scale, arm.model, '--effort-scale'),
        Payload(mass, center) if effort_without_gravity else None,
        of_joints(balance, arm.model, '--balance', np.zeros(arm.model.n)),
        _gears(coupling, arm.model),
    )
    if each:
        return _of_each(job, jobs, dask)
    paths = [output / name for name in _FILES]
    with progress_bar() as show:
        found = job.identified(show)
        if mjcf is not None:
            found.to_mjcf(arm.source, mjcf)
            paths.append(mjcf)
    return Answer(_record(found), [*_summary(found), *map(str, paths)], list(_warnings(found)))


@dataclass(frozen=True)
class IdentifyJob:
    """An identification, in any process; see the command's options. ``driver`` took gravity."""

    arm: ChosenArm
    paths: tuple[Path, ...]
    output: Path
    validation: tuple[Path, ...] = ()
    topic: str | None = None
    effort_scale: float | FloatArray | None = None
    driver: Payload | None = None
    balance: float | FloatArray | None = None
    coupling: FloatArray | Literal['auto'] = 'auto'

    def recordings(self, paths: Sequence[Path]) -> list[Recording]:
        """Return the recordings in files, with gravity where the driver took it."""
        model, scale = self.arm.model, self.effort_scale
        recorded = [recording_of_file(path, model, self.topic) for path in paths]
        if self.driver is None:
            return recorded
        told = model.with_payload(self.driver)
        return [with_driver_gravity(x, told, 1.0 if scale is None else scale) for x in recorded]

    def identified(self, progress: Progress | None = None) -> Identification:
        """
        Identify from the recordings, write the files, and return what was found.

        Raises
        ------
        RobodynError, OSError
            As ``identify`` and writing do.
        """
        training, held_out = self.recordings(self.paths), self.recordings(self.validation)
        found = identification.identify(
            self.arm.model,
            training,
            validation=held_out,
            effort_scale=self.effort_scale,
            balance=self.balance,
            coupling=self.coupling,
            progress=progress,
        )
        refuse_repetition(found, self.validation)
        reporting(progress)(1.0, 'drawing')
        self.output.mkdir(parents=True, exist_ok=True)
        urdf, yaml, json, page = (self.output / name for name in _FILES)
        found.to_urdf(self.arm.source, urdf)
        found.save(yaml)
        json.write_text(as_json_text(_record(found)) + '\n', encoding='utf-8')
        shown = (held_out or training)[-1]
        text = identification_page(found, self.arm.model, shown, title=self.arm.title)
        page.write_text(text, encoding='utf-8')
        return found


def _gears(given: tuple[str, ...], model: RobotModel) -> FloatArray | Literal['auto']:
    """
    Return the coupled drives (m, n) that ``--coupling`` gives.

    Raises
    ------
    NoSuchName
        Of a joint.
    """
    if not given:
        return 'auto'
    rows = np.zeros((len(given), model.n))
    for row, text in zip(rows, given, strict=True):
        joint, _, rest = text.partition('=')
        other, _, ratio = rest.rpartition(':')
        try:
            number = float(ratio)
        except ValueError:
            number = 0.0
        if not number or joint == other:
            raise click.BadParameter(f'{text!r} is not JOINT=OTHER:RATIO', param_hint='--coupling')
        check_joints((joint, other), model, '--coupling')
        row[model.joint_names.index(joint)] = 1.0
        row[model.joint_names.index(other)] = number
    return rows


def identified_file(job: IdentifyJob) -> tuple[dict[str, Any], list[str]]:
    """Do a job in any process; return what JSON says of it and its words."""
    found = job.identified()
    return _record(found), [*_warnings(found), *_summary(found)]


def _of_each(job: IdentifyJob, jobs: int | None, dask: str | None) -> Answer:
    """Identify from each recording by itself; exit code 1 where one failed."""
    names = [path.stem for path in job.paths]
    if len(set(names)) < len(names):
        raise click.UsageError('--each: two recordings have one name, and so one folder')
    work = [replace(job, paths=(path,), output=job.output / path.stem) for path in job.paths]
    with progress_bar() as show:
        outcomes = run_jobs(
            identified_file, work, jobs, dask=dask, progress=lambda done: show(done, 'identifying')
        )
    record, lines = {}, []
    for name, path, each in zip(names, job.paths, outcomes):
        if each.result is None:
            record[name] = {'problem': each.problem}
            click.echo(f'{path}: {each.problem}', err=True)
        else:
            record[name], words = each.result
            lines += [f'{path}: {each.item.output}']
            lines += [f'  {line}' for text in words for line in text.splitlines()]
    return Answer(record, lines, exit_code=int(any(each.result is None for each in outcomes)))


def refuse_repetition(found: Identification, validation: Sequence[Path]) -> None:
    """
    Refuse a validation recording that repeats the training.

    Raises
    ------
    InsufficientRecording
        Naming the file.
    """
    held_out = [each for each in found.errors if each.role == 'validation']
    for path, errors in zip(validation, held_out, strict=True):
        if errors.repeats_training:
            raise InsufficientRecording(
                '--validate', str(path), 'a motion that the model is not identified from'
            )


def _record(found: Identification) -> dict[str, Any]:
    """Return what JSON says of what was found."""
    return {
        **{name: getattr(found.model, name) for name in _OF_MODEL},
        'converged': found.converged,
        'friction': str(found.terms),
        'presliding': found.terms.presliding,
        'cutoff_hz': found.cutoff,
        'errors': [
            {**each.as_dict(), 'relative': {name: each.relative(name) for name in MODELS}}
            for each in found.errors
        ],
        'candidates': [
            {'friction': str(each.terms), 'relative_error': each.relative_error}
            for each in found.candidates
        ],
        'base_tilt_rad': found.base_tilt,
        'delay_s': found.delay,
        'effort_scale': found.effort_scale,
        'parameters': [
            {**vars(each), 'remaining': each.remaining, 'is_measured': each.is_measured}
            for each in found.parameters
        ],
        'findings': found.findings,
    }


def _warnings(found: Identification) -> Iterator[str]:
    """Yield what to distrust, a line each."""
    for each in found.findings:
        if each.level == 'warning':
            yield f'Warning: {each}'
    if all(each.role == 'training' for each in found.errors):
        yield 'No validation motion was given (--validate): judged by blocked cross-validation.'


def _summary(found: Identification) -> Iterator[str]:
    """Yield how good it is."""
    shown = found.errors[-1]
    yield f'friction: {found.terms}'
    for gears in found.model.coupling:
        yield f'a drive turns with {coupled_name(found.model, gears)}'
    if shown.role == 'training':
        best = min((each.relative_error for each in found.candidates), default=float('nan'))
        yield f'cross-validated error of the best friction: {best:.1%}'
    yield f'rms error on the last {shown.role} motion, of each joint:'
    yield shown.as_text(found.model.dh.prismatic)
    relative = (f'{shown._headings.get(name, name)} {shown.relative(name):.1%}' for name in MODELS)
    yield f'all joints, of the measured torque: {", ".join(relative)}'
    measured = sum(each.is_measured for each in found.parameters)
    yield f"{measured} of {len(found.parameters)} parameters are measured, the rest the URDF's"
