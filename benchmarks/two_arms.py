# SPDX-License-Identifier: Apache-2.0
"""
Two arms on a torso in MuJoCo, over DDS in lockstep: one node of the tree, or a node for each part.

    python benchmarks/two_arms.py

A node for each part is what a robot is given whose models are chains: one takes the torso for a
chain whose arms are fixed, two others take it for a base that stands still. All have the same
gains, gravity and motion, and one arm alone on a torso that stands still is beside them. Printed
are the drift in 10 s of gravity compensation and the error of the motion in computed torque.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.motions.point_to_point import PointToPoint
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows
from robodyn_ros.ros.conversions import seconds, trajectory_message
from robodyn_ros.ros.demo.runner import Arm, Observer, Run
from robodyn_ros.ros.lockstep import IN_LOCKSTEP

URDF = Path(__file__).parents[1] / 'urdf' / 'two_arms_on_a_torso.urdf.xacro'
TIME_STEP, LEAD, HOLD = 0.001, 1.0, 10.0  # [s]
ARRIVAL = 2.0  # for the motion to arrive while simulated time stands still [s]
TREE = Arm(URDF, tip_links=('left_hand', 'right_hand'))
LEFT, RIGHT = (Arm(URDF, 'torso', (tip,)) for tip in TREE.tip_links)
# What is simulated, and by which nodes it is commanded.
CASES = {
    'one node of the tree': (TREE, {'both': TREE}),
    'a node for each part': (
        TREE,
        {'torso': Arm(URDF, tip_links=('torso',)), 'left': LEFT, 'right': RIGHT},
    ),
    'one arm alone': (LEFT, {'left': LEFT}),
}
START = np.array([0.2, 0.3, 0.8, 0.6, -0.4, -0.8, -0.6])
GOAL = np.array([1.0, -0.5, 1.4, -0.2, 0.5, 0.2, 0.4])
LAW = {'mode': 'computed_torque', 'kp': [100.0], 'kd': [20.0], 'max_following_error': 0.0}


class Parts(Observer):
    """Passes the torques of all nodes to the simulator as one message, and records the states."""

    def listen(self, parts: dict[str, Arm]) -> None:
        """Connect to the nodes of these parts."""
        self._torques: dict[str, JointState] = {}
        self.states: dict[float, Any] = {}
        self._all = self.create_publisher(JointState, 'torques', 10)
        for name in parts:
            self.create_subscription(
                JointState, f'{name}/torques', partial(self._on_torques, name), 10
            )
        self.create_subscription(JointState, 'joint_states', self._on_state, 10)
        self.motions = {
            name: self.create_publisher(JointTrajectory, f'{name}/joint_trajectory', 10)
            for name in parts
        }

    def _on_torques(self, part: str, message: JointState) -> None:
        self._torques[part] = message
        told = list(self._torques.values())
        if len(told) == len(self.motions) and len({seconds(t.header.stamp) for t in told}) == 1:
            names = [name for each in told for name in each.name]
            efforts = [effort for each in told for effort in each.effort]
            self._all.publish(JointState(header=message.header, name=names, effort=efforts))

    def _on_state(self, message: JointState) -> None:
        self.states[seconds(message.header.stamp)] = message.position

    @property
    def is_connected(self) -> bool:
        """Whether each node commands, and receives motions."""
        listening = all(each.get_subscription_count() for each in self.motions.values())
        return listening and bool(self.states) and len(self._torques) == len(self.motions)


def run(folder: Path, simulated: Arm, parts: dict[str, Arm], is_moved: bool) -> np.ndarray:
    """Return the error (N, n) of the positions of the simulated joints [rad]."""
    joints = TREE.model.joint_names
    own = [joints.index(name) for name in simulated.model.joint_names]
    motion = PointToPoint(START, GOAL, 1.5)
    with Run('parts', folder) as nodes:
        observer = nodes.observe(Parts, TIME_STEP)
        observer.listen(parts)
        simulator = {
            'initial_position': START[own].tolist(),
            'time_step': TIME_STEP,
            'lockstep': True,
            'hold': True,
            'lockstep_timeout': 0.5,
        }
        nodes.start('simulator_node', {**simulated.parameters, **simulator})
        for name, part in parts.items():
            given = {**part.parameters, **(LAW if is_moved else {}), **IN_LOCKSTEP}
            nodes.start(
                'dynamics.dynamics_node', {**given, 'use_sim_time': True}, {'__node': name}
            )
        nodes.wait(lambda: observer.is_connected)
        begin = max(observer.states) + LEAD
        for name, part in parts.items() if is_moved else ():
            names = part.model.joint_names
            still = [0.0] * len(names)
            goal = GOAL[[joints.index(each) for each in names]].tolist()
            rows = TrajectoryRows(names, [motion.duration], [goal], [still], [still], [()])
            observer.motions[name].publish(trajectory_message(rows, begin))
        end = begin + (motion.duration if is_moved else HOLD)
        sent = time.monotonic()
        nodes.wait(lambda: time.monotonic() > sent + ARRIVAL)
        nodes.let_go()
        nodes.wait(lambda: max(observer.states) >= end)
    kept = np.array([each for each in sorted(observer.states) if begin <= each <= end])
    found = np.array([observer.states[each] for each in kept])
    return found - (motion.position(kept - begin)[:, own] if is_moved else START[own])


def main() -> None:
    """Print a line for each case."""
    print(f'{"":24}{"drift in 10 s":>16}{"RMS error":>14}{"peak error [mrad]":>20}')
    for name, (simulated, parts) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            drift = 1e3 * np.abs(run(Path(folder), simulated, parts, False)).max()
            error = 1e3 * run(Path(folder), simulated, parts, True)
        rms, peak = np.sqrt(np.mean(error**2)), np.abs(error).max()
        print(f'{name:24}{drift:16.3g}{rms:14.3g}{peak:20.3g}', flush=True)


if __name__ == '__main__':
    main()
