# SPDX-License-Identifier: Apache-2.0
"""
Send the dynamics node large messages and requests in motion, and time how it takes them in.

    python benchmarks/large_messages.py [--repetitions 5]

A Panda in MuJoCo, in real time at 500 Hz, moves under computed torque. No cycle runs while the
node takes something in: printed is the processor time of the longest turn of its executor within
two seconds after the message, as median and worst of the repetitions; first without any message.
Processor time is what the silence lasts at least; on a busy machine it lasts longer.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from scene import GOAL, POSITION, Scene
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

NAMES = [f'panda_joint{i}' for i in range(1, 8)]
WATCHED = 2.0  # after a message [s]
MEASURED_EXECUTOR = """
import time
from robodyn_ros.ros.dynamics import dynamics_node
make = dynamics_node.fastest_executor
turns = open({turns!r}, 'w', buffering=1)
class Executor:
    def __init__(self):
        self.executor = make()
    def add_node(self, node):
        self.executor.add_node(node)
    def spin_once(self, timeout_sec):
        begin = time.thread_time()
        self.executor.spin_once(timeout_sec=timeout_sec)
        turns.write(str(time.thread_time() - begin) + chr(10))
dynamics_node.fastest_executor = Executor
"""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@dataclass
class Case:
    """What is sent: a message, ready in bytes, or a request of some entries."""

    name: str
    kind: Any = None
    content: bytes = b''
    entries: int = 0


def cases() -> list[Case]:
    """Return what is tried; messages are made before, so that only sending them costs."""
    return [
        Case('nothing'),
        *(
            Case(f'trajectory of {count} points', JointTrajectory, trajectory(count))
            for count in (1, 100, 1000, 1001, 100_000, 300_000)
        ),
        *(
            Case(f'set_parameters of {count} entries', entries=count)
            for count in (1, 40, 1000, 10_000)
        ),
        *(
            Case(
                f'robot_description of {size} MB',
                String,
                bytes(serialize_message(String(data='x' * size * 1_000_000))),
            )
            for size in (1, 10, 60)
        ),
        *(
            Case(f'joint states of {count} other joints', JointState, joint_states(count))
            for count in (100_000, 1_000_000)
        ),
    ]


def trajectory(count: int) -> bytes:
    """Return a trajectory of so many points, in ten seconds."""
    message = JointTrajectory(joint_names=NAMES)
    zeros = [0.0] * 7
    for i in range(1, count + 1):
        point = JointTrajectoryPoint(velocities=zeros, accelerations=zeros)
        point.positions = (POSITION + (GOAL - POSITION) * i / count).tolist()
        time = 10.0 * i / count
        point.time_from_start = Duration(sec=int(time), nanosec=int(1e9 * (time % 1)))
        message.points.append(point)
    return bytes(serialize_message(message))


def joint_states(count: int) -> bytes:
    """Return the state of so many joints of another robot."""
    names = [f'other{i}' for i in range(count)]
    return bytes(serialize_message(JointState(name=names, position=[0.0] * count)))


class Sender:
    """Publishers and clients of what a node takes."""

    def __init__(self, node: Node, scene: Scene) -> None:
        self._publishers = {
            JointTrajectory: scene._trajectories,
            JointState: node.create_publisher(JointState, f'/{scene.name}/states', 10),
            String: node.create_publisher(String, '/robot_description', LATCHED),
        }
        self._parameters = node.create_client(SetParameters, f'/{scene.name}/set_parameters')
        self._gain = 100.0
        self.count = 0  # of what was sent

    def send(self, case: Case) -> None:
        """Send it; a request sets the gain kp to another value."""
        self.count += 1
        if case.kind is not None:
            self._publishers[case.kind].publish(case.content)
        elif case.entries:
            self._gain = 201.0 - self._gain
            gain = Parameter('kp', value=[self._gain]).to_parameter_msg()
            self._parameters.call_async(SetParameters.Request(parameters=[gain] * case.entries))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--repetitions', type=int, default=5)
    repetitions = parser.parse_args().repetitions
    tried = cases()
    rclpy.init()
    node = rclpy.create_node('large_messages')
    with tempfile.TemporaryDirectory() as folder:
        turns = Path(folder) / 'turns'
        scene = Scene(node, MEASURED_EXECUTOR.format(turns=str(turns)))
        try:
            scene.bring_up()
            sender = Sender(node, scene)
            scene.spin(5.0)  # everybody is still discovering everybody
            print('| sent in motion | median [ms] | worst [ms] |\n|---|--:|--:|')
            for case in tried:
                found = [longest_turn(scene, sender, case, turns) for _ in range(repetitions)]
                median, worst = 1e3 * np.median(found), 1e3 * np.max(found)
                print(f'| {case.name} | {median:.1f} | {worst:.1f} |', flush=True)
            print(f'\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors')
        finally:
            scene.close()


def longest_turn(scene: Scene, sender: Sender, case: Case, turns: Path) -> float:
    """Return the processor time of the node's longest turn after a message in motion [s]."""
    goal = GOAL if sender.count % 2 else POSITION
    scene.move(goal, 0.5)
    before = len(turns.read_text().splitlines())
    sender.send(case)
    scene.spin(WATCHED)
    return max(map(float, turns.read_text().splitlines()[before:-1]))


if __name__ == '__main__':
    main()
