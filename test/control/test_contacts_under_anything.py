# SPDX-License-Identifier: Apache-2.0
"""Whatever is measured: estimates stay finite, and contacts are those of their definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import two_link_urdf

from robodyn_ros import RobotModel
from robodyn_ros.control.contact import (
    ContactDetector,
    ContactMonitor,
    ContactThresholds,
    KnownResidual,
)
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.settings import ArmSettings, ControlSettings
from robodyn_ros.errors import NonFiniteValue

PERIOD = 0.01
NAN, INF = float('nan'), float('inf')
MOVING, STANDING = np.array([4.0, 2.0]), np.array([6.0, 3.0])


def arm(*masses):
    """Return an arm with every kind of friction."""
    model = RobotModel.from_urdf(two_link_urdf(*masses), gravity=(0.0, -9.81, 0.0))
    return replace(
        model,
        viscous_friction=np.array([1.0, 0.3]),
        coulomb_friction=np.array([2.0, 0.7]),
        load_friction=np.array([0.05, 0.02]),
        friction_curve=np.array([[0.4, -0.2], [0.1, 0.0]]),
        effort_offset=np.array([0.3, -0.4]),
    )


ARMS = arm(), arm(2.0, 3.0)
TORQUE = RigidBodyTorque.of(ARMS[0], 'compiled')
DYNAMICS = tuple(TORQUE.under(each) for each in ARMS)
SETTINGS = ArmSettings(mode='computed_torque')


def monitor(**given):
    chosen = {
        'contact_threshold_moving': tuple(MOVING),
        'contact_threshold_stationary': tuple(STANDING),
        **given,
    }
    residual = KnownResidual(np.ones(2), given.get('friction_velocity', 0.0) and 1e-3)
    scale, limits = np.array([1.0, -2.0]), np.array([50.0, 30.0])
    return ContactMonitor(
        ARMS[0],
        ControlSettings(**chosen),
        DYNAMICS[0],
        TORQUE.friction(ARMS[0]),
        scale,
        limits,
        residual,
    )


speed = st.sampled_from([0.0, 1e-3, -1e-3, 0.015, 0.3, -0.3, 2.0])
push = st.sampled_from([0.0, 0.1, 0.5, 0.8, 1.2, 3.0, -3.0])
strange_number = st.sampled_from([0.0] * 20 + [NAN, INF, -INF, 1e200])
step = st.sampled_from([PERIOD] * 20 + [0.001, 0.0, -0.005, -3.0, 0.09, 0.3, NAN])
samples = st.tuples(
    st.sampled_from(['take'] * 30 + ['reset', 'load', 'timeout']),
    step,
    st.tuples(speed, speed),
    st.tuples(push, push),
    strange_number,
    st.integers(0, 5),
    st.integers(1, 8),
)
some_settings = st.sampled_from(
    [
        {},
        {'observed_effort': 'measured'},
        {'friction_velocity': 0.02},
        {'friction_velocity': 0.02, 'observed_effort': 'measured', 'contact_dwell': 0.0},
        {'contact_threshold_moving': (1e9,), 'contact_threshold_stationary': (1e9,)},
    ]
)


@given(some_settings, st.lists(samples, min_size=5, max_size=40))
def test_estimates_stay_finite_and_contacts_begin_and_end_by_turns(given, sequence):
    watched = monitor(**given)
    time, position, load, count = 5.0, np.array([0.3, -0.7]), 0, 0
    for what, elapsed, speeds, pushes, strange, where, times in sequence:
        if what == 'reset':
            watched.reset()
        elif what == 'load':
            load = 1 - load
            watched.change_load(ARMS[load], DYNAMICS[load], TORQUE.friction(ARMS[load]))
        elif what == 'timeout':
            watched.observer.change_longest(0.5)
        if what in ('reset', 'load'):
            assert watched.contact is None and not watched.torque.any()
        for k in range(times):
            time = time + (PERIOD if k else 0.0 if np.isnan(elapsed) else elapsed)
            velocity, zero = np.array(speeds), np.zeros((1, 2))
            position = position + PERIOD * velocity
            rigid = DYNAMICS[load](position[None], velocity[None], zero)[0]
            sample = np.array([position, velocity, rigid - np.array(pushes) * MOVING])
            is_strange = not k and strange != 0.0
            if is_strange:
                sample[where // 2, where % 2] = strange
            now = NAN if np.isnan(elapsed) and not k else time
            skipped = watched.observer.skipped
            state = MeasuredState(
                sample[0], sample[1], now, effort=sample[2] / np.array([1.0, -2.0])
            )
            before = watched.contact
            with np.errstate(all='ignore'):
                said = watched.update(state, sample[2], SETTINGS)
            assert np.isfinite(watched.torque).all()
            if is_strange and not np.isfinite(strange) and elapsed != 0.0:
                assert watched.observer.skipped == skipped + 1 and said is None
            if said is None:
                assert watched.contact is None or watched.contact == before
            elif said.is_over:
                assert before is not None and watched.contact is None
            else:
                count += 1
                assert watched.contact == said
                assert abs(said.torque) > 0.0 and said.time >= said.began
    assert watched.detector.count == count


ratio = st.sampled_from([0.0, 0.3, 0.6, 0.69, 0.71, 0.9, 1.01, 1.5, -1.2])


@settings(deadline=None)
@given(
    st.lists(st.tuples(ratio, ratio, st.integers(1, 6)), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.02, 0.035]),
    st.sampled_from([0.01, 0.004]),
)
def test_a_contact_of_a_moving_arm_lasts_from_a_dwell_above_to_a_dwell_well_below(
    rows, dwell, period
):
    detector = ContactDetector(
        ContactThresholds(MOVING, STANDING), ('a', 'b'), ('u', 'v'), (False, True), dwell
    )
    ratios = np.array([row[:2] for row in rows for _ in range(row[2])])
    # Before anything counts, both joints have moved for longer than a reversal is remembered.
    ratios = np.vstack([np.zeros((100, 2)), ratios])
    times = period * np.arange(len(ratios))
    said = [
        detector.update(np.array([0.5, -0.5]), each * MOVING, time)
        for each, time in zip(ratios, times, strict=True)
    ]
    found = [(k, event.is_over) for k, event in enumerate(said) if event is not None]

    def has_lasted(is_so, k):
        """Whether something has been so without a break for a dwell, up to a sample."""
        first = k
        while first > 0 and is_so[first - 1]:
            first -= 1
        return bool(is_so[k]) and times[k] - times[first] >= dwell - 1e-6

    expected, begin = [], None
    for k in range(len(times)):
        if begin is None:
            if any(has_lasted(np.abs(ratios[:, joint]) > 1.0, k) for joint in range(2)):
                expected.append((k, False))
                begin = k + 1
        elif has_lasted((np.abs(ratios[begin:]) < 0.7).all(axis=1), k - begin):
            expected.append((k, True))
            begin = None
    assert found == expected


def test_a_push_is_said_to_begin_and_to_end():
    watched, said, zero = monitor(), [], np.zeros(2)
    for k in range(200):
        pushed = np.array([20.0, 0.0]) if 50 <= k < 100 else zero
        torque = DYNAMICS[0](zero[None], zero[None], zero[None])[0] - pushed
        said.append(watched.update(MeasuredState(zero, zero, PERIOD * k), torque, SETTINGS))
    assert [each.is_over for each in said if each] == [False, True]


@pytest.mark.parametrize('mode', ['feedforward', 'computed_torque'])
def test_a_state_that_gives_no_estimate_is_distinguished_from_one_that_does(mode):
    watched, zero, unknown = monitor(), np.zeros(2), np.full(2, NAN)
    told = []
    for k in range(6):
        is_left_out = k in (3, 4)
        chosen = replace(SETTINGS, mode=mode) if is_left_out else SETTINGS
        speeds = unknown if is_left_out and mode == 'computed_torque' else zero
        watched.update(MeasuredState(zero, speeds, PERIOD * k), zero, chosen)
        told.append(watched.has_estimate)
    assert told == [False, True, True, False, False, True]


def test_without_thresholds_the_observer_alone_runs():
    watched = ContactMonitor(
        ARMS[0], ControlSettings(), DYNAMICS[0], TORQUE.friction(ARMS[0]), np.ones(2), np.ones(2)
    )
    assert watched.detector is None
    for k in range(50):
        state = MeasuredState(np.full(2, 0.01 * k), np.ones(2), PERIOD * k)
        assert watched.update(state, np.ones(2), SETTINGS) is None
    assert watched.torque.any()


def test_an_error_of_the_model_is_a_sample_that_never_came():
    def refusing(q, qd, qdd):
        raise NonFiniteValue('argument q', 'nan', 'finite numbers')

    watched, zero = monitor(), np.zeros(2)
    for k in range(10):
        watched.update(MeasuredState(zero, zero, PERIOD * k), zero, SETTINGS)
    before = watched.torque
    watched.change_load(ARMS[0], refusing, TORQUE.friction(ARMS[0]))
    for k in range(10, 20):
        assert watched.update(MeasuredState(zero, zero, PERIOD * k), zero, SETTINGS) is None
    assert watched.observer.skipped == 9
    assert before.any() and not watched.torque.any()


@pytest.mark.parametrize('size', [1, 3])
def test_arrays_of_another_size_are_refused_and_nothing_is_read_beyond_them(size):
    watched, zero = monitor(), np.zeros(2)
    watched.update(MeasuredState(zero, zero, 0.0), zero, SETTINGS)
    with pytest.raises(ValueError, match=f'position: {size} numbers; allowed: 2'):
        watched.update(MeasuredState(np.zeros(size), zero, PERIOD), zero, SETTINGS)
