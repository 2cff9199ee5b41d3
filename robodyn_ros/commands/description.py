# SPDX-License-Identifier: Apache-2.0
"""A URDF's arm: ``dh``, ``check``, ``params``."""

from __future__ import annotations

from robodyn_ros.commands.drive_limits import unknown
from robodyn_ros.commands.options import (
    Answer,
    ArmWithRotors,
    ChosenArm,
    command,
    lines_of,
)
from robodyn_ros.description.findings import MASSES
from robodyn_ros.dh.table import matrix_text, row_formula, table_as_dict
from robodyn_ros.parameters.base_parameters import base_parameters, parameters_record
from robodyn_ros.parameters.combinations import LengthStyle


@command(
    'robodyn dh urdf/puma560.urdf',
    'robodyn dh panda.urdf --base panda_link0 --tip panda_link8 --standard',
    'xacro arm.urdf.xacro | robodyn dh - --json',
)
def dh(arm: ChosenArm, *, standard: bool = False) -> Answer:
    """
    Print the DH table of an arm, and its deviation from the URDF.

    Parameters
    ----------
    standard :
        The standard table instead of the modified one.
    """
    # Imported here: what reports are drawn with takes longer than all else these commands need.
    from robodyn_ros.report.residual import conversion_residual

    model = arm.model
    table = model.dh.standard() if standard else model.dh
    residual = conversion_residual(arm.chain, model)
    base = repr(model.base_link)
    tips = zip(model.tip_links, table.tips, table.tip_transforms, strict=True)
    lines = [
        f'{model.ends}, {table.convention} DH: {row_formula(table)}\n\n{table}\n',
        *(f'q{i}: {x.name!r}, {x.kind}' for i, x in enumerate(arm.chain.joints, start=1)),
        f'\nBase transform, {base} to frame 0:',
        matrix_text(table.base_transform),
        *(
            line
            for tip, body, placed in tips
            for line in (f'Tip transform, frame {body + 1} to {tip!r}:', matrix_text(placed))
        ),
        '',
        f"Worst difference from the URDF's own frames at {residual.states} states:",
        f'{residual.position:.1e} m, {residual.angle:.1e} rad, '
        f'torque {residual.torque:.1e} of the largest.',
    ]
    tip = {'tip_link': model.tip_link} if table.is_chain else {'tip_links': model.tip_links}
    chain = {'base_link': model.base_link, **tip, 'joint_names': model.joint_names}
    return Answer({**chain, **table_as_dict(table), 'residual': residual}, lines)


@command(
    'robodyn check urdf/puma560.urdf',
    'robodyn check panda.urdf --base panda_link0 --tip panda_link8 --json',
)
def check(arm: ChosenArm) -> Answer:
    """
    Check an arm's URDF for faults; nothing is repaired.

    Exit code 0: no warnings; 1: warnings; 2: no model can be made of it.
    """
    model = arm.model
    has_warnings = any(finding.level == 'warning' for finding in model.findings)
    mass = model.inertial_parameters[:, 9].sum()
    # The finding about masses says what gives them.
    remedies = [f'{what}: {gives}' for what, gives in unknown(model) if gives != MASSES]
    summary = (
        f'{model.ends}: {_counted(model.n, "joint")}, '
        f'{mass:.6g} kg that move, {_counted(len(model.findings), "finding")}.'
    )
    return Answer(
        model.findings,
        [*lines_of(model.findings), *remedies, summary],
        exit_code=int(has_warnings),
    )


@command(
    'robodyn params urdf/puma560.urdf',
    'robodyn params urdf/stanford.urdf --lengths numbers',
    'robodyn params urdf/puma560.urdf --json',
)
def params(
    arm: ArmWithRotors,
    *,
    lengths: LengthStyle = 'symbols',
    friction: bool = False,
    tolerance: float = 1e-9,
) -> Answer:
    """
    Print the minimal inertial parameters: values and formulas.

    Parameters
    ----------
    lengths :
        Lengths in formulas: as numbers, as a3 and d4, or as D3 and RL4.
    friction :
        Also count friction coefficients.
    tolerance :
        Relative effect on the torques below which a parameter counts as without effect.
    """
    base = base_parameters(arm.model, tolerance=tolerance, friction=friction)
    return Answer(parameters_record(base), [base.text(lengths)])


def _counted(number: int, what: str) -> str:
    return f'{number} {what}' if number == 1 else f'{number} {what}s'
