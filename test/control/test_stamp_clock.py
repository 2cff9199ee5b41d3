# SPDX-License-Identifier: Apache-2.0
"""Stamps are believed while they pass as fast as time does, whatever the state timeout."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import TWO_JOINTS

from robodyn_ros.control.command_pipeline import core_settings
from robodyn_ros.control.core_binding import core, core_arm
from robodyn_ros.control.reference import Reference

PERIOD = 0.001
LONGEST = 2.0  # a state timeout as slow drivers need one
TOLERANCE, WINDOW = 0.1, 1.0  # s, within which stamps may run ahead, and how long that is watched


ANY_RATE = {'kp': np.zeros(2), 'kd': np.zeros(2)}  # of states


def nothing(*arrays):
    return np.zeros_like(arrays[0])


class Clock:
    """A pipeline whose arm rests and holds a position as long as its stamps are believed."""

    def __init__(self, longest=LONGEST, is_simulated=False, **settings):
        self.settings = TWO_JOINTS.settings(state_timeout=longest, **ANY_RATE, **settings)
        self.core = core.ArmRuntime(
            core_arm(nothing, nothing, 2),
            core_settings(self.settings, TWO_JOINTS.reference_limits),
        )
        self.core.enable(0.0)
        self.simulated = 0.0 if is_simulated else np.nan

    def advance(self, stamp, now):
        """Take in a state, and return whether its stamp was believed."""
        self.core.follow(Reference.hold(np.zeros(2), 0.0).motion)
        found = self.core.step(np.zeros(2), np.zeros(2), stamp, True, now, self.simulated, None)
        assert found is not None
        return all(fault.cause != core.Cause.clock for fault in self.core.faults)

    def is_clock_reliable(self, now):
        return self.core.is_clock_reliable(now)


def believed(clock, times, period=PERIOD, start=100.0):
    """Return for each stamp, read one period after the other, whether it was believed."""
    return [clock.advance(time, start + i * period) for i, time in enumerate(times)]


def ticks(duration, pace=1.0, start=50.0):
    return start + pace * PERIOD * np.arange(round(duration / PERIOD))


@pytest.mark.longer
@pytest.mark.repeats(check=1, test=1)
@pytest.mark.parametrize('pace', [0.999, 1.0, 1.001])
def test_clock_that_keeps_pace_is_accepted_for_long(pace):
    clock = Clock()
    assert all(believed(clock, ticks(20.0, pace)))
    assert clock.is_clock_reliable(120.0)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('seed', range(3))
def test_messages_that_come_late_are_accepted(seed):
    delays = np.random.default_rng(seed).uniform(0.0, 0.09, 5000)
    stamps = np.maximum.accumulate(ticks(5.0) - delays)
    assert all(believed(Clock(0.1), stamps))


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('jump', [0.2, 1.5, 3.0, -0.01, -3.0])
def test_jump_is_not_accepted_however_long_states_may_be_late(jump):
    stamps, at = ticks(2.0 * WINDOW), round(1.5 * WINDOW / PERIOD)
    stamps[at:] += jump
    found = believed(Clock(), stamps)
    assert all(found[:at]) and not found[at]
    assert all(found[at + 1 :])  # it is another clock from then on


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('lateness', [0.15, 0.45])
def test_first_messages_may_have_waited(lateness):
    delays = np.zeros(5000)
    delays[:100] = lateness - PERIOD * np.arange(100)  # they had queued up
    clock = Clock(0.5)
    assert all(believed(clock, ticks(5.0) - delays))
    assert clock.is_clock_reliable(105.0)


def test_stamps_that_run_four_times_as_fast_are_not_followed_for_long():
    clock = Clock()
    found = believed(clock, ticks(2.0 * WINDOW, pace=4.0))
    ahead = 3.0 * (PERIOD * found.index(False) - WINDOW)
    assert ahead <= TOLERANCE + 8.0 * PERIOD
    assert found.count(False) > 20
    assert not clock.is_clock_reliable(100.0 + 2.0 * WINDOW)


def test_stamps_that_creep_are_not_accepted_after_the_time_that_states_may_be_late():
    found = believed(Clock(0.1), ticks(1.0, pace=0.01))
    first = found.index(False)
    assert 0.99 * PERIOD * first <= 0.1 + 2.0 * PERIOD
    assert not any(found[first:])


def test_stamps_that_stand_still_are_not_accepted():
    clock = Clock(0.1)
    stamps = np.minimum(ticks(1.0), 50.2)
    found = believed(clock, stamps)
    assert all(found[:200]) and not any(found[310:])
    assert clock.core.is_clock_stopped and not clock.is_clock_reliable(101.0)


def test_clock_that_was_wrong_is_followed_again_after_a_while():
    clock = Clock()
    believed(clock, ticks(2.0 * WINDOW, pace=4.0))
    assert not clock.is_clock_reliable(100.0 + 2.0 * WINDOW)
    believed(clock, ticks(2.5 * WINDOW, start=60.0), start=102.0)
    assert clock.is_clock_reliable(102.0 + 2.5 * WINDOW)


@pytest.mark.parametrize('pace', [0.01, 1.0, 30.0])
def test_simulated_time_may_run_at_any_pace_but_not_jump(pace):
    clock = Clock(is_simulated=True)
    stamps = ticks(1.0, pace)
    assert all(believed(clock, stamps))
    assert clock.advance(stamps[-1] + 1.0, 101.0)
    assert not clock.advance(stamps[-1] + 4.0, 101.0 + PERIOD)


@pytest.mark.parametrize('is_simulated, elapsed', [(False, 0.01), (True, 0.03)])
def test_time_passes_by_the_steady_clock_but_in_simulations(is_simulated, elapsed):
    clock = Clock(is_simulated=is_simulated, ramp_time=0.1, torque_rate_limit=np.full(2, np.inf))
    clock.core.change_load(core_arm(lambda q, qd, qdd: 0.0 * q + 5.0, nothing, 2), False)
    clock.advance(50.0, 100.0)
    changed = replace(clock.settings, terms_gravity=False)
    clock.core.change_settings(core_settings(changed, TWO_JOINTS.reference_limits))
    clock.advance(50.03, 100.01)
    # What has faded of a gravity torque of 5 N m.
    assert clock.core.torque == pytest.approx([5.0 * (1.0 - elapsed / 0.1)] * 2)
