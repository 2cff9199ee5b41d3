# SPDX-License-Identifier: Apache-2.0
"""
Measure the processor time of several dynamics nodes on one machine.

    python benchmarks/eight_nodes.py

Each node has a namespace and an arm of its own, urdf/arm.urdf.xacro with six joints, and follows a
trajectory in computed torque with every term. One more process is the driver of all: it sends the
joint states and counts the commands. Beside them, in the same run, as many bare relays on the
events executor, whose callback publishes the positions: what rclpy leaves of the machine.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import click
import rclpy
from fair_spinning import spin_until
from rclpy.executors import Executor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_ros.ros.demo.node_process import NodeProcess
from robodyn_ros.ros.qos import SENSOR
from robodyn_ros.ros.rclpy_workarounds import fastest_executor

ARM = Path(__file__).resolve().parents[1] / 'urdf' / 'arm.urdf.xacro'
JOINTS = [f'joint{i}' for i in range(1, 7)]
POSITION = [0.2, -0.4, 0.9, 0.1, 0.6, 0.3]
PARAMETERS = {'urdf_file': str(ARM), 'mode': 'computed_torque', 'state_timeout': 1.0}
STARTING_TIMEOUT = 60.0  # until every node commands [s]
TURN = 5e-4  # of waiting for commands, at most, between two sendings [s]
LAST_WAIT = 0.01  # for commands on their way; over gaps of 0.02 the nodes extrapolate [s]
QUEUE = 1000  # of commands that wait for the driver, which has eight arms to count for
RELAY = '--relay'  # with an arm's name: be its relay
TICKS = os.sysconf('SC_CLK_TCK')  # of /proc, in a second


class Drivers(Node):
    """Sends the joint states of all arms at one rate, and counts what comes back."""

    def __init__(self, names: list[str]) -> None:
        super().__init__('drivers')
        self.commands = dict.fromkeys(names, 0)
        self._states = [
            self.create_publisher(JointState, f'/{name}/joint_states', 10) for name in names
        ]
        self._trajectories = [
            self.create_publisher(JointTrajectory, f'/{name}/dynamics_node/joint_trajectory', 10)
            for name in names
        ]
        for name in names:
            self.create_subscription(
                Float64MultiArray,
                f'/{name}/dynamics_node/commands',
                lambda message, name=name: self._count(name),
                QUEUE,
            )
        self._message = JointState(name=JOINTS, position=POSITION, velocity=[0.0] * len(JOINTS))

    def send(self) -> None:
        self._message.header.stamp = self.get_clock().now().to_msg()
        for publisher in self._states:
            publisher.publish(self._message)

    def send_trajectories(self, duration: float) -> None:
        """Ask every arm to move so slowly that it moves all the time [s]."""
        point = JointTrajectoryPoint(positions=[value + 0.3 for value in POSITION])
        point.time_from_start.sec = round(duration)
        for publisher in self._trajectories:
            publisher.publish(JointTrajectory(joint_names=JOINTS, points=[point]))

    def _count(self, name: str) -> None:
        self.commands[name] += 1


def processor_time(pid: int) -> float:
    """Return the time that a process has used so far [s]."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def run(executor: Executor, drivers: Drivers, rate: float, duration: float) -> int:
    """Send joint states at a rate [1/s] for a while [s], and return how many to each arm."""
    due = time.monotonic()
    count = round(duration * rate)
    for _ in range(count):
        drivers.send()
        due += 1.0 / rate
        spin_until(executor, due, TURN)
    return count


def relay(name: str) -> None:
    """Answer the joint states of one arm with their positions, until the process is ended."""
    rclpy.init()
    node = rclpy.create_node('relay', namespace=f'/{name}')
    commands = node.create_publisher(Float64MultiArray, 'dynamics_node/commands', 10)
    node.create_subscription(
        JointState,
        'joint_states',
        lambda message: commands.publish(Float64MultiArray(data=message.position)),
        SENSOR,
    )
    executor = fastest_executor()
    executor.add_node(node)
    while True:
        executor.spin_once(timeout_sec=0.05)


@contextlib.contextmanager
def relay_process(name: str) -> Iterator[int]:
    """Run a relay until the block ends; yields its process's number."""
    with subprocess.Popen([sys.executable, __file__, RELAY, name]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextlib.contextmanager
def node_process(name: str, folder: Path) -> Iterator[int]:
    """Run a dynamics node until the block ends; yields its process's number."""
    with NodeProcess(
        'dynamics.dynamics_node',
        namespace=f'/{name}',
        parameters=PARAMETERS,
        remappings={},
        log=folder / f'{name}.log',
    ) as process:
        yield process.pid


def measure(what: str, count: int, rate: float, duration: float, folder: Path) -> str:
    """Return one row of the table, of nodes or of relays."""
    names = [f'arm{i}' for i in range(1, count + 1)]
    drivers = Drivers(names)
    executor = fastest_executor()
    executor.add_node(drivers)
    with ExitStack() as stack:
        stack.callback(drivers.destroy_node)
        stack.callback(executor.shutdown)
        pids = [
            stack.enter_context(
                relay_process(name) if what == 'relay' else node_process(name, folder)
            )
            for name in names
        ]
        deadline = time.monotonic() + STARTING_TIMEOUT
        while not all(drivers.commands.values()):
            if time.monotonic() > deadline:
                raise SystemExit(f'not every {what} commands; the logs: {folder}')
            run(executor, drivers, rate, 0.5)
        drivers.send_trajectories(2 * duration + 10)
        run(executor, drivers, rate, 2.0)
        spin_until(executor, time.monotonic() + LAST_WAIT, TURN)
        before, counted = [processor_time(pid) for pid in pids], sum(drivers.commands.values())
        own, start = time.process_time(), time.monotonic()
        sent = count * run(executor, drivers, rate, duration)
        elapsed = time.monotonic() - start
        usage = [100 * (processor_time(pid) - used) / elapsed for pid, used in zip(pids, before)]
        own = 100 * (time.process_time() - own) / elapsed
        spin_until(executor, time.monotonic() + LAST_WAIT, TURN)
        answered = sum(drivers.commands.values()) - counted
    return (
        f'| {count} {what}{"s" if count > 1 else ""} | {100 * (1 - answered / sent):.2f} '
        f'| {sum(usage) / count:.0f} | {max(usage):.0f} '
        f'| {10 * sum(usage) * elapsed / answered:.2f} | {sum(usage):.0f} | {own:.0f} |'
    )


@click.command()
@click.option(
    '--count',
    'counts',
    multiple=True,
    type=int,
    default=(1, 2, 4, 8),
    show_default=True,
    help='Nodes at once; may be given several times.',
)
@click.option('--rate', default=250.0, show_default=True, help='Joint states a second.')
@click.option('--duration', default=10.0, show_default=True, help='Of each measurement [s].')
def main(counts: tuple[int, ...], rate: float, duration: float) -> None:
    """Print the table."""
    click.echo(f'{os.cpu_count()} cores, joint states at {rate:g} Hz; usage of one core')
    click.echo(
        '| | states without a command [%] | CPU per process [%] | largest [%] | '
        'CPU per command [ms] | all of them [%] | the drivers [%] |'
    )
    click.echo('|---|--:|--:|--:|--:|--:|--:|')
    rclpy.init()
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            for what in ('relay', 'node'):
                click.echo(measure(what, count, rate, duration, Path(folder)))
    rclpy.shutdown()


if __name__ == '__main__':
    if sys.argv[1:2] == [RELAY]:
        relay(sys.argv[2])
    main()
