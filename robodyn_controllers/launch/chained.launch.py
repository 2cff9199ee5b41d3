# SPDX-License-Identifier: Apache-2.0
"""
The inverse dynamics controller with joint_trajectory_controller chained to it.

For a controller manager that runs already: the driver's, or Gazebo's. Both controllers are
activated together, so that gravity is compensated from the first cycle on.
"""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnShutdown
from launch.substitutions import PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile
from launch_ros.substitutions import FindPackageShare

ARGUMENTS = (
    DeclareLaunchArgument(
        'model_library',
        description='Path of the shared library that robodyn export --shared made of the arm.',
    ),
    DeclareLaunchArgument(
        'controllers_file',
        default_value=PathJoinSubstitution(
            [FindPackageShare('robodyn_controllers'), 'config', 'controllers.yaml']
        ),
        description='YAML of the two controllers; it may say $(var model_library) '
        'and $(var tf_prefix).',
    ),
    DeclareLaunchArgument(
        'tf_prefix', default_value='', description='Prefix of the names of the joints.'
    ),
    DeclareLaunchArgument('namespace', default_value='', description='Of the controller manager.'),
    DeclareLaunchArgument(
        'activate',
        default_value='true',
        choices=['true', 'false'],
        description='Activate the controllers; false: they are loaded and configured.',
    ),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the actions."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=spawned)])


def spawned(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the spawner of both controllers, with the library's path in their parameters."""
    values = context.launch_configurations
    controllers = ParameterFile(values['controllers_file'], allow_substs=True)
    path = controllers.evaluate(context)

    def remove(event: object, context: LaunchContext) -> None:
        controllers.cleanup()

    return [
        Node(
            package='controller_manager',
            executable='spawner',
            namespace=values['namespace'],
            arguments=[
                'inverse_dynamics_controller',
                'joint_trajectory_controller',
                '--activate-as-group' if values['activate'] == 'true' else '--inactive',
                '--param-file',
                str(path),
                '--controller-manager-timeout',
                '60',
            ],
            output='screen',
        ),
        RegisterEventHandler(OnShutdown(on_shutdown=remove)),
    ]
