# SPDX-License-Identifier: Apache-2.0
"""A Panda in MuJoCo under the dynamics node, in real time, for benchmarks with disturbances."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fair_spinning import spin_until
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from robots import public_urdf
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_ros import RobotModel, mass_matrix
from robodyn_ros.ros.command_conflicts import WATCHDOG_LABEL

STATE_TIMEOUT, WATCHDOG_PERIOD = 0.1, 0.01
BOUND = STATE_TIMEOUT + WATCHDOG_PERIOD
POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
GOAL = POSITION + np.array([0.6, 0.4, -0.5, 0.5, 0.6, 0.5, 0.6])
MOTION_TIME = 2.0  # of which a second passes before the signal [s]
PATIENCE = 60.0
CHAIN = {'base_link': 'panda_link0', 'tip_link': 'panda_link8'}


@dataclass
class Heard:
    """What the listener got: (source time [s], sequence number, torque), and the last state."""

    commands: list[tuple[float, int, np.ndarray]] = field(default_factory=list)
    are_watchdogs: list[bool] = field(default_factory=list)
    state: JointState | None = None


class Scene:
    """
    A simulator, a node and a listener, each in a process of its own.

    Parameters
    ----------
    listener : Node
        Of this process.
    patch : str
        Program to run before the node.
    **parameters : object
        Of the node, beside the usual ones.
    """

    count = 0

    def __init__(
        self,
        listener: Node,
        patch: str = '',
        **parameters: Any,
    ) -> None:
        self.heard = Heard()
        Scene.count += 1
        # The graph shows those that were killed for a while.
        self.name = name = f'arm{Scene.count}'
        self.commands = f'/{name}/commands'
        self._listener = listener
        self._subscriptions = [
            listener.create_subscription(
                Float64MultiArray, self.commands, self._on_command, QoSProfile(depth=5000)
            ),
            listener.create_subscription(JointState, f'/{name}/states', self._on_state, 10),
        ]
        self._trajectories = listener.create_publisher(
            JointTrajectory, f'/{name}/joint_trajectory', 10
        )
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(listener)
        urdf = str(public_urdf('panda.urdf'))
        states = {'joint_states': f'/{name}/states'}
        self.simulator = start(
            'from robodyn_ros.ros.simulator_node import main',
            {
                'urdf_file': urdf,
                **CHAIN,
                'time_step': 0.002,
                'initial_position': POSITION.tolist(),
            },
            {'__node': f'{name}_simulator', 'commands': self.commands, **states},
        )
        self.node = start(
            patch + 'from robodyn_ros.ros.dynamics.dynamics_node import main',
            {
                'urdf_file': urdf,
                **CHAIN,
                'mode': 'computed_torque',
                'state_timeout': STATE_TIMEOUT,
                'watchdog_period': WATCHDOG_PERIOD,
                **parameters,
            },
            {'__node': name, **states},
        )

    def _on_command(self, message: Float64MultiArray, info: Any) -> None:
        self.heard.commands.append(
            (
                1e-9 * info['source_timestamp'],
                info['publication_sequence_number'],
                np.array(message.data),
            )
        )
        self.heard.are_watchdogs.append(message.layout.dim[0].label == WATCHDOG_LABEL)

    def _on_state(self, message: JointState) -> None:
        self.heard.state = message

    @property
    def watchdog(self) -> int:
        """The process that watches: the node's child with a session of its own."""
        return next(pid for pid in self.children() if os.getsid(pid) == pid)

    def children(self) -> list[int]:
        """The processes that the node has forked."""
        pid = self.node.pid
        return [
            int(child) for child in Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
        ]

    def spin(self, seconds: float) -> None:
        spin_until(self._executor, time.monotonic() + seconds)

    def until(self, condition: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError('the node did not do what it was waited for')
            self.spin(0.01)

    def bring_up(self) -> None:
        """Wait until the node commands, its watchdog could, and the listener hears the arm."""
        count = len(self.heard.commands)
        self.until(lambda: self.heard.state is not None)
        self.until(lambda: len(self.heard.commands) > count + 20)
        self.until(lambda: self._listener.count_publishers(self.commands) == 2)
        self.until(lambda: self._trajectories.get_subscription_count() == 1)

    def move(self, goal: np.ndarray, seconds: float = 0.5 * MOTION_TIME) -> None:
        """Begin a motion, and return after some seconds, in the middle of it."""
        message = JointTrajectory(joint_names=[f'panda_joint{i}' for i in range(1, 8)])
        point = JointTrajectoryPoint(positions=goal.tolist())
        point.time_from_start.sec = int(MOTION_TIME)
        message.points.append(point)
        self._trajectories.publish(message)
        self.spin(seconds)

    def signal(self, number: int) -> float | None:
        """Send the node a signal; return when the watchdog commanded after it [s], if ever."""
        before = len(self.heard.commands)
        moment = time.time()
        self.node.send_signal(number)
        self.spin(2.0 * BOUND + 0.3)
        for k in range(before, len(self.heard.commands)):
            if self.heard.are_watchdogs[k]:
                return self.heard.commands[k][0] - moment
        return None

    def motion(self, model: RobotModel) -> tuple[float, float]:
        """Return the largest speed [rad/s] and the kinetic energy [J] of the arm."""
        assert self.heard.state is not None
        velocity = np.array(self.heard.state.velocity)
        mass = mass_matrix(model, np.array(self.heard.state.position))
        return float(np.abs(velocity).max()), float(0.5 * velocity @ mass @ velocity)

    def close(self) -> None:
        for process in (self.node, self.simulator):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        self._executor.remove_node(self._listener)
        for subscription in self._subscriptions:
            self._listener.destroy_subscription(subscription)
        self._listener.destroy_publisher(self._trajectories)


def start(
    program: str, parameters: dict[str, Any], remappings: dict[str, str]
) -> subprocess.Popen:
    """Start a node of this package in a process of its own."""
    arguments = ['--ros-args']
    for name, value in parameters.items():
        arguments += ['-p', f'{name}:={value}']
    for name, target in remappings.items():
        arguments += ['-r', f'{name}:={target}']
    return subprocess.Popen(
        [sys.executable, '-c', f'{program}\nmain()', *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
