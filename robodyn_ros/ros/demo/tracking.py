# SPDX-License-Identifier: Apache-2.0
"""
The demonstration: an arm in a physics engine, driven by the dynamics node over ROS 2 topics.

Four runs: gravity compensation that holds the arm, then one motion under three control laws. What
is judged is the position that the simulator publishes against the motion that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import rclpy
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.msg import DynamicsState
from robodyn_ros.motions.point_to_point import (
    PointToPoint,
    known_effort_limits,
    largest_torque,
    suitable_motion,
)
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows
from robodyn_ros.report.drawing import Paper, drawable, save_picture
from robodyn_ros.ros.conversions import seconds, trajectory_message
from robodyn_ros.ros.demo.node_process import NodeProcess
from robodyn_ros.ros.demo.runner import (
    SILENCE_TIMEOUT,
    Arm,
    DemoFailed,
    Observer,
    Run,
    effort_limits,
    kinds,
    present,
    progress,
    rms,
)
from robodyn_ros.ros.qos import RECORDING
from robodyn_ros.spatial import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BoolArray = NDArray[np.bool_]

_TIME_STEP = 0.001  # of the physics and of the control cycle [s]
_LEAD_TIME = 2.5  # simulated time from sending the motion to its start, to settle in [s]
_REPORT_TIMEOUT = 10.0  # for the simulator's counts at the end of a run [s]
_REFERENCE_TOLERANCE = 1e-3  # between motion asked for and reference followed [rad or m]

_ALL_TERMS = ('inertial', 'coriolis', 'gravity', 'friction')
# The feedback alone is expected to be far off: that is what is shown.
_TRACKING = {
    'mode': 'computed_torque',
    'kp': [100.0],
    'kd': [20.0],
    'max_following_error': 0.0,
    'state_publish_rate': 10_000.0,  # the reference of each cycle
}

# A joint that made less of its displacement did not move: its error says nothing of tracking.
_SMALLEST_FRACTION = 0.1
_SMALLEST_SHOWN = 1e-3
_SMALLEST_DRAWN = 1e-6  # [mrad or mm]


@dataclass(frozen=True)
class Law:
    """A control law of the comparison: its terms of the model, how it is called, and drawn."""

    terms: tuple[str, ...]
    label: str
    color: str


LAWS = {
    'pd': Law((), 'PD alone', '#d55e00'),
    'pd_gravity': Law(('gravity',), 'PD + gravity', '#e69f00'),
    'computed_torque': Law(_ALL_TERMS, 'computed torque', '#0072b2'),
}


@dataclass(frozen=True, eq=False)
class TrackedRun:
    """
    What the joints did in one run of the demonstration.

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
class TrackingResults:
    """
    Everything that was recorded.

    Attributes
    ----------
    robot : str
        What the plot calls the arm.
    hold : TrackedRun
        Gravity compensation alone.
    tracking : dict of str to TrackedRun
        The motion under each control law of ``LAWS``.
    """

    robot: str
    joint_names: tuple[str, ...]
    prismatic: BoolArray
    motion: PointToPoint
    hold: TrackedRun
    tracking: dict[str, TrackedRun]


