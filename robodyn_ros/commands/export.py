# SPDX-License-Identifier: Apache-2.0
"""An arm's dynamics as C, and as the library that the controller loads: ``export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from robodyn_ros import __version__
from robodyn_ros.analysis import simplified_model
from robodyn_ros.commands.options import (
    ChosenArm,
    UserPath,
    arm_options,
    examples,
    rotor_inertia_option,
)
from robodyn_ros.compiled import USUAL, export_c, export_shared
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.identification import Identification


@click.command(
    epilog=examples(
        'robodyn export urdf/puma560.urdf --lang c -o generated',
        'robodyn export urdf/puma560.urdf --name puma --function gravity_torque -o generated',
        'robodyn export urdf/puma560.urdf --simplified 0.02 -o generated',
        'robodyn export urdf/puma560.urdf --shared --name puma -o generated',
    )
)
@arm_options
@rotor_inertia_option
@click.option('--lang', type=click.Choice(['c']), default='c', show_default=True)
@click.option(
    '-o',
    '--output',
    type=UserPath(file_okay=False),
    default='.',
    show_default=True,
    help='Folder, made where it is missing.',
)
@click.option(
    '--name', default='arm', show_default=True, help='Of the files and in front of the functions.'
)
@click.option(
    '--function',
    'functions',
    multiple=True,
    metavar='NAME',
    help='One of those to write, such as gravity_torque; not given: all but derivatives, '
    'linearization, Christoffel symbols and regressor.',
)
@click.option(
    '--simplified',
    type=click.FloatRange(0, 1),
    metavar='ERROR',
    help='Write the model in the terms that matter: the fraction of itself that a coefficient may '
    'be wrong by, as 0.02.',
)
@click.option(
    '--shared',
    is_flag=True,
    help='Compile a shared library that robodyn_controllers loads; payload and gravity stay '
    'inputs.',
)
@click.option(
    '--identified',
    type=UserPath(dir_okay=False),
    help="YAML that robodyn identify wrote: its bodies and friction instead of the URDF's.",
)
def export(
    arm: ChosenArm,
    lang: str,
    output: Path,
    name: str,
    functions: tuple[Any, ...],  # text, checked by what writes them
    simplified: float | None,
    shared: bool,
    identified: Path | None,
    as_json: bool,
) -> None:
    """Write an arm's dynamics as plain C99, with a self-test."""
    if shared and (simplified is not None or functions):
        raise InvalidArgument(
            '--shared', 'with --simplified or --function', 'one of them: a library has it all'
        )
    model = arm.model
    if identified is not None:
        model = Identification.load(identified).applied_to(model)
    if shared:
        paths = export_shared(model, output, name=name, generator=f'robodyn_ros {__version__}')
        then = f'It has passed its self-test. model_library: {paths[0].resolve()}'
    else:
        if simplified is None:
            paths = export_c(model, output, name=name, kernels=functions or USUAL)
        else:
            few = simplified_model(model, simplified)
            paths = few.export_c(output, name=name, functions=functions)
        then = f'Test it: cc -O2 {paths[1]} {paths[2]} -lm -o {name}_test && ./{name}_test'
    if as_json:
        click.echo(json.dumps({'files': [str(path) for path in paths]}, indent=2))
        return
    for path in paths:
        click.echo(path)
    click.echo(then)
