# SPDX-License-Identifier: Apache-2.0
"""robodyn.launch.py beside a driver, every argument of a running node other than its default."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
import pytest
import xacro

pytest.importorskip('launch_testing', reason='needs launch_testing, of a ROS installation')

import launch_testing
from launch_rig import ARM, Driver, Listener, ends_well, launched
from rcl_interfaces.srv import GetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from robodyn_ros import RobotModel, gravity_torque

POSITION = [0.3, 0.5, 0.7, -0.2, 0.4, 0.1]
NODE = '/cell/torques_of_arm'
urdf_files = []  # that the node was seen to read

# A driver's controllers, in an order of its own, with the prefix as such files have it.
CONTROLLERS = """\
/**/arm_effort:
  ros__parameters:
    joints: [{}]
    interface_name: effort
""".format(', '.join(f'$(var tf_prefix)joint{i}' for i in (6, 5, 4, 3, 2, 1)))

PARAMETERS = """\
/**:
  ros__parameters:
    kp: [64.0]
    mode: feedforward
    state_timeout: 2.0
"""


@pytest.mark.launch_test
@pytest.mark.ros
def generate_test_description():
    folder = Path(tempfile.mkdtemp())
    controllers, parameters = folder / 'controllers.yaml', folder / 'parameters.yaml'
    controllers.write_text(CONTROLLERS)
    parameters.write_text(PARAMETERS)
    return launched(
        'robodyn',
        namespace='cell',
        node_name='torques_of_arm',
        tf_prefix='left_',
        description_file=str(ARM),
        description_arguments='use_gazebo:=true namespace:="a b"',
        base_link='base_link',
        tip_link='tool0',
        initial_mode='computed_torque',
        params_file=str(parameters),
        controllers_file=str(controllers),
        controller='arm_effort',
        joint_states_topic='driver/joint_states',
        torques_topic='driver/torques',
        use_mock_hardware='false',
        log_level='warn',
    )


class TestBesideADriver(unittest.TestCase):
    def setUp(self):
        self.listener = Listener()
        self.names = [f'left_joint{i}' for i in range(1, 7)]
        self.driver = Driver(self.listener, '/cell/driver/joint_states', self.names, POSITION)
        text = xacro.process_file(str(ARM), mappings={'tf_prefix': 'left_'}).toxml()
        model = RobotModel.from_urdf(text, base_link='left_base_link', tip_link='left_tool0')
        self.gravity = gravity_torque(model, POSITION)

    def tearDown(self):
        self.listener.close()

    def test_torques_carry_the_arm_in_the_order_of_the_controller(self):
        commands = self.listener.heard(Float64MultiArray, '/cell/arm_effort/commands')
        self.listener.until(lambda: len(commands) > 3, self.driver.send)
        np.testing.assert_allclose(commands[-1].data, self.gravity[::-1], atol=1e-9)

    def test_torques_with_names_go_where_they_were_sent(self):
        torques = self.listener.heard(JointState, '/cell/driver/torques')
        self.listener.until(lambda: len(torques) > 3, self.driver.send)
        self.assertEqual(torques[-1].name, self.names)
        np.testing.assert_allclose(torques[-1].effort, self.gravity, atol=1e-9)

    def test_arguments_come_before_the_parameter_file_and_that_before_the_defaults(self):
        request = GetParameters.Request(names=['mode', 'kp', 'base_link', 'tip_link', 'urdf_file'])
        answer = self.listener.call(GetParameters, f'{NODE}/get_parameters', request)
        mode, kp, base_link, tip_link, urdf_file = answer.values
        urdf_files.append(Path(urdf_file.string_value))
        self.assertEqual(mode.string_value, 'computed_torque')
        self.assertEqual(list(kp.double_array_value), [64.0])
        self.assertEqual(base_link.string_value, 'left_base_link')
        self.assertEqual(tip_link.string_value, 'left_tool0')


# The driver falls silent between the tests.
TestAfterwards = ends_well('no fresh state of')


@launch_testing.post_shutdown_test()
class TestTraces(unittest.TestCase):
    def test_log_level_was_taken(self, proc_output):
        text = ''.join(chunk.text.decode() for chunk in proc_output)
        self.assertNotIn('[INFO]', text)

    def test_expanded_xacro_was_removed(self):
        self.assertEqual([path.suffix for path in urdf_files], ['.urdf'])
        self.assertFalse(urdf_files[0].exists())
