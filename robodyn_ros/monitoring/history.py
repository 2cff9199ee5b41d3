# SPDX-License-Identifier: Apache-2.0
"""
The history of an arm as a file: JSON lines, one a motion, appended and never rewritten in place.

The first line says which identified model the numbers are relative to. A line is written in one
call and synchronised; a process that is killed leaves a torn last line at the worst, which the
next one closes and readers skip. Beyond ``LARGEST`` bytes the file is replaced by one that keeps
the first motions and the last ``RECENT`` whole, and every second one between. What is read is not
trusted: sizes come first, and every number is finite or null, for unknown.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from robodyn_ros.description.records import Finding, note, warning
from robodyn_ros.description.source import bytes_of_file, refuse_device, user_path
from robodyn_ros.errors import MalformedData, ModelMismatch, Phrase, UnreadableSource
from robodyn_ros.identification import Identification
from robodyn_ros.monitoring.ageing import REFERENCE, MotionEntry
from robodyn_ros.monitoring.motion_terms import TERMS, MotionTerms

LARGEST = 16 * 2**20
"""Bytes beyond which a history is thinned out."""

RECENT = 2000
"""Motions that thinning leaves whole, beside the first."""

_FORMAT = 'robodyn history 1'
_LARGEST_LINE = 64 * 2**10
_MOST_LINES = 2**17  # lines of 256 bytes fill a file; a motion takes more
_LARGEST_NUMBER = 1e12
_LONGEST_TEXT = 200
_SHAPES: dict[str, tuple[int, ...]] = {
    'terms': (-1, len(TERMS)),
    'term_deviation': (-1, len(TERMS)),
    'payload': (4,),
    'payload_deviation': (4,),
}
_HINTS = {each.name: get_type_hints(MotionTerms)[each.name] for each in fields(MotionTerms)}


@dataclass(frozen=True)
class History:
    """
    The motions in a file.

    Attributes
    ----------
    motions : tuple of MotionEntry
        In the order of the file.
    findings : tuple of Finding
        What could not be read.
    """

    motions: tuple[MotionEntry, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def digests(self) -> frozenset[str]:
        """Of the motions' samples: which have been counted."""
        return frozenset(each.terms.digest for each in self.motions)


def baseline_digest(found: Identification) -> str:
    """Return what tells whether a history is relative to this identified model."""
    drive = found.drive_model
    content = hashlib.sha256(found.kinematics.encode())
    for array in (
        drive.model.inertial_parameters,
        drive.coefficients,
        drive.effort_scale,
        drive.model.coupling,
        drive.model.coupled_rotor_inertia,
        drive.model.coupled_friction,
    ):
        content.update(np.ascontiguousarray(array, dtype=float).tobytes())
    return content.hexdigest()[:16]


def read_history(path: str | Path, found: Identification) -> History:
    """
    Return the motions in a file; one that does not exist is empty.

    A line that is torn, too long, or holds what no motion has is skipped, and counted in
    ``findings``.

    Raises
    ------
    UnreadableSource
        It cannot be read, is a device, or has more bytes or lines than any history.
    MalformedData
        It is no history.
    ModelMismatch
        It is that of another arm, or relative to another identified model.
    """
    path = user_path(path)
    if not path.exists():
        return History()
    refuse_device(path, 'history')
    content = bytes_of_file(path, 2 * LARGEST + _LARGEST_LINE, 'history')
    return _history_of(content, found)


def append_motions(
    path: str | Path, found: Identification, motions: Sequence[MotionEntry]
) -> None:
    """
    Append motions to a file, which is made where it is missing and thinned out where it is large.

    Parameters
    ----------
    path : str or Path
    found : Identification
        What the motions are relative to.
    motions : sequence of MotionEntry

    Raises
    ------
    OSError
        The file cannot be written.
    MalformedData, ModelMismatch
        It is another file than a history of this model, or a motion has a number that none has.

    Notes
    -----
    Several processes may append to one file: it is locked meanwhile.
    """
    if not motions:
        return
    text = b''
    for each in motions:
        try:
            line = _line(_record(each))
            _motion_of(line, found.model.n)  # what would be skipped is not written
        except (ValueError, TypeError) as error:
            raise MalformedData('motion', each.source, f'finite numbers: {error}') from error
        text += line
    path = user_path(path)
    with _locked(path) as file:
        size = os.fstat(file).st_size
        if size == 0:
            text = _line(_heading(found)) + text
        else:
            first = os.pread(file, _LARGEST_LINE, 0).split(b'\n', 1)[0]
            _check_heading(first, found)
            if os.pread(file, 1, size - 1) != b'\n':
                text = b'\n' + text  # what a killed process left stays a line of its own
        _write(file, text)
        os.fsync(file)
        if size + len(text) > LARGEST:
            _thin_out(path, found)


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Give the file, opened to append and locked; the one that has this name once it is."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            # Another process may have replaced it by one that is thinned out.
            if path.exists() and _is_still(path, file):
                yield file
                return
        finally:
            os.close(file)


def _is_still(path: Path, file: int) -> bool:
    there, opened = path.stat(), os.fstat(file)
    return (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)


