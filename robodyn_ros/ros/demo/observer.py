# SPDX-License-Identifier: Apache-2.0
"""What the demonstration sees of the two nodes, and the motion that it sends."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.msg import DynamicsState
from robodyn_ros.motions.point_to_point import PointToPoint
from robodyn_ros.ros.conversions import seconds
from robodyn_ros.ros.demo.results import Recording
from robodyn_ros.ros.qos import RECORDING

TIME_STEP = 0.001  # of the physics and of the control cycle [s]


class Observer(Node):
    """Records what the simulator publishes, and sends the motion to the dynamics node."""

    def __init__(self, namespace: str, n: int) -> None:
        super().__init__('observer', namespace=namespace)
        self._n = n
        self._times: list[float] = []
        self._positions: list[Any] = []
        self._references: dict[float, Any] = {}
        self._newest_reference: Any = ()
        self.counts: dict[str, int] = {}
        self.refusal = ''  # of the motion, by the dynamics node
        self._sent = ''  # its stamp, as diagnostics have it
        self.create_subscription(JointState, 'joint_states', self._on_state, RECORDING)
        self.create_subscription(
            DynamicsState, 'dynamics_node/dynamics_state', self._on_dynamics, RECORDING
        )
        self.create_subscription(DiagnosticArray, 'diagnostics', self._on_diagnostics, 10)
        self._trajectories = self.create_publisher(
            JointTrajectory, 'dynamics_node/joint_trajectory', 10
        )
        self.release = self.create_client(Trigger, 'simulator_node/release')

    @property
    def time(self) -> float:
        """Stamp of the newest state [s]."""
        return self._times[-1] if self._times else 0.0

    @property
    def is_answered(self) -> bool:
        """Whether the dynamics node commands, listens for trajectories, and all may begin."""
        is_heard = self._trajectories.get_subscription_count() > 0
        return bool(self._references) and is_heard and self.release.service_is_ready()

    @property
    def is_followed(self) -> bool:
        """Whether the dynamics node has a reference."""
        return len(self._newest_reference) == self._n

    def steps_by(self, time: float) -> int:
        """Return how many steps the simulator has made at a stamp."""
        return round(time / TIME_STEP) - 1

    def send(self, joint_names: tuple[str, ...], motion: PointToPoint, start: float) -> None:
        """Ask for the motion, to begin at a stamp [s]."""
        n = len(joint_names)
        whole, nanoseconds = divmod(round(motion.duration * 1e9), 10**9)
        point = JointTrajectoryPoint(
            positions=motion.goal.tolist(),
            velocities=[0.0] * n,
            accelerations=[0.0] * n,
            time_from_start=Duration(sec=whole, nanosec=nanoseconds),
        )
        message = JointTrajectory(joint_names=list(joint_names), points=[point])
        whole, nanoseconds = divmod(round(start * 1e9), 10**9)
        message.header.stamp = Time(sec=whole, nanosec=nanoseconds)
        self._sent = f'{seconds(message.header.stamp):.9f}'
        self._trajectories.publish(message)

    def references(self, start: float, duration: float) -> tuple[Any, Any]:
        """Return times (N,) after the start [s] and references (N, n) within the motion."""
        kept = [
            (time - start, reference)
            for time, reference in self._references.items()
            if -0.5 * TIME_STEP <= time - start <= duration and len(reference) == self._n
        ]
        times = np.array([time for time, _ in kept])
        return times, np.array([reference for _, reference in kept]).reshape(-1, self._n)

    def recording(self, start: float, duration: float) -> Recording:
        """Return the states from the start on, for the given duration [s]."""
        times, index = np.unique(np.array(self._times), return_index=True)
        kept = (times >= start - 0.5 * TIME_STEP) & (times <= start + duration + 0.5 * TIME_STEP)
        steps_after = self.counts['steps'] - self.steps_by(start + duration)  # each with a command
        return Recording(
            time=times[kept] - start,
            position=np.array(self._positions)[index[kept]],
            commands=self.counts['commands'] - steps_after,
            missed_cycles=self.counts['missed_cycles'],
        )

    def _on_state(self, message: JointState) -> None:
        self._times.append(seconds(message.header.stamp))
        self._positions.append(message.position)

    def _on_dynamics(self, message: DynamicsState) -> None:
        self._newest_reference = message.reference_position
        self._references[seconds(message.header.stamp)] = message.reference_position

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if status.hardware_id == 'mujoco':
                self.counts = {key: int(value) for key, value in values.items()}
            elif self._sent and values.get('last_rejection_stamp') == self._sent:
                self.refusal = values['last_rejection']
