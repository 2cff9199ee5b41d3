# SPDX-License-Identifier: Apache-2.0
"""simulation.launch.py: a simulated arm is carried, in real time and in lockstep."""

import unittest

import numpy as np
import pytest

pytest.importorskip('launch_testing', reason='needs launch_testing, of a ROS installation')
pytest.importorskip('mujoco', reason='needs MuJoCo: pip install mujoco')

import launch_testing
from launch_rig import ROOT, Listener, ends_well, launched
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robodyn_ros import RobotModel, gravity_torque

URDF = ROOT / 'urdf'
# A chain, and two arms on a torso: file, base, tips, position.
ROBOTS = {
    'false': ('stanford.urdf', 'base', ('hand',), [0.2, 1.2, 0.3, 0.1, 0.8, 0.4]),
    'true': (
        'two_arms_on_a_torso.urdf.xacro',
        'base_link',
        ('left_hand', 'right_hand'),
        [0.2, 0.3, 0.8, 0.6, -0.4, -0.8, -0.6],
    ),
}
HOLD_TIME = 1.0  # simulated [s]


@pytest.mark.launch_test
@pytest.mark.ros
@launch_testing.parametrize('lockstep', ['true', 'false'])
def generate_test_description(lockstep):
    file, base, tips, position = robot = ROBOTS[lockstep]
    return launched(
        'simulation',
        lockstep=lockstep,
        use_sim_time='true',
        time_step='0.004',
        description_file=str(URDF / file),
        base_link=base,
        tip_links=' '.join(tips),
        initial_position=str(position),
        joint_states_topic='measured',
        robot_description_topic='description',
        torques_topic='~/named_torques',
    ), {'robot': robot}


class TestSimulation(unittest.TestCase):
    def setUp(self):
        self.listener = Listener()

    def tearDown(self):
        self.listener.close()

    def test_arm_leaves_its_brakes_and_stays_where_it_is(self, robot):
        file, base, tips, position = robot
        states = self.listener.heard(JointState, '/measured')
        torques = self.listener.heard(JointState, '/dynamics_node/named_torques')
        self.listener.until(lambda: states and len(torques) > HOLD_TIME / 0.004)
        np.testing.assert_allclose(states[-1].position, position, atol=5e-3)
        model = RobotModel.from_urdf(URDF / file, base_link=base, tip_link=tips)
        expected = gravity_torque(model, states[-1].position)
        np.testing.assert_allclose(torques[-1].effort, expected, atol=1.0)

    def test_simulated_time_goes_on(self):
        clock = self.listener.heard(Clock, '/clock')
        self.listener.until(lambda: len(clock) > 10)
        self.assertGreater(clock[-1].clock.nanosec + 10**9 * clock[-1].clock.sec, 0)

    def test_robot_description_is_published(self, robot):
        told = []
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.listener.node.create_subscription(String, '/description', told.append, latched)
        self.listener.until(lambda: told)
        self.assertIn(f'name="{robot[0].partition(".")[0]}"', told[0].data)


# A loaded machine keeps the simulator waiting.
TestAfterwards = ends_well('no fresh state of')
