# SPDX-License-Identifier: Apache-2.0
"""A motion to identify an arm by: ``excite``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from robodyn_ros.commands.arm_options import (
    OUTPUT_FILE,
    ChosenArm,
    arm_options,
    examples,
    in_a_folder_that_is_there,
)
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.control.trajectory import MOST_POINTS

TRAJECTORY_RATE = 50.0
"""Most points a second of the trajectory; between two of them the node takes a quintic."""


@click.command(
    'excite',
    epilog=examples(
        'robodyn excite arm.urdf -o motion.csv --floor 0 --tip-height 0.1',
        'robodyn excite arm.urdf -o motion.csv --duration 30 --box -0.2 0.4 0 0.2 0.6 1 --poses 8',
    ),
)
@arm_options
@click.option(
    '-o',
    '--output',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    default='motion.csv',
    show_default=True,
    help='CSV file; the trajectory (.yaml) and the picture (.png) go beside it.',
)
@click.option('--duration', type=float, default=20.0, show_default=True, help='Of the series [s].')
@click.option('--harmonics', type=int, default=5, show_default=True, help='Of the series.')
@click.option('--seed', type=int, default=0, show_default=True, help='Another motion for each.')
@click.option(
    '--floor',
    type=float,
    metavar='HEIGHT',
    help="Keep moving links above this height [m], along the base link's z.",
)
@click.option(
    '--box',
    'boxes',
    type=float,
    nargs=6,
    multiple=True,
    metavar='X Y Z X Y Z',
    help='Keep moving links out of a box between two corners [m], in base link axes.',
)
@click.option(
    '--watch',
    'watched',
    multiple=True,
    metavar='LINK',
    help='Keep this link out of floor and boxes; not given: every link that moves.',
)
@click.option(
    '--margin', type=float, default=0.05, show_default=True, help='Distance from those [m].'
)
@click.option('--tip-height', type=float, metavar='HEIGHT', help='Least height of the tip [m].')
@click.option(
    '--velocity-scale',
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=1.0,
    show_default=True,
    help='Part of the speeds that are allowed otherwise: 80 % of the URDF.',
)
@click.option(
    '--acceleration',
    type=float,
    metavar='LIMIT',
    help='Of every joint [rad/s² or m/s²]; not given: none but what follows from the speeds.',
)
@click.option('--friction-motion', is_flag=True, help='Append slow strokes.')
@click.option('--poses', type=int, default=0, help='Append so many poses to stand in.')
@click.option('--no-dry-run', is_flag=True, help='Do not run it in MuJoCo.')
def excite_command(
    arm: ChosenArm,
    output: Path,
    duration: float,
    harmonics: int,
    seed: int,
    floor: float | None,
    boxes: tuple[tuple[float, ...], ...],
    watched: tuple[str, ...],
    margin: float,
    tip_height: float | None,
    velocity_scale: float,
    acceleration: float | None,
    friction_motion: bool,
    poses: int,
    no_dry_run: bool,
    as_json: bool,
) -> None:
    """
    Make a motion that an arm can be identified by.

    It shows masses, inertias and friction as well as a motion can within the URDF's limits of
    position, velocity and effort, from rest to rest, and keeps links out of what is named. Writes
    CSV, a JointTrajectory as YAML, and a picture; then runs it in MuJoCo. Nothing keeps links from
    one another: look at the motion before an arm makes it.
    """
    # Imported here: it takes longer than most commands do.
    from robodyn_ros.commands import excitation_text as text
    from robodyn_ros.identification import Box, HalfSpace, excitation, motion_limits
    from robodyn_ros.motions import table_as_csv
    from robodyn_ros.motions.trajectory_yaml import TrajectoryRows, trajectory_as_yaml
    from robodyn_ros.report.excitation_plot import save_excitation_plot

    model = arm.model
    links = watched or None
    obstacles: list[HalfSpace | Box] = [Box(box[:3], box[3:], watched=links) for box in boxes]
    if floor is not None:
        obstacles.append(HalfSpace((0.0, 0.0, 1.0), floor, links))
    limits = motion_limits(model, acceleration=acceleration)
    limits = replace(limits, velocity=velocity_scale * limits.velocity)
    with progress_bar(is_hidden=as_json) as show:
        found = excitation(
            model,
            duration,
            harmonics=harmonics,
            limits=limits,
            obstacles=obstacles,
            margin=margin,
            tip_height=tip_height,
            friction_motion=friction_motion,
            poses=poses,
            seed=seed,
            progress=show,
        )
        motion = found.trajectory
        show(1.0, 'running it in MuJoCo')
        run = None if no_dry_run else text.dry_run(arm, motion)

    names = [
        f'{joint}{suffix}'
        for suffix in ('', '.velocity', '.acceleration')
        for joint in model.joint_names
    ]
    trajectory, picture = output.with_suffix('.yaml'), output.with_suffix('.png')
    output.write_text(
        table_as_csv(names, motion.time, motion.q, motion.qd, motion.qdd), encoding='utf-8'
    )
    sampled = found.sampled(min(TRAJECTORY_RATE, (MOST_POINTS - 2) / found.duration))
    rows = TrajectoryRows.of_motion(model.joint_names, sampled)
    trajectory.write_text(trajectory_as_yaml(rows), encoding='utf-8')
    save_excitation_plot(model, found, picture, tuple(obstacles))
    if as_json:
        click.echo(json.dumps(text.record(model, found, run), indent=2, allow_nan=False))
        return
    for line in text.warnings(found, run):
        click.echo(line, err=True)
    for line in text.summary(model, found, run):
        click.echo(line)
    for path in (output, trajectory, picture):
        click.echo(path)