def run_demo(arm: Arm, output: Path, *, hold_time: float = 10.0) -> dict[str, Any]:
    """
    Run the demonstration, print its table, write ``summary.json`` and ``tracking.png``.

    Parameters
    ----------
    arm : Arm
    output : Path
        Folder for the results; made where it is not there.
    hold_time : float
        Simulated time that gravity compensation holds the arm [s].

    Returns
    -------
    dict
        What ``summary.json`` holds.

    Raises
    ------
    DemoFailed
        A node ended, fell silent, or did not follow the motion.
    RobodynError
        The URDF cannot be used.
    """
    console = Console()
    model = arm.model
    motion = suitable_motion(model)
    limits = effort_limits(model, 2 * largest_torque(model, motion) + 1.0)
    if limits:
        names = ', '.join(np.array(model.joint_names)[np.isinf(known_effort_limits(model))])
        console.print(
            f'The URDF gives no effort limit for {names}: the demonstration allows twice what the '
            'motion needs.'
        )
    logs = output / 'log'
    logs.mkdir(parents=True, exist_ok=True)
    motion_time = _LEAD_TIME + motion.duration
    with progress(console, hold_time + len(LAWS) * motion_time) as show:

        def recorded(name: str, label: str, begin: float, **options: Any) -> TrackedRun:
            show(begin, label)
            with Run(name, logs, lambda time: show(begin + time, label)) as run:
                return _recorded(run, arm, motion, limits, **options)

        hold = recorded('hold', 'gravity compensation holds', 0.0, hold_time=hold_time)
        tracking = {
            name: recorded(name, f'motion: {law.label}', hold_time + k * motion_time, law=law)
            for k, (name, law) in enumerate(LAWS.items())
        }
    results = TrackingResults(
        robot=arm.urdf.stem,
        joint_names=tuple(model.joint_names),
        prismatic=np.asarray(model.dh.prismatic),
        motion=motion,
        hold=hold,
        tracking=tracking,
    )
    numbers = summary(results)
    plot = output / 'tracking.png'
    save_plot(results, plot)
    counts = f'{numbers["commands"]} commands, {numbers["missed_cycles"]} missed cycles.'
    present(console, output, numbers, tables(results), f'{counts}  Plot: {plot}')
    return numbers


def _recorded(
    run: Run,
    arm: Arm,
    motion: PointToPoint,
    limits: Mapping[str, Any],
    *,
    hold_time: float = 0.0,
    law: Law | None = None,
) -> TrackedRun:
    """
    Let both nodes hold the arm or track the motion, and return what the arm did.

    Without a law the arm is held for ``hold_time`` [s]. Otherwise the motion is sent before the
    arm is let go.
    """
    mode: dict[str, Any] = {'mode': 'gravity_compensation'}
    if law is not None:
        mode = {**_TRACKING, **{f'terms.{term}': term in law.terms for term in _ALL_TERMS}}
    recorder = run.observe(_Recorder, _TIME_STEP)
    node = run.start_arm(arm.parameters, {**arm.parameters, **limits, **mode}, motion.start)
    run.wait(lambda: recorder.is_answered)
    if law is None:
        start, duration = recorder.time, hold_time
    else:
        start, duration = recorder.time + _LEAD_TIME, motion.duration
        recorder.send(arm.model.joint_names, motion, start)
        run.wait(lambda: recorder.is_followed or bool(recorder.refusal))
        if recorder.refusal:
            raise DemoFailed(f'The dynamics node refused the motion: {recorder.refusal}')
    run.let_go()
    run.wait(lambda: recorder.time >= start + duration, SILENCE_TIMEOUT)
    if law is not None:
        _check_reference(recorder, motion, start, node)
    steps = recorder.steps_by(start + duration)
    run.wait(lambda: recorder.counts.get('steps', 0) >= steps, _REPORT_TIMEOUT)
    return recorder.recording(start, duration)


def _check_reference(
    recorder: _Recorder, motion: PointToPoint, start: float, node: NodeProcess
) -> None:
    """Make sure that the node followed the motion asked for, not another or none."""
    times, references = recorder.references(start, motion)
    if len(times) < 0.5 * motion.duration / _TIME_STEP:
        found = f'only {len(times)} cycles with a reference'
    else:
        off = np.abs(references - motion.position(times)).max(axis=0)
        j = int(off.argmax())
        if off[j] <= _REFERENCE_TOLERANCE:
            return
        found = f'a reference that is {off[j]:.3g} away from it at joint {j + 1}'
    raise DemoFailed(f'The dynamics node did not follow the motion: {found}.\n{node.last_lines()}')


