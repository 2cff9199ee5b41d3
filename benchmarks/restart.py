# SPDX-License-Identifier: Apache-2.0
"""
End the dynamics node, start it again at once, and time when it commands.

    python benchmarks/restart.py [--repetitions 10] [--file]

A Panda in MuJoCo, in real time, is held at rest. The node gets SIGINT or SIGKILL and is started
again as soon as its process has ended, as a launch file with respawn would. Printed are the times
from the signal to the end of the process and to the first command of the new one, by its source
time stamp, and the longest pause between commands, those of the watchdog included. The robot's
description comes on its topic, from a publisher that was there before; with --file, from a file.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
import rclpy
from fair_spinning import spin_until
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from robots import public_urdf
from scene import CHAIN, PATIENCE, POSITION, start
from std_msgs.msg import Float64MultiArray, String

from robodyn_ros.ros.command_conflicts import WATCHDOG_LABEL

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
REST = 3.0  # between a start and the next end [s]
COMMANDS = '/dynamics_node/commands'


class Arm:
    """A simulator, a node that is restarted, and what was commanded."""

    def __init__(self, listener: Node, has_file: bool) -> None:
        self.commands: list[tuple[float, bool]] = []  # source time [s], whether of the watchdog
        self._has_file = has_file
        urdf = public_urdf('panda.urdf')
        self._description = listener.create_publisher(String, 'robot_description', LATCHED)
        self._description.publish(String(data=urdf.read_text(encoding='utf-8')))
        listener.create_subscription(
            Float64MultiArray, COMMANDS, self._on_command, QoSProfile(depth=5000)
        )
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(listener)
        self._urdf = {'urdf_file': str(urdf), **CHAIN}
        self.simulator = start(
            'from robodyn_ros.ros.simulator_node import main',
            {**self._urdf, 'time_step': 0.002, 'initial_position': POSITION.tolist()},
            {'commands': COMMANDS},
        )
        self.node = self._started()

    def _started(self) -> subprocess.Popen:
        chain = self._urdf if self._has_file else CHAIN
        return start('from robodyn_ros.ros.dynamics.dynamics_node import main', dict(chain), {})

    def _on_command(self, message: Float64MultiArray, info: Any) -> None:
        by_watchdog = message.layout.dim[0].label == WATCHDOG_LABEL
        self.commands.append((1e-9 * info['source_timestamp'], by_watchdog))

    def spin(self, seconds: float) -> None:
        spin_until(self._executor, time.monotonic() + seconds)

    def first_command(self, since: float) -> float:
        """Return when the node first commanded after a time [s]."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.spin(0.01)
            for sent, by_watchdog in self.commands:
                if sent > since and not by_watchdog:
                    return sent
        raise TimeoutError('the node did not command')

    def restart(self, number: int) -> tuple[float, float, float]:
        """Return the times to the end and to the new command, and the longest pause [s]."""
        self.commands.clear()
        self.spin(0.1)
        moment = time.time()
        self.node.send_signal(number)
        while self.node.poll() is None:
            self.spin(0.001)
        ended = time.time()
        self.node = self._started()
        first = self.first_command(ended)
        sent = sorted(sent for sent, _ in self.commands if sent <= first)
        return ended - moment, first - moment, float(np.diff(sent).max())

    def close(self) -> None:
        for process in (self.node, self.simulator):
            process.kill()
            process.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--repetitions', type=int, default=10)
    parser.add_argument('--file', action='store_true', help='read the robot from a file')
    options = parser.parse_args()
    os.environ.setdefault('ROS_DOMAIN_ID', str(101 + os.getpid() % 100))
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    rclpy.init()
    arm = Arm(rclpy.create_node('restart'), options.file)
    try:
        arm.first_command(0.0)
        print('| signal | to its end [s] | to the first command [s] | longest pause [s] |')
        print('|---|--:|--:|--:|')
        for number in (signal.SIGINT, signal.SIGKILL):
            found = []
            for _ in range(options.repetitions):
                arm.spin(REST)
                found.append(arm.restart(number))
            texts = [
                f'{low:.2f} to {high:.2f}'
                for low, high in zip(np.min(found, axis=0), np.max(found, axis=0))
            ]
            print(f'| {number.name} | ' + ' | '.join(texts) + ' |', flush=True)
        print(f'\n{options.repetitions} each, load {os.getloadavg()[0]:.1f}', end=' ')
        print(f'on {os.cpu_count()} processors')
    finally:
        arm.close()
    rclpy.shutdown()


if __name__ == '__main__':
    main()
