# SPDX-License-Identifier: Apache-2.0
"""What the loop from a wrong URDF to an identified model came to: numbers, table, picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.identification import DriveTerms, Excitation, Identification, Recording
from robodyn_ros.identification.parameters import bare_base_parameters
from robodyn_ros.identification.prediction import prediction_states
from robodyn_ros.identification.rows import rows_of
from robodyn_ros.identification.training_data import TrainingData
from robodyn_ros.model import RobotModel
from robodyn_ros.simulation.sampled_arm import random_poses
from robodyn_ros.spatial import FloatArray, pseudo_inertia

_POSES = 500
_POSE_SEED = 11
_ROUNDING = 1e-9  # of the largest eigenvalue, where one is zero, as a disc's is
_URDF, _FOUND, _SQUARES = '#d55e00', '#0072b2', '#999999'


@dataclass(frozen=True, eq=False)
class Results:
    """
    What was run and found.

    Attributes
    ----------
    robot : str
    model, true : RobotModel
        As the URDF has it, and as the simulator did.
    found : Identification
    training, before, after : Recording
        Of the motion to identify by, and of the new one by the URDF and as identified.
    asked : Excitation
        The new motion.
    starts : tuple of float
        Stamps at which it began, before and after [s].
    seconds : float
        That everything took.
    """

    robot: str
    model: RobotModel
    true: RobotModel
    found: Identification
    training: Recording
    before: Recording
    after: Recording
    asked: Excitation
    starts: tuple[float, float]
    seconds: float


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """
    Base parameters and drive terms by ordinary least squares: no prior, no bodies.

    Attributes
    ----------
    columns : tuple of int
        Of the links' parameters that are base parameters.
    values : array, shape (count + 4 n,)
    """

    columns: tuple[int, ...]
    values: FloatArray

    @classmethod
    def fitted(cls, model: RobotModel, recording: Recording) -> LeastSquares:
        """Return the fit to all rows of a recording in which joints move."""
        columns = bare_base_parameters(model).columns
        rows, efforts = [], []
        for each in TrainingData.of(model, [recording]).rows(model, np.ones(model.n)):
            wide = _wide(each.inertial[..., columns], each.drive(DriveTerms()))
            rows.append(wide[each.used])
            efforts.append(each.effort[each.used])
        solution = np.linalg.lstsq(np.concatenate(rows), np.concatenate(efforts), rcond=None)[0]
        return cls(columns, solution)

    def relative_error(self, model: RobotModel, recording: Recording, cutoff: float) -> float:
        """Return |predicted - measured| / |measured| on a recording, both low-passed."""
        squares = np.zeros(2)
        for states in prediction_states(recording, cutoff)[0]:
            each = rows_of(model, states, np.ones(model.n))
            wide = _wide(each.inertial[..., self.columns], each.drive(DriveTerms()))
            error = wide @ self.values - each.effort
            squares += (error**2).sum(), (each.effort**2).sum()
        return float(np.sqrt(squares[0] / squares[1]))

    def bodies(self, model: RobotModel) -> RobotModel:
        """Return the model with these base parameters; its links are none that can exist."""
        base = bare_base_parameters(model)
        parameters = base.to_inertial_parameters(self.values[: base.count])
        return model.with_inertial_parameters(parameters)


def _wide(base: FloatArray, drive: FloatArray) -> FloatArray:
    """Return rows (K, n, count + 4 n): a joint's drive columns stand at its own place."""
    count, n, terms = drive.shape
    placed = np.zeros((count, n, n, terms))
    placed[:, np.arange(n), np.arange(n)] = drive
    return np.concatenate([base, placed.reshape(count, n, n * terms)], axis=-1)


def tracking_error(results: Results, recording: Recording, start: float) -> FloatArray:
    """Return asked minus measured positions (N, n) while the new motion runs [rad or m]."""
    time = recording.time - start
    inside = (time >= 0.0) & (time <= results.asked.duration)
    asked, _, _ = results.asked.states(time[inside])
    return asked - recording.position[inside]


def gravity_error(model: RobotModel, true: RobotModel) -> float:
    """Return the error of gravity torques over their size, in random poses."""
    q = random_poses(true, np.random.default_rng(_POSE_SEED), _POSES)
    expected = gravity_torque(true, q)
    return float(
        np.linalg.norm(gravity_torque(model, q) - expected)
        / max(float(np.linalg.norm(expected)), 1e-12)
    )


def impossible_bodies(model: RobotModel) -> int:
    """Return how many links have a mass and an inertia that no body can have."""
    least, *_, largest = np.linalg.eigvalsh(pseudo_inertia(model.inertial_parameters)).T
    return int((least < -_ROUNDING * np.abs(largest)).sum())


