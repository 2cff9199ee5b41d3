# SPDX-License-Identifier: Apache-2.0
"""From recordings to a model that is true: ``identify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from robodyn_ros.commands.arm_options import ChosenArm, arm_options, examples
from robodyn_ros.errors import RepeatedMotion
from robodyn_ros.identification import Identification, Recording, identify
from robodyn_ros.identification.comparison import MODELS
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.bag import BAG_SUFFIXES

_FILES = ('identified.urdf', 'identified.yaml', 'identified.json', 'identified.html')


@click.command(
    'identify',
    epilog=examples(
        'robodyn identify arm.urdf motion.mcap --validate other.mcap -o identified/',
        'robodyn identify arm.urdf one.csv two.csv --effort-scale 11.5 --base base_link',
    ),
)
@arm_options
@click.argument(
    'recordings', type=click.Path(path_type=Path, exists=True), nargs=-1, required=True
)
@click.option(
    '--validate',
    'validation',
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    help='Recording of another motion, for errors that are held out.',
)
@click.option('--topic', help='Of bags; not given: the one that names the joints.')
@click.option(
    '--effort-scale',
    'effort_scale',
    type=float,
    multiple=True,
    metavar='FACTOR',
    help='Torque for a unit of the recorded effort, as N m/A: one, or one for each joint.',
)
@click.option(
    '-o',
    '--output',
    type=click.Path(path_type=Path, file_okay=False),
    default='identified',
    show_default=True,
    help='Folder, made where it is missing.',
)
def identify_command(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    validation: tuple[Path, ...],
    topic: str | None,
    effort_scale: tuple[float, ...],
    output: Path,
    as_json: bool,
) -> None:
    """
    Find the masses, inertias and friction that an arm's own drives report.

    RECORDINGS are ROS bags with joint states, or CSV files with the columns time, NAME,
    NAME.velocity and NAME.effort. Writes the URDF with other inertials and friction, the
    identified model as YAML and JSON, and a page that shows how good it is, and what is not known.
    """
    model = arm.model
    training = [recording_of_file(path, model, topic) for path in recordings]
    held_out = [recording_of_file(path, model, topic) for path in validation]
    console = Console(stderr=True)
    columns = (TextColumn('{task.description:24}'), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=as_json) as progress:
        task = progress.add_task('', total=1.0)
        found = identify(
            model,
            training,
            validation=held_out,
            effort_scale=_scale(effort_scale),
            progress=lambda done, what: progress.update(task, completed=done, description=what),
        )
        _refuse_repetition(found, validation)
        progress.update(task, description='drawing')
        _write(found, arm, (held_out or training)[-1], output)
    if as_json:
        click.echo(json.dumps(_record(found), indent=2, allow_nan=False))
        return
    _say(found, validation)
    for name in _FILES:
        click.echo(output / name)


def recording_of_file(path: Path, model: RobotModel, topic: str | None) -> Recording:
    """Return the recording in a CSV file or a bag."""
    if path.is_dir() or path.suffix in BAG_SUFFIXES:
        return Recording.from_bag(path, model, topic)
    return Recording.from_csv(path, model)


def _scale(factors: tuple[float, ...]) -> Any:
    if not factors:
        return None
    return factors[0] if len(factors) == 1 else list(factors)


def _refuse_repetition(found: Identification, validation: tuple[Path, ...]) -> None:
    held_out = [each for each in found.errors if each.role == 'validation']
    for path, errors in zip(validation, held_out, strict=True):
        if errors.repeats_training:
            raise RepeatedMotion(
                '--validate', str(path), 'a motion that the model is not identified from'
            )


def _write(found: Identification, arm: ChosenArm, shown: Recording, output: Path) -> None:
    from robodyn_ros.report import identification_page

    output.mkdir(parents=True, exist_ok=True)
    urdf, yaml, record, page = (output / name for name in _FILES)
    found.to_urdf(arm.source, urdf)
    found.save(yaml)
    text = json.dumps(_record(found), indent=2, allow_nan=False)
    record.write_text(text + '\n', encoding='utf-8')
    page.write_text(identification_page(found, shown, title=arm.title), encoding='utf-8')


def _record(found: Identification) -> dict[str, Any]:
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


def _say(found: Identification, validation: tuple[Path, ...]) -> None:
    for each in found.findings:
        if each.level == 'warning':
            click.echo(f'Warning: {each}', err=True)
    if not validation:
        click.echo(
            'No validation motion was given (--validate): judged by blocked cross-validation.',
            err=True,
        )
        best = min((each.relative_error for each in found.candidates), default=float('nan'))
        click.echo(f'cross-validated error of the best friction: {best:.1%}')
    shown = found.errors[-1]
    click.echo(f'friction: {found.terms}')
    click.echo(f'rms error on the last {shown.role} motion, of the joint torque:')
    click.echo(f'{"":24}{"torque":>9}{"URDF":>9}{"+friction":>10}{"identified":>11}')
    for k, name in enumerate(shown.joint_names):
        unit = 'N' if found.model.dh.prismatic[k] else 'N m'
        click.echo(
            f'{name!r:24}{shown.torque[k]:9.3g}{shown.urdf[k]:9.3g}'
            f'{shown.urdf_friction[k]:10.3g}{shown.identified[k]:11.3g} {unit}'
        )
    relative = [shown.relative(name) for name in MODELS]
    click.echo(
        f'{"all, relative":24}{"":9}{relative[0]:9.1%}{relative[1]:10.1%}{relative[2]:11.1%}'
    )
    measured = sum(each.is_measured for each in found.parameters)
    click.echo(
        f"{measured} of {len(found.parameters)} parameters are measured, the others are the URDF's"
    )
