# SPDX-License-Identifier: Apache-2.0
"""A simulation that is paused, stepped or slow is time that stands still: nothing is given up."""

import numpy as np
import pytest
from control_arm import WATCHDOG_PERIOD, Q, enabled, to

from robodyn_ros.control.joint_state_buffer import ElapsedTime, JointStateBuffer
from robodyn_ros.errors import RejectedTrajectory

STEP = 0.002


def check_age(age, stamp, simulated_time=None):
    """Check how old a sample is that came 3 s ago with a stamp [s]."""
    for timeout, stale in ((age - 1e-6, ('a',)), (age + 1e-6, ())):
        states = JointStateBuffer(('a',), timeout, elapsed=ElapsedTime(simulated_time))
        states.receive(['a'], [0.0], [0.0], received=100.0, stamp=stamp)
        assert states.stale_joints(103.0) == stale


def test_sample_is_as_old_as_the_slower_clock_says():
    check_age(3.0, 49.9)
    for stamp, age in ((49.9, 0.1), (20.0, 3.0), (50.025, 0.0)):
        check_age(age, stamp, lambda: 50.0)


@pytest.mark.parametrize('stamp', [np.nan, 50.1, 1.7e9])
def test_what_is_no_stamp_of_the_simulation_is_as_old_as_its_receipt(stamp):
    check_age(3.0, stamp, lambda: 50.0)


class PausedArm:
    """The arm of two joints under simulated time, which the test lets pass."""

    def __init__(self):
        self.simulated = 50.0
        self.arm = enabled(simulated_time=lambda: self.simulated)

    def run(self, steps=100):
        for _ in range(steps):
            self.simulated += STEP
            self.arm.now += STEP
            self.command = self.arm.receive(Q, stamp=self.simulated)

    def wait(self, duration, pace=0.0):
        """Let steady time pass [s] without states, and return the commands of the watchdog."""
        commands = []
        for _ in range(round(duration / WATCHDOG_PERIOD)):
            self.simulated += pace * WATCHDOG_PERIOD
            commands += self.arm.watch(WATCHDOG_PERIOD)
        return commands


def test_states_are_not_stale_while_simulated_time_stands_still():
    paused = PausedArm()
    paused.run()
    assert paused.wait(30.0) == [None] * 3000
    assert not paused.arm.pipeline.is_stale
    assert paused.arm.buffer.standstill(paused.arm.now) == pytest.approx(30.0)
    paused.run(1)
    assert paused.command is not None
    assert paused.arm.buffer.standstill(paused.arm.now) == 0.0


def test_states_that_a_waiting_simulation_repeats_change_no_torque_of_a_motion():
    torques = []
    for repetitions in (0, 3):
        paused = PausedArm()
        paused.run(50)
        paused.arm.pipeline.follow(to(Q + 0.5))
        for _ in range(200):
            for _ in range(repetitions):
                paused.arm.now += STEP
                paused.arm.receive(Q, stamp=paused.simulated)
            paused.run(1)
        torques.append(paused.command.torque)
    assert np.abs(paused.command.reference.velocity).max() > 0.1
    np.testing.assert_array_equal(*torques)


def test_states_that_stop_while_simulated_time_goes_on_are_stale_after_the_timeout_of_it():
    paused = PausedArm()
    paused.run()
    paused.wait(0.3, pace=0.3)
    assert not paused.arm.pipeline.is_stale
    paused.wait(0.1, pace=0.3)
    assert paused.arm.pipeline.is_stale
    assert paused.arm.buffer.standstill(paused.arm.now) == 0.0


def test_a_simulation_that_was_reset_and_sends_nothing_is_stale():
    paused = PausedArm()
    paused.run()
    paused.simulated = 0.0
    paused.wait(0.2)
    assert paused.arm.pipeline.is_stale


def test_without_simulated_time_a_pause_is_stale_as_ever():
    arm = enabled()
    arm.run(0.5)
    arm.now += 0.2
    arm.pipeline.watchdog(arm.now)
    assert arm.pipeline.is_stale
    assert arm.buffer.standstill(arm.now + JointStateBuffer.LONGEST_STEP) == 0.0


def test_stamps_that_stand_still_with_simulated_time_are_accepted_but_not_without():
    paused = PausedArm()
    paused.run()
    for pace, is_stopped in ((0.0, False), (1.0, True)):
        stamp = paused.simulated
        for _ in range(200):
            paused.arm.now += STEP
            paused.simulated += pace * STEP
            paused.arm.receive(Q, stamp=stamp, age=0.0)
        if is_stopped:
            with pytest.raises(RejectedTrajectory, match='stand still'):
                paused.arm.pipeline.follow(to(Q))
        else:
            paused.arm.pipeline.follow(to(Q))
            paused.arm.pipeline.cancel()


@pytest.mark.parametrize('pace', [1.0, 0.3, 0.05, 0.015])
def test_motion_goes_on_to_its_end_through_pauses_steps_by_hand_and_at_any_pace(pace):
    paused = PausedArm()
    paused.run(50)
    arm, pipeline, waits = paused.arm, paused.arm.pipeline, []
    pipeline.follow(to(Q + 0.1))  # within a second
    for k in range(550):
        paused.run(1)
        arm.now += STEP / pace - STEP
        waits.append(pipeline.watchdog(arm.now))
        if 250 <= k < 255:
            waits += paused.wait(1.7)
    assert not any(waits)
    assert pipeline.dropped_references == 0 and pipeline.last_fault == ''
    assert pipeline.reference_status == 'holding'
    np.testing.assert_allclose(paused.command.reference.position, Q + 0.1)
