# SPDX-License-Identifier: Apache-2.0
"""Analysis of an arm's model, as the papers tabulate it: ``structure``, ``ratios``, ``split``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from robodyn_ros.analysis import design_guidelines, inertial_characteristics, split_along
from robodyn_ros.analysis.ratios import largest_ratios, telling_map
from robodyn_ros.commands.motion import motion_of_file
from robodyn_ros.commands.options import (
    Answer,
    ArmWithRotors,
    ChosenArm,
    Fraction,
    OutputText,
    command,
)
from robodyn_ros.motions import example_motion


@command('robodyn structure urdf/puma560.urdf', 'robodyn structure arm.urdf --json')
def structure(arm: ChosenArm, *, tolerance: Fraction = 1e-9) -> Answer:
    """
    Count the coefficients of an arm's model, and judge its design.

    Tables 2 and 3 of Tourassis and Neuman (1985): independent coefficients, those that are not
    zero everywhere, those that are constant; and the four guidelines.

    Parameters
    ----------
    tolerance :
        Fraction of what a coefficient could be that counts as zero; 1e-4 sees through axes at
        1.5708.
    """
    found = inertial_characteristics(arm.model, tolerance=tolerance)
    guidelines = design_guidelines(arm.model, found)
    zero = [x.symbol for x in found.coefficients if not x.nonzero]
    return Answer(
        {'structure': found, 'guidelines': guidelines},
        [str(found), f'zero everywhere: {" ".join(zero) or "none"}\n', str(guidelines)],
    )


@command(
    'robodyn ratios urdf/stanford.urdf',
    'robodyn ratios urdf/jpl_rrp.urdf --rotor-inertia joint1=0.953 --rotor-inertia joint2=2.193',
    'robodyn ratios urdf/jpl_rrp.urdf --map joint1 --by joint3 --over joint2 joint3 -o r2.csv',
)
def ratios(
    arm: ArmWithRotors,
    *,
    map_: str | None = None,
    by: str | None = None,
    over: tuple[str, str] | None = None,
    resolution: Annotated[int, click.IntRange(2)] = 61,
    output: OutputText | None = None,
) -> Answer:
    """
    Compare coupling and gravity with each joint's own inertia.

    R_ij = D_ij / D_ii, the acceleration of joint i that a unit acceleration of joint j stands for,
    and K_i = G_i / D_ii, the acceleration that gravity stands for (Bejczy 1974): the largest that
    scattered positions show, or with --map one of them over two joints.

    Parameters
    ----------
    map_ : JOINT
        Tabulate a ratio of this joint.
    by : JOINT
        Joint whose acceleration acts, for R; default: gravity acts, for K.
    over : JOINT JOINT
        Joints that move; default: those that change the ratio most.
    resolution :
        Number of positions of each of them.
    output :
        CSV file for the map; default: print it.
    """
    if map_ is None:
        if by or over or output:
            raise click.UsageError('--by, --over and --output belong to --map')
        found = largest_ratios(arm.model)
        return Answer(found, [str(found)])
    table = telling_map(arm.model, map_, by, over, resolution=resolution)
    names, units = (*table.over, table.symbol), (*table.position_units, table.unit)
    lines = [','.join(f'{name} [{unit}]' for name, unit in zip(names, units))]
    lines += [
        f'{a!r},{b!r},{value!r}'
        for a, row in zip(table.first, table.values)
        for b, value in zip(table.second, row)
    ]
    about = f'{table.symbol} over {", ".join(table.over)} in {output}'
    return Answer(table, lines, output=output, about_output=[about])


@command(
    'robodyn split urdf/puma560.urdf',
    'robodyn split arm.urdf --motion recording.mcap --cutoff 5 --fraction 0.2',
)
def split(
    arm: ChosenArm,
    *,
    motion: Path | None = None,
    topic: str | None = None,
    cutoff: float | None = None,
    fraction: Fraction = 0.1,
) -> Answer:
    """
    Split inertia into translation and rotation, along a motion.

    Inertia and Coriolis torques are the sum of a part for the motion of the centres of mass and a
    part for the rotation about them (Fu, Gonzalez and Lee 1987, 3.4.1). Where one dominates, the
    other can be neglected.

    Parameters
    ----------
    fraction :
        A part dominates if the other is at most this fraction of it.
    """
    model = arm.model
    given = motion_of_file(model, motion, topic, cutoff) if motion else example_motion(model)
    found = split_along(model, given.q, given.qd, fraction=fraction)
    return Answer(found, [found.as_text()])
