# SPDX-License-Identifier: Apache-2.0
"""A motion to identify an arm by: ``excite``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from robodyn_ros.commands.options import (
    OUTPUT_FILE,
    ChosenArm,
    arm_options,
    examples,
    in_a_folder_that_is_there,
    number_or_null,
)
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.control.trajectory import MOST_POINTS
from robodyn_ros.errors import NoBackend, NoSolution
from robodyn_ros.identification import Box, Excitation, HalfSpace, excitation, motion_limits
from robodyn_ros.model import RobotModel
from robodyn_ros.motions import MotionSamples, table_as_csv
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows, trajectory_as_yaml
from robodyn_ros.report.drawing import imported_matplotlib
from robodyn_ros.report.excitation_plot import save_excitation_plot
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.simulation.closed_loop import simulated_motion
from robodyn_ros.spatial import FloatArray

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
    imported_matplotlib()  # its absence is said before the work
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
        run = None if no_dry_run else _dry_run(arm, motion)

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
        click.echo(json.dumps(_record(model, found, run), indent=2, allow_nan=False))
        return
    for line in _warnings(found, run):
        click.echo(line, err=True)
    for line in _summary(model, found, run):
        click.echo(line)
    for path in (output, trajectory, picture):
        click.echo(path)


@dataclass(frozen=True, eq=False)
class _DryRun:
    """
    What MuJoCo made of a motion under computed torque.

    Attributes
    ----------
    problem : str
        Why there was none; empty where there was, and then the arrays (n,) are filled.
    effort : array, shape (n,)
        Largest torque [N m or N].
    limit : array, shape (n,)
        The URDF's [N m or N].
    error : array, shape (n,)
        Largest tracking error [rad or m].
    """

    problem: str
    effort: FloatArray
    limit: FloatArray
    error: FloatArray


def _dry_run(arm: ChosenArm, motion: MotionSamples) -> _DryRun:
    """Return what MuJoCo makes of a motion under computed torque."""
    model, nothing = arm.model, np.zeros(0)
    try:
        simulation = ArmSimulation(arm.chain, gravity=model.gravity)
        did = simulated_motion(simulation, model, motion)
    except (NoBackend, NoSolution) as error:
        return _DryRun(str(error), nothing, nothing, nothing)
    return _DryRun(
        '',
        np.abs(did.torque).max(axis=0),
        known_effort_limits(model),
        np.abs(did.error).max(axis=0),
    )


def _record(model: RobotModel, found: Excitation, run: _DryRun | None) -> dict[str, Any]:
    """Return what was found as JSON can hold it."""
    ran = run is not None and not run.problem
    return {
        'joint_names': found.joint_names,
        'duration': found.duration,
        'seed': found.seed,
        'information_nat': found.criterion,
        'clearance_m': number_or_null(found.clearance),
        'joints': [
            {
                'name': name,
                'position_limits': found.limits.position[j].tolist(),
                'position': _of_all(found, 'position', j),
                'velocity_limit': float(found.limits.velocity[j]),
                'velocity': _of_all(found, 'velocity', j),
                'effort_limit': number_or_null(float(found.limits.effort[j])),
                'effort': _of_all(found, 'effort', j),
                'dry_run_effort': float(run.effort[j]) if run and ran else None,
                'dry_run_error': float(run.error[j]) if run and ran else None,
            }
            for j, name in enumerate(found.joint_names)
        ],
        'dry_run_problem': run.problem if run else None,
        'parameters': [
            {
                'name': each.name,
                'element': each.element,
                'unit': each.unit,
                'value': each.value,
                'expected_deviation': each.deviation,
                'prior_deviation': each.prior_deviation,
                'is_measured': each.is_measured,
            }
            for each in found.parameters
        ],
        'findings': [each.as_dict() for each in found.findings],
    }


def _warnings(found: Excitation, run: _DryRun | None) -> Iterator[str]:
    """Yield what to know before the arm makes it, a line each."""
    for each in found.findings:
        if each.code == 'not_excited':
            continue
        yield f'{"Warning" if each.level == "warning" else "Note"}: {each}'
    if run is not None and run.problem:
        yield f'Warning: no dry run in MuJoCo: {run.problem}'


def _summary(model: RobotModel, found: Excitation, run: _DryRun | None) -> Iterator[str]:
    """Yield what the motion asks of the arm and what it will tell, a line each."""
    ran = run is not None and not run.problem
    yield f'{found.duration:.4g} s, seed {found.seed}; at most, of the limits it was made for:'
    head = f'{"":24}{"position":>9}{"velocity":>9}{"effort":>8}'
    yield head + (f'{"in MuJoCo, of the URDF":>26}{"error":>11}' if ran else '')
    for j, name in enumerate(found.joint_names):
        lower, upper = found.limits.position[j]
        low, high = _of_all(found, 'position', j)
        reach = max(abs(low - (lower + upper) / 2), abs(high - (lower + upper) / 2))
        speed = _of_all(found, 'velocity', j) / found.limits.velocity[j]
        effort = _of_all(found, 'effort', j) / found.limits.effort[j]
        line = f'{name!r:24}{reach / ((upper - lower) / 2):9.0%}{speed:9.0%}'
        line += f'{effort:8.0%}' if np.isfinite(found.limits.effort[j]) else f'{"-":>8}'
        if run is not None and ran:
            unit, length = ('N', 'm') if model.dh.prismatic[j] else ('N m', 'rad')
            part = run.effort[j] / run.limit[j]
            shown = f'{part:.0%}' if np.isfinite(run.limit[j]) else 'no limit'
            line += f'{run.effort[j]:12.4g} {unit:3} {shown:>9}{run.error[j]:8.1e} {length}'
        yield line
    if np.isfinite(found.clearance):
        yield f'comes no closer than {found.clearance:.3g} m to what it was kept out of'
    measured = [each for each in found.parameters if each.is_measured]
    known = sum(each.is_well_known for each in measured)
    yield (
        f'{len(measured)} of {len(found.parameters)} parameters will be measured, {known} of them '
        "within a tenth; of the others the URDF's word remains"
    )


def _of_all(found: Excitation, name: str, joint: int) -> Any:
    """Return what all segments together use of a joint's limit; of positions, their range."""
    used = np.stack([getattr(each, name)[joint] for each in found.use])
    if name == 'position':
        return [float(used[:, 0].min()), float(used[:, 1].max())]
    return float(used.max())
