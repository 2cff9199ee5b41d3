# SPDX-License-Identifier: Apache-2.0
"""From recordings to an identified model: ``identify``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from robodyn_ros.commands.options import (
    OUTPUT_FILE,
    ChosenArm,
    UserPath,
    arm_options,
    dask_option,
    effort_scale_option,
    examples,
    in_a_folder_that_is_there,
    jobs_option,
    recordings_argument,
    topic_option,
    validate_option,
)
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.errors import InsufficientRecording
from robodyn_ros.identification import (
    Identification,
    Recording,
    identify,
    with_driver_gravity,
)
from robodyn_ros.identification.comparison import MODELS
from robodyn_ros.identification.progress import Progress, reporting
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.model import RobotModel
from robodyn_ros.monitoring.jobs import run_jobs
from robodyn_ros.payload import Payload
from robodyn_ros.report.drawing import check_pages_can_be_made
from robodyn_ros.report.identification_page import identification_page

_FILES = ('identified.urdf', 'identified.yaml', 'identified.json', 'identified.html')


@click.command(
    'identify',
    epilog=examples(
        'robodyn identify arm.urdf motion.mcap --validate other.mcap -o identified/',
        'robodyn identify arm.urdf one.csv two.csv --effort-scale 11.5 --base base_link',
        'robodyn identify arm.urdf one.mcap two.mcap --each --jobs 8 -o identified',
        'robodyn identify ur.urdf motion/ --effort-without-gravity --driver-payload 1.2 0 0 0.05',
    ),
)
@arm_options
@recordings_argument
@validate_option
@topic_option
@effort_scale_option
@click.option(
    '--effort-without-gravity',
    'is_without_gravity',
    is_flag=True,
    help="Add the URDF's gravity: the driver has taken it from the efforts.",
)
@click.option(
    '--driver-payload',
    type=float,
    nargs=4,
    metavar='MASS X Y Z',
    help='What the driver was told that the tip link carries [kg], centre of mass [m]; with '
    '--effort-without-gravity.',
)
@click.option(
    '-o',
    '--output',
    type=UserPath(file_okay=False),
    default='identified',
    show_default=True,
    help='Folder, made where it is missing.',
)
@click.option(
    '--mjcf',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    help='Write the identified model for MuJoCo, too; it has rotor inertia, which URDF lacks.',
)
@click.option(
    '--each',
    'is_each',
    is_flag=True,
    help='Identify from each recording by itself, into a folder of its name inside the output: '
    'independent jobs, on all cores.',
)
@jobs_option
@dask_option
def identify_command(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    validation: tuple[Path, ...],
    topic: str | None,
    effort_scale: float | list[float] | None,
    is_without_gravity: bool,
    driver_payload: tuple[float, float, float, float] | None,
    output: Path,
    mjcf: Path | None,
    is_each: bool,
    jobs: int | None,
    dask: str | None,
    as_json: bool,
) -> None:
    """
    Find the model that an arm's own drives report.

    RECORDINGS are ROS bags with joint states, or CSV files with the columns time, NAME,
    NAME.velocity and NAME.effort. Writes the URDF with other inertials and friction, the
    identified model as YAML and JSON, and a page that shows how good it is, and what is not known.
    """
    if driver_payload and not is_without_gravity:
        raise click.UsageError('--driver-payload needs --effort-without-gravity')
    check_pages_can_be_made()
    options = IdentifyOptions(validation, topic, effort_scale, is_without_gravity, driver_payload)
    if is_each:
        if mjcf is not None:
            raise click.UsageError('--mjcf is of one model: without --each')
        _identify_each(arm, recordings, options, output, jobs, dask, as_json=as_json)
        return
    with progress_bar(is_hidden=as_json) as show:
        found, written = options.identified(arm, recordings, output, show)
        if mjcf is not None:
            found.to_mjcf(arm.source, mjcf)
            written += (mjcf,)
    if as_json:
        click.echo(json.dumps(_record(found), indent=2, allow_nan=False))
        return
    for line in _warnings(found):
        click.echo(line, err=True)
    for line in _summary(found):
        click.echo(line)
    for path in written:
        click.echo(path)


@dataclass(frozen=True)
class IdentifyOptions:
    """What recordings are read and identified with; see the command's options."""

    validation: tuple[Path, ...] = ()
    topic: str | None = None
    effort_scale: float | list[float] | None = None
    is_without_gravity: bool = False
    driver_payload: tuple[float, float, float, float] | None = None

    def recordings(self, model: RobotModel, paths: Sequence[Path]) -> list[Recording]:
        """Return the recordings in files, with gravity where the driver took it."""
        recorded = [recording_of_file(path, model, self.topic) for path in paths]
        if not self.is_without_gravity:
            return recorded
        mass, *center = self.driver_payload or (0.0, 0.0, 0.0, 0.0)
        driver = model.with_payload(Payload(mass, center))
        scale = 1.0 if self.effort_scale is None else self.effort_scale
        return [with_driver_gravity(each, driver, scale) for each in recorded]

    def identified(
        self,
        arm: ChosenArm,
        paths: Sequence[Path],
        output: Path,
        progress: Progress | None = None,
    ) -> tuple[Identification, tuple[Path, ...]]:
        """
        Identify from recordings, and return the model and the files that were written.

        Raises
        ------
        RobodynError, OSError
            As ``identify`` and writing do.
        """
        training = self.recordings(arm.model, paths)
        held_out = self.recordings(arm.model, self.validation)
        found = identify(
            arm.model,
            training,
            validation=held_out,
            effort_scale=self.effort_scale,
            progress=progress,
        )
        refuse_repetition(found, self.validation)
        reporting(progress)(1.0, 'drawing')
        return found, _write(found, arm, (held_out or training)[-1], output)


