# SPDX-License-Identifier: Apache-2.0
"""
An arm in a simulator under ros2_control, commanded in one of three ways, for the launch files.

The dynamics node commands it through a forward controller; or a joint trajectory controller does,
whose trajectories feedforward fills with effort; or the controller of robodyn_controllers does, to
which a joint trajectory controller is chained. The simulator holds the arm until a controller
commands it: the forward controller is activated when the node's first torque has come, the joint
trajectory controller when feedforward knows the effort that holds the arm.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetLaunchConfiguration,
)
from launch.event_handlers import OnProcessExit
from launch.launch_context import LaunchContext
from launch.launch_description import LaunchDescription
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from robodyn_ros import RobotModel
from robodyn_ros.compiled import export_shared
from robodyn_ros.errors import RobodynError
from robodyn_ros.ros.launching import (
    ARM,
    argument,
    at_shutdown,
    gravity_of,
    included,
    prefixed,
    robot_state_publisher,
)
from robodyn_ros.spatial import rotation_from_rpy

BUILT_HERE = ('robodyn_controllers',)  # in no registry of packages: with the sources of this one
NEEDED_BY = {
    'forward': ('forward_command_controller', 'ros2topic'),
    'trajectory': ('joint_trajectory_controller', 'control_msgs', 'ros2topic'),
    'chained': ('joint_trajectory_controller', 'robodyn_controllers'),
}
# What computes the torques: the launch file of a node, or only the description.
COMPUTED_BY = {'forward': 'node', 'trajectory': 'feedforward', 'chained': 'description'}
MADE = 'made'  # the name of a library that is made here
# The launch configurations that name the controllers of the arm.
NAMED_BY = {
    'forward': ('controller',),
    'trajectory': ('trajectory_controller',),
    'chained': ('controller', 'trajectory_controller'),
}

Step = Callable[[LaunchContext], 'list[LaunchDescriptionEntity]']
GRAVITIES = 'allowed: three numbers, that of the world, as "0 0 -9.8"'


def arguments(simulator: str, description: str, gravity: str) -> tuple[DeclareLaunchArgument, ...]:
    """
    Return the arguments of an arm in any simulator under ros2_control.

    Parameters
    ----------
    simulator : str
        Its name.
    description : str
        Which ``description_file`` it takes, as a sentence.
    gravity : str
        The gravity where none is given.
    """
    return (
        DeclareLaunchArgument(
            'way',
            default_value='forward',
            choices=list(NEEDED_BY),
            description='Of the torques: forward, from dynamics_node through a forward '
            'controller; trajectory, by a joint trajectory controller with feedforward in front '
            'of it; chained, by one that is chained to the controller of robodyn_controllers.',
        ),
        DeclareLaunchArgument(
            'model_library',
            default_value='',
            description='Where chained: path of the shared library that robodyn export --shared '
            'made of the arm; empty: it is exported now, which needs a C compiler.',
        ),
        argument('description_file', default_value=ARM, description=description),
        argument(
            'controllers_file',
            description='YAML of the controllers: the node commands in the order of its joints. '
            'It may say $(var tf_prefix), and $(var model_library) where chained. Empty: that of '
            'urdf/arm.urdf.xacro.',
        ),
        DeclareLaunchArgument(
            'gravity',
            default_value='',
            description=f'Gravity, as "x y z" [m/s^2]; empty: {gravity}.',
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
            description=f'Least viscous friction of the joints [N m s/rad], in {simulator} and '
            'the model: for a URDF with unrealistically little. Empty: as in the file.',
        ),
        argument(
            'controller_manager',
            default_value='controller_manager',
            description='Node name of the controller manager: where forward, the node monitors '
            'the controller, and deactivates it when it stops; where trajectory, feedforward '
            'holds the arm when the controller has become active; empty: they do not.',
        ),
        argument(
            'use_sim_time',
            default_value='true',
            description=f'Use the time of {simulator} (use_sim_time); false is refused.',
        ),
    )


def launch_description(
    folder: Path,
    arguments: Iterable[DeclareLaunchArgument],
    description_arguments: Iterable[Any],
    *steps: Step,
) -> LaunchDescription:
    """
    Return what starts an arm in a simulator, and what computes its torques.

    Parameters
    ----------
    folder : Path
        Of the launch files.
    arguments : iterable of DeclareLaunchArgument
    description_arguments : iterable of substitutions
        Appended to those of the robot's xacro.
    steps : callable
        Take the launch context and return actions: the check, what sets gravity, and what starts
        the simulator.
    """
    check, set_gravity, simulated = (OpaqueFunction(function=step) for step in steps)

    return LaunchDescription(
        [
            *arguments,
            check,
            OpaqueFunction(function=chosen),
            set_gravity,
            included(folder, 'controllers'),
            argument('command_topic'),
            OpaqueFunction(function=computing, args=[folder, description_arguments]),
            simulated,
        ]
    )


def computing(
    context: LaunchContext, folder: Path, description_arguments: Iterable[Any]
) -> list[LaunchDescriptionEntity]:
    """Return the node that computes the torques, if any, and the robot's description."""
    name = COMPUTED_BY[context.launch_configurations['way']]
    own = [LaunchConfiguration('description_arguments', default=''), *description_arguments]
    return [included(folder, name, description_arguments=own)]


