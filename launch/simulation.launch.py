# SPDX-License-Identifier: Apache-2.0
"""
The dynamics node beside an arm in MuJoCo, which has the topics of a driver.

Servos (``drive_position_gain``) take positions. The dynamics node sends none: it is not started.
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction, SetLaunchConfiguration
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from robodyn_ros.ros.launching import (
    ARM,
    argument,
    included,
    parameter_argument,
    parameter_values,
    prefixed,
    robot_state_publisher,
    robot_topics,
)
from robodyn_ros.ros_parameters import parameters_of

HERE = Path(__file__).parent
PARAMETERS = [
    each
    for each in parameters_of('simulator_node')
    if each.name.startswith(('drive.', 'initial_position', 'time_step')) or each.name == 'lockstep'
]

ARGUMENTS = (
    argument('description_file', default_value=ARM, description='URDF or xacro of the robot.'),
    *map(parameter_argument, PARAMETERS),
    argument(
        'use_sim_time',
        default_value=LaunchConfiguration('lockstep'),
        description="Use simulated time, on the namespace's topic clock.",
    ),
    argument('command_topic', default_value='simulator_node/commands'),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, the dynamics node and the simulator."""
    return LaunchDescription(
        [
            *ARGUMENTS,
            # Each simulation has its own time: its clock is in its namespace.
            SetLaunchConfiguration('clock_topic', 'clock'),
            included(HERE, 'node'),
            OpaqueFunction(function=simulated),
        ]
    )


def simulated(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the simulator, and what tells RViz where the links are."""
    values = context.launch_configurations
    nodes = [simulator(values)]
    if values['launch_rviz'] == 'true':
        nodes.append(
            robot_state_publisher(
                Path(values['urdf_file']).read_text(encoding='utf-8'),
                values['namespace'],
                use_sim_time=values['use_sim_time'] == 'true',
                remappings=[('joint_states', values['joint_states_topic']), ('/clock', 'clock')],
            )
        )
    return nodes


def simulator(values: dict[str, str]) -> Node:
    """Return the simulator on the topics of the dynamics node."""
    parameters = {
        'urdf_file': values['urdf_file'],
        'publish_clock': values['use_sim_time'] == 'true',
        'base_link': prefixed(values, 'base_link'),
        'tip_link': prefixed(values, 'tip_link'),
        **parameter_values(values, PARAMETERS),
    }
    return Node(
        package='robodyn_ros',
        executable='simulator_node',
        namespace=values['namespace'],
        parameters=[parameters],
        remappings=[
            ('commands', values['command_topic']),
            ('torques', values['torques_topic'].replace('~', values['node_name'])),
            *robot_topics(values),
            ('/clock', 'clock'),
        ],
        output='screen',
    )
