# SPDX-License-Identifier: Apache-2.0
"""Recordings cut into motions, when they were, and what each says of the drives."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from robodyn_ros.description.records import Finding
from robodyn_ros.description.source import refuse_device
from robodyn_ros.errors import InsufficientRecording, MalformedData, Phrase, RobodynError
from robodyn_ros.identification import Identification, Recording
from robodyn_ros.identification.preparation import STANDSTILL
from robodyn_ros.identification.recording import checked_recordings, recording_of_file
from robodyn_ros.monitoring.ageing import MotionEntry
from robodyn_ros.monitoring.motion_terms import motion_digest, motion_terms
from robodyn_ros.motions.bag import is_bag, opened_bag
from robodyn_ros.spatial import FloatArray

LONGEST, SHORTEST = 40.0, 4.0
"""How long the pieces are that one fit is made of [s]."""

_STAND = 1.0  # s, after which another motion begins
_LOOK = 0.5  # s, over which positions are compared with velocities of the standstill
_TEMPERATURE = 'sensor_msgs/msg/Temperature'
_SINCE_1990 = 6.3e8  # s; stamps before count from something else than 1970
_YEAR_9000 = 2.2e11  # s


@dataclass(frozen=True)
class Clock:
    """
    When a recording was made, since when the drives are on, how warm they are; as far as known.

    Attributes
    ----------
    epoch : float
        The recording's time zero [s since 1970]; 0: its stamps are all that is known.
    started : float
        When the drives were switched on, by the recording's time [s]; NaN: unknown.
    temperature : tuple of (float, float)
        Times by the recording [s] and temperatures of the drives [°C]; empty: unknown.
    """

    epoch: float = 0.0
    started: float = float('nan')
    temperature: tuple[tuple[float, float], ...] = ()

    def since_start(self, time: float) -> float:
        """Return how long the drives had been on [s]; NaN: unknown, or the clocks disagree."""
        elapsed = time - self.started
        return elapsed if elapsed >= 0.0 else float('nan')

    def temperature_between(self, start: float, end: float) -> float:
        """Return the mean temperature from one time to another [°C]; NaN where none was heard."""
        heard = [value for time, value in self.temperature if start <= time <= end]
        return float(np.mean(heard)) if heard else float('nan')


UNKNOWN = Clock()


@dataclass(frozen=True)
class Examined:
    """
    What was made of a recording.

    Attributes
    ----------
    motions : tuple of MotionEntry
    warnings : tuple of Finding
        What is wrong with its samples.
    refused : tuple of str
        Why pieces of it say nothing.
    known : int
        How many motions of it had been counted before.
    """

    motions: tuple[MotionEntry, ...]
    warnings: tuple[Finding, ...] = ()
    refused: tuple[str, ...] = ()
    known: int = 0


def cut_into_motions(recording: Recording) -> tuple[Recording, ...]:
    """
    Return the motions of a recording, cut where all joints stand for a second.

    Long ones are cut into equal pieces of ``LONGEST`` at most; shorter ones than ``SHORTEST`` are
    left out.

    Parameters
    ----------
    recording : Recording
    """
    time = recording.time
    velocity = recording.velocity
    if velocity is None:
        velocity = np.gradient(recording.position, time, axis=0)
    moving = time[(np.abs(velocity) > STANDSTILL).any(axis=1)]
    if not len(moving):
        return ()
    pauses = np.flatnonzero(np.diff(moving) > _STAND)
    firsts = np.concatenate([[moving[0]], moving[pauses + 1]])
    lasts = np.concatenate([moving[pauses], [moving[-1]]])
    pieces = []
    for first, last in zip(firsts.tolist(), lasts.tolist()):
        if last - first < SHORTEST:
            continue
        edges = np.linspace(first, last, int(np.ceil((last - first) / LONGEST)) + 1)
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist()):
            try:
                pieces.append(recording.between(start, end))
            except RobodynError:  # hardly a sample of it is sound
                continue
    return tuple(pieces)


def examined(
    found: Identification,
    recording: Recording,
    source: str,
    clock: Clock = UNKNOWN,
    known: Collection[str] = (),
) -> Examined:
    """
    Return what the motions of a recording say of the drives.

    Parameters
    ----------
    found : Identification
        The baseline.
    recording : Recording
    source : str
        Name of the recording.
    clock : Clock
    known : collection of str
        Digests of motions that have been counted, which are left out.

    Raises
    ------
    NoSuchName
        A joint of the model is not recorded.
    MalformedData
        Velocities are in degrees or millimetres, or those of other joints.
    InsufficientRecording
        No motion of it says anything.
    """
    (recording,) = checked_recordings('recording', recording)
    motions, refused = [], []
    pieces = cut_into_motions(recording.of_joints(found.model.joint_names))
    seen = 0
    for piece in pieces:
        if motion_digest(piece) in known:
            seen += 1
            continue
        try:
            terms = motion_terms(found, piece)
        except InsufficientRecording as error:
            refused.append(f'{source}: {error}')
            continue
        start, end = float(piece.time[0]), float(piece.time[-1])
        motions.append(
            MotionEntry(
                terms,
                source,
                clock.epoch + start,
                clock.since_start(0.5 * (start + end)),
                clock.temperature_between(start, end),
            )
        )
    if not pieces:
        raise InsufficientRecording(
            'recording', Phrase('no motion'), f'one of {SHORTEST:g} s at least, the arm moving'
        )
    warnings = tuple(each for each in recording.findings if each.level == 'warning')
    return Examined(tuple(motions), warnings, tuple(refused), seen)


def is_date(stamp: float) -> bool:
    """Return whether a stamp counts from 1970, and so is a date."""
    return _SINCE_1990 < stamp < _YEAR_9000


# --- samples as they come -----------------------------------------------------------------------


class MotionCollector:
    """
    Collects samples until a motion is over: all joints stood for a second, or it lasts too long.

    Parameters
    ----------
    joint_names : tuple of n str
    least_step : float
        Between two samples that are kept [s].
    """

    def __init__(self, joint_names: tuple[str, ...], least_step: float = 0.0) -> None:
        self._names, self._least_step = joint_names, least_step
        self._samples: list[tuple[float, FloatArray]] = []
        self._moved = -np.inf
        self._compared: tuple[float, FloatArray] | None = None

    def add(
        self, time: float, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> Recording | None:
        """
        Take a sample, and return the motion that is over with it, if one is.

        Parameters
        ----------
        time : float
            Its stamp [s]; one that goes back begins anew.
        position, velocity, effort : array, shape (n,)
            [rad or m], [rad/s or m/s], the drives' unit. A sample is left out whose position or
            effort is not finite. Velocities may be NaN, or wrong: positions, too, show a movement.

        Raises
        ------
        RobodynError
            The samples of the motion that is over are of no use, as ``Recording`` says.
        """
        if not np.isfinite([position, effort]).all():
            return None
        row = np.stack([position, velocity, effort])
        samples = self._samples
        if samples and time < samples[-1][0]:
            self.forget()
            samples = self._samples
        if samples and time - samples[-1][0] < self._least_step:
            return None
        has_moved = self._has_moved(time, position)
        if has_moved or (np.abs(velocity) > STANDSTILL).any():
            self._moved = time
        elif time - self._moved > _STAND:
            return self._finished()
        samples.append((time, row))
        if time - samples[0][0] > LONGEST:
            return self._finished()
        return None

    def forget(self) -> None:
        """Drop what was collected."""
        self._samples, self._moved = [], -np.inf

    def _has_moved(self, time: float, position: FloatArray) -> bool:
        """Return whether positions changed since they were last compared, ``_LOOK`` ago."""
        before, there = self._compared or (time, position)
        elapsed = time - before
        if self._compared is None or not 0.0 <= elapsed < _LOOK:
            self._compared = time, position
        return elapsed >= _LOOK and bool((np.abs(position - there) > STANDSTILL * elapsed).any())

    def _finished(self) -> Recording | None:
        samples = self._samples
        self.forget()
        if len(samples) < 2 or samples[-1][0] - samples[0][0] < SHORTEST:
            return None
        time = np.array([stamp for stamp, _ in samples])
        position, velocity, effort = np.moveaxis(np.array([row for _, row in samples]), 1, 0)
        return Recording(self._names, time, position, velocity, effort)


class CommandedEfforts:
    """
    Brings states and the torques that were commanded upon them together, by their stamps.

    Parameters
    ----------
    most : int
        States, and torques, that wait for each other; the oldest are dropped beyond.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._states: deque[tuple[float, FloatArray, FloatArray]] = deque(maxlen=most)
        self._efforts: deque[tuple[float, FloatArray]] = deque(maxlen=most)
        self._newest = -np.inf

    def take_state(self, stamp: float, position: FloatArray, velocity: FloatArray) -> None:
        """Take a state, (n,) each [rad or m], [rad/s or m/s], with its stamp [s]."""
        self._states.append((stamp, position, velocity))

    def take_effort(self, stamp: float, effort: FloatArray) -> None:
        """Take a torque (n,) with the stamp of its state [s]; one that goes back begins anew."""
        if stamp < self._newest:
            self._states.clear()
            self._efforts.clear()
        self._newest = stamp
        self._efforts.append((stamp, effort))

    def samples(self) -> Iterator[tuple[float, FloatArray, FloatArray, FloatArray]]:
        """
        Return stamp, position, velocity and effort of the states whose torque has come, once each.

        A state without a torque, though that of a later one has come, is left out.
        """
        states, efforts = self._states, self._efforts
        while states and states[0][0] <= self._newest:
            stamp, position, velocity = states.popleft()
            while efforts and efforts[0][0] < stamp:
                efforts.popleft()
            if efforts and efforts[0][0] == stamp:
                yield stamp, position, velocity, efforts.popleft()[1]


