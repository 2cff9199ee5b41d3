# SPDX-License-Identifier: Apache-2.0
"""
Recorded command streams: what the command pipeline did in 300 seeded sequences of events.

``event_sequences`` draws what happens. What an implementation has to offer is ``Driver``; nothing
else here knows the pipeline.

Recorded are the command of each cycle, in units of ``QUANTUM`` of each joint's effort limit (so
that a difference of ``TOLERANCE`` is seen in any joint of any cycle), which limits acted, the
state of the pipeline with its faults as codes, what each event was answered, and at every tenth
joint state the external torques. Numbers are kept as second differences, the rest as changes,
everything under xz.

    python test/support/command_streams.py --write           record all sequences anew
    python test/support/command_streams.py --check           replay all of them
    python test/support/command_streams.py --show ARM SEED   one sequence, event by event

Differences that a mended bug makes are listed in ``wanted_stream_differences.txt``.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from event_sequences import BEGIN, EventSequence, Message, Step, arms, drawn, every_sequence, plain

from robodyn_ros import Payload
from robodyn_ros.control import control_stack
from robodyn_ros.control.command_pipeline import Command
from robodyn_ros.control.joint_state_buffer import ElapsedTime
from robodyn_ros.control.load import GravityChange
from robodyn_ros.control.settings import PARAMETERS, checked
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import RobodynError

_CONTROL = Path(__file__).parent.parent / 'control'
FILE = _CONTROL / 'command_streams.xz'
WANTED = _CONTROL / 'wanted_stream_differences.txt'
QUANTUM = 4e-11
"""Of a joint's effort limit: the unit in which commands are kept."""

TOLERANCE = 1e-10
"""Of a joint's effort limit: a larger difference is one, a smaller one than half of it is none."""

ALGORITHM = 'newton_euler'
"""What is recorded: NumPy throughout, on any machine."""

_OBSERVED_EVERY = 10  # joint states
_FARTHEST = 1e6  # external torque that is recorded, in effort limits
_OBSERVED_ROUNDING = 1e-12  # of the largest external torque of a sequence


# --- who is driven -----------------------------------------------------------------------------


class Status(NamedTuple):
    """The state of a pipeline after a cycle, as short words; faults as code or code:joint."""

    enabled: bool
    fallback: str
    cause: str
    following: str
    mode: str
    fault: str
    drop: str
    refused_torques: int
    implausible_states: int
    following_errors: int
    dropped_references: int
    has_stopped: bool
    contact: str
    trouble: str


# What the pipeline says, and its code; a group is the joint.
_CODES = (
    ('^$', ''),
    ("gravity torque of joint '(.*)' here", 'overload'),
    ('a position changed faster than its joint can move', 'jump'),
    ("joint '(.*)' moves at", 'overspeed'),
    ("the joint states' stamps jumped", 'stamps'),
    ('velocities are no longer known', 'velocities'),
    ("joint '(.*)' is .* from its reference", 'following_error'),
    ('feedback began while the arm was far', 'far'),
    ('the mode is .* follows none', 'mode'),
    ("contact: .* at joint '(.*)', likely", 'contact'),
    ('no fresh state of (.*)', 'late'),
    ('no plausible state', 'implausible'),
    ('sources of joint states contradict each other', 'contradiction'),
    ('no finite torque', 'not_finite'),
    ('no control cycle in time', 'no_cycle'),
    ('the watchdog commanded meanwhile', 'taken_over'),
    ('joint states have no efforts', 'no_efforts'),
    ('in mode feedforward the drives', 'feedforward'),
    ('damping was switched off', 'damping'),
    ('joint states come at', 'slow'),
    ("velocity of joint '(.*)' .*: taken", 'wrong_velocity'),
)
# Parts of a sentence behind a semicolon that say nothing new.
_CONTINUED = ('allowed: ', 'are all velocities right')


