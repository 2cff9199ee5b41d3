# SPDX-License-Identifier: Apache-2.0
"""Sources of joint states that contradict each other, and those that do not."""

from dataclasses import replace

import numpy as np
import pytest
from frictionless_arm import POSITION, FrictionlessArm

from robodyn_ros.control.command_pipeline import CommandPipeline

WAY = np.array([0.3, 0.2, -0.3, 0.2, 0.3, -0.2, 0.3])
DRIVER_CYCLES = 4  # of a millisecond, between two states of the driver


def take(arm, k, messages):
    """Let an arm take messages of (names, position, velocity, stamp) in its k-th millisecond."""
    states, arm.command = arm.stack.joint_states, None
    for names, position, velocity, stamp in messages:
        states.receive(names, position, velocity, received=arm.now, stamp=stamp)
        if states.is_complete:
            arm.command = arm.pipeline.step(states.take(), arm.now) or arm.command
    if arm.command is None and k % 10 == 0:
        arm.command = arm.pipeline.watchdog(arm.now)
    if arm.command is not None:
        arm.torque = arm.command.torque
    arm.step()


def moved_under(
    other, duration=1.0, is_stamped=True, mode='gravity_compensation', order=1, listening=None
):
    """
    Return an arm after a time [s] under its driver and another source, and its top speed.

    The other source returns positions, velocities and the age of their stamp [s]; its states come
    after those of the driver (order: 1) or before (-1). In a mode that follows, a motion begins
    after 0.1 s. Listening: for how long nothing is commanded [s].
    """
    arm = FrictionlessArm(mode=mode)
    arm.add_friction()
    if listening is not None:
        arm.pipeline.listen(arm.now + listening)
    names, fastest = arm.stack.model.joint_names, 0.0
    for k in range(round(1000 * duration)):
        arm.now = round(arm.now + 0.001, 9)
        messages = [arm.measured()] if k % DRIVER_CYCLES == 0 else []
        if (state := other(k, arm)) is not None:
            position, velocity, age = state
            messages.append((position, velocity, arm.now - age))
        if k == 100 and mode != 'gravity_compensation':
            arm.follow(WAY, 0.8)
        came = [(names, *state, stamp if is_stamped else 0.0) for *state, stamp in messages]
        take(arm, k, came[::order])
        fastest = max(fastest, np.abs(arm.simulation.velocity).max())
    return arm, fastest


def zeros(period, begin=0):
    """Return a source of zeros, as a display sends them, once in a period [ms]."""
    return lambda k, _: (np.zeros(7), [], 0.0) if k >= begin and k % period == 2 else None


class Delayed:
    """The driver's own states once more, some milliseconds late."""

    def __init__(self, delay, period=4):
        self.delay, self.period, self.states = delay, period, []

    def __call__(self, k, arm):
        self.states.append((arm.simulation.position, arm.simulation.velocity))
        is_due = k >= self.delay and k % self.period == 0
        return (*self.states[k - self.delay], 1e-3 * self.delay) if is_due else None


@pytest.mark.repeats(check=2, test=3)
@pytest.mark.parametrize('order', [1, -1])
@pytest.mark.parametrize('period', [4, 20, 100])
def test_nothing_moves_while_a_display_contradicts_the_driver(period, order):
    arm, _ = moved_under(zeros(period), 0.8, order=order, listening=0.4)
    assert arm.pipeline.is_contradicted and arm.pipeline.last_torque is None


@pytest.mark.longer
@pytest.mark.repeats(test=4)
@pytest.mark.parametrize('mode', ['computed_torque', 'joint_impedance', 'gravity_compensation'])
@pytest.mark.parametrize('period', [4, 20, 100])
def test_an_arm_is_braked_where_a_display_begins_in_its_motion(period, mode):
    arm, fastest = moved_under(zeros(period, 400), 0.9, mode=mode)
    assert arm.pipeline.is_contradicted and arm.pipeline.is_stale
    assert fastest < 0.9  # rad/s, of the motion
    assert np.abs(arm.simulation.velocity).max() < 0.25


@pytest.mark.longer
@pytest.mark.repeats(test=2)
@pytest.mark.parametrize(
    ('delay', 'is_stamped'), [(100, True), (20, True), (20, False), (100, False)]
)
def test_a_true_source_that_is_late_is_no_contradiction_in_motion(delay, is_stamped):
    arm, _ = moved_under(Delayed(delay), 1.2, is_stamped, 'computed_torque')
    assert not arm.pipeline.is_contradicted
    if is_stamped or delay < 50:
        assert arm.pipeline.last_fault == ''
        assert arm.pipeline.reference_status == 'holding'


