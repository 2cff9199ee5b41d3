# SPDX-License-Identifier: Apache-2.0
"""The files for ros2_control, Gazebo and RViz, as far as they can be checked without those."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xacro
import yaml
from jtc_rule import JointTrajectoryController, executed
from lxml import etree

from robodyn_ros import RobotModel, gravity_torque
from robodyn_ros.control.feedforward_efforts import FeedforwardSettings, with_feedforward_efforts
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.simulation.arm import ArmSimulation

ROOT = Path(__file__).parents[2]
ARM = ROOT / 'urdf' / 'arm.urdf.xacro'
WITH_ROS2_CONTROL = ROOT / 'urdf' / 'with_ros2_control.urdf.xacro'
CONTROLLERS = yaml.safe_load((ROOT / 'config' / 'ros2_controllers.yaml').read_text())
PAPERS_ARMS = sorted((ROOT / 'urdf').glob('*.urdf'))

KINDS = {
    'joint_state_broadcaster': 'joint_state_broadcaster/JointStateBroadcaster',
    'forward_effort_controller': 'forward_command_controller/ForwardCommandController',
    'joint_trajectory_controller': 'joint_trajectory_controller/JointTrajectoryController',
}
PLUGINS = {
    'use_mock_hardware:=true': 'mock_components/GenericSystem',
    'use_gazebo:=true': 'gz_ros2_control/GazeboSimSystem',
    'driver_plugin:=acme/Driver': 'acme/Driver',
}


def expanded(path, **arguments):
    return xacro.process_file(str(path), mappings=arguments).toxml()


def expanded_arm(path):
    """Return one of the papers' arms under ros2_control, and its own model."""
    model = RobotModel.from_urdf(path)
    text = expanded(
        WITH_ROS2_CONTROL,
        urdf_file=str(path),
        base_link=model.base_link,
        joints=' '.join(model.joint_names),
        use_gazebo='true',
        controllers_file='/c.yaml',
        namespace='cell',
        initial_positions=' '.join(['0.1'] * model.n),
    )
    return text, model


def section(name):
    return CONTROLLERS[f'/**/{name}']['ros__parameters']


# --- the controllers ---------------------------------------------------------------------------


def test_spawner_finds_the_type_of_each_controller_in_its_own_section():
    # controller_manager's spawner looks there when the manager itself was not given it.
    manager = section('controller_manager')
    controllers = {name: each for name, each in manager.items() if isinstance(each, dict)}
    assert controllers == {name: {'type': kind} for name, kind in KINDS.items()}
    assert {name: section(name)['type'] for name in KINDS} == KINDS
    assert section('forward_effort_controller')['interface_name'] == 'effort'


@pytest.mark.parametrize('prefix', ['', 'left_'])
def test_controller_takes_its_commands_in_the_order_of_the_chain(prefix):
    model = RobotModel.from_urdf(expanded(ARM, tf_prefix=prefix))
    for name in ('forward_effort_controller', 'joint_trajectory_controller'):
        joints = section(name)['joints']
        assert [joint.replace('$(var tf_prefix)', prefix) for joint in joints] == list(
            model.joint_names
        )
    gains = section('joint_trajectory_controller')['gains']
    assert list(gains) == section('joint_trajectory_controller')['joints']


def test_gains_hold_the_arm_and_the_effort_of_the_points_makes_it_track():
    pytest.importorskip('mujoco')
    model = RobotModel.from_urdf(ARM)
    period = 1.0 / section('controller_manager')['update_rate']
    simulation = ArmSimulation.from_urdf(ARM, time_step=period)
    gains = section('joint_trajectory_controller')['gains'].values()
    kp, kd = (np.array([each[name] for each in gains]) for name in ('p', 'd'))
    positions = np.array([[0.0, 0.3, 0.5, 0.2, 0.3, 0.0], [0.6, -0.2, 0.9, -0.4, 0.6, 0.5]])
    none = [()] * 2
    given = Trajectory.from_points(
        model.joint_names, [0.0, 1.5], positions, 0.0 * positions, none, none
    )
    settings = replace(FeedforwardSettings.of(model.effort_limits), period=period)
    filled = with_feedforward_efforts(given, ReferenceTorque.of(model), settings).trajectory
    controller = JointTrajectoryController(filled, kp, kd)
    assert np.abs(executed(simulation, controller, 4.0)).max() < 0.01


