# SPDX-License-Identifier: Apache-2.0
"""
An arm in Gazebo under gz_ros2_control, commanded by the model in one of three ways.

The arm is held, by hold_joints of gz_ros2_control, until a controller commands it.
"""

import os
import re
import shlex
import subprocess
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    AppendEnvironmentVariable,
    DeclareLaunchArgument,
    IncludeLaunchDescription,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from robodyn_ros.ros import simulated_arm
from robodyn_ros.ros.launching import SHARE, switch
from robodyn_ros.ros.simulated_arm import GRAVITIES, commanded, gravity_set, is_installed, started

HERE = Path(__file__).parent
NEEDED = (
    'ros_gz_sim',
    'ros_gz_bridge',
    'gz_ros2_control',
    'controller_manager',
    'joint_state_broadcaster',
    'robot_state_publisher',
)
WORLDS = ('.sdf', '.world')
DEFAULT_GRAVITY = '0 0 -9.8'  # of a world that names none, by the SDF format

ARGUMENTS = (
    *simulated_arm.arguments(
        'Gazebo',
        'Xacro of the robot, which takes the arguments use_gazebo, controllers_file and namespace '
        'as that of this package does.',
        'read from the file of the world, or queried from a running Gazebo',
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
)

checked = partial(simulated_arm.checked, simulator='Gazebo', needed=NEEDED)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the actions."""
    xacro_arguments = (
        ' use_gazebo:=true controllers_file:=',
        LaunchConfiguration('expanded_controllers_file'),
        ' namespace:=',
        LaunchConfiguration('namespace', default=''),
    )
    return simulated_arm.launch_description(
        HERE, ARGUMENTS, xacro_arguments, checked, set_gravity, simulated
    )


def set_gravity(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the action that sets gravity to that of the world: else the arm drifts."""
    values = context.launch_configurations
    given = values['gravity']
    if not given:
        is_asked = values['start_gazebo'] != 'true'
        given = asked_gravity() if is_asked else gravity_of(world(values))
        if not given:
            why = 'the Gazebo that runs does not say' if is_asked else f'no file {world(values)}'
            raise RuntimeError(f'gravity: not given, and {why}; {GRAVITIES}')
    return gravity_set(given)


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


def simulated(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the robot in Gazebo with its controllers, and Gazebo itself if requested."""
    values = context.launch_configurations
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
    create = Node(
        package='ros_gz_sim',
        executable='create',
        namespace=values['namespace'],
        arguments=['-topic', 'robot_description', '-name', values['model_name'], *place],
        output='screen',
    )
    robot = started(values, text, notes, [create])
    if values['start_gazebo'] != 'true':
        return robot
    arguments = values['gz_args']
    if world(values) not in shlex.split(arguments):
        arguments = f'{arguments} {shlex.quote(world(values))}'
    # Gazebo searches package:// resources in this variable, not in the launch environment.
    where = [AppendEnvironmentVariable('GZ_SIM_RESOURCE_PATH', str(folder)) for folder in folders]
    return [*where, *gazebo(arguments), *robot]


def mesh_folders(text: str) -> tuple[list[Path], list[str]]:
    """Return the folders that hold the packages of meshes, and the packages that are not here."""
    folders, unknown = set(), []
    for package in sorted(set(re.findall(r'"package://([^/"]+)/', text))):
        if is_installed(package):
            folders.add(Path(get_package_share_directory(package)).parent)
        else:
            unknown.append(package)
    return sorted(folders), unknown


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
