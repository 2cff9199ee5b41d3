# SPDX-License-Identifier: Apache-2.0
"""The launch files' arguments, and what cannot be started here, taken apart instead."""

import ctypes
import importlib.util
import os
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
import yaml

pytest.importorskip('launch_ros', reason='needs launch and launch_ros, of a ROS installation')

from controllers_package import controllers_package
from launch import LaunchContext
from launch.actions import (
    AppendEnvironmentVariable,
    IncludeLaunchDescription,
    LogInfo,
    RegisterEventHandler,
    SetLaunchConfiguration,
)
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node
from lxml import etree

from robodyn_ros.model import STANDARD_GRAVITY
from robodyn_ros.ros import simulated_arm
from robodyn_ros.ros_parameters import parameters_of as node_parameters

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / 'launch'
FOR_USERS = ('robodyn', 'simulation', 'gazebo', 'mujoco', 'two_arms', 'feedforward')
MANAGER = 'controller_manager'
COMMANDED = '<ros2_control name="arm" type="system"><joint name="a"/></ros2_control>'
EXITED = {'name': 'echo', 'cmd': ['ros2'], 'cwd': None, 'env': None, 'pid': 1, 'returncode': 0}


def launch_file(name, folder=FOLDER):
    """Return the module of a launch file."""
    path = folder / f'{name}.launch.py'
    spec = importlib.util.spec_from_file_location(f'{name}_launch', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def arguments(name):
    """Return what `ros2 launch --show-args` lists, by name."""
    description = launch_file(name).generate_launch_description()
    return {argument.name: argument for argument in description.get_launch_arguments()}


def given(*names, **changes):
    """Return a context with the defaults of launch files, the first one's first, and changes."""
    result = LaunchContext()
    for name in names:
        for each, argument in arguments(name).items():
            parts = argument.default_value or ()
            text = ''.join(getattr(part, 'text', '') for part in parts)
            result.launch_configurations.setdefault(each, text)
    result.launch_configurations.update(changes)
    return result


def visited(actions, context):
    """Return the launch configurations after these actions."""
    for action in actions:
        action.visit(context)
    return context.launch_configurations


def nodes(entities):
    return {entity.node_executable: entity for entity in entities if isinstance(entity, Node)}


def words(node):
    """Return what a node is started with, in one line."""
    parts = (''.join(getattr(each, 'text', '') for each in part) for part in node.cmd)
    return ' '.join(part for part in parts if part)


def parameters_of(node):
    """Return the parameters that a node is given, those of its file not counted."""
    return {
        ''.join(part.perform(LaunchContext()) for part in name): value
        for name, value in node._Node__parameters[-1].items()
    }


@pytest.fixture
def arm(tmp_path):
    """Return what is known of an arm without links, and of its controllers."""
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(f'<robot name="arm">{COMMANDED}</robot>')
    return {
        'namespace': 'cell',
        'urdf_file': str(urdf),
        'expanded_controllers_file': '/c.yaml',
        'controller': 'effort_controller',
        'trajectory_controller': 'trajectories',
    }


@pytest.fixture
def gazebo(arm):
    """Return a function that makes the context of gazebo.launch.py, with changes."""
    known = {**arm, 'gravity': '0 0 -9.81', 'world': '/w/my.sdf'}
    known['command_topic'] = 'effort_controller/commands'
    return lambda **changes: given('gazebo', 'feedforward', 'node', **{**known, **changes})


@pytest.mark.parametrize('name', FOR_USERS)
def test_every_argument_has_a_default_and_is_described_in_sentences(name):
    for argument in arguments(name).values():
        assert argument.default_value is not None, argument.name
        words = argument.description.partition(' Valid choices are:')[0]
        assert words[0].isupper() and words.endswith('.'), argument.name


# --- beside a driver ---------------------------------------------------------------------------


def test_mock_hardware_starts_ros2_control_with_both_controllers_on_request(arm):
    module = launch_file('robodyn')
    assert module.mock_hardware(given('robodyn', **arm)) == []
    arm['use_mock_hardware'] = 'true'
    started = nodes(module.mock_hardware(given('robodyn', **arm)))
    assert set(started) == {'robot_state_publisher', 'ros2_control_node', 'spawner'}
    line = words(started['spawner'])
    assert 'joint_state_broadcaster effort_controller --param-file /c.yaml' in line
    assert all(node._Node__node_namespace == 'cell' for node in started.values())
    for missing in ('urdf_file', 'expanded_controllers_file'):
        with pytest.raises(RuntimeError, match='description_file and controllers_file'):
            module.mock_hardware(given('robodyn', **{**arm, missing: ''}))


@pytest.mark.parametrize('name', ['node', 'feedforward'])
def test_gravity_and_the_manager_of_the_controller_are_parameters_where_they_are_given(name, arm):
    names = {'controller_manager', 'gravity'} | ({'controller'} if name == 'node' else set())
    (node,) = launch_file(name).started(given(name, **arm))
    assert not {'controller_manager', 'gravity'} & set(parameters_of(node))
    assert ('controller' in parameters_of(node)) == (name == 'feedforward')
    arm |= {'controller_manager': '/manager', 'gravity': '0 0 -1.62'}
    (node,) = launch_file(name).started(given(name, **arm))
    assert names <= set(parameters_of(node))
    assert parameters_of(node)['gravity'] == (0.0, 0.0, -1.62)


def test_rviz_shows_its_file_in_the_frame_of_the_base():
    rviz = launch_file('node').rviz(
        {
            'namespace': 'cell',
            'base_link': 'base',
            'tf_prefix': 'left_',
            'rviz_config_file': '/show.rviz',
            'use_sim_time': 'false',
        }
    )
    assert '-d /show.rviz -f left_base' in words(rviz)


# --- simulation, and run_motion ----------------------------------------------------------------


def simulated(arm, **changes):
    """Return the nodes of a simulation, the dynamics node with them, by executable."""
    context = given('simulation', **{**arm, 'use_sim_time': 'false', **changes})
    entities = launch_file('simulation').simulated(context)
    return nodes([*entities, *launch_file('node').started(context)])


def test_simulation_publishes_where_the_links_are_on_request(arm):
    started = simulated(arm, launch_rviz='true')
    assert set(started) == {'simulator_node', 'robot_state_publisher', 'dynamics_node', 'rviz2'}


@pytest.mark.parametrize(
    'name, node, group',
    [('simulation', 'simulator_node', 'drive.'), ('run_motion', 'motion_node', '')],
)
def test_each_parameter_is_an_argument_with_its_words(name, node, group):
    found = {**arguments(name), 'urdf_file': None}
    parameters = [each for each in node_parameters(node) if each.name.startswith(group)]
    assert len(parameters) > 4
    for each in parameters:
        if (argument := found[each.name.replace('.', '_')]) is not None:
            assert argument.description.startswith(each.description)


def test_motion_is_run_as_its_node_does_where_nothing_else_is_given():
    values = given('run_motion', motion_file='motion.csv', speed='0.5', urdf_file='')
    (node,) = launch_file('run_motion').motion(values)
    parameters = parameters_of(node)
    assert parameters['speed'] == 0.5 and parameters['confirm'] is False
    for each in node_parameters('motion_node'):
        if each.name in parameters and each.name not in ('speed', 'motion_file', 'urdf_file'):
            value = parameters[each.name]
            if isinstance(value, tuple):
                value = yaml.safe_load(value[0].text) if each.kind == 'string' else value
            assert value == each.default, each.name


@pytest.mark.parametrize('told', [('false', '0.0'), ('true', '0.8')])
def test_drives_of_a_simulation_are_torque_sources_unless_chosen_otherwise(arm, told):
    switch, fraction = told
    names = ('drive_compensates_gravity', 'drive_compensates_friction', 'drive_knows_payload')
    changes = dict(zip(names, (switch, fraction, switch))) if switch == 'true' else {}
    started = simulated(arm, **changes)
    assert set(started) == {'simulator_node', 'dynamics_node'}
    parameters = parameters_of(started['simulator_node'])
    assert {name: value for name, value in parameters.items() if name.startswith('drive.')} == {
        'drive.compensates_gravity': switch == 'true',
        'drive.compensates_friction': float(fraction),
        'drive.knows_payload': switch == 'true',
    }


@pytest.mark.parametrize('gain, numbers', [('[70, 7.5]', [70.0, 7.5]), ('400', [400.0])])
def test_simulated_servos_get_their_gains_and_no_torques_as_positions(arm, gain, numbers):
    started = simulated(arm, drive_position_gain=gain, drive_velocity_gain='[2]')
    assert set(started) == {'simulator_node'}
    parameters = parameters_of(started['simulator_node'])
    assert list(parameters['drive.position_gain']) == numbers
    assert list(parameters['drive.velocity_gain']) == [2.0]


@pytest.mark.parametrize('text', ['{a: 1}', '[[0.0]]', '[0.0', '1' * 400, '[a, 0.5]'])
def test_argument_that_is_no_numbers_is_refused_by_name(arm, text):
    with pytest.raises(RuntimeError, match='^initial_position: .*; allowed: a number, or a list'):
        simulated(arm, initial_position=text)


# --- Gazebo, and what any simulator under ros2_control starts ----------------------------------


def test_gazebo_is_started_with_the_robot_its_controllers_and_the_clock(gazebo):
    context = gazebo(gz_args='-s -r', model_name='arm_1', position='0 -0.5 1')
    entities = launch_file('gazebo').simulated(context)
    included = [entity for entity in entities if isinstance(entity, IncludeLaunchDescription)]
    assert dict(included[0].launch_arguments) == {'gz_args': '-s -r /w/my.sdf'}
    started = nodes(entities)
    robot = {'robot_state_publisher', 'create', 'spawner'}
    assert set(started) == robot | {'parameter_bridge'}
    assert '/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock' in words(started['parameter_bridge'])
    assert '-topic robot_description -name arm_1 -x 0 -y -0.5 -z 1' in words(started['create'])
    added = launch_file('gazebo').simulated(gazebo(start_gazebo='false'))
    assert set(nodes(added)) == robot
    assert not [each for each in added if isinstance(each, IncludeLaunchDescription)]


COMMANDS, TORQUES = 'effort_controller/commands', 'std_msgs/msg/Float64MultiArray'
EFFORTS = '/cell/trajectories/joint_trajectory trajectory_msgs/msg/JointTrajectory'


@pytest.mark.parametrize(
    'way, changes, awaited, controllers, node',
    [
        ('forward', {}, f'/cell/{COMMANDS} {TORQUES}', 'effort_controller', 'node'),
        ('forward', {'command_topic': '/t'}, f'/t {TORQUES}', 'effort_controller', 'node'),
        ('trajectory', {}, EFFORTS, 'trajectories', 'feedforward'),
        # Told of no manager feedforward sends nothing by itself, and would be waited for in vain.
        ('trajectory', {MANAGER: ''}, None, 'trajectories', 'feedforward'),
        ('chained', {}, None, 'effort_controller trajectories', 'description'),
    ],
)
def test_controllers_of_each_way_are_activated_when_what_they_command_waits_for_them(
    gazebo, tmp_path, way, changes, awaited, controllers, node
):
    context = gazebo(way=way, made_folder=str(tmp_path), **changes)
    entities = launch_file('gazebo').simulated(context)
    broadcaster = nodes(entities)['spawner']
    assert 'joint_state_broadcaster --activate-as-group --param-file /c.yaml' in words(broadcaster)
    assert controllers not in words(broadcaster)
    (handler,) = (each for each in entities if isinstance(each, RegisterEventHandler))
    action = entities[-1] if awaited else broadcaster
    if awaited:
        assert words(action) == f'ros2 topic echo --no-daemon --once {awaited}'
    exited = ProcessExited(action=action, **EXITED)
    (then,) = handler.event_handler.handle(exited, context)
    assert words(then).startswith(f'{controllers} --activate-as-group --param-file /c.yaml')
    context._set_is_shutdown(True)
    assert handler.event_handler.handle(exited, context) == []
    (entity,) = simulated_arm.computing(context, FOLDER, ())
    source = entity.launch_description_source
    source.get_launch_description(LaunchContext())  # known from then on
    assert source.location.endswith(f'{node}.launch.py')


def set_gravity(**values):
    """Return the gravity that is told what computes the torques."""
    context = given(**{'gravity': '', 'gz_args': '-r', 'start_gazebo': 'true', **values})
    context.launch_configurations.setdefault('world', str(ROOT / 'worlds' / 'empty.sdf'))
    found = visited(launch_file('gazebo').set_gravity(context), context)
    return [float(part) for part in found['gravity'].split()]


def test_gravity_is_that_of_the_world_whatever_names_it(tmp_path, monkeypatch):
    assert set_gravity() == list(STANDARD_GRAVITY) == [0.0, 0.0, -9.81]  # of this package's world
    sdf = '<sdf version="1.9"><world name="w">{}</world></sdf>'
    moon, silent = tmp_path / 'moon.sdf', tmp_path / 'silent.sdf'
    moon.write_text(sdf.format('<gravity>0 0 -1.62</gravity>'))
    silent.write_text(sdf.format(''))
    assert set_gravity(world=str(moon)) == [0.0, 0.0, -1.62]
    assert set_gravity(gz_args=f'-s -v 3 {moon}') == [0.0, 0.0, -1.62]
    assert set_gravity(world=str(silent)) == [0.0, 0.0, -9.8]  # the SDF format's default
    monkeypatch.setenv('GZ_SIM_RESOURCE_PATH', f'/nowhere:{tmp_path}')
    assert set_gravity(gz_args='-r moon.sdf') == [0.0, 0.0, -1.62]
    assert set_gravity(gz_args='-r moon.sdf', gravity='0 0 -3.7') == [0.0, 0.0, -3.7]
    with pytest.raises(RuntimeError, match='gravity: not given, and no file none_such.sdf'):
        set_gravity(world='none_such.sdf')
    with pytest.raises(RuntimeError, match="gravity: '-9.81'; allowed: three numbers"):
        set_gravity(gravity='-9.81')


@pytest.mark.parametrize(
    'answer, gravity', [('<gravity>0 0 -1.62</gravity>', -1.62), ('', -9.8), (None, None)]
)
def test_gravity_is_asked_of_a_gazebo_that_runs_already(tmp_path, monkeypatch, answer, gravity):
    gz = tmp_path / 'gz'
    text = '' if answer is None else f'data: "<world name=\'moon\'>{answer}</world>"'
    gz.write_text(
        '#!/bin/sh\ncase "$*" in\n'
        '*"-s /gazebo/worlds "*) echo \'data: "moon"\' ;;\n'
        f'*"-s /world/moon/generate_world_sdf "*) cat {tmp_path}/answer ;;\nesac\n'
    )
    gz.chmod(0o755)
    (tmp_path / 'answer').write_text(text)
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
    if gravity is None:
        with pytest.raises(RuntimeError, match='gravity: not given, and the Gazebo that runs'):
            set_gravity(start_gazebo='false')
    else:
        assert set_gravity(start_gazebo='false') == [0.0, 0.0, gravity]


GRIPPER = f"""<robot name="r">
<link name="base"/><link name="l1"/><link name="palm"/><link name="f1"/><link name="f2"/>
<link name="f3"/>
<joint name="a" type="revolute"><parent link="base"/><child link="l1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="to_palm" type="fixed"><parent link="l1"/><child link="palm"/></joint>
<joint name="f1_joint" type="prismatic"><parent link="palm"/><child link="f1"/><axis xyz="0 1 0"/>
<limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>
<joint name="f2_joint" type="prismatic"><parent link="palm"/><child link="f2"/><axis xyz="0 1 0"/>
<limit lower="0" upper="0.04" effort="20" velocity="0.2"/><mimic joint="f1_joint"/></joint>
<joint name="f3_joint" type="prismatic"><parent link="palm"/><child link="f3"/><axis xyz="0 1 0"/>
<limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>
{COMMANDED}
<gazebo><plugin filename="p" name="n"><joint_name>f3_joint</joint_name></plugin></gazebo>
</robot>"""


def test_joints_of_a_gripper_that_nothing_commands_are_fixed_in_gazebo():
    text, (note,) = launch_file('gazebo').commanded(GRIPPER)
    joints = {joint.get('name'): joint for joint in etree.fromstring(text).findall('joint')}
    fixed = {name for name, joint in joints.items() if joint.get('type') == 'fixed'}
    assert fixed == {'to_palm', 'f1_joint', 'f2_joint'}
    assert {child.tag for child in joints['f2_joint']} == {'parent', 'child'}
    assert note.endswith(': f1_joint, f2_joint')
    with pytest.raises(RuntimeError, match='no <ros2_control> with joints in it'):
        launch_file('gazebo').commanded(GRIPPER.replace(COMMANDED, ''))


DAMPED = """<robot name="r"><link name="l0"/><link name="l1"/><link name="l2"/><link name="l3"/>
<joint name="bare" type="revolute"><parent link="l0"/><child link="l1"/></joint>
<joint name="light" type="continuous"><parent link="l1"/><child link="l2"/>
<dynamics damping="0.003" friction="0.1"/></joint>
<joint name="heavy" type="prismatic"><parent link="l2"/><child link="l3"/>
<dynamics damping="5"/></joint>
<joint name="tool" type="fixed"><parent link="l3"/><child link="l4"/></joint><link name="l4"/>
</robot>"""


def test_joints_have_at_least_the_damping_that_is_asked_for(tmp_path):
    source = tmp_path / 'arm.urdf'
    source.write_text(DAMPED)
    context = given('description', description_file=str(source), joint_damping='0.2')
    found = visited(launch_file('description').expanded(context), context)
    joints = etree.parse(found['urdf_file']).findall('joint')
    assert {
        joint.get('name'): dict(element.attrib)
        for joint in joints
        for element in joint.findall('dynamics')
    } == {
        'bare': {'damping': '0.2'},
        'light': {'damping': '0.2', 'friction': '0.1'},
        'heavy': {'damping': '5'},
    }
    assert source.read_text() == DAMPED
    for value in ('a lot', '-1', 'nan', 'inf'):
        with pytest.raises(RuntimeError, match='joint_damping'):
            launch_file('description').damped(DAMPED, value)


def test_gazebo_finds_the_meshes_of_packages_and_says_which_it_does_not(
    gazebo, tmp_path, monkeypatch
):
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    monkeypatch.delenv('GZ_SIM_RESOURCE_PATH', raising=False)
    index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'acme_description').touch()
    (tmp_path / 'share' / 'acme_description').mkdir()
    mesh = '<visual><geometry><mesh filename="package://{}/m.dae"/></geometry></visual>'
    urdf = tmp_path / 'meshes.urdf'
    visuals = ''.join(map(mesh.format, ('acme_description', 'example-robot-data')))
    urdf.write_text(GRIPPER.replace('<link name="palm"/>', f'<link name="palm">{visuals}</link>'))
    context = gazebo(urdf_file=str(urdf))
    entities = launch_file('gazebo').simulated(context)
    visited((each for each in entities if isinstance(each, AppendEnvironmentVariable)), context)
    assert context.environment['GZ_SIM_RESOURCE_PATH'] == str(tmp_path / 'share')
    told = [''.join(part.text for part in e.msg) for e in entities if isinstance(e, LogInfo)]
    assert any('package://example-robot-data are of no ROS package' in each for each in told)


