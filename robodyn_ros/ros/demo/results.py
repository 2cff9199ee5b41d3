# SPDX-License-Identifier: Apache-2.0
"""What the demonstration reports: errors, summary, table and plot, out of what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from robodyn_ros.motions.point_to_point import PointToPoint
from robodyn_ros.spatial import FloatArray

BoolArray = NDArray[np.bool_]

_SMALLEST_SHOWN = 1e-3
_LINE = 0.055  # height of a line of a label, with some room, in heights of the axes


@dataclass(frozen=True, eq=False)
class Recording:
    """
    What the joints did in one phase of the demonstration.

    Attributes
    ----------
    time : array, shape (N,)
        [s] of simulated time, after the beginning of what is judged.
    position : array, shape (N, n)
        [rad] or [m].
    commands, missed_cycles : int
        Torques that the arm took until the end of what is judged, and states that had to be sent
        again, which says something of the machine alone.
    """

    time: FloatArray
    position: FloatArray
    commands: int
    missed_cycles: int


@dataclass(frozen=True, eq=False)
class Results:
    """
    Everything that was recorded.

    Attributes
    ----------
    robot : str
        What the plot calls the arm.
    hold : Recording
        Gravity compensation alone.
    tracking : dict of str to Recording
        The motion under each control law of ``LAWS``.
    """

    robot: str
    joint_names: tuple[str, ...]
    prismatic: BoolArray
    motion: PointToPoint
    hold: Recording
    tracking: dict[str, Recording]


@dataclass(frozen=True)
class Law:
    """A control law of the comparison: how it is called, and drawn."""

    label: str
    short: str
    color: str


LAWS = {
    'pd': Law('PD alone', 'PD', '#d55e00'),
    'pd_gravity': Law('PD + gravity', 'PD + gravity', '#e69f00'),
    'computed_torque': Law('computed torque', 'computed\ntorque', '#0072b2'),
}


SMALLEST_FRACTION = 0.1
"""A joint that made less of its displacement did not move: its error says nothing of tracking."""


def hold_drift(results: Results) -> FloatArray:
    """Return how far each joint went from where it began (n,) [rad or m] while gravity is held."""
    position = results.hold.position
    return np.max(np.abs(position - position[0]), axis=0)


def tracking_error(results: Results, law: str) -> FloatArray:
    """Return desired minus measured position (N, n) [rad or m] over the motion."""
    recording = results.tracking[law]
    return results.motion.position(recording.time) - recording.position


def rms(error: FloatArray) -> float:
    """Return the root of the mean square over all samples and joints."""
    return float(np.sqrt(np.mean(error**2)))


def moved_joints(results: Results, law: str) -> BoolArray:
    """
    Return which joints, shape (n,), made a fraction of the displacement asked of them.

    A joint that Coulomb friction holds does not. One that is asked to stay counts as moved.
    """
    displacement = np.abs(results.motion.goal - results.motion.start)
    return np.ptp(results.tracking[law].position, axis=0) >= SMALLEST_FRACTION * displacement


def summary(results: Results) -> dict[str, Any]:
    """
    Return the numbers of the run, for ``summary.json``.

    Keys that end in ``_rad`` are over the revolute joints, and None where there is none; an arm
    with prismatic joints has the same keys again in ``_m`` for those.
    """
    numbers: dict[str, Any] = {}
    kinds = {'rad': ~results.prismatic}
    if results.prismatic.any():
        kinds['m'] = results.prismatic
    for unit, joints in kinds.items():
        present = bool(joints.any())
        drift = hold_drift(results)[joints]
        numbers[f'hold_drift_{unit}'] = float(np.max(drift)) if present else None
        for law in LAWS:
            error = tracking_error(results, law)[:, joints]
            numbers[f'tracking_rms_{law}_{unit}'] = rms(error) if present else None
            numbers[f'tracking_peak_{law}_{unit}'] = (
                float(np.max(np.abs(error))) if present else None
            )
    recordings = [results.hold, *results.tracking.values()]
    numbers['commands'] = sum(recording.commands for recording in recordings)
    numbers['missed_cycles'] = sum(recording.missed_cycles for recording in recordings)
    numbers['hold_time_s'] = float(results.hold.time[-1])
    numbers['motion_time_s'] = results.motion.duration
    numbers['joint_names'] = list(results.joint_names)
    return numbers


def tables(results: Results) -> list[Table]:
    """Return the results as tables for the terminal, one for each unit."""
    numbers = summary(results)
    made = []
    for unit, shown in (('rad', 'mrad'), ('m', 'mm')):
        if numbers.get(f'hold_drift_{unit}') is None:
            continue
        joints = 'revolute' if unit == 'rad' else 'prismatic'
        table = Table(
            title=f'{escape(results.robot)}: {joints} joints',
            caption='gravity compensation alone drifted '
            f'{_plain(1e3 * numbers[f"hold_drift_{unit}"])} {shown} '
            f'in {_plain(numbers["hold_time_s"])} s of simulated time',
        )
        table.add_column('control law')
        for heading in (f'RMS error [{shown}]', f'peak error [{shown}]', 'RMS, times the best'):
            table.add_column(escape(heading), justify='right')
        best = numbers[f'tracking_rms_computed_torque_{unit}']
        for name, law in LAWS.items():
            error = numbers[f'tracking_rms_{name}_{unit}']
            moved = moved_joints(results, name)
            table.add_row(
                law.label if moved.all() else f'{law.label}: {_moves(moved)}',
                _plain(1e3 * error),
                _plain(1e3 * numbers[f'tracking_peak_{name}_{unit}']),
                _plain(error / best) if best else '',
            )
        made.append(table)
    return made


def save_plot(results: Results, path: Path) -> None:
    """Draw the motion of one joint and the errors of all, and save them as a PNG."""
    unit, joints = ('rad', ~results.prismatic)
    if not joints.any():
        unit, joints = ('m', results.prismatic)
    figure = Figure(figsize=(12, 6.75), dpi=160, facecolor='white')
    left, right = figure.subplots(1, 2, gridspec_kw={'width_ratios': (1, 1.2)})
    figure.subplots_adjust(left=0.06, right=0.845, top=0.78, bottom=0.12, wspace=0.2)

    figure.text(
        0.06, 0.915, _headline(results, unit), fontsize=23, fontweight='bold', color='#222222'
    )
    figure.text(
        0.06,
        0.862,
        f'{results.robot} in MuJoCo at 1 kHz, driven over ROS 2: the same feedback, with more and '
        'more of the model',
        fontsize=13.5,
        color='#555555',
    )

    joint = _worst_joint(results, joints)
    _draw_motion(left, results, joint)
    _draw_errors(right, results, joints, unit)
    figure.savefig(path)


def _headline(results: Results, unit: str) -> str:
    numbers = summary(results)
    error = {law: numbers[f'tracking_rms_{law}_{unit}'] for law in LAWS}
    moved = moved_joints(results, 'pd_gravity')
    if not moved.all() and moved_joints(results, 'computed_torque').all():
        return f'PD + gravity {_moves(moved)}, computed torque all'
    if not error['computed_torque']:
        return 'Computed torque tracks without error'
    gain = error['pd_gravity'] / error['computed_torque']
    return f'Computed torque tracks {_plain(gain, 2)}× closer than PD + gravity'


def _moves(moved: BoolArray) -> str:
    if not moved.any():
        return 'moves no joint'
    return f'moves {np.count_nonzero(moved)} of {len(moved)} joints'


def _plain(value: float, digits: int = 3) -> str:
    """Return a number, zero or more, of some significant digits without an exponent."""
    if 0 < value < _SMALLEST_SHOWN:
        return f'< {_SMALLEST_SHOWN:g}'
    return str(np.format_float_positional(float(f'{value:.{digits}g}'), trim='-'))


def _worst_joint(results: Results, joints: BoolArray) -> int:
    error = np.max(np.abs(tracking_error(results, 'pd')), axis=0)
    return int(np.argmax(np.where(joints, error, -1.0)))


def _draw_motion(axes: Any, results: Results, joint: int) -> None:
    """Draw what one joint was asked to do and what it did."""
    scale, unit = (1e3, 'mm') if results.prismatic[joint] else (180 / np.pi, '°')
    for name, law in LAWS.items():
        recording = results.tracking[name]
        axes.plot(
            recording.time, scale * recording.position[:, joint], color=law.color, linewidth=2.2
        )
    time = results.tracking['computed_torque'].time
    axes.plot(
        time,
        scale * results.motion.position(time)[:, joint],
        color='black',
        linewidth=1.4,
        linestyle=(0, (4, 3)),
        label='desired',
    )
    axes.legend(frameon=False, fontsize=13, loc='best', handlelength=2.2)
    _style(axes, f'Position of {results.joint_names[joint]} [{unit}]')


def _draw_errors(axes: Any, results: Results, joints: BoolArray, unit: str) -> None:
    """Draw the joints' RMS error over time, each curve with its name and its RMS beside it."""
    shown = 'mrad' if unit == 'rad' else 'mm'
    errors, labels = [], []
    for name, law in LAWS.items():
        error = 1e3 * tracking_error(results, name)[:, joints]
        over_joints = np.sqrt(np.mean(error**2, axis=1))
        axes.semilogy(
            results.tracking[name].time,
            np.maximum(over_joints, 1e-9),
            color=law.color,
            linewidth=2.4,
        )
        moved = moved_joints(results, name)
        lines = [law.short, f'RMS {_plain(rms(error), 2)} {shown}']
        if not moved.all():
            lines.insert(1, _moves(moved).removesuffix(' joints'))
        errors.append(max(rms(error), 1e-6))
        labels.append('\n'.join(lines))
    axes.set_ylim(bottom=min(errors) / 20)
    axes.yaxis.set_major_formatter('{x:g}')
    _style(axes, f'Error, RMS over the joints [{shown}]')
    to_axes = axes.transScale + axes.transLimits
    centers = [float(to_axes.transform((0.0, error))[1]) for error in errors]
    heights = [_LINE * (label.count('\n') + 1) for label in labels]
    for law, label, center in zip(LAWS.values(), labels, kept_apart(centers, heights)):
        axes.text(
            1.02,
            center,
            label,
            color=law.color,
            fontsize=13,
            fontweight='bold',
            va='center',
            transform=axes.transAxes,
        )


def kept_apart(centers: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return centres near those given, in their order, at which nothing of a height overlaps."""
    order = sorted(range(len(centers)), key=lambda k: (-centers[k], k))
    placed = list(centers)
    for above, below in pairwise(order):
        room = (heights[above] + heights[below]) / 2
        placed[below] = min(placed[below], placed[above] - room)
    return placed


def _style(axes: Any, title: str) -> None:
    axes.set_title(title, loc='left', fontsize=14.5, color='#222222', pad=10)
    axes.set_xlabel('time [s]', fontsize=13)
    axes.tick_params(labelsize=12)
    axes.margins(x=0.01)
    axes.grid(axis='y', color='#dddddd', linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ('top', 'right'):
        axes.spines[side].set_visible(False)
