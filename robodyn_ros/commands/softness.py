# SPDX-License-Identifier: Apache-2.0
"""An arm that yields: ``float`` and ``soft`` start the dynamics node with numbers for this arm."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from robodyn_ros.commands.demonstration import check_ends, needing_ros
from robodyn_ros.commands.node import become, ros_parameters
from robodyn_ros.commands.options import UserPath, examples
from robodyn_ros.control.softness import Chosen, floating, soft
from robodyn_ros.model import RobotModel

_OPTIONS = (
    click.option('--urdf', type=UserPath(), help='URDF file; not given: a Panda, simulated.'),
    click.option('--base', default='', help='Link that the chain begins at; not given: the root.'),
    click.option(
        '--tip',
        default='',
        help='Link that it ends at; not given: the end of the only arm.',
    ),
    click.option(
        '--simulate',
        is_flag=True,
        help='Start an arm in MuJoCo, too, in the namespace /simulated and on this machine alone.',
    ),
    click.option(
        '--push',
        type=float,
        nargs=3,
        metavar='X Y Z',
        help='With --simulate: push the tip with this force [N], in the base axes, for two '
        'seconds out of four, and print how far it moves.',
    ),
    click.option(
        '--duration',
        type=click.FloatRange(min=0.0, min_open=True),
        help='With --simulate: end after so many seconds; not given: by Ctrl+C.',
    ),
    click.argument('arguments', nargs=-1, type=click.UNPROCESSED),
)


def _node_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(
    'float',
    epilog=examples(
        'robodyn float --simulate --push 0 0 5',
        'robodyn float --urdf arm.urdf --tip tool0 -- -r joint_states:=arm/joint_states',
    ),
)
@_node_options
def float_command(urdf: Path | None, base: str, tip: str, **others: Any) -> None:
    """
    Let an arm float, to be guided by hand: gravity and friction are compensated.

    It starts the dynamics node. ARGUMENTS, after --, are the node's: -p NAME:=VALUE, -r FROM:=TO.
    Nothing holds the arm where it is; keep a hand on it, and the emergency stop in reach.
    """
    _run('float', urdf, base, tip, floating, **others)


@click.command(
    'soft',
    epilog=examples(
        'robodyn soft --simulate --push 20 0 0',
        'robodyn soft --urdf arm.urdf --stiffness 200 -- -r joint_states:=arm/joint_states',
    ),
)
@click.option(
    '--stiffness',
    type=click.FloatRange(min=0.0, min_open=True),
    help='Of the tip [N/m], or of each joint of an arm with fewer than six [N m/rad] or [N/m]; '
    'not given: from effort limits and reach.',
)
@_node_options
def soft_command(
    urdf: Path | None, base: str, tip: str, stiffness: float | None, **others: Any
) -> None:
    """
    Hold an arm softly where it is: pushed, it yields by force over stiffness and comes back.

    It starts the dynamics node in cartesian_impedance, or in joint_impedance with fewer than six
    joints. ARGUMENTS, after --, are the node's: -p NAME:=VALUE, -r FROM:=TO.
    """
    _run('soft', urdf, base, tip, lambda model: soft(model, stiffness), **others)


def _run(
    name: str,
    urdf: Path | None,
    base: str,
    tip: str,
    choose: Callable[[RobotModel], Chosen],
    *,
    simulate: bool,
    push: tuple[float, float, float] | None,
    duration: float | None,
    arguments: tuple[str, ...],
) -> None:
    check_ends(urdf, base, tip)
    if urdf is None and not simulate:
        raise click.UsageError('--urdf is the arm; without one there is --simulate, with a Panda')
    if not simulate and (push is not None or duration is not None):
        raise click.UsageError('--push and --duration are of --simulate')
    if simulate and arguments:
        raise click.UsageError('arguments of the node are taken without --simulate')
    with needing_ros():
        from robodyn_ros.ros.demo.runner import Arm, DemoFailed, panda
    try:
        arm = Arm(urdf, base, tip) if urdf else panda()
    except DemoFailed as error:
        raise click.ClickException(str(error)) from error
    model = arm.model
    chosen = choose(model)
    for line in (f'{model.base_link} to {model.tip_link}', *chosen.reasons):
        click.echo(line)
    parameters = {**arm.parameters, **chosen.parameters}
    if simulate:
        _simulate(model, parameters, push, duration)
        return
    # What the user says comes last, and counts.
    become('dynamics_node', ('--ros-args', *ros_parameters(parameters), *arguments))


def _simulate(
    model: RobotModel,
    parameters: Mapping[str, Any],
    push: tuple[float, float, float] | None,
    duration: float | None,
) -> None:
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    with needing_ros():
        from robodyn_ros.ros.demo.node_process import NodeEnded
        from robodyn_ros.ros.demo.pushed import run_pushed
    try:
        run_pushed(model, parameters, push, duration, click.echo)
    except NodeEnded as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo('ended')