def test_base_link_that_is_turned_against_the_world_is_refused(tmp_path):
    urdf = tmp_path / 'tilted.urdf'
    urdf.write_text(
        '<robot name="r"><link name="world"/><link name="base"/><joint name="j" type="fixed">'
        '<parent link="world"/><child link="base"/><origin rpy="0 1.57 0"/></joint></robot>'
    )
    check = simulated_arm.check_upright
    check({'base_link': '', 'urdf_file': str(urdf), 'tf_prefix': ''})
    with pytest.raises(RuntimeError, match='base_link: base is turned against the world'):
        check({'base_link': 'base', 'urdf_file': str(urdf), 'tf_prefix': ''})


@pytest.mark.parametrize(
    'simulator, way, missing, told',
    [
        ('gazebo', 'trajectory', {'ros_gz_sim'}, r'sudo apt install ros-\$ROS_DISTRO-ros-gz-sim$'),
        ('mujoco', 'forward', {'mujoco_ros2_control'}, r'ros-\$ROS_DISTRO-mujoco-ros2-control$'),
        # No registry has the controllers.
        ('gazebo', 'chained', {'robodyn_controllers'}, '^Gazebo needs more: robodyn_con.*colcon'),
        (
            'gazebo',
            'chained',
            {'gz_ros2_control', 'robodyn_controllers'},
            r'ROS_DISTRO-gz-ros2-control; robodyn_controllers .*colcon build',
        ),
    ],
)
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(
    monkeypatch, simulator, way, missing, told
):
    monkeypatch.setattr(simulated_arm, 'is_installed', lambda package: package not in missing)
    with pytest.raises(RuntimeError, match=told):
        launch_file(simulator).checked(given(simulator, way=way))


