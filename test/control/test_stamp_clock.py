# SPDX-License-Identifier: Apache-2.0
"""Stamps are believed while they pass as fast as time does, whatever the state timeout."""

import numpy as np
import pytest

from robodyn_ros.control.stamp_clock import CLOCK_TOLERANCE, WINDOW, ElapsedTime, StampClock

PERIOD = 0.001
LONGEST = 2.0  # a state timeout as slow drivers need one


def believed(clock, times, period=PERIOD, longest=LONGEST, start=100.0):
    """Return for each stamp, read one period after the other, whether it was believed."""
    return [
        clock.advance(time, start + i * period, longest).is_believed
        for i, time in enumerate(times)
    ]


def ticks(duration, pace=1.0, start=50.0):
    return start + pace * PERIOD * np.arange(round(duration / PERIOD))


@pytest.mark.parametrize('pace', [0.999, 1.0, 1.001])
def test_clock_that_keeps_pace_is_believed_for_long(pace):
    clock = StampClock()
    assert all(believed(clock, ticks(20.0, pace)))
    assert clock.may_be_followed(120.0)


@pytest.mark.parametrize('seed', range(3))
def test_messages_that_come_late_are_believed(seed):
    delays = np.random.default_rng(seed).uniform(0.0, 0.09, 5000)
    stamps = np.maximum.accumulate(ticks(5.0) - delays)
    assert all(believed(StampClock(), stamps, longest=0.1))


@pytest.mark.parametrize('jump', [0.2, 1.5, 3.0, -0.01, -3.0])
def test_jump_is_not_believed_however_long_states_may_be_late(jump):
    stamps, at = ticks(2.0 * WINDOW), round(1.5 * WINDOW / PERIOD)
    stamps[at:] += jump
    found = believed(StampClock(), stamps)
    assert all(found[:at]) and not found[at]
    assert all(found[at + 1 :])  # it is another clock from then on


@pytest.mark.parametrize('lateness', [0.15, 0.45])
def test_first_messages_may_have_waited(lateness):
    delays = np.zeros(5000)
    delays[:100] = lateness - PERIOD * np.arange(100)  # they had queued up
    clock = StampClock()
    assert all(believed(clock, ticks(5.0) - delays, longest=0.5))
    assert clock.may_be_followed(105.0)


def test_stamps_that_run_four_times_as_fast_are_not_followed_for_long():
    clock = StampClock()
    found = believed(clock, ticks(2.0 * WINDOW, pace=4.0))
    ahead = 3.0 * (PERIOD * found.index(False) - WINDOW)
    assert ahead <= CLOCK_TOLERANCE + 8.0 * PERIOD
    assert found.count(False) > 20
    assert not clock.may_be_followed(100.0 + 2.0 * WINDOW)


def test_stamps_that_creep_are_not_believed_after_the_time_that_states_may_be_late():
    found = believed(StampClock(), ticks(1.0, pace=0.01), longest=0.1)
    first = found.index(False)
    assert 0.99 * PERIOD * first <= 0.1 + 2.0 * PERIOD
    assert not any(found[first:])


def test_stamps_that_stand_still_are_not_believed():
    clock = StampClock()
    stamps = np.minimum(ticks(1.0), 50.2)
    found = believed(clock, stamps, longest=0.1)
    assert all(found[:200]) and not any(found[310:])
    assert clock.is_stopped and not clock.may_be_followed(101.0)


def test_clock_that_was_wrong_is_followed_again_after_a_while():
    clock = StampClock()
    believed(clock, ticks(2.0 * WINDOW, pace=4.0))
    assert not clock.may_be_followed(100.0 + 2.0 * WINDOW)
    believed(clock, ticks(2.5 * WINDOW, start=60.0), start=102.0)
    assert clock.may_be_followed(102.0 + 2.5 * WINDOW)


@pytest.mark.parametrize('pace', [0.01, 1.0, 30.0])
def test_simulated_time_may_run_at_any_pace_but_not_jump(pace):
    clock = StampClock(ElapsedTime(lambda: 0.0))
    stamps = ticks(1.0, pace)
    assert all(believed(clock, stamps))
    assert clock.advance(stamps[-1] + 1.0, 101.0, LONGEST).elapsed == pytest.approx(1.0)
    assert not clock.advance(stamps[-1] + 4.0, 101.0 + PERIOD, LONGEST).is_believed


def test_time_passes_by_the_steady_clock_but_in_simulations():
    real, simulated = StampClock(), StampClock(ElapsedTime(lambda: 0.0))
    for clock in (real, simulated):
        clock.advance(50.0, 100.0, LONGEST)
    assert real.advance(50.03, 100.01, LONGEST).elapsed == pytest.approx(0.01)
    assert simulated.advance(50.03, 100.01, LONGEST).elapsed == pytest.approx(0.03)