@pytest.mark.ros
@pytest.mark.parametrize('namespace', ['', '/cell/left'])
def test_controllers_file_is_understood_by_ros_in_any_namespace(namespace):
    rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
    context = rclpy.Context()
    path = ROOT / 'config' / 'ros2_controllers.yaml'
    rclpy.init(args=['--ros-args', '--params-file', str(path)], context=context)
    node = rclpy.create_node(
        'forward_effort_controller',
        namespace=namespace,
        context=context,
        automatically_declare_parameters_from_overrides=True,
    )
    assert node.get_parameter('joints').value == section('forward_effort_controller')['joints']
    node.destroy_node()
    rclpy.shutdown(context=context)


# --- the xacro ---------------------------------------------------------------------------------


@pytest.mark.parametrize('argument', PLUGINS)
@pytest.mark.parametrize('path', [ARM, WITH_ROS2_CONTROL], ids=lambda path: path.name)
def test_argument_chooses_the_hardware(path, argument):
    robot = etree.fromstring(expanded(path, **dict([argument.split(':=')])))
    assert robot.findtext('ros2_control/hardware/plugin') == PLUGINS[argument]
    assert (robot.find('gazebo') is not None) == ('gazebo' in argument)


@pytest.mark.parametrize('path', PAPERS_ARMS, ids=lambda path: path.stem)
def test_every_arm_becomes_a_ros2_control_system_in_the_order_of_its_chain_and_stays_itself(path):
    text, model = expanded_arm(path)
    joints = etree.fromstring(text).findall('ros2_control/joint')
    assert [joint.get('name') for joint in joints] == list(model.joint_names)
    for joint in joints:
        kinds = [part.get('name') for part in joint.findall('state_interface')]
        assert [part.get('name') for part in joint.findall('command_interface')] == ['effort']
        assert kinds == ['position', 'velocity', 'effort']
        assert joint.findtext('state_interface/param') == '0.1'
    whole = RobotModel.from_urdf(text, tip_link=model.tip_link)
    position = np.linspace(-0.5, 0.5, model.n)
    assert whole.joint_names == model.joint_names
    assert gravity_torque(whole, position) == pytest.approx(gravity_torque(model, position))


def test_gazebo_gets_the_controllers_the_namespace_and_brakes_until_they_command():
    text, _ = expanded_arm(PAPERS_ARMS[0])
    plugin = etree.fromstring(text).find('gazebo/plugin')
    assert plugin.get('filename') == 'gz_ros2_control-system'
    assert plugin.get('name') == 'gz_ros2_control::GazeboSimROS2ControlPlugin'
    assert plugin.findtext('parameters') == '/c.yaml'
    assert plugin.findtext('hold_joints') == 'true'
    assert plugin.findtext('ros/namespace') == 'cell'


def test_prefix_is_on_every_name_but_the_world():
    robot = etree.fromstring(expanded(ARM, tf_prefix='left_', use_gazebo='true'))
    names = [element.get('name') for element in robot.iter('link', 'joint', 'ros2_control')]
    assert sorted(set(names) - {name for name in names if name.startswith('left_')}) == ['world']


def test_masses_and_inertias_of_the_arm_are_those_of_solid_cylinders():
    robot = etree.fromstring(expanded(ARM))
    assert robot.find('ros2_control') is None  # where no hardware is asked for
    for link in robot.findall('link[inertial]'):
        cylinder = link.find('visual/geometry/cylinder')
        radius, length = (float(cylinder.get(name)) for name in ('radius', 'length'))
        mass = 2700 * np.pi * radius**2 * length
        inertia = link.find('inertial/inertia')
        assert float(link.find('inertial/mass').get('value')) == pytest.approx(mass)
        assert float(inertia.get('izz')) == pytest.approx(mass * radius**2 / 2)
        assert float(inertia.get('ixx')) == pytest.approx(mass * (radius**2 / 4 + length**2 / 12))


def test_arm_can_carry_itself_anywhere():
    model = RobotModel.from_urdf(expanded(ARM))
    lower, upper = model.position_limits.T
    random = np.random.default_rng(0)
    positions = random.uniform(lower, upper, (1000, model.n))
    assert np.all(np.abs(gravity_torque(model, positions)) < 0.8 * model.effort_limits)


# --- RViz --------------------------------------------------------------------------------------


def test_rviz_subscribes_in_its_own_namespace():
    shown = yaml.safe_load((ROOT / 'rviz' / 'robodyn.rviz').read_text())
    displays = {
        display['Class']: display for display in shown['Visualization Manager']['Displays']
    }
    topic = displays['rviz_default_plugins/RobotModel']['Description Topic']
    assert topic['Value'] == 'robot_description'
    assert topic['Durability Policy'] == 'Transient Local'
    assert displays['rviz_default_plugins/Effort']['Topic']['Value'] == 'joint_states'