def test_another_time_than_the_simulators_is_refused(monkeypatch):
    monkeypatch.setattr(simulated_arm, 'is_installed', lambda package: True)
    with pytest.raises(RuntimeError, match='use_sim_time: false; allowed: true'):
        launch_file('gazebo').checked(given('gazebo', use_sim_time='false'))


@pytest.mark.parametrize('changes, manager', [({}, 'controller_manager'), ({MANAGER: 'cm'}, 'cm')])
def test_node_watches_the_controller_in_gazebo(changes, manager):
    context = given(**changes)
    for name in ('gazebo', 'node'):  # what the second declares itself changes nothing any more
        (own,) = (each for each in launch_file(name).ARGUMENTS if each.name == MANAGER)
        # Relative: in the namespace of the node, where gz_ros2_control puts it.
        assert visited([own], context)[MANAGER] == manager


# --- the chained controller --------------------------------------------------------------------


def test_chained_controller_has_its_controllers_by_default_and_its_files_go_at_shutdown(
    monkeypatch,
):
    monkeypatch.setattr(simulated_arm, 'FindPackageShare', lambda package: f'/share/{package}')
    context = given(way='chained', controllers_file='', model_library='/arm.so')
    actions = simulated_arm.chosen(context)
    found = visited(actions, context)
    assert found['controllers_file'] == '/share/robodyn_controllers/config/controllers.yaml'
    assert found['controller'] == 'inverse_dynamics_controller'
    assert found['trajectory_controller'] == 'joint_trajectory_controller'
    sections = yaml.safe_load((controllers_package() / 'config' / 'controllers.yaml').read_text())
    joints = launch_file('controllers').joints_of(sections, found['controller'])
    assert joints == [f'$(var tf_prefix)joint{i}' for i in range(1, 7)]
    folder = Path(found['made_folder'])
    assert folder.is_dir()
    (handler,) = (each for each in actions if isinstance(each, RegisterEventHandler))
    visited(handler.event_handler.handle(Shutdown(), context) or [], context)
    assert not folder.exists()


