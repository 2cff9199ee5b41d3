# SPDX-License-Identifier: Apache-2.0
"""
Time the way from a joint state to its command over DDS, beside a bare rclpy relay.

    python benchmarks/latency.py [--pairs 10] [--seconds 10] [--loss-seconds 60] [--fifo]
                                 [--write]

A driver process publishes the joint states of a Panda at 1 kHz, each a little different. In turns,
a bare relay (a subscription whose callback publishes the positions as Float64MultiArray, under
rclpy.spin) and the dynamics node answer: in computed torque, along a trajectory, with all its
publications subscribed to by a third process. Latency is from the driver's publish() to the moment
at which the middleware of the driver's process has received the command; a command is matched to
its state by content. The first two seconds of a run do not count.

--fifo gives driver, relay and node the same real-time priority, which takes a busy machine's other
work out of the numbers; it needs the right to. The third process has none: with it, all of them
may come to need more of a processor than the 95 % that the kernel leaves to real-time work, and
are held back for 50 ms.
--write puts the tables into docs/latency.md.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from robots import public_urdf
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.msg import DynamicsState

ROOT = Path(__file__).resolve().parents[1]
RATE = 1000.0
WARM_UP = 2.0
ARM = [f'panda_joint{i}' for i in range(1, 8)]
POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
SENSOR = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
EVERYTHING = QoSProfile(depth=20000)
FIFO_PRIORITY = 50
DOCUMENT = ROOT / 'docs' / 'latency.md'
BETWEEN_MARKS = re.compile(r'(?<=<!-- latency: begin -->\n).*?(?=<!-- latency: end -->)', re.S)


@dataclass
class Run:
    """Latencies [us] of one run, and what was lost after the start."""

    latency: np.ndarray
    sent: int
    answered: int

    def percentile(self, percent: float) -> float:
        return float(np.percentile(self.latency, percent))


def set_priority(pid: int, fifo: bool) -> None:
    """Give a process, 0 for this one, the real-time priority, or take it away."""
    policy, priority = (os.SCHED_FIFO, FIFO_PRIORITY) if fifo else (os.SCHED_OTHER, 0)
    os.sched_setscheduler(pid, policy, os.sched_param(priority))


def stolen() -> float:
    """Return the time [s] that the hypervisor has taken from this machine's processors."""
    line = Path('/proc/stat').read_text(encoding='utf-8').split('\n', 1)[0]
    return int(line.split()[8]) / os.sysconf('SC_CLK_TCK')


def begin(fifo: bool) -> None:
    """Choose domain and transport, and take the priority."""
    os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 100))
    # Fast DDS's shared memory may hold a publisher up for 333 ms (its issue 6535); with discovery
    # limited to this machine it cannot be switched off.
    os.environ.setdefault('FASTDDS_BUILTIN_TRANSPORTS', 'UDPv4')
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'SYSTEM_DEFAULT'
    if fifo:
        set_priority(0, fifo)
    rclpy.init()


# --- the processes -----------------------------------------------------------------------------


def relay(executor_name: str) -> None:
    """Publish the position of every joint state."""
    rclpy.init()
    node = rclpy.create_node('relay')
    commands = node.create_publisher(Float64MultiArray, '/relay/commands', 10)
    node.create_subscription(
        JointState,
        '/joint_states',
        lambda message: commands.publish(Float64MultiArray(data=message.position)),
        SENSOR,
    )
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        if executor_name == 'events':
            from rclpy.experimental import EventsExecutor

            executor = EventsExecutor()
            executor.add_node(node)
            while True:
                executor.spin_once(timeout_sec=0.05)
        rclpy.spin(node)


