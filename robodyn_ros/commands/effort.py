# SPDX-License-Identifier: Apache-2.0
"""What the drives' efforts are, and the payload: ``effort``, ``gains``, ``payload``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from robodyn_ros.commands.options import (
    Answer,
    ChosenArm,
    OutputFile,
    PerJoint,
    command,
    lines_of,
    of_joints,
    written,
)
from robodyn_ros.description.records import differs_from_zero, stated
from robodyn_ros.identification import (
    Identification,
    PayloadEstimate,
    examine_effort,
    identify_drive_gains,
    identify_payload,
)
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.record import quantity
from robodyn_ros.report.drawing import check_pages_can_be_made
from robodyn_ros.report.effort_page import effort_page

_INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
_ELEMENTS = np.triu_indices(3)


@command(
    'robodyn effort arm.urdf motion.mcap',
    'robodyn effort arm.urdf one.csv two.csv --tip tool0 -o effort.html',
)
def effort(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    *,
    topic: str | None = None,
    output: OutputFile | None = None,
) -> Answer:
    """
    Check unit, sign and content of recorded efforts.

    Reports for each joint whether the effort is a torque or a current, its sign, its delay, and
    whether gravity and friction are in it. RECORDINGS are ROS bags with joint states, or CSV files
    with the columns time, NAME, NAME.velocity and NAME.effort. The torque per unit of effort is as
    accurate as the URDF's masses.

    Parameters
    ----------
    output :
        HTML page with a plot for each joint.
    """
    if output is not None:
        check_pages_can_be_made()
    model = arm.model
    recorded = [recording_of_file(path, model, topic) for path in recordings]
    found = examine_effort(model, recorded)
    lines = [found.as_text(model.dh.prismatic), *lines_of(found.findings)]
    if any(joint.unit == 'scaled' or joint.is_inverted for joint in found.joints):
        lines.append(
            "robodyn identify assumes the same; both rely on the URDF's masses. robodyn gains "
            'measures the factors'
        )
    if output is not None:
        page = effort_page(model, found, recorded, title=arm.title)
        lines += written(page, output, str(output))
    return Answer(found, lines)


@command(
    'robodyn gains arm.urdf empty.csv --loaded loaded.csv --mass 2.8',
    'robodyn gains arm.urdf empty.mcap',
)
def gains(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    *,
    loaded: tuple[Path, ...] = (),
    mass: float | None = None,
    topic: str | None = None,
) -> Answer:
    """
    Measure the torque per unit of effort with a load of known mass.

    RECORDINGS are of the arm without a load, with all joints moving. Recordings of similar motions
    with the load, made on the same day, determine the scale of all joints. Without a load only the
    ratios of the scales are measured, and their common factor relies on the URDF's masses. Give
    the result as --effort-scale.

    Parameters
    ----------
    loaded :
        Recording with the load at the tip link.
    mass :
        Mass of the load [kg].
    """
    model = arm.model
    found = identify_drive_gains(
        model,
        [recording_of_file(path, model, topic) for path in recordings],
        [recording_of_file(path, model, topic) for path in loaded] or None,
        mass,
    )
    lines = [found.as_text(model.dh.prismatic), *lines_of(found.findings)]
    if found.known.all():
        given = ' '.join(f'--effort-scale {x:.4g}' for x in found.gain)
        lines.append(f'For robodyn identify and payload: {given}')
    return Answer(found, lines)


@command(
    'robodyn payload arm.urdf loaded.mcap --identified identified/identified.yaml',
    'robodyn payload arm.urdf loaded.csv --unloaded empty.csv --effort-scale 11.5',
)
def payload(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    *,
    topic: str | None = None,
    identified: Path | None = None,
    unloaded: tuple[Path, ...] = (),
    effort_scale: PerJoint = (),
) -> Answer:
    """
    Estimate the mass and centre of mass of the payload.

    RECORDINGS are of the arm with its load, moving, or at rest in some poses. Prints the service
    call that sets the payload of the node, and poses that would improve the estimate.

    Parameters
    ----------
    identified :
        YAML that ``robodyn identify`` wrote for the arm without the load.
    unloaded :
        Recording without the load, from which the arm is identified.
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
        effort_scale=of_joints(effort_scale, model, '--effort-scale'),
    )
    inertia = np.asarray(found.payload.inertia)[_ELEMENTS].tolist()
    record = {
        'mass': found.payload.mass,
        'center_of_mass': np.asarray(found.payload.center_of_mass),
        **dict(zip(_INERTIA, inertia, strict=True)),
        'mass_deviation': found.mass_deviation,
        'center_deviation': found.center_deviation,
        'residual': found.residual,
        'poses': found.poses,
        'findings': found.findings,
    }
    joints = [f'{name!r}' for name in model.joint_names]
    return Answer(record, _words_of_payload(joints, found, model.tip_link))


def _words_of_payload(joints: list[str], found: PayloadEstimate, tip: str) -> Iterator[str]:
    """Yield the payload, the call that sets it, and the poses to add."""
    center = np.asarray(found.payload.center_of_mass)
    yield f'mass {stated(found.payload.mass, "kg", found.mass_deviation)}'
    yield (
        'centre of mass '
        + ', '.join(
            f'{axis} {quantity(1e3 * at, "mm", 1e3 * size)}'
            for axis, at, size in zip('xyz', center.tolist(), found.center_deviation, strict=True)
        )
        + f' in the frame of {tip!r}'
    )
    yield from lines_of(found.findings)
    fields = [
        f'mass: {found.payload.mass:.5g}',
        f'center_of_mass: {{x: {center[0]:.5g}, y: {center[1]:.5g}, z: {center[2]:.5g}}}',
        *(
            f'{name}: {value:.3g}'
            for name, value in zip(_INERTIA, np.asarray(found.payload.inertia)[_ELEMENTS])
        ),
    ]
    if differs_from_zero(found.payload.mass, found.mass_deviation):
        yield 'To set it in the node:'
        yield (
            'ros2 service call /dynamics_node/set_payload robodyn_interfaces/srv/SetPayload '
            f'"{{payload: {{{", ".join(fields)}}}}}"'
        )
    yield 'For a better estimate record a second at rest in these poses (check for collisions):'
    for pose in found.poses:
        yield '  ' + ', '.join(f'{name} {at:.2f}' for name, at in zip(joints, pose, strict=True))
