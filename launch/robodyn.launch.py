# SPDX-License-Identifier: Apache-2.0
"""The dynamics node beside a robot's driver, or beside ros2_control on mock hardware."""

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from robodyn_ros.ros.launching import argument, included, robot_state_publisher, switch

HERE = Path(__file__).parent

ARGUMENTS = (
    switch(
        'use_mock_hardware',
        'Start ros2_control on mock hardware, in place of a driver: nothing moves, and the wiring '
        'can be looked at. Needs controllers_file, and as description_file a xacro that takes '
        'use_mock_hardware.',
    ),
    argument('command_topic'),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the actions."""
    return LaunchDescription(
        [
            included(HERE, 'controllers'),
            *ARGUMENTS,
            included(
                HERE,
                'node',
                description_arguments=[
                    LaunchConfiguration('description_arguments', default=''),
                    ' use_mock_hardware:=',
                    LaunchConfiguration('use_mock_hardware'),
                ],
            ),
            OpaqueFunction(function=mock_hardware),
        ]
    )


def mock_hardware(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return ros2_control with its controllers and the robot's description, if requested."""
    values = context.launch_configurations
    if values['use_mock_hardware'] != 'true':
        return []
    controllers = values['expanded_controllers_file']
    if not values['urdf_file'] or not controllers:
        raise RuntimeError('use_mock_hardware needs description_file and controllers_file')
    text = Path(values['urdf_file']).read_text(encoding='utf-8')
    namespace = values['namespace']
    return [
        robot_state_publisher(text, namespace),
        Node(
            package='controller_manager',
            executable='ros2_control_node',
            namespace=namespace,
            parameters=[controllers],
            output='screen',
        ),
        Node(
            package='controller_manager',
            executable='spawner',
            namespace=namespace,
            arguments=[
                'joint_state_broadcaster',
                values['controller'],
                '--param-file',
                controllers,
            ],
            output='screen',
        ),
    ]