class _Recorder(Observer):
    """Records what both nodes publish, and sends the motion to the dynamics node."""

    def __init__(self, namespace: str, context: rclpy.Context, time_step: float) -> None:
        super().__init__(namespace, context, time_step)
        self._times: list[float] = []
        self._positions: list[Any] = []
        self._references: dict[float, Any] = {}
        self.refusal = ''  # of the motion, by the dynamics node
        self._sent = ''  # its stamp, as diagnostics have it
        self.create_subscription(JointState, 'joint_states', self._on_state, RECORDING)
        self.create_subscription(
            DynamicsState, 'dynamics_node/dynamics_state', self._on_dynamics, RECORDING
        )
        self._trajectories = self.create_publisher(
            JointTrajectory, 'dynamics_node/joint_trajectory', 10
        )

    @property
    def time(self) -> float:
        """Stamp of the newest state [s]."""
        return self._times[-1] if self._times else 0.0

    @property
    def is_answered(self) -> bool:
        """Whether the dynamics node commands, and listens for trajectories."""
        return bool(self._references) and self._trajectories.get_subscription_count() > 0

    def steps_by(self, time: float) -> int:
        """Return how many steps the simulator has made at a stamp."""
        return round(time / self.time_step) - 1

    def send(self, joint_names: Sequence[str], motion: PointToPoint, start: float) -> None:
        """Ask for the motion, to begin at a stamp [s]."""
        still = [0.0] * len(joint_names)
        goal = motion.goal.tolist()
        rows = TrajectoryRows(joint_names, [motion.duration], [goal], [still], [still], [()])
        message = trajectory_message(rows, start)
        self._sent = f'{seconds(message.header.stamp):.9f}'
        self._trajectories.publish(message)

    def references(self, start: float, motion: PointToPoint) -> tuple[FloatArray, FloatArray]:
        """Return times (N,) after the start [s] and references (N, n) within the motion."""
        kept = [
            (time - start, reference)
            for time, reference in self._references.items()
            if -0.5 * self.time_step <= time - start <= motion.duration and len(reference)
        ]
        times = np.array([time for time, _ in kept])
        references = np.array([reference for _, reference in kept])
        return times, references.reshape(-1, len(motion.start))

    def recording(self, start: float, duration: float) -> TrackedRun:
        """Return the states from the start on, for the given duration [s]."""
        half = 0.5 * self.time_step
        times, index = np.unique(np.array(self._times), return_index=True)
        kept = (times >= start - half) & (times <= start + duration + half)
        steps_after = self.counts['steps'] - self.steps_by(start + duration)  # each with a command
        return TrackedRun(
            time=times[kept] - start,
            position=np.array(self._positions)[index[kept]],
            commands=self.counts['commands'] - steps_after,
            missed_cycles=self.counts['missed_cycles'],
        )

    def _on_state(self, message: JointState) -> None:
        self._times.append(seconds(message.header.stamp))
        self._positions.append(message.position)

    def _on_dynamics(self, message: DynamicsState) -> None:
        self._references[seconds(message.header.stamp)] = message.reference_position

    def on_status(self, values: Mapping[str, str]) -> None:
        super().on_status(values)
        if self._sent and values.get('last_rejection_stamp') == self._sent:
            self.refusal = values['last_rejection']


def tracking_error(results: TrackingResults, law: str) -> FloatArray:
    """Return desired minus measured position (N, n) [rad or m] over the motion."""
    recording = results.tracking[law]
    return results.motion.position(recording.time) - recording.position


def peak(error: FloatArray) -> float | None:
    """Return the largest size over all samples and joints; None: no joint."""
    return float(np.max(np.abs(error))) if error.size else None


def moved_joints(results: TrackingResults, law: str) -> BoolArray:
    """
    Return which joints, shape (n,), made a fraction of the displacement asked of them.

    A joint that Coulomb friction holds does not. One that is asked to stay counts as moved.
    """
    displacement = np.abs(results.motion.goal - results.motion.start)
    return np.ptp(results.tracking[law].position, axis=0) >= _SMALLEST_FRACTION * displacement


