# SPDX-License-Identifier: Apache-2.0
"""The nodes, started where there is no command ``ros2``: ``node``."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from robodyn_ros.commands.options import NEEDS_ROS, Refused, Rest, command

_MODULES = {
    'dynamics_node': 'robodyn_ros.ros.dynamics.dynamics_node',
    'simulator_node': 'robodyn_ros.ros.simulator_node',
    'feedforward': 'robodyn_ros.ros.feedforward.feedforward_node',
    'motion_node': 'robodyn_ros.ros.motion_node',
    'watch_node': 'robodyn_ros.ros.watch_node',
    'monitor_node': 'robodyn_ros.ros.monitor_node',
}


@command(
    'robodyn node --ros-args -p urdf_file:=urdf/puma560.urdf',
    'robodyn node --ros-args --params-file my_arm.yaml -r joint_states:=arm/joint_states',
    'robodyn node simulator_node --ros-args -p urdf_file:=urdf/puma560.urdf',
    'robodyn node dynamics_node --help',
    context_settings={'ignore_unknown_options': True, 'allow_interspersed_args': False},
)
def node(arguments: Rest = ()) -> None:
    """
    Run the dynamics node, the simulator, feedforward or a motion, without ros2.

    The same as ``ros2 run robodyn_ros dynamics_node``, in this process. ARGUMENTS begin with
    dynamics_node (the default), simulator_node, feedforward, motion_node, watch_node or
    monitor_node; the rest are arguments of the node, such as --ros-args, -p NAME:=VALUE,
    -r FROM:=TO. Ctrl+C or SIGINT stops it; the dynamics node then sends its stop command.
    """
    name, rest = 'dynamics_node', arguments
    if arguments and arguments[0] in _MODULES:
        name, rest = arguments[0], arguments[1:]
    become(name, rest)


def run_node(name: str, parameters: Mapping[str, Any], arguments: tuple[str, ...]) -> NoReturn:
    """
    Go on as a node, in this very process: signals and exit code are the node's. No shell.

    Parameters
    ----------
    name : str
        One of the nodes.
    parameters : mapping of name to value
        Of the node; an empty text is left out.
    arguments : tuple of str
        Of ROS, as a user typed them: they come last, and hold.
    """
    if arguments[:1] != ('--ros-args',):
        arguments = ('--ros-args', *arguments)
    given = [
        text
        for name, value in parameters.items()
        if value != ''
        for text in ('-p', f'{name}:={json.dumps(value)}')  # JSON is YAML, and names its types
    ]
    become(name, ('--ros-args', *given, *arguments))


def become(name: str, arguments: Sequence[str]) -> NoReturn:
    """Go on as a node with these arguments; say what to do where ROS is missing."""
    if importlib.util.find_spec('rclpy') is None:
        raise Refused(NEEDS_ROS)
    sys.stdout.flush()
    # The same process goes on as the node, so that signals and exit code are the node's.
    os.execv(sys.executable, [sys.executable, '-m', _MODULES[name], *arguments])
