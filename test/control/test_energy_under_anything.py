# SPDX-License-Identifier: Apache-2.0
"""Whatever is changed, whatever a driver says and whoever pushes, nothing throws an arm."""

import numpy as np
import pytest

pytest.importorskip('mujoco')

from hypothesis import event, given, settings
from hypothesis import strategies as st
from random_sequences import KINDS, SPRINGS, STREAMS, WEIGHED, Case, Driver

few = settings(max_examples=max(1, settings().max_examples // 4))
many = settings(max_examples=2 * settings().max_examples)
kinds = pytest.mark.parametrize('kind', KINDS)


def judge(kind, case):
    arm = case.run()
    assert arm.excess <= 0.0, (
        f'{arm.peak:.3f} J of {arm.planned:.3f} planned and {arm.work:.3f} of others; '
        f'{arm.pipeline.last_fault}'
    )
    if kind == 'good drivers':
        assert arm.refused == 0
    if kind in ('good drivers', 'changes'):
        assert arm.pipeline.wrong_velocities == []
    return f'followed: {min(arm.followed, 3)}, refused: {min(arm.refused, 3)}'


def slow(rate, *sequence, speed=0.3, driver=None, is_controller=False):
    return Case(list(sequence), speed, rate, driver or Driver(), True, is_controller)


def late(delay, factor, joints=range(7), begins=0.0):
    factors = tuple(factor if i in joints else 1.0 for i in range(7))
    return Driver(delay, factors=factors, begins=begins)


MOTION = ('follow', [-0.5, 0.5, 0.0, -0.1, 0.5, 0.3, 0.0], 1.1, 0.3)
ONCE = {
    'a clock that jumps before a motion begins': slow(5.0, MOTION, ('clock', 10.0)),
    'a motion that waits for the third state': slow(5.0, MOTION),
    'an outlier of late velocities': slow(
        50.0, ('outlier', 1, 1.0, 0.04), driver=late(0.05, 2.0, begins=0.4)
    ),
    'late velocities of a brake': slow(
        50.0,
        ('outlier', 3, -1.0, 0.04),
        speed=0.05,
        driver=late(0.05, 2.0, [3]),
        is_controller=True,
    ),
    'a velocity that is missing': slow(
        5.0, ('payload', 2.0), driver=late(0.1, np.nan, [6]), is_controller=True
    ),
    'an outlier of a position, from which velocities are taken': Case(
        [
            ('outlier', 2, -1.0, 0.04),
            ('silence', 0.12),
            ('outlier', 2, -1.0, 0.04),
            ('contact', 'stop'),
        ],
        0.3,
        100.0,
        late(0.1, 0.5),
    ),
    'a gap after velocities that are late': Case(
        [('silence', 0.11826)], 0.3, 1000.0, late(0.1, 57.3, [1, 5], begins=0.4)
    ),
    'a payload while a brake is due': slow(
        5.0,
        ('silence', 0.112),
        ('payload', 2.0),
        ('contact', 'stop'),
        ('wait', 0.1),
        ('contact', 'stop'),
        ('payload', 2.0),
        ('silence', 0.067),
        speed=0.05,
        driver=late(0.1, 0.5, [1]),
        is_controller=True,
    ),
    'a velocity that is halved in motion': Case(
        [('follow', [0.17, 0.42, -0.12, 0.0, 0.0, 0.0, -0.5], 1.9, 0.3)],
        0.3,
        500.0,
        late(0.0, 0.5, [1], begins=1.0),
    ),
    'a motion that begins with velocities in degrees': Case(
        [('silence', 0.1), ('follow', [-0.2, 0.0, -0.4, 0.0, -0.5, -0.3, -0.2], 2.0, 0.3)],
        0.3,
        200.0,
        late(0.0, 57.3),
    ),
    'slow velocities of nothing under a new payload': slow(
        5.0,
        ('stop',),
        ('payload', 2.0),
        ('change', {'mode': 'gravity_compensation'}),
        ('clock', 10.0),
        driver=late(0.05, 0.0),
    ),
    'slow velocities with the wrong sign under a new payload': slow(
        5.0,
        ('clock', -5.0),
        ('payload', 2.0),
        ('stop',),
        driver=late(0.1, -1.0),
        is_controller=True,
    ),
    'velocities in degrees while every state is just too late': Case(
        [('change', {'state_timeout': 0.1}), ('cancel',)], 0.3, 10.0, late(0.05, 57.3), True
    ),
    'a base that tilts under an arm that nothing damps': Case(
        [
            ('stop',),
            ('contact', 'float'),
            ('tilt', (0.0, 4.181475401299728, -3.8185799590705622)),
            ('change', {'damping': 0.0}),
        ],
        rate=200.0,
        is_controller=True,
    ),
    'a velocity that becomes nothing in a fast motion': Case(
        [('wait', 0.02), ('follow', [-0.38, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.8, 0.0)],
        0.3,
        500.0,
        late(0.0, 0.0, [0], begins=0.4),
        is_controller=True,
    ),
    'velocities that go missing': Case([], 0.05, 100.0, late(0.1, np.nan, begins=1.0)),
}
"""What threw an arm before it was mended, shrunk."""


@pytest.mark.repeats(check=5)
@pytest.mark.parametrize('case', ONCE.values(), ids=ONCE)
def test_no_arm_is_thrown_by_what_threw_one_once(case):
    judge('', case)


@pytest.mark.repeats(check=1, test=2)
@pytest.mark.hypothesis
@kinds
@few
@given(data=st.data())
def test_no_sequence_of_events_throws_an_arm(kind, data):
    event(judge(kind, data.draw(KINDS[kind])))


@pytest.mark.slow
@pytest.mark.hypothesis
@kinds
@many
@given(data=st.data())
def test_none_of_hundreds_of_sequences_of_events_throws_an_arm(kind, data):
    event(judge(kind, data.draw(KINDS[kind])))


@pytest.mark.slow
@pytest.mark.hypothesis
@settings(max_examples=8)
@given(case=STREAMS)
def test_no_stream_second_source_or_mount_throws_an_arm(case):
    event(judge('', case))


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize('cases', [SPRINGS, WEIGHED], ids=['springs', 'weighed loads'])
@settings(max_examples=20)
@given(data=st.data())
def test_no_change_of_springs_motion_push_or_weighing_throws_an_arm(cases, data):
    event(judge('', data.draw(cases)))