def code(words: str) -> str:
    """Return the codes of what the pipeline says, each with the joint where it names one."""
    codes = []
    for part in words.split('; '):
        if part.startswith(_CONTINUED):
            continue
        matches = ((re.match(pattern, part), name) for pattern, name in _CODES)
        given = next(((found, name) for found, name in matches if found), None)
        if given is None:
            raise LookupError(f'no code for {part!r}: add it to _CODES')
        codes.append(':'.join([given[1], *given[0].groups()]))
    return '+'.join(codes)


class Driver:
    """
    What is driven: all that the streams need of a command pipeline, and the only user of it here.

    Parameters
    ----------
    sequence : EventSequence
        Whose arm and parameters are configured.
    algorithm : str
        Of the inverse dynamics: one of ``ALGORITHMS``.
    """

    def __init__(self, sequence: EventSequence, algorithm: str = ALGORITHM) -> None:
        arm = sequence.arm
        self.simulated_time = 0.0
        elapsed = ElapsedTime((lambda: self.simulated_time) if sequence.is_simulated else None)
        defaults = {parameter.name: parameter.default for parameter in PARAMETERS}
        self._values = {**defaults, **sequence.parameters, 'algorithm': algorithm}
        self._settings = checked(self._values)
        # As if a URDF and an identification had been read.
        found = control_stack.ConfiguredArm(arm.model, None, {}, arm.residual)
        with mock.patch.object(control_stack, 'configured_arm', return_value=found):
            self.stack = control_stack.build_control_stack(self._settings, None, elapsed)
        self.pipeline = self.stack.pipeline
        self._is_observed = sequence.is_observed

    # Cycles.

    def state(self, now: float, message: Message) -> Command | None:
        """Take in a joint state, as the node does."""
        joint_states, pipeline, monitor = (
            self.stack.joint_states,
            self.pipeline,
            self.stack.monitor,
        )
        joint_states.receive(
            message.names,
            message.position,
            message.velocity,
            received=now,
            stamp=message.stamp,
            age=message.age,
            effort=message.effort,
        )
        if not joint_states.is_complete:
            return None
        state, acting = joint_states.take(), pipeline.last_torque
        command = self._sent(pipeline.step(state, now), now)
        if command is not None and self._is_observed:
            contact = monitor.update(state, acting, pipeline.settings)
            if contact is not None and not contact.is_over:
                pipeline.react_to_contact(self._settings.on_contact, str(contact))
        return command

    def tick(self, now: float) -> Command | None:
        """Ask the watchdog."""
        return self._sent(self.pipeline.watchdog(now), now)

    def stop_command(self, now: float) -> Command | None:
        """Ask for the next command of the end."""
        return self._sent(self.pipeline.stop_command(now), now)

    def _sent(self, command: Command | None, now: float) -> Command | None:
        if command is not None:
            self.pipeline.sent(now + 5e-5)
        return command

    # Events; each returns what it was answered.

    def change(self, now: float, given: dict[str, Any]) -> str:
        """Change parameters."""
        self._values.update(given)
        self._settings = checked(self._values)
        control_stack.apply_settings(self.stack, self._settings)
        return ''

    def load(self, now: float, change: Payload | GravityChange) -> str:
        """Change payload or gravity."""
        return _answer(control_stack.apply_change, self.stack, change)

    def follow(self, now: float, trajectory: Trajectory) -> str:
        """Follow a trajectory."""
        return _answer(self.pipeline.follow, trajectory)

    def add_effort(self, now: float, names: tuple[str, ...], effort: list[float]) -> str:
        """Take in an effort that is to be added."""
        added = self.pipeline.added
        return '' if added is None or not added.receive(names, effort, now) else 'refused'

    def observe(self, now: float, is_observed: bool) -> str:
        """Begin to estimate external torques, or end."""
        if not is_observed:
            self.stack.monitor.reset()
        self._is_observed = is_observed
        return ''

    def enable(self, now: float) -> str:
        """Begin to command."""
        return _answer(self.pipeline.enable, now)

    def disable(self, now: float) -> str:
        """End commanding."""
        return _answer(self.pipeline.disable)

    def cancel(self, now: float) -> str:
        """Follow nothing any more."""
        return _answer(self.pipeline.cancel)

    def begin_stop(self, now: float) -> str:
        """Begin to end commanding."""
        return _answer(self.pipeline.begin_stop)

    def react(self, now: float, action: str) -> str:
        """React to a contact that something else has found."""
        what = "contact: 1 of 1 N m or N at joint 'told', likely on link 'told'"
        return _answer(self.pipeline.react_to_contact, action, what)

    def continue_from(self, now: float, torque: np.ndarray) -> str:
        """Go on after the watchdog's process."""
        return _answer(self.pipeline.continue_from, torque, now)

    # What is seen of it.

    @property
    def status(self) -> Status:
        """The state after a cycle."""
        pipeline, monitor = self.pipeline, self.stack.monitor
        contact = monitor.contact
        return Status(
            pipeline.is_enabled,
            pipeline.fallback,
            code(pipeline.stale_cause),
            pipeline.reference_status,
            pipeline.settings.mode,
            code(pipeline.last_fault),
            code(pipeline.last_drop),
            pipeline.refused_torques,
            pipeline.implausible_states,
            pipeline.following_errors,
            pipeline.dropped_references,
            pipeline.has_stopped,
            '' if contact is None else f'{contact.joint}@{contact.link}',
            code(monitor.trouble),
        )

    @property
    def external_torque(self) -> np.ndarray:
        """The external torques, shape (n,) [N m] or [N]."""
        return self.stack.monitor.torque


