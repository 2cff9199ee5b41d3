# SPDX-License-Identifier: Apache-2.0
"""The node's control stack with a tree: a torso that turns under two arms, in MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('mujoco')

import robodyn_ros as rd
from robodyn_ros.control import control_stack
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.tip_target import TipPose
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.simulation.arm import ArmSimulation

TIPS = ('left_hand', 'right_hand')
PERIOD = 0.001  # s
START = np.array([0.2, 0.3, 0.8, 0.6, -0.4, -0.8, -0.6])
URDF = str(Path(__file__).parents[2] / 'urdf' / 'two_arms_on_a_torso.urdf.xacro')


class TwoArms:
    """The control stack, and the arms without friction in MuJoCo on its torques."""

    def __init__(self, **settings) -> None:
        given = {'urdf_file': URDF, 'tip_links': TIPS, 'effort_limit_scale': 1.0, **settings}
        self.settings = ControlSettings(**given)
        self.stack = control_stack.build_control_stack(self.settings, None)
        self.simulation = ArmSimulation.from_urdf(
            URDF, tip_link=list(TIPS), time_step=PERIOD, initial_position=START
        )
        self.now, self.pipeline = 10.0, self.stack.pipeline
        self.pipeline.enable(self.now)
        self.command = None

    def run(self, duration: float) -> None:
        names = self.stack.model.joint_names
        for _ in range(round(duration / PERIOD)):
            self.now += PERIOD
            state = self.simulation
            self.stack.joint_states.receive(
                names,
                state.position.tolist(),
                state.velocity.tolist(),
                received=self.now,
                stamp=self.now,
            )
            self.command = self.pipeline.step(self.stack.joint_states.take(), self.now)
            assert self.command is not None, self.pipeline.last_fault
            self.simulation.step(self.command.torque)

    def tip(self, link: str) -> np.ndarray:
        return rd.forward_kinematics(self.stack.model, self.simulation.position, link=link)


def test_gravity_compensation_holds_both_arms():
    arms = TwoArms()
    arms.run(10.0)
    assert np.abs(arms.simulation.position - START).max() < 1e-3


def test_computed_torque_follows_with_the_arms_that_a_trajectory_names():
    arms = TwoArms(mode='computed_torque', kp=(100.0,), kd=(20.0,))
    arms.run(0.1)
    names = ('torso_joint', 'left_shoulder_joint', 'left_elbow_joint')
    goal = np.array([0.8, -0.3, 1.2])
    arms.pipeline.follow(
        Trajectory.from_points(names, [1.5], [goal.tolist()], *2 * [[[0.0] * 3]], [()])
    )
    errors = []
    for _ in range(200):
        arms.run(0.01)
        errors.append(np.abs(arms.simulation.position - arms.command.reference.position).max())
    assert max(errors) < 2e-3
    np.testing.assert_allclose(arms.simulation.position[:3], goal, atol=1e-3)
    np.testing.assert_allclose(arms.simulation.position[3:], START[3:], atol=2e-3)


@pytest.mark.parametrize(('tip', 'algorithm'), [(TIPS[0], 'compiled'), (TIPS[1], 'newton_euler')])
def test_the_tip_that_is_chosen_goes_to_its_target(tip, algorithm):
    arms = TwoArms(
        algorithm=algorithm,
        tip_link=tip,
        mode='cartesian_impedance',
        impedance_tip_stiffness=(800.0, 800.0, 800.0, 0.0, 0.0, 0.0),
    )
    arms.run(0.2)
    before = arms.tip(tip)[:3, 3]
    arms.pipeline.aim_tip(TipPose((0.03, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)), is_relative=True)
    arms.run(1.4)
    wanted = arms.pipeline.tip_reference.position
    assert np.linalg.norm(wanted - before) == pytest.approx(0.03, rel=1e-3)
    assert np.linalg.norm(arms.tip(tip)[:3, 3] - wanted) < 5e-3


def test_a_payload_in_either_hand_is_carried():
    arms = TwoArms(tip_link='left_hand')
    arms.run(0.1)
    for hand in (None, 'right_hand'):
        payload = rd.Payload(1.2, (0.0, 0.0, 0.05), link=hand)
        control_stack.apply_change(arms.stack, payload)
    loaded = arms.stack.arm
    for hand in TIPS:
        loaded = loaded.with_payload(rd.Payload(1.2, (0.0, 0.0, 0.05), link=hand))
    arms.simulation.carry(arms.stack.load.payloads)
    arms.run(1.0)
    expected = rd.gravity_torque(loaded, arms.simulation.position)
    np.testing.assert_allclose(arms.command.torque, expected, atol=1e-3)


@pytest.mark.parametrize('tip', TIPS)
def test_a_push_on_the_chosen_hand_is_estimated_there(tip):
    arms = TwoArms(tip_link=tip, mode='joint_impedance', impedance_stiffness=(400.0,))
    arms.run(0.2)
    arms.simulation.push([0.0, 0.0, 10.0, 0.0, 0.0, 0.0], tip)
    for _ in range(1500):
        acting = arms.pipeline.last_torque
        arms.run(PERIOD)
        arms.stack.monitor.update(arms.command.state, acting, arms.pipeline.settings)
    found = arms.stack.monitor.tip_wrench(arms.command.state)
    turned = arms.tip(tip)[:3, :3] @ found.wrench[:3]
    assert turned[2] == pytest.approx(10.0, abs=1.5)


def test_a_tip_that_is_none_of_the_tree_is_refused():
    with pytest.raises(InvalidArgument, match='parameter tip_link.*left_hand, right_hand'):
        TwoArms(tip_link='torso')


def test_an_identified_tree_is_commanded_and_its_tip_chosen(tmp_path):
    pytest.importorskip('rclpy', reason='the support module needs ROS 2')
    from soft_node import identification

    model = rd.RobotModel.from_urdf(URDF, tip_link=TIPS)
    heavier = model.with_payload(rd.Payload(2.0, link='left_hand'))
    identification(heavier).save(tmp_path / 'identified.yaml')
    arms = TwoArms(identified_model=str(tmp_path / 'identified.yaml'), tip_link='right_hand')
    assert arms.stack.model.tip_link == 'right_hand'
    weight, expected = (rd.gravity_torque(each, START) for each in (arms.stack.model, heavier))
    np.testing.assert_allclose(weight, expected, atol=1e-9)


@pytest.mark.parametrize('side', ['left', 'right'])
def test_a_contact_of_one_arm_is_located_on_it(side):
    arms = TwoArms(
        mode='computed_torque',
        contact_threshold_moving=(2.0,),
        contact_threshold_stationary=(2.0,),
    )
    arms.run(0.3)
    arms.simulation.push([0.0, 0.0, 20.0, 0.0, 0.0, 0.0], f'{side}_hand')
    for _ in range(100):
        acting = arms.pipeline.last_torque
        arms.run(PERIOD)
        found = arms.stack.monitor.update(arms.command.state, acting, arms.pipeline.settings)
        if found is not None:
            break
    assert found is not None and found.link.startswith(side)
