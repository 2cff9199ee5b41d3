# SPDX-License-Identifier: Apache-2.0
"""Part of the other launch files: the dynamics node, and RViz on request."""

from pathlib import Path

import yaml
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import PathJoinSubstitution
from launch_ros.actions import Node

from robodyn_ros.control.law import MODES
from robodyn_ros.ros.launching import (
    SHARE,
    argument,
    chain_parameters,
    included,
    numbers,
    prefixed,
    robot_topics,
    switch,
)
from robodyn_ros.ros.lockstep import IN_LOCKSTEP

HERE = Path(__file__).parent

ARGUMENTS = (
    argument('namespace'),
    DeclareLaunchArgument(
        'node_name',
        default_value='dynamics_node',
        description='Name of the node; two chains of one robot need two.',
    ),
    argument(
        'base_link',
        description='Base link of the chain, without tf_prefix; empty: as in params_file, '
        'where empty is the root.',
    ),
    argument(
        'tip_link',
        description='Tip link of the chain, without tf_prefix; empty: as in params_file, '
        'where empty is found in the URDF if it is unambiguous.',
    ),
    DeclareLaunchArgument(
        'initial_mode',
        default_value='',
        choices=['', *MODES],
        description='Initial mode of the node; empty: as in params_file.',
    ),
    DeclareLaunchArgument(
        'params_file',
        default_value=PathJoinSubstitution([SHARE, 'config', 'dynamics_node.yaml']),
        description='Parameters of the node: gains, limits, timeouts and the rest.',
    ),
    argument('command_topic', default_value='forward_effort_controller/commands'),
    argument('controller_manager'),
    DeclareLaunchArgument(
        'torques_topic',
        default_value='~/torques',
        description='Topic of the torques with joint names (sensor_msgs/JointState).',
    ),
    argument('joint_states_topic'),
    argument('robot_description_topic'),
    switch(
        'autostart',
        'Configure and activate at once; false: a lifecycle manager does it.',
        default='true',
    ),
    argument('use_sim_time'),
    switch('launch_rviz', 'Start RViz, with the robot from robot_state_publisher.'),
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
    argument('log_level', description='Log level of the dynamics node.'),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the actions."""
    description = included(HERE, 'description')
    return LaunchDescription([description, *ARGUMENTS, OpaqueFunction(function=started)])


def started(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the nodes that the arguments select."""
    values = context.launch_configurations
    # Servos of a simulation take positions, which this node does not send.
    nodes = [] if numbers(values, 'drive_position_gain') else [dynamics_node(values)]
    if values['launch_rviz'] == 'true':
        nodes.append(rviz(values))
    return nodes


def dynamics_node(values: dict[str, str]) -> Node:
    """Return the node; an empty argument leaves a parameter as it is in ``params_file``."""
    parameters = chain_parameters(
        values,
        mode=values['initial_mode'],
        joints=yaml.safe_load(values.get('joints', '')),
        controller=values['controller_manager'] and values.get('controller', ''),
    )
    if values.get('lockstep') == 'true':
        parameters.update(IN_LOCKSTEP)
    parameters['autostart'] = values['autostart'] == 'true'
    return Node(
        package='robodyn_ros',
        executable='dynamics_node',
        name=values['node_name'],
        namespace=values['namespace'],
        parameters=[values['params_file'], parameters],
        remappings=[
            ('~/commands', values['command_topic']),
            ('~/torques', values['torques_topic']),
            *robot_topics(values),
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


def clock_topic(values: dict[str, str]) -> str:
    """Return where simulated time comes from; a simulation in lockstep has a time of its own."""
    return values.get('clock_topic', '/clock')