def _answer(call: Any, *arguments: Any) -> str:
    try:
        call(*arguments)
    except RobodynError as error:
        return type(error).__name__
    return ''


# --- what is recorded --------------------------------------------------------------------------


@dataclass(eq=False)
class Stream:
    """
    What a pipeline did in one sequence of R cycles, C of which commanded.

    Attributes
    ----------
    has_command : array of bool, shape (R,)
    torque : array, shape (C, n)
        In effort limits.
    held : array of int, shape (C, n)
        1 where the effort limit acted, 2 the rate limit, 4 a position limit, and sums of them.
    statuses : list of Status, length R
    answers : list of (int, str)
        Of the events, with the cycle that came next.
    external : array, shape (E, n)
        External torques in effort limits, at every tenth joint state of an observed sequence.
    """

    has_command: np.ndarray
    torque: np.ndarray
    held: np.ndarray
    statuses: list[Status]
    answers: list[tuple[int, str]]
    external: np.ndarray

    @property
    def command_of(self) -> np.ndarray:
        """The row in ``torque`` of each cycle, shape (R,); -1: it had no command."""
        return np.where(self.has_command, np.cumsum(self.has_command) - 1, -1)


def replayed(sequence: EventSequence, driver: Any) -> Stream:
    """Return what a driver does in a sequence."""
    limits, n = sequence.arm.limits, sequence.arm.model.n
    commands: list[Command | None] = []
    statuses: list[Status] = []
    answers: list[tuple[int, str]] = []
    external: list[np.ndarray] = []
    states = 0
    for step in sequence.steps:
        driver.simulated_time = step.simulated
        result = getattr(driver, step.kind)(step.now, *step.given)
        if not step.is_cycle:
            answers.append((len(commands), result))
            continue
        commands.append(result)
        statuses.append(driver.status)
        if step.kind == 'state':
            states += 1
            if sequence.is_observed and states % _OBSERVED_EVERY == 0:
                external.append(driver.external_torque / limits)
    given = [command for command in commands if command is not None]
    return Stream(
        np.array([command is not None for command in commands]),
        np.array([command.torque / limits for command in given]).reshape(-1, n),
        np.array([_held(command) for command in given], dtype=np.int64).reshape(-1, n),
        statuses,
        answers,
        np.clip(np.array(external).reshape(-1, n), -_FARTHEST, _FARTHEST),
    )


