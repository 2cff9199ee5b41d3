# SPDX-License-Identifier: Apache-2.0
"""A motion to identify an arm by: ``excite``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import click
import numpy as np

from robodyn_ros.commands.drive_limits import limits_of, unknown
from robodyn_ros.commands.motion import columns_of
from robodyn_ros.commands.options import Answer, ChosenArm, OutputFile, PerJoint, command, lines_of
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.control.trajectory import MOST_POINTS
from robodyn_ros.errors import NoBackend, NoSolution
from robodyn_ros.identification import Box, Excitation, HalfSpace, excitation, motion_limits
from robodyn_ros.motions import MotionSamples, table_as_csv
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows, trajectory_as_yaml
from robodyn_ros.record import Record, table_of
from robodyn_ros.report.drawing import imported_matplotlib
from robodyn_ros.report.excitation_plot import save_excitation_plot
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.simulation.closed_loop import simulated_motion
from robodyn_ros.spatial import FloatArray

TRAJECTORY_RATE = 50.0
"""Most points a second of the trajectory; between two of them the node takes a quintic."""


@dataclass(frozen=True, eq=False, repr=False)
class _ExcitedJoint(Record):
    """
    What a motion asks of a joint, and what MuJoCo made of it under computed torque.

    Attributes
    ----------
    joint : str
    position_limits, position : array, shape (2,)
        [rad or m]
    velocity_limit, velocity : float
        [rad/s or m/s]
    effort_limit, effort : float
        Of which the first is NaN where there is none [N m or N].
    dry_run_effort : float
        Largest torque, NaN where there was none [N m or N].
    dry_run_share : float
        It in parts of the URDF's limit.
    dry_run_error : float
        Largest tracking error [rad or m].
    """

    joint: str
    position_limits: FloatArray
    position: FloatArray
    velocity_limit: float
    velocity: float
    effort_limit: float
    effort: float
    dry_run_effort: float
    dry_run_share: float
    dry_run_error: float

    _keys = {'joint': 'name'}
    _columns = (
        *('joint', 'position_range_used', 'velocity_limit_used', 'effort_limit_used'),
        *('dry_run_effort', 'of_its_URDF_limit', 'dry_run_error'),
    )

    @property
    def position_range_used(self) -> str:
        reach = np.abs(self.position - self.position_limits.mean()).max()
        return f'{2.0 * reach / np.ptp(self.position_limits):.0%}'

    @property
    def velocity_limit_used(self) -> str:
        return f'{self.velocity / self.velocity_limit:.0%}'

    @property
    def effort_limit_used(self) -> str:
        return f'{self.effort / self.effort_limit:.0%}' if self.effort_limit > 0.0 else '-'

    @property
    def of_its_URDF_limit(self) -> str:
        return f'{self.dry_run_share:.0%}' if self.dry_run_share >= 0.0 else ''


@command(
    'robodyn excite arm.urdf -o motion.csv --floor 0 --tip-height 0.1',
    'robodyn excite arm.urdf -o motion.csv --duration 30 --box -0.2 0.4 0 0.2 0.6 1 --poses 8',
)
def excite(
    arm: ChosenArm,
    *,
    output: OutputFile = Path('motion.csv'),
    duration: float = 20.0,
    harmonics: int = 5,
    seed: int = 0,
    floor: float | None = None,
    box: tuple[tuple[float, float, float, float, float, float], ...] = (),
    watch: tuple[str, ...] = (),
    margin: float = 0.05,
    tip_height: float | None = None,
    velocity_scale: Annotated[float, click.FloatRange(0, 1, min_open=True)] = 1.0,
    acceleration: float | None = None,
    effort_limit: PerJoint = (),
    friction_motion: bool = False,
    poses: int = 0,
    no_dry_run: bool = False,
) -> Answer:
    """
    Compute an exciting motion, for identification.

    The motion is optimised for the estimate of masses, inertias and friction within the URDF's
    limits of position, velocity and effort. It goes from rest to rest and keeps links out of floor
    and boxes. Writes CSV, a JointTrajectory as YAML, and a picture; then runs it in MuJoCo.
    Collisions between links are not checked: look at the motion before an arm makes it.

    Parameters
    ----------
    output :
        CSV file; the trajectory (.yaml) and the picture (.png) go beside it.
    duration :
        Duration of the series [s].
    harmonics :
        Number of harmonics of the series.
    seed :
        Another motion for each.
    floor : HEIGHT
        Keep moving links above this height [m], along the base link's z.
    box : X Y Z X Y Z
        Keep moving links out of a box between two corners [m], in base link axes.
    watch : LINK
        Keep this link out of floor and boxes; default: every link that moves.
    margin :
        Distance from floor and boxes [m].
    tip_height : HEIGHT
        Least height of the tip [m].
    velocity_scale :
        Fraction of the speeds allowed by default, 80 % of the URDF's.
    acceleration : LIMIT
        Acceleration limit of every joint [rad/s² or m/s²]; default: the one that follows from the
        speeds.
    friction_motion :
        Append slow strokes.
    poses :
        Append this number of poses at rest.
    no_dry_run :
        Do not run it in MuJoCo.
    """
    imported_matplotlib()  # its absence is said before the work
    effort = limits_of(effort_limit, arm.model, '--effort-limit', arm.model.effort_limits)
    model, links = replace(arm.model, effort_limits=effort), watch or None
    obstacles: list[HalfSpace | Box] = [Box(each[:3], each[3:], watched=links) for each in box]
    if floor is not None:
        obstacles.append(HalfSpace((0.0, 0.0, 1.0), floor, links))
    limits = motion_limits(model, acceleration=acceleration)
    with progress_bar() as show:
        found = excitation(
            model,
            duration,
            harmonics=harmonics,
            limits=replace(limits, velocity=velocity_scale * limits.velocity),
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
        problem, torque, error = (None, None, None) if no_dry_run else _dry_run(arm, motion)

    names = columns_of(model, '', '.velocity', '.acceleration')
    trajectory, picture = output.with_suffix('.yaml'), output.with_suffix('.png')
    output.write_text(
        table_as_csv(names, motion.time, motion.q, motion.qd, motion.qdd), encoding='utf-8'
    )
    sampled = found.sampled(min(TRAJECTORY_RATE, (MOST_POINTS - 2) / found.duration))
    rows = TrajectoryRows.of_motion(model.joint_names, sampled)
    trajectory.write_text(trajectory_as_yaml(rows), encoding='utf-8')
    save_excitation_plot(model, found, picture, tuple(obstacles))
    joints = list(_joints(arm, found, torque, error))
    record = {
        'joint_names': found.joint_names,
        'duration': found.duration,
        'seed': found.seed,
        'information_nat': found.criterion,
        'clearance_m': found.clearance if np.isfinite(found.clearance) else None,
        'joints': joints,
        'dry_run_problem': problem,
        'parameters': [
            {
                **{name: getattr(each, name) for name in ('name', 'element', 'unit', 'value')},
                'expected_deviation': each.deviation,
                'prior_deviation': each.prior_deviation,
                'is_measured': each.is_measured,
            }
            for each in found.parameters
        ],
        'findings': found.findings,
    }
    said_below = ('not_excited', 'no_effort_limit')
    notes = [*lines_of(each for each in found.findings if each.code not in said_below)]
    notes += [
        f'Note: torque does not bound the motion: {what}; needed: {gives}'
        for what, gives in unknown(model)
    ]
    if problem:
        notes.append(f'Warning: no dry run in MuJoCo: {problem}')
    title = f'{found.duration:.4g} s, seed {found.seed}; at most, of the limits it was made for'
    table = table_of(joints, model.dh.prismatic, title)
    lines = [table.text(), *_words(found), *map(str, (output, trajectory, picture))]
    return Answer(record, lines, notes)


def _dry_run(
    arm: ChosenArm, motion: MotionSamples
) -> tuple[str, FloatArray | None, FloatArray | None]:
    """Return why MuJoCo did not run it, or the largest torques and errors of its joints."""
    try:
        simulation = ArmSimulation(arm.chain, gravity=arm.model.gravity)
        did = simulated_motion(simulation, arm.model, motion)
    except (NoBackend, NoSolution) as error:
        return str(error), None, None
    return '', np.abs(did.torque).max(axis=0), np.abs(did.error).max(axis=0)


def _joints(
    arm: ChosenArm, found: Excitation, torque: FloatArray | None, error: FloatArray | None
) -> Iterator[_ExcitedJoint]:
    """Yield what all segments together use of each joint's limits."""
    nothing, limits = np.full(len(found.joint_names), np.nan), found.limits
    ran, off = (nothing if each is None else each for each in (torque, error))
    efforts, drives = (
        np.where(np.isfinite(x), x, np.nan)
        for x in (limits.effort, known_effort_limits(arm.model))
    )
    velocity, effort = (
        np.max([getattr(each, name) for each in found.use], axis=0)
        for name in ('velocity', 'effort')
    )
    position = np.stack([each.position for each in found.use])
    reach = np.stack([position[..., 0].min(axis=0), position[..., 1].max(axis=0)], axis=1)
    columns = np.stack([limits.velocity, velocity, efforts, effort, ran, ran / drives, off])
    for name, lies, goes, numbers in zip(
        found.joint_names, limits.position, reach, columns.T.tolist()
    ):
        yield _ExcitedJoint(name, lies, goes, *numbers)


def _words(found: Excitation) -> Iterator[str]:
    """Yield how close it comes, and what it will tell."""
    if np.isfinite(found.clearance):
        yield f'comes no closer than {found.clearance:.3g} m to what it was kept out of'
    measured = [each for each in found.parameters if each.is_measured]
    known = sum(each.is_well_known for each in measured)
    yield (
        f'{len(measured)} of {len(found.parameters)} parameters will be measured, {known} of them '
        "within a tenth; the others keep the URDF's values"
    )