def checked(
    context: LaunchContext, *, simulator: str, needed: Iterable[str]
) -> list[LaunchDescriptionEntity]:
    """Return nothing; refuse missing packages, and another time than the simulator's."""
    values = context.launch_configurations
    check_installed(simulator, needed, values['way'])
    if (given := values['use_sim_time']) != 'true':
        raise RuntimeError(
            f'use_sim_time: {given}; allowed: true. The stamps of {simulator} are of its own '
            "time, and by any other clock the arm's states are old"
        )
    return []


def check_installed(simulator: str, needed: Iterable[str], way: str) -> None:
    """Refuse missing packages, with the command that installs them."""
    missing = [name for name in (*needed, *NEEDED_BY[way]) if not is_installed(name)]
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
        raise RuntimeError(f'{simulator} needs more: {"; ".join(commands)}')


def is_installed(package: str) -> bool:
    """Return whether a ROS package is installed; False for an invalid name."""
    try:
        get_package_share_directory(package)
    except (PackageNotFoundError, ValueError):
        return False
    return True


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
        result += [
            argument('controller', default_value='inverse_dynamics_controller'),
            argument('trajectory_controller'),
            argument('namespace'),
        ]
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


def gravity_set(given: str) -> list[LaunchDescriptionEntity]:
    """Return the action that sets gravity to three numbers."""
    try:
        parts = [float(part) for part in given.split()]
    except ValueError:
        parts = []
    if len(parts) != 3:
        raise RuntimeError(f'gravity: {given!r}; {GRAVITIES}')
    return [SetLaunchConfiguration('gravity', ' '.join(map(str, parts)))]


def check_upright(values: dict[str, str]) -> None:
    """Refuse a base link that is turned against the world, in whose axes gravity is."""
    link = prefixed(values, 'base_link')
    if not link:
        return
    joints = ElementTree.parse(values['urdf_file']).findall('joint')
    above = {_named(joint, 'child'): joint for joint in joints}
    rotation = np.eye(3)
    while (joint := above.get(link)) is not None:
        origin = joint.find('origin')
        rpy = '0 0 0' if origin is None else origin.get('rpy', '0 0 0')
        rotation = rotation_from_rpy([float(part) for part in rpy.split()]) @ rotation
        link = _named(joint, 'parent')
    if np.abs(rotation - np.eye(3)).max() > 1e-6:
        raise RuntimeError(
            f'base_link: {values["base_link"]} is turned against the world, in whose axes gravity '
            'is given; allowed: none, for which the root of the robot is taken'
        )


def _named(joint: ElementTree.Element, end: str) -> str:
    found = joint.find(end)
    return '' if found is None else found.get('link', '')


def model_of(values: dict[str, str], urdf: str) -> RobotModel:
    """Return the model of the arm in a URDF, its path or its text, under the given gravity."""
    return RobotModel.from_urdf(
        urdf,
        base_link=prefixed(values, 'base_link') or None,
        tip_link=prefixed(values, 'tip_link') or None,
        gravity=gravity_of(values),
    )


def make_library(values: dict[str, str]) -> None:
    """Export the shared library of the arm, where chained to none, as robodyn export does."""
    if 'made_library' not in values:
        return
    try:
        model = model_of(values, values['urdf_file'])
        export_shared(model, Path(values['made_library']).parent, name=MADE)
    except RobodynError as error:
        raise RuntimeError(f'model_library: not given, and none can be made: {error}') from error


def commanded(text: str) -> tuple[str, list[str]]:
    """
    Return a robot whose joints all are commanded or fixed, and notes about changes.

    A gripper's joints outside <ros2_control> move freely in a simulator, while the model locks
    them at zero, as it has every joint off its chain. Those that another plugin names are left to
    it.
    """
    robot = ElementTree.fromstring(text)
    ours = {joint.get('name') for joint in robot.findall('ros2_control/joint')}
    if not ours:
        raise RuntimeError(
            'description_file: no <ros2_control> with joints in it, so that none is commanded; '
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
    note = f'fixed at zero, as in the model, for no controller commands them: {names}'
    return ElementTree.tostring(robot, encoding='unicode'), [note]


def started(
    values: dict[str, str],
    text: str,
    notes: Iterable[str],
    simulator: Iterable[LaunchDescriptionEntity],
) -> list[LaunchDescriptionEntity]:
    """
    Return what starts a robot: its description, what holds it in a simulator, its controllers.

    Parameters
    ----------
    values : dict of str to str
    text : str
        The robot's URDF.
    notes : iterable of str
        To be logged.
    simulator : iterable of LaunchDescriptionEntity
    """
    check_upright(values)
    make_library(values)
    return [
        *(LogInfo(msg=note) for note in notes),
        robot_state_publisher(text, values['namespace'], use_sim_time=True),
        *simulator,
        *spawned(values),
    ]


def spawned(values: dict[str, str]) -> list[LaunchDescriptionEntity]:
    """
    Return the actions that activate the broadcaster and, later, all controllers together.

    Not together: until the first /clock ros2_control takes another time, which is ahead of it. A
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
    gravity = {'ros__parameters': {'gravity': gravity_of(values)}}
    section = {f'/**/{values["controller"]}': gravity}
    file = Path(values['made_folder']) / 'gravity.yaml'
    file.write_text(yaml.safe_dump(section), encoding='utf-8')
    return ['--param-file', str(file)]