def _held(command: Command) -> np.ndarray:
    held = 2 * command.rate_limited + 4 * command.position_limited
    if not command.position_limited.any():
        # Beyond a position limit what was clipped before may be clipped again, by rounding.
        held = held + command.effort_limited
    return held


def difference(
    sequence: EventSequence,
    recorded: Stream,
    found: Stream,
    wanted: Sequence[range] = (),
) -> str:
    """
    Return the first difference of two streams in words; empty: there is none.

    Parameters
    ----------
    wanted : sequence of range
        Of cycles in which a difference is wanted.
    """
    cycles = [i for i, step in enumerate(sequence.steps) if step.is_cycle]
    count = len(cycles)
    names, limits = sequence.arm.model.joint_names, sequence.arm.limits
    firsts: list[tuple[int, str]] = []

    def is_judged(cycle: int) -> bool:
        return not any(cycle in span for span in wanted)

    def first(differs: np.ndarray, words: Any) -> None:
        """Take note of the first of some cycles that differ."""
        for cycle in np.flatnonzero(differs).tolist():
            if is_judged(cycle):
                firsts.append((cycle, words(cycle)))
                return

    for (cycle, before), (_, after) in zip(recorded.answers, found.answers, strict=True):
        if before != after and is_judged(cycle):
            firsts.append((cycle, f'answer {before or "yes"!r} became {after or "yes"!r}'))
            break
    first(
        np.array([a != b for a, b in zip(recorded.statuses, found.statuses, strict=True)]),
        lambda cycle: _status_words(recorded.statuses[cycle], found.statuses[cycle]),
    )
    had, has = recorded.has_command, found.has_command
    first(had != has, lambda cycle: 'no command became one' if has[cycle] else 'no command')
    both = np.flatnonzero(had & has)
    before, after = recorded.command_of[both], found.command_of[both]
    distance = np.abs(found.torque[after] - recorded.torque[before])
    # What is recorded is rounded; a NaN differs from everything.
    is_far = np.zeros((count, sequence.arm.model.n), dtype=bool)
    is_far[both] = ~(distance <= TOLERANCE - 0.5 * QUANTUM)

    def torques(cycle: int) -> str:
        joint = int(np.argmax(is_far[cycle]))
        old = float(limits[joint] * recorded.torque[recorded.command_of[cycle], joint])
        new = float(limits[joint] * found.torque[found.command_of[cycle], joint])
        share = abs(new - old) / limits[joint]
        return f'{names[joint]}: {old!r} became {new!r} N m or N, by {share:.2g} of its limit'

    first(is_far.any(axis=1), torques)
    is_held = np.zeros(count, dtype=bool)
    is_held[both] = (recorded.held[before] != found.held[after]).any(axis=1)
    first(
        is_held,
        lambda cycle: (
            f'limits that act: {recorded.held[recorded.command_of[cycle]].tolist()} became '
            f'{found.held[found.command_of[cycle]].tolist()}'
        ),
    )
    observed = [k for k, i in enumerate(cycles) if sequence.steps[i].kind == 'state']
    observed = observed[_OBSERVED_EVERY - 1 :: _OBSERVED_EVERY][: len(recorded.external)]
    if len(observed):
        scale = np.maximum.accumulate(np.abs(recorded.external).max(axis=1))
        near = TOLERANCE + _OBSERVED_ROUNDING * scale
        apart = np.abs(found.external - recorded.external).max(axis=1)
        is_apart = np.zeros(count, dtype=bool)
        is_apart[observed] = ~(apart <= near)
        first(
            is_apart,
            lambda cycle: (
                'external torques '
                f'{(limits * recorded.external[observed.index(cycle)]).tolist()} became '
                f'{(limits * found.external[observed.index(cycle)]).tolist()}'
            ),
        )
    if not firsts:
        return ''
    cycle, words = min(firsts, key=lambda each: each[0])
    at = cycles[cycle] if cycle < count else len(sequence.steps)
    event = next(
        (step for step in reversed(sequence.steps[:at]) if not step.is_cycle), Step(BEGIN, 'none')
    )
    kind = sequence.steps[at].kind if cycle < count else 'end'
    return (
        f'{sequence.arm.name} {sequence.seed}, cycle {cycle} of {count} ({kind}): {words}; '
        f'the event before, at {event.now - BEGIN:.4f} s: {event.kind} {_event_words(event)}'
    )


