# SPDX-License-Identifier: Apache-2.0
"""An arm that yields: ``float`` and ``soft`` start the dynamics node with numbers for this arm."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from robodyn_ros.commands.demonstration import arm_over_ros
from robodyn_ros.commands.drive_limits import limits_of, refuse_unknown
from robodyn_ros.commands.node import run_node
from robodyn_ros.commands.options import PerJoint, Positive, Rest, command
from robodyn_ros.control.softness import Chosen, floating
from robodyn_ros.control.softness import soft as softened
from robodyn_ros.model import RobotModel


@command(
    'robodyn float --simulate --push 0 0 5',
    'robodyn float --urdf arm.urdf --tip tool0 -- -r joint_states:=arm/joint_states',
)
def float_(
    arguments: Rest = (),
    *,
    urdf: Path | None = None,
    base: str = '',
    tip: tuple[str, ...] = (),
    simulate: bool = False,
    push: tuple[float, float, float] | None = None,
    duration: Positive | None = None,
    effort_limit: PerJoint = (),
) -> None:
    """
    Compensate gravity and friction, so that the arm can be guided by hand.

    Starts the dynamics node. ARGUMENTS, after --, are the node's: -p NAME:=VALUE, -r FROM:=TO. No
    law holds the arm's position: keep a hand on it, and the emergency stop in reach.
    """
    _run(floating, urdf, base, tip, simulate, push, duration, effort_limit, arguments)


@command(
    'robodyn soft --simulate --push 20 0 0',
    'robodyn soft --urdf arm.urdf --stiffness 200 -- -r joint_states:=arm/joint_states',
)
def soft(
    arguments: Rest = (),
    *,
    stiffness: Positive | None = None,
    urdf: Path | None = None,
    base: str = '',
    tip: tuple[str, ...] = (),
    simulate: bool = False,
    push: tuple[float, float, float] | None = None,
    duration: Positive | None = None,
    effort_limit: PerJoint = (),
) -> None:
    """
    Hold an arm compliantly: pushed, it yields by force over stiffness and comes back.

    Starts the dynamics node in cartesian_impedance, or in joint_impedance with fewer than six
    joints. ARGUMENTS, after --, are the node's: -p NAME:=VALUE, -r FROM:=TO.

    Parameters
    ----------
    stiffness :
        Of the tip [N/m], or of each joint of an arm with fewer than six [N m/rad] or [N/m]; not
        given: from effort limits and reach.
    """

    def choose(model: RobotModel) -> Chosen:
        return softened(model, stiffness)

    _run(choose, urdf, base, tip, simulate, push, duration, effort_limit, arguments)


def _run(
    choose: Callable[[RobotModel], Chosen],
    urdf: Path | None,
    base: str,
    tip: tuple[str, ...],
    simulate: bool,
    push: tuple[float, float, float] | None,
    duration: float | None,
    effort_limit: PerJoint,
    arguments: tuple[str, ...],
) -> None:
    if urdf is None and not simulate:
        raise click.UsageError('--urdf is the arm; without one there is --simulate, with a Panda')
    if not simulate and (push is not None or duration is not None):
        raise click.UsageError('--push and --duration are of --simulate')
    if simulate and arguments:
        raise click.UsageError('arguments of the node are taken without --simulate')
    with arm_over_ros(urdf, base, tip) as arm:
        model = arm.model
        effort = limits_of(effort_limit, model, '--effort-limit', model.effort_limits)
        if simulate or choose is not floating:  # else the node may be given them as its parameter
            refuse_unknown(model, effort)
        ends, model = model.ends, replace(model.with_tip(model.tip_links[0]), effort_limits=effort)
        chosen = choose(model)
        for line in (ends, *chosen.reasons):
            click.echo(line)
        parameters = {**arm.parameters, **chosen.parameters}
        if effort_limit:
            parameters['effort_limits'] = effort.tolist()
        if simulate:
            from robodyn_ros.ros.demo.pushed import run_pushed

            os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
            try:
                run_pushed(model, parameters, push, duration, click.echo)
            except KeyboardInterrupt:
                click.echo('ended')
            return
    run_node('dynamics_node', parameters, arguments)
