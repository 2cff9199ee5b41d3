# SPDX-License-Identifier: Apache-2.0
"""
The demonstration of ``robodyn demo``: an arm in MuJoCo holds and tracks under computed torques.

It ends by itself, with a table of the errors and a plot.
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    OpaqueFunction,
)
from launch_ros.substitutions import ExecutableInPackage

from robodyn_ros.ros.launching import ARM, argument, included, prefixed

HERE = Path(__file__).parent

ARGUMENTS = (
    argument('description_file', default_value=ARM, description='URDF or xacro of the robot.'),
    argument('base_link'),
    argument('tip_link'),
    DeclareLaunchArgument(
        'output_directory',
        default_value='demo_output',
        description='Folder for the numbers, the plot and the logs.',
    ),
    DeclareLaunchArgument(
        'hold_time',
        default_value='10.0',
        description='Simulated time that gravity compensation holds the arm [s].',
    ),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the demonstration."""
    description = included(HERE, 'description')
    return LaunchDescription([*ARGUMENTS, description, OpaqueFunction(function=demonstration)])


def demonstration(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the command, with the given options."""
    values = context.launch_configurations
    options = ['--urdf', values['urdf_file'], '--output', values['output_directory']]
    options += ['--hold-time', values['hold_time']]
    for option in ('base', 'tip'):
        if link := prefixed(values, f'{option}_link'):
            options += [f'--{option}', link]
    command = ExecutableInPackage(package='robodyn_ros', executable='robodyn')
    return [ExecuteProcess(cmd=[command, 'demo', *options], output='screen')]