def unwanted(recording: Recording, sequence: EventSequence, algorithm: str = ALGORITHM) -> str:
    """
    Return what is wrong with a replay of a sequence, in words; empty: nothing.

    That is a first difference that nobody wants, or a wanted one that is none.
    """
    if sequence.digest != recording.digest:
        why = 'another NumPy, or other MODES'
        return f'{sequence.arm.name} {sequence.seed}: other inputs are drawn: {why}'
    found = replayed(sequence, Driver(sequence, algorithm))
    wanted = [
        range(each.first, each.last + 1)
        for each in wanted_differences()
        if (each.arm, each.seed) == (sequence.arm.name, sequence.seed)
    ]
    words = difference(sequence, recording.stream, found, wanted)
    if not words and wanted and not difference(sequence, recording.stream, found):
        return f'{sequence.arm.name} {sequence.seed}: the wanted difference is none: {wanted}'
    return words


def _status_words(before: Status, after: Status) -> str:
    changed = [
        f'{name} {old!r} became {new!r}'
        for name, old, new in zip(Status._fields, before, after)
        if old != new
    ]
    return ', '.join(changed)


def _event_words(event: Step) -> str:
    return ' '.join(repr(plain(each)) for each in event.given)[:200]


# --- the file ----------------------------------------------------------------------------------


@dataclass(eq=False)
class Recording:
    """A stream as it was recorded, and the checksum of the inputs that it belongs to."""

    digest: int
    stream: Stream


def write(recordings: dict[tuple[str, int], Recording], path: Path = FILE) -> None:
    """Write recordings, by arm and seed."""
    entries, numbers, flags = [], [], []
    for (arm, seed), recording in recordings.items():
        stream = recording.stream
        changes, last = [], [None] * len(Status._fields)
        for cycle, status in enumerate(stream.statuses):
            changed = {i: new for i, (old, new) in enumerate(zip(last, status)) if old != new}
            if changed:
                changes.append([cycle, changed])
            last = list(status)
        shapes = [len(stream.has_command), len(stream.torque), len(stream.external)]
        entries.append([arm, seed, recording.digest, *shapes, changes, stream.answers])
        flags += [stream.has_command.astype(np.uint8).ravel(), stream.held.T.ravel()]
        for values in (stream.torque, stream.external):
            units = np.rint(values / QUANTUM).astype(np.int64)
            numbers.append(_differences(units).T.ravel())
    flag = np.concatenate(flags).astype(np.uint8)
    number = np.concatenate(numbers)
    zigzag = (number << 1) ^ (number >> 63)
    planes = np.ascontiguousarray(zigzag.astype('<i8')).view(np.uint8).reshape(-1, 8).T
    header = json.dumps([entries, len(flag), len(number)], separators=(',', ':')).encode()
    content = b'%d\n' % len(header) + header + flag.tobytes() + planes.tobytes()
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def read(path: Path = FILE) -> dict[tuple[str, int], Recording]:
    """Return the recordings by arm and seed."""
    content = lzma.decompress(path.read_bytes())
    length, _, content = content.partition(b'\n')
    entries, flag_count, count = json.loads(content[: int(length)])
    flag = np.frombuffer(content, np.uint8, flag_count, int(length))
    planes = np.frombuffer(content, np.uint8, 8 * count, int(length) + flag_count)
    zigzag = np.ascontiguousarray(planes.reshape(8, -1).T).view('<i8').ravel().astype(np.int64)
    number = ((zigzag >> 1) & np.int64(2**63 - 1)) ^ -(zigzag & 1)
    result = {}
    for arm, seed, digest, rows, commands, observed, changes, answers in entries:
        n = arms()[arm].model.n
        has_command, flag = flag[:rows].astype(bool), flag[rows:]
        held, flag = flag[: n * commands].reshape(n, -1).T, flag[n * commands :]
        arrays = []
        for size in (commands, observed):
            part, number = number[: n * size].reshape(n, -1).T, number[n * size :]
            arrays.append(QUANTUM * np.cumsum(np.cumsum(part, axis=0), axis=0))
        statuses: list[Status] = []
        fields: list[Any] = [None] * len(Status._fields)
        for (cycle, changed), end in zip(changes, [*(c for c, _ in changes[1:]), rows]):
            for i, value in changed.items():
                fields[int(i)] = value
            statuses += [Status(*fields)] * (end - cycle)
        stream = Stream(
            has_command,
            arrays[0],
            held.astype(np.int64),
            statuses,
            [(cycle, answer) for cycle, answer in answers],
            arrays[1],
        )
        result[arm, seed] = Recording(digest, stream)
    return result


