# SPDX-License-Identifier: Apache-2.0
"""Part of the other launch files: the dynamics node, and RViz on request."""

from pathlib import Path
from typing import Any

import yaml
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from robodyn_ros.ros.launching import included
from robodyn_ros.ros.lockstep import IN_LOCKSTEP

HERE = Path(__file__).parent
SHARE = FindPackageShare('robodyn_ros')
TRUE_OR_FALSE = ['true', 'false']

ARGUMENTS = (
    DeclareLaunchArgument(
        'namespace',
        default_value='',
        description='Namespace of the nodes, and of every topic named without a leading /.',
    ),
    DeclareLaunchArgument(
        'node_name',
        default_value='dynamics_node',
        description='Name of the node; two chains of one robot need two.',
    ),
    DeclareLaunchArgument(
        'base_link',
        default_value='',
        description='Base link of the chain, without tf_prefix; empty: as in params_file, '
        'where empty is the root.',
    ),
    DeclareLaunchArgument(
        'tip_link',
        default_value='',
        description='Tip link of the chain, without tf_prefix; empty: as in params_file, '
        'where empty is found in the URDF if it is clear.',
    ),
    DeclareLaunchArgument(
        'initial_mode',
        default_value='',
        choices=['', 'gravity_compensation', 'feedforward', 'computed_torque'],
        description='Initial mode of the node; empty: as in params_file.',
    ),
    DeclareLaunchArgument(
        'params_file',
        default_value=PathJoinSubstitution([SHARE, 'config', 'dynamics_node.yaml']),
        description='Parameters of the node: gains, limits, timeouts and the rest.',
    ),
    DeclareLaunchArgument(
        'command_topic',
        default_value='forward_effort_controller/commands',
        description='Topic of the commands (std_msgs/Float64MultiArray).',
    ),
    DeclareLaunchArgument(
        'controller_manager',
        default_value='',
        description='Node name of the controller manager, for the node to watch the controller, '
        'and to deactivate it when it stops; empty: as in params_file.',
    ),
    DeclareLaunchArgument(
        'torques_topic',
        default_value='~/torques',
        description='Topic of the torques with joint names (sensor_msgs/JointState).',
    ),
    DeclareLaunchArgument(
        'joint_states_topic',
        default_value='joint_states',
        description='Topic of the joint states.',
    ),
    DeclareLaunchArgument(
        'robot_description_topic',
        default_value='robot_description',
        description='Topic of the URDF, unless description_file is given.',
    ),
    DeclareLaunchArgument(
        'autostart',
        default_value='true',
        choices=TRUE_OR_FALSE,
        description='Configure and activate at once; false: a lifecycle manager does it.',
    ),
    DeclareLaunchArgument(
        'use_sim_time',
        default_value='false',
        choices=TRUE_OR_FALSE,
        description='Use the time of the topic /clock (use_sim_time).',
    ),
    DeclareLaunchArgument(
        'launch_rviz',
        default_value='false',
        choices=TRUE_OR_FALSE,
        description='Start RViz, with the robot from robot_state_publisher.',
    ),
    DeclareLaunchArgument(
        'rviz_config_file',
        default_value=PathJoinSubstitution([SHARE, 'rviz', 'robodyn.rviz']),
        description='Configuration file of RViz.',
    ),
    DeclareLaunchArgument(
        'launch_prefix',
        default_value='',
        description='Command in front of the dynamics node, such as "chrt --fifo 49".',
    ),
    DeclareLaunchArgument(
        'log_level',
        default_value='info',
        choices=['debug', 'info', 'warn', 'error'],
        description='Log level of the dynamics node.',
    ),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and what starts."""
    description = included(HERE, 'description')
    return LaunchDescription([description, *ARGUMENTS, OpaqueFunction(function=started)])


def started(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the nodes that the arguments ask for."""
    values = context.launch_configurations
    nodes = [dynamics_node(values)]
    if values['launch_rviz'] == 'true':
        nodes.append(rviz(values))
    return nodes


def dynamics_node(values: dict[str, str]) -> Node:
    """Return the node; an empty argument leaves a parameter as it is in ``params_file``."""
    given: dict[str, Any] = {
        'urdf_file': values['urdf_file'],
        'mode': values['initial_mode'],
        'base_link': prefixed(values, 'base_link'),
        'tip_link': prefixed(values, 'tip_link'),
        'joints': yaml.safe_load(values.get('joints', '')),
        'gravity': [float(part) for part in values.get('gravity', '').split()],
        'state_timeout': float(values.get('state_timeout') or 0.0),
        'controller_manager': values['controller_manager'],
        'controller': values['controller_manager'] and values.get('controller', ''),
    }
    parameters = {name: value for name, value in given.items() if value}
    if values.get('lockstep') == 'true':
        parameters.update(IN_LOCKSTEP)
    parameters['autostart'] = values['autostart'] == 'true'
    parameters['use_sim_time'] = values['use_sim_time'] == 'true'
    return Node(
        package='robodyn_ros',
        executable='dynamics_node',
        name=values['node_name'],
        namespace=values['namespace'],
        parameters=[values['params_file'], parameters],
        remappings=[
            ('~/commands', values['command_topic']),
            ('~/torques', values['torques_topic']),
            ('joint_states', values['joint_states_topic']),
            ('robot_description', values['robot_description_topic']),
            ('/clock', clock_topic(values)),
        ],
        ros_arguments=['--log-level', values['log_level']],
        prefix=values['launch_prefix'] or None,
        output='screen',
    )


def rviz(values: dict[str, str]) -> Node:
    """Return RViz in the robot's namespace, looking from the chain's base."""
    base_link = prefixed(values, 'base_link')
    return Node(
        package='rviz2',
        executable='rviz2',
        namespace=values['namespace'],
        arguments=['-d', values['rviz_config_file'], *(['-f', base_link] if base_link else [])],
        parameters=[{'use_sim_time': values['use_sim_time'] == 'true'}],
        remappings=[('/clock', clock_topic(values))],
        output='log',
    )


def prefixed(values: dict[str, str], link: str) -> str:
    """Return the name of a link as the robot has it; empty where none is given."""
    return values[link] and values['tf_prefix'] + values[link]


def clock_topic(values: dict[str, str]) -> str:
    """Return where simulated time comes from; a simulation in lockstep has a time of its own."""
    return values.get('clock_topic', '/clock')
