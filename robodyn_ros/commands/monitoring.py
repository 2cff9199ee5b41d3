# SPDX-License-Identifier: Apache-2.0
"""Friction and payload over months of recordings: ``monitor``."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import click
import numpy as np

from robodyn_ros.commands.node import run_node
from robodyn_ros.commands.options import (
    Answer,
    InputFile,
    Jobs,
    OutputFile,
    command,
    lines_of,
    written,
)
from robodyn_ros.commands.progress import progress_bar
from robodyn_ros.description.records import stated
from robodyn_ros.identification import Identification
from robodyn_ros.monitoring.ageing import Condition, MotionEntry, condition
from robodyn_ros.monitoring.history import History, append_motions, read_history
from robodyn_ros.monitoring.jobs import Outcome, run_jobs
from robodyn_ros.monitoring.motions import Examined, FileJob, examined_file, is_date
from robodyn_ros.report.drawing import check_pages_can_be_made
from robodyn_ros.report.monitor_page import monitor_page
from robodyn_ros.report.text import plural


class _Time(click.ParamType):
    """A time: seconds since 1970, or ISO 8601."""

    name = 'time'

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):  # the default
            return value
        try:
            if math.isfinite(number := float(value)):
                return number
        except ValueError:
            pass
        try:
            return datetime.datetime.fromisoformat(value).astimezone().timestamp()
        except (ValueError, OverflowError, OSError):
            known = 'seconds since 1970 nor a time like 2026-11-26T08:00+01:00'
            self.fail(f'{value!r} is neither {known}', param, ctx)


@command(
    'robodyn monitor monday.mcap --model identified/identified.yaml --history arm.jsonl',
    'robodyn monitor mon.mcap tue.mcap --model found.yaml --history arm.jsonl -o arm.html',
    'robodyn monitor --model identified.yaml --history arm.jsonl -o arm.html',
    'robodyn monitor bag/ --model found.yaml --started 2026-11-26T08:00+01:00',
    'robodyn monitor --live --model found.yaml --history arm.jsonl',
)
def monitor(
    recordings: tuple[Path, ...] = (),
    *,
    model: InputFile,
    history: OutputFile | None = None,
    output: OutputFile | None = None,
    topic: str | None = None,
    started: Annotated[float, _Time()] = math.nan,
    temperature_topic: str | None = None,
    jobs: Jobs | None = None,
    dask: str | None = None,
    live: bool = False,
) -> Answer:
    """
    Monitor friction and payload over time: wear, warm-up, load.

    RECORDINGS are ROS bags or CSV files of one arm, in the order of their dates. Friction is
    refitted in each motion, with the identified bodies unchanged, and compared with the first
    motions of the history. CSV files may have the columns since_start [s] and temperature [°C].
    Exit code 1: some recordings could not be used.

    Parameters
    ----------
    model :
        Baseline: YAML that ``robodyn identify`` wrote for the arm.
    history :
        File with all earlier motions (JSON lines), to which these motions are appended.
    output :
        HTML page with the trends.
    started :
        Time at which the drives were switched on, for all bags: seconds since 1970, or ISO 8601.
    temperature_topic :
        Topic of a bag with the temperature of the drives, sensor_msgs/msg/Temperature.
    live :
        Monitor an arm live by ROS 2 instead: RECORDINGS, after --, are the arguments of
        monitor_node, -p NAME:=VALUE, -r FROM:=TO.
    """
    if live:
        settings = {
            'model': str(model.absolute()),
            'history': '' if history is None else str(history.absolute()),
            'started': 0.0 if math.isnan(started) else started,
            'temperature_topic': temperature_topic or '',
        }
        run_node('monitor_node', settings, tuple(map(str, recordings)))
    if not recordings and history is None:
        raise click.UsageError('recordings, or --history')
    if output is not None:
        check_pages_can_be_made()
    found = Identification.load(model)
    before = History() if history is None else read_history(history, found)
    given = model, topic, started, temperature_topic, before.digests
    work = [FileJob(path, *given) for path in recordings]
    with progress_bar(is_hidden=not work) as show:
        outcomes = run_jobs(
            examined_file, work, jobs, dask=dask, progress=lambda done: show(done, 'examining')
        )
    added = [motion for each in outcomes if each.result for motion in each.result.motions]
    # Stamps that are no dates begin anew in each file: those motions keep their places.
    dated = iter(sorted((x for x in added if is_date(x.stamp)), key=lambda x: x.stamp))
    added = [next(dated) if is_date(each.stamp) else each for each in added]
    new = list({motion.terms.digest: motion for motion in added}.values())
    if history is not None:
        append_motions(history, found, new)
    motions = [*before.motions, *new]
    now = condition(found, motions)
    notes = [*map(str, before.findings), *_notes(outcomes)]
    lines = list(_words(now, motions, new))
    if output is not None:
        page = monitor_page(found, motions, now, notes, title=found.model.name)
        lines += written(page, output, str(output))
    counts = {'motions': len(motions), 'compared': now.motions, 'notes': notes}
    counts['verdict'] = now.verdict
    record = {k: x for k, x in now.as_dict().items() if not k.endswith('series')} | counts
    said = [f'Note: {note}' for note in notes]
    return Answer(record, lines, said, exit_code=int(any(each.problem for each in outcomes)))


def _notes(outcomes: Sequence[Outcome[FileJob, Examined]]) -> Iterator[str]:
    """Yield what could not be used, a line each."""
    known = sum(each.result.known for each in outcomes if each.result is not None)
    if known:
        yield f'{plural(known, "motion")} of these recordings had been counted before'
    for each in outcomes:
        if each.problem:
            yield f'{each.item.path}: {each.problem}'
        elif each.result is not None:
            yield from map(str, each.result.warnings)
            yield from each.result.refused


def _words(
    now: Condition, motions: Sequence[MotionEntry], new: Sequence[MotionEntry]
) -> Iterator[str]:
    """Yield what was found."""
    count = plural(len(motions), 'motion')
    yield f'{count}, {len(new)} of them new; the last {now.motions} compared'
    yield now.as_text()
    if np.isnan(now.warm_up).any():
        yield (
            'Warm-up is unknown: it takes 3 motions after one start, with the time since then '
            '(--started) or a temperature.'
        )
    if math.isfinite(now.payload):
        yield f'at the tip: {stated(now.payload, "kg", now.payload_deviation)} beyond the model'
    yield from lines_of(now.findings)
    yield now.verdict
