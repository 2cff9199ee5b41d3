# SPDX-License-Identifier: Apache-2.0
"""
Measure what a flood of service calls costs the control cycle, while the arm moves.

    python benchmarks/service_flood.py [--seconds 5] [--clients 50]

The Panda moves in MuJoCo in real time under computed torque. Runs alternate: without and with the
clients, each of which asks its next question, or changes the payload, as soon as it has its
answer. Printed are the cycle time (from receipt of a joint state to the published command) and the
latency (from the simulator's stamp to the torque's publication, by the middleware's own time
stamp, so that a slow observer measures nothing of itself).

The clients stand for other machines. So that they do not take the processors from the simulator
and the node here, and nothing else that runs here does, those two get a real-time priority where
the system allows it, which is also how a robot's controller is run; the service process
does not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros import RobotModel
from robodyn_ros.motions.point_to_point import suitable_motion
from robodyn_ros.ros.demo.node_process import NodeProcess
from robodyn_ros.ros.demo.runner import panda

TIME_STEP = 0.004  # of the simulator, which is also the control period [s]
WARMING_TIME = 5.0  # before the first run: discovery is still under way [s]
SETTLING_TIME = 1.0  # before each measurement [s]
RUNS = 5  # of each kind, in turns; their median counts


def flood(clients: int, joints: int, tip_link: str, is_wanted: Any, answered: Any) -> None:
    """Ask with so many clients, each again as soon as it is answered, while it is wanted."""
    os.nice(10)
    import rclpy
    from geometry_msgs.msg import Vector3

    from robodyn_interfaces.msg import Payload
    from robodyn_interfaces.srv import SetPayload
    from robodyn_ros.ros.qos import SERVICES
    from robodyn_ros.ros.services.service_process import (
        CHANGE_SERVICES,
        MODEL_SERVICES,
        STATE_SERVICES,
    )

    rclpy.init()
    node = rclpy.create_node('flood')
    kinds = {**MODEL_SERVICES, **STATE_SERVICES, 'set_payload': CHANGE_SERVICES['set_payload']}
    names = list(kinds)
    generator = np.random.default_rng(0)

    def request(name: str) -> Any:
        message = kinds[name][0].Request()
        if name in STATE_SERVICES:
            message.position = generator.uniform(-1.0, 1.0, joints).tolist()
        if name == 'compute_forward_dynamics':
            message.effort = [0.0] * joints
        if name == 'set_payload':
            assert isinstance(message, SetPayload.Request)
            message.payload = Payload(
                link=tip_link,
                mass=float(generator.uniform(0.0, 1e-6)),
                center_of_mass=Vector3(z=0.1),
            )
        return message

    def ask(name: str, client: Any) -> None:
        def again(future: Any) -> None:
            assert future.result().success, future.result().message
            answered.value += 1
            waiting.append((name, client))

        client.call_async(request(name)).add_done_callback(again)

    waiting = []
    for i in range(clients):
        name = names[i % len(names)]
        # Each client hears the answers to all others of its service.
        client = node.create_client(kinds[name][0], f'/dynamics_node/{name}', qos_profile=SERVICES)
        client.wait_for_service()
        waiting.append((name, client))
    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(node)
    while True:
        while waiting and is_wanted.is_set():
            ask(*waiting.pop())
        executor.spin_once(timeout_sec=0.1)


class Observer:
    """Keeps the arm moving to and fro, and collects cycle times and latencies."""

    def __init__(self, node: Any, model: RobotModel) -> None:
        from rclpy.qos import QoSProfile
        from sensor_msgs.msg import JointState
        from trajectory_msgs.msg import JointTrajectory

        from robodyn_interfaces.msg import DynamicsState

        self._motion = suitable_motion(model)
        self._names = list(model.joint_names)
        self._turn = 0
        self._due = 0.0
        self.cycle_times: list[float] = []
        self.latencies: list[float] = []
        many = QoSProfile(depth=20_000)
        node.create_subscription(
            DynamicsState, '/dynamics_node/dynamics_state', self._on_state, many
        )
        node.create_subscription(JointState, '/dynamics_node/torques', self._on_torque, many)
        self._trajectories = node.create_publisher(
            JointTrajectory, '/dynamics_node/joint_trajectory', 10
        )

    def keep_moving(self) -> None:
        """Send the next half of the motion when the last one is over."""
        from builtin_interfaces.msg import Duration
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        if not self.cycle_times or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._motion.duration
        self._turn += 1
        goal = self._motion.goal if self._turn % 2 else self._motion.start
        point = JointTrajectoryPoint(
            positions=goal.tolist(),
            velocities=[0.0] * len(goal),
            accelerations=[0.0] * len(goal),
            time_from_start=Duration(
                sec=int(self._motion.duration), nanosec=round(1e9 * (self._motion.duration % 1.0))
            ),
        )
        self._trajectories.publish(JointTrajectory(joint_names=self._names, points=[point]))

    def _on_state(self, message: Any) -> None:
        self.cycle_times.append(message.cycle_time)

    def _on_torque(self, message: Any, info: Any) -> None:
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        self.latencies.append(1e-9 * (info['source_timestamp'] - stamp))


def prefer(process: NodeProcess) -> bool:
    """Give all threads of a process a real-time priority, and tell whether that was allowed."""
    try:
        for thread in Path(f'/proc/{process.pid}/task').iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(10))
    except OSError:
        return False
    return True


def measured(executor: Any, observer: Observer, seconds: float) -> dict[str, float]:
    """Return medians and 99th percentiles [us] over a time of motion."""
    for duration in (SETTLING_TIME, seconds):
        observer.cycle_times.clear()
        observer.latencies.clear()
        end = time.monotonic() + duration
        while time.monotonic() < end:
            observer.keep_moving()
            executor.spin_once(timeout_sec=0.1)
    result = {'cycles_per_s': len(observer.cycle_times) / seconds}
    for name in ('cycle_times', 'latencies'):
        values = 1e6 * np.array(getattr(observer, name))
        for percentile in (50, 99):
            result[f'{name}_p{percentile}_us'] = float(np.percentile(values, percentile))
    return result


def main() -> None:
    """Run the benchmark and print one line for each run, then the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=float, default=5.0)
    parser.add_argument('--clients', type=int, default=50)
    arguments = parser.parse_args()
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(os.getpid() % 100 + 101))
    arm = panda()
    model = arm.model
    motion = suitable_motion(model)
    context = multiprocessing.get_context('spawn')
    is_wanted, answered = context.Event(), context.Value('q', 0)
    clients = context.Process(
        target=flood,
        daemon=True,
        args=(arguments.clients, model.n, model.tip_link, is_wanted, answered),
    )
    with tempfile.TemporaryDirectory() as logs:
        simulator = NodeProcess(
            'simulator_node',
            namespace='/',
            remappings={'commands': 'dynamics_node/commands'},
            parameters={
                **arm.parameters,
                'initial_position': motion.start.tolist(),
                'time_step': TIME_STEP,
            },
            log=Path(logs, 'simulator.log'),
        )
        node = NodeProcess(
            'dynamics.dynamics_node',
            namespace='/',
            remappings={},
            parameters={**arm.parameters, 'mode': 'computed_torque', 'state_publish_rate': 1e4},
            log=Path(logs, 'node.log'),
        )
        with simulator, node:
            clients.start()
            results = _results(arguments, model, (simulator, node), is_wanted, answered)
            clients.kill()
            clients.join()
    _print_ratios(results, arguments.clients)


