# SPDX-License-Identifier: Apache-2.0
"""
Recordings: the motion and efforts of an arm from which a model is identified.

They are read from CSV files and ROS bags. Corrupt samples are dropped and counted, never repaired.
"""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.arguments import checked_type, float_array
from robodyn_ros.description.records import Finding, note, warning
from robodyn_ros.description.source import refuse_device
from robodyn_ros.errors import (
    InsufficientRecording,
    InvalidArgument,
    MalformedData,
    NoSuchName,
    Phrase,
    UnreadableSource,
    in_file,
)
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.motions.bag import OpenedBag, is_bag, opened_bag
from robodyn_ros.motions.csv_text import of_another_separator
from robodyn_ros.motions.possible_positions import PossiblePositions
from robodyn_ros.motions.stamps import check_stamps_of_samples
from robodyn_ros.motions.velocity_check import velocity_findings
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

_A_RECORDING = "a Recording, as Recording.from_bag('motion.mcap', model), or several"

_BoolArray = NDArray[np.bool_]
# Time, position, velocity and effort.
_Samples = tuple[FloatArray, FloatArray, FloatArray | None, FloatArray]

# No joint's position [rad or m] or velocity [per s] has such numbers.
_LARGEST_POSITION = 1e4
_LARGEST_VELOCITY = 1e3
# A value so many times further from the median than all but 0.5 % of the others is no measurement.
_OUTLYING = 50.0
_ORDINARY = 99.5
# A joint does not jump by so much [rad or m] at such a velocity [per s].
_JUMP = 0.05
_JUMP_VELOCITY = 30.0
_MOST_JUMPS = 0.02
_MOST_BACKWARDS = 0.05
_MOST_IMPOSSIBLE = 0.02
# A bag may have each state twice; more samples of one stamp are those of a coarse clock.
_MOST_REPEATED = 0.6
_LEAST_SAMPLES = 2
# Below this velocity [rad/s or m/s] stiction decides what a joint's drive has to do.
STANDSTILL = 0.02
# An effort is clipped if more than this part of a joint's moving samples have its largest value,
# and so many times as many as have the next value. Efforts of fewer values have a coarse unit.
_CLIPPED, _HEAPED, _LEVELS = 0.01, 5.0, 20
_MOVES_WITHIN = 0.05  # s before and after a sample
_TIME = 'time'
_VELOCITY = '.velocity'
_EFFORT = '.effort'
_TORQUE = '.torque'
_MOST_NAMED = 20
_TYPE = 'sensor_msgs/msg/JointState'
_NANOSECOND = 1e-9
# How many messages of a topic are looked at for the names of its joints.
_MESSAGES_FOR_NAMES = 50


