# SPDX-License-Identifier: Apache-2.0
"""Everything about an arm on one page, its identification and signature too: ``report``."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import click

from robodyn_ros.commands.identification import refuse_repetition
from robodyn_ros.commands.motion import motion_of_file
from robodyn_ros.commands.options import (
    OUTPUT_FILE,
    ChosenArm,
    UserPath,
    arm_options,
    cutoff_option,
    digest_of,
    effort_scale_option,
    examples,
    in_a_folder_that_is_there,
    motion_topic_option,
    rotor_inertia_option,
    validate_option,
)
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.identification import identify
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.report import STEPS, SignOff, arm_facts, report_page
from robodyn_ros.report.drawing import check_pages_can_be_made
from robodyn_ros.report.pdf import browser_path, print_page

_IDENTIFYING = 0.5  # of the progress bar


@click.command(
    epilog=examples(
        'robodyn report urdf/puma560.urdf -o puma560.html',
        'robodyn report arm.urdf --motion recording.mcap --cutoff 5',
        'robodyn report arm.urdf --recording motion.mcap --validate other.mcap --pdf',
        "robodyn report arm.urdf --pdf --name 'Cell 4, left' --serial 0815 --author 'A. Smith'",
    )
)
@arm_options
@rotor_inertia_option
@click.option(
    '-o',
    '--output',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    default='report.html',
    show_default=True,
    help='One HTML file that needs nothing else.',
)
@click.option('--pdf', is_flag=True, help='Print it into a PDF file, too; needs Chromium.')
@click.option(
    '--motion',
    type=UserPath(),
    help="CSV file or bag to show torques along; not given: a motion within the arm's limits.",
)
@motion_topic_option
@cutoff_option
@click.option(
    '--recording',
    'recordings',
    type=UserPath(),
    multiple=True,
    help='CSV file or bag with efforts: measured and predicted torque, before and after '
    '`identify`. Several where given more than once.',
)
@validate_option
@effort_scale_option
@click.option(
    '--error',
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help='Fraction of itself that a coefficient of the simplified model may be wrong by.',
)
@click.option('--name', default='', help="The robot's own name, on the first page.")
@click.option('--serial', default='', help='Its serial number.')
@click.option('--author', default='', help='Who made the report.')
@click.option(
    '--company', default='', help='For whom; of these, what is not given is a blank line in print.'
)
def report(
    arm: ChosenArm,
    output: Path,
    pdf: bool,
    motion: Path | None,
    topic: str | None,
    cutoff: float | None,
    recordings: tuple[Path, ...],
    validation: tuple[Path, ...],
    effort_scale: float | list[float] | None,
    error: float,
    name: str,
    serial: str,
    author: str,
    company: str,
    as_json: bool,
) -> None:
    """Write everything that is known about an arm into one HTML file."""
    check_pages_can_be_made()
    browser = browser_path() if pdf else ''  # said before the work
    if (validation or effort_scale) and not recordings:
        raise click.UsageError('--validate and --effort-scale go with --recording')
    model = arm.model
    given = motion_of_file(model, motion, topic, cutoff) if motion else None
    training = [recording_of_file(path, model, topic) for path in recordings]
    held_out = [recording_of_file(path, model, topic) for path in validation]
    provenance = arm.provenance | {
        f'{what} {k}': _named(path)
        for what, paths in (
            ('motion', (motion,) if motion else ()),
            ('recording', recordings),
            ('held out', validation),
        )
        for k, path in enumerate(paths, start=1)
    }
    steps = count(1)
    with progress_bar(is_hidden=as_json, width=32) as show:
        found = None
        begin = _IDENTIFYING if training else 0.0
        if training:
            found = identify(
                model,
                training,
                validation=held_out,
                effort_scale=effort_scale,
                progress=lambda done, what: show(begin * done, what),
            )
            refuse_repetition(found, validation)

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
        written = [output]
        if pdf:
            show_step('printing')
            written.append(output.with_suffix('.pdf'))
            print_page(browser, output, written[-1])
    if as_json:
        summary = {'file': str(output), **facts.summary()}
        if pdf:
            summary['pdf'] = str(written[-1])
        click.echo(json.dumps(summary, indent=2, allow_nan=False))
        return
    for path in written:
        click.echo(f'{path}: {path.stat().st_size / 1024:.0f} kB, {facts.seconds:.0f} s')


def _named(path: Path) -> str:
    """Return a file's name and digest, or a folder's name."""
    if path.is_dir():
        return path.name
    return f'{path.name}, SHA-256 {digest_of(path.read_bytes())}'