@pytest.mark.parametrize(
    'activate, option', [('true', '--activate-as-group'), ('false', '--inactive')]
)
def test_chained_controllers_are_spawned_together_with_their_model(activate, option):
    folder = controllers_package()
    context = given(
        model_library='/home/me/arm.so',
        controllers_file=str(folder / 'config' / 'controllers.yaml'),
        tf_prefix='left_',
        namespace='cell',
        activate=activate,
    )
    entities = launch_file('chained', folder / 'launch').spawned(context)
    spawner = words(nodes(entities)['spawner'])
    assert f'inverse_dynamics_controller joint_trajectory_controller {option}' in spawner
    path = re.search(r'--param-file (\S+)', spawner)[1]
    sections = yaml.safe_load(Path(path).read_text())
    ours = sections['/**/inverse_dynamics_controller']['ros__parameters']
    assert ours['model_library'] == '/home/me/arm.so'
    assert ours['joints'][0] == 'left_joint1'


@pytest.fixture
def chained(gazebo):
    """Return a function that makes the context of the chained controller in Gazebo."""
    folders = []

    def make(**changes):
        context = gazebo(way='chained', controllers_file='/c.yaml', **changes)
        actions = simulated_arm.chosen(context)
        own = (each for each in actions if isinstance(each, SetLaunchConfiguration))
        folders.append(visited(own, context)['made_folder'])
        return context

    yield make
    for folder in folders:
        shutil.rmtree(folder)