@dataclass(frozen=True, eq=False, repr=False)
class Recording(Record):
    """
    Positions, velocities and efforts of n joints at N times.

    Corrupt samples are dropped when it is made, and counted in ``findings``.

    Parameters
    ----------
    joint_names : sequence of n str
    time : array-like, shape (N,)
        Stamps [s]; they may jitter.
    position : array-like, shape (N, n)
        [rad or m]
    velocity : array-like, shape (N, n), or None
        [rad/s or m/s]; None, or NaN throughout, where the driver reports none.
    effort : array-like, shape (N, n)
        In the drives' unit; taken as N m or N where no ``effort_scale`` is given.
    findings : tuple of Finding
        What was wrong with the samples.

    Raises
    ------
    InvalidArgument
        Naming the array.
    InsufficientRecording
        There is no effort, or nothing but zeros.
    MalformedData
        Too few samples are left, stamps run backwards or are not in seconds, or positions jump.
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None
    effort: FloatArray
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        names = tuple(self.joint_names)
        time = _array('time', self.time, (None,))
        shape = (len(time), len(names))
        position = _array('position', self.position, shape)
        effort = _array('effort', self.effort, shape)
        velocity = None if self.velocity is None else _array('velocity', self.velocity, shape)
        if velocity is not None and not np.isfinite(velocity).any(axis=0).all():
            velocity = None
        sound, findings = _usable_samples(names, time, position, velocity, effort)
        arrays = {
            'time': time[sound],
            'position': position[sound],
            'velocity': None if velocity is None else velocity[sound],
            'effort': effort[sound],
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        object.__setattr__(self, 'joint_names', names)
        object.__setattr__(self, 'findings', (*self.findings, *findings))
        super().__post_init__()

    def __repr__(self) -> str:
        return (
            f'Recording({len(self.joint_names)} joints, {len(self.time)} samples, '
            f'{self.duration:.3g} s)'
        )

    @property
    def duration(self) -> float:
        """From the first to the last sample [s]."""
        return float(self.time[-1] - self.time[0])

    @classmethod
    def from_csv(cls, path: str | Path, model: RobotModel) -> Recording:
        """
        Return the recording of the model's joints in a CSV file.

        Columns ``time`` [s], ``<joint>`` [rad or m], ``<joint>.effort`` and, where the driver
        reports it, ``<joint>.velocity`` [rad/s or m/s], in any order; others are ignored.

        Raises
        ------
        UnreadableSource
            No such file, or no text.
        NoSuchName
            A joint of the model has no column: another robot's recording.
        InsufficientRecording
            No column of efforts, or nothing but zeros.
        MalformedData
            A column is repeated, too few samples are sound, stamps are not in seconds, positions
            or velocities are in degrees or millimetres, or velocities are those of other joints.
        """
        names = checked_model(model).joint_names
        return _in_known_units(cls, model, _samples_of_csv(_path(path), names))

    @classmethod
    def from_bag(cls, path: str | Path, model: RobotModel, topic: str | None = None) -> Recording:
        """
        Return the recording of the model's joints in a ROS bag, sqlite3 or MCAP.

        Parameters
        ----------
        path : str or Path
            A bag's folder or file; read by rosbags, no ROS is needed.
        model : RobotModel
        topic : str, optional
            Of its joint states; where not given, the only one that names the model's joints.

        Raises
        ------
        UnreadableSource
            No such bag, or rosbags is not installed.
        NoSuchName
            No topic names all of the model's joints.
        InsufficientRecording
            Its messages have no efforts, or nothing but zeros.
        MalformedData
            Several topics name the joints, as with two robots, too few samples are sound,
            positions or velocities are in degrees or millimetres, or velocities are those of other
            joints.
        """
        names = checked_model(model).joint_names
        return _in_known_units(cls, model, _samples_of_bag(_path(path), names, topic))

    def of_joints(self, joint_names: tuple[str, ...]) -> Recording:
        """
        Return the recording with these joints only, in this order.

        Raises
        ------
        NoSuchName
            One is not recorded.
        """
        if joint_names == self.joint_names:
            return self
        for name in joint_names:
            if name not in self.joint_names:
                known = ', '.join(map(repr, self.joint_names))
                raise NoSuchName('recording', Phrase(f'no joint {name!r}'), f'it has {known}')
        order = [self.joint_names.index(name) for name in joint_names]
        velocity = None if self.velocity is None else self.velocity[:, order]
        return Recording(
            joint_names,
            self.time,
            self.position[:, order],
            velocity,
            self.effort[:, order],
            self.findings,
        )

    def between(self, start: float, end: float) -> Recording:
        """Return the samples with stamps from ``start`` to before ``end`` [s]."""
        return samples_of(self, (self.time >= start) & (self.time < end))


def samples_of(recording: Recording, chosen: _BoolArray) -> Recording:
    """Return some samples of a recording, chosen by an array of bool (N,)."""
    velocity = None if recording.velocity is None else recording.velocity[chosen]
    return Recording(
        recording.joint_names,
        recording.time[chosen],
        recording.position[chosen],
        velocity,
        recording.effort[chosen],
        recording.findings,
    )


def recording_of_file(path: Path, model: RobotModel, topic: str | None = None) -> Recording:
    """Return the recording in a CSV file or a bag, which its findings name."""
    with in_file(path):
        if is_bag(path):
            recording = Recording.from_bag(path, model, topic)
        else:
            recording = Recording.from_csv(path, model)
    named = (replace(x, message=f'file {path.name!r}: {x}') for x in recording.findings)
    object.__setattr__(recording, 'findings', tuple(named))
    return recording


def clipped(recording: Recording) -> _BoolArray:
    """Return where efforts stay at the largest or smallest value of a motion, of bool (N, n)."""
    time = recording.time
    # Over a tenth of a second: an encoder's step, and none for some samples, say nothing.
    first, last = (
        np.minimum(np.searchsorted(time, time + each), len(time) - 1)
        for each in (-_MOVES_WITHIN, _MOVES_WITHIN)
    )
    way = np.abs(recording.position[last] - recording.position[first])
    moves = way > STANDSTILL * (time[last] - time[first])[:, None]
    result = np.zeros(recording.effort.shape, dtype=bool)
    for j, effort in enumerate(recording.effort.T):
        values, counts = np.unique(effort[moves[:, j]], return_counts=True)
        if len(values) < _LEVELS:
            continue  # a coarse unit
        for end, beside in ((0, 1), (-1, -2)):
            least = max(_CLIPPED * counts.sum(), _HEAPED * counts[beside])
            if values[end] and counts[end] > least:
                result[:, j] |= effort == values[end]
    return result


def checked_recordings(name: str, given: Recording | Sequence[Recording]) -> list[Recording]:
    """
    Return an argument that is one recording or several, as a list.

    Velocities that are not those of the positions are left out, and ``findings`` name them and
    the efforts that are clipped.

    Raises
    ------
    WrongType, InvalidArgument
        It is something else, or none.
    MalformedData
        Velocities are in degrees or millimetres, or those of other joints.
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        given = [checked_type(name, given, Recording, _A_RECORDING)]
    recordings = list(given)
    if not recordings:
        raise InvalidArgument(f'argument {name}', Phrase('none'), 'one recording at least')
    for each in recordings:
        checked_type(name, each, Recording, _A_RECORDING)
    return [_examined(each) for each in recordings]