def _thin_out(path: Path, found: Identification) -> None:
    """Replace a file, which is locked, by one with every second motion between first and last."""
    motions = read_history(path, found).motions
    middle = motions[REFERENCE : max(REFERENCE, len(motions) - RECENT)]
    kept = [*motions[:REFERENCE], *middle[::2], *motions[REFERENCE + len(middle) :]]
    lines = [_line(_record(each)) for each in kept]
    # Room for what comes, or each motion would have the file thinned out again.
    while sum(map(len, lines)) > 0.75 * LARGEST and len(lines) > REFERENCE + 1:
        del lines[REFERENCE : (REFERENCE + len(lines) + 1) // 2]
    text = _line(_heading(found)) + b''.join(lines)
    # The file is locked: what has this name is left of a process that was killed meanwhile.
    other = path.with_name(f'.{path.name}.thinned')
    other.unlink(missing_ok=True)
    file = os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        _write(file, text)
        os.fsync(file)
        os.replace(other, path)
    except BaseException:
        other.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


# --- lines ---------------------------------------------------------------------------------------


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, allow_nan=False, separators=(',', ':')).encode() + b'\n'


def _heading(found: Identification) -> dict[str, Any]:
    return {
        'format': _FORMAT,
        'kinematics': found.kinematics,
        'baseline': baseline_digest(found),
        'joints': list(found.model.joint_names),
    }


def _record(motion: MotionEntry) -> dict[str, Any]:
    terms = {each.name: _plain(getattr(motion.terms, each.name)) for each in fields(MotionTerms)}
    others = {
        'source': motion.source[:_LONGEST_TEXT],
        'stamp': motion.stamp,
        'since_start': _plain(motion.since_start),
        'temperature': _plain(motion.temperature),
    }
    return {**others, **terms}


def _plain(value: Any) -> Any:
    """Return a value for JSON: unknown numbers as null, others as they are, bit by bit."""
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value.tolist()]
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _history_of(content: bytes, found: Identification) -> History:
    if (count := content.count(b'\n')) > _MOST_LINES:
        raise UnreadableSource('history', Phrase(f'{count} lines'), f'{_MOST_LINES} at most')
    lines = content.split(b'\n')
    last = lines.pop()
    if not lines and not last:
        return History()
    _check_heading(lines[0] if lines else last, found)
    motions, skipped, why = [], 0, ''
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        try:
            motions.append(_motion_of(line, found.model.n))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            skipped += 1
            why = why or f'line {number}: {str(error)[:_LONGEST_TEXT]!r}'
    findings = []
    if skipped:
        message = (
            f'{skipped} of {len(lines) - 1} lines of the history hold no motion and were '
            f'skipped; {why}'
        )
        findings.append(warning('unreadable_lines', 'history', skipped, message))
    if lines and last:
        message = (
            'the last line of the history is torn, as a killed process leaves it, and was skipped'
        )
        findings.append(note('torn_line', 'history', len(last), message))
    return History(tuple(motions), tuple(findings))


def _check_heading(line: bytes, found: Identification) -> None:
    try:
        heading = _parsed(line)
        form = heading['format']
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise MalformedData('history', line[:80], f'a first line {_FORMAT!r}') from error
    if form != _FORMAT:
        raise MalformedData('history', form, repr(_FORMAT))
    if heading.get('kinematics') != found.kinematics:
        raise ModelMismatch('history', heading.get('joints'), 'one of this arm')
    if heading.get('baseline') != baseline_digest(found):
        raise ModelMismatch(
            'history', heading.get('baseline'), 'one that is relative to this identified model'
        )


def _parsed(line: bytes) -> dict[str, Any]:
    if len(line) > _LARGEST_LINE:
        raise ValueError(f'{len(line)} bytes')
    result = json.loads(line.decode('utf-8'), parse_constant=_refused)
    if not isinstance(result, dict):
        raise TypeError(f'{type(result).__name__}, no mapping')
    return result


def _refused(word: str) -> float:
    raise ValueError(f'{word}, which is not finite')


def _motion_of(line: bytes, n: int) -> MotionEntry:
    record = _parsed(line)
    terms: dict[str, Any] = {}
    for name, hint in _HINTS.items():
        value = record[name]
        if hint is str:
            terms[name] = _text(value)
        elif hint is float:
            terms[name] = _number(value)
        else:
            shape = tuple(n if k < 0 else k for k in _SHAPES.get(name, (-1,)))
            terms[name] = _array(name, value, shape)
    return MotionEntry(
        MotionTerms(**terms),
        _text(record['source']),
        _number(record['stamp']),
        *(
            float('nan') if record[name] is None else _number(record[name])
            for name in ('since_start', 'temperature')
        ),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise TypeError(f'{type(value).__name__}, no short text')
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f'{type(value).__name__}, no number')
    if not abs(value) <= _LARGEST_NUMBER:
        raise ValueError(f'{value!r:.40}, which no motion has')
    return float(value)


def _array(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of finite numbers; null is NaN."""
    if not isinstance(value, list) or len(value) != shape[0]:
        raise ValueError(f'{name} is not of shape {shape}')
    if len(shape) > 1:
        result = np.stack([_array(name, row, shape[1:]) for row in value])
    else:
        result = np.array([math.nan if each is None else _number(each) for each in value])
    result.setflags(write=False)
    return result
