# SPDX-License-Identifier: Apache-2.0
"""What is made of an arm: ``export``; ``report`` has a module of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from robodyn_ros.commands.arm_options import (
    ChosenArm,
    arm_options,
    examples,
    rotor_inertia_option,
)


@click.command(
    epilog=examples(
        'robodyn export urdf/puma560.urdf --lang c -o generated',
        'robodyn export urdf/puma560.urdf --name puma --function gravity_torque -o generated',
        'robodyn export urdf/puma560.urdf --simplified 0.02 -o generated',
    )
)
@arm_options
@rotor_inertia_option
@click.option('--lang', type=click.Choice(['c']), default='c', show_default=True)
@click.option(
    '-o',
    '--output',
    type=click.Path(path_type=Path, file_okay=False),
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
def export(
    arm: ChosenArm,
    lang: str,
    output: Path,
    name: str,
    functions: tuple[Any, ...],  # text, checked by what writes them
    simplified: float | None,
    as_json: bool,
) -> None:
    """Write an arm's dynamics as plain C99, with a self-test."""
    from robodyn_ros.analysis import simplified_model
    from robodyn_ros.compiled import USUAL, export_c

    model = arm.model
    if simplified is None:
        paths = export_c(model, output, name=name, kernels=functions or USUAL)
    else:
        few = simplified_model(model, simplified)
        paths = few.export_c(output, name=name, functions=functions)
    if as_json:
        click.echo(json.dumps({'files': [str(path) for path in paths]}, indent=2))
        return
    for path in paths:
        click.echo(path)
    click.echo(f'Test it: cc -O2 {paths[1]} {paths[2]} -lm -o {name}_test && ./{name}_test')
