# SPDX-License-Identifier: Apache-2.0
"""The nodes, started where there is no command ``ros2``: ``node``."""

from __future__ import annotations

import importlib.util
import os
import sys

import click

from robodyn_ros.commands.options import examples

_MODULES = {
    'dynamics_node': 'robodyn_ros.ros.dynamics.dynamics_node',
    'simulator_node': 'robodyn_ros.ros.simulator_node',
    'feedforward': 'robodyn_ros.ros.feedforward.feedforward_node',
    'motion_node': 'robodyn_ros.ros.motion_node',
}


@click.command(
    context_settings={'ignore_unknown_options': True, 'allow_interspersed_args': False},
    epilog=examples(
        'robodyn node --ros-args -p urdf_file:=urdf/puma560.urdf',
        'robodyn node --ros-args --params-file my_arm.yaml -r joint_states:=arm/joint_states',
        'robodyn node simulator_node --ros-args -p urdf_file:=urdf/puma560.urdf',
        'robodyn node dynamics_node --help',
    ),
)
@click.argument('arguments', nargs=-1, type=click.UNPROCESSED)
def node(arguments: tuple[str, ...]) -> None:
    """
    Run the dynamics node, the simulator, feedforward or a motion, without ros2.

    As ``ros2 run robodyn_ros dynamics_node`` does, in this very process: ARGUMENTS begin with
    dynamics_node, simulator_node, feedforward or motion_node (not given: dynamics_node), and the
    rest is the node's, as --ros-args, -p NAME:=VALUE, -r FROM:=TO. Ctrl+C or SIGINT stops it, the
    dynamics node with its stop command.
    """
    name, rest = 'dynamics_node', arguments
    if arguments and arguments[0] in _MODULES:
        name, rest = arguments[0], arguments[1:]
    if importlib.util.find_spec('rclpy') is None:
        raise click.ClickException(
            'The node needs ROS 2, and rclpy is not there: source your ROS 2 workspace, or type '
            '`make setup` in a checkout of robodyn_ros. Without ROS there is `robodyn simulate`.'
        )
    sys.stdout.flush()
    # The same process goes on as the node, so that signals and exit code are the node's.
    os.execv(sys.executable, [sys.executable, '-m', _MODULES[name], *rest])
