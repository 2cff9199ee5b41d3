# SPDX-License-Identifier: Apache-2.0
"""From recordings to a model that is true: ``identify``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from robodyn_ros.commands.arm_options import (
    ChosenArm,
    UserPath,
    arm_options,
    effort_scale_option,
    examples,
    recordings_argument,
    topic_option,
    validate_option,
)
from robodyn_ros.commands.progress import progress_bar


@click.command(
    'identify',
    epilog=examples(
        'robodyn identify arm.urdf motion.mcap --validate other.mcap -o identified/',
        'robodyn identify arm.urdf one.csv two.csv --effort-scale 11.5 --base base_link',
    ),
)
@arm_options
@recordings_argument
@validate_option
@topic_option
@effort_scale_option
@click.option(
    '-o',
    '--output',
    type=UserPath(file_okay=False),
    default='identified',
    show_default=True,
    help='Folder, made where it is missing.',
)
def identify_command(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    validation: tuple[Path, ...],
    topic: str | None,
    effort_scale: float | list[float] | None,
    output: Path,
    as_json: bool,
) -> None:
    """
    Find the model that an arm's own drives report.

    RECORDINGS are ROS bags with joint states, or CSV files with the columns time, NAME,
    NAME.velocity and NAME.effort. Writes the URDF with other inertials and friction, the
    identified model as YAML and JSON, and a page that shows how good it is, and what is not known.
    """
    # Imported here: it takes longer than most commands do.
    from robodyn_ros.commands import identified_files as files
    from robodyn_ros.identification import identify

    model = arm.model
    training = [files.recording_of_file(path, model, topic) for path in recordings]
    held_out = [files.recording_of_file(path, model, topic) for path in validation]
    with progress_bar(is_hidden=as_json) as show:
        found = identify(
            model,
            training,
            validation=held_out,
            effort_scale=effort_scale,
            progress=show,
        )
        files.refuse_repetition(found, validation)
        show(1.0, 'drawing')
        written = files.write(found, arm, (held_out or training)[-1], output)
    if as_json:
        click.echo(json.dumps(files.record(found), indent=2, allow_nan=False))
        return
    for line in files.warnings(found):
        click.echo(line, err=True)
    for line in files.summary(found):
        click.echo(line)
    for path in written:
        click.echo(path)