def findings_of(recordings: Sequence[Recording]) -> tuple[Finding, ...]:
    """Return what was wrong with the samples of recordings."""
    return tuple(finding for each in recordings for finding in each.findings)


def _path(path: str | Path) -> Path:
    return Path(checked_type('path', path, (str, Path), 'a path'))


def _array(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    array = float_array(name, values)
    if array.ndim != len(shape) or any(b not in (None, a) for a, b in zip(array.shape, shape)):
        allowed = f'shape {shape}' if None not in shape else 'shape (N,)'
        raise InvalidArgument(f'argument {name}', Phrase(f'shape {array.shape}'), allowed)
    return array


def _in_known_units(cls: type[Recording], model: RobotModel, samples: _Samples) -> Recording:
    """Return the recording of samples, those dropped that the arm cannot have, if they are few."""
    time, position, velocity, effort = samples
    possible = PossiblePositions.of(model)
    beyond = ((position < possible.lowest) | (position > possible.highest)).any(axis=1)
    if beyond.sum() > _MOST_IMPOSSIBLE * len(beyond):
        possible.check('sample', position)
    position = np.where(beyond[:, None], np.nan, position)
    return _examined(cls(model.joint_names, time, position, velocity, effort))


def _examined(recording: Recording) -> Recording:
    """Return a recording without its velocities where one is wrong, and with findings."""
    time, velocity = recording.time, recording.velocity
    found = [
        warning(
            'effort_clipped',
            f'effort of joint {name!r}',
            float(f'{part:.3g}'),
            f'effort of joint {name!r} stays at its largest value at {part:.0%} of the samples: '
            'the torque may be larger. Bodies are not identified from these',
        )
        for name, part in zip(recording.joint_names, clipped(recording).mean(axis=0), strict=True)
        if part and 'effort_clipped' not in {x.code for x in recording.findings}
    ]
    if velocity is not None:
        wrong = velocity_findings(recording.joint_names, time, recording.position, velocity)
        velocity = None if wrong else velocity
        found += wrong
    if not found:
        return recording
    return replace(recording, velocity=velocity, findings=(*recording.findings, *found))


# --- corrupt samples -----------------------------------------------------------------------------


def _usable_samples(
    joint_names: Sequence[str],
    time: FloatArray,
    position: FloatArray,
    velocity: FloatArray | None,
    effort: FloatArray,
) -> tuple[_BoolArray, tuple[Finding, ...]]:
    """
    Return which samples can be used, array of bool (N,), and what was wrong with the others.

    A sample is corrupt where a number of it is not finite, is one that no arm has, or lies 50
    times further from the median than others do. Of stamps that run backwards the longest
    increasing series is kept.

    Parameters
    ----------
    joint_names : sequence of n str
    time : array, shape (N,)
        [s]
    position : array, shape (N, n)
        [rad or m]
    velocity : array, shape (N, n), or None
        [rad/s or m/s]
    effort : array, shape (N, n)
        In the drives' unit.

    Raises
    ------
    InsufficientRecording
        No sample of a joint's effort is a number, or all joints' are zero.
    MalformedData
        Too few samples are left, stamps run backwards again and again, or positions jump as those
        of two robots do.
    """
    _check_effort(joint_names, effort)
    sound = np.isfinite(time) & _plausible(position, _LARGEST_POSITION) & _plausible(effort)
    if velocity is not None:
        _check_size(joint_names, velocity)
        sound &= _plausible(velocity, _LARGEST_VELOCITY)
    sound[sound] = _plausible_stamps(time[sound])
    corrupt = int((~sound).sum())
    if sound.sum() < _LEAST_SAMPLES:
        raise MalformedData('recording', Phrase(f'{sound.sum()} sound samples'), 'at least two')
    findings = []
    if corrupt:
        finding = warning if corrupt > len(time) // 100 else note
        message = f'{corrupt} of {len(time)} samples are corrupt and were dropped'
        findings.append(finding('corrupt_samples', 'recording', corrupt, message))
    stamps = time[sound]
    backwards = int((np.diff(stamps) < 0).sum())
    if backwards > max(3.0, _MOST_BACKWARDS * len(stamps)):
        raise MalformedData(
            'time', Phrase(f'runs backwards {backwards} times'), 'stamps that increase'
        )
    kept = _increasing(stamps)
    lost = len(stamps) - int(kept.sum())
    if backwards:
        if lost > max(3.0, _MOST_BACKWARDS * len(stamps)):
            raise MalformedData(
                'time',
                Phrase(f'{lost} of {len(stamps)} stamps lie before others'),
                'stamps that increase',
            )
        message = f'{lost} samples are stamped out of order and were dropped'
        findings.append(warning('stamps_backwards', 'time', lost, message))
    elif lost > _MOST_REPEATED * len(stamps):
        message = f'{lost} of {len(stamps)} samples have the stamp of another and were dropped'
        findings.append(warning('stamps_repeated', 'time', lost, message))
    sound[sound] = kept
    check_stamps_of_samples(stamps[kept])
    _check_jumps(joint_names, time[sound], position[sound])
    return sound, tuple(findings)


def _check_effort(joint_names: Sequence[str], effort: FloatArray) -> None:
    for name, column in zip(joint_names, effort.T, strict=True):
        if not np.isfinite(column).any():
            raise InsufficientRecording(
                f'effort of joint {name!r}', Phrase('no numbers'), 'measured efforts'
            )
    if not np.nan_to_num(effort).any():
        raise InsufficientRecording(
            'effort', Phrase('zero in all samples of all joints'), 'measured efforts'
        )


def _check_size(joint_names: Sequence[str], velocity: FloatArray) -> None:
    often = (np.abs(velocity) > _LARGEST_VELOCITY).mean(axis=0)
    worst = int(often.argmax())
    if often[worst] > _MOST_IMPOSSIBLE:
        raise MalformedData(
            f'velocity of joint {joint_names[worst]!r}',
            Phrase(f'more than {_LARGEST_VELOCITY:g} per s at {often[worst]:.0%} of the samples'),
            'a velocity that an arm can have: in another unit?',
        )


def _plausible(values: FloatArray, largest: float = np.inf) -> _BoolArray:
    """Return which rows (N,) hold finite numbers, none of them out of all proportion."""
    finite = np.isfinite(values) & (np.abs(np.nan_to_num(values)) <= largest)
    plausible: _BoolArray = np.asarray(finite.all(axis=1))
    if plausible.any():
        middle = np.median(values[plausible], axis=0)
        distance = np.abs(np.where(finite, values, middle) - middle)
        # A column that hardly ever moves has no spread to compare with: 1 in its place.
        ordinary = np.percentile(distance[plausible], _ORDINARY, axis=0)
        plausible &= (distance <= _OUTLYING * np.where(ordinary > 0, ordinary, 1.0)).all(axis=1)
    return plausible


def _plausible_stamps(time: FloatArray) -> _BoolArray:
    if len(time) < _LEAST_SAMPLES:
        return np.ones(len(time), dtype=bool)
    first, last = np.percentile(time, (5.0, 95.0))
    span = max(last - first, 1e-9)
    return np.asarray((time >= first - span) & (time <= last + span))


def _increasing(time: FloatArray) -> _BoolArray:
    """Return which entries make up the longest strictly increasing series."""
    kept = np.ones(len(time), dtype=bool)
    if (np.diff(time) > 0).all():
        return kept
    # Patience sorting: the last entry of the best series of each length, and who came before it.
    tails: list[float] = []
    ends: list[int] = []
    before = np.full(len(time), -1)
    for k, stamp in enumerate(time.tolist()):
        length = bisect_left(tails, stamp)
        before[k] = ends[length - 1] if length else -1
        tails[length : length + 1] = [stamp]
        ends[length : length + 1] = [k]
    kept[:] = False
    k = ends[-1]
    while k >= 0:
        kept[k] = True
        k = int(before[k])
    return kept


def _check_jumps(joint_names: Sequence[str], time: FloatArray, position: FloatArray) -> None:
    if len(time) < _LEAST_SAMPLES:
        raise MalformedData('recording', Phrase(f'{len(time)} sound samples'), 'at least two')
    step = np.abs(np.diff(position, axis=0))
    jumps = (step > _JUMP) & (step > _JUMP_VELOCITY * np.diff(time)[:, None])
    often = jumps.mean(axis=0)
    worst = int(often.argmax())
    if jumps[:, worst].sum() > 2 and often[worst] > _MOST_JUMPS:
        raise MalformedData(
            f'position of joint {joint_names[worst]!r}',
            Phrase(f'jumps at {often[worst]:.0%} of the samples'),
            'the positions of one robot: are there two under the same names?',
        )


# --- CSV files -----------------------------------------------------------------------------------


def _samples_of_csv(path: Path, joint_names: Sequence[str]) -> _Samples:
    """
    Return time, position, velocity (or None) and effort of some joints, as the file has them.

    A field that is no number, and a row that is too short, become NaN.

    Raises
    ------
    UnreadableSource, NoSuchName, InsufficientRecording, MalformedData
        As ``Recording.from_csv`` says.
    """
    refuse_device(path, 'recording')
    try:
        with path.open(encoding='utf-8-sig', newline='') as file:
            rows = csv.reader(file)
            names = [field.strip() for field in next(filter(any, rows), [])]
            columns = _csv_columns(names, joint_names)
            table = csv_numbers(rows, columns)
    except (OSError, UnicodeDecodeError, MemoryError, csv.Error) as error:
        raise UnreadableSource('recording', str(path), f'a readable CSV file ({error})') from error
    n = len(joint_names)
    velocity = table[:, 1 + 2 * n :] if len(columns) > 1 + 2 * n else None
    return table[:, 0], table[:, 1 : 1 + n], velocity, table[:, 1 + n : 1 + 2 * n]


def _csv_columns(names: Sequence[str], joint_names: Sequence[str]) -> list[int]:
    """Return which columns hold time, positions, efforts and, if all are there, velocities."""
    shown = ', '.join(map(repr, names[:_MOST_NAMED])) or 'nothing'
    found = shown + of_another_separator(names)
    if _TIME not in names:
        raise MalformedData(f'column {_TIME!r}', Phrase('missing'), f'the header has {found}')
    for name in joint_names:
        if name not in names:
            raise NoSuchName('recording', Phrase(f'no column {name!r}'), f'the header has {found}')
    efforts = [f'{name}{_EFFORT}' for name in joint_names]
    for joint, name in zip(joint_names, efforts, strict=True):
        if name not in names:
            remedy = 'measured efforts'
            if (commanded := f'{joint}{_TORQUE}') in names:
                remedy += (
                    f': {commanded!r} is what robodyn simulate or retime commanded. Record '
                    f'the arm, or, for an arm that is simulated only, rename it to {name!r}'
                )
            raise InsufficientRecording(
                f'column {name!r}', Phrase('missing'), f'{remedy}; the header has {found}'
            )
    velocities = [f'{name}{_VELOCITY}' for name in joint_names]
    if not set(velocities) <= set(names):
        velocities = []
    wanted = [_TIME, *joint_names, *efforts, *velocities]
    for name in wanted:
        if names.count(name) > 1:
            raise MalformedData(f'column {name!r}', Phrase('repeated'), 'each name once')
    return [names.index(name) for name in wanted]


def csv_numbers(rows: Iterable[list[str]], columns: Sequence[int]) -> FloatArray:
    """Return some columns of rows, NaN for what is no number; rows without a field are none."""
    table = []
    for row in rows:
        if not any(row):
            continue
        try:
            table.append([float(row[k]) for k in columns])
        except (ValueError, IndexError):
            table.append([_csv_number(row, k) for k in columns])
    return np.array(table, dtype=float).reshape(-1, len(columns))


def _csv_number(row: list[str], k: int) -> float:
    try:
        return float(row[k])
    except (ValueError, IndexError):
        return np.nan


# --- ROS bags ------------------------------------------------------------------------------------


def _samples_of_bag(path: Path, joint_names: Sequence[str], topic: str | None) -> _Samples:
    """
    Return time from the first sample on, position, velocity (or None) and effort of some joints.

    A driver may publish a joint state in parts: a sample is taken whenever all joints have been
    heard since the last one. What a message lacks is NaN.

    Raises
    ------
    UnreadableSource, NoSuchName, InsufficientRecording, MalformedData
        As ``Recording.from_bag`` says.
    """
    with opened_bag(path) as reader:
        chosen = _bag_connections(reader, joint_names, topic)
        samples = list(_joint_states(reader, chosen, joint_names))
    if not samples:
        joints = ', '.join(map(repr, joint_names))
        raise MalformedData(
            'bag', Phrase('no complete joint state'), f'messages that name {joints}'
        )
    stamps = np.array([stamp for stamp, _ in samples])
    states = np.array([state for _, state in samples], dtype=float)
    position, velocity, effort = np.moveaxis(states, 2, 0)
    return (stamps - stamps.min()) * _NANOSECOND, position, velocity, effort


def _bag_connections(
    reader: OpenedBag, joint_names: Sequence[str], topic: str | None
) -> list[Any]:
    """Return the connections of the one topic that names all joints."""
    offered: dict[str, list[Any]] = {}
    for connection in reader.connections:
        if connection.msgtype == _TYPE:
            offered.setdefault(connection.topic, []).append(connection)
    if topic is not None and topic not in offered:
        raise MalformedData('topic', topic, f'one with joint states: {sorted(offered)}')
    topics = sorted(offered) if topic is None else [topic]
    named = {each: _names_on_topic(reader, offered[each]) for each in topics}
    complete = [each for each in topics if named[each] >= set(joint_names)]
    if not complete:
        missing = [name for name in joint_names if not any(name in x for x in named.values())]
        known = ', '.join(map(repr, sorted(set().union(*named.values()))))
        raise NoSuchName(
            'bag', Phrase(f'no joint {(missing or joint_names)[0]!r}'), f'it has {known}'
        )
    if len(complete) > 1:
        raise MalformedData(
            'bag', complete, 'one topic with the joint states of this arm: name it'
        )
    return offered[complete[0]]


def _names_on_topic(reader: OpenedBag, connections: list[Any]) -> set[str]:
    names: set[str] = set()
    for k, (connection, _, raw) in enumerate(reader.messages(connections=connections)):
        names.update(reader.deserialize(raw, connection.msgtype).name)
        if k >= _MESSAGES_FOR_NAMES:
            break
    return names


def _joint_states(
    reader: OpenedBag, connections: list[Any], joint_names: Sequence[str]
) -> Iterator[tuple[int, list[tuple[float, float, float]]]]:
    """Yield stamp [ns], and position, velocity and effort of each joint."""
    heard: dict[str, tuple[float, float, float]] = {}
    for connection, received, raw in reader.messages(connections=connections):
        message = reader.deserialize(raw, connection.msgtype)
        size = len(message.name)
        for name, *state in zip(
            message.name,
            message.position,
            message.velocity if len(message.velocity) == size else [np.nan] * size,
            message.effort if len(message.effort) == size else [np.nan] * size,
        ):
            if name in joint_names and np.isfinite(state[0]):
                heard[name] = (float(state[0]), float(state[1]), float(state[2]))
        if len(heard) == len(joint_names):
            stamp = message.header.stamp
            time = stamp.sec * 1_000_000_000 + stamp.nanosec or received
            yield time, [heard[name] for name in joint_names]
            heard = {}
