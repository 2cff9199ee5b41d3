# SPDX-License-Identifier: Apache-2.0
"""
What the launch files share: they are loaded by path, and cannot import one another.

Arguments that several have are described here once, and so are the parameters and topics of an
arm's nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, RegisterEventHandler
from launch.event_handlers import OnShutdown
from launch.launch_context import LaunchContext
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from robodyn_ros.ros_parameters import Parameter

SHARE = FindPackageShare('robodyn_ros')
ARM = PathJoinSubstitution([SHARE, 'urdf', 'arm.urdf.xacro'])

_TRUE_OR_FALSE = ['true', 'false']
_ARGUMENTS: dict[str, dict[str, Any]] = {
    'namespace': {
        'default_value': '',
        'description': 'Namespace of the nodes, and of every topic named without a leading /.',
    },
    'description_file': {
        'default_value': '',
        'description': 'URDF or xacro of the robot; empty: the topic robot_description.',
    },
    'tf_prefix': {
        'default_value': '',
        'description': 'Prefix of the names of links and joints: handed to the xacro as '
        'tf_prefix, and put before base_link and tip_link. What is no xacro must have it in its '
        'names.',
    },
    'base_link': {
        'default_value': '',
        'description': 'Base link of the chain, without tf_prefix; empty: the root.',
    },
    'tip_link': {
        'default_value': '',
        'description': 'Tip link of the chain, without tf_prefix; empty: found in the URDF.',
    },
    'controller': {
        'default_value': 'forward_effort_controller',
        'description': 'Name of the ros2_control effort controller.',
    },
    'controllers_file': {
        'default_value': '',
        'description': 'YAML of the controllers: the node commands in the order of its joints. It '
        'may say $(var tf_prefix). Empty: the order of the parameter joints.',
    },
    'controller_manager': {
        'default_value': '',
        'description': 'Node name of the controller manager, for the node to monitor the '
        'controller, and to deactivate it when it stops; empty: as in params_file.',
    },
    'trajectory_controller': {
        'default_value': 'joint_trajectory_controller',
        'description': 'Name of the joint trajectory controller, which commands effort.',
    },
    'command_topic': {
        'default_value': [LaunchConfiguration('controller'), '/commands'],
        'description': 'Topic of the commands (std_msgs/Float64MultiArray).',
    },
    'joint_states_topic': {
        'default_value': 'joint_states',
        'description': 'Topic of the joint states.',
    },
    'robot_description_topic': {
        'default_value': 'robot_description',
        'description': 'Topic of the URDF, unless description_file is given.',
    },
    'use_sim_time': {
        'default_value': 'false',
        'choices': _TRUE_OR_FALSE,
        'description': 'Use the time of the topic /clock (use_sim_time).',
    },
    'log_level': {
        'default_value': 'info',
        'choices': ['debug', 'info', 'warn', 'error'],
        'description': 'Log level of the node.',
    },
}


def argument(name: str, **changes: Any) -> DeclareLaunchArgument:
    """Return an argument that several launch files have, with what is different in this one."""
    return DeclareLaunchArgument(name, **{**_ARGUMENTS[name], **changes})


def switch(name: str, description: str, *, default: Any = 'false') -> DeclareLaunchArgument:
    """Return an argument that is true or false."""
    return DeclareLaunchArgument(
        name, default_value=default, choices=_TRUE_OR_FALSE, description=description
    )


def included(folder: Path, name: str, **arguments: Any) -> IncludeLaunchDescription:
    """
    Return the action that includes a launch file of this package.

    Parameters
    ----------
    folder : Path
        The including file's, where the other stands, too.
    name : str
        Without ``.launch.py``.
    arguments : substitutions
        Of its launch arguments; the others are those of the including file.
    """
    source = PythonLaunchDescriptionSource(str(folder / f'{name}.launch.py'))
    return IncludeLaunchDescription(source, launch_arguments=arguments.items())


def at_shutdown(tidy: Callable[[], None]) -> RegisterEventHandler:
    """Return the action that has something tidied up when the launch ends."""

    def on_shutdown(event: object, context: LaunchContext) -> None:
        tidy()

    return RegisterEventHandler(OnShutdown(on_shutdown=on_shutdown))


def numbers(values: dict[str, str], name: str) -> list[float]:
    """
    Return the numbers that an argument lists, as ``[0.0, 0.5]``, or the one that it is, if any.

    Raises
    ------
    RuntimeError
        The argument, its value and what is allowed.
    """
    text = values.get(name, '')
    try:
        given = yaml.safe_load(text)
        entries = given if isinstance(given, list) else [given]
        return [float(entry) for entry in entries if entry is not None]
    except (TypeError, ValueError, OverflowError, yaml.YAMLError):
        allowed = 'a number, or a list as "[0.0, 0.5]"'
        raise RuntimeError(f'{name}: {text!r}; allowed: {allowed}') from None


def parameter_argument(parameter: Parameter) -> DeclareLaunchArgument:
    """Return the argument for a parameter of a node, with its default and its description."""
    default = parameter.default_text or ('[]' if parameter.is_array else '')
    return DeclareLaunchArgument(
        _argument_name(parameter),
        default_value=None if 'not_empty' in parameter.rules else default,
        choices=_TRUE_OR_FALSE if parameter.kind == 'bool' else parameter.choices or None,
        description=parameter.description,
    )


def parameter_values(values: dict[str, str], parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the parameters that arguments give; what is empty stays as the node has it."""
    given: dict[str, Any] = {}
    for parameter in parameters:
        name = _argument_name(parameter)
        if parameter.kind == 'bool':
            given[parameter.name] = values[name] == 'true'
        elif parameter.kind == 'string':
            given.update({parameter.name: values[name]} if values[name] else {})
        elif found := numbers(values, name):
            given[parameter.name] = found if parameter.is_array else found[0]
    return given


def _argument_name(parameter: Parameter) -> str:
    return parameter.name.replace('.', '_')


def prefixed(values: dict[str, str], name: str) -> str:
    """Return the link that an argument names, as the robot has it; empty where none is given."""
    link = values.get(name, '')
    return link and values['tf_prefix'] + link


def gravity_of(values: dict[str, str]) -> list[float]:
    """Return the gravity that is given as ``x y z`` [m/s²]; empty: none is."""
    return [float(part) for part in values.get('gravity', '').split()]


def chain_parameters(values: dict[str, str], **others: Any) -> dict[str, Any]:
    """Return a node's parameters; what is empty is left as its parameter file has it."""
    given = {
        'urdf_file': values['urdf_file'],
        'base_link': prefixed(values, 'base_link'),
        'tip_link': prefixed(values, 'tip_link'),
        'gravity': gravity_of(values),
        'state_timeout': float(values.get('state_timeout') or 0.0),
        'controller_manager': values['controller_manager'],
        **others,
    }
    return {name: value for name, value in given.items() if value} | {
        'use_sim_time': values['use_sim_time'] == 'true'
    }


def robot_topics(values: dict[str, str]) -> list[tuple[str, str]]:
    """Return the remappings of what a robot's driver publishes."""
    return [
        ('joint_states', values['joint_states_topic']),
        ('robot_description', values['robot_description_topic']),
    ]


def robot_state_publisher(
    urdf: str,
    namespace: str,
    *,
    use_sim_time: bool = False,
    remappings: list[tuple[str, str]] | None = None,
) -> Node:
    """Return what publishes the robot's description, and the frames of its links."""
    return Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        namespace=namespace,
        parameters=[{'robot_description': urdf, 'use_sim_time': use_sim_time}],
        remappings=remappings,
        output='screen',
    )
