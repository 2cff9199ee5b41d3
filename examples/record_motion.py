# SPDX-License-Identifier: Apache-2.0
"""
Record a motion to a rosbag2 (MCAP) and plot what its torque is made of.

    python examples/record_motion.py [--bag motion] [--plot motion.png] [--payload 1.8]
    python examples/record_motion.py --plot motion.png --only-plot some_bag

The Panda follows waypoints in MuJoCo under computed torque, and half-way it is told that it
carries a payload, which it does not: the feedback shows at once what a wrong model costs. The bag
holds ~/dynamics_state and the joint states as they were on the wire. ``ros2 bag play``, Foxglove
and PlotJuggler (config/dynamics_state.plotjuggler.xml) read it, and so does ``--only-plot``,
without any ROS.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt
import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

ROOT = Path(__file__).resolve().parent.parent
STATE = 'robodyn_interfaces/msg/DynamicsState'
PARTS = {
    'gravity': 'tab:blue',
    'inertial': 'tab:red',
    'coriolis': 'tab:green',
    'friction': 'tab:purple',
    'feedback': 'tab:orange',
}
TURN = 0.4  # between waypoints [rad]
STEP_TIME = 1.0  # from one waypoint to the next [s]
STEPS = 8
TITLE = 'What each torque is made of; half-way the model is told of a payload that is not there'
PATIENCE = 120.0  # of real time, for the whole recording [s]


# --- recording ---------------------------------------------------------------------------------


def record(bag: Path, payload: float) -> None:
    """Let the arm move and write what it says into a new bag; a payload [kg] is told half-way."""
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    import rclpy

    from robodyn_ros.ros.demo.node_process import NodeProcess
    from robodyn_ros.ros.demo.runner import panda

    arm = panda()
    namespace = f'/recording_{os.getpid()}'
    start = [0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]
    logs = Path(tempfile.mkdtemp())
    remappings = {'/clock': 'clock', '/diagnostics': 'diagnostics'}
    simulator = NodeProcess(
        'simulator_node',
        namespace=namespace,
        parameters={
            **arm.parameters,
            'initial_position': start,
            'lockstep': True,
            'time_step': 0.002,
        },
        remappings={**remappings, 'torques': 'dynamics_node/torques'},
        log=logs / 'simulator.log',
    )
    node = NodeProcess(
        'dynamics.dynamics_node',
        namespace=namespace,
        parameters={
            **arm.parameters,
            'mode': 'computed_torque',
            'use_sim_time': True,
            'state_timeout': 10.0,
            'ramp_time': 0.1,
            'state_publish_rate': 10_000.0,
        },
        remappings=remappings,
        log=logs / 'node.log',
    )
    rclpy.init()
    try:
        with (
            simulator,
            node,
            Writer(
                bag, version=Writer.VERSION_LATEST, storage_plugin=StoragePlugin.MCAP
            ) as writer,
        ):
            recorder = Recorder(namespace, writer)
            recorder.spin_until(recorder.is_heard)
            begin = recorder.time
            recorder.follow(start)
            recorder.spin_until(lambda: recorder.time > begin + STEPS * STEP_TIME / 2)
            recorder.tell_payload(payload)
            recorder.spin_until(lambda: recorder.time > begin + STEPS * STEP_TIME + 0.5)
    finally:
        rclpy.try_shutdown()


class Recorder:
    """Writes raw messages as they come, in the time of the joint states."""

    def __init__(self, namespace: str, writer: Writer) -> None:
        import rclpy
        from rclpy.qos import QoSProfile
        from sensor_msgs.msg import JointState
        from trajectory_msgs.msg import JointTrajectory

        from robodyn_interfaces.msg import DynamicsState

        self.time = 0.0
        self._names: list[str] = []
        self._writer = writer
        self._types = get_typestore(Stores.ROS2_JAZZY)
        text = (ROOT / 'robodyn_interfaces' / 'msg' / 'DynamicsState.msg').read_text()
        self._types.register(get_types_from_msg(text, STATE))
        self._node = rclpy.create_node('recorder', namespace=namespace)
        self._trajectories = self._node.create_publisher(
            JointTrajectory, 'dynamics_node/joint_trajectory', 10
        )
        for topic, kind, name in (
            ('dynamics_node/dynamics_state', DynamicsState, STATE),
            ('joint_states', JointState, 'sensor_msgs/msg/JointState'),
        ):
            self._keep(topic, kind, name, QoSProfile(depth=20_000))

    def _keep(self, topic: str, kind: Any, name: str, qos: Any) -> None:
        connection = self._writer.add_connection(f'/{topic}', name, typestore=self._types)

        def write(data: bytes) -> None:
            message = self._types.deserialize_cdr(data, name)
            stamp = message.header.stamp
            self.time = max(self.time, stamp.sec + 1e-9 * stamp.nanosec)
            if name == STATE:
                self._names = list(message.joint_names)
            self._writer.write(connection, stamp.sec * 10**9 + stamp.nanosec, data)

        self._node.create_subscription(kind, topic, write, qos, raw=True)

    def spin_until(self, condition: Any) -> None:
        """Take in messages until a condition holds."""
        import rclpy

        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f'nothing more after {self.time:.2f} s of simulated time')
            rclpy.spin_once(self._node, timeout_sec=0.1)

    def is_heard(self) -> bool:
        """Return whether the node speaks and listens."""
        return bool(self._names) and self._trajectories.get_subscription_count() > 0

    def follow(self, start: list[float]) -> None:
        """Send the arm to and fro about a position."""
        from builtin_interfaces.msg import Duration
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        turn = TURN * np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
        message = JointTrajectory(joint_names=self._names)
        for i in range(1, STEPS + 1):
            seconds, rest = divmod(i * STEP_TIME, 1.0)
            message.points.append(
                JointTrajectoryPoint(
                    positions=(np.array(start) + (i % 2) * turn).tolist(),
                    time_from_start=Duration(sec=int(seconds), nanosec=round(rest * 1e9)),
                )
            )
        self._trajectories.publish(message)

    def tell_payload(self, mass: float) -> None:
        """Tell the node that its tip carries a mass [kg]."""
        from robodyn_interfaces.msg import Payload
        from robodyn_interfaces.srv import SetPayload

        client = self._node.create_client(SetPayload, 'dynamics_node/set_payload')
        client.wait_for_service()
        future = client.call_async(SetPayload.Request(payload=Payload(mass=mass)))
        self.spin_until(future.done)
        answer = future.result()
        print('told:', answer.message if answer.success else f'refused, {answer.message}')


# --- plotting ----------------------------------------------------------------------------------


def plot(bag: Path, target: Path) -> None:
    """Read a bag, without ROS, and draw the parts of every joint's torque."""
    time_axis, series, names = [], {part: [] for part in (*PARTS, 'total')}, []
    with AnyReader([bag]) as reader:
        connections = [c for c in reader.connections if c.msgtype == STATE]
        for connection, _, data in reader.messages(connections=connections):
            message = reader.deserialize(data, connection.msgtype)
            names = list(message.joint_names)
            time_axis.append(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec)
            for part, values in series.items():
                values.append(getattr(message, part))
    times, order = np.unique(time_axis, return_index=True)
    times -= times[0]
    rows = -(-len(names) // 2)
    figure, axes = plt.subplots(
        rows, 2, figsize=(11, 2.1 * rows + 0.9), sharex=True, layout='constrained'
    )
    for i, (axis, name) in enumerate(zip(axes.flat, names)):
        for part, color in PARTS.items():
            axis.plot(times, np.array(series[part])[order, i], color=color, label=part)
        axis.plot(times, np.array(series['total'])[order, i], 'k--', linewidth=1, label='total')
        axis.set_title(f'{name} [N m]', loc='left', fontsize=10)
        axis.grid(color='0.9')
        axis.spines[['top', 'right']].set_visible(False)
        axis.margins(x=0.01)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    for axis in axes.flat[len(names) - 2 : len(names)]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel('time [s]')
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside lower center', ncols=len(labels), frameon=False)
    figure.suptitle(TITLE, x=0.01, ha='left', fontsize=13, fontweight='bold')
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110, metadata={'Title': TITLE})
    print(f'wrote {target}: {len(times)} cycles of {len(names)} joints')


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--bag', type=Path, default=Path('motion'))
    parser.add_argument('--plot', type=Path, default=Path('motion.png'))
    parser.add_argument('--payload', type=float, default=1.8)
    parser.add_argument('--only-plot', type=Path, metavar='BAG')
    arguments = parser.parse_args()
    if arguments.only_plot is None:
        record(arguments.bag, arguments.payload)
    plot(arguments.only_plot or arguments.bag, arguments.plot)
