# SPDX-License-Identifier: Apache-2.0
"""Joint states are merged by name, and nothing is made up for what is missing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robodyn_ros.control.joint_state_buffer import JointStateBuffer

NAN = float('nan')


def buffer(continuous=(False, False)):
    return JointStateBuffer(('a', 'b'), 0.1, np.array(continuous))


def test_cycle_waits_until_every_joint_is_refreshed():
    states = buffer()
    states.receive(['a'], [1.0], [0.0], received=1.0)
    states.receive(['a'], [1.1], [0.0], received=1.01)
    assert not states.is_complete
    states.receive(['b'], [2.0], [0.0], received=1.02)
    assert states.is_complete
    assert states.take().position.tolist() == [1.1, 2.0]
    assert not states.is_complete


@pytest.mark.parametrize('bad', [NAN, float('inf'), -float('inf')])
def test_position_that_is_not_finite_counts_as_missing(bad):
    states = buffer()
    states.receive(['a', 'b'], [1.0, 2.0], [0.0, 0.0], received=1.0)
    states.take()
    states.receive(['a', 'b'], [1.1, bad], [0.0, 0.0], received=1.08)
    assert not states.is_complete
    assert states.stale_joints(1.12) == ('b',)


@pytest.mark.parametrize('age, late', [(0.0, 0.1), (0.08, 0.02), (-30.0, 0.1)])
def test_each_joint_becomes_stale_on_its_own_by_receipt_and_by_the_age_of_its_stamp(age, late):
    states = buffer()
    assert states.stale_joints(0.0) == ('a', 'b')
    states.receive(['a'], [1.0], [0.0], received=1.0, stamp=50.0, age=age)
    states.receive(['b'], [1.0], [0.0], received=1.01, stamp=50.0, age=age)
    assert states.stale_joints(0.99 + late) == ()
    assert states.stale_joints(1.005 + late) == ('a',)
    assert states.stale_joints(1.02 + late) == ('a', 'b')


@pytest.mark.parametrize('velocity', [[], [NAN, NAN], [float('inf'), NAN]])
def test_missing_velocity_is_unknown_until_the_filter_has_it(velocity):
    states = buffer()
    states.receive(['a', 'b'], [1.0, 2.0], velocity, received=1.0, stamp=10.0)
    assert np.isnan(states.take().velocity).all()
    states.receive(['a', 'b'], [1.02, 2.0], velocity, received=1.01, stamp=10.01)
    assert states.take().velocity == pytest.approx([2.0, 0.0])


@pytest.mark.parametrize(
    'times, positions, known',
    [
        ((1.0, 1.01), (1.0, 1.01), 1.0),
        ((1.0, 1.01, 1.01), (1.0, 1.01, 1.01), 1.0),  # a stamp that is repeated
        ((1.0, 1.01, 1.01), (1.0, 1.01, 1.02), NAN),  # of two positions
        ((1.0, 1.01, 2.0), (1.0, 1.01, 2.0), NAN),  # after a gap
    ],
)
def test_velocity_that_is_missing_comes_from_stamps_and_does_not_touch_others(
    times, positions, known
):
    states = buffer()
    for time, position in zip(times, positions):
        states.receive(['a', 'b'], [position, 0.0], [NAN, 7.0], received=time, stamp=time)
    assert states.take().velocity == pytest.approx([known, 7.0], nan_ok=True)


def test_differenced_velocity_converges_to_the_true_one():
    states = buffer()
    for i in range(200):
        time = 0.001 * i
        states.receive(
            ['a', 'b'], [np.sin(time), 0.5 * time], [], received=5.0 + time, stamp=9.0 + time
        )
    assert states.take().velocity == pytest.approx([np.cos(0.199), 0.5], rel=5e-3)


@pytest.mark.parametrize('period', [0.001, 0.004, 0.01])
def test_velocity_of_positions_says_how_late_it_is(period):
    states = buffer()
    assert states.take().lag == 0.0
    for i in range(300):
        time = period * i  # at an acceleration of 2 rad/s² the velocity is 2 t
        states.receive(['a', 'b'], [time**2, 0.0], [], received=5.0 + time, stamp=9.0 + time)
    state = states.take()
    assert state.lag == pytest.approx(time - state.velocity[0] / 2.0, rel=1e-6)
    states.receive(['a', 'b'], [1.0, 0.0], [0.0, 0.0], received=5.0 + time, stamp=9.0 + time)
    assert states.take().lag == 0.0


@pytest.mark.parametrize('stamped', [False, True])
def test_first_velocity_is_as_filtered_as_any_and_of_no_shorter_interval(stamped):
    states = buffer()
    # Two samples a microsecond apart, and 2 mrad of noise between them.
    times, noise = [0.0, 1e-6, *0.001 * np.arange(1, 20)], [0.0, 0.002, *np.zeros(19)]
    known = []
    for time, error in zip(times, noise, strict=True):
        stamp = 9.0 + time if stamped else 0.0
        states.receive(
            ['a', 'b'], [0.05 * time + error, 0.0], [], received=5.0 + time, stamp=stamp
        )
        known.append(states.take().velocity[0])
    assert np.isnan(known[:7]).all()
    np.testing.assert_allclose(known[12:], 0.05, atol=0.15)


def test_burst_of_states_that_were_held_up_is_no_speed():
    states = buffer()
    measured = np.concatenate([0.001 * np.arange(101), 0.171 + 0.001 * np.arange(40)])
    received = measured.copy()
    received[101:111] = 0.180 + 0.0001 * np.arange(10)  # the queue of a reader that stood still
    known = []
    for time, at in zip(received, measured, strict=True):
        states.receive(['a', 'b'], [at, 0.0], [], received=5.0 + time)
        known.append(states.take().velocity[0])
    np.testing.assert_allclose(known[20:], 1.0, atol=0.15)


def test_position_that_the_joint_cannot_have_come_to_is_no_speed():
    states = JointStateBuffer(
        ('a', 'b'), 0.1, np.zeros(2, bool), velocity_limits=np.array([2.0, 2.0])
    )
    for i in range(40):
        time, outlier = 0.001 * i, 0.3 * (i == 30)
        states.receive(
            ['a', 'b'], [time + outlier, 0.0], [], received=5.0 + time, stamp=9.0 + time
        )
    assert states.take().velocity == pytest.approx([1.0, 0.0])


def test_differences_go_on_from_a_velocity_that_was_measured():
    states = buffer()
    states.receive(['a', 'b'], [0.0, 0.0], [1.0, 0.0], received=1.0, stamp=9.0)
    states.receive(['a', 'b'], [0.002, 0.0], [], received=1.001, stamp=9.001)
    weight = -np.expm1(-0.001 / JointStateBuffer.TIME_CONSTANT)
    assert states.take().velocity == pytest.approx([1.0 + weight, 0.0])


@pytest.mark.parametrize('names', [['a', 'b'], ['b', 'a']])
def test_state_that_was_taken_does_not_change_any_more(names):
    states = buffer()
    states.receive(names, [1.0, 1.0], [0.0, 0.0], received=1.0)
    state = states.take()
    for i in range(3):
        states.receive(
            ['a', 'b', 'c'][: 2 + i % 2],
            [2.0, 3.0, 4.0][: 2 + i % 2],
            [5.0, 5.0, 5.0][: 2 + i % 2],
            received=1.01 + 0.01 * i,
        )
        states.receive(['b'], [9.0], [9.0], received=1.015 + 0.01 * i)
        states.take()
    assert state.position.tolist() == [1.0, 1.0] and state.velocity.tolist() == [0.0, 0.0]


def test_whole_message_and_a_partial_one_after_it_make_one_state():
    states = buffer()
    states.receive(['a', 'b'], [1.0, 2.0], [0.0, 0.0], received=1.0, stamp=5.0)
    states.receive(['b'], [2.5], [0.5], received=1.001, stamp=5.001)
    assert states.is_complete
    state = states.take()
    assert state.position.tolist() == [1.0, 2.5] and state.time == 5.001
    assert not states.is_complete


def test_whole_turn_of_a_continuous_joint_is_no_velocity():
    states = buffer(continuous=(True, False))
    states.receive(['a', 'b'], [np.pi - 0.01, 0.0], [], received=1.0)
    states.receive(['a', 'b'], [-np.pi + 0.01, 0.0], [], received=1.01)
    assert states.take().velocity == pytest.approx([2.0, 0.0])


def test_late_message_is_ignored_until_the_state_is_stale():
    states = buffer()
    states.receive(['a', 'b'], [1.0, 2.0], [0.0, 0.0], received=1.0, stamp=10.0)
    states.receive(['a', 'b'], [5.0, 5.0], [0.0, 0.0], received=1.01, stamp=9.97)
    assert states.take().position.tolist() == [1.0, 2.0]
    for i in range(20):
        states.receive(['a', 'b'], [5.0, 5.0], [0.0, 0.0], received=1.02 + 0.01 * i, stamp=9.97)
    assert states.take().position.tolist() == [5.0, 5.0]


@pytest.mark.parametrize('since, position', [(0.04, 1.0), (0.06, 5.0)])
def test_source_far_behind_is_passed_over_as_long_as_a_newer_one_has_just_sent(since, position):
    states = buffer()
    states.receive(['a', 'b'], [1.0, 1.0], [0.0, 0.0], received=1.0, stamp=10.0)
    states.receive(['a', 'b'], [5.0, 5.0], [0.0, 0.0], received=1.0 + since, stamp=9.88)
    assert states.take().position.tolist() == [position, position]


def test_clock_that_was_set_back_is_accepted():
    states = buffer()
    states.receive(['a', 'b'], [1.0, 2.0], [], received=1.0, stamp=100.0)
    states.receive(['a', 'b'], [0.0, 0.0], [], received=1.01, stamp=0.01)
    state = states.take()
    assert state.position.tolist() == [0.0, 0.0]
    assert np.isnan(state.velocity).all()
    assert state.time == 0.01


def test_driver_without_stamps_is_timed_by_receipt():
    states = buffer()
    states.receive(['a', 'b'], [1.0, 2.0], [0.0, 0.0], received=3.5)
    state = states.take()
    assert state.time == 3.5 and not state.stamped


@pytest.mark.parametrize(
    'names, position, velocity, reason',
    [
        (['a', 'b'], [1.0], [], '1 positions'),
        (['a', 'b'], [1.0, 2.0, 3.0], [], '3 positions'),
        (['a', 'b'], [1.0, 2.0], [0.0], '1 velocities'),
        (['a', 'a'], [1.0, 2.0], [], 'twice'),
        (['a', 'x'], [1.0], [], '2 names but 1 positions'),
        ([], [1.0], [], '0 names but 1 positions'),
        ([], [], [], None),
        # What is wrong with a message of another robot is not our fault.
        (['x'], [1.0], [], None),
        (['x'], [1.0], [0.0, 0.0], None),
        (['x', 'y'], [1.0], [], None),
    ],
)
def test_malformed_message_is_ignored_with_a_reason_if_it_is_of_our_joints(
    names, position, velocity, reason
):
    states = buffer()
    told = states.receive(names, position, velocity, received=1.0)
    assert told is None if reason is None else reason in told
    assert states.stale_joints(1.0) == ('a', 'b')


anything = st.floats(allow_nan=True, allow_infinity=True)
messages = st.tuples(
    st.lists(st.sampled_from(['a', 'b', 'x']), max_size=3),
    st.lists(anything, max_size=3),
    st.lists(anything, max_size=3),
    st.floats(0.0, 0.2),
    st.floats(-1.0, 1e9),
    st.floats(-5, 5),
)


@given(st.lists(messages, max_size=20))
def test_no_message_makes_a_state_that_was_not_measured(sequence):
    states = buffer(continuous=(True, False))
    now = 0.0
    seen = {'a': set(), 'b': set()}
    for names, position, velocity, elapsed, stamp, age in sequence:
        now += elapsed
        states.receive(names, position, velocity, received=now, stamp=stamp, age=age)
        for name, value in zip(names, position):
            seen.setdefault(name, set()).add(value)
        if states.is_complete:
            state = states.take()
            assert np.isfinite(state.position).all()
            assert state.position[0] in seen['a'] and state.position[1] in seen['b']
            assert not np.isinf(state.velocity).any()


def test_trouble_is_reported_until_it_is_over():
    states, long = buffer(), 'x' * 1000
    for names, position, trouble in (
        (['left_a', long], [1.0, 2.0], 'joint states name left_a, xxxx'),
        (['a'], [1.0], ''),
        (['a', 'b'], [NAN, 1.0], 'position of a is nan'),
        (['a', 'b'], [1.0, float('inf')], 'position of b is inf'),
        (['a', 'b'], [1.0, 1.0], ''),
    ):
        states.receive(names, position, [], received=1.0)
        assert states.trouble().startswith(trouble) and bool(states.trouble()) == bool(trouble)
        assert len(states.trouble()) < 200


def test_names_of_strangers_are_logged_without_escapes_of_terminals():
    states = buffer()
    states.receive(['\x1b[31mred\nline', '\u009b2J'], [1.0, 2.0], [], received=1.0)
    assert states.trouble().isprintable()
    assert r'joint states name \x1b[31mred\nline, \x9b2J;' in states.trouble()


def test_trouble_of_the_past_is_forgotten_although_the_stamps_are_old():
    states = JointStateBuffer(('a', 'b'), 0.1, np.zeros(2, bool))
    states.receive(('a', 'b'), (0.0, np.inf), (), received=1.0, stamp=1.0)
    states.receive(('a', 'b'), (0.0, 0.0), (0.0, 0.0), received=1.1, stamp=2.0, age=86400.0)
    assert states.trouble().startswith('joint states have stamps of another clock (86400 s')
    states.receive(('a', 'b'), (0.0, 0.0), (0.0, 0.0), received=1.2, stamp=2.1, age=0.01)
    assert states.trouble() == ''


@pytest.mark.parametrize(
    'age, words',
    [
        (0.099, ''),
        (0.105, 'joint states are stamped 0.105 s ago; allowed: state_timeout = 0.1'),
        (5.0, "another clock (5 s behind this node's): set use_sim_time as their source does"),
    ],
)
def test_stamps_that_are_too_old_are_reported_and_only_very_old_ones_as_another_clock(age, words):
    states = buffer()
    states.receive(['a', 'b'], [0.0, 0.0], [0.0, 0.0], received=10.0, stamp=1.0, age=age)
    assert states.trouble().endswith(words) and bool(states.trouble()) == bool(words)
    # What another device does wrong is not told of the arm.
    states.receive(['gripper'], [0.0], [0.0], received=10.0, stamp=1.0, age=99.0)
    assert states.trouble().endswith(words) and bool(states.trouble()) == bool(words)


# --- efforts -----------------------------------------------------------------------------------


def test_joints_are_taken_by_name_whatever_their_order_efforts_too():
    states = buffer()
    states.receive(['a', 'b'], [1.0, 2.0], [0.1, 0.2], received=1.0, effort=[5.0, 6.0])
    assert states.take().effort.tolist() == [5.0, 6.0]
    states.receive(
        ['x', 'b', 'a'], [9.0, 2.0, 1.0], [0.9, 0.2, 0.1], received=1.01, effort=[7.0, 6.5, 5.5]
    )
    state = states.take()
    assert state.position.tolist() == [1.0, 2.0] and state.velocity.tolist() == [0.1, 0.2]
    assert state.effort.tolist() == [5.5, 6.5]


@pytest.mark.parametrize(
    ('messages', 'effort'),
    [
        ([('a', [5.0]), ('b', [6.0])], [5.0, 6.0]),  # of drivers that report apart
        # No effort is made up where one of them has none any more.
        ([('a', [5.0]), ('b', [6.0]), ('a', [5.1]), ('b', [])], [5.1, NAN]),
        ([('ab', [NAN, 6.0])], [NAN, 6.0]),
        ([('ab', [])], None),
        ([('ab', [5.0])], None),  # of another length
        ([('ab', [5.0, 6.0, 7.0])], None),
        ([('ab', [5.0, 6.0]), ('ab', [])], None),  # that a driver no longer sends
        ([('ba', [5.0, 6.0]), ('ba', [])], None),
    ],
)
@pytest.mark.parametrize('has_velocities', [True, False])
def test_efforts_are_those_of_the_last_message_of_each_joint_or_none(
    messages, effort, has_velocities
):
    states, place = buffer(), {'a': 1.0, 'b': 2.0}
    for k, (names, sent) in enumerate(messages):
        position = [place[name] for name in names]
        velocity = [0.1] * len(names) if has_velocities else []
        time = 1.0 + 0.01 * k
        assert states.receive(list(names), position, velocity, received=time, effort=sent) is None
    state = states.take()
    assert state.position.tolist() == [1.0, 2.0]
    if effort is None:
        assert state.effort is None
    else:
        np.testing.assert_array_equal(state.effort, effort)