def listen(file: str) -> None:
    """Subscribe to what the node publishes beside its commands; keep which state caused what."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node('listener')
    seen: list[tuple[int, bytes]] = []

    def keep(message: JointState) -> None:
        stamp = message.header.stamp
        seen.append((stamp.sec * 10**9 + stamp.nanosec, message.effort.tobytes()))

    node.create_subscription(JointState, '/dynamics_node/torques', keep, EVERYTHING)
    node.create_subscription(
        DynamicsState, '/dynamics_node/dynamics_state', lambda data: None, EVERYTHING, raw=True
    )
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    is_over = threading.Event()
    signal.signal(signal.SIGINT, lambda number, frame: is_over.set())
    while not is_over.is_set():
        executor.spin_once(timeout_sec=0.1)
    stamps = np.array([stamp for stamp, _ in seen], dtype=np.int64)
    efforts = np.frombuffer(b''.join(effort for _, effort in seen)).reshape(-1, len(ARM))
    np.savez(file, stamps=stamps, efforts=efforts)


@contextlib.contextmanager
def process(*arguments: str, fifo: bool = False) -> Iterator[subprocess.Popen]:
    """Run a Python process until the block ends, with a real-time priority or with none."""
    child = subprocess.Popen(
        [sys.executable, *arguments], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    set_priority(child.pid, fifo)
    try:
        yield child
    finally:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(15.0)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


# --- the driver --------------------------------------------------------------------------------


class Driver:
    """Publishes joint states at 1 kHz and keeps when which command was received."""

    def __init__(self, topic: str) -> None:
        self.node = rclpy.create_node('driver')
        self.states = self.node.create_publisher(JointState, '/joint_states', 10)
        self.received: list[tuple[int, bytes]] = []
        self.node.create_subscription(Float64MultiArray, topic, self._on_command, EVERYTHING)
        self.trajectories = self.node.create_publisher(
            JointTrajectory, '/dynamics_node/joint_trajectory', 10
        )
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self._spinning = True
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        while self._spinning:
            self.executor.spin_once(timeout_sec=0.1)

    def close(self) -> None:
        self._spinning = False
        self._thread.join()
        self.executor.shutdown()
        self.node.destroy_node()

    def _on_command(self, message: Float64MultiArray, info: dict[str, int]) -> None:
        self.received.append((info['received_timestamp'], message.data.tobytes()))

    def wait_for_peer(self) -> None:
        """Publish slowly until somebody answers."""
        deadline = time.monotonic() + 60.0
        while not self.received:
            assert time.monotonic() < deadline, 'nobody answers'
            self.publish(POSITION)
            time.sleep(0.01)

    def set_out(self) -> None:
        """Send a long motion, where a node listens."""
        goal = JointTrajectoryPoint(positions=(POSITION + 0.2).tolist())
        goal.time_from_start.sec = 300
        self.trajectories.publish(JointTrajectory(joint_names=ARM, points=[goal]))

    def publish(self, position: np.ndarray) -> int:
        message = JointState(name=ARM, position=position.tolist(), velocity=[0.0] * len(ARM))
        now = time.time_ns()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 10**9)
        self.states.publish(message)
        return now

    def stream(self, seconds: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the times [ns] and the positions of what was published in a time [s]."""
        count = round(seconds * RATE)
        times = np.empty(count, dtype=np.int64)
        # Every state is another one, and so is every torque.
        positions = POSITION + 1e-7 * np.arange(1, count + 1)[:, None]
        gc.collect()
        gc.freeze()  # a round of the collector would be a pause of the driver's
        begin = time.monotonic() + 0.1
        for k in range(count):
            time.sleep(max(begin + k / RATE - time.monotonic(), 0.0))
            times[k] = self.publish(positions[k])
        time.sleep(0.5)
        return times, positions


def measured(
    topic: str, seconds: float, torques: Path | None, listener: subprocess.Popen | None
) -> Run:
    """Return the latencies of one run against what answers on a topic."""
    driver = Driver(topic)
    try:
        driver.wait_for_peer()
        if torques is not None:
            driver.set_out()
            time.sleep(0.2)
        times, positions = driver.stream(WARM_UP + seconds)
    finally:
        driver.close()
    if torques is None or listener is None:
        cause = {position.tobytes(): sent for position, sent in zip(positions, times)}
    else:
        listener.send_signal(signal.SIGINT)
        listener.wait(30.0)
        known = np.load(torques)
        cause = {
            effort.tobytes(): int(stamp)
            for stamp, effort in zip(known['stamps'], known['efforts'])
        }
    counted = times[round(WARM_UP * RATE) :]
    latency = {
        cause[data]: received - cause[data] for received, data in driver.received if data in cause
    }
    latencies = [latency[sent] for sent in counted.tolist() if sent in latency]
    # Every state has one command; what the third process was too busy to hear of was still sent.
    answered = sum(received > counted[0] for received, _ in driver.received)
    return Run(1e-3 * np.array(latencies), len(counted), min(answered, len(counted)))


def relay_run(seconds: float, fifo: bool, executor: str = 'spin') -> Run:
    with process(__file__, '--relay', executor, fifo=fifo):
        return measured('/relay/commands', seconds, None, None)


def node_arguments() -> list[str]:
    """Return the command line of the dynamics node for the Panda."""
    parameters = {
        'urdf_file': str(public_urdf('panda.urdf')),
        'base_link': 'panda_link0',
        'tip_link': 'panda_link8',
        'mode': 'computed_torque',
        'state_timeout': 0.5,
    }
    arguments = ['-m', 'robodyn_ros.ros.dynamics.dynamics_node', '--ros-args']
    for name, value in parameters.items():
        arguments += ['-p', f'{name}:={value}']
    return arguments


