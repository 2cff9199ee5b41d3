# SPDX-License-Identifier: Apache-2.0
"""
The demonstration: an arm in a physics engine, driven by the dynamics node over ROS 2 topics.

Four phases, each with a simulator and a dynamics node of its own, as separate processes in
lockstep: gravity compensation that holds the arm, then one motion under three control laws. What
is judged is the position that the simulator publishes against the motion that was asked for. Until
the dynamics node has all that it needs, the arm is on its brakes and simulated time stands still,
so that a run gives the same figures, however busy the machine is.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.signals import SignalHandlerOptions
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from std_srvs.srv import Trigger

from robodyn_ros.model import RobotModel
from robodyn_ros.motions.point_to_point import (
    PointToPoint,
    known_effort_limits,
    largest_torque,
    suitable_motion,
)
from robodyn_ros.ros.demo.node_process import NodeProcess
from robodyn_ros.ros.demo.observer import TIME_STEP, Observer
from robodyn_ros.ros.demo.results import LAWS, Recording, Results, save_plot, summary, tables
from robodyn_ros.ros.lockstep import IN_LOCKSTEP

LEAD_TIME = 2.5  # simulated time from sending the motion to its start, to settle in [s]
LOCKSTEP_TIMEOUT = 0.5  # after which a state counts as lost and is sent again [s]
START_TIMEOUT = 60.0  # for each thing that must be there before the arm is let go [s]
SILENCE_TIMEOUT = 60.0  # between two states after that [s]
REPORT_TIMEOUT = 10.0  # for the simulator's counts at the end of a phase [s]
REFERENCE_TOLERANCE = 1e-3  # between the motion asked for and the reference followed [rad or m]

ALL_TERMS = ('inertial', 'coriolis', 'gravity', 'friction')
# The feedback alone is expected to be far off: that is what is shown.
TRACKING = {'mode': 'computed_torque', 'kp': [100.0], 'kd': [20.0], 'max_following_error': 0.0}
TERMS: dict[str, tuple[str, ...]] = {
    'pd': (),
    'pd_gravity': ('gravity',),
    'computed_torque': ALL_TERMS,
}


class DemoFailed(Exception):
    """The demonstration could not be carried through; the message says where and why."""


@dataclass(frozen=True)
class Arm:
    """A robot's URDF and the chain in it; empty: found in the URDF."""

    urdf: Path
    base_link: str = ''
    tip_link: str = ''

    @property
    def parameters(self) -> dict[str, str]:
        """What both nodes are told."""
        return {
            'urdf_file': str(self.urdf.resolve()),
            'base_link': self.base_link,
            'tip_link': self.tip_link,
        }


