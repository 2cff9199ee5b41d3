# SPDX-License-Identifier: Apache-2.0
"""The launch files' arguments, and what cannot be started here, taken apart instead."""

import ctypes
import importlib.util
import os
import re
import shutil
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
from robodyn_ros.ros.simulated_arm import is_installed
from robodyn_ros.ros_parameters import parameters_of as node_parameters

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / 'launch'
FOR_USERS = ('robodyn', 'simulation', 'gazebo', 'mujoco', 'two_arms', 'feedforward')
MANAGER = 'controller_manager'
COMMANDED = '<ros2_control name="arm" type="system"><joint name="a"/></ros2_control>'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
EXITED = {'name': 'echo', 'cmd': ['ros2'], 'cwd': None, 'env': None, 'pid': 1, 'returncode': 0}
KNOWN = {
    'use_mock_hardware',
    'tf_prefix',
    'description_file',
    'launch_rviz',
    'initial_mode',
    'namespace',
    'use_sim_time',
    'autostart',
    'controllers_file',
    'rviz_config_file',
}


def launch_file(name, folder=FOLDER):
    """Return the module of a launch file."""
    path = folder / f'{name}.launch.py'
    spec = importlib.util.spec_from_file_location(f'{name}_launch', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(name):
    """Return what `ros2 launch --show-args` lists, by name."""
    description = launch_file(name).generate_launch_description()
    return {argument.name: argument for argument in description.get_launch_arguments()}


def context(**values):
    result = LaunchContext()
    result.launch_configurations.update(values)
    return result


def nodes(entities):
    return {entity.node_executable: entity for entity in entities if isinstance(entity, Node)}


def words(node):
    """Return what a node is started with, in one line."""
    parts = (''.join(getattr(each, 'text', '') for each in part) for part in node.cmd)
    return ' '.join(part for part in parts if part)


def parameters_of(node):
    """Return the parameters that a node is given, those of its file not counted."""
    return {
        ''.join(part.perform(context()) for part in name): value
        for name, value in node._Node__parameters[-1].items()
    }


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize('name', FOR_USERS)
def test_every_argument_has_a_default_and_is_described_in_sentences(name):
    for argument in arguments(name).values():
        assert argument.default_value is not None, argument.name
        words = argument.description.partition(' Valid choices are:')[0]
        assert words[0].isupper() and words.endswith('.'), argument.name


@pytest.mark.parametrize('name', FOR_USERS)
def test_every_argument_is_used_by_a_test_or_a_documented_command(name):
    documents = [*ROOT.glob('*.md'), *ROOT.glob('docs/*.md'), *ROOT.glob('Containerfile')]
    text = '\n'.join(path.read_text() for path in documents)
    tests = '\n'.join(path.read_text() for path in ROOT.glob('test/launch_files/test_*launch*.py'))
    unused = [
        argument
        for argument in arguments(name)
        if not re.search(rf'\b{argument}:=', text) and not re.search(rf'\b{argument}=', tests)
    ]
    assert unused == []


def test_arguments_have_the_names_that_ros2_control_users_know():
    assert set(arguments('robodyn')) >= KNOWN


# --- what needs packages that may not be here --------------------------------------------------


def robodyn_values(tmp_path, **changes):
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(f'<robot name="arm">{COMMANDED}</robot>')
    return {
        'namespace': 'cell',
        'use_mock_hardware': 'true',
        'urdf_file': str(urdf),
        'expanded_controllers_file': '/c.yaml',
        'controller': 'effort_controller',
        **changes,
    }


def test_mock_hardware_starts_ros2_control_with_both_controllers(tmp_path):
    started = nodes(launch_file('robodyn').mock_hardware(context(**robodyn_values(tmp_path))))
    assert set(started) == {'robot_state_publisher', 'ros2_control_node', 'spawner'}
    line = words(started['spawner'])
    assert 'joint_state_broadcaster effort_controller --param-file /c.yaml' in line
    assert all(node._Node__node_namespace == 'cell' for node in started.values())


@pytest.mark.parametrize('missing', ['urdf_file', 'expanded_controllers_file'])
def test_mock_hardware_says_what_it_needs(tmp_path, missing):
    with pytest.raises(RuntimeError, match='description_file and controllers_file'):
        launch_file('robodyn').mock_hardware(context(**robodyn_values(tmp_path, **{missing: ''})))


def test_nothing_more_is_started_without_mock_hardware(tmp_path):
    values = robodyn_values(tmp_path, use_mock_hardware='false')
    assert launch_file('robodyn').mock_hardware(context(**values)) == []


def gazebo_values(tmp_path):
    return {
        **robodyn_values(tmp_path),
        'gz_args': '-s -r',
        'world': '/w/my.sdf',
        'gravity': '0 0 -9.81',
        'tf_prefix': '',
        'model_name': 'arm_1',
        'start_gazebo': 'true',
        'position': '0 -0.5 1',
        'way': 'forward',
        'trajectory_controller': 'trajectories',
        'controller_manager': 'controller_manager',
        'command_topic': 'effort_controller/commands',
    }


def test_gazebo_is_started_with_the_robot_its_controllers_and_the_clock(tmp_path):
    entities = launch_file('gazebo').simulated(context(**gazebo_values(tmp_path)))
    included = [entity for entity in entities if isinstance(entity, IncludeLaunchDescription)]
    assert dict(included[0].launch_arguments) == {'gz_args': '-s -r /w/my.sdf'}
    started = nodes(entities)
    assert set(started) == {'parameter_bridge', 'robot_state_publisher', 'create', 'spawner'}
    assert '/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock' in words(started['parameter_bridge'])
    assert '-topic robot_description -name arm_1 -x 0 -y -0.5 -z 1' in words(started['create'])
    spawner = words(started['spawner'])
    assert 'joint_state_broadcaster --activate-as-group --param-file /c.yaml' in spawner


@pytest.mark.parametrize(
    'topic, listened',
    [('effort_controller/commands', '/cell/effort_controller/commands'), ('/torque', '/torque')],
)
def test_gazebo_activates_the_forward_controller_when_a_torque_waits_for_it(
    tmp_path, topic, listened
):
    given = {**gazebo_values(tmp_path), 'command_topic': topic}
    del given['trajectory_controller']  # which the launch file of feedforward declares
    values = context(**given)
    broadcaster, handler, echo = simulated_arm.spawned(values.launch_configurations)
    assert 'effort_controller' not in words(broadcaster)
    assert f'ros2 topic echo --no-daemon --once {listened} std_msgs' in words(echo)
    (then,) = handler.event_handler.handle(ProcessExited(action=echo, **EXITED), values)
    assert words(then).startswith('effort_controller --activate-as-group --param-file /c.yaml')
    values._set_is_shutdown(True)
    assert handler.event_handler.handle(ProcessExited(action=echo, **EXITED), values) == []


def test_gazebo_activates_the_trajectory_controller_when_its_hold_waits_for_it(tmp_path):
    values = context(**{**gazebo_values(tmp_path), 'way': 'trajectory'})
    spawned = simulated_arm.spawned
    _, handler, echo = spawned(values.launch_configurations)
    assert f'--once /cell/trajectories/joint_trajectory {TRAJECTORY}' in words(echo)
    (then,) = handler.event_handler.handle(ProcessExited(action=echo, **EXITED), values)
    assert words(then).startswith('trajectories --activate-as-group --param-file /c.yaml')
    # Told of no manager feedforward sends nothing by itself, and would be waited for in vain.
    handler, broadcaster = spawned({**values.launch_configurations, 'controller_manager': ''})
    (then,) = handler.event_handler.handle(ProcessExited(action=broadcaster, **EXITED), values)
    assert words(then).startswith('trajectories --activate-as-group --param-file /c.yaml')


@pytest.mark.parametrize(
    'way, node, controllers',
    [
        ('forward', 'node', 'effort_controller'),
        ('trajectory', 'feedforward', 'trajectories'),
        ('chained', 'description', 'effort_controller trajectories'),
    ],
)
def test_gazebo_starts_the_node_and_then_the_controllers_of_each_way(
    tmp_path, way, node, controllers
):
    values = {**gazebo_values(tmp_path), 'way': way, 'made_folder': str(tmp_path)}
    module, given = launch_file('gazebo'), context(**values)
    entities = module.simulated(given)
    broadcaster = words(nodes(entities)['spawner'])
    assert 'joint_state_broadcaster --activate-as-group' in broadcaster
    assert controllers not in broadcaster
    (handler,) = (each for each in entities if isinstance(each, RegisterEventHandler))
    awaited = nodes(entities)['spawner'] if way == 'chained' else entities[-1]
    (then,) = handler.event_handler.handle(ProcessExited(action=awaited, **EXITED), given)
    assert words(then).startswith(f'{controllers} --activate-as-group')
    (entity,) = simulated_arm.computing(context(**values), FOLDER, ())
    source = entity.launch_description_source
    source.get_launch_description(context())  # known from then on
    assert source.location.endswith(f'{node}.launch.py')


def set_gravity(**values):
    """Return the gravity that is told what computes the torques."""
    given = {'gravity': '', 'gz_args': '-r', 'start_gazebo': 'true', **values}
    given = context(**{'world': str(ROOT / 'worlds' / 'empty.sdf'), **given})
    for action in launch_file('gazebo').set_gravity(given):
        action.visit(given)
    return [float(part) for part in given.launch_configurations['gravity'].split()]


def test_world_of_this_package_has_the_gravity_of_the_nodes():
    assert set_gravity() == list(STANDARD_GRAVITY) == [0.0, 0.0, -9.81]


def test_gravity_is_that_of_the_world_whatever_names_it(tmp_path, monkeypatch):
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


def test_gravity_of_the_world_is_told_to_the_controller_inside_gazebo(tmp_path):
    values = chained_values(tmp_path, tmp_path / 'arm.urdf', model_library='/arm.so')
    values.launch_configurations['gravity'] = '0 0 -1.62'
    entities = launch_file('gazebo').simulated(values)
    path = Path(re.findall(r'--param-file (\S+)', words(nodes(entities)['spawner']))[1])
    assert yaml.safe_load(path.read_text()) == {
        '/**/effort_controller': {'ros__parameters': {'gravity': [0.0, 0.0, -1.62]}}
    }
    shutil.rmtree(path.parent)


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
    kinds = {name: joint.get('type') for name, joint in joints.items()}
    assert kinds == {
        'a': 'revolute',
        'to_palm': 'fixed',
        'f1_joint': 'fixed',
        'f2_joint': 'fixed',
        'f3_joint': 'prismatic',
    }
    assert {child.tag for child in joints['f2_joint']} == {'parent', 'child'}
    assert note.endswith(': f1_joint, f2_joint')


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
    given = {'description_file': str(source), 'description_arguments': '', 'tf_prefix': ''}
    actions = launch_file('description').expanded(context(**given, joint_damping='0.2'))
    here = context()
    for action in actions:
        action.visit(here)
    text = Path(here.launch_configurations['urdf_file']).read_text()
    dynamics = {
        joint.get('name'): dict(element.attrib)
        for joint in etree.fromstring(text).findall('joint')
        for element in joint.findall('dynamics')
    }
    assert dynamics == {
        'bare': {'damping': '0.2'},
        'light': {'damping': '0.2', 'friction': '0.1'},
        'heavy': {'damping': '5'},
    }
    assert source.read_text() == DAMPED


@pytest.mark.parametrize('value', ['a lot', '-1', 'nan', 'inf'])
def test_damping_that_is_no_number_from_zero_on_is_refused(value):
    with pytest.raises(RuntimeError, match='joint_damping'):
        launch_file('description').damped(DAMPED, value)


def test_robot_that_gazebo_cannot_command_is_refused():
    with pytest.raises(RuntimeError, match='no <ros2_control> with joints in it'):
        launch_file('gazebo').commanded(GRIPPER.replace(COMMANDED, ''))


def test_gazebo_finds_the_meshes_of_packages_and_says_which_it_does_not(tmp_path, monkeypatch):
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
    values = context(**{**gazebo_values(tmp_path), 'urdf_file': str(urdf)})
    entities = launch_file('gazebo').simulated(values)
    (where,) = (each for each in entities if isinstance(each, AppendEnvironmentVariable))
    where.visit(values)
    assert values.environment['GZ_SIM_RESOURCE_PATH'] == str(tmp_path / 'share')
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


@pytest.mark.parametrize('manager', ['', 'controller_manager'])
def test_feedforward_is_given_what_is_asked_for(tmp_path, manager):
    values = {
        **robodyn_values(tmp_path),
        'node_name': 'model',
        'base_link': 'base',
        'tip_link': '',
        'tf_prefix': 'left_',
        'trajectory_controller': 'trajectories',
        'controller_manager': manager,
        'feedforward_file': '/f.yaml',
        'joint_states_topic': 'states',
        'robot_description_topic': 'description',
        'use_sim_time': 'true',
        'log_level': 'warn',
        'gravity': '0 0 -9.8',
    }
    (node,) = launch_file('feedforward').started(context(**values))
    assert parameters_of(node)['gravity'] == (0.0, 0.0, -9.8)
    assert ('controller_manager' in parameters_of(node)) == bool(manager)
    assert node.node_executable == 'feedforward'
    assert node._Node__node_namespace == 'cell'
    assert '--log-level warn' in words(node)


@pytest.mark.parametrize('manager', ['', '/controller_manager'])
def test_node_is_told_of_its_controller_where_there_is_a_manager(tmp_path, manager):
    values = {
        **robodyn_values(tmp_path),
        'controller_manager': manager,
        'initial_mode': '',
        'base_link': '',
        'tip_link': '',
        'autostart': 'true',
        'use_sim_time': 'false',
        'node_name': 'dynamics_node',
        'params_file': '/p.yaml',
        'command_topic': 'c',
        'torques_topic': '~/torques',
        'joint_states_topic': 'joint_states',
        'robot_description_topic': 'robot_description',
        'log_level': 'info',
        'launch_prefix': '',
        'gravity': '0 0 -1.62' if manager else '',
    }
    given = parameters_of(launch_file('node').dynamics_node(values))
    assert given.get('gravity') == ((0.0, 0.0, -1.62) if manager else None)
    assert ('controller' in given) == ('controller_manager' in given) == bool(manager)


def test_robot_is_put_into_a_gazebo_that_runs_already(tmp_path):
    values = {**gazebo_values(tmp_path), 'start_gazebo': 'false'}
    entities = launch_file('gazebo').simulated(context(**values))
    assert set(nodes(entities)) == {'robot_state_publisher', 'create', 'spawner'}
    assert not [each for each in entities if isinstance(each, IncludeLaunchDescription)]


def test_gazebo_names_what_is_not_installed_and_the_command_that_installs_it():
    module = launch_file('gazebo')
    needed = [*module.NEEDED, *simulated_arm.NEEDED_BY['trajectory']]
    missing = [name for name in needed if not is_installed(name)]
    if not missing:
        pytest.skip('all of it is installed')
    with pytest.raises(
        RuntimeError,
        match=r'sudo apt install ros-\$ROS_DISTRO-' + missing[0].replace('_', '-'),
    ):
        module.checked(context(way='trajectory', use_sim_time='true'))


def test_gazebo_refuses_another_time_than_its_own(monkeypatch):
    module = launch_file('gazebo')
    monkeypatch.setattr(simulated_arm, 'is_installed', lambda package: True)
    with pytest.raises(RuntimeError, match='use_sim_time: false; allowed: true'):
        module.checked(context(way='forward', use_sim_time='false'))


@pytest.mark.parametrize('given, manager', [({}, 'controller_manager'), ({'m': 'cm'}, 'cm')])
def test_node_watches_the_controller_in_gazebo(given, manager):
    values = LaunchContext()
    if given:
        values.launch_configurations['controller_manager'] = given['m']
    (argument,) = (each for each in launch_file('gazebo').ARGUMENTS if each.name == MANAGER)
    argument.visit(values)
    # Relative: in the namespace of the node, where gz_ros2_control puts it.
    assert values.launch_configurations[MANAGER] == manager
    # What the node's launch file declares itself changes nothing any more.
    (own,) = (each for each in launch_file('node').ARGUMENTS if each.name == MANAGER)
    own.visit(values)
    assert values.launch_configurations[MANAGER] == manager


def test_gazebo_with_the_chained_controller_has_its_controllers_by_default(monkeypatch):
    monkeypatch.setattr(simulated_arm, 'FindPackageShare', lambda package: f'/share/{package}')
    values = context(way='chained', controllers_file='', model_library='/arm.so')
    for action in simulated_arm.chosen(values):
        action.visit(values)
    found = values.launch_configurations
    assert found['controllers_file'] == '/share/robodyn_controllers/config/controllers.yaml'
    assert found['controller'] == 'inverse_dynamics_controller'
    assert found['trajectory_controller'] == 'joint_trajectory_controller'
    sections = yaml.safe_load((controllers_package() / 'config' / 'controllers.yaml').read_text())
    joints = launch_file('controllers').joints_of(sections, found['controller'])
    assert joints == [f'$(var tf_prefix)joint{i}' for i in range(1, 7)]
    shutil.rmtree(found['made_folder'])


@pytest.mark.parametrize(
    'activate, option', [('true', '--activate-as-group'), ('false', '--inactive')]
)
def test_chained_controllers_are_spawned_together_with_their_model(activate, option):
    folder = controllers_package()
    values = {
        'model_library': '/home/me/arm.so',
        'controllers_file': str(folder / 'config' / 'controllers.yaml'),
        'tf_prefix': 'left_',
        'namespace': 'cell',
        'activate': activate,
    }
    entities = launch_file('chained', folder / 'launch').spawned(context(**values))
    spawner = words(nodes(entities)['spawner'])
    assert f'inverse_dynamics_controller joint_trajectory_controller {option}' in spawner
    path = re.search(r'--param-file (\S+)', spawner)[1]
    sections = yaml.safe_load(Path(path).read_text())
    ours = sections['/**/inverse_dynamics_controller']['ros__parameters']
    assert ours['model_library'] == '/home/me/arm.so'
    assert ours['joints'][0] == 'left_joint1'


def chained_values(tmp_path, urdf, **changes):
    values = context(**{**gazebo_values(tmp_path), 'way': 'chained', 'model_library': ''})
    values.launch_configurations.update(
        {'controllers_file': '/c.yaml', 'tf_prefix': '', **changes}
    )
    for action in simulated_arm.chosen(values):
        if isinstance(action, SetLaunchConfiguration):
            action.visit(values)
    values.launch_configurations['urdf_file'] = str(urdf)
    return values


def test_gazebo_with_the_chained_controller_makes_its_model_where_none_is_given(tmp_path):
    urdf = tmp_path / 'six_axes.urdf'
    text = (ROOT / 'urdf' / 'six_axis_industrial.urdf').read_text()
    all_joints = COMMANDED.replace('"a"', '"joint1"').replace(
        '</ros2_control>', ''.join(f'<joint name="joint{i}"/>' for i in range(2, 7))
    )
    urdf.write_text(text.replace('</robot>', f'{all_joints}</ros2_control></robot>'))
    values = chained_values(tmp_path, urdf)
    path = Path(values.launch_configurations['model_library'])
    assert not path.exists()
    values.launch_configurations['gravity'] = '0 0 -1.625'
    launch_file('gazebo').simulated(values)
    library = ctypes.CDLL(str(path))
    assert library.robodyn_model_v5 is not None
    (source,) = path.parent.glob('*.c')
    assert '-1.625' in source.read_text()
    shutil.rmtree(path.parent)


def test_gazebo_says_why_no_model_can_be_made(tmp_path):
    values = chained_values(tmp_path, tmp_path / 'arm.urdf')  # a robot without links
    with pytest.raises(RuntimeError, match='model_library: not given, and none can be made: .+'):
        launch_file('gazebo').simulated(values)
    shutil.rmtree(Path(values.launch_configurations['model_library']).parent)


def test_gazebo_makes_no_model_where_one_is_given(tmp_path):
    values = chained_values(tmp_path, tmp_path / 'arm.urdf', model_library='/arm.so')
    launch_file('gazebo').simulated(values)
    assert values.launch_configurations['model_library'] == '/arm.so'
    shutil.rmtree(values.launch_configurations['made_folder'])


def test_gazebo_removes_at_shutdown_what_it_made_for_the_chained_controller():
    values = context(way='chained', controllers_file='/c.yaml', model_library='/arm.so')
    actions = simulated_arm.chosen(values)
    (handler,) = (each for each in actions if isinstance(each, RegisterEventHandler))
    for action in actions:
        if isinstance(action, SetLaunchConfiguration):
            action.visit(values)
    folder = Path(values.launch_configurations['made_folder'])
    assert folder.is_dir()
    for action in handler.event_handler.handle(Shutdown(), values) or []:
        action.visit(values)
    assert not folder.exists()


def test_gazebo_names_the_build_of_the_controllers_that_no_registry_has(monkeypatch):
    module = launch_file('gazebo')
    values = context(way='chained', use_sim_time='true')
    monkeypatch.setattr(
        simulated_arm, 'is_installed', lambda package: package != 'robodyn_controllers'
    )
    with pytest.raises(RuntimeError, match='colcon build .*/robodyn_controllers') as found:
        module.checked(values)
    assert 'apt' not in str(found.value)
    monkeypatch.setattr(
        simulated_arm, 'is_installed', lambda package: package.startswith('ros_gz')
    )
    with pytest.raises(RuntimeError, match='sudo apt install .*-gz-ros2-control .*colcon build'):
        module.checked(values)


def test_rviz_shows_its_file_and_looks_from_the_base():
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


def simulation_values(tmp_path, **changes):
    """Return what the arguments of a simulation are when no other is given."""
    defaults = {
        name: ''.join(getattr(part, 'text', '') for part in argument.default_value)
        for name, argument in arguments('simulation').items()
    }
    return {**defaults, **robodyn_values(tmp_path), 'use_sim_time': 'false', **changes}


def simulated(tmp_path, **changes):
    """Return the nodes of a simulation, the dynamics node with them, by executable."""
    values = context(**simulation_values(tmp_path, **changes))
    entities = launch_file('simulation').simulated(values)
    return nodes([*entities, *launch_file('node').started(values)])


def test_simulation_tells_rviz_where_the_links_are_on_request(tmp_path):
    values = context(**simulation_values(tmp_path, launch_rviz='true'))
    started = nodes(launch_file('simulation').simulated(values))
    assert set(started) == {'simulator_node', 'robot_state_publisher'}


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
    values = {
        name: ''.join(getattr(part, 'text', '') for part in argument.default_value or ())
        for name, argument in arguments('run_motion').items()
    }
    values |= {'motion_file': 'motion.csv', 'speed': '0.5'}
    (node,) = launch_file('run_motion').motion(context(**values))
    given = parameters_of(node)
    assert given['speed'] == 0.5
    for each in node_parameters('motion_node'):
        if each.name in given and each.name not in ('speed', 'motion_file', 'urdf_file'):
            value = given[each.name]
            if isinstance(value, tuple):
                value = yaml.safe_load(value[0].text) if each.kind == 'string' else value
            assert value == each.default, each.name
    assert given['confirm'] is False


def test_drives_of_a_simulation_are_torque_sources_unless_told_otherwise(tmp_path):
    given = parameters_of(simulated(tmp_path)['simulator_node'])
    drives = {name: value for name, value in given.items() if name.startswith('drive.')}
    assert drives == {
        'drive.compensates_gravity': False,
        'drive.compensates_friction': 0.0,
        'drive.knows_payload': False,
    }


@pytest.mark.parametrize('text', ['{a: 1}', '[[0.0]]', '[0.0', '1' * 400, '[a, 0.5]'])
def test_argument_that_is_no_numbers_is_refused_by_name(tmp_path, text):
    with pytest.raises(RuntimeError, match='^initial_position: .*; allowed: a number, or a list'):
        simulated(tmp_path, initial_position=text)


def test_simulated_driver_compensates_as_it_is_told_beside_the_node(tmp_path):
    started = simulated(
        tmp_path,
        drive_compensates_gravity='true',
        drive_compensates_friction='0.8',
        drive_knows_payload='true',
    )
    assert 'dynamics_node' in started
    given = parameters_of(started['simulator_node'])
    assert given['drive.compensates_gravity'] is given['drive.knows_payload'] is True
    assert given['drive.compensates_friction'] == 0.8


@pytest.mark.parametrize('gain, numbers', [('[70, 7.5]', [70.0, 7.5]), ('400', [400.0])])
def test_simulated_servos_get_their_gains_and_no_torques_as_positions(tmp_path, gain, numbers):
    started = simulated(tmp_path, drive_position_gain=gain, drive_velocity_gain='[2]')
    assert set(started) == {'simulator_node'}
    given = parameters_of(started['simulator_node'])
    assert list(given['drive.position_gain']) == numbers
    assert list(given['drive.velocity_gain']) == [2.0]


# --- what a user may get wrong -----------------------------------------------------------------


@pytest.mark.parametrize(
    'name, values, words',
    [
        (
            'robodyn',
            {'description_file': '/nowhere/arm.urdf'},
            'there is no file /nowhere/arm.urdf',
        ),
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
        ('gazebo', {}, 'sudo apt install'),
    ],
)
def test_wrong_argument_ends_the_launch_with_words(name, values, words):
    if name == 'gazebo' and all(map(launch_file(name).is_installed, launch_file(name).NEEDED)):
        pytest.skip('all of it is installed')
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
    for text in (
        {'effort': section},
        {'/cell/effort': section},
        {'/**/effort': section},
        {'/**': {'effort': section}},
    ):
        assert joints_of(yaml.safe_load(yaml.safe_dump(text)), 'effort') == ['b', 'a']


# --- MuJoCo under ros2_control -----------------------------------------------------------------

PENDULUM = """<mujoco model="pendulum"><compiler autolimits="true"/><option gravity="0 0 -3.7"/>
<worldbody><body name="rod"><joint name="joint1" axis="0 1 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0" mass="2"/></body></worldbody>
<actuator><motor name="drive" joint="joint1"/></actuator></mujoco>"""


def mujoco_values(tmp_path, **changes):
    return {
        **gazebo_values(tmp_path),
        'description_file': str(ROOT / 'urdf' / 'arm.urdf.xacro'),
        'description_arguments': '',
        'joints': '[joint1, joint2, joint3, joint4, joint5, joint6]',
        'gravity': '',
        'joint_damping': '',
        'headless': 'true',
        'real_time_factor': '0.5',
        **changes,
    }


def in_mujoco(tmp_path, **changes):
    """Return the nodes for a robot, and its URDF as robot_state_publisher has it."""
    module, given = launch_file('mujoco'), context(**mujoco_values(tmp_path, **changes))
    actions = module.read(given)
    for action in actions[:1] + actions[2:]:  # all but that at shutdown
        action.visit(given)
    for action in launch_file('description').expanded(given)[:1]:
        action.visit(given)
    entities = module.simulated(given)
    started = nodes(entities)
    (text,) = parameters_of(started['robot_state_publisher'])['robot_description']
    return started, etree.fromstring(yaml.safe_load(text.text))


def held(robot):
    """Return the torques that hold the joints until a controller commands them."""
    begins = "state_interface[@name='effort']/param[@name='initial_value']"
    return {
        joint.get('name'): float(joint.findtext(begins))
        for joint in robot.findall('ros2_control/joint')
    }


def test_mujoco_simulates_an_mjcf_of_the_robot_and_holds_it_until_it_is_commanded(tmp_path):
    mujoco = pytest.importorskip('mujoco')
    started, robot = in_mujoco(tmp_path)
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


def test_mujoco_simulates_an_mjcf_as_it_is_with_a_urdf_of_it_for_the_controllers(tmp_path):
    pytest.importorskip('mujoco')
    path = tmp_path / 'pendulum.xml'
    path.write_text(PENDULUM)
    _, robot = in_mujoco(tmp_path, description_file=str(path), joints='[joint1]')
    assert robot.findtext("ros2_control/hardware/param[@name='mujoco_model']") == str(path)
    assert robot.find("joint[@name='joint1']").get('type') == 'continuous'
    assert held(robot) == {'joint1': pytest.approx(-2 * 3.7 * 0.25)}
    with pytest.raises(RuntimeError, match="gravity: '0 0 -9.81'; allowed: that of the MJCF"):
        in_mujoco(tmp_path, description_file=str(path), joints='[joint1]', gravity='0 0 -9.81')


@pytest.mark.parametrize(
    'motor',
    ['<position name="drive" joint="joint1"/>', '<motor name="drive" gear="2" joint="joint1"/>'],
)
def test_an_mjcf_whose_controls_are_no_torques_is_refused(tmp_path, motor):
    pytest.importorskip('mujoco')
    path = tmp_path / 'pendulum.xml'
    path.write_text(PENDULUM.replace('<motor name="drive" joint="joint1"/>', motor))
    with pytest.raises(RuntimeError, match='without a motor whose control is the torque: joint1'):
        in_mujoco(tmp_path, description_file=str(path), joints='[joint1]')


FINGER = """<body pos="0.5 0 0"><joint name="finger" type="slide" axis="1 0 0" ref="0.02"/>
<geom size="0.02" mass="0.1"/></body></body></worldbody>"""


@pytest.mark.parametrize('kind', ['motor', 'position'])
def test_every_actuator_of_an_mjcf_is_commanded_lest_one_that_is_not_zeroes_all(tmp_path, kind):
    pytest.importorskip('mujoco')
    path = tmp_path / 'pendulum.xml'
    text = PENDULUM.replace('</body></worldbody>', FINGER)
    text = text.replace('</actuator>', f'<{kind} name="grip" joint="finger"/></actuator>')
    path.write_text(text)
    _, robot = in_mujoco(tmp_path, description_file=str(path), joints='[joint1]')
    torques = held(robot)
    assert torques['finger'] == 0.0
    assert torques['joint1'] < -1.0
    begins = "ros2_control/joint[@name='finger']/state_interface[@name='position']/param"
    assert float(robot.findtext(begins)) == 0.02
    assert robot.find("ros2_control/joint[@name='finger']/command_interface") is None
    path.write_text(text.replace(' name="grip"', ''))
    with pytest.raises(RuntimeError, match='actuator 1; allowed: those with a name'):
        in_mujoco(tmp_path, description_file=str(path), joints='[joint1]')


@pytest.mark.parametrize('factor', ['0', '-1', 'inf', 'nan', 'fast'])
def test_mujoco_refuses_a_real_time_factor_that_is_none(tmp_path, factor):
    with pytest.raises(RuntimeError, match=f'real_time_factor: .{factor}.; allowed: a number'):
        in_mujoco(tmp_path, real_time_factor=factor)


def test_mujoco_names_what_is_not_installed():
    module = launch_file('mujoco')
    if is_installed('mujoco_ros2_control'):
        pytest.skip('it is installed')
    with pytest.raises(RuntimeError, match=r'ros-\$ROS_DISTRO-mujoco-ros2-control'):
        module.checked(context(way='forward', use_sim_time='true'))