def node_run(seconds: float, fifo: bool) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'torques.npz'
        with (
            process(__file__, '--listen', str(file)) as listener,
            process(*node_arguments(), fifo=fifo),
        ):
            return measured('/dynamics_node/commands', seconds, file, listener)


# --- the result --------------------------------------------------------------------------------


def tables(
    pairs: list[tuple[Run, Run]], same: list[Run], long: Run, fifo: bool, taken: float
) -> str:
    """Return the tables as Markdown."""
    lines = [
        f'{len(pairs)} interleaved pairs of {pairs[0][0].sent / RATE:.0f} s, 1 kHz, seven joints, '
        f'{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}, '
        f'{taken:.1f} s of processor time taken by the hypervisor, '
        + (
            'driver, relay and node at the same real-time priority, '
            if fifo
            else 'no priorities, '
        )
        + f'{os.environ["FASTDDS_BUILTIN_TRANSPORTS"]}.',
        '',
        '| pair | relay p50 | p99 [µs] | node p50 | p99 [µs] | p50 ratio | p99 ratio |',
        '|---|---|---|---|---|---|---|',
    ]
    ratios = np.array(
        [[node.percentile(q) / bare.percentile(q) for q in (50, 99)] for bare, node in pairs]
    )
    for i, ((bare, node), ratio) in enumerate(zip(pairs, ratios), start=1):
        figures = [run.percentile(q) for run in (bare, node) for q in (50, 99)]
        lines.append(
            f'| {i} | '
            + ' | '.join(f'{figure:.0f}' for figure in figures)
            + ' | '
            + ' | '.join(f'{value:.2f}' for value in ratio)
            + ' |'
        )
    middle = np.median(ratios, axis=0)
    lines += [
        f'| **median** | | | | | **{middle[0]:.2f}** | **{middle[1]:.2f}** |',
        '',
        f'Lost after the start: {sum(r.sent - r.answered for r, _ in pairs)} of '
        f'{sum(r.sent for r, _ in pairs)} by the relay, '
        f'{sum(r.sent - r.answered for _, r in pairs)} of {sum(r.sent for _, r in pairs)} by the '
        f'node; in one run of {long.sent / RATE:.0f} s, {long.sent - long.answered} of '
        f'{long.sent} by the node.',
    ]
    if same:
        p50, p99 = (np.median([run.percentile(q) for run in same]) for q in (50, 99))
        nodes = [node for _, node in pairs]
        lines += [
            '',
            'The node runs on the events executor, the relay on what rclpy.spin takes. A '
            f'relay on the events executor, {len(same)} runs: p50 {p50:.0f} µs, p99 {p99:.0f} µs; '
            'beside it the node takes '
            f'{np.median([run.percentile(50) for run in nodes]) / p50:.2f} and '
            f'{np.median([run.percentile(99) for run in nodes]) / p99:.2f} times as long.',
        ]
    return '\n'.join(lines) + '\n'


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--pairs', type=int, default=10)
    parser.add_argument('--seconds', type=float, default=10.0)
    parser.add_argument('--loss-seconds', type=float, default=60.0)
    parser.add_argument('--fifo', action='store_true')
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--relay', help=argparse.SUPPRESS)
    parser.add_argument('--listen', help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.relay:
        relay(arguments.relay)
        return 0
    if arguments.listen:
        listen(arguments.listen)
        return 0
    begin(arguments.fifo)
    taken = stolen()
    pairs, same = [], []
    for i in range(arguments.pairs):
        bare = relay_run(arguments.seconds, arguments.fifo)
        node = node_run(arguments.seconds, arguments.fifo)
        pairs.append((bare, node))
        if i % 3 == 0:
            same.append(relay_run(arguments.seconds, arguments.fifo, 'events'))
        print(
            f'pair {i + 1}: relay p50 {bare.percentile(50):.0f} p99 {bare.percentile(99):.0f}, '
            f'node p50 {node.percentile(50):.0f} p99 {node.percentile(99):.0f} us, lost '
            f'{bare.sent - bare.answered}, {node.sent - node.answered}',
            flush=True,
        )
    long = node_run(arguments.loss_seconds, arguments.fifo)
    rclpy.shutdown()
    text = tables(pairs, same, long, arguments.fifo, stolen() - taken)
    print('\n' + text)
    if arguments.write:
        document = DOCUMENT.read_text(encoding='utf-8')
        DOCUMENT.write_text(BETWEEN_MARKS.sub(lambda _: text, document), encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
