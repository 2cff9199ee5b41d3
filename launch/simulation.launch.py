# SPDX-License-Identifier: Apache-2.0
"""
The dynamics node beside an arm in MuJoCo, which has the topics of a driver.

Servos (``drive_position_gain``) take positions. The dynamics node sends none: it is not started.
"""

from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    OpaqueFunction,
    SetLaunchConfiguration,
)
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from robodyn_ros.ros.launching import (
    ARM,
    argument,
    included,
    numbers,
    prefixed,
    robot_state_publisher,
    robot_topics,
    switch,
)
from robodyn_ros.ros_parameters import Parameter, parameters_of

HERE = Path(__file__).parent
DRIVES = [each for each in parameters_of('simulator_node') if each.name.startswith('drive.')]


def argument_name(parameter: Parameter) -> str:
    """Return the name of the argument for a parameter of the drives."""
    return parameter.name.replace('.', '_')


def drive_argument(parameter: Parameter) -> DeclareLaunchArgument:
    """Return the argument for a parameter of the drives, described as that is."""
    if parameter.kind == 'bool':
        default = parameter.default_text
        return switch(argument_name(parameter), parameter.description, default=default)
    return DeclareLaunchArgument(
        argument_name(parameter),
        default_value=parameter.default_text or '[]',
        description=parameter.description,
    )


ARGUMENTS = (
    argument('description_file', default_value=ARM, description='URDF or xacro of the robot.'),
    DeclareLaunchArgument(
        'initial_position',
        default_value='[]',
        description='Initial position, as "[0.0, 0.5, ...]" from base to tip [rad or m]; '
        'empty: at zero.',
    ),
    DeclareLaunchArgument(
        'time_step',
        default_value='0.001',
        description='Simulated time between two joint states [s].',
    ),
    switch(
        'lockstep',
        'Step only on the torque for the last state: the same numbers on any machine, at its own '
        'pace.',
    ),
    argument(
        'use_sim_time',
        default_value=LaunchConfiguration('lockstep'),
        description="Use simulated time, on the namespace's topic clock.",
    ),
    argument('command_topic', default_value='simulator_node/commands'),
    *map(drive_argument, DRIVES),
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
        'time_step': float(values['time_step']),
        'lockstep': values['lockstep'] == 'true',
        'publish_clock': values['use_sim_time'] == 'true',
        'base_link': prefixed(values, 'base_link'),
        'tip_link': prefixed(values, 'tip_link'),
    }
    parameters.update(drive_parameters(values))
    if position := numbers(values, 'initial_position'):
        parameters['initial_position'] = position
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


def drive_parameters(values: dict[str, str]) -> dict[str, Any]:
    """Return the parameters of the drives; what is empty stays as the simulator has it."""
    given: dict[str, Any] = {}
    for parameter in DRIVES:
        name = argument_name(parameter)
        if parameter.kind == 'bool':
            given[parameter.name] = values[name] == 'true'
        elif found := numbers(values, name):
            given[parameter.name] = found if parameter.is_array else found[0]
    return given