def panda() -> Arm:
    """
    Return the Panda of PyPI's example-robot-data, up to its flange; the fingers stay closed.

    Raises
    ------
    DemoFailed
        The package is not installed.
    """
    try:
        found = [
            file
            for file in files('example-robot-data') or ()
            if file.match('panda_description/urdf/panda.urdf')
        ]
    except PackageNotFoundError:
        found = []
    if not found:
        raise DemoFailed(
            'The Panda of the demonstration is in example-robot-data: pip install '
            'example-robot-data, or name another arm with --urdf.'
        )
    return Arm(Path(str(found[0].locate())), tip_link='panda_link8')


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
    model = RobotModel.from_urdf(
        arm.urdf, base_link=arm.base_link or None, tip_link=arm.tip_link or None
    )
    motion = suitable_motion(model)
    limits = _effort_limits(model, motion, console)
    logs = output / 'log'
    logs.mkdir(parents=True, exist_ok=True)
    motion_time = LEAD_TIME + motion.duration
    columns = (
        TextColumn('{task.description:<32}'),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    # With rclpy's own handlers an interrupt would end the context before the processes.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        with Progress(*columns, console=console) as progress:
            bar = progress.add_task('', total=hold_time + len(LAWS) * motion_time)

            def phase(name: str, label: str, parameters: Mapping[str, Any], **options: Any) -> Any:
                progress.update(bar, description=label)
                return _run_phase(
                    name,
                    arm,
                    model,
                    motion,
                    {**limits, **parameters},
                    logs,
                    advance=lambda seconds: progress.advance(bar, seconds),
                    **options,
                )

            hold = phase(
                'hold',
                'gravity compensation holds',
                {'mode': 'gravity_compensation'},
                hold_time=hold_time,
            )
            tracking = {
                name: phase(name, f'motion: {law.label}', TRACKING, terms=TERMS[name])
                for name, law in LAWS.items()
            }
            progress.update(bar, description='done', completed=progress.tasks[0].total)
    finally:
        rclpy.try_shutdown()
    results = Results(
        robot=arm.urdf.stem,
        joint_names=tuple(model.joint_names),
        prismatic=np.asarray(model.dh.prismatic),
        motion=motion,
        hold=hold,
        tracking=tracking,
    )
    numbers = summary(results)
    (output / 'summary.json').write_text(json.dumps(numbers, indent=2) + '\n')
    save_plot(results, output / 'tracking.png')
    for table in tables(results):
        console.print(table)
    console.print(
        f'{numbers["commands"]} commands, {numbers["missed_cycles"]} missed cycles.  '
        f'Plot: {output / "tracking.png"}',
        highlight=False,
    )
    return numbers


def _run_phase(
    name: str,
    arm: Arm,
    model: RobotModel,
    motion: PointToPoint,
    parameters: Mapping[str, Any],
    logs: Path,
    *,
    advance: Callable[[float], None],
    hold_time: float = 0.0,
    terms: tuple[str, ...] | None = None,
) -> Recording:
    """
    Start both nodes, let them hold or track, and return what the arm did.

    Without ``terms`` the arm is held for ``hold_time`` [s]. Otherwise the motion is sent, and all
    terms but these are switched off, before the arm is let go.
    """
    # A namespace for each run and phase, clock and diagnostics in it: nothing of another phase, or
    # of a robot on the same network, is taken for ours.
    namespace = f'/robodyn_demo_{os.getpid()}/{name}'
    remappings = {'/clock': 'clock', '/diagnostics': 'diagnostics'}
    simulator = NodeProcess(
        'simulator_node',
        namespace=namespace,
        parameters={
            **arm.parameters,
            'initial_position': motion.start.tolist(),
            'time_step': TIME_STEP,
            'lockstep': True,
            'hold': True,
            'lockstep_timeout': LOCKSTEP_TIMEOUT,
        },
        remappings={**remappings, 'torques': 'dynamics_node/torques'},
        log=logs / f'{name}_simulator_node.log',
    )
    node = NodeProcess(
        'dynamics.dynamics_node',
        namespace=namespace,
        parameters={**arm.parameters, **parameters},
        remappings=remappings,
        log=logs / f'{name}_dynamics_node.log',
    )
    observer = Observer(namespace, model.n)
    executor = SingleThreadedExecutor()
    executor.add_node(observer)
    with ExitStack() as stack:
        stack.callback(observer.destroy_node)
        stack.callback(executor.shutdown)
        processes = [stack.enter_context(simulator), stack.enter_context(node)]
        wait = _Waiting(name, executor, observer, processes, advance)
        wait.until(lambda: observer.is_answered, START_TIMEOUT)
        if terms is None:
            start, duration = observer.time, hold_time
        else:
            start, duration = observer.time + LEAD_TIME, motion.duration
            observer.send(model.joint_names, motion, start)
            wait.until(lambda: observer.is_followed or bool(observer.refusal), START_TIMEOUT)
            if observer.refusal:
                raise DemoFailed(
                    f'Phase {name}: the dynamics node refused the motion: {observer.refusal}'
                )
            _switch_terms(AsyncParameterClient(observer, 'dynamics_node'), wait, terms)
        released = observer.release.call_async(Trigger.Request())
        wait.until(released.done, START_TIMEOUT)
        wait.until(lambda: observer.time >= start + duration, SILENCE_TIMEOUT)
        if terms is not None:
            _check_reference(name, observer, motion, start, node)
        steps = observer.steps_by(start + duration)
        wait.until(lambda: observer.counts.get('steps', 0) >= steps, REPORT_TIMEOUT)
        return observer.recording(start, duration)


@dataclass
class _Waiting:
    """Spins the observer until something has come about, as long as both nodes live."""

    phase: str
    executor: SingleThreadedExecutor
    observer: Observer
    processes: list[NodeProcess]
    advance: Callable[[float], None]
    _shown: float = field(default=0.0)

    def until(self, condition: Callable[[], bool], silence_timeout: float) -> None:
        newest, heard = self.observer.time, time.monotonic()
        looked = heard
        while not condition():
            self.executor.spin_once(timeout_sec=0.1)
            now = time.monotonic()
            if now - looked < 0.1:
                continue
            looked = now
            for process in self.processes:
                process.check()
            if self.observer.time > newest:
                newest, heard = self.observer.time, now
                self.advance(newest - self._shown)
                self._shown = newest
            elif now - heard > silence_timeout:
                logs = '\n'.join(f'{p.name}:\n{p.last_lines()}' for p in self.processes)
                raise DemoFailed(
                    f'Phase {self.phase}: nothing moved for {silence_timeout:.0f} s at simulated '
                    f'time {newest:.3f} s.\n{logs}'
                )


def _switch_terms(client: AsyncParameterClient, wait: _Waiting, terms: tuple[str, ...]) -> None:
    """Have the dynamics node command these terms of the model's torque, and no other."""
    wait.until(client.services_are_ready, START_TIMEOUT)
    answer = client.set_parameters(
        [Parameter(f'terms.{term}', value=term in terms) for term in ALL_TERMS]
    )
    wait.until(answer.done, START_TIMEOUT)
    for result in answer.result().results:
        if not result.successful:
            raise DemoFailed(f'The dynamics node does not switch its terms: {result.reason}')


def _check_reference(
    phase: str, observer: Observer, motion: PointToPoint, start: float, node: NodeProcess
) -> None:
    """Make sure that the node followed the motion asked for, not another or none."""
    times, references = observer.references(start, motion.duration)
    expected = motion.position(times)
    if len(times) < 0.5 * motion.duration / TIME_STEP:
        found = f'only {len(times)} cycles with a reference'
    else:
        off = float(np.max(np.abs(references - expected)))
        if off <= REFERENCE_TOLERANCE:
            return
        found = f'a reference {off:.3g} rad or m away from it'
    raise DemoFailed(
        f'Phase {phase}: the dynamics node did not follow the motion: {found}.\n'
        + node.last_lines()
    )


def _effort_limits(model: RobotModel, motion: PointToPoint, console: Console) -> dict[str, Any]:
    """Return what lockstep asks of the node, and effort limits where the URDF has gaps."""
    parameters: dict[str, Any] = {'use_sim_time': True, **IN_LOCKSTEP}
    limits = known_effort_limits(model)
    missing = np.isinf(limits)
    if missing.any():
        limits = np.where(missing, 2 * largest_torque(model, motion) + 1.0, limits)
        names = ', '.join(np.array(model.joint_names)[missing])
        console.print(
            f'The URDF gives no effort limit for {names}: the demonstration allows twice what the '
            'motion needs.'
        )
        parameters['effort_limits'] = limits.tolist()
    return parameters
