# SPDX-License-Identifier: Apache-2.0
"""Feedforward efforts in trajectories, for a joint trajectory controller."""

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from robodyn_ros.ros.launching import argument, chain_parameters, included, robot_topics

HERE = Path(__file__).parent

ARGUMENTS = (
    argument('namespace', description='Namespace of the node and of the controller.'),
    DeclareLaunchArgument('node_name', default_value='feedforward', description='Of the node.'),
    argument('base_link'),
    argument('tip_link'),
    argument('trajectory_controller'),
    argument(
        'controller_manager',
        description='Node name of the controller manager: the arm is held when the controller '
        'has become active; empty: only on request.',
    ),
    DeclareLaunchArgument(
        'feedforward_file',
        default_value='',
        description='YAML of further parameters of the node; empty: none.',
    ),
    argument('joint_states_topic'),
    argument('robot_description_topic'),
    argument('use_sim_time'),
    argument('log_level'),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the actions."""
    description = included(HERE, 'description')
    return LaunchDescription([description, *ARGUMENTS, OpaqueFunction(function=started)])


def started(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the node; an empty argument leaves a parameter as the file has it."""
    values = context.launch_configurations
    parameters = chain_parameters(values, controller=values['trajectory_controller'])
    file = values['feedforward_file']
    return [
        Node(
            package='robodyn_ros',
            executable='feedforward',
            name=values['node_name'],
            namespace=values['namespace'],
            parameters=[*([file] if file else []), parameters],
            remappings=robot_topics(values),
            ros_arguments=['--log-level', values['log_level']],
            output='screen',
        )
    ]
