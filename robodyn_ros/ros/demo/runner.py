# SPDX-License-Identifier: Apache-2.0
"""
What the demonstrations run on: an arm in MuJoCo and the dynamics node, in lockstep over ROS 2.

Each run has processes and a namespace of its own. Until the dynamics node has all that it needs,
the arm is on its brakes and simulated time stands still; from there on nodes and simulator wait
for each other. So a run gives the same figures, however fast or busy the machine is.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from std_srvs.srv import Trigger

from robodyn_ros.control.settings import chain_ends
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.ros.demo.node_process import DemoFailed, NodeProcess
from robodyn_ros.ros.lockstep import IN_LOCKSTEP
from robodyn_ros.ros.qos import RELIABLE
from robodyn_ros.spatial import FloatArray

START_TIMEOUT = 60.0  # for each thing that must be there before the arm is let go [s]
SILENCE_TIMEOUT = 60.0  # in which simulated time must go on after that [s]
_LOCKSTEP_TIMEOUT = 0.5  # after which a state counts as lost and is sent again [s]
_POLLING = 0.1  # [s]
# Clock and diagnostics, too, are in the run's namespace: nothing of another run, or of a robot on
# the same network, is taken for ours.
_REMAPPINGS = {'/clock': 'clock', '/diagnostics': 'diagnostics'}


@dataclass(frozen=True)
class Arm:
    """A robot's URDF and the chain in it, of several tips the tree; empty: found in the URDF."""

    urdf: Path
    base_link: str = ''
    tip_links: tuple[str, ...] = ()

    @property
    def model(self) -> RobotModel:
        """The model of the arm."""
        ends = chain_ends(self.base_link, '', self.tip_links)
        return RobotModel.from_urdf(self.urdf, **ends)

    @property
    def parameters(self) -> dict[str, Any]:
        """What all nodes are told."""
        return {
            'urdf_file': str(self.urdf.resolve()),
            'base_link': self.base_link,
            'tip_links': list(self.tip_links) or [''],  # an empty list has no type
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
    return Arm(Path(str(found[0].locate())), tip_links=('panda_link8',))


def effort_limits(model: RobotModel, otherwise: FloatArray) -> dict[str, list[float]]:
    """Return the parameter that gives a node limits where the URDF has gaps; none without gaps."""
    known = known_effort_limits(model)
    if np.isfinite(known).all():
        return {}
    return {'effort_limits': np.where(np.isfinite(known), known, otherwise).tolist()}


def present(
    console: Console,
    output: Path,
    numbers: Mapping[str, Any],
    tables: Iterable[Table],
    words: str,
) -> None:
    """Write the numbers of a demonstration into ``summary.json``; print tables and last words."""
    text = json.dumps(numbers, indent=2) + '\n'
    (output / 'summary.json').write_text(text, encoding='utf-8')
    for table in tables:
        console.print(table)
    console.print(words, highlight=False)


@contextmanager
def progress(console: Console, total: float) -> Iterator[Callable[[float, str], None]]:
    """Show a bar, and yield what moves it: it takes how much is done, and what is done now."""
    columns = (TextColumn('{task.description:<44}'), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task('', total=total)
        yield lambda done, what: bar.update(task, completed=done, description=what)
        bar.update(task, completed=total, description='done')


def kinds(prismatic: np.ndarray) -> dict[str, np.ndarray]:
    """Return which joints (n,) have positions in which unit; radians always, metres if any."""
    units = {'rad': ~prismatic}
    return {**units, 'm': prismatic} if prismatic.any() else units


def rms(error: FloatArray) -> float | None:
    """Return the root of the mean square over all samples and joints; None: no joint."""
    return float(np.sqrt(np.mean(error**2))) if error.size else None


class Observer(Node):
    """
    Hears the diagnostics of both nodes, and lets the arm go.

    Attributes
    ----------
    counts : dict of str to int
        The simulator's: ``steps``, ``commands``, ``missed_cycles``.
    is_followed : bool
        Whether the dynamics node has a reference.
    release : rclpy.client.Client
        Lets the arm go.
    """

    def __init__(self, namespace: str, context: rclpy.Context, time_step: float) -> None:
        super().__init__('observer', namespace=namespace, context=context)
        self.time_step = time_step
        self.counts: dict[str, int] = {}
        self.is_followed = False
        self.release = self.create_client(Trigger, 'simulator_node/release')
        self.create_subscription(DiagnosticArray, 'diagnostics', self._on_diagnostics, RELIABLE)

    @property
    def time(self) -> float:
        """Simulated time, of the newest that was heard [s]."""
        return self.counts.get('steps', 0) * self.time_step

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if status.hardware_id == 'mujoco':
                self.counts = {key: int(value) for key, value in values.items()}
            else:
                self.on_status(values)

    def on_status(self, values: Mapping[str, str]) -> None:
        """Take a status of the dynamics node."""
        if 'reference' in values:
            self.is_followed = values['reference'] in ('waiting', 'moving')


AnyObserver = TypeVar('AnyObserver', bound=Observer)


class Run:
    """
    One run, with processes of its own, for a ``with`` statement: none outlives it.

    Parameters
    ----------
    name : str
        Of its namespace and of its logs.
    logs : Path
        Folder that the nodes' output goes to.
    on_time : callable
        Called with simulated time [s] as it goes on.
    namespace : str, optional
        One that others know; not given: one that no other run has.
    """

    def __init__(
        self,
        name: str,
        logs: Path,
        on_time: Callable[[float], None] = lambda time: None,
        namespace: str | None = None,
    ) -> None:
        self._name, self._logs, self._on_time = name, logs, on_time
        self._namespace = namespace or f'/robodyn_demo_{os.getpid()}/{name}'
        self._processes: list[NodeProcess] = []

    def __enter__(self) -> Run:
        self._stack = ExitStack()
        # With rclpy's own handlers an interrupt would end the context before the processes.
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._stack.callback(self._context.try_shutdown)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._stack.callback(self._executor.shutdown)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def observe(self, observer: type[AnyObserver], time_step: float) -> AnyObserver:
        """Return an observer of the run's nodes, which ``wait`` spins."""
        self.observer = made = observer(self._namespace, self._context, time_step)
        self._stack.callback(made.destroy_node)
        self._executor.add_node(made)
        return made

    def start(
        self,
        module: str,
        parameters: Mapping[str, Any],
        remappings: Mapping[str, str] | None = None,
    ) -> NodeProcess:
        """Start a node of ``robodyn_ros.ros``, as ``NodeProcess`` does, and return its process."""
        name = module.rpartition('.')[2]
        process = NodeProcess(
            module,
            namespace=self._namespace,
            parameters=parameters,
            remappings={**_REMAPPINGS, **(remappings or {})},
            log=self._logs / f'{self._name}_{name}.log',
        )
        return self._stack.enter_context(process)

    def start_arm(
        self, simulated: Mapping[str, Any], commanding: Mapping[str, Any], start: FloatArray
    ) -> NodeProcess:
        """
        Start simulator and dynamics node in lockstep; return the dynamics node's process.

        Parameters
        ----------
        simulated, commanding : mapping of str to parameter
            What each is told beside lockstep.
        start : array, shape (n,)
            Where the arm is on its brakes [rad or m].
        """
        simulator = self.start(
            'simulator_node',
            {
                'initial_position': start.tolist(),
                'time_step': self.observer.time_step,
                'lockstep': True,
                'hold': True,
                'lockstep_timeout': _LOCKSTEP_TIMEOUT,
                **simulated,
            },
            {'torques': 'dynamics_node/torques'},
        )
        dynamics = self.start(
            'dynamics.dynamics_node', {'use_sim_time': True, **IN_LOCKSTEP, **commanding}
        )
        self._processes = [simulator, dynamics]
        return dynamics

    def wait(self, condition: Callable[[], bool], silence_timeout: float = START_TIMEOUT) -> None:
        """
        Spin until something has come about, as long as both nodes live and time goes on.

        Raises
        ------
        DemoFailed
        """
        newest, progressed = self.observer.time, time.monotonic()
        checked = progressed
        while not condition():
            self._executor.spin_once(timeout_sec=_POLLING)
            now = time.monotonic()
            if now - checked < _POLLING:
                continue
            checked = now
            for process in self._processes:
                process.check()
            if self.observer.time > newest:
                newest, progressed = self.observer.time, now
                self._on_time(newest)
            elif now - progressed > silence_timeout:
                logs = '\n'.join(f'{p.name}:\n{p.last_lines()}' for p in self._processes)
                raise DemoFailed(
                    f'{self._name}: nothing moved for {silence_timeout:.0f} s at simulated time '
                    f'{newest:.3f} s.\n{logs}'
                )

    def let_go(self) -> None:
        """Take the arm off its brakes: simulated time goes on from here."""
        self.wait(self.observer.release.service_is_ready)
        self.wait(self.observer.release.call_async(Trigger.Request()).done)