@pytest.mark.repeats(check=1, test=1)
@pytest.mark.parametrize('times', [(200, 500, 800), (500,), (300, 560)])
def test_outliers_of_a_driver_are_no_contradiction(times):
    arm, _ = moved_under(
        lambda k, _: (np.zeros(7), [], 0.0) if k in times else None, 1.1, mode='computed_torque'
    )
    assert not arm.pipeline.is_contradicted and not arm.pipeline.is_stale
    assert arm.pipeline.reference_status == 'holding' and arm.pipeline.last_fault == ''


def test_a_state_that_comes_again_is_commanded_without_a_velocity_limit_too():
    arm = FrictionlessArm()
    limits = replace(arm.pipeline.reference_limits, velocity_limits=np.full(7, np.inf))
    arm.pipeline = CommandPipeline(arm.pipeline.law, arm.stack.joint_states, limits)
    arm.pipeline.enable(arm.now)
    state = arm.simulation.position, arm.simulation.velocity, arm.now
    assert all(arm.cycle(state) is not None for _ in range(3))  # a simulation that waits


@pytest.mark.repeats(check=1, test=2)
@pytest.mark.parametrize(
    ('period', 'is_stamped'), [(1, False), (1, True), (20, True), (20, False)]
)
def test_two_true_sources_at_two_rates_agree(period, is_stamped):
    arm, _ = moved_under(Delayed(0, period), 1.0, is_stamped, 'computed_torque')
    assert not arm.pipeline.is_contradicted and arm.pipeline.last_fault == ''
    assert arm.pipeline.reference_status == 'holding'


def test_a_source_that_is_near_contradicts_too():
    arm, fastest = moved_under(
        lambda k, _: (POSITION + 0.02, [], 0.0) if k % 20 == 10 else None, 0.5
    )
    assert arm.pipeline.is_contradicted
    assert fastest < 0.05  # rad/s


@pytest.mark.longer
def test_once_the_other_source_is_gone_the_arm_is_held_and_waits():
    arm, fastest = moved_under(
        lambda k, _: (np.zeros(7), [], 0.0) if k % 20 == 2 and k < 500 else None, 1.0
    )
    assert not arm.pipeline.is_contradicted and not arm.pipeline.is_stale
    assert fastest < 0.1  # rad/s


def fed(messages, mode='computed_torque', duration=1.2):
    """Return an arm after a time [s] under messages of (names, position, velocity, age)."""
    arm = FrictionlessArm(mode=mode)
    arm.add_friction()
    for k in range(round(1000 * duration)):
        arm.now = round(arm.now + 0.001, 9)
        if k == 100 and mode == 'computed_torque':
            arm.follow(WAY, 0.8)
        came = messages(k, arm)
        take(arm, k, [(*state, arm.now - age) for *state, age in came])
    return arm


def driver(arm, joints=slice(None)):
    """Return the true state of some joints, as a message."""
    names = arm.stack.model.joint_names[joints]
    return names, arm.simulation.position[joints], arm.simulation.velocity[joints], 0.0


def spread(k, arm):
    """Joints spread over two drivers, at two rates."""
    return [driver(arm, part) for part, n in ((slice(4), 4), (slice(4, 7), 5)) if k % n == 0]


def with_fingers(k, arm):
    """Fingers from a third source, which say nothing of the arm."""
    fingers = [(('finger1', 'finger2'), [0.02, 0.5], [], 0.0)] if k % 10 == 0 else []
    return fingers + ([driver(arm)] if k % 4 == 0 else [])


class Aggregator:
    """The driver, and who sends its last state again with fingers, stamped anew, at 50 Hz."""

    def __init__(self):
        self.last = None

    def __call__(self, k, arm):
        messages = []
        if k % 20 == 2 and self.last is not None:
            names, position, velocity, _ = self.last
            fingers = ('finger1', 'finger2')
            messages.append(
                ((*names, *fingers), [*position, 0.0, 0.0], [*velocity, 0.0, 0.0], 0.0)
            )
        if k % 4 == 0:
            self.last = driver(arm)
            messages.append(self.last)
        return messages


@pytest.mark.longer
@pytest.mark.parametrize('messages', [spread, with_fingers, Aggregator()])
def test_sources_that_complete_or_repeat_each_other_agree(messages):
    arm = fed(messages)
    assert not arm.pipeline.is_contradicted and arm.pipeline.last_fault == ''
    assert arm.pipeline.reference_status == 'holding'


@pytest.mark.longer
def test_a_bag_alone_is_no_contradiction_though_it_begins_again():
    def played(k, arm):
        t = 1e-3 * (k % 1000)
        names = arm.stack.model.joint_names
        return [(names, POSITION + 0.3 * t * WAY, 0.3 * WAY, 0.0)] if k % 4 == 0 else []

    arm = fed(played, 'gravity_compensation', 2.5)
    assert not arm.pipeline.is_contradicted and not arm.pipeline.is_stale
