# SPDX-License-Identifier: Apache-2.0
"""
Time the way from a joint state to its command over DDS, beside bare rclpy relays.

    python benchmarks/latency.py [--rounds 10] [--seconds 10] [--loss-seconds 60] [--fifo]
                                 [--cpp-relay FILE] [--base FOLDER] [--write]

A driver process publishes the joint states of a Panda at 1 kHz, each a little different. In turns,
relays and the dynamics node answer, each alone and with a third process that listens to
everything: a relay is a subscription whose callback publishes the positions as Float64MultiArray,
under rclpy.spin or on the events executor; with the third process it publishes a JointState and a
DynamicsState, too, as the node does. The node is in computed torque, on a reference. Latency is
from the driver's publish() to the moment at which the middleware of the driver's process has
received the command; a command is matched to its state by content. The processor time is that of
the responding process and its children, per state. The first seconds of a run do not count: a node
that has just begun to command listens for others.

--fifo gives driver, relay and node the same real-time priority, which takes a busy machine's other
work out of the numbers; it needs the right to. The third process has none: with it, all of them
may come to need more of a processor than the 95 % that the kernel leaves to real-time work, and
are held back for 50 ms.
--cpp-relay is the program of benchmarks/cpp_relay, which is built where rclcpp is: what no Python
node can do better than.
--base is another checkout, whose node runs in turns with this one's: the same for two commits.
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
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
import rclpy
from control_arm import torque_parts
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from robots import public_urdf
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.msg import DynamicsState
from robodyn_ros.control.control_stack import build_control_stack
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.settings import ControlSettings

ROOT = Path(__file__).resolve().parents[1]
RATE = 1000.0
WARM_UP = 7.0
ARM = [f'panda_joint{i}' for i in range(1, 8)]
POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
STEP = 1e-7  # from state to state [rad]
CHAIN = {'base_link': 'panda_link0', 'tip_link': 'panda_link8', 'mode': 'computed_torque'}
SENSOR = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
EVERYTHING = QoSProfile(depth=20000)
FIFO_PRIORITY = 50
QUIET = 0.3  # load average
DOCUMENT = ROOT / 'docs' / 'latency.md'


@dataclass
class Run:
    """Latencies [us] of one run, processor time [us] per state, and what was lost."""

    latency: np.ndarray
    processor_time: float
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


def wait_for_quiet(patience: float = 180.0) -> float:
    """Return the load average, once it is below ``QUIET`` or after a time [s]."""
    deadline = time.monotonic() + patience
    while os.getloadavg()[0] >= QUIET and time.monotonic() < deadline:
        time.sleep(5.0)
    return os.getloadavg()[0]


def processor_time(pid: int) -> float:
    """Return what a process and its descendants have used [s]."""
    total = 0.0
    with contextlib.suppress(OSError):
        for thread in Path(f'/proc/{pid}/task').iterdir():
            total += 1e-9 * int((thread / 'schedstat').read_text().split()[0])
            for child in (thread / 'children').read_text().split():
                total += processor_time(int(child))
    return total


def begin(fifo: bool) -> None:
    """Choose domain and transport, and take the priority."""
    os.environ.setdefault('ROS_DOMAIN_ID', str(101 + os.getpid() % 100))
    # Fast DDS's shared memory may hold a publisher up for 333 ms (its issue 6535); with discovery
    # limited to this machine it cannot be switched off.
    os.environ.setdefault('FASTDDS_BUILTIN_TRANSPORTS', 'UDPv4')
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'SYSTEM_DEFAULT'
    if fifo:
        set_priority(0, fifo)
    rclpy.init()


# --- the processes -----------------------------------------------------------------------------


def relay(executor_name: str, publishes_all: bool) -> None:
    """Publish the position of every joint state, as one message or as the node's three."""
    rclpy.init()
    node = rclpy.create_node('relay')
    commands = node.create_publisher(Float64MultiArray, '/peer/commands', 10)
    torques = node.create_publisher(JointState, '/peer/torques', 10)
    states = node.create_publisher(DynamicsState, '/peer/dynamics_state', 10)

    def answer(message: JointState) -> None:
        numbers = message.position
        commands.publish(Float64MultiArray(data=numbers))
        if publishes_all:
            torques.publish(JointState(header=message.header, name=ARM, effort=numbers))
            state = DynamicsState(header=message.header, joint_names=ARM, mode='computed_torque')
            for field in ('position', 'velocity', 'total', *PARTS):
                setattr(state, field, numbers)
            states.publish(state)

    node.create_subscription(JointState, '/joint_states', answer, SENSOR)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        if executor_name == 'events':
            from rclpy.experimental import EventsExecutor

            executor = EventsExecutor()
            executor.add_node(node)
            while True:
                executor.spin_once(timeout_sec=0.05)
        rclpy.spin(node)