# --- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileJob:
    """
    A recording to examine in any process.

    Attributes
    ----------
    path : Path
        A bag or a CSV file.
    model : Path
        The identified model, as ``robodyn identify`` writes it.
    topic : str or None
        Of a bag's joint states.
    started : float
        When the drives were switched on [s since 1970]; NaN: unknown.
    temperature_topic : str or None
        Of a bag's ``sensor_msgs/msg/Temperature``.
    known : frozenset of str
        Digests of motions that have been counted.
    """

    path: Path
    model: Path
    topic: str | None = None
    started: float = float('nan')
    temperature_topic: str | None = None
    known: frozenset[str] = frozenset()


def examined_file(job: FileJob) -> Examined:
    """
    Return what the motions in a file say of the drives.

    Raises
    ------
    RobodynError
        As ``Identification.load``, ``recording_of_file`` and ``examined`` say.
    """
    found = _loaded(job.model)
    recording = recording_of_file(job.path, found.model, job.topic)
    clock = clock_of_file(job.path, job.started, job.temperature_topic)
    return examined(found, recording, job.path.name, clock, job.known)


@lru_cache(maxsize=4)
def _loaded(path: Path) -> Identification:
    return Identification.load(path)


def clock_of_file(path: Path, started: float, temperature_topic: str | None = None) -> Clock:
    """
    Return what a file says of times and temperatures.

    A CSV file may have the columns ``since_start`` [s] and ``temperature`` [°C]; a bag has the
    times of receipt, and a topic of temperatures where one is named.

    Parameters
    ----------
    path : Path
    started : float
        When the drives were switched on [s since 1970]; NaN: unknown.
    temperature_topic : str, optional

    Raises
    ------
    UnreadableSource, MalformedData
    """
    if not is_bag(path):
        clock = _clock_of_csv(path)
        return clock if np.isnan(started) else replace(clock, started=started)
    with opened_bag(path) as reader:
        of_topic = [x for x in reader.connections if x.topic == temperature_topic]
        if temperature_topic is not None and (
            not of_topic or any(x.msgtype != _TEMPERATURE for x in of_topic)
        ):
            offered = sorted({x.topic for x in reader.connections if x.msgtype == _TEMPERATURE})
            raise MalformedData('topic', temperature_topic, f'one of temperatures: {offered}')
        first = next((received for _, received, _ in reader.messages()), 0)
        heard = []
        for connection, received, raw in reader.messages(connections=of_topic) if of_topic else ():
            value = float(reader.deserialize(raw, connection.msgtype).temperature)
            if np.isfinite(value):
                heard.append((1e-9 * (received - first), value))
    epoch = 1e-9 * first
    return Clock(epoch, started - epoch, tuple(heard))


def _clock_of_csv(path: Path) -> Clock:
    refuse_device(path, 'recording')
    started, heard = float('nan'), []
    with path.open(encoding='utf-8-sig', newline='') as file:
        rows = csv.reader(file)
        names = [field.strip() for field in next(rows, [])]
        if not {'since_start', 'temperature'} & set(names) or 'time' not in names:
            return UNKNOWN
        for row in rows:
            given = dict(zip(names, row))
            time, since, temperature = (
                _number(given.get(name)) for name in ('time', 'since_start', 'temperature')
            )
            if np.isfinite(since) and np.isnan(started):
                started = time - since
            if np.isfinite(temperature):
                heard.append((time, temperature))
    return Clock(0.0, started, tuple(heard))


def _number(field: str | None) -> float:
    try:
        return float(field) if field is not None else float('nan')
    except ValueError:
        return float('nan')
