# SPDX-License-Identifier: Apache-2.0
"""
An arm in Gazebo under gz_ros2_control, carried by the model.

The dynamics node commands it through a forward controller; or a joint trajectory controller does,
whose trajectories feedforward fills with effort; or the controller of robodyn_controllers does, to
which a joint trajectory controller is chained.

The arm is held, by hold_joints of gz_ros2_control, until a controller commands it. The forward
controller does not before the node's first torque has come.
"""

import shutil
import tempfile
from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    SetLaunchConfiguration,
)
from launch.event_handlers import OnProcessExit, OnShutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from robodyn_ros import RobotModel
from robodyn_ros.compiled import export_shared
from robodyn_ros.errors import RobodynError
from robodyn_ros.ros.launching import included

HERE = Path(__file__).parent
SHARE = FindPackageShare('robodyn_ros')
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
    'trajectory': ('joint_trajectory_controller', 'control_msgs'),
    'chained': ('joint_trajectory_controller', 'robodyn_controllers'),
}
MADE = 'made'  # the name of a library that is made here
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
        'of the arm; empty: it is made now, which takes a C compiler.',
    ),
    DeclareLaunchArgument(
        'description_file',
        default_value=PathJoinSubstitution([SHARE, 'urdf', 'arm.urdf.xacro']),
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
        default_value='-r -v 3 empty.sdf',
        description='Arguments of gz sim: a world, -r to run at once, -s to show nothing.',
    ),
    DeclareLaunchArgument(
        'start_gazebo',
        default_value='true',
        choices=['true', 'false'],
        description='Start Gazebo and its clock; false: it runs already, add a robot.',
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
        'watches the controller, and deactivates it when it stops; empty: it does not.',
    ),
    DeclareLaunchArgument(
        'use_sim_time',
        default_value='true',
        choices=['true', 'false'],
        description='Use the time of Gazebo (use_sim_time); false is refused.',
    ),
)

COMMAND_TOPIC = DeclareLaunchArgument(
    'command_topic',
    default_value=[LaunchConfiguration('controller'), '/commands'],
    description='Topic of the commands (std_msgs/Float64MultiArray).',
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and what starts."""
    return LaunchDescription(
        [
            *ARGUMENTS,
            OpaqueFunction(function=checked),
            OpaqueFunction(function=chosen),
            included(HERE, 'controllers'),
            COMMAND_TOPIC,
            OpaqueFunction(function=computing),
            OpaqueFunction(function=simulated),
        ]
    )


def checked(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return nothing; what is not installed is named, with the command that installs it."""
    needed = [*NEEDED, *NEEDED_BY[context.launch_configurations['way']]]
    missing = [name for name in needed if not is_installed(name)]
    packages = [f'ros-$ROS_DISTRO-{name}'.replace('_', '-') for name in missing]
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
    """Return what the way decides where nothing else is given."""
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
        if not values['model_library']:
            folder = tempfile.mkdtemp(prefix='robodyn_')

            def remove(event: object, context: LaunchContext) -> None:
                shutil.rmtree(folder, ignore_errors=True)

            result += [
                SetLaunchConfiguration('made_library', f'{folder}/{MADE}.so'),
                SetLaunchConfiguration('model_library', f'{folder}/{MADE}.so'),
                RegisterEventHandler(OnShutdown(on_shutdown=remove)),
            ]
    return result


def make_library(values: dict[str, str]) -> None:
    """Make the shared library of the arm, where none was given, as robodyn export does."""
    base_link, tip_link = (
        values.get(name, '') and values['tf_prefix'] + values[name]
        for name in ('base_link', 'tip_link')
    )
    try:
        model = RobotModel.from_urdf(
            values['urdf_file'], base_link=base_link or None, tip_link=tip_link or None
        )
        export_shared(model, Path(values['made_library']).parent, name=MADE)
    except RobodynError as error:
        raise RuntimeError(f'model_library: not given, and none can be made: {error}') from error


def computing(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the node that computes the torques, if one does, and what describes the robot."""
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
    """Return whether a ROS package is there."""
    try:
        get_package_share_directory(package)
    except PackageNotFoundError:
        return False
    return True


def simulated(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the robot in Gazebo with its controllers, and Gazebo itself where asked for."""
    values = context.launch_configurations
    namespace = values['namespace']
    text = Path(values['urdf_file']).read_text(encoding='utf-8')
    x, y, z = values['position'].split()
    place = ['-x', x, '-y', y, '-z', z]
    if 'made_library' in values:
        make_library(values)
    robot = [
        Node(
            package='robot_state_publisher',
            executable='robot_state_publisher',
            namespace=namespace,
            parameters=[{'robot_description': text, 'use_sim_time': True}],
            output='screen',
        ),
        Node(
            package='ros_gz_sim',
            executable='create',
            namespace=namespace,
            arguments=['-topic', 'robot_description', '-name', values['model_name'], *place],
            output='screen',
        ),
        *spawned(values),
    ]
    return [*gazebo(values['gz_args']), *robot] if values['start_gazebo'] == 'true' else robot


def spawned(values: dict[str, str]) -> list[LaunchDescriptionEntity]:
    """
    Return what activates the controllers, all at once.

    The forward controller is activated when a torque waits for it. The node needs joint states for
    one, and may have to compile its model first; without torque the arm would fall meanwhile.
    """
    controllers = [values[name] for name in NAMED_BY[values['way']]]
    if values['way'] != 'forward':
        return [spawner(values, 'joint_state_broadcaster', *controllers)]
    topic = values['command_topic']
    if not topic.startswith('/'):
        topic = '/'.join(['', *values['namespace'].strip('/').split('/'), topic])
    first_torque = ExecuteProcess(
        cmd=['ros2', 'topic', 'echo', '--no-daemon', '--once']
        + [topic.replace('//', '/'), 'std_msgs/msg/Float64MultiArray'],
        name='first_torque',
        output='log',
    )

    def activate(event: object, context: LaunchContext) -> list[LaunchDescriptionEntity]:
        return [] if context.is_shutdown else [spawner(values, *controllers)]

    return [
        spawner(values, 'joint_state_broadcaster'),
        RegisterEventHandler(OnProcessExit(target_action=first_torque, on_exit=activate)),
        first_torque,
    ]


def spawner(values: dict[str, str], *controllers: str) -> Node:
    """Return what loads controllers and activates them together."""
    return Node(
        package='controller_manager',
        executable='spawner',
        namespace=values['namespace'],
        arguments=[
            *controllers,
            '--activate-as-group',
            '--param-file',
            values['expanded_controllers_file'],
            '--controller-manager-timeout',
            '60',
        ],
        output='screen',
    )


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
