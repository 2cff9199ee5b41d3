# SPDX-License-Identifier: Apache-2.0
"""What the drives' efforts are, and the payload: ``effort``, ``payload``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from robodyn_ros.commands.options import (
    OUTPUT_FILE,
    ChosenArm,
    UserPath,
    arm_options,
    effort_scale_option,
    examples,
    in_a_folder_that_is_there,
    number_or_null,
    recordings_argument,
    topic_option,
)
from robodyn_ros.identification import (
    EffortFindings,
    Identification,
    JointEffort,
    PayloadEstimate,
    examine_effort,
    identify_payload,
)
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.model import RobotModel
from robodyn_ros.report.drawing import check_pages_can_be_made
from robodyn_ros.report.effort_page import effort_page

_INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
_ELEMENTS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
_GRAVITY = {
    'included': 'gravity is in it',
    'removed': 'gravity is NOT in it',
    'none': 'gravity does not act on it',
    'undecided': 'whether gravity is in it is undecided',
}
_FRICTION = {
    'included': 'friction is in it',
    'removed': 'hardly any friction',
    'undecided': 'whether friction is in it is undecided',
}


@click.command(
    'effort',
    epilog=examples(
        'robodyn effort arm.urdf motion.mcap',
        'robodyn effort arm.urdf one.csv two.csv --tip tool0 -o effort.html',
    ),
)
@arm_options
@recordings_argument
@topic_option
@click.option(
    '-o',
    '--output',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    help='Page with a picture for each joint.',
)
def effort_command(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    topic: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """
    Say what the efforts in recordings are.

    A torque or amperes, of which sign, with or without gravity and friction, and how late.
    RECORDINGS are ROS bags with joint states, or CSV files with the columns time, NAME,
    NAME.velocity and NAME.effort.
    """
    if output is not None:
        check_pages_can_be_made()
    model = arm.model
    recorded = [recording_of_file(path, model, topic) for path in recordings]
    found = examine_effort(model, recorded)
    if output is not None:
        page = effort_page(model, found, recorded, title=arm.title)
        output.write_text(page, encoding='utf-8')
    if as_json:
        click.echo(json.dumps(_record_of_effort(found), indent=2, allow_nan=False))
        return
    for line in _words_of_effort(model, found):
        click.echo(line)
    if output is not None:
        click.echo(output)


@click.command(
    'payload',
    epilog=examples(
        'robodyn payload arm.urdf loaded.mcap --identified identified/identified.yaml',
        'robodyn payload arm.urdf loaded.csv --unloaded empty.csv --effort-scale 11.5',
    ),
)
@arm_options
@recordings_argument
@topic_option
@click.option(
    '--identified',
    type=UserPath(),
    help='YAML that ``robodyn identify`` wrote for the arm without the load.',
)
@click.option(
    '--unloaded',
    type=UserPath(),
    multiple=True,
    help='Recording without the load, to identify the arm from.',
)
@effort_scale_option
def payload_command(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    topic: str | None,
    identified: Path | None,
    unloaded: tuple[Path, ...],
    effort_scale: float | list[float] | None,
    as_json: bool,
) -> None:
    """
    Find what the hand holds.

    RECORDINGS are of the arm with its load, moving or standing still in some poses. Says the call
    that tells the node, and where to stand to know more.
    """
    if identified is not None and unloaded:
        raise click.UsageError('--identified or --unloaded, not both')
    model = arm.model
    yaml = None if identified is None else Identification.load(identified)
    if yaml is not None:
        yaml.check_kinematics(model)
    found = identify_payload(
        yaml or model,
        [recording_of_file(path, model, topic) for path in recordings],
        unloaded=[recording_of_file(path, model, topic) for path in unloaded] or None,
        effort_scale=effort_scale,
    )
    if as_json:
        click.echo(json.dumps(_record_of_payload(found), indent=2, allow_nan=False))
        return
    for line in _words_of_payload(model, found):
        click.echo(line)


def _words_of_effort(model: RobotModel, found: EffortFindings) -> Iterator[str]:
    """Yield what the efforts are, a line for each joint, then the findings."""
    for joint, prismatic in zip(found.joints, model.dh.prismatic, strict=True):
        yield f'{joint.joint!r}: {_unit(joint, "N" if prismatic else "N m")}' + _parts(joint)
    if not math.isnan(found.delay):
        yield (
            f'All efforts are stamped {1e3 * found.delay:.3g} +- '
            f'{1e3 * found.delay_deviation:.2g} ms after the motion.'
        )
    for finding in found.findings:
        yield f'{"Warning" if finding.level == "warning" else "Note"}: {finding}'
    if any(joint.unit == 'scaled' or joint.is_inverted for joint in found.joints):
        scale = ' '.join(f'--effort-scale {value:.4g}' for value in found.effort_scale)
        yield f'For robodyn identify: {scale}'


def _unit(joint: JointEffort, unit: str) -> str:
    if joint.unit == 'undecided':
        share = f'{joint.rigid_share:.0%} of it' if not math.isnan(joint.rigid_share) else 'None'
        return f"undecided: {share} is the rigid body's torque"
    if joint.unit == 'torque':
        return 'a torque' if not joint.is_inverted else 'a torque of the WRONG SIGN'
    sign = ', of the WRONG SIGN' if joint.is_inverted else ''
    size = f'{abs(joint.factor):.3g} +- {joint.factor_deviation:.2g}'
    return f'no torque, but {size} {unit} for a unit{sign}'


def _parts(joint: JointEffort) -> str:
    if joint.unit == 'undecided':
        return ''
    return (
        f'; {_GRAVITY[joint.gravity]}; {_FRICTION[joint.friction]}; '
        f'offset {joint.offset:.2g} +- {joint.offset_deviation:.1g}'
    )


def _record_of_effort(found: EffortFindings) -> dict[str, Any]:
    """Return what was found as JSON can hold it: null where nothing is known."""
    return {
        'joints': [
            {name: number_or_null(value) for name, value in vars(joint).items()}
            for joint in found.joints
        ],
        'effort_scale': found.effort_scale.tolist(),
        'delay_s': number_or_null(found.delay),
        'delay_deviation_s': number_or_null(found.delay_deviation),
        'findings': [each.as_dict() for each in found.findings],
    }


def _words_of_payload(model: RobotModel, found: PayloadEstimate) -> Iterator[str]:
    """Yield the payload, the call that sets it, and the poses to add."""
    payload, center = found.payload, np.asarray(found.payload.center_of_mass)
    yield f'mass {payload.mass:.4g} +- {found.mass_deviation:.2g} kg'
    yield (
        'centre of mass '
        + ', '.join(
            f'{axis} {1e3 * at:.1f} +- {1e3 * size:.1f}'
            for axis, at, size in zip('xyz', center, found.center_deviation, strict=True)
        )
        + f' mm in the frame of {model.tip_link!r}'
    )
    for finding in found.findings:
        yield f'{"Warning" if finding.level == "warning" else "Note"}: {finding}'
    yield 'To tell the node:'
    yield _call(found)
    yield 'To know mass and centre of mass better, stand still for a second in (mind collisions):'
    for pose in found.poses:
        yield '  ' + ', '.join(
            f'{name!r} {angle:.2f}' for name, angle in zip(model.joint_names, pose, strict=True)
        )


def _call(found: PayloadEstimate) -> str:
    payload = found.payload
    center = np.asarray(payload.center_of_mass)
    inertia = np.asarray(payload.inertia)
    fields = [
        f'mass: {payload.mass:.5g}',
        'center_of_mass: {'
        + ', '.join(f'{axis}: {at:.5g}' for axis, at in zip('xyz', center, strict=True))
        + '}',
        *(f'{name}: {inertia[at]:.5g}' for name, at in zip(_INERTIA, _ELEMENTS, strict=True)),
    ]
    return (
        'ros2 service call /dynamics_node/set_payload robodyn_interfaces/srv/SetPayload '
        f'"{{payload: {{{", ".join(fields)}}}}}"'
    )


def _record_of_payload(found: PayloadEstimate) -> dict[str, Any]:
    """Return what was found as JSON can hold it."""
    inertia = np.asarray(found.payload.inertia)
    return {
        'mass': found.payload.mass,
        'center_of_mass': np.asarray(found.payload.center_of_mass).tolist(),
        **{name: float(inertia[at]) for name, at in zip(_INERTIA, _ELEMENTS, strict=True)},
        'mass_deviation': found.mass_deviation,
        'center_deviation': found.center_deviation.tolist(),
        'residual': found.residual,
        'poses': found.poses.tolist(),
        'findings': [each.as_dict() for each in found.findings],
    }