def summary(results: TrackingResults) -> dict[str, Any]:
    """
    Return the numbers of the run, for ``summary.json``.

    Keys that end in ``_rad`` are over the revolute joints, and None where there is none; an arm
    with prismatic joints has the same keys again in ``_m`` for those.
    """
    numbers: dict[str, Any] = {}
    away = results.hold.position - results.hold.position[0]
    for unit, joints in kinds(results.prismatic).items():
        numbers[f'hold_drift_{unit}'] = peak(away[:, joints])
        for law in LAWS:
            error = tracking_error(results, law)[:, joints]
            numbers[f'tracking_rms_{law}_{unit}'] = rms(error)
            numbers[f'tracking_peak_{law}_{unit}'] = peak(error)
    recordings = [results.hold, *results.tracking.values()]
    numbers['commands'] = sum(recording.commands for recording in recordings)
    numbers['missed_cycles'] = sum(recording.missed_cycles for recording in recordings)
    numbers['hold_time_s'] = float(results.hold.time[-1])
    numbers['motion_time_s'] = results.motion.duration
    numbers['joint_names'] = list(results.joint_names)
    return numbers


def tables(results: TrackingResults) -> list[Table]:
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


def save_plot(results: TrackingResults, path: Path) -> None:
    """Draw the motion of one joint and the errors of all, and save them as a PNG."""
    unit, joints = 'rad', ~results.prismatic
    if not joints.any():
        unit, joints = ('m', results.prismatic)
    error = np.max(np.abs(tracking_error(results, 'pd')), axis=0)
    joint = int(np.argmax(np.where(joints, error, -1.0)))

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, gridspec_kw={'width_ratios': (1, 1.2)})
        figure.text(0.04, 0.915, _headline(results, unit), fontsize=23, fontweight='bold')
        figure.text(
            0.04,
            0.862,
            f'{drawable(results.robot)} in MuJoCo at 1 kHz, driven over ROS 2: the same feedback '
            'and more of the model',
            fontsize=13,
            color=Paper.MUTED,
        )
        _draw_motion(left, results, joint)
        _draw_errors(right, results, joints, unit)

    save_picture(draw, path, 12, 6.75, dpi=160, area=(0.03, 0.03, 0.94, 0.77))


def _headline(results: TrackingResults, unit: str) -> str:
    numbers = summary(results)
    by_gravity, by_all = (
        numbers[f'tracking_rms_{law}_{unit}'] for law in ('pd_gravity', 'computed_torque')
    )
    moved = moved_joints(results, 'pd_gravity')
    if not moved.all() and moved_joints(results, 'computed_torque').all():
        return f'PD + gravity {_moves(moved)}, computed torque all'
    if not by_all:
        return 'Computed torque tracks without error'
    gain = by_gravity / by_all
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


def _draw_motion(axes: Any, results: TrackingResults, joint: int) -> None:
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
        color=Paper.TEXT,
        linewidth=1.4,
        linestyle=(0, (4, 3)),
        label='desired',
    )
    axes.legend(fontsize=13, loc='best', handlelength=2.2)
    _style(axes, f'Position: {drawable(results.joint_names[joint])} [{unit}]')


def _draw_errors(axes: Any, results: TrackingResults, joints: BoolArray, unit: str) -> None:
    """Draw the joints' RMS error over time, and say what it is over all of it."""
    shown = 'mrad' if unit == 'rad' else 'mm'
    errors = {name: 1e3 * tracking_error(results, name)[:, joints] for name in LAWS}
    least = min(max(rms(error) or 0.0, _SMALLEST_DRAWN) for error in errors.values()) / 20
    for name, law in LAWS.items():
        error, moved = errors[name], moved_joints(results, name)
        axes.semilogy(
            results.tracking[name].time,
            np.maximum(np.sqrt(np.mean(error**2, axis=1)), least),
            color=law.color,
            linewidth=2.4,
            label=f'{law.label}: RMS {_plain(rms(error) or 0.0)} {shown}'
            + ('' if moved.all() else f', {_moves(moved)}'),
        )
    axes.set_ylim(bottom=least)
    axes.yaxis.set_major_formatter('{x:g}')
    axes.legend(fontsize=12, loc='upper left', bbox_to_anchor=(0.0, -0.13))
    _style(axes, f'Error, RMS over the joints [{shown}]')


def _style(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=12.5, pad=10)
    axes.set_xlabel('time [s]', fontsize=13)
    axes.tick_params(labelsize=12)
    axes.margins(x=0.01)
    axes.grid(axis='y')
    axes.set_axisbelow(True)
