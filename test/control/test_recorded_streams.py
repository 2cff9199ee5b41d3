# SPDX-License-Identifier: Apache-2.0
"""The command pipeline commands what it was recorded to, in 300 sequences of events."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from command_streams import (
    TOLERANCE,
    Driver,
    Recording,
    Stream,
    difference,
    read,
    replayed,
    unwanted,
    wanted_differences,
    write,
)
from event_sequences import SEEDS, arms, drawn, every_sequence

ARMS = (
    'two_link_planar',
    'cylindrical',
    'spherical',
    'turning',
    'identified',
    'puma560',
)
TENTH = SEEDS[::10]
REST = sorted(set(SEEDS) - set(TENTH))


@cache
def recordings() -> dict[tuple[str, int], Recording]:
    return read()


def assert_replays(arm: str, seeds, algorithm: str) -> None:
    sequence = drawn(arm, seeds[0])
    if Driver(sequence, algorithm).stack.torque.algorithm != algorithm:
        pytest.skip('no C compiler')
    given = [(seed, recordings()[arm, seed]) for seed in seeds]
    found = [unwanted(recording, drawn(arm, seed), algorithm) for seed, recording in given]
    assert not any(found), '\n'.join(filter(None, found))


@pytest.mark.parametrize(
    ('arm', 'algorithm'),
    [(arm, 'compiled') for arm in ARMS]
    + [(arm, 'newton_euler') for arm in ARMS[:1]]
    # Each of these takes two seconds, in Python.
    + [pytest.param(arm, 'newton_euler', marks=pytest.mark.longer) for arm in ARMS[1:]],
)
def test_a_tenth_of_the_sequences_is_commanded_as_recorded(arm, algorithm):
    assert_replays(arm, TENTH, algorithm)


@pytest.mark.slow
@pytest.mark.parametrize('algorithm', ['newton_euler', 'compiled'])
@pytest.mark.parametrize('arm', ARMS)
def test_every_other_sequence_is_commanded_as_recorded(arm, algorithm):
    assert_replays(arm, REST, algorithm)


def test_three_hundred_sequences_on_six_arms_are_recorded():
    assert tuple(arms()) == ARMS
    assert sorted(recordings()) == sorted(every_sequence())
    assert len(recordings()) == 300


def test_at_most_a_tenth_of_the_sequences_may_differ():
    wanted = wanted_differences()
    assert len({each[:2] for each in wanted}) <= len(recordings()) / 10
    for each in wanted:
        cycles = len(recordings()[each.arm, each.seed].stream.has_command)
        assert 0 <= each.first <= each.last < cycles, each
        assert each.bug, each


# --- the judge itself -------------------------------------------------------------------------


@pytest.fixture(scope='module')
def sequence():
    return drawn('identified', 23)


@pytest.fixture(scope='module')
def stream(sequence) -> Stream:
    return replayed(sequence, Driver(sequence))


@pytest.fixture(scope='module')
def recorded(sequence, stream, tmp_path_factory) -> Stream:
    """The same as read from a file."""
    path = tmp_path_factory.mktemp('streams') / 'streams.xz'
    key = sequence.arm.name, sequence.seed
    write({key: Recording(sequence.digest, stream)}, path)
    again = read(path)[key]
    assert again.digest == sequence.digest
    return again.stream


def cycle_of(stream: Stream, command: int) -> int:
    return int(np.flatnonzero(stream.has_command)[command])


def with_torque(stream: Stream, command: int, joint: int, change: float) -> Stream:
    torque = stream.torque.copy()
    torque[command, joint] += change
    return replace(stream, torque=torque)


def test_a_stream_reads_back_as_it_was_written(sequence, stream, recorded):
    assert len(stream.torque) > 100
    assert len(stream.external) > 10
    assert len(set(stream.statuses)) > 5
    assert difference(sequence, recorded, stream) == ''
    np.testing.assert_array_equal(recorded.held, stream.held)
    np.testing.assert_array_equal(recorded.has_command, stream.has_command)
    assert recorded.statuses == stream.statuses
    assert recorded.answers == stream.answers


@pytest.mark.parametrize('sign', [-1.0, 1.0])
def test_a_tolerance_too_much_is_seen_in_any_joint_of_any_cycle(sequence, stream, recorded, sign):
    limits, names = sequence.arm.limits, sequence.arm.model.joint_names
    generator = np.random.default_rng(0)
    for command in generator.integers(len(stream.torque), size=50).tolist():
        joint = command % len(names)
        changed = with_torque(stream, command, joint, 1.001 * sign * TOLERANCE)
        words = difference(sequence, recorded, changed)
        assert f'identified 23, cycle {cycle_of(stream, command)} of' in words
        assert f'{names[joint]}: ' in words
        value = float(limits[joint] * changed.torque[command, joint])
        assert f' became {value!r} N m or N, ' in words
        assert 'the event before, at ' in words
        within = with_torque(stream, command, joint, 0.5 * sign * TOLERANCE)
        assert difference(sequence, recorded, within) == ''


def test_a_torque_that_is_no_number_is_a_difference(sequence, stream, recorded):
    assert 'nan' in difference(sequence, recorded, with_torque(stream, 7, 0, np.nan))


def test_a_command_that_is_missing_is_a_difference(sequence, stream, recorded):
    has_command = stream.has_command.copy()
    cycle = cycle_of(stream, 20)
    has_command[cycle] = False
    less = replace(
        stream,
        has_command=has_command,
        torque=np.delete(stream.torque, 20, axis=0),
        held=np.delete(stream.held, 20, axis=0),
    )
    assert f'cycle {cycle} of' in difference(sequence, recorded, less)
    assert 'no command' in difference(sequence, recorded, less)


def test_another_state_answer_limit_or_external_torque_is_a_difference(sequence, stream, recorded):
    statuses = list(stream.statuses)
    statuses[40] = statuses[40]._replace(fault='overspeed:j1')
    words = difference(sequence, recorded, replace(stream, statuses=statuses))
    assert 'cycle 40 of' in words
    assert "became 'overspeed:j1'" in words

    answers = list(stream.answers)
    answers[3] = (answers[3][0], 'Overload')
    words = difference(sequence, recorded, replace(stream, answers=answers))
    assert f'cycle {answers[3][0]} of' in words
    assert "became 'Overload'" in words

    held = stream.held.copy()
    held[30, 1] ^= 2
    words = difference(sequence, recorded, replace(stream, held=held))
    assert f'cycle {cycle_of(stream, 30)} of' in words

    external = stream.external.copy()
    external[5, 0] += 2.0 * TOLERANCE * (1.0 + np.abs(external).max())
    assert 'external torques' in difference(sequence, recorded, replace(stream, external=external))


def test_only_the_cycles_that_are_wanted_are_passed_over(sequence, stream, recorded):
    cycle = cycle_of(stream, 50)
    changed = with_torque(stream, 50, 0, 0.1)
    assert difference(sequence, recorded, changed, [range(cycle, cycle + 1)]) == ''
    assert difference(sequence, recorded, changed, [range(cycle + 1, cycle + 9)])
    assert difference(sequence, recorded, changed, [range(cycle)])


def test_a_sequence_is_drawn_from_its_seed_alone(sequence):
    assert drawn('identified', 23).digest == sequence.digest
    assert drawn('identified', 24).digest != sequence.digest
