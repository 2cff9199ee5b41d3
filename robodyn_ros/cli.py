# SPDX-License-Identifier: Apache-2.0
"""The ``robodyn`` command."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import click

from robodyn_ros.chain import MIMIC_CHOICES, serial_chain
from robodyn_ros.dh_text import matrix_text, row_formula, table_as_dict
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import RobotModel
from robodyn_ros.residual import conversion_residual
from robodyn_ros.urdf import description_of_urdf


@click.group(context_settings={'help_option_names': ['-h', '--help']})
@click.version_option(package_name='robodyn-ros')
def robodyn() -> None:
    """Dynamics of serial arms, from URDF to torque."""


def arm_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose an arm out of a URDF."""
    for option in (
        click.option('--json', 'as_json', is_flag=True, help='Print JSON.'),
        click.option(
            '--mimic',
            type=click.Choice(MIMIC_CHOICES),
            default=MIMIC_CHOICES[0],
            show_default=True,
            help='What to do with a mimic joint on the chain.',
        ),
        click.option(
            '--lock',
            'locked',
            multiple=True,
            metavar='JOINT=POSITION',
            help='Hold a joint off the chain there [rad or m]; others are held at zero.',
        ),
        click.option('--tip', help='Link that the chain ends at; not given: the only leaf.'),
        click.option('--base', help='Link that the chain begins at; not given: the root.'),
        click.argument('urdf', type=click.Path(path_type=Path)),
    ):
        command = option(command)
    return command


def _locked_positions(locked: tuple[str, ...]) -> dict[str, float]:
    positions = {}
    for text in locked:
        name, _, position = text.rpartition('=')
        try:
            positions[name] = float(position)
        except ValueError as error:
            raise click.BadParameter(
                f'{text!r} is not JOINT=POSITION', param_hint='--lock'
            ) from error
    return positions


@robodyn.command()
@arm_options
@click.option('--standard', is_flag=True, help='The standard table instead of the modified one.')
def dh(
    urdf: Path,
    base: str | None,
    tip: str | None,
    locked: tuple[str, ...],
    mimic: str,
    as_json: bool,
    standard: bool,
) -> None:
    r"""
    Print the DH table of an arm, and how far it is from its URDF.

    \b
    Example: robodyn dh panda.urdf --base panda_link0 --tip panda_link8
    """
    robot = description_of_urdf(urdf)
    arguments: dict[str, Any] = {
        'base_link': base,
        'tip_link': tip,
        'locked_positions': _locked_positions(locked),
        'mimic': mimic,
    }
    chain = serial_chain(robot, **arguments)
    model = RobotModel.from_urdf(urdf, **arguments)
    table = model.dh.standard() if standard else model.dh
    residual = conversion_residual(robot, chain, model)
    if as_json:
        record = {
            'base_link': model.base_link,
            'tip_link': model.tip_link,
            'joint_names': model.joint_names,
            **table_as_dict(table),
            'residual': asdict(residual),
        }
        click.echo(json.dumps(record, indent=2, allow_nan=False))
        return
    base_text, tip_text = matrix_text(table.base_transform), matrix_text(table.tip_transform)
    joints = '\n'.join(
        f'q{i}: {joint.name!r}, {joint.kind}' for i, joint in enumerate(chain.joints, start=1)
    )
    click.echo(
        f'{model.base_link!r} to {model.tip_link!r}, {table.convention} DH: '
        f'{row_formula(table)}\n\n'
        f'{table}\n\n{joints}\n\n'
        f'Base transform, {model.base_link!r} to frame 0:\n{base_text}\n'
        f'Tip transform, frame {table.n} to {model.tip_link!r}:\n{tip_text}\n\n'
        f"Worst difference from the URDF's own frames at {residual.states} states:\n"
        f'{residual.position:.1e} m, {residual.angle:.1e} rad, '
        f'torque {residual.torque:.1e} of the largest.'
    )


@robodyn.command()
@arm_options
def check(
    urdf: Path,
    base: str | None,
    tip: str | None,
    locked: tuple[str, ...],
    mimic: str,
    as_json: bool,
) -> None:
    r"""
    List what is odd about an arm's URDF; nothing is repaired.

    Exit code 0: no warnings; 1: warnings; 2: no model can be made of it.

    \b
    Example: robodyn check panda.urdf --base panda_link0 --tip panda_link8
    """
    model = RobotModel.from_urdf(
        urdf,
        base_link=base,
        tip_link=tip,
        locked_positions=_locked_positions(locked),
        mimic=mimic,
    )
    if as_json:
        click.echo(
            json.dumps(
                [finding.as_dict() for finding in model.findings], indent=2, allow_nan=False
            )
        )
    else:
        for finding in model.findings:
            click.echo(f'{finding.level:8}{finding}')
        click.echo(
            f'{model.n} joints, {model.inertial_parameters[:, 9].sum():.6g} kg that move, '
            f'{len(model.findings)} findings.'
        )
    if any(finding.level == 'warning' for finding in model.findings):
        raise SystemExit(1)


@robodyn.command()
@click.option('--urdf', type=click.Path(path_type=Path), help='URDF file; not given: a Panda.')
@click.option('--base', default='', help='Link that the chain begins at; not given: the root.')
@click.option('--tip', default='', help='Link that the chain ends at; not given: the only leaf.')
@click.option(
    '--output',
    type=click.Path(path_type=Path, file_okay=False),
    default='demo_output',
    show_default=True,
    help='Folder for summary.json, tracking.png and the logs.',
)
@click.option(
    '--hold-time',
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help='Simulated seconds that gravity compensation holds the arm.',
)
def demo(urdf: Path | None, base: str, tip: str, output: Path, hold_time: float) -> None:
    """
    Hold and move an arm in MuJoCo by the dynamics node's torques, over ROS 2 topics.

    First gravity compensation holds the arm; then it makes one motion three times, under PD
    control alone, with gravity compensation, and with the whole model (computed torque).
    """
    if urdf is None and (base or tip):
        raise click.UsageError('--base and --tip are links of the arm that --urdf names')
    _keep_to_this_machine()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        from robodyn_ros.ros.demo import Arm, DemoFailed, panda, run_demo
        from robodyn_ros.ros.processes import NodeEnded
    except ImportError as error:
        raise click.ClickException(
            f'{error}. The demonstration needs ROS 2: source your ROS 2 workspace, or type '
            '`make setup` in a checkout of robodyn_ros.'
        ) from error
    try:
        run_demo(Arm(urdf, base, tip) if urdf else panda(), output, hold_time=hold_time)
    except (DemoFailed, NodeEnded) as error:
        raise click.ClickException(str(error)) from error


def _keep_to_this_machine() -> None:
    """Let the demonstration's nodes talk on the loopback only, unless told otherwise."""
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(os.getpid() % 100 + 1))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command; an error that the package raises on purpose is shown as one line."""
    try:
        robodyn()
    except RobodynError as error:
        click.echo(f'Error: {error}', err=True)
        raise SystemExit(2) from error


if __name__ == '__main__':
    main()
