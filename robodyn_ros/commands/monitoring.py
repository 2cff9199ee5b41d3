# SPDX-License-Identifier: Apache-2.0
"""What ages, warms up and is carried, over months of recordings: ``monitor``."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from robodyn_ros.commands.node import run_node
from robodyn_ros.commands.options import (
    OUTPUT_FILE,
    UserPath,
    dask_option,
    examples,
    in_a_folder_that_is_there,
    jobs_option,
    number_or_null,
    topic_option,
)
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.identification import Identification
from robodyn_ros.monitoring.ageing import Condition, Motion, condition
from robodyn_ros.monitoring.history import append_motions, read_history
from robodyn_ros.monitoring.jobs import Outcome, run_jobs
from robodyn_ros.monitoring.motions import Examined, FileJob, examined_file
from robodyn_ros.report.drawing import check_pages_can_be_made
from robodyn_ros.report.monitor_page import monitor_page
from robodyn_ros.report.text import plural


def _seconds(_: click.Context, option: click.Parameter, text: str | None) -> float:
    """Return a time as seconds since 1970; NaN where none is given."""
    if text is None:
        return math.nan
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise click.BadParameter(
            f'{text!r} is neither seconds since 1970 nor a time like 2026-11-26T08:00+01:00'
        ) from error


@click.command(
    'monitor',
    epilog=examples(
        'robodyn monitor monday.mcap --model identified/identified.yaml --history arm.jsonl',
        'robodyn monitor mon.mcap tue.mcap --model found.yaml --history arm.jsonl -o arm.html',
        'robodyn monitor --model identified.yaml --history arm.jsonl -o arm.html',
        'robodyn monitor bag/ --model found.yaml --started 2026-11-26T08:00+01:00',
        'robodyn monitor --live --model found.yaml --history arm.jsonl',
    ),
)
@click.argument('recordings', type=UserPath(), nargs=-1)
@click.option(
    '--model',
    'identified',
    type=UserPath(dir_okay=False),
    required=True,
    help='The baseline: YAML that ``robodyn identify`` wrote for the arm.',
)
@click.option(
    '--history',
    type=UserPath(dir_okay=False),
    callback=in_a_folder_that_is_there,
    help='File of all motions so far, JSON lines: it is read, and these motions are appended.',
)
@click.option(
    '-o',
    '--output',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    help='Page with the trends, which needs no server.',
)
@topic_option
@click.option(
    '--started',
    callback=_seconds,
    metavar='TIME',
    help='When the drives were switched on, for all the bags: seconds since 1970, or ISO 8601.',
)
@click.option(
    '--temperature-topic',
    help='Topic of a bag with the temperature of the drives, sensor_msgs/msg/Temperature.',
)
@jobs_option
@dask_option
@click.option(
    '--live',
    is_flag=True,
    help='Watch an arm beside its node by ROS 2 instead: RECORDINGS are the arguments of the node '
    'monitor_node after --, -p NAME:=VALUE, -r FROM:=TO.',
)
@click.option('--json', 'as_json', is_flag=True, help='Print JSON.')
def monitor(
    recordings: tuple[Path, ...],
    identified: Path,
    history: Path | None,
    output: Path | None,
    topic: str | None,
    started: float,
    temperature_topic: str | None,
    jobs: int | None,
    dask: str | None,
    live: bool,
    as_json: bool,
) -> None:
    """
    Say what wears, what only warms up, and what the arm carries.

    RECORDINGS of one arm, ROS bags or CSV files, in the order of their dates: friction of each
    motion, refitted with the identified bodies frozen, against that of the first motions of the
    history. CSV files may have the columns since_start [s] and temperature [°C]. Exit code 1: a
    recording could not be used; the others were.
    """
    if live:
        _become_node(recordings, identified, history, started, temperature_topic)
    if not recordings and history is None:
        raise click.UsageError('recordings, or --history')
    if output is not None:
        check_pages_can_be_made()
    found = Identification.load(identified)
    before = read_history(history, found) if history is not None else None
    known = before.digests if before is not None else frozenset()
    work = [
        FileJob(path, identified, topic, started, temperature_topic, known) for path in recordings
    ]
    with progress_bar(is_hidden=as_json or not work) as show:
        outcomes = run_jobs(
            examined_file, work, jobs, dask=dask, progress=lambda done: show(done, 'examining')
        )
    new = sorted(
        (motion for each in outcomes if each.result for motion in each.result.motions),
        key=lambda motion: motion.stamp,
    )
    new = list({motion.terms.digest: motion for motion in new}.values())
    if history is not None:
        append_motions(history, found, new)
    motions = [*(before.motions if before is not None else ()), *new]
    now = condition(found, motions)
    notes = [str(each) for each in before.findings] if before is not None else []
    notes += _notes(outcomes)
    if output is not None:
        page = monitor_page(found, motions, now, notes, title=output.stem)
        output.write_text(page, encoding='utf-8')
    if as_json:
        click.echo(json.dumps(_record(now, motions, notes), indent=2, allow_nan=False))
    else:
        for note in notes:
            click.echo(f'Note: {note}', err=True)
        for line in _words(now, motions, new):
            click.echo(line)
        if output is not None:
            click.echo(output)
    if any(each.problem for each in outcomes):
        raise SystemExit(1)


def _become_node(
    arguments: Sequence[Path],
    identified: Path,
    history: Path | None,
    started: float,
    temperature_topic: str | None,
) -> None:
    """Go on as the node that watches live."""
    given: dict[str, Any] = {
        'model': str(identified.absolute()),
        'history': '' if history is None else str(history.absolute()),
        'started': 0.0 if math.isnan(started) else started,
        'temperature_topic': temperature_topic or '',
    }
    run_node('monitor_node', given, tuple(map(str, arguments)))


def _notes(outcomes: Sequence[Outcome[FileJob, Examined]]) -> Iterator[str]:
    """Yield what could not be used, a line each."""
    known = sum(each.result.known for each in outcomes if each.result is not None)
    if known:
        yield f'{plural(known, "motion")} of these recordings had been counted before'
    for each in outcomes:
        if each.problem:
            yield f'{each.item.path}: {each.problem}'
        elif each.result is not None:
            yield from each.result.refused


def _words(now: Condition, motions: Sequence[Motion], new: Sequence[Motion]) -> Iterator[str]:
    """Yield what was found, a line each."""
    yield f'{len(motions)} motions, {len(new)} of them new; the last {now.motions} compared'
    yield f'{"friction of":24}{"identified model":>20}{"first motions":>20}{"cold drives":>16}'
    for k, name in enumerate(now.joint_names):
        yield (
            f'{name!r:24}{_percent(now.friction[k], now.friction_deviation[k]):>20}'
            f'{_percent(now.since_reference[k], now.since_reference_deviation[k]):>20}'
            f'{_percent(now.warm_up[k], now.warm_up_deviation[k]):>16}'
        )
    if math.isfinite(now.payload):
        yield f'at the tip: {now.payload:+.3g} +- {now.payload_deviation:.1g} kg beyond the model'
    for finding in now.findings:
        yield f'{"Warning" if finding.level == "warning" else "Note"}: {finding}'
    if not now.findings:
        yield 'Nothing that these motions bear.'


def _percent(value: float, deviation: float) -> str:
    if not math.isfinite(value):
        return 'unknown'
    return f'{100 * value:+.0f} +- {max(100 * deviation, 1.0):.0f} %'


def _record(now: Condition, motions: Sequence[Motion], notes: Sequence[str]) -> dict[str, Any]:
    """Return what was found as JSON can hold it: null where nothing is known."""
    names = (
        'friction',
        'friction_deviation',
        'since_reference',
        'since_reference_deviation',
        'warm_up',
        'warm_up_deviation',
    )
    return {
        'joint_names': now.joint_names,
        'motions': len(motions),
        'compared': now.motions,
        **{name: [number_or_null(x) for x in getattr(now, name).tolist()] for name in names},
        'payload': number_or_null(now.payload),
        'payload_deviation': number_or_null(now.payload_deviation),
        'findings': [each.as_dict() for each in now.findings],
        'notes': list(notes),
    }
