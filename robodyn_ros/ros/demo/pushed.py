# SPDX-License-Identifier: Apache-2.0
"""
An arm in MuJoCo beside the dynamics node, to be pushed from another node or by this one.

It runs in lockstep, no faster than real time: however busy the machine is, no torque comes late.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from robodyn_ros.control.softness import bent_posture
from robodyn_ros.model import RobotModel
from robodyn_ros.ros.conversions import seconds
from robodyn_ros.ros.demo.node_process import NodeEnded, NodeProcess
from robodyn_ros.ros.lockstep import IN_LOCKSTEP
from robodyn_ros.ros.qos import RELIABLE
from robodyn_ros.spatial import FloatArray

NAMESPACE = '/simulated'
TIME_STEP = 0.004  # of the physics, and between joint states [s]
PUSH = 2.0  # that a push lasts, and the time without one [s]
SILENCE_TIMEOUT = 30.0  # in which the arm's time must go on [s]
_REMAPPINGS = {'/clock': 'clock', '/diagnostics': 'diagnostics'}
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
    NodeEnded
        A node ended, or time did not go on.
    """
    logs = Path(tempfile.mkdtemp(prefix='robodyn_simulated_'))
    robot = {name: parameters[name] for name in ('urdf_file', 'base_link', 'tip_link')}
    simulated = {
        **robot,
        'initial_position': bent_posture(model).tolist(),
        'time_step': TIME_STEP,
        'lockstep': True,
        'real_time': True,
        'lockstep_timeout': 0.5,
    }
    commanding = {'use_sim_time': True, **IN_LOCKSTEP, **parameters}
    with ExitStack() as stack:
        # With rclpy's own handlers an interrupt would end the context before the processes.
        context = rclpy.Context()
        rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
        stack.callback(context.try_shutdown)
        hand = stack.enter_context(_Hand(context))
        nodes = [
            stack.enter_context(
                NodeProcess(
                    module,
                    namespace=NAMESPACE,
                    parameters=given,
                    remappings={**_REMAPPINGS, 'torques': 'dynamics_node/torques'},
                    log=logs / f'{module.rpartition(".")[2]}.log',
                )
            )
            for module, given in (
                ('simulator_node', simulated),
                ('dynamics.dynamics_node', commanding),
            )
        ]

        def wait(duration: float) -> None:
            """Wait until the arm's time is so much later."""
            end, heard, newest = hand.time + duration, time.monotonic(), hand.time
            while hand.time < end:
                hand.spin()
                for node in nodes:
                    node.check()
                now = time.monotonic()
                if hand.time > newest:
                    newest, heard = hand.time, now
                elif now - heard > SILENCE_TIMEOUT:
                    shown = '\n'.join(node.last_lines() for node in nodes)
                    raise NodeEnded(f'nothing moved for {SILENCE_TIMEOUT:g} s\n{shown}')

        wait(_SETTLING)
        while not hand.is_felt:
            wait(_SETTLING)
        say(f'the arm is held; logs: {logs}')
        say(
            f'push it by geometry_msgs/WrenchStamped on {NAMESPACE}/tip_wrench, aim it by '
            f'{NAMESPACE}/dynamics_node/target_pose; Ctrl+C ends'
        )
        end = np.inf if duration is None else hand.time + duration
        while hand.time < end:
            if force is None:
                wait(min(PUSH, end - hand.time))
                continue
            before = hand.place()
            hand.push(force)
            wait(PUSH)
            pushed = hand.place()
            hand.push([0.0, 0.0, 0.0])
            wait(PUSH)
            away, left = pushed - before, hand.place() - before
            size = float(np.linalg.norm(force))
            along = float(away @ np.asarray(force)) / size if size else 0.0
            say(
                f'pushed with {size:g} N the tip moved {1e3 * along:.1f} mm along the force; '
                f'released it is {1e3 * float(np.linalg.norm(left)):.1f} mm from where it was'
            )


class _Hand:
    """A node that pushes the simulated tip and sees where it is; for a ``with`` statement."""

    def __init__(self, context: rclpy.Context) -> None:
        self._node = rclpy.create_node('hand', namespace=NAMESPACE, context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._wrenches = self._node.create_publisher(WrenchStamped, 'tip_wrench', RELIABLE)
        self._node.create_subscription(
            PoseStamped, 'dynamics_node/tip_pose', self._on_pose, RELIABLE
        )
        self.time = 0.0  # simulated [s]
        self._position = np.zeros(3)

    def __enter__(self) -> _Hand:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()

    def spin(self) -> None:
        """Take in what has come."""
        self._executor.spin_once(timeout_sec=0.1)

    def place(self) -> FloatArray:
        """Return where the tip is, in base axes, shape (3,) [m]."""
        return self._position

    @property
    def is_felt(self) -> bool:
        """Whether the simulator hears of pushes."""
        return self._wrenches.get_subscription_count() > 0

    def push(self, force: Sequence[float]) -> None:
        """Push the tip from now on with a force in base axes [N]."""
        message = WrenchStamped()
        vector = message.wrench.force
        vector.x, vector.y, vector.z = map(float, force)
        self._wrenches.publish(message)

    def _on_pose(self, message: PoseStamped) -> None:
        there = message.pose.position
        self._position = np.array([there.x, there.y, there.z])
        self.time = seconds(message.header.stamp)
