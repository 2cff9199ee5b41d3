# SPDX-License-Identifier: Apache-2.0
"""What is made of an arm: ``report``, ``export``."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import click

from robodyn_ros.commands.arm_options import (
    OUTPUT_FILE,
    ChosenArm,
    arm_options,
    cutoff_option,
    examples,
    in_a_folder_that_is_there,
    motion_topic_option,
    rotor_inertia_option,
)
from robodyn_ros.commands.progress import progress_bar


@click.command(
    epilog=examples(
        'robodyn report urdf/puma560.urdf -o puma560.html',
        'robodyn report arm.urdf --motion recording.mcap --cutoff 5',
    )
)
@arm_options
@rotor_inertia_option
@click.option(
    '-o',
    '--output',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    default='report.html',
    show_default=True,
    help='One HTML file that needs nothing else.',
)
@click.option(
    '--motion',
    type=click.Path(path_type=Path),
    help="CSV file or bag to show torques along; not given: a motion within the arm's limits.",
)
@motion_topic_option
@cutoff_option
@click.option(
    '--error',
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help='Fraction of itself that a coefficient of the simplified model may be wrong by.',
)
def report(
    arm: ChosenArm,
    output: Path,
    motion: Path | None,
    topic: str | None,
    cutoff: float | None,
    error: float,
    as_json: bool,
) -> None:
    """Write everything that is known about an arm into one HTML file."""
    from robodyn_ros.commands.motion import motion_of_file
    from robodyn_ros.report import STEPS, arm_facts, report_page

    model = arm.model
    given = motion_of_file(model, motion, topic, cutoff) if motion else None
    steps = count(1)
    with progress_bar(is_hidden=as_json, width=32) as show:

        def show_step(step: str) -> None:
            show(next(steps) / (len(STEPS) + 1), step)

        facts = arm_facts(
            arm.chain,
            model,
            title=arm.title,
            motion=given,
            simplification_error=error,
            source=arm.provenance,
            on_step=show_step,
        )
        show_step('drawing')
        page = report_page(facts)
    output.write_text(page, encoding='utf-8')
    if as_json:
        click.echo(json.dumps({'file': str(output), **facts.summary()}, indent=2, allow_nan=False))
    else:
        click.echo(f'{output}: {len(page.encode()) / 1024:.0f} kB, {facts.seconds:.0f} s')


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