def test_chained_controller_gets_the_gravity_of_the_world_and_the_library_that_is_given(chained):
    context = chained(model_library='/arm.so', gravity='0 0 -1.62')
    entities = launch_file('gazebo').simulated(context)
    assert context.launch_configurations['model_library'] == '/arm.so'
    path = Path(re.findall(r'--param-file (\S+)', words(nodes(entities)['spawner']))[1])
    assert yaml.safe_load(path.read_text()) == {
        '/**/effort_controller': {'ros__parameters': {'gravity': [0.0, 0.0, -1.62]}}
    }


def test_model_of_the_chained_controller_is_made_where_none_is_given(chained, tmp_path):
    urdf = tmp_path / 'six_axes.urdf'
    text = (ROOT / 'urdf' / 'six_axis_industrial.urdf').read_text()
    joints = ''.join(f'<joint name="joint{i}"/>' for i in range(1, 7))
    system = COMMANDED.replace('<joint name="a"/>', joints)
    urdf.write_text(text.replace('</robot>', f'{system}</robot>'))
    context = chained(urdf_file=str(urdf), gravity='0 0 -1.625')
    path = Path(context.launch_configurations['model_library'])
    assert not path.exists()
    launch_file('gazebo').simulated(context)
    assert ctypes.CDLL(str(path)).robodyn_model_v5 is not None
    (source,) = path.parent.glob('*.c')
    assert '-1.625' in source.read_text()
    with pytest.raises(RuntimeError, match='model_library: not given, and none can be made: .+'):
        launch_file('gazebo').simulated(chained())  # a robot without links