@dataclass(frozen=True)
class IdentifyJob:
    """An identification from one recording, in any process; ``output`` is its folder."""

    arm: ChosenArm
    path: Path
    options: IdentifyOptions
    output: Path


def identified_file(job: IdentifyJob) -> tuple[dict[str, Any], list[str]]:
    """
    Identify from one recording; write its files, and return its record and its words.

    Raises
    ------
    RobodynError, OSError
        As ``identify`` and writing do.
    """
    found, _ = job.options.identified(job.arm, [job.path], job.output)
    return _record(found), [*_warnings(found), *_summary(found)]


def _identify_each(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    options: IdentifyOptions,
    output: Path,
    jobs: int | None,
    dask: str | None,
    *,
    as_json: bool,
) -> None:
    """Identify from each recording by itself; exit code 1 where one failed."""
    names = [path.stem for path in recordings]
    if len(set(names)) < len(names):
        raise click.UsageError('--each: two recordings have one name, and so one folder')
    work = [
        IdentifyJob(arm, path, options, output / name) for path, name in zip(recordings, names)
    ]
    with progress_bar(is_hidden=as_json) as show:
        outcomes = run_jobs(
            identified_file, work, jobs, dask=dask, progress=lambda done: show(done, 'identifying')
        )
    if as_json:
        record = {
            name: each.result[0] if each.result is not None else {'problem': each.problem}
            for name, each in zip(names, outcomes)
        }
        click.echo(json.dumps(record, indent=2, allow_nan=False))
    for each in outcomes:
        if each.problem:
            click.echo(f'{each.item.path}: {each.problem}', err=True)
        elif not as_json and each.result is not None:
            click.echo(f'{each.item.path}: {each.item.output}')
            for line in each.result[1]:
                click.echo(f'  {line}')
    if any(each.problem for each in outcomes):
        raise SystemExit(1)


def refuse_repetition(found: Identification, validation: tuple[Path, ...]) -> None:
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


def _write(
    found: Identification, arm: ChosenArm, shown: Recording, output: Path
) -> tuple[Path, ...]:
    """Write URDF, YAML, JSON and page into a folder; return their paths."""
    output.mkdir(parents=True, exist_ok=True)
    paths = tuple(output / name for name in _FILES)
    urdf, yaml, json_file, page = paths
    found.to_urdf(arm.source, urdf)
    found.save(yaml)
    text = json.dumps(_record(found), indent=2, allow_nan=False)
    json_file.write_text(text + '\n', encoding='utf-8')
    text = identification_page(found, arm.model, shown, title=arm.title)
    page.write_text(text, encoding='utf-8')
    return paths


def _record(found: Identification) -> dict[str, Any]:
    """Return what was found as JSON can hold it."""
    model = found.model
    return {
        'joint_names': model.joint_names,
        'converged': found.converged,
        'friction': str(found.terms),
        'cutoff_hz': found.cutoff,
        'errors': [
            {
                'role': each.role,
                'repeats_training': each.repeats_training,
                'relative': {name: each.relative(name) for name in MODELS},
                'torque': each.torque.tolist(),
                **{name: getattr(each, name).tolist() for name in MODELS},
                **{f'{name}_moving': getattr(each, f'{name}_moving').tolist() for name in MODELS},
            }
            for each in found.errors
        ],
        'candidates': [
            {'friction': str(each.terms), 'relative_error': each.relative_error}
            for each in found.candidates
        ],
        'rotor_inertia': model.rotor_inertia.tolist(),
        'viscous_friction': model.viscous_friction.tolist(),
        'coulomb_friction': model.coulomb_friction.tolist(),
        'effort_offset': model.effort_offset.tolist(),
        'friction_curve': model.friction_curve.tolist(),
        'load_friction': model.load_friction.tolist(),
        'presliding': found.terms.presliding,
        'base_tilt_rad': found.base_tilt.tolist(),
        'delay_s': found.delay,
        'effort_scale': found.effort_scale.tolist(),
        'parameters': [
            {**vars(each), 'remaining': each.remaining, 'is_measured': each.is_measured}
            for each in found.parameters
        ],
        'findings': [each.as_dict() for each in found.findings],
    }


def _warnings(found: Identification) -> Iterator[str]:
    """Yield what to distrust, a line each."""
    for each in found.findings:
        if each.level == 'warning':
            yield f'Warning: {each}'
    if all(each.role == 'training' for each in found.errors):
        yield 'No validation motion was given (--validate): judged by blocked cross-validation.'


def _summary(found: Identification) -> Iterator[str]:
    """Yield how good it is, a line each."""
    shown = found.errors[-1]
    yield f'friction: {found.terms}'
    if shown.role == 'training':
        best = min((each.relative_error for each in found.candidates), default=float('nan'))
        yield f'cross-validated error of the best friction: {best:.1%}'
    yield f'rms error on the last {shown.role} motion, of each joint:'
    yield f'{"":24}{"torque":>9}{"URDF":>9}{"+friction":>10}{"identified":>11}'
    for k, name in enumerate(shown.joint_names):
        unit = 'N' if found.model.dh.prismatic[k] else 'N m'
        yield (
            f'{name!r:24}{shown.torque[k]:9.3g}{shown.urdf[k]:9.3g}'
            f'{shown.urdf_friction[k]:10.3g}{shown.identified[k]:11.3g} {unit}'
        )
    relative = [shown.relative(name) for name in MODELS]
    yield f'{"all":24}{"":9}{relative[0]:9.1%}{relative[1]:10.1%}{relative[2]:11.1%}'
    measured = sum(each.is_measured for each in found.parameters)
    yield f"{measured} of {len(found.parameters)} parameters are measured, the rest the URDF's"
