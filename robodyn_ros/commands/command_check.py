# SPDX-License-Identifier: Apache-2.0
"""What commands do to an arm: ``command-check``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from robodyn_ros.commands.options import (
    ChosenArm,
    arm_options,
    examples,
    number_or_null,
    recordings_argument,
    rotor_inertia_option,
    topic_option,
)
from robodyn_ros.identification import CommandCheck, JointCommand, check_commands
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.model import RobotModel


@click.command(
    'command-check',
    epilog=examples(
        'robodyn command-check arm.urdf probed.csv --rotor-inertia shoulder=0.4',
        'robodyn command-check panda.urdf probed.csv --gravity 0 0 0',
    ),
)
@arm_options
@rotor_inertia_option
@recordings_argument
@topic_option
def command_check(
    arm: ChosenArm, recordings: tuple[Path, ...], topic: str | None, as_json: bool
) -> None:
    """
    Say what commanded torques become.

    Scale, sign and order, from small torques on an arm at rest. RECORDINGS have the COMMANDS as
    efforts: CSV files, as examples/check_commands.py writes them, or ROS bags with joint states.
    Where the driver compensates gravity: --gravity 0 0 0.
    """
    model = arm.model
    found = check_commands(model, [recording_of_file(path, model, topic) for path in recordings])
    if as_json:
        click.echo(json.dumps(_record(found), indent=2, allow_nan=False))
        return
    for line in _words(model, found):
        click.echo(line)


def _words(model: RobotModel, found: CommandCheck) -> Iterator[str]:
    """Yield a line for each joint, the findings, and what to copy."""
    yield f'{"joint":24}{"moved by the command of":26}{"torque for a unit":>24}'
    for each, prismatic in zip(found.joints, model.dh.prismatic, strict=True):
        if not each.channel:
            yield f'{each.joint!r:24}unknown'
            continue
        size = f'{each.scale:.4g} +- {each.deviation:.2g} {"N" if prismatic else "N m"}'
        yield f'{each.joint!r:24}{each.channel!r:26}{size:>24}'
    for finding in found.findings:
        yield f'{"Warning" if finding.level == "warning" else "Note"}: {finding}'
    if not found.is_complete:
        yield 'No command_scale: not every joint has a command of its own.'
        return
    yield 'For the parameters of the node:'
    if found.order != model.joint_names:
        yield f'joints: [{", ".join(json.dumps(name) for name in found.order)}]'
    yield f'command_scale: [{", ".join(f"{value:.4g}" for value in found.command_scale)}]'


def _record(found: CommandCheck) -> dict[str, Any]:
    """Return what was found as JSON can hold it: null where nothing is known."""
    return {
        'joints': [_record_of_joint(each) for each in found.joints],
        'order': found.order or None,
        'command_scale': found.command_scale or None,
        'findings': [each.as_dict() for each in found.findings],
    }


def _record_of_joint(joint: JointCommand) -> dict[str, Any]:
    values = {**vars(joint), 'sign': joint.sign}
    return {name: number_or_null(value) for name, value in values.items()}