# --- what a user may get wrong -----------------------------------------------------------------


@pytest.mark.parametrize(
    'name, values, words',
    [
        ('robodyn', {'description_file': '/no/arm.urdf'}, 'there is no file /no/arm.urdf'),
        ('robodyn', {'initial_mode': 'impedance'}, 'impedance'),
        (
            'robodyn',
            {
                'description_file': str(ROOT / 'urdf' / 'arm.urdf.xacro'),
                'description_arguments': 'use_gazebo',
            },
            'is not name:=value',
        ),
        (
            'robodyn',
            {
                'controllers_file': str(ROOT / 'config' / 'ros2_controllers.yaml'),
                'controller': 'none',
            },
            'nothing about the joints of none',
        ),
        (
            'simulation',
            {'drive_position_gain': 'stiff'},
            "drive_position_gain: 'stiff'; allowed: a number, or a list",
        ),
    ],
)
def test_wrong_argument_ends_the_launch_with_words(name, values, words):
    source = PythonLaunchDescriptionSource(str(FOLDER / f'{name}.launch.py'))
    with pytest.raises(RuntimeError, match=re.escape(words)):
        visit(IncludeLaunchDescription(source, launch_arguments=values.items()), LaunchContext())


def visit(entity, launch_context):
    """Do what an entity asks for, and then what comes of that."""
    for each in entity.visit(launch_context) or []:
        visit(each, launch_context)


