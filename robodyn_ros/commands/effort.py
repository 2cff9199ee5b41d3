# SPDX-License-Identifier: Apache-2.0
"""What the drives' efforts are, and what the hand holds: ``effort``, ``payload``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from robodyn_ros.commands.arm_options import (
    OUTPUT_FILE,
    ChosenArm,
    UserPath,
    arm_options,
    effort_scale_option,
    examples,
    in_a_folder_that_is_there,
    recordings_argument,
    topic_option,
)


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
    # Imported here: it takes longer than most commands do.
    from robodyn_ros.commands import effort_text as text
    from robodyn_ros.commands.identified_files import recording_of_file
    from robodyn_ros.identification import examine_effort
    from robodyn_ros.report.effort_page import effort_page

    model = arm.model
    recorded = [recording_of_file(path, model, topic) for path in recordings]
    found = examine_effort(model, recorded)
    if output is not None:
        page = effort_page(model, found, recorded, title=arm.title)
        output.write_text(page, encoding='utf-8')
    if as_json:
        click.echo(json.dumps(text.record_of_effort(found), indent=2, allow_nan=False))
        return
    for line in text.words_of_effort(model, found):
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
    from robodyn_ros.commands import effort_text as text
    from robodyn_ros.commands.identified_files import recording_of_file
    from robodyn_ros.identification import Identification, identify_payload

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
        click.echo(json.dumps(text.record_of_payload(found), indent=2, allow_nan=False))
        return
    for line in text.words_of_payload(model, found):
        click.echo(line)
