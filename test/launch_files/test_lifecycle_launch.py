# SPDX-License-Identifier: Apache-2.0
"""robodyn.launch.py without autostart: a lifecycle manager's walk, with robots that are wrong."""

import unittest

import numpy as np
import pytest

pytest.importorskip('launch_testing', reason='needs launch_testing, of a ROS installation')

import launch_testing
import xacro
from launch_rig import ARM, Driver, Listener, described, ends_well, launched
from lifecycle_msgs.srv import ChangeState, GetState
from std_msgs.msg import Float64MultiArray, String

from robodyn_ros import RobotModel, gravity_torque

TEXT = xacro.process_file(str(ARM)).toxml()
WRONG = {
    'that is no XML': '/etc/hostname',
    'that is cut off': TEXT[: len(TEXT) // 2],
    'without effort limit': TEXT.replace('effort="200"', 'effort="0"'),
    'without joints': '<robot name="stone"><link name="stone"/></robot>',
    'with a link that hangs nowhere': TEXT.replace('<child link="link3"/>', '<child link="x"/>'),
}
POSITION = [0.3, 0.5, 0.7, -0.2, 0.4, 0.1]
NAMES = [f'joint{i}' for i in range(1, 7)]


@pytest.mark.launch_test
@pytest.mark.ros
def generate_test_description():
    return launched(
        'robodyn',
        autostart='false',
        robot_description_topic='driver/robot_description',
        command_topic='driver/torques',
    )


class TestLifecycle(unittest.TestCase):
    def setUp(self):
        self.listener = Listener()
        self.driver = Driver(self.listener, '/joint_states', NAMES, POSITION)

    def tearDown(self):
        self.listener.close()

    def transition(self, label):
        request = ChangeState.Request()
        request.transition.label = label
        return self.listener.call(
            ChangeState, '/dynamics_node/change_state', request, self.driver.send
        ).success

    def lifecycle(self):
        answer = self.listener.call(GetState, '/dynamics_node/get_state', GetState.Request())
        return answer.current_state.label

    def test_manager_walks_the_node_past_wrong_robots_through_every_state(self):
        commands = self.listener.heard(Float64MultiArray, '/driver/torques')
        self.assertEqual(self.lifecycle(), 'unconfigured')
        self.assertFalse(self.transition('configure'), 'no robot at all')

        publisher = described(self.listener, '/driver/robot_description', '')
        self.listener.until(lambda: publisher.get_subscription_count() > 0)
        for kind, text in WRONG.items():
            publisher.publish(String(data=text))
            self.listener.spin(0.3)
            self.assertFalse(self.transition('configure'), f'a robot {kind}')
            self.assertEqual(self.lifecycle(), 'unconfigured')

        publisher.publish(String(data=TEXT))
        self.listener.until(lambda: self.transition('configure'))
        self.assertEqual(self.lifecycle(), 'inactive')
        self.assertEqual(commands, [])
        self.assertTrue(self.transition('activate'))
        self.listener.until(lambda: len(commands) > 3, self.driver.send)
        gravity = gravity_torque(RobotModel.from_urdf(TEXT), POSITION)
        np.testing.assert_allclose(commands[-1].data, gravity, atol=1e-9)

        self.assertTrue(self.transition('deactivate'))
        self.listener.spin(0.3)
        count = len(commands)
        for _ in range(20):
            self.driver.send()
            self.listener.spin(0.01)
        self.assertEqual(len(commands), count)
        self.assertTrue(self.transition('cleanup'))
        self.assertTrue(self.transition('configure'))
        self.assertTrue(self.transition('shutdown'))
        self.assertEqual(self.lifecycle(), 'finalized')


TestAfterwards = ends_well('cannot configure:', 'no fresh state of')


@launch_testing.post_shutdown_test()
class TestErrors(unittest.TestCase):
    def test_each_wrong_robot_made_one_error_that_said_why(self, proc_output):
        text = ''.join(chunk.text.decode() for chunk in proc_output)
        # once without a robot
        self.assertEqual(text.count('cannot configure:'), 1 + len(WRONG))
        self.assertIn("joint 'joint1' effort limit", text)
