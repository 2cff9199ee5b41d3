# SPDX-License-Identifier: Apache-2.0
"""A reference that is given up though nobody asked for it is counted, with its reason."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import TWO_JOINTS, Q, enabled, to


def followed(mode='computed_torque', **settings):
    """Return an arm that follows a trajectory of two seconds."""
    arm = enabled(mode, **settings)
    arm.run(1.1)  # so that the stamps' clock is known
    arm.pipeline.follow(to(Q + 0.1, 2.0))
    arm.run(0.05)
    assert arm.pipeline.reference_status == 'moving'
    return arm


def go_silent(arm):
    arm.watch(0.2)


def set_clock_back(arm):
    arm.now += 0.001
    assert arm.receive(Q, stamp=0.5).reference is None


def alternate_between_two_clocks(arm):
    for i in range(5):
        arm.now += 0.001
        arm.receive(Q, stamp=arm.now + (10.0 if i % 2 else 0.0))


def run_four_times_as_fast(arm):
    begin = arm.now
    for _ in range(200):
        arm.now += 0.001
        arm.receive(Q, stamp=begin + 4.0 * (arm.now - begin))


def stay_behind(arm):
    arm.run(2.0)


def turn_to_gravity_compensation(arm):
    arm.change(mode='gravity_compensation')
    arm.run(1.0)


def lose_velocities(arm):
    arm.now += 0.001
    arm.receive(Q, velocity=[np.nan, 0.0], stamp=arm.now)
    arm.now += 0.2
    arm.receive(Q, velocity=[np.nan, 0.0], stamp=arm.now)


@pytest.mark.parametrize(
    'happen, why',
    [
        (go_silent, 'shoulder, elbow'),
        (set_clock_back, 'stamps'),
        (alternate_between_two_clocks, 'stamps'),
        (run_four_times_as_fast, 'stamps'),
        (lambda arm: arm.run(0.01, Q - [2.0 * np.pi, 0.0]), 'faster than its joint can move'),
        (stay_behind, 'max_following_error'),
        (turn_to_gravity_compensation, 'gravity_compensation'),
        (lose_velocities, ''),
    ],
)
def test_reference_is_dropped_once_and_with_its_reason(happen, why):
    arm = followed(max_following_error=0.05)
    happen(arm)
    assert arm.pipeline.dropped_references == 1
    assert arm.pipeline.last_drop and why in arm.pipeline.last_drop
    assert arm.pipeline.reference_status in ('none', 'braking', 'holding')


def test_brake_that_ends_early_is_no_reference_that_was_dropped():
    arm = followed(max_following_error=0.05)
    stay_behind(arm)
    go_silent(arm)
    assert arm.pipeline.dropped_references == 1
    assert 'max_following_error' in arm.pipeline.last_drop


def test_what_somebody_asked_for_is_no_drop():
    arm = followed()
    arm.pipeline.cancel()
    arm.run(1.0)
    arm.pipeline.disable()
    assert arm.pipeline.dropped_references == 0
    assert arm.pipeline.last_drop == ''


@pytest.mark.parametrize(
    'is_broken, cause', [(False, 'no fresh state of shoulder, elbow'), (True, 'no finite torque')]
)
def test_cause_of_a_fallback_is_kept_as_it_was_when_it_began(is_broken, cause):
    arm = followed()
    arm.break_model(is_broken)
    if is_broken:
        for _ in range(20):
            arm.run(0.01)
            arm.pipeline.watchdog(arm.now)
    else:
        go_silent(arm)
    assert arm.pipeline.is_stale and arm.pipeline.stale_cause == cause
    # All joints are fresh when somebody asks; the model is healed, but no cycle has come yet.
    arm.now += 0.001
    arm.buffer.receive(('shoulder', 'elbow'), Q, (0.0, 0.0), received=arm.now, stamp=arm.now)
    assert arm.buffer.stale_joints(arm.now) == ()
    assert arm.pipeline.stale_cause == cause


def test_states_that_no_joint_can_have_come_to_are_the_cause_they_are():
    arm = enabled(kind=replace(TWO_JOINTS, velocity_limits=np.array([1.0, 1.0])))
    arm.run(1.1)
    for i in range(9):
        arm.now += 0.012
        arm.receive([(-1.5, 1.5)[i % 2], Q[1]], stamp=arm.now)
        arm.pipeline.watchdog(arm.now)
    assert (
        arm.pipeline.is_stale
        and arm.pipeline.stale_cause == 'sources of joint states contradict each other'
    )


def test_process_that_stood_still_itself_is_not_called_a_torque_that_is_not_finite():
    arm = enabled()
    arm.run(1.1)
    arm.now += 0.2
    arm.buffer.receive(('shoulder', 'elbow'), Q, (0.0, 0.0), received=arm.now, stamp=arm.now)
    arm.pipeline.watchdog(arm.now)
    assert arm.pipeline.is_stale and arm.pipeline.stale_cause == 'no control cycle in time'
