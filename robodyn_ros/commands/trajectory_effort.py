# SPDX-License-Identifier: Apache-2.0
"""A joint trajectory with the model's torque in its points: ``torque --trajectory``."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import numpy as np

from robodyn_ros.control.feedforward_efforts import (
    ERROR_FRACTION,
    FeedforwardSettings,
    FeedforwardTrajectory,
    with_feedforward_efforts,
)
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.dynamics import Method, inverse_dynamics
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.motions.trajectory_yaml import (
    TrajectoryRows,
    trajectory_as_yaml,
    trajectory_of_yaml,
)
from robodyn_ros.spatial import FloatArray


def write_trajectory_with_effort(
    model: RobotModel,
    path: Path,
    output: Path | None,
    *,
    as_json: bool,
    method: Method,
    friction: bool,
    error_bound: float | None,
) -> None:
    """Fill the trajectory of a YAML file, and say what was done to it on standard error."""
    trajectory = Trajectory.from_points(*trajectory_of_yaml(path))
    torque = replace(
        ReferenceTorque.of(model, ControlSettings(terms_friction=friction)),
        inverse_dynamics=partial(inverse_dynamics, model, method=method),
    )
    filled = with_feedforward_efforts(trajectory, torque, _settings(model, error_bound))
    rows = rows_of(filled.trajectory)
    text = json.dumps(_record(model, filled, rows)) + '\n' if as_json else trajectory_as_yaml(rows)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding='utf-8')
        units = ['N' if prismatic else 'N m' for prismatic in model.dh.prismatic]
        for name, unit, peak, error in zip(
            model.joint_names, units, filled.largest_torque, filled.largest_error, strict=True
        ):
            click.echo(f'{name!r}: at most {peak:.4g} {unit}, interpolated within {error:.2g}')
        click.echo(f'{len(rows.times)} points, {filled.inserted} of them new, in {output}')
    for note in filled.notes:
        click.echo(note, err=True)


def rows_of(trajectory: Trajectory) -> TrajectoryRows:
    """Return what a message says of a trajectory: nothing where it is NaN."""

    def known(rows: FloatArray) -> list[list[float]]:
        return [row.tolist() if np.isfinite(row).all() else [] for row in rows]

    return TrajectoryRows(
        trajectory.joint_names,
        trajectory.times.tolist(),
        known(trajectory.positions),
        known(trajectory.velocities),
        known(trajectory.accelerations),
        trajectory.efforts.tolist(),
    )


def _settings(model: RobotModel, error_bound: float | None) -> FeedforwardSettings:
    limits = known_effort_limits(model)
    if error_bound is not None:
        bound = np.full(model.n, error_bound)
    else:
        bound = ERROR_FRACTION * limits
        for name, limit in zip(model.joint_names, limits, strict=True):
            if not np.isfinite(limit):
                raise click.UsageError(
                    f'joint {name!r} has no effort limit: --error-bound says how far the torque '
                    'between two points may be off'
                )
    return FeedforwardSettings(limits, bound, np.ones(model.n))


def _record(
    model: RobotModel, filled: FeedforwardTrajectory, rows: TrajectoryRows
) -> dict[str, object]:
    names = ('positions', 'velocities', 'accelerations', 'effort')
    return {
        'joint_names': list(rows.joint_names),
        'time': list(rows.times),
        **{name: list(values) for name, values in zip(names, rows[2:], strict=True)},
        'inserted': filled.inserted,
        'largest_error': dict(zip(model.joint_names, filled.largest_error.tolist())),
        'largest_torque': dict(zip(model.joint_names, filled.largest_torque.tolist())),
        'notes': list(filled.notes),
    }
