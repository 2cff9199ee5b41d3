# SPDX-License-Identifier: Apache-2.0
"""
The demonstration, as ``robodyn demo`` does it: an arm in MuJoCo holds and tracks on our torques.

It ends by itself, with a table of the errors and a plot.
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    OpaqueFunction,
)
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import ExecutableInPackage, FindPackageShare

from robodyn_ros.ros.launching import included

HERE = Path(__file__).parent
SHARE = FindPackageShare('robodyn_ros')

ARGUMENTS = (
    DeclareLaunchArgument(
        'description_file',
        default_value=PathJoinSubstitution([SHARE, 'urdf', 'arm.urdf.xacro']),
        description='URDF or xacro of the robot.',
    ),
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
    """Return the command, with what was asked for."""
    values = context.launch_configurations
    options = ['--urdf', values['urdf_file'], '--output', values['output_directory']]
    options += ['--hold-time', values['hold_time']]
    for option in ('base', 'tip'):
        link = values[f'{option}_link']
        if link:
            options += [f'--{option}', values['tf_prefix'] + link]
    command = ExecutableInPackage(package='robodyn_ros', executable='robodyn')
    return [ExecuteProcess(cmd=[command, 'demo', *options], output='screen')]
