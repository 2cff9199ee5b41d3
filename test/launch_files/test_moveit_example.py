# SPDX-License-Identifier: Apache-2.0
"""The files for MoveIt, as far as they can be checked without it."""

from pathlib import Path

import yaml
from robots import public_urdf

from robodyn_ros import RobotModel
from robodyn_ros.ros import feedforward

FOLDER = Path(__file__).parents[2] / 'examples' / 'moveit_panda'
CONTROLLERS = yaml.safe_load((FOLDER / 'ros2_controllers.yaml').read_text())
MOVEIT = yaml.safe_load((FOLDER / 'moveit_controllers.yaml').read_text())
JOINTS = list(RobotModel.from_urdf(public_urdf('panda.urdf'), tip_link='panda_link8').joint_names)


def test_controller_commands_effort_alone_for_the_joints_of_the_panda():
    controller = CONTROLLERS['panda_arm_controller']['ros__parameters']
    assert controller['joints'] == list(controller['gains']) == JOINTS
    assert controller['command_interfaces'] == ['effort']
    assert controller['state_interfaces'] == ['position', 'velocity']
    manager = CONTROLLERS['controller_manager']['ros__parameters']
    kinds = {name: value['type'] for name, value in manager.items() if isinstance(value, dict)}
    assert kinds['panda_arm_controller'] == 'joint_trajectory_controller/JointTrajectoryController'


def test_moveit_sends_its_goals_to_the_node():
    settings = MOVEIT['moveit_simple_controller_manager']
    (name,) = settings['controller_names']
    assert name == feedforward.__name__.rpartition('.')[2]
    assert settings[name]['type'] == 'FollowJointTrajectory'
    assert settings[name]['action_ns'] == 'follow_joint_trajectory'
    assert settings[name]['joints'] == JOINTS
