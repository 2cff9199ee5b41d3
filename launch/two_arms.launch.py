# SPDX-License-Identifier: Apache-2.0
"""
Two simulated arms, each with a dynamics node, in a namespace of its own.

Every argument of simulation.launch.py, except namespace and tf_prefix, applies to both.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction
from launch.substitutions import LaunchConfiguration

from robodyn_ros.ros.launching import included

HERE = Path(__file__).parent
SIDES = ('left', 'right')


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and both arms."""
    return LaunchDescription(
        [
            *(argument(side) for side in SIDES),
            DeclareLaunchArgument(
                'time_step',
                default_value='0.004',
                description='Simulated time between two joint states [s].',
            ),
            *(arm(side) for side in SIDES),
        ]
    )


def argument(side: str) -> DeclareLaunchArgument:
    """Return the name of one arm."""
    return DeclareLaunchArgument(
        f'{side}_name',
        default_value=side,
        description=f'Namespace of the {side} arm, and with a _ appended its tf_prefix.',
    )


def arm(side: str) -> GroupAction:
    """Return one arm; the group limits its arguments to it."""
    name = LaunchConfiguration(f'{side}_name')
    return GroupAction([included(HERE, 'simulation', namespace=name, tf_prefix=[name, '_'])])
