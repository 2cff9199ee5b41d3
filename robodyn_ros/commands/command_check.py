# SPDX-License-Identifier: Apache-2.0
"""What commands do to an arm: ``command-check``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from robodyn_ros.commands.options import Answer, ArmWithRotors, command, lines_of
from robodyn_ros.identification import CommandCheck, check_commands
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.model import RobotModel
from robodyn_ros.record import Table, quantity


@command(
    'robodyn command-check arm.urdf probed.csv --rotor-inertia shoulder=0.4',
    'robodyn command-check panda.urdf probed.csv --gravity 0 0 0',
)
def command_check(
    arm: ArmWithRotors, recordings: tuple[Path, ...], *, topic: str | None = None
) -> Answer:
    """
    Check scale, sign and joint order of torque commands.

    RECORDINGS are of small torques on an arm at rest, with the commands as efforts: CSV files from
    examples/check_commands.py, or ROS bags with joint states. If the driver compensates gravity,
    give --gravity 0 0 0.
    """
    model = arm.model
    found = check_commands(model, [recording_of_file(path, model, topic) for path in recordings])
    unknown = {'order': found.order or None, 'command_scale': found.command_scale or None}
    return Answer(found.as_dict() | unknown, _words(model, found))


def _words(model: RobotModel, found: CommandCheck) -> Iterator[str]:
    """Yield a line for each joint, the findings, and what to copy."""
    rows = [
        (
            f'{each.joint!r}',
            f'{each.channel!r}' if each.channel else 'unknown',
            quantity(each.scale, 'N m or N', each.deviation, bool(side)),
        )
        for each, side in zip(found.joints, model.dh.prismatic, strict=True)
    ]
    yield Table(('joint', 'moved by the command of', 'torque per unit'), rows).text()
    yield from lines_of(found.findings)
    if not found.is_complete:
        yield 'No command_scale: not every joint has a command of its own.'
        return
    yield 'For the parameters of the node:'
    if found.order != model.joint_names:
        yield f'joints: [{", ".join(json.dumps(name) for name in found.order)}]'
    if not found.command_scale:
        yield 'No command_scale: not every scale is known.'
        return
    yield f'command_scale: [{", ".join(f"{value:.4g}" for value in found.command_scale)}]'