def summary(results: Results) -> dict[str, Any]:
    """
    Return the numbers for ``summary.json``.

    Torque errors are relative, on the new motion as it was run by the URDF. Keys in ``_rad`` are
    over revolute joints, and None where there is none; the same in ``_m`` over prismatic ones.
    ``impossible_bodies`` are of the links as a URDF would have them: what least squares find of
    the base parameters, the others zero. ``seconds`` depends on the machine, nothing else does.
    """
    errors = results.found.errors[-1]
    squares = LeastSquares.fitted(results.model, results.training)
    fitted = squares.bodies(results.model)
    numbers: dict[str, Any] = {
        'robot': results.robot,
        'torque_error_before': errors.relative('urdf'),
        'torque_error_after': errors.relative('identified'),
        'torque_error_least_squares': squares.relative_error(
            results.model, results.before, results.found.cutoff
        ),
        'gravity_error_before': gravity_error(results.model, results.true),
        'gravity_error_after': gravity_error(results.found.model, results.true),
        'gravity_error_least_squares': gravity_error(fitted, results.true),
        'impossible_bodies_before': impossible_bodies(results.model),
        'impossible_bodies_after': impossible_bodies(results.found.model),
        'impossible_bodies_least_squares': impossible_bodies(fitted),
    }
    for unit, joints in kinds(results.model).items():
        for name, recording, start in (
            ('before', results.before, results.starts[0]),
            ('after', results.after, results.starts[1]),
        ):
            error = tracking_error(results, recording, start)[:, joints]
            value = float(np.sqrt((error**2).mean())) if joints.any() else None
            numbers[f'tracking_rms_{name}_{unit}'] = value
    numbers['friction'] = str(results.found.terms)
    numbers['seconds'] = results.seconds
    return numbers


def kinds(model: RobotModel) -> dict[str, np.ndarray]:
    """Return which joints have positions in which unit; radians always."""
    units = {'rad': ~model.dh.prismatic}
    if model.dh.prismatic.any():
        units['m'] = model.dh.prismatic
    return units


def tables(results: Results, numbers: Mapping[str, Any]) -> list[Table]:
    """Return the numbers as tables for a terminal."""
    table = Table(title=f'{results.robot}: a new motion, before and after')
    for head in ('', 'URDF', 'least squares', 'identified'):
        table.add_column(head, justify='right' if head else 'left')
    for label, key in (('torque error', 'torque'), ('gravity error', 'gravity')):
        row = (numbers[f'{key}_error_{name}'] for name in ('before', 'least_squares', 'after'))
        table.add_row(label, *(f'{value:.2%}' for value in row))
    counts = (
        numbers[f'impossible_bodies_{name}'] for name in ('before', 'least_squares', 'after')
    )
    table.add_row('links no body can be', *(f'{count} of {results.model.n}' for count in counts))
    for unit in kinds(results.model):
        before, after = (numbers[f'tracking_rms_{name}_{unit}'] for name in ('before', 'after'))
        if before is not None:
            table.add_row('tracking, RMS', f'{before:.2e} {unit}', '', f'{after:.2e} {unit}')
    table.caption = f'{numbers["friction"]}; {numbers["seconds"]:.0f} s'
    return [table]


def save_plot(results: Results, path: Path) -> None:
    """Draw the torque of the joint that the URDF errs most about, and the tracking errors."""
    prediction = results.found.predict(results.before)
    errors = results.found.errors[-1]
    joint = int(np.argmax(errors.urdf / np.maximum(errors.torque, 1e-12)))
    figure = Figure(figsize=(12, 5.5), dpi=140, facecolor='white', layout='constrained')
    left, right = figure.subplots(1, 2)
    time = prediction.time - results.starts[0]
    unit = 'N' if results.model.dh.prismatic[joint] else 'N m'
    left.plot(time, prediction.measured[:, joint], color='black', linewidth=1.6, label='measured')
    left.plot(time, _of_urdf(results, joint), color=_URDF, linewidth=1.2, label='URDF')
    left.plot(time, prediction.effort[:, joint], color=_FOUND, linewidth=1.2, label='identified')
    left.set_ylabel(f'torque of q{joint + 1} [{unit}]')
    left.legend(frameon=False)
    for recording, start, color, label in (
        (results.before, results.starts[0], _URDF, 'URDF'),
        (results.after, results.starts[1], _FOUND, 'identified'),
    ):
        away = np.abs(tracking_error(results, recording, start)).max(axis=1)
        seconds = np.linspace(0.0, results.asked.duration, len(away))
        right.semilogy(seconds, np.maximum(away, 1e-7), color=color, linewidth=1.2, label=label)
    right.set_ylabel('largest tracking error [rad or m]')
    right.legend(frameon=False)
    for axes in (left, right):
        _style(axes)
    figure.suptitle(
        f'{results.robot}: torque on a new motion off by {errors.relative("urdf"):.0%} with the '
        f'URDF, by {errors.relative("identified"):.1%} once identified',
        fontsize=15,
    )
    figure.savefig(path)


def _of_urdf(results: Results, joint: int) -> FloatArray:
    """Return the URDF's torque of a joint at the times of a prediction."""
    columns = []
    for states in prediction_states(results.before, results.found.cutoff)[0]:
        rows = rows_of(results.model, states, np.ones(results.model.n))
        columns.append(rows.inertial @ results.model.inertial_parameters.ravel())
    rigid = np.concatenate(columns)[:, joint]
    times = results.found.predict(results.before).time
    own = np.concatenate(
        [s.row_time for s in prediction_states(results.before, results.found.cutoff)[0]]
    )
    return np.interp(times, own, rigid)


def _style(axes: Axes) -> None:
    axes.set_xlabel('time [s]')
    axes.grid(axis='y', color='#dddddd', linewidth=0.8)
    for side in ('top', 'right'):
        axes.spines[side].set_visible(False)
