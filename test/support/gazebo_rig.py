# SPDX-License-Identifier: Apache-2.0
"""
Gazebo or MuJoCo without a window, by our launch files, and what the arms do in it.

Times are those of the simulation unless said otherwise. What happens is written down by a thread,
so that nothing is lost while the test thinks.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import domains
import numpy as np
import rclpy
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.msg import DynamicsState
from robodyn_ros import RobotModel, compile_model
from robodyn_ros.ros.simulated_arm import NEEDED_BY, is_installed

try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:  # of ros2_controllers
    JointTrajectoryControllerState = None

ROOT = Path(__file__).resolve().parents[2]
WORLD = ROOT / 'worlds' / 'empty.sdf'
PATIENCE = 180.0  # for anything that must happen; a loaded machine may take long [s]
PERIOD = 0.02  # between two looks [s]
MATCHING = 1.0  # until a subscription knows of a publisher that already knows it [s]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
EVERY = QoSProfile(depth=10_000, reliability=ReliabilityPolicy.BEST_EFFORT)
# Of each way: what is activated last, and where trajectories are sent.
WAYS = {
    'forward': ('forward_effort_controller', 'dynamics_node/joint_trajectory'),
    'trajectory': ('joint_trajectory_controller', 'feedforward/joint_trajectory'),
    'chained': ('inverse_dynamics_controller', 'joint_trajectory_controller/joint_trajectory'),
}
DIRECTLY = 'joint_trajectory_controller/joint_trajectory'
DOCS_GOAL = np.array([0.5, 0.5, -0.5, 0.5, 0.5, 0.0])  # of docs/simulators.md, in 3 s


def missing(way: str, simulator: str = 'gazebo') -> list[str]:
    """Return what a way of a launch file needs and this machine has not."""
    launch = runpy.run_path(str(ROOT / 'launch' / f'{simulator}.launch.py'))
    packages = ['robodyn_ros', *launch['NEEDED'], *NEEDED_BY[way]]
    needed = ('gz', 'ros2') if simulator == 'gazebo' else ('ros2',)
    programs = [name for name in needed if shutil.which(name) is None]
    return programs + [name for name in packages if not is_installed(name)]


def share(package: str) -> Path:
    """Return the folder that a package is installed in, or that of these sources."""
    try:
        return Path(get_package_share_directory(package))
    except PackageNotFoundError:
        return ROOT


class Arm:
    """
    What was heard of one arm, that of a namespace.

    Messages are kept as they came, and read when they are asked for: listening shares the machine
    with the simulation.
    """

    def __init__(self, node: Any, namespace: str, way: str) -> None:
        self.namespace = namespace
        self.description = ''
        self.states: list[bytes] = []
        self.cycles: list[bytes] = []  # of what follows references, each with the reference
        listen(node, JointState, f'{namespace}/joint_states', self.states)
        node.create_subscription(
            String, f'{namespace}/robot_description', self._on_description, LATCHED
        )
        if way == 'forward':
            self._cycle, topic = DynamicsState, 'dynamics_node/dynamics_state'
        else:
            self._cycle = JointTrajectoryControllerState
            topic = 'joint_trajectory_controller/controller_state'
        listen(node, self._cycle, f'{namespace}/{topic}', self.cycles)

    def _on_description(self, message: String) -> None:
        self.description = message.data

    @cached_property
    def names(self) -> list[str]:
        """Of the joints, by the alphabet: the order of every array."""
        return sorted(deserialize_message(self.states[0], JointState).name)

    @property
    def now(self) -> float:
        """Stamp of the latest joint state [s]; before the first: less than zero."""
        return stamp(self.states[-1]) if self.states else -1.0

    @property
    def position(self) -> np.ndarray:
        """Where the arm is [rad]."""
        return self._state(self.states[-1])[0]

    @property
    def speed(self) -> float:
        """Of the fastest joint [rad/s]."""
        return float(np.abs(self._state(self.states[-1])[1]).max())

    @property
    def desired(self) -> np.ndarray | None:
        """Where the arm is to be [rad]; None: nowhere."""
        pair = self._tracking(self.cycles[-1]) if self.cycles else None
        return None if pair is None else pair[0]

    def _state(self, content: bytes) -> tuple[np.ndarray, np.ndarray]:
        message = deserialize_message(content, JointState)
        order = [message.name.index(name) for name in self.names]
        return np.array(message.position)[order], np.array(message.velocity)[order]

    def between(self, begin: float, end: float = np.inf) -> tuple[np.ndarray, ...]:
        """Return times (N,) [s], positions (N, n) and velocities (N, n) of the joint states."""
        return _columns(self.states, begin, end, self._state)

    def tracked(self, begin: float, end: float = np.inf) -> tuple[np.ndarray, ...]:
        """Return times (N,) [s], desired and actual positions (N, n) of what was followed."""
        return _columns(self.cycles, begin, end, self._tracking)

    def _tracking(self, content: bytes) -> tuple[Any, Any] | None:
        message = deserialize_message(content, self._cycle)
        order = np.argsort(message.joint_names)
        if self._cycle is not DynamicsState:
            desired, actual = message.reference.positions, message.feedback.positions
        elif len(message.reference_position):
            desired, actual = message.reference_position, message.position
        else:
            return None
        return np.array(desired)[order], np.array(actual)[order]

    def energy(self, begin: float, end: float = np.inf, **chain: str) -> np.ndarray:
        """Return times (N,) [s] and kinetic energies (N,) [J], between two times."""
        model = RobotModel.from_urdf(self.description, **chain)
        mass = compile_model(model).mass_matrix
        order = [self.names.index(name) for name in model.joint_names]
        times, position, velocity = self.between(begin, end)
        masses = mass(np.ascontiguousarray(position[:, order]))
        return times, 0.5 * np.einsum(
            'ni,nij,nj->n', velocity[:, order], masses, velocity[:, order]
        )


def listen(node: Any, kind: Any, topic: str, contents: list[bytes]) -> None:
    """
    Append each message of a topic, serialized.

    All that wait are taken at once: an executor that took them singly would fall behind, and show
    as present what is long past.
    """

    def take(content: bytes) -> None:
        contents.append(content)
        with subscription.handle:
            while (taken := subscription.handle.take_message(kind, True)) is not None:
                contents.append(taken[0])

    subscription = node.create_subscription(kind, topic, take, EVERY, raw=True)


def stamp(content: bytes) -> float:
    """Return the time [s] that a serialized message with a header begins with."""
    whole, fraction = struct.unpack_from('<iI', content, 4)
    return whole + 1e-9 * fraction


def _columns(contents: list[bytes], begin: float, end: float, read: Any) -> tuple[np.ndarray, ...]:
    """Return the stamps between two times, and the columns of what is read from them."""
    chosen = [content for content in list(contents) if begin <= stamp(content) <= end]
    rows = [(stamp(content), read(content)) for content in chosen]
    rows = [(time, *row) for time, row in rows if row is not None]
    if not rows:
        raise RuntimeError(f'nothing was heard between {begin} and {end} s')
    return tuple(np.array(column) for column in zip(*rows))


class GazeboRig:
    """
    Gazebo as ``ros2 launch robodyn_ros gazebo.launch.py`` starts it, without a window.

    Parameters
    ----------
    folder : Path
        For the log and the world.
    real_time_factor : float, optional
        That the simulator tries to hold; a loaded machine holds less.
    way : str, optional
        Of the torques.
    **arguments : str
        Of the launch file.
    """

    launched = 'gazebo.launch.py'
    windowless = {'gz_args': '-s -r -v 3'}

    def __init__(
        self, folder: Path, real_time_factor: float = 1.0, way: str = 'forward', **arguments: str
    ) -> None:
        self.way = way
        self.controller, self.topic = WAYS[way]
        self.folder = Path(folder)
        self.domain = domains.claim()
        self.environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(self.domain),
            'GZ_PARTITION': f'robodyn_{os.getpid()}_{self.domain}',
            'IGN_PARTITION': f'robodyn_{os.getpid()}_{self.domain}',
            'RCUTILS_LOGGING_BUFFERED_STREAM': '0',
        }
        self.arms: dict[str, Arm] = {}
        # Each new sentence of /diagnostics: when [s], by whom, its level and itself.
        self.said: list[tuple[float, str, int, str]] = []
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=self.domain)
        self.node = rclpy.create_node('listener', context=self._context)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, EVERY)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._processes: list[subprocess.Popen] = []
        self._files: list[Path] = []
        self._publishers: dict[str, Any] = {}
        self.arm = self.launch(**{**self.simulated(real_time_factor), **arguments})
        self._thread.start()

    def simulated(self, real_time_factor: float) -> dict[str, str]:
        """Return the arguments of the launch file that set the simulator's speed."""
        world = self.folder / 'world.sdf'
        factor = f'<real_time_factor>{real_time_factor:g}</real_time_factor>'
        text = WORLD.read_text(encoding='utf-8')
        world.write_text(re.sub('<real_time_factor>.*</real_time_factor>', factor, text))
        return {'world': str(world)}

    def _spin(self) -> None:
        while not self._is_over.is_set():
            self._executor.spin_once(timeout_sec=0.1)

    @property
    def now(self) -> float:
        """Simulated time, by the stamps of the first arm's joint states [s]."""
        return self.arm.now

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            earlier = [entry for entry in self.said if entry[1] == status.name]
            if not earlier or earlier[-1][3] != status.message:
                level = int.from_bytes(status.level, 'big')
                self.said.append((self.now, status.name, level, status.message))

    def launch(self, **arguments: str) -> Arm:
        """Start the launch file, and return the arm that it adds."""
        namespace = arguments.get('namespace', '').strip('/')
        namespace = f'/{namespace}' if namespace else ''
        self.arms[namespace] = Arm(self.node, namespace, self.way)
        given = {'way': self.way, **self.windowless, **arguments}
        file = self.folder / f'launch_{len(self._files)}.log'
        with file.open('w') as log:
            self._processes.append(
                subprocess.Popen(
                    ['ros2', 'launch', 'robodyn_ros', self.launched]
                    + [f'{name}:={value}' for name, value in given.items()],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        self._files.append(file)
        return self.arms[namespace]

    @property
    def log(self) -> str:
        """What was written so far."""
        return '\n'.join(file.read_text(errors='replace') for file in self._files)

    def close(self) -> None:
        """End what was launched, as Ctrl-C does."""
        for process in reversed(self._processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        for process in self._processes:
            try:
                process.wait(30.0)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._is_over.set()
        self._thread.join()
        rclpy.shutdown(context=self._context)
        domains.release(self.domain)

    # --- waiting -------------------------------------------------------------------------------

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait for a condition; fail, with the log, if it never holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline or any(p.poll() is not None for p in self._processes):
                raise RuntimeError(f'waited in vain\n{self.log}')
            time.sleep(PERIOD)

    def simulate(self, duration: float) -> tuple[float, float]:
        """Wait while the simulation goes on for a time [s]; return its begin and its end."""
        begin = self.now
        end, seen, moved = begin + duration, begin, time.monotonic()
        while self.now < end:
            if self.now > seen:
                seen, moved = self.now, time.monotonic()
            if time.monotonic() > moved + PATIENCE:
                raise RuntimeError(f'the simulation stands still at {self.now} s\n{self.log}')
            time.sleep(PERIOD)
        return begin, end

    def bring_up(self) -> None:
        """Wait until the controllers of every arm are active, and it is heard."""
        done = re.compile(f"activated all the parsed controllers list.*'{self.controller}'")
        self.until(lambda: len(done.findall(self.log)) == len(self.arms))
        self.until(lambda: all(arm.states and arm.description for arm in self.arms.values()))

    # --- what is done --------------------------------------------------------------------------

    def move(self, goal: np.ndarray, seconds: float, **where: Any) -> float:
        """
        Send a trajectory, and return the simulated time then [s].

        Its point has a position alone, as that of the docs. For a joint trajectory controller
        it ends at rest: without velocities that one would move at a constant speed.

        Parameters
        ----------
        goal : array, shape (n,)
            To move to [rad].
        seconds : float
            That it takes [s].
        arm : Arm, optional
            Which one; the first.
        topic : str, optional
            Where, in its namespace; where the way has it.
        """
        arm = where.get('arm', self.arm)
        topic = f'{arm.namespace}/{where.get("topic", self.topic)}'
        if topic not in self._publishers:
            self._publishers[topic] = self.node.create_publisher(JointTrajectory, topic, 10)
            self.until(lambda: self._publishers[topic].get_subscription_count() > 0)
            time.sleep(MATCHING)
        publisher = self._publishers[topic]
        point = JointTrajectoryPoint(positions=[float(each) for each in goal])
        if topic.endswith(DIRECTLY):
            point.velocities = point.accelerations = [0.0] * len(goal)
        point.time_from_start.sec = int(seconds)
        point.time_from_start.nanosec = round(seconds % 1.0 * 1e9)
        publisher.publish(JointTrajectory(joint_names=arm.names, points=[point]))
        return self.now

    def arrive(self, begin: float, goal: np.ndarray, arm: Arm) -> tuple[float, float]:
        """
        Wait until an arm has been led to a goal [rad], and half a second more.

        Returns the times between which its reference moved [s], of what began after a time [s]: on
        a busy machine a trajectory may be taken late.
        """
        self.until(lambda: arm.desired is not None and np.allclose(arm.desired, goal, atol=1e-4))
        end = self.simulate(0.5)[1]
        times, desired, _ = arm.tracked(begin, end)
        moves = np.abs(np.diff(desired, axis=0)).max(axis=1) > 0.0
        return tuple(float(time) for time in times[1:][moves][[0, -1]])

    def call(self, kind: Any, name: str, **fields: Any) -> Any:
        """Return the answer of a ROS service."""
        client = self.node.create_client(kind, name)
        self.until(client.service_is_ready)
        future = client.call_async(kind.Request(**fields))
        self.until(future.done)
        self.node.destroy_client(client)
        return future.result()

    def set_parameters(self, node: str, **values: Any) -> None:
        """Set parameters of a node, ``__`` in a name being a dot."""
        parameters = [
            Parameter(name.replace('__', '.'), value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        answer = self.call(SetParameters, f'{node}/set_parameters', parameters=parameters)
        reasons = [result.reason for result in answer.results if not result.successful]
        if reasons:
            raise RuntimeError('; '.join(reasons))

    def ask(self, service: str, request: str, answer: str, content: str) -> str:
        """Return the answer of a service of Gazebo."""
        command = ['gz', 'service', '-s', service, '--reqtype', f'gz.msgs.{request}']
        command += ['--reptype', f'gz.msgs.{answer}', '--timeout', '60000', '--req', content]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=90
        ).stdout

    def control(self, content: str) -> None:
        """Control the world: ``pause: true``, ``multi_step: 5``, ``reset: {all: true}``."""
        said = self.ask('/world/empty/control', 'WorldControl', 'Boolean', content)
        if 'true' not in said:
            raise RuntimeError(f'Gazebo refused {content}: {said}')

    def set_real_time_factor(self, factor: float) -> None:
        """Have Gazebo try to hold another one."""
        physics = f'max_step_size: 0.001, real_time_factor: {factor}'
        self.ask('/world/empty/set_physics', 'Physics', 'Boolean', physics)


class MujocoRig(GazeboRig):
    """MuJoCo as ``ros2 launch robodyn_ros mujoco.launch.py`` starts it, with one arm."""

    launched = 'mujoco.launch.py'
    windowless = {'headless': 'true'}

    def simulated(self, real_time_factor: float) -> dict[str, str]:
        """Return the argument of the launch file that sets the simulator's speed."""
        return {'real_time_factor': f'{real_time_factor:g}'}
