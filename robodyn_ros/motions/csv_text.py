# SPDX-License-Identifier: Apache-2.0
"""
Motions and torques as CSV text.

The first line names the columns: ``time`` [s]; for each joint its name, the position [rad or m];
and where they are known ``<joint>.velocity`` and ``<joint>.acceleration`` [per s, s2]. Columns may
stand in any order, others are ignored. Without such a line the columns are the time and the
positions in chain order.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np

from robodyn_ros.errors import MalformedData, Phrase
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.spatial import FloatArray

TIME = 'time'
SUFFIXES = ('', '.velocity', '.acceleration')
_MOST_COLUMNS_NAMED = 20


def motion_of_csv(text: str, joint_names: Sequence[str]) -> MotionSamples:
    """
    Return the motion of some joints, in their order.

    Raises
    ------
    MalformedData
        A column is missing or repeated, a field is no finite number, or the text is no CSV.
    """
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline='')) if any(row)]
    except csv.Error as error:
        raise MalformedData('motion', Phrase(str(error)), 'CSV text') from error
    if not rows:
        raise MalformedData('motion', Phrase('there is no line in it'), 'lines of numbers')
    names, first = _header(rows[0], joint_names)
    columns = {name: k for k, name in enumerate(names)}
    wanted = {TIME, *(f'{name}{suffix}' for name in joint_names for suffix in SUFFIXES)}
    table = _numbers(rows[first:], first + 1, names, wanted)

    def group(suffix: str) -> FloatArray | None:
        wanted = [f'{name}{suffix}' for name in joint_names]
        if not all(name in columns for name in wanted):
            return None
        return table[:, [columns[name] for name in wanted]]

    positions = group('')
    assert positions is not None  # the header was checked
    velocities = group(SUFFIXES[1])
    accelerations = None if velocities is None else group(SUFFIXES[2])
    return MotionSamples.from_samples(
        table[:, columns[TIME]], positions, velocities, accelerations
    )


def of_another_separator(names: Sequence[str]) -> str:
    """Return a question where a header was cut at commas, and none stands in it."""
    other = next((mark for mark in ';\t|' if len(names) == 1 and mark in names[0]), '')
    return f': is {other!r} the separator? Commas are' if other else ''


def table_as_csv(names: Sequence[str], time: FloatArray, *tables: FloatArray) -> str:
    """
    Return CSV text: a line of names, then lines of numbers that read back bit by bit.

    ``names`` are of all columns but the time's; ``tables`` (N, ...) stand side by side.
    """
    text = io.StringIO(newline='')
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow([TIME, *names])
    for row in np.column_stack([time, *tables]).tolist():
        writer.writerow(map(repr, row))
    return text.getvalue()


def _header(row: list[str], joint_names: Sequence[str]) -> tuple[list[str], int]:
    """Return the names of the columns, and which row the numbers begin at."""
    if all(_is_number(field) for field in row):
        names = [TIME, *joint_names]
        if len(row) != len(names):
            raise MalformedData(
                'line 1',
                Phrase(f'{len(row)} numbers and no names'),
                f'a line of names, or {len(names)} numbers: time and position of each joint',
            )
        return names, 0
    names = [field.strip() for field in row]
    known = {field.strip(): field for field in (TIME, *joint_names)}
    names = [known.get(name, name) for name in names]
    for name in known.values():
        if names.count(name) != 1:
            found = ', '.join(map(repr, names[:_MOST_COLUMNS_NAMED])) + of_another_separator(names)
            what = 'missing' if name not in names else 'repeated'
            raise MalformedData(f'column {name!r}', Phrase(what), f'once; line 1 names {found}')
    return names, 1


def _numbers(
    rows: list[list[str]], first_line: int, names: Sequence[str], wanted: set[str]
) -> FloatArray:
    """Return the table, NaN in columns that are not asked for."""
    for k, row in enumerate(rows):  # all first: few fields would be made many
        if len(row) != len(names):
            fields = Phrase(f'{len(row)} fields')
            raise MalformedData(f'line {first_line + k}', fields, f'{len(names)}, as in line 1')
    table = np.full((len(rows), len(names)), np.nan)
    for k, row in enumerate(rows):
        where = f'line {first_line + k}'
        for column, (name, field) in enumerate(zip(names, row, strict=True)):
            if name in wanted:
                number = float(field) if _is_number(field) else np.nan
                if not np.isfinite(number):
                    raise MalformedData(f'{where}, column {name!r}', field, 'a finite number')
                table[k, column] = number
    return table


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
