# SPDX-License-Identifier: Apache-2.0
"""
Send the dynamics node large messages and requests in motion, and time its silence.

    python benchmarks/large_messages.py [--repetitions 5]

A Panda in MuJoCo, in real time at 500 Hz, moves under computed torque; its next motion begins with
each repetition. Printed is the longest time between two commands of the node itself, by their
source time stamps, within a second after the message, as median and worst of the repetitions, and
whether the motion that was under way went on; first without any message, then for each.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any

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
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

NAMES = [f'panda_joint{i}' for i in range(1, 8)]
WATCHED = 1.0  # after a message [s]
ARRIVAL = 0.02  # [rad]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@dataclass
class Case:
    """What is sent: a message, ready in bytes, or a request of some entries."""

    name: str
    kind: Any = None
    content: bytes = b''
    entries: int = 0
    replaces: bool = False  # the motion under way


def cases() -> list[Case]:
    """Return what is tried; messages are made before, so that only sending them costs."""
    return [
        Case('nothing'),
        *(
            Case(f'trajectory of {count} points', JointTrajectory, trajectory(count), 0, fits)
            for count, fits in ((100, True), (1000, True), (100_000, False), (300_000, False))
        ),
        *(
            Case(f'set_parameters of {count} entries', entries=count)
            for count in (1, 64, 1000, 10_000)
        ),
        *(
            Case(
                f'robot_description of {size} MB',
                String,
                bytes(serialize_message(String(data='x' * size * 1_000_000))),
            )
            for size in (1, 10, 60)
        ),
        Case('joint states of 100 000 other joints', JointState, joint_states(100_000)),
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

    def send(self, case: Case) -> None:
        """Send it; a request sets the gain kp to another value."""
        if case.kind is not None:
            self._publishers[case.kind].publish(case.content)
        elif case.entries:
            self._gain = 201.0 - self._gain
            gain = Parameter('kp', value=[self._gain]).to_parameter_msg()
            self._parameters.call_async(SetParameters.Request(parameters=[gain] * case.entries))


class Silence:
    """Times the commands of the node itself; its watchdog's are labelled otherwise."""

    def __init__(self, node: Node, scene: Scene) -> None:
        self._times: list[float] = []
        node.create_subscription(
            Float64MultiArray, scene.commands, self._on_command, QoSProfile(depth=5000)
        )

    def _on_command(self, message: Float64MultiArray, info: Any) -> None:
        if message.layout.dim[0].label == 'joints':
            self._times.append(1e-9 * info['source_timestamp'])

    def longest(self) -> float:
        """Return the longest time between two commands since this was last asked [s]."""
        times, self._times = self._times, []
        return float(np.diff(times).max()) if len(times) > 1 else np.inf


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--repetitions', type=int, default=5)
    repetitions = parser.parse_args().repetitions
    tried = cases()
    rclpy.init()
    node = rclpy.create_node('large_messages')
    scene = Scene(node, max_following_error=0.0)
    goals = [POSITION, GOAL]
    try:
        scene.bring_up()
        scene.until(lambda: scene.heard.state is not None)
        silence, sender = Silence(node, scene), Sender(node, scene)
        print('| sent in motion | median [ms] | worst [ms] | motion goes on |\n|---|--:|--:|---|')
        for case in tried:
            found, arrived = [], True
            for _ in range(repetitions):
                goals.reverse()
                scene.move(goals[0], 0.5)
                silence.longest()
                sender.send(case)
                scene.spin(WATCHED)
                found.append(1e3 * silence.longest())
                if case.replaces:
                    scene.move(goals[0], 3.0)
                    continue
                scene.spin(2.0)
                state = scene.heard.state
                assert state is not None
                arrived &= bool(np.abs(np.array(state.position) - goals[0]).max() < ARRIVAL)
            goes_on = 'is replaced' if case.replaces else 'yes' if arrived else 'no'
            median, worst = np.median(found), np.max(found)
            print(f'| {case.name} | {median:.1f} | {worst:.1f} | {goes_on} |', flush=True)
        print(f'\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors')
    finally:
        scene.close()


if __name__ == '__main__':
    main()