PARTS = ('reference_position', 'reference_velocity', 'reference_acceleration')
PARTS += ('inertial', 'coriolis', 'gravity', 'friction', 'feedback', 'effort')


def listen() -> None:
    """Subscribe to what is published beside the commands."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node('listener')
    for kind, name in ((JointState, 'torques'), (DynamicsState, 'dynamics_state')):
        node.create_subscription(kind, f'/peer/{name}', lambda data: None, EVERYTHING, raw=True)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    is_over = threading.Event()
    signal.signal(signal.SIGINT, lambda number, frame: is_over.set())
    while not is_over.is_set():
        executor.spin_once(timeout_sec=0.1)


@contextlib.contextmanager
def process(
    *command: str, fifo: bool = False, tree: Path | None = None
) -> Iterator[subprocess.Popen]:
    """Run a process until the block ends, with a real-time priority or none, in a folder."""
    child = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=tree
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

    def __init__(self) -> None:
        self.node = rclpy.create_node('driver')
        self.states = self.node.create_publisher(JointState, '/joint_states', 10)
        self.received: list[tuple[int, bytes]] = []
        self.node.create_subscription(
            Float64MultiArray, '/peer/commands', self._on_command, EVERYTHING
        )
        self.trajectories = self.node.create_publisher(
            JointTrajectory, '/peer/joint_trajectory', 10
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

    def set_out(self, way: float = 0.0) -> None:
        """Send a reference that is computed in every cycle, by default to where it begins."""
        goal = JointTrajectoryPoint(positions=(POSITION + way).tolist())
        goal.time_from_start.sec = 300
        self.trajectories.publish(JointTrajectory(joint_names=ARM, points=[goal]))

    def publish(self, position: np.ndarray) -> int:
        message = JointState(name=ARM, position=position.tolist(), velocity=[0.0] * len(ARM))
        now = time.time_ns()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 10**9)
        self.states.publish(message)
        return now

    def stream(
        self, seconds: float, pid: int
    ) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
        """
        Return the times [ns] and the positions of what was published in a time [s].

        And the processor time of a process [s], after the first seconds and at the end.
        """
        count = round(seconds * RATE)
        times = np.empty(count, dtype=np.int64)
        # Every state is another one, and so is every torque.
        positions = POSITION + STEP * np.arange(1, count + 1)[:, None]
        gc.collect()
        gc.freeze()  # a round of the collector would be a pause of the driver's
        begin = time.monotonic() + 0.1
        before = 0.0
        for k in range(count):
            if k == round(WARM_UP * RATE):
                before = processor_time(pid)
            time.sleep(max(begin + k / RATE - time.monotonic(), 0.0))
            times[k] = self.publish(positions[k])
        used = (before, processor_time(pid))
        time.sleep(0.5)
        return times, positions, used


def expected_torques(positions: np.ndarray) -> np.ndarray:
    """Return what the node commands at each position, shape (k, n) [N m]."""
    stack = build_control_stack(
        ControlSettings(urdf_file=str(public_urdf('panda.urdf')), **CHAIN), None
    )
    zero = np.zeros(len(ARM))
    wanted, parts = (
        ReferenceState(POSITION, zero, zero, zero),
        torque_parts(stack.pipeline.law, zero),
    )
    return np.array([parts(position, zero, wanted).total for position in positions])


def measured(seconds: float, pid: int, is_node: bool) -> Run:
    """Return the latencies of one run against the process that answers."""
    driver = Driver()
    try:
        driver.wait_for_peer()
        if is_node:
            driver.set_out()
            time.sleep(0.2)
        times, positions, (before, after) = driver.stream(WARM_UP + seconds, pid)
    finally:
        driver.close()
    first = round(WARM_UP * RATE)
    times, answers = times[first:], positions[first:]
    if is_node:
        answers = expected_torques(answers)
    # Answers move along a line, by the same step from state to state.
    way = answers[-1] - answers[0]
    places = answers @ way
    step = float(np.diff(places).mean())
    at = np.array([received for received, _ in driver.received])
    found = np.frombuffer(b''.join(data for _, data in driver.received)).reshape(-1, len(ARM))
    state = np.rint(np.interp(found @ way, places, np.arange(len(places)))).astype(int)
    is_exact = np.abs(found @ way - places[state]) < 0.01 * step
    # Behind the last state the node goes on for a while: a state's first answer counts.
    answered, first_answer = np.unique(state[is_exact], return_index=True)
    latency = at[is_exact][first_answer] - times[answered]
    return Run(1e-3 * latency, 1e6 * (after - before) / len(times), len(times), len(answered))


def node_arguments(state_publish_rate: float = 10 * RATE) -> list[str]:
    """Return the command line of the dynamics node for the Panda; details of each cycle."""
    parameters = {'urdf_file': str(public_urdf('panda.urdf')), **CHAIN, 'state_timeout': 0.5}
    parameters['state_publish_rate'] = state_publish_rate
    arguments = [
        sys.executable,
        '-m',
        'robodyn_ros.ros.dynamics.dynamics_node',
        '--ros-args',
        '-r',
        '__node:=peer',
    ]
    for name, value in parameters.items():
        arguments += ['-p', f'{name}:={value}']
    return arguments


@dataclass(frozen=True)
class Peer:
    """Who answers: its name in the tables, its command line, and the tree of a node."""

    name: str
    command: tuple[str, ...]
    tree: Path | None = None


def peers_of(cpp_relay: Path | None, base: Path | None) -> dict[str, Peer]:
    """Return who takes turns."""
    peers = {
        'spin': Peer('relay', (sys.executable, __file__, '--relay', 'spin')),
        'events': Peer('relay, events executor', (sys.executable, __file__, '--relay', 'events')),
    }
    if cpp_relay is not None:
        peers['cpp'] = Peer('relay in C++', (str(cpp_relay.resolve()),))
    if base is not None:
        peers['base'] = Peer(f'node of {base.name}', tuple(node_arguments()), base.resolve())
    peers['node'] = Peer('node', tuple(node_arguments()), ROOT)
    return peers


def run(peer: Peer, seconds: float, fifo: bool, has_subscribers: bool) -> Run:
    """Return a run against a peer."""
    is_node = peer.tree is not None
    command = peer.command if is_node else (*peer.command, str(int(has_subscribers)))
    with contextlib.ExitStack() as stack:
        if has_subscribers:
            stack.enter_context(process(sys.executable, __file__, '--listen'))
        child = stack.enter_context(process(*command, fifo=fifo, tree=peer.tree))
        return measured(seconds, child.pid, is_node)


# --- the result --------------------------------------------------------------------------------

FIGURES: dict[str, Callable[[Run], float]] = {
    'p50': lambda one: one.percentile(50),
    'p99': lambda one: one.percentile(99),
    'p99.9': lambda one: one.percentile(99.9),
    'processor time': lambda one: one.processor_time,
}


def table(peers: dict[str, Peer], runs: dict[str, list[Run]], of: str) -> list[str]:
    """Return the medians of the peers [us] as Markdown."""
    lines = [f'| {of} | {" | ".join(FIGURES)} | lost |', '|---|' + '--:|' * (len(FIGURES) + 1)]
    for peer in peers:
        lost = sum(one.sent - one.answered for one in runs[peer])
        sent = sum(one.sent for one in runs[peer])
        values = ' | '.join(
            f'{np.median([figure(one) for one in runs[peer]]):.0f}' for figure in FIGURES.values()
        )
        lines.append(f'| {peers[peer].name} | {values} | {lost} of {sent} |')
    return lines


def ratios(peers: dict[str, Peer], runs: dict[bool, dict[str, list[Run]]]) -> list[str]:
    """Return the node's figures over those of the relays, medians of the rounds, as Markdown."""
    lines = [
        f'| the node, divided by | {" | ".join(FIGURES)} |',
        '|---|' + '--:|' * len(FIGURES),
    ]
    for has_subscribers, of_peers in runs.items():
        for to in [each for each in peers if each != 'node']:
            pairs = list(zip(of_peers['node'], of_peers[to], strict=True))
            values = ' | '.join(
                f'{np.median([figure(node) / figure(bare) for node, bare in pairs]):.2f}'
                for figure in FIGURES.values()
            )
            heard = 'with listeners' if has_subscribers else 'alone'
            lines.append(f'| {peers[to].name}, {heard} | {values} |')
    return lines


