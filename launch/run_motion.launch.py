# SPDX-License-Identifier: Apache-2.0
"""A motion from ``robodyn excite``, run on a controlled arm, monitored and recorded."""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch_ros.actions import Node

from robodyn_ros.ros.launching import argument, parameter_argument, parameter_values, robot_topics
from robodyn_ros.ros_parameters import parameters_of

PARAMETERS = [each for each in parameters_of('motion_node') if each.name != 'urdf_file']

ARGUMENTS = (
    argument(
        'description_file', description='URDF of the robot; empty: the topic robot_description.'
    ),
    argument('joint_states_topic'),
    argument('robot_description_topic'),
    argument('namespace'),
    argument('use_sim_time'),
    *map(parameter_argument, PARAMETERS),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the node, with which the launch ends."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=motion)])


def motion(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the node that runs the motion."""
    values = context.launch_configurations
    parameters = {
        'urdf_file': values['description_file'],
        'use_sim_time': values['use_sim_time'] == 'true',
        **parameter_values(values, PARAMETERS),
    }
    return [
        Node(
            package='robodyn_ros',
            executable='motion_node',
            namespace=values['namespace'],
            parameters=[parameters],
            remappings=robot_topics(values),
            output='screen',
        )
    ]
