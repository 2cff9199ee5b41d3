# SPDX-License-Identifier: Apache-2.0
"""Analysis of an arm's model, as the papers tabulate it: ``structure``, ``ratios``, ``split``."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np

from robodyn_ros.analysis import design_guidelines, inertial_characteristics, split_along
from robodyn_ros.analysis.ratios import largest_ratios, telling_map
from robodyn_ros.commands.motion import motion_of_file
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
from robodyn_ros.motions import example_motion


@click.command(
    epilog=examples('robodyn structure urdf/puma560.urdf', 'robodyn structure arm.urdf --json')
)
@arm_options
@click.option(
    '--tolerance',
    type=click.FloatRange(0, 1),
    default=1e-9,
    show_default=True,
    help='Fraction of what a coefficient could be that counts as zero; 1e-4 sees through axes '
    'at 1.5708.',
)
def structure(arm: ChosenArm, as_json: bool, tolerance: float) -> None:
    """
    Count the coefficients of an arm's model, and judge its design.

    Tables 2 and 3 of Tourassis and Neuman (1985): independent coefficients, those that are not
    zero everywhere, those that are constant; and the four guidelines.
    """
    found = inertial_characteristics(arm.model, tolerance=tolerance)
    guidelines = design_guidelines(arm.model, found)
    if as_json:
        record = {
            'structure': json.loads(found.to_json()),
            'guidelines': [json.loads(each.to_json()) for each in guidelines],
        }
        click.echo(json.dumps(record, indent=2, allow_nan=False))
        return
    click.echo(found)
    zero = [x.symbol for x in found.coefficients if not x.nonzero]
    click.echo(f'zero everywhere: {" ".join(zero) or "none"}\n')
    for each in guidelines:
        click.echo(each)


@click.command(
    epilog=examples(
        'robodyn ratios urdf/stanford.urdf',
        'robodyn ratios urdf/jpl_rrp.urdf --rotor-inertia joint1=0.953 --rotor-inertia '
        'joint2=2.193',
        'robodyn ratios urdf/jpl_rrp.urdf --map joint1 --by joint3 --over joint2 joint3 -o r2.csv',
    )
)
@arm_options
@rotor_inertia_option
@click.option('--map', 'joint', metavar='JOINT', help='Tabulate a ratio acting on this joint.')
@click.option('--by', metavar='JOINT', help='Of R, the joint that causes it; not given: gravity.')
@click.option(
    '--over',
    nargs=2,
    metavar='JOINT JOINT',
    help='The joints that move; not given: those that change it most.',
)
@click.option('--resolution', type=click.IntRange(2), default=61, show_default=True)
@click.option(
    '-o',
    '--output',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    help='CSV file for the map; not given: printed.',
)
def ratios(
    arm: ChosenArm,
    as_json: bool,
    joint: str | None,
    by: str | None,
    over: tuple[str, str] | None,
    resolution: int,
    output: Path | None,
) -> None:
    """
    Show what matters beside a joint's own inertia.

    R_ij = D_ij / D_ii, the acceleration of joint i that a unit acceleration of joint j stands for,
    and K_i = G_i / D_ii, the acceleration that gravity stands for (Bejczy 1974): the largest that
    scattered positions show, or with --map one of them over two joints.
    """
    if joint is None:
        if by or over or output:
            raise click.UsageError('--by, --over and --output belong to --map')
        found = largest_ratios(arm.model)
        click.echo(found.to_json(indent=2) if as_json else found)
        return
    table = telling_map(arm.model, joint, by, over, resolution=resolution)
    if as_json:
        text = table.to_json(indent=2) + '\n'
    else:
        units = (*table.position_units, table.unit)
        names = (*table.over, table.symbol)
        lines = [','.join(f'{name} [{unit}]' for name, unit in zip(names, units))]
        lines += [
            f'{a!r},{b!r},{value!r}'
            for a, row in zip(table.first, table.values)
            for b, value in zip(table.second, row)
        ]
        text = '\n'.join(lines) + '\n'
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding='utf-8')
        click.echo(f'{table.symbol} over {", ".join(table.over)} in {output}')


@click.command(
    epilog=examples(
        'robodyn split urdf/puma560.urdf',
        'robodyn split arm.urdf --motion recording.mcap --cutoff 5 --fraction 0.2',
    )
)
@arm_options
@click.option(
    '--motion',
    type=UserPath(),
    help="CSV file or bag; not given: one within the arm's limits.",
)
@motion_topic_option
@cutoff_option
@click.option(
    '--fraction',
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help='One part dominates where the other is at most this fraction of it.',
)
def split(
    arm: ChosenArm,
    as_json: bool,
    motion: Path | None,
    topic: str | None,
    cutoff: float | None,
    fraction: float,
) -> None:
    """
    Split inertia into translation and rotation, along a motion.

    Of inertia and Coriolis torques, what the motion of the centres of mass takes, and what the
    rotation about them takes (Fu,
    Gonzalez and Lee 1987, 3.4.1): where one dominates, the other may be left out.
    """
    model = arm.model
    given = motion_of_file(model, motion, topic, cutoff) if motion else example_motion(model)
    found = split_along(model, given.q, given.qd, fraction=fraction)
    if as_json:
        click.echo(found.to_json(indent=2))
        return
    click.echo(f'{"":8}{"translation":>12}{"rotation":>12}')
    for x in (*found.inertia, *found.coriolis):
        sizes = [np.abs(part).max() for part in (x.translational, x.rotational)]
        numbers = ''.join(f'{size if size > 1e-15 else 0.0:12.3g}' for size in sizes)
        click.echo(f'{x.symbol:8}{numbers} {x.unit:7} {x.dominant}')
