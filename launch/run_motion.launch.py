# SPDX-License-Identifier: Apache-2.0
"""A motion from ``robodyn excite``, run on a controlled arm, monitored and recorded."""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from robodyn_ros.ros.launching import argument, robot_topics, switch

ARGUMENTS = (
    DeclareLaunchArgument('motion_file', description='CSV file of the motion.'),
    switch('confirm', 'true: the cell is clear, the arm may move.'),
    argument(
        'description_file', description='URDF of the robot; empty: the topic robot_description.'
    ),
    argument('base_link', description='Base link of the chain; empty: the root.'),
    argument('tip_link', description='Tip link of the chain; empty: found in the URDF.'),
    DeclareLaunchArgument(
        'target',
        default_value='dynamics_node',
        choices=['dynamics_node', 'joint_trajectory_controller'],
        description='Receiver of the motion.',
    ),
    DeclareLaunchArgument(
        'trajectory_topic',
        default_value=[LaunchConfiguration('target'), '/joint_trajectory'],
        description='Topic on which it takes trajectories.',
    ),
    argument('joint_states_topic'),
    argument('robot_description_topic'),
    switch('approach', 'Go to the start of the motion in a straight line of joint space.'),
    DeclareLaunchArgument(
        'rehearsal_speed',
        default_value='0.25',
        description='Fraction of speed, first run; 0: none.',
    ),
    DeclareLaunchArgument('bag', default_value='', description='Folder to record into.'),
    DeclareLaunchArgument(
        'storage', default_value='sqlite3', choices=['sqlite3', 'mcap'], description='Of the bag.'
    ),
    argument('namespace'),
    argument('use_sim_time'),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the node, with which the launch ends."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=motion)])


def motion(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the node that runs the motion."""
    values = context.launch_configurations
    texts = ('motion_file', 'base_link', 'tip_link', 'target', 'bag', 'storage')
    parameters = {name: values[name] for name in texts}
    parameters['urdf_file'] = values['description_file']
    parameters['confirm'] = values['confirm'] == 'true'
    parameters['approach'] = values['approach'] == 'true'
    parameters['use_sim_time'] = values['use_sim_time'] == 'true'
    parameters['rehearsal_speed'] = float(values['rehearsal_speed'])
    target = f'{values["target"]}/joint_trajectory'
    return [
        Node(
            package='robodyn_ros',
            executable='motion_node',
            namespace=values['namespace'],
            parameters=[parameters],
            remappings=[
                (target, values['trajectory_topic']),
                *robot_topics(values),
            ],
            output='screen',
        )
    ]
