# SPDX-License-Identifier: Apache-2.0
"""
An arm in MuJoCo beside the dynamics node, to be pushed from another node or by this one.

It runs in lockstep, no faster than real time: however busy the machine is, no torque comes late.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped, WrenchStamped

from robodyn_ros.control.softness import bent_posture
from robodyn_ros.model import RobotModel
from robodyn_ros.ros.conversions import seconds
from robodyn_ros.ros.demo.runner import Observer, Run
from robodyn_ros.ros.qos import RELIABLE

NAMESPACE = '/simulated'
TIME_STEP = 0.004  # of the physics, and between joint states [s]
PUSH = 2.0  # that a push lasts, and the time without one [s]
SILENCE_TIMEOUT = 30.0  # in which the arm's time must go on [s]
_SETTLING = 1.0  # of the arm's time, before the first push [s]


def run_pushed(
    model: RobotModel,
    parameters: Mapping[str, Any],
    force: Sequence[float] | None,
    duration: float | None,
    say: Callable[[str], None],
) -> None:
    """
    Run simulator and dynamics node in ``NAMESPACE`` until an interrupt or the end of a duration.

    Parameters
    ----------
    model : RobotModel
    parameters : mapping of str to parameter
        Of the dynamics node.
    force : sequence of 3 float, optional
        Pushes the tip again and again, in base axes [N]; not given: nobody does.
    duration : float, optional
        From when the arm is held, in its time [s].
    say : callable
        Takes a line.

    Raises
    ------
    DemoFailed
        A node ended, or time did not go on.
    """
    logs = Path(tempfile.mkdtemp(prefix='robodyn_simulated_'))
    robot = {name: parameters[name] for name in ('urdf_file', 'base_link', 'tip_links')}
    with Run('pushed', logs, namespace=NAMESPACE) as run:
        hand = run.observe(_Hand, TIME_STEP)
        run.start_arm({**robot, 'hold': False, 'real_time': True}, parameters, bent_posture(model))

        def wait(duration: float) -> None:
            """Wait until the arm's time is so much later."""
            end = hand.time + duration
            run.wait(lambda: hand.time >= end, SILENCE_TIMEOUT)

        wait(_SETTLING)
        while not hand.is_connected:
            wait(_SETTLING)
        say(f'the arm is held; logs: {logs}')
        say(
            f'push it by geometry_msgs/WrenchStamped on {NAMESPACE}/tip_wrench, aim it by '
            f'`robodyn send --node {NAMESPACE[1:]}/dynamics_node`; Ctrl+C ends'
        )
        end = np.inf if duration is None else hand.time + duration
        while hand.time < end:
            if force is None:
                wait(min(PUSH, end - hand.time))
                continue
            before = hand.position
            hand.push(force)
            wait(PUSH)
            pushed = hand.position
            hand.push([0.0, 0.0, 0.0])
            wait(PUSH)
            away, left = pushed - before, hand.position - before
            size = float(np.linalg.norm(force))
            along = float(away @ np.asarray(force)) / size if size else 0.0
            say(
                f'pushed with {size:g} N the tip moved {1e3 * along:.1f} mm along the force; '
                f'released it is {1e3 * float(np.linalg.norm(left)):.1f} mm from where it was'
            )


class _Hand(Observer):
    """Pushes the simulated tip and observes where it is."""

    def __init__(self, namespace: str, context: rclpy.Context, time_step: float) -> None:
        super().__init__(namespace, context, time_step)
        self._wrenches = self.create_publisher(WrenchStamped, 'tip_wrench', RELIABLE)
        self.create_subscription(PoseStamped, 'dynamics_node/tip_pose', self._on_pose, RELIABLE)
        self._time = 0.0
        self.position = np.zeros(3)  # of the tip in base axes [m]

    @property
    def time(self) -> float:
        """Simulated time, of the newest pose [s]."""
        return self._time

    @property
    def is_connected(self) -> bool:
        """Whether the simulator receives pushes."""
        return self._wrenches.get_subscription_count() > 0

    def push(self, force: Sequence[float]) -> None:
        """Push the tip from now on with a force in base axes [N]."""
        message = WrenchStamped()
        vector = message.wrench.force
        vector.x, vector.y, vector.z = map(float, force)
        self._wrenches.publish(message)

    def _on_pose(self, message: PoseStamped) -> None:
        there = message.pose.position
        self.position = np.array([there.x, there.y, there.z])
        self._time = seconds(message.header.stamp)