def test_order_of_the_commands_is_read_from_each_way_to_write_the_controllers():
    joints_of = launch_file('controllers').joints_of
    section = {'ros__parameters': {'joints': ['b', 'a']}}
    names = ('effort', '/cell/effort', '/**/effort')
    for text in (*({name: section} for name in names), {'/**': {'effort': section}}):
        assert joints_of(yaml.safe_load(yaml.safe_dump(text)), 'effort') == ['b', 'a']


# --- MuJoCo under ros2_control, where it differs -----------------------------------------------

PENDULUM = """<mujoco model="pendulum"><compiler autolimits="true"/><option gravity="0 0 -3.7"/>
<worldbody><body name="rod"><joint name="joint1" axis="0 1 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0" mass="2"/></body></worldbody>
<actuator><motor name="drive" joint="joint1"/></actuator></mujoco>"""
MOTOR = '<motor name="drive" joint="joint1"/>'
FINGER = """<body pos="0.5 0 0"><joint name="finger" type="slide" axis="1 0 0" ref="0.02"/>
<geom size="0.02" mass="0.1"/></body></body></worldbody>"""


@pytest.fixture
def in_mujoco(arm):
    """Return a function of changes: the nodes, and the URDF as robot_state_publisher has it."""
    pytest.importorskip('mujoco')
    known = {**arm, 'description_file': str(ROOT / 'urdf' / 'arm.urdf.xacro')}
    known |= {'joints': '[joint1, joint2, joint3, joint4, joint5, joint6]', 'headless': 'true'}
    known['command_topic'] = 'c'
    del known['urdf_file']

    def start(**changes):
        module, context = launch_file('mujoco'), given('mujoco', 'node', **{**known, **changes})
        actions = module.read(context)
        visited(actions[:1] + actions[2:], context)  # all but that at shutdown
        visited(launch_file('description').expanded(context)[:1], context)
        started = nodes(module.simulated(context))
        (text,) = parameters_of(started['robot_state_publisher'])['robot_description']
        return started, etree.fromstring(yaml.safe_load(text.text))

    return start


