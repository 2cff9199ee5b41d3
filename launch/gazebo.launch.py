# SPDX-License-Identifier: Apache-2.0
"""
An arm in Gazebo under gz_ros2_control, commanded by the model.

The dynamics node commands it through a forward controller; or a joint trajectory controller does,
whose trajectories feedforward fills with effort; or the controller of robodyn_controllers does, to
which a joint trajectory controller is chained.

The arm is held, by hold_joints of gz_ros2_control, until a controller commands it. The forward
controller does not before the node's first torque has come, nor the joint trajectory controller
before feedforward knows the effort that holds the arm.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    AppendEnvironmentVariable,
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetLaunchConfiguration,
)
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from robodyn_ros import RobotModel
from robodyn_ros.compiled import export_shared
from robodyn_ros.errors import RobodynError
from robodyn_ros.ros.launching import (
    ARM,
    SHARE,
    argument,
    at_shutdown,
    included,
    prefixed,
    robot_state_publisher,
    switch,
)
from robodyn_ros.spatial import rotation_from_rpy

HERE = Path(__file__).parent
NEEDED = (
    'ros_gz_sim',
    'ros_gz_bridge',
    'gz_ros2_control',
    'controller_manager',
    'joint_state_broadcaster',
    'robot_state_publisher',
)
BUILT_HERE = ('robodyn_controllers',)  # in no registry of packages: with the sources of this one
NEEDED_BY = {
    'forward': ('forward_command_controller', 'ros2topic'),
    'trajectory': ('joint_trajectory_controller', 'control_msgs', 'ros2topic'),
    'chained': ('joint_trajectory_controller', 'robodyn_controllers'),
}
MADE = 'made'  # the name of a library that is made here
WORLDS = ('.sdf', '.world')
DEFAULT_GRAVITY = '0 0 -9.8'  # of a world that names none, by the SDF format
CHAINED = {
    'controller': 'inverse_dynamics_controller',
    'trajectory_controller': 'joint_trajectory_controller',
    'namespace': '',
}
# The launch configurations that name the controllers of the arm.
NAMED_BY = {
    'forward': ('controller',),
    'trajectory': ('trajectory_controller',),
    'chained': ('controller', 'trajectory_controller'),
}

ARGUMENTS = (
    DeclareLaunchArgument(
        'way',
        default_value='forward',
        choices=list(NEEDED_BY),
        description='Of the torques: forward, from dynamics_node through a forward controller; '
        'trajectory, by a joint trajectory controller with feedforward in front of it; chained, '
        'by one that is chained to the controller of robodyn_controllers.',
    ),
    DeclareLaunchArgument(
        'model_library',
        default_value='',
        description='Where chained: path of the shared library that robodyn export --shared made '
        'of the arm; empty: it is exported now, which needs a C compiler.',
    ),
    argument(
        'description_file',
        default_value=ARM,
        description='Xacro of the robot, which takes the arguments use_gazebo, controllers_file '
        'and namespace as that of this package does.',
    ),
    DeclareLaunchArgument(
        'controllers_file',
        default_value='',
        description='YAML of the controllers: the node commands in the order of its joints. It '
        'may say $(var tf_prefix), and $(var model_library) where chained. Empty: that of '
        'urdf/arm.urdf.xacro.',
    ),
    DeclareLaunchArgument(
        'gz_args',
        default_value='-r -v 3',
        description='Arguments of gz sim: -r to run at once, -s to show nothing.',
    ),
    DeclareLaunchArgument(
        'world',
        default_value=PathJoinSubstitution([SHARE, 'worlds', 'empty.sdf']),
        description='SDF of the world, unless gz_args names one.',
    ),
    DeclareLaunchArgument(
        'gravity',
        default_value='',
        description='That of the world, as "x y z" [m/s^2], for the node or controller; empty: '
        'read from the file of the world, or queried from a running Gazebo.',
    ),
    DeclareLaunchArgument(
        'state_timeout',
        default_value='1.0',
        description="The node's state_timeout, or that of feedforward [s]. Longer than on a "
        'robot, and before that of a parameter file: a simulation keeps the machine busy, and '
        'the watchdog counts real time.',
    ),
    DeclareLaunchArgument(
        'joint_damping',
        default_value='',
        description='Least viscous friction of the joints [N m s/rad], in Gazebo and the model: '
        'for a URDF with unrealistically little. Empty: as in the URDF.',
    ),
    switch(
        'start_gazebo',
        'Start Gazebo and its clock; false: it runs already, add a robot.',
        default='true',
    ),
    DeclareLaunchArgument(
        'model_name', default_value='arm', description='Name of the robot in Gazebo.'
    ),
    DeclareLaunchArgument(
        'position', default_value='0 0 0', description='Position of the robot, as "x y z" [m].'
    ),
    DeclareLaunchArgument(
        'controller_manager',
        default_value='controller_manager',
        description='Node name of the controller manager in Gazebo: where forward, the node '
        'monitors the controller, and deactivates it when it stops; where trajectory, feedforward '
        'holds the arm when the controller has become active; empty: they do not.',
    ),
    argument(
        'use_sim_time',
        default_value='true',
        description='Use the time of Gazebo (use_sim_time); false is refused.',
    ),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the actions."""
    return LaunchDescription(
        [
            *ARGUMENTS,
            OpaqueFunction(function=checked),
            OpaqueFunction(function=chosen),
            OpaqueFunction(function=set_gravity),
            included(HERE, 'controllers'),
            argument('command_topic'),
            OpaqueFunction(function=computing),
            OpaqueFunction(function=simulated),
        ]
    )