def _print_ratios(results: list[dict[str, float]], clients: int) -> None:
    """Compare the medians of the runs in which the simulator could keep its pace."""
    undisturbed = [run for run in results if abs(run['cycles_per_s'] * TIME_STEP - 1.0) < 0.05]
    print(f'{len(undisturbed)} of {len(results)} runs count: at 1 / {TIME_STEP} s, within 5 %')
    for key in ('cycle_times_p99_us', 'latencies_p99_us'):
        quiet = [run[key] for run in undisturbed if run['clients'] == 0]
        flooded = [run[key] for run in undisturbed if run['clients'] == clients]
        if quiet and flooded:
            without, with_clients = float(np.median(quiet)), float(np.median(flooded))
            print(
                f'{key}: {without:.0f} without, {with_clients:.0f} with {clients} clients: '
                f'{with_clients / without - 1.0:+.0%}'
            )


def _results(
    arguments: argparse.Namespace,
    model: RobotModel,
    processes: tuple[NodeProcess, NodeProcess],
    is_wanted: Any,
    answered: Any,
) -> list[dict[str, float]]:
    import rclpy

    rclpy.init()
    node = rclpy.create_node('observer')
    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(node)
    observer = Observer(node, model)
    deadline = time.monotonic() + 60.0
    while not observer.cycle_times and time.monotonic() < deadline:
        executor.spin_once(timeout_sec=0.1)
    preferred = all(map(prefer, processes))
    print('simulator and node at', 'real-time priority' if preferred else 'normal priority')
    measured(executor, observer, WARMING_TIME)
    results = []
    for run in range(2 * RUNS):
        count = arguments.clients if run % 2 else 0
        (is_wanted.set if count else is_wanted.clear)()
        before, begin = answered.value, time.monotonic()
        result: dict[str, float] = {'clients': count}
        result.update(measured(executor, observer, arguments.seconds))
        result['answers_per_s'] = (answered.value - before) / (time.monotonic() - begin)
        results.append(result)
        print(json.dumps({key: round(value, 1) for key, value in result.items()}), flush=True)
    is_wanted.clear()
    rclpy.shutdown()
    return results


if __name__ == '__main__':
    main()
