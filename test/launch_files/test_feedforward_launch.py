# SPDX-License-Identifier: Apache-2.0
"""feedforward.launch.py, every argument of a running node other than its default."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
import pytest
import xacro

pytest.importorskip('launch_testing', reason='needs launch_testing, of a ROS installation')

from launch_rig import ARM, Driver, Listener, ends_well, launched
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros import RobotModel, gravity_torque

POSITION = [0.3, 0.5, 0.7, -0.2, 0.4, 0.1]
NAMES = [f'left_joint{i}' for i in range(1, 7)]
PARAMETERS = """\
/**:
  ros__parameters:
    terms:
      friction: false
    error_fraction: 0.01
"""


@pytest.mark.launch_test
@pytest.mark.ros
def generate_test_description():
    parameters = Path(tempfile.mkdtemp()) / 'parameters.yaml'
    parameters.write_text(PARAMETERS)
    return launched(
        'feedforward',
        namespace='cell',
        node_name='model',
        tf_prefix='left_',
        description_file=str(ARM),
        base_link='base_link',
        tip_link='tool0',
        trajectory_controller='arm_controller',
        feedforward_file=str(parameters),
        joint_states_topic='driver/joint_states',
        robot_description_topic='driver/robot_description',
        use_sim_time='false',
        log_level='warn',
    )


class TestBesideAController(unittest.TestCase):
    def setUp(self):
        self.listener = Listener()
        self.driver = Driver(self.listener, '/cell/driver/joint_states', NAMES, POSITION)

    def tearDown(self):
        self.listener.close()

    def test_trajectory_reaches_the_controller_with_gravity_where_it_begins_and_ends(self):
        heard = self.listener.heard(JointTrajectory, '/cell/arm_controller/joint_trajectory')
        target = [value + 0.2 for value in POSITION]

        def ask():
            self.driver.send()
            self.listener.spin(0.1)
            self.listener.follow('/cell/model/joint_trajectory', NAMES, target, 1)

        self.listener.until(lambda: heard, ask)
        text = xacro.process_file(str(ARM), mappings={'tf_prefix': 'left_'}).toxml()
        model = RobotModel.from_urdf(text, base_link='left_base_link', tip_link='left_tool0')
        first, last = heard[0].points[0], heard[0].points[-1]
        self.assertEqual(heard[0].joint_names, NAMES)
        np.testing.assert_allclose(first.positions, POSITION, atol=1e-9)
        np.testing.assert_allclose(first.effort, gravity_torque(model, POSITION), atol=1e-9)
        np.testing.assert_allclose(last.effort, gravity_torque(model, target), atol=1e-6)


TestAfterwards = ends_well()
