# SPDX-License-Identifier: Apache-2.0
"""
Start an arm and the node, look at it, call it and stop it: without a command ros2.

    python examples/node_without_ros2_command.py [arm.urdf]

MuJoCo is the arm. Needs what `make setup` installs, and nothing else of ROS 2.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.task import Future
from sensor_msgs.msg import JointState

from robodyn_interfaces.srv import GetDynamicsTerms, SetPayload

URDF = Path(__file__).resolve().parents[1] / 'urdf' / 'puma560.urdf'
ROBODYN = (sys.executable, '-m', 'robodyn_ros.cli')  # or the command `robodyn` of .venv/bin
PATIENCE = 60.0


def started(name: str, *ros_arguments: str) -> subprocess.Popen:
    """Return the process of a node."""
    return subprocess.Popen([*ROBODYN, 'node', name, '--ros-args', *ros_arguments])


def answer(node: Node, future: Future) -> Any:
    """Return what a future brings, or give up."""
    rclpy.spin_until_future_complete(node, future, timeout_sec=PATIENCE)
    if not future.done():
        raise TimeoutError('the node did not answer')
    return future.result()


def called(node: Node, kind: type, name: str, request: Any) -> Any:
    """Return the answer of a service, as 'dynamics_node/set_payload'."""
    client = node.create_client(kind, f'/{name}')
    if not client.wait_for_service(timeout_sec=PATIENCE):
        raise TimeoutError(f'{name} is not there')
    return answer(node, client.call_async(request))


def look_at(node: Node) -> None:
    """Wait until it commands, then show what it says and does."""
    torques, statuses = [], {}
    node.create_subscription(JointState, '/dynamics_node/torques', torques.append, 10)
    node.create_subscription(
        DiagnosticArray,
        '/diagnostics',
        lambda array: statuses.update({each.name: each.message for each in array.status}),
        10,
    )
    deadline = time.monotonic() + PATIENCE
    while not (torques and statuses) and time.monotonic() < deadline:
        rclpy.spin_once(node, timeout_sec=0.1)
    for name, effort in zip(torques[-1].name, torques[-1].effort):
        print(f'{name}: {effort:.3f} N m')
    for name, message in statuses.items():
        print(f'{name}: {message}')


def main() -> None:
    """Do all of it."""
    urdf = f'urdf_file:={sys.argv[1] if len(sys.argv) > 1 else URDF}'
    processes = [
        started('simulator_node', '-p', urdf, '-r', 'commands:=dynamics_node/commands'),
        started('dynamics_node', '-p', urdf),
    ]
    rclpy.init()
    node = Node('onlooker')
    try:
        look_at(node)
        request = GetDynamicsTerms.Request()
        terms = called(node, GetDynamicsTerms, 'dynamics_node/get_dynamics_terms', request)
        print('gravity', [round(torque, 3) for torque in terms.gravity], terms.message)
        request = SetPayload.Request()
        request.payload.mass = 1.0
        # The arm takes it first, as a gripper would: told alone, the node would throw it upward.
        for name in ('simulator_node', 'dynamics_node'):
            done = called(node, SetPayload, f'{name}/set_payload', request)
            print(f'{name} carries 1 kg:', done.success, done.message)
        parameters = AsyncParameterClient(node, '/dynamics_node')
        scale = [Parameter('effort_limit_scale', value=0.5)]
        result = answer(node, parameters.set_parameters(scale)).results[0]
        print('half the effort limits:', result.successful, result.reason)
    finally:
        for process in processes[::-1]:
            process.send_signal(signal.SIGINT)  # the node sends its stop command first
        codes = [process.wait(timeout=PATIENCE) for process in processes]
        node.destroy_node()
        rclpy.shutdown()
    print('stopped, exit codes', codes)


if __name__ == '__main__':
    main()
