# SPDX-License-Identifier: Apache-2.0
"""
Let the hand that leads one arm feel what another one touches, in MuJoCo, without ROS.

    python examples/force_feedback.py [arm.urdf]

The leader compensates gravity and is led by a hand, a spring to where the hand wants it. The
follower tracks the leader in computed torque, and meets a wall. It has no force sensor: what its
momentum observer says is added to the leader's torque, scaled and limited, as the parameters
observer_gain, external_effort_topic, external_effort_scale and external_effort_limit of the node
do. Printed is the force of the hand, before the wall and at it, without and with feedback.
"""

import sys
from pathlib import Path

import numpy as np

from robodyn_ros import RobotModel, forward_kinematics, jacobian, mass_matrix
from robodyn_ros.control.command_pipeline import AddedEffort
from robodyn_ros.control.control_stack import ControlStack, build_control_stack
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.simulation.arm import ArmSimulation

ROOT = Path(__file__).resolve().parent.parent
TIME_STEP = 2e-3  # [s]
START = [0.3, -0.9, 0.2, 0.4, 0.7, 0.2]  # [rad]
HAND = 600.0  # stiffness of the hand [N/m]
GRIP = 40.0  # its damping, for the inertia that it feels at the tip [1/s]
WALL = 2000.0  # stiffness of the wall [N/m]
TOUCHED, END = 1.0, 2.5  # when the hand's way reaches the wall, and when all ends [s]
SPEED = 0.05  # of the hand, straight into the wall [m/s]


class Side:
    """One arm with its control stack."""

    def __init__(self, urdf: Path, **settings) -> None:
        self.stack: ControlStack = build_control_stack(
            ControlSettings(urdf_file=str(urdf), state_timeout=10.0, **settings), None
        )
        self.model: RobotModel = self.stack.model
        self.simulation = ArmSimulation.from_urdf(urdf, time_step=TIME_STEP)
        self.simulation.reset(START[: self.model.n])
        self.torque: np.ndarray | None = None
        self.stack.pipeline.enable(0.0)

    def cycle(self, time: float, wrench: np.ndarray) -> None:
        """Measure, command, observe, and move a step under a wrench at the tip."""
        simulation, stack = self.simulation, self.stack
        position, velocity = simulation.position, simulation.velocity
        stack.joint_states.receive(self.model.joint_names, position, velocity, received=time)
        state: MeasuredState = stack.joint_states.take()
        stack.monitor.update(state, self.torque, stack.pipeline.settings)
        command = stack.pipeline.step(state, time)
        if command is not None:
            self.torque = command.torque
        simulation.push(wrench)
        simulation.step(np.zeros(self.model.n) if self.torque is None else self.torque)

    def tip(self) -> np.ndarray:
        """Return where the tip is [m]."""
        return forward_kinematics(self.model, self.simulation.position)[:3, 3]


def hand_force(urdf: Path, scale: float) -> tuple[float, float]:
    """Return the hand's force before the wall and at the end [N]."""
    leader = Side(urdf, mode='gravity_compensation')
    follower = Side(
        urdf,
        mode='computed_torque',
        kp=(400.0,),
        kd=(40.0,),
        max_reference_step=0.5,  # a wall keeps it from where it is led
        max_following_error=0.5,
    )
    names, n = leader.model.joint_names, leader.model.n
    limit = 0.3 * leader.model.effort_limits
    leader.stack.pipeline.added = AddedEffort(names, np.full(n, scale), limit, 0.1)
    begin = leader.tip()
    wall = begin[0] + SPEED * TOUCHED
    before = force = 0.0
    for k in range(round(END / TIME_STEP)):
        time = (k + 1) * TIME_STEP
        wanted = begin + [SPEED * time, 0.0, 0.0]
        position, velocity = leader.simulation.position, leader.simulation.velocity
        tip = jacobian(leader.model, position)
        mobility = tip @ np.linalg.solve(mass_matrix(leader.model, position), tip.T)
        led = -GRIP * np.linalg.solve(mobility, tip @ velocity)
        led[:3] += HAND * (wanted - leader.tip())
        met = np.array([min(WALL * (wall - follower.tip()[0]), 0.0), 0, 0, 0, 0, 0])
        leader.cycle(time, led)
        follower.cycle(time, met)
        if k >= 10:  # from when on it is known how often joint states come
            position, velocity = leader.simulation.position, leader.simulation.velocity
            follower.stack.pipeline.follow(
                Trajectory.from_points(
                    names, [0.02], [position + 0.02 * velocity], [velocity], [[]], [[]]
                )
            )
        torque = follower.stack.monitor.torque
        leader.stack.pipeline.added.receive(names, torque.tolist(), time)
        force = float(led[0])
        if time < 0.9 * TOUCHED:
            before = force
    return before, force


def main(urdf: Path) -> None:
    """Print what the hand feels."""
    for scale in (0.0, 1.0):
        before, at_wall = hand_force(urdf, scale)
        print(f'feedback {scale:.0f}: {before:6.1f} N before the wall, {at_wall:6.1f} N at it')


if __name__ == '__main__':
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / 'urdf' / 'puma560.urdf')
