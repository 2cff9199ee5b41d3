# SPDX-License-Identifier: Apache-2.0
"""A URDF's arm: ``dh``, ``check``, ``params``."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from robodyn_ros.commands.options import (
    ChosenArm,
    arm_options,
    examples,
    rotor_inertia_option,
)
from robodyn_ros.dh.table import matrix_text, row_formula, table_as_dict
from robodyn_ros.parameters.base_parameters import base_parameters, parameters_record
from robodyn_ros.parameters.combinations import LENGTH_STYLES, LengthStyle


@click.command(
    epilog=examples(
        'robodyn dh urdf/puma560.urdf',
        'robodyn dh panda.urdf --base panda_link0 --tip panda_link8 --standard',
        'xacro arm.urdf.xacro | robodyn dh - --json',
    )
)
@arm_options
@click.option('--standard', is_flag=True, help='The standard table instead of the modified one.')
def dh(arm: ChosenArm, as_json: bool, standard: bool) -> None:
    """Print the DH table of an arm, and how far it is from its URDF."""
    # Imported here: what reports are drawn with takes longer than all else these commands need.
    from robodyn_ros.report.residual import conversion_residual

    model = arm.model
    table = model.dh.standard() if standard else model.dh
    residual = conversion_residual(arm.chain, model)
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
        f'q{i}: {joint.name!r}, {joint.kind}' for i, joint in enumerate(arm.chain.joints, start=1)
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


@click.command(
    epilog=examples(
        'robodyn check urdf/puma560.urdf',
        'robodyn check panda.urdf --base panda_link0 --tip panda_link8 --json',
    )
)
@arm_options
def check(arm: ChosenArm, as_json: bool) -> None:
    """
    List what is odd about an arm's URDF; nothing is repaired.

    Exit code 0: no warnings; 1: warnings; 2: no model can be made of it.
    """
    model = arm.model
    if as_json:
        click.echo(
            json.dumps(
                [finding.as_dict() for finding in model.findings], indent=2, allow_nan=False
            )
        )
    else:
        for finding in model.findings:
            click.echo(f'{finding.level:8}{finding}')
        mass = model.inertial_parameters[:, 9].sum()
        click.echo(
            f'{model.base_link!r} to {model.tip_link!r}: {_counted(model.n, "joint")}, '
            f'{mass:.6g} kg that move, {_counted(len(model.findings), "finding")}.'
        )
    if any(finding.level == 'warning' for finding in model.findings):
        raise SystemExit(1)


@click.command(
    epilog=examples(
        'robodyn params urdf/puma560.urdf',
        'robodyn params urdf/stanford.urdf --lengths numbers',
        'robodyn params urdf/puma560.urdf --json',
    )
)
@arm_options
@rotor_inertia_option
@click.option(
    '--lengths',
    type=click.Choice(LENGTH_STYLES),
    default='symbols',
    show_default=True,
    help='How formulas write lengths: multiplied out, as a3 and d4, or as D3 and RL4.',
)
@click.option('--friction', is_flag=True, help='Count friction coefficients, too.')
@click.option(
    '--tolerance',
    type=float,
    default=1e-9,
    show_default=True,
    help='Relative; what reaches the torques with less counts as without effect.',
)
def params(
    arm: ChosenArm, as_json: bool, lengths: LengthStyle, friction: bool, tolerance: float
) -> None:
    """Print the minimal inertial parameters: values and formulas."""
    base = base_parameters(arm.model, tolerance=tolerance, friction=friction)
    if as_json:
        click.echo(json.dumps(parameters_record(base), indent=2, allow_nan=False))
    else:
        click.echo(base.text(lengths))


def _counted(number: int, what: str) -> str:
    return f'{number} {what}' if number == 1 else f'{number} {what}s'