@pytest.fixture
def pendulum(in_mujoco, tmp_path):
    """Return a function of an MJCF's text and changes: the URDF for its controllers."""
    path = tmp_path / 'pendulum.xml'

    def start(text=PENDULUM, **changes):
        path.write_text(text)
        return in_mujoco(description_file=str(path), joints='[joint1]', **changes)[1]

    return start


def held(robot):
    """Return the torques that hold the joints until a controller commands them."""
    begins = "state_interface[@name='effort']/param[@name='initial_value']"
    return {
        joint.get('name'): float(joint.findtext(begins))
        for joint in robot.findall('ros2_control/joint')
    }


def test_mujoco_simulates_an_mjcf_of_the_robot_and_holds_it_until_it_is_commanded(in_mujoco):
    mujoco = pytest.importorskip('mujoco')
    started, robot = in_mujoco(real_time_factor='0.5')
    assert set(started) == {'robot_state_publisher', 'ros2_control_node', 'spawner'}
    hardware = robot.find('ros2_control/hardware')
    assert hardware.findtext('plugin') == 'mujoco_ros2_control/MujocoSystemInterface'
    assert hardware.findtext("param[@name='headless']") == 'true'
    assert hardware.findtext("param[@name='sim_speed_factor']") == '0.5'
    model = mujoco.MjModel.from_xml_path(hardware.findtext("param[@name='mujoco_model']"))
    data = mujoco.MjData(model)
    torques = held(robot)
    for name, torque in torques.items():
        data.actuator(name).ctrl = torque
    mujoco.mj_step(model, data, 1000)
    assert max(map(abs, data.qpos)) < 1e-9
    assert max(map(abs, torques.values())) > 10.0
    for factor in ('0', '-1', 'inf', 'nan', 'fast'):
        with pytest.raises(RuntimeError, match=f'real_time_factor: .{factor}.; allowed: a number'):
            in_mujoco(real_time_factor=factor)


def test_mujoco_simulates_an_mjcf_as_it_is_with_a_urdf_of_it_for_the_controllers(
    pendulum, tmp_path
):
    robot = pendulum()
    model = robot.findtext("ros2_control/hardware/param[@name='mujoco_model']")
    assert model == str(tmp_path / 'pendulum.xml')
    assert robot.find("joint[@name='joint1']").get('type') == 'continuous'
    assert held(robot) == {'joint1': pytest.approx(-2 * 3.7 * 0.25)}
    with pytest.raises(RuntimeError, match="gravity: '0 0 -9.81'; allowed: that of the MJCF"):
        pendulum(gravity='0 0 -9.81')
    servo = MOTOR.replace('motor', 'position')
    for motor in (servo, MOTOR.replace('joint=', 'gear="2" joint=')):
        with pytest.raises(RuntimeError, match='without a motor whose control is the torque: jo'):
            pendulum(PENDULUM.replace(MOTOR, motor))


@pytest.mark.parametrize('kind', ['motor', 'position'])
def test_every_actuator_of_an_mjcf_is_commanded_lest_one_that_is_not_zeroes_all(pendulum, kind):
    text = PENDULUM.replace('</body></worldbody>', FINGER)
    text = text.replace('</actuator>', f'<{kind} name="grip" joint="finger"/></actuator>')
    robot = pendulum(text)
    torques = held(robot)
    assert torques['finger'] == 0.0
    assert torques['joint1'] < -1.0
    begins = "ros2_control/joint[@name='finger']/state_interface[@name='position']/param"
    assert float(robot.findtext(begins)) == 0.02
    assert robot.find("ros2_control/joint[@name='finger']/command_interface") is None
    with pytest.raises(RuntimeError, match='actuator 1; allowed: those with a name'):
        pendulum(text.replace(' name="grip"', ''))