def checked(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return nothing; refuse missing packages, with the command that installs them."""
    needed = [*NEEDED, *NEEDED_BY[context.launch_configurations['way']]]
    missing = [name for name in needed if not is_installed(name)]
    packages = [f'ros-$ROS_DISTRO-{name.replace("_", "-")}' for name in missing]
    packages = [each for each, name in zip(packages, missing) if name not in BUILT_HERE]
    commands = [f'sudo apt install {" ".join(packages)}'] if packages else []
    for name in sorted(set(missing) & set(BUILT_HERE)):
        commands.append(
            f'{name} is in the sources of robodyn_ros: in the workspace, colcon build '
            f'--base-paths src/robodyn_ros src/robodyn_ros/robodyn_interfaces '
            f'src/robodyn_ros/{name}, and '
            'source install/setup.bash'
        )
    if commands:
        raise RuntimeError(f'Gazebo needs more: {"; ".join(commands)}')
    if context.launch_configurations['use_sim_time'] != 'true':
        raise RuntimeError(
            'use_sim_time: false; allowed: true. The stamps of Gazebo are of its own time, and by '
            "any other clock the arm's states are old"
        )
    return []


def chosen(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the defaults of launch configurations that depend on the way."""
    values = context.launch_configurations
    is_chained = values['way'] == 'chained'
    result: list[LaunchDescriptionEntity] = []
    if not values['controllers_file']:
        package = 'robodyn_controllers' if is_chained else 'robodyn_ros'
        name = 'controllers.yaml' if is_chained else 'ros2_controllers.yaml'
        path = PathJoinSubstitution([FindPackageShare(package), 'config', name])
        result.append(SetLaunchConfiguration('controllers_file', path))
    if is_chained:
        for name, default in CHAINED.items():
            result.append(SetLaunchConfiguration(name, values.get(name, default)))
        folder = tempfile.mkdtemp(prefix='robodyn_')
        result += [
            SetLaunchConfiguration('made_folder', folder),
            at_shutdown(partial(shutil.rmtree, folder, ignore_errors=True)),
        ]
        if not values['model_library']:
            library = f'{folder}/{MADE}.so'
            result += [
                SetLaunchConfiguration('made_library', library),
                SetLaunchConfiguration('model_library', library),
            ]
    return result


def set_gravity(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the action that sets gravity to that of the world: else the arm drifts."""
    values = context.launch_configurations
    given, allowed = values['gravity'], 'allowed: three numbers, that of the world, as "0 0 -9.8"'
    if not given:
        is_asked = values['start_gazebo'] != 'true'
        given = asked_gravity() if is_asked else gravity_of(world(values))
        if not given:
            why = 'the Gazebo that runs does not say' if is_asked else f'no file {world(values)}'
            raise RuntimeError(f'gravity: not given, and {why}; {allowed}')
    try:
        parts = [float(part) for part in given.split()]
    except ValueError:
        parts = []
    if len(parts) != 3:
        raise RuntimeError(f'gravity: {given!r}; {allowed}')
    return [SetLaunchConfiguration('gravity', ' '.join(map(str, parts)))]


def world(values: dict[str, str]) -> str:
    """Return the name of the world, in the arguments of gz sim or else in the argument world."""
    named = [word for word in shlex.split(values['gz_args']) if word.endswith(WORLDS)]
    return named[0] if named else values['world']


def gravity_of(name: str) -> str:
    """Return the gravity in the file of a world, searched where Gazebo does; empty: no file."""
    folders = [Path()]
    folders += map(Path, os.environ.get('GZ_SIM_RESOURCE_PATH', '').split(':'))
    for prefix in ('/usr', *os.environ.get('AMENT_PREFIX_PATH', '').split(':')):
        folders += sorted(Path(prefix).glob('share/gz/gz-sim*/worlds'))
        folders += sorted(Path(prefix).glob('opt/gz_sim_vendor/share/gz/gz-sim*/worlds'))
    for folder in folders:
        path = folder / Path(name).expanduser()
        if path.is_file():
            return ElementTree.parse(path).findtext('world/gravity') or DEFAULT_GRAVITY
    return ''


def asked_gravity() -> str:
    """Return the gravity of a running Gazebo; empty: none answers."""
    worlds = re.findall(r'data: *"([^"]+)"', asked('/gazebo/worlds', 'Empty', 'StringMsg_V'))
    if len(worlds) != 1:
        return ''
    text = asked(f'/world/{worlds[0]}/generate_world_sdf', 'SdfGeneratorConfig', 'StringMsg')
    if '<world' not in text:
        return ''
    found = re.search(r'<gravity>([^<]*)</gravity>', text)
    return found[1] if found else DEFAULT_GRAVITY


def asked(service: str, request: str, answer: str) -> str:
    """Return the answer of a Gazebo service to an empty request; empty: none."""
    types = ['--reqtype', f'gz.msgs.{request}', '--reptype', f'gz.msgs.{answer}']
    command = ['gz', 'service', '-s', service, *types, '--timeout', '5000', '--req', '']
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20.0).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ''


def check_upright(values: dict[str, str]) -> None:
    """Refuse a base link that is turned against the world, in whose axes gravity is."""
    link = prefixed(values, 'base_link')
    if not link:
        return
    joints = ElementTree.parse(values['urdf_file']).findall('joint')
    above = {joint.find('child').get('link'): joint for joint in joints}
    rotation = np.eye(3)
    while (joint := above.get(link)) is not None:
        origin = joint.find('origin')
        rpy = '0 0 0' if origin is None else origin.get('rpy', '0 0 0')
        rotation = rotation_from_rpy([float(part) for part in rpy.split()]) @ rotation
        link = joint.find('parent').get('link')
    if np.abs(rotation - np.eye(3)).max() > 1e-6:
        raise RuntimeError(
            f'base_link: {values["base_link"]} is turned against the world, in whose axes gravity '
            'is given; allowed: none, for which the root of the robot is taken'
        )


def make_library(values: dict[str, str]) -> None:
    """Export the shared library of the arm, where none was given, as robodyn export does."""
    try:
        model = RobotModel.from_urdf(
            values['urdf_file'],
            base_link=prefixed(values, 'base_link') or None,
            tip_link=prefixed(values, 'tip_link') or None,
            gravity=tuple(map(float, values['gravity'].split())),
        )
        export_shared(model, Path(values['made_library']).parent, name=MADE)
    except RobodynError as error:
        raise RuntimeError(f'model_library: not given, and none can be made: {error}') from error


def computing(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the node that computes the torques, if any, and the robot's description."""
    way = context.launch_configurations['way']
    return [
        included(
            HERE,
            {'forward': 'node', 'trajectory': 'feedforward', 'chained': 'description'}[way],
            description_arguments=[
                LaunchConfiguration('description_arguments', default=''),
                ' use_gazebo:=true controllers_file:=',
                LaunchConfiguration('expanded_controllers_file'),
                ' namespace:=',
                LaunchConfiguration('namespace', default=''),
            ],
        ),
    ]


def is_installed(package: str) -> bool:
    """Return whether a ROS package is installed; False for an invalid name."""
    try:
        get_package_share_directory(package)
    except (PackageNotFoundError, ValueError):
        return False
    return True


def simulated(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the robot in Gazebo with its controllers, and Gazebo itself if requested."""
    values = context.launch_configurations
    namespace = values['namespace']
    text, notes = commanded(Path(values['urdf_file']).read_text(encoding='utf-8'))
    folders, unknown = mesh_folders(text)
    if unknown and not os.environ.get('GZ_SIM_RESOURCE_PATH'):
        notes.append(
            f'meshes of package://{", package://".join(unknown)} are of no ROS package: Gazebo '
            'leaves them out, and their collisions, unless GZ_SIM_RESOURCE_PATH names the folder '
            'in which that folder is'
        )
    x, y, z = values['position'].split()
    place = ['-x', x, '-y', y, '-z', z]
    check_upright(values)
    if 'made_library' in values:
        make_library(values)
    robot = [
        robot_state_publisher(text, namespace, use_sim_time=True),
        Node(
            package='ros_gz_sim',
            executable='create',
            namespace=namespace,
            arguments=['-topic', 'robot_description', '-name', values['model_name'], *place],
            output='screen',
        ),
        *spawned(values),
    ]
    robot = [*(LogInfo(msg=note) for note in notes), *robot]
    if values['start_gazebo'] != 'true':
        return robot
    arguments = values['gz_args']
    if world(values) not in shlex.split(arguments):
        arguments = f'{arguments} {shlex.quote(world(values))}'
    # Gazebo searches package:// resources in this variable, not in the launch environment.
    where = [AppendEnvironmentVariable('GZ_SIM_RESOURCE_PATH', str(folder)) for folder in folders]
    return [*where, *gazebo(arguments), *robot]


def commanded(text: str) -> tuple[str, list[str]]:
    """
    Return a robot whose joints all are commanded or fixed, and notes about changes.

    A gripper's joints outside <ros2_control> move freely in Gazebo, while the model locks them
    at zero, as it has every joint off its chain. Those that another plugin names are left to it.
    """
    robot = ElementTree.fromstring(text)
    ours = {joint.get('name') for joint in robot.findall('ros2_control/joint')}
    if not ours:
        raise RuntimeError(
            'description_file: no <ros2_control> with joints in it, so that Gazebo moves none; '
            'urdf/with_ros2_control.urdf.xacro adds it to any URDF'
        )
    theirs = {(each.text or '').strip() for each in robot.findall('gazebo//*')}
    loose = [
        joint
        for joint in robot.findall('joint')
        if joint.get('type') != 'fixed' and joint.get('name') not in ours | theirs
    ]
    if not loose:
        return text, []
    for joint in loose:
        joint.set('type', 'fixed')
        for name in ('axis', 'limit', 'dynamics', 'mimic', 'safety_controller', 'calibration'):
            for element in joint.findall(name):
                joint.remove(element)
    names = ', '.join(joint.get('name', '') for joint in loose)
    note = f'fixed at zero in Gazebo, as in the model, for no controller commands them: {names}'
    return ElementTree.tostring(robot, encoding='unicode'), [note]


def mesh_folders(text: str) -> tuple[list[Path], list[str]]:
    """Return the folders that hold the packages of meshes, and the packages that are not here."""
    folders, unknown = set(), []
    for package in sorted(set(re.findall(r'"package://([^/"]+)/', text))):
        if is_installed(package):
            folders.add(Path(get_package_share_directory(package)).parent)
        else:
            unknown.append(package)
    return sorted(folders), unknown


def spawned(values: dict[str, str]) -> list[LaunchDescriptionEntity]:
    """
    Return the actions that activate the broadcaster and, later, all controllers together.

    Not together: until the first /clock ros2_control takes Gazebo's time, which is ahead of it. A
    PID that meets both is called with a negative period, and its controller deactivated for it.

    The forward controller is activated when a torque waits for it, and the joint trajectory
    controller alone when the effort that holds the arm does. Both need joint states, and may have
    to compile the model first; without them the arm would fall, or sag, meanwhile.
    """
    controllers = [values[name] for name in NAMED_BY[values['way']]]
    broadcaster = spawner(values, 'joint_state_broadcaster')

    def activate(event: object, context: LaunchContext) -> list[LaunchDescriptionEntity]:
        return [] if context.is_shutdown else [spawner(values, *controllers)]

    def behind(action: ExecuteProcess) -> RegisterEventHandler:
        return RegisterEventHandler(OnProcessExit(target_action=action, on_exit=activate))

    if values['way'] == 'forward':
        topic, kind = values['command_topic'], 'std_msgs/msg/Float64MultiArray'
    elif values['way'] == 'trajectory' and values['controller_manager']:
        topic = f'{values["trajectory_controller"]}/joint_trajectory'
        kind = 'trajectory_msgs/msg/JointTrajectory'
    else:  # feedforward, too, sends nothing by itself where it is told of no manager
        return [behind(broadcaster), broadcaster]
    if not topic.startswith('/'):
        topic = '/'.join(['', *values['namespace'].strip('/').split('/'), topic])
    first_effort = ExecuteProcess(
        cmd=['ros2', 'topic', 'echo', '--no-daemon', '--once', topic.replace('//', '/'), kind],
        name='first_effort',
        output='log',
    )
    return [broadcaster, behind(first_effort), first_effort]


def spawner(values: dict[str, str], *controllers: str) -> Node:
    """Return the spawner that loads controllers and activates them together."""
    return Node(
        package='controller_manager',
        executable='spawner',
        namespace=values['namespace'],
        arguments=[
            *controllers,
            '--activate-as-group',
            '--param-file',
            values['expanded_controllers_file'],
            *gravity_file(values),
            '--controller-manager-timeout',
            '60',
        ],
        output='screen',
    )


def gravity_file(values: dict[str, str]) -> list[str]:
    """Return the spawner's option with gravity for the chained controller, if there is one."""
    if values['way'] != 'chained' or 'made_library' in values:
        return []
    gravity = [float(part) for part in values['gravity'].split()]
    section = {f'/**/{values["controller"]}': {'ros__parameters': {'gravity': gravity}}}
    file = Path(values['made_folder']) / 'gravity.yaml'
    file.write_text(yaml.safe_dump(section), encoding='utf-8')
    return ['--param-file', str(file)]


def gazebo(arguments: str) -> list[LaunchDescriptionEntity]:
    """Return Gazebo and its clock."""
    source = PythonLaunchDescriptionSource(
        PathJoinSubstitution([FindPackageShare('ros_gz_sim'), 'launch', 'gz_sim.launch.py'])
    )
    return [
        IncludeLaunchDescription(source, launch_arguments={'gz_args': arguments}.items()),
        Node(
            package='ros_gz_bridge',
            executable='parameter_bridge',
            arguments=['/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock'],
            output='screen',
        ),
    ]