def put_into_page(mark: str, text: str) -> None:
    """Replace what stands between the marks of a name in docs/latency.md."""
    between = re.compile(rf'(?<=<!-- {mark}: begin -->\n).*?(?=<!-- {mark}: end -->)', re.S)
    document = DOCUMENT.read_text(encoding='utf-8')
    DOCUMENT.write_text(between.sub(lambda _: text, document), encoding='utf-8')


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--seconds', type=float, default=10.0)
    parser.add_argument('--loss-seconds', type=float, default=60.0)
    parser.add_argument('--fifo', action='store_true')
    parser.add_argument('--cpp-relay', type=Path)
    parser.add_argument('--base', type=Path)
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--relay', nargs=2, help=argparse.SUPPRESS)
    parser.add_argument('--listen', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.relay:
        relay(options.relay[0], options.relay[1] == '1')
        return 0
    if options.listen:
        listen()
        return 0
    load = wait_for_quiet()
    begin(options.fifo)
    taken = stolen()
    peers = peers_of(options.cpp_relay, options.base)
    runs: dict[bool, dict[str, list[Run]]] = {
        has_subscribers: {peer: [] for peer in peers} for has_subscribers in (False, True)
    }
    for i in range(options.rounds):
        for has_subscribers, of_peers in runs.items():
            for peer, kept in of_peers.items():
                kept.append(run(peers[peer], options.seconds, options.fifo, has_subscribers))
                print(
                    f'round {i + 1}: {peers[peer].name}{", heard" if has_subscribers else ""}: '
                    f'p50 {kept[-1].percentile(50):.0f}, p99 {kept[-1].percentile(99):.0f}, '
                    f'processor {kept[-1].processor_time:.0f} us, '
                    f'lost {kept[-1].sent - kept[-1].answered}',
                    flush=True,
                )
    long = run(peers['node'], options.loss_seconds, options.fifo, True)
    rclpy.shutdown()
    priorities = 'driver, relays and node at the same real-time priority'
    summary = [
        f'{options.rounds} interleaved rounds of {options.seconds:.0f} s, {RATE:.0f} Hz, seven '
        f'joints, {os.cpu_count()} cores, '
        f'{priorities if options.fifo else "no priorities"}, '
        f'{os.environ["FASTDDS_BUILTIN_TRANSPORTS"]}. Medians over the rounds.',
        '',
        *ratios(peers, runs),
        '',
        *table(peers, runs[False], 'alone [µs]'),
        '',
        *table(peers, runs[True], 'with listeners [µs]'),
        '',
        f'In {long.sent / RATE:.0f} s with listeners, {long.sent - long.answered} of '
        f'{long.sent} states had no answer from the node.',
    ]
    text = '\n'.join(summary) + '\n'
    print(
        f'\nLoad average {load:.2f} before, {stolen() - taken:.1f} s of processor time taken by '
        f'the hypervisor.\n\n{text}'
    )
    if options.write:
        put_into_page('latency', text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
