# SPDX-License-Identifier: Apache-2.0
"""The model in the effort of trajectories, in front of a joint trajectory controller."""

from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from robodyn_ros.ros.launching import included

HERE = Path(__file__).parent

ARGUMENTS = (
    DeclareLaunchArgument(
        'namespace',
        default_value='',
        description='Namespace of the node and of the controller.',
    ),
    DeclareLaunchArgument('node_name', default_value='feedforward', description='Of the node.'),
    DeclareLaunchArgument(
        'base_link',
        default_value='',
        description='Base link of the chain, without tf_prefix; empty: the root.',
    ),
    DeclareLaunchArgument(
        'tip_link',
        default_value='',
        description='Tip link of the chain, without tf_prefix; empty: found in the URDF.',
    ),
    DeclareLaunchArgument(
        'trajectory_controller',
        default_value='joint_trajectory_controller',
        description='Name of the joint trajectory controller, which commands effort.',
    ),
    DeclareLaunchArgument(
        'controller_manager',
        default_value='',
        description='Node name of the controller manager: the arm is held when the controller '
        'has become active; empty: only when asked to.',
    ),
    DeclareLaunchArgument(
        'feedforward_file',
        default_value='',
        description='YAML of further parameters of the node; empty: none.',
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
        'use_sim_time',
        default_value='false',
        choices=['true', 'false'],
        description='Use the time of the topic /clock (use_sim_time).',
    ),
    DeclareLaunchArgument(
        'log_level',
        default_value='info',
        choices=['debug', 'info', 'warn', 'error'],
        description='Log level of the node.',
    ),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and what starts."""
    description = included(HERE, 'description')
    return LaunchDescription([description, *ARGUMENTS, OpaqueFunction(function=started)])


def started(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the node; an empty argument leaves a parameter as the file has it."""
    values = context.launch_configurations
    given: dict[str, Any] = {
        'urdf_file': values['urdf_file'],
        'base_link': values['base_link'] and values['tf_prefix'] + values['base_link'],
        'tip_link': values['tip_link'] and values['tf_prefix'] + values['tip_link'],
        'gravity': [float(part) for part in values.get('gravity', '').split()],
        'state_timeout': float(values.get('state_timeout') or 0.0),
        'controller': values['trajectory_controller'],
        'controller_manager': values['controller_manager'],
    }
    parameters = {name: value for name, value in given.items() if value}
    parameters['use_sim_time'] = values['use_sim_time'] == 'true'
    file = values['feedforward_file']
    return [
        Node(
            package='robodyn_ros',
            executable='feedforward',
            name=values['node_name'],
            namespace=values['namespace'],
            parameters=[*([file] if file else []), parameters],
            remappings=[
                ('joint_states', values['joint_states_topic']),
                ('robot_description', values['robot_description_topic']),
            ],
            ros_arguments=['--log-level', values['log_level']],
            output='screen',
        )
    ]