def _differences(units: np.ndarray) -> np.ndarray:
    """Return second differences along the rows, that two sums undo."""
    for _ in range(2):
        units = np.diff(units, axis=0, prepend=np.zeros_like(units[:1]))
    return units


class WantedDifference(NamedTuple):
    """Cycles of a sequence, the last one included, that a mended bug makes others."""

    arm: str
    seed: int
    first: int
    last: int
    bug: str


def wanted_differences(path: Path = WANTED) -> list[WantedDifference]:
    """Return the differences that are wanted; lines that begin with # are comments."""
    result = []
    for line in path.read_text(encoding='utf-8').splitlines():
        if line.strip() and not line.startswith('#'):
            arm, seed, first, last, bug = line.split(maxsplit=4)
            result.append(WantedDifference(arm, int(seed), int(first), int(last), bug))
    return result


# --- the command -------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, replay or show; return 1 where a replay differs."""
    parser = argparse.ArgumentParser(description='Recorded command streams.')
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument('--write', action='store_true', help='record all sequences anew')
    chosen.add_argument('--check', action='store_true', help='replay all sequences')
    chosen.add_argument('--show', nargs=2, metavar=('ARM', 'SEED'), help='print one sequence')
    parser.add_argument('--algorithm', default=ALGORITHM, help='of the inverse dynamics')
    parser.add_argument('--file', type=Path, default=FILE)
    given = parser.parse_args(arguments)
    if given.show:
        _show(drawn(given.show[0], int(given.show[1])), given.algorithm)
        return 0
    if given.check:
        found = [
            words
            for (arm, seed), recording in read(given.file).items()
            if (words := unwanted(recording, drawn(arm, seed), given.algorithm))
        ]
        print(*found, f'{len(found)} sequences differ', sep='\n')
        return int(bool(found))
    recordings = {}
    for arm, seed in every_sequence():
        sequence = drawn(arm, seed)
        stream = replayed(sequence, Driver(sequence, given.algorithm))
        recordings[arm, seed] = Recording(sequence.digest, stream)
    write(recordings, given.file)
    cycles = sum(len(each.stream.has_command) for each in recordings.values())
    print(f'{len(recordings)} sequences, {cycles} cycles, {given.file.stat().st_size} bytes')
    return 0


def _show(sequence: EventSequence, algorithm: str) -> None:
    driver, cycle, status = Driver(sequence, algorithm), 0, None
    print(sequence.parameters)
    for step in sequence.steps:
        driver.simulated_time = step.simulated
        result = getattr(driver, step.kind)(step.now, *step.given)
        if not step.is_cycle:
            print(f'{step.now - BEGIN:.4f} {step.kind} {_event_words(step)}: {result or "yes"}')
            continue
        torque = None if result is None else result.torque.round(4).tolist()
        changed = _status_words(status or Status(*[None] * 14), driver.status)
        status = driver.status
        if step.kind != 'tick' or torque is not None or changed:
            print(f'{step.now - BEGIN:.4f} {cycle} {step.kind} {torque} {changed}')
        cycle += 1


if __name__ == '__main__':
    sys.exit(main())
