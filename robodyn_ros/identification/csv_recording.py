# SPDX-License-Identifier: Apache-2.0
"""The samples of a recording in a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from robodyn_ros.errors import MalformedRecording, NoEffort, NoSuchJoint, UnreadableSource
from robodyn_ros.spatial import FloatArray

_TIME = 'time'
_VELOCITY = '.velocity'
_EFFORT = '.effort'
_MOST_NAMED = 20

Samples = tuple[FloatArray, FloatArray, FloatArray | None, FloatArray]


def samples_of_csv(path: Path, joint_names: Sequence[str]) -> Samples:
    """
    Return time, position, velocity (or None) and effort of some joints, as the file has them.

    A field that is no number, and a row that is too short, become NaN.

    Raises
    ------
    UnreadableSource, NoSuchJoint, NoEffort, MalformedRecording
        As ``Recording.from_csv`` says.
    """
    try:
        with path.open(encoding='utf-8-sig', newline='') as file:
            rows = csv.reader(file)
            names = [field.strip() for field in next(rows, [])]
            columns = _columns(names, joint_names)
            table = _numbers(rows, columns)
    except (OSError, UnicodeDecodeError, MemoryError, csv.Error) as error:
        raise UnreadableSource('recording', str(path), f'a readable CSV file ({error})') from error
    n = len(joint_names)
    velocity = table[:, 1 + 2 * n :] if len(columns) > 1 + 2 * n else None
    return table[:, 0], table[:, 1 : 1 + n], velocity, table[:, 1 + n : 1 + 2 * n]


def _columns(names: Sequence[str], joint_names: Sequence[str]) -> list[int]:
    """Return which columns hold time, positions, efforts and, if all are there, velocities."""
    found = ', '.join(map(repr, names[:_MOST_NAMED]))
    if _TIME not in names:
        raise MalformedRecording(f'column {_TIME!r}', 'missing', f'line 1 names {found}')
    for name in joint_names:
        if name not in names:
            raise NoSuchJoint('recording', f'no column {name!r}', f'line 1 names {found}')
    efforts = [f'{name}{_EFFORT}' for name in joint_names]
    for name in efforts:
        if name not in names:
            raise NoEffort(f'column {name!r}', 'missing', f'efforts; line 1 names {found}')
    velocities = [f'{name}{_VELOCITY}' for name in joint_names]
    if not set(velocities) <= set(names):
        velocities = []
    wanted = [_TIME, *joint_names, *efforts, *velocities]
    for name in wanted:
        if names.count(name) > 1:
            raise MalformedRecording(f'column {name!r}', 'repeated', 'each name once')
    return [names.index(name) for name in wanted]


def _numbers(rows: Iterable[list[str]], columns: Sequence[int]) -> FloatArray:
    table = []
    for row in rows:
        if not row:
            continue
        try:
            table.append([float(row[k]) for k in columns])
        except (ValueError, IndexError):
            table.append([_number(row, k) for k in columns])
    return np.array(table, dtype=float).reshape(-1, len(columns))


def _number(row: list[str], k: int) -> float:
    try:
        return float(row[k])
    except (ValueError, IndexError):
        return np.nan
