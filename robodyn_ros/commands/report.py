# SPDX-License-Identifier: Apache-2.0
"""Everything about an arm on one page, its identification and signature too: ``report``."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import click

from robodyn_ros.commands.identification import refuse_repetition
from robodyn_ros.commands.motion import motion_of_file
from robodyn_ros.commands.options import (
    Answer,
    ArmWithRotors,
    Fraction,
    OutputFile,
    PerJoint,
    command,
    digest_of,
    of_joints,
)
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.identification import identify
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.report import STEPS, SignOff, arm_facts, report_page
from robodyn_ros.report.drawing import check_pages_can_be_made
from robodyn_ros.report.pdf import browser_path, print_page

_IDENTIFYING = 0.5  # of the progress bar


@command(
    'robodyn report urdf/puma560.urdf -o puma560.html',
    'robodyn report arm.urdf --motion recording.mcap --cutoff 5',
    'robodyn report arm.urdf --recording motion.mcap --validate other.mcap --pdf',
    "robodyn report arm.urdf --pdf --name 'Cell 4, left' --serial 0815 --author 'A. Smith'",
)
def report(
    arm: ArmWithRotors,
    *,
    output: OutputFile = Path('report.html'),
    pdf: bool = False,
    motion: Path | None = None,
    topic: str | None = None,
    cutoff: float | None = None,
    recording: tuple[Path, ...] = (),
    validate: tuple[Path, ...] = (),
    effort_scale: PerJoint = (),
    error: Fraction = 0.02,
    name: str = '',
    serial: str = '',
    author: str = '',
    company: str = '',
) -> Answer:
    """
    Write an HTML report on an arm.

    It has all results about the arm, in one file.

    Parameters
    ----------
    output :
        HTML file, self-contained.
    pdf :
        Also print a PDF file; needs Chromium.
    motion :
        CSV file or bag whose torques are shown; default: a motion within the arm's limits.
    recording :
        CSV file or bag with efforts, to compare measured and predicted torque before and after
        `identify`; can be given several times.
    error :
        Fraction of itself that a coefficient of the simplified model may be wrong by.
    name :
        Name of the robot, for the first page.
    serial :
        Serial number of the robot.
    author :
        Author of the report.
    company :
        Recipient. Of these four, missing ones are blank lines in print.
    """
    check_pages_can_be_made()
    browser = browser_path() if pdf else ''  # said before the work
    if (validate or effort_scale) and not recording:
        raise click.UsageError('--validate and --effort-scale go with --recording')
    model = arm.model
    scale = of_joints(effort_scale, model, '--effort-scale')
    given = motion_of_file(model, motion, topic, cutoff) if motion else None
    training = [recording_of_file(path, model, topic) for path in recording]
    held_out = [recording_of_file(path, model, topic) for path in validate]
    files = {'motion': (motion,) if motion else (), 'recording': recording, 'held out': validate}
    provenance = arm.provenance | {
        f'{what} {k}': _named(path)
        for what, paths in files.items()
        for k, path in enumerate(paths, start=1)
    }
    steps = count(1)
    with progress_bar(width=32) as show:
        found = None
        begin = _IDENTIFYING if training else 0.0
        if training:
            found = identify(
                model,
                training,
                validation=held_out,
                effort_scale=scale,
                progress=lambda done, what: show(begin * done, what),
            )
            refuse_repetition(found, validate)

        def show_step(step: str) -> None:
            show(begin + (1 - begin) * next(steps) / (len(STEPS) + 1 + pdf), step)

        facts = arm_facts(
            arm.chain,
            model,
            title=arm.title,
            motion=given,
            simplification_error=error,
            provenance=provenance,
            on_step=show_step,
        )
        show_step('drawing')
        page = report_page(
            facts,
            found,
            (held_out or training)[-1] if training else None,
            sign_off=SignOff(name, serial, author, company),
        )
        output.write_text(page, encoding='utf-8')
        paths = [output]
        if pdf:
            show_step('printing')
            paths.append(output.with_suffix('.pdf'))
            print_page(browser, output, paths[-1])
    record = {'file': str(output), **facts.summary()} | ({'pdf': str(paths[-1])} if pdf else {})
    sizes = [f'{path}: {path.stat().st_size / 1024:.0f} kB' for path in paths]
    return Answer(record, [f'{size}, {facts.seconds:.0f} s' for size in sizes])


def _named(path: Path) -> str:
    """Return a file's name and digest, or a folder's name."""
    if path.is_dir():
        return path.name
    return f'{path.name}, SHA-256 {digest_of(path.read_bytes())}'
