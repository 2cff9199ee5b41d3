# SPDX-License-Identifier: Apache-2.0
"""A motion that is run: at a part of its speed, and watched."""

from dataclasses import replace

import numpy as np
import pytest
from known_arms import known_arm
from numpy.testing import assert_allclose

from robodyn_ros import friction_torque, inverse_dynamics
from robodyn_ros.errors import InsufficientRecording, InvalidArgument
from robodyn_ros.identification.motion_run import MotionWatch, approach, slowed, state_at
from robodyn_ros.motions import MotionSamples

RATE = 200.0


@pytest.fixture(scope='module')
def model():
    return known_arm('panda')


@pytest.fixture(scope='module')
def motion(model):
    """Return a sine of every joint about a pose."""
    time = np.arange(0.0, 2.0, 1 / RATE)
    size = 0.2 * np.ones(7)
    center = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.5])
    s, c = np.sin(3 * time)[:, None], np.cos(3 * time)[:, None]
    return MotionSamples(time, center + size * s, 3 * size * c, -9 * size * s)


def test_half_the_speed_is_half_the_velocity_and_a_quarter_of_the_acceleration(motion):
    slow = slowed(motion, 0.5)
    assert slow.time[-1] == pytest.approx(2 * motion.time[-1])
    assert_allclose(np.gradient(slow.q, slow.time, axis=0)[1:-1], slow.qd[1:-1], atol=1e-3)
    assert_allclose(np.gradient(slow.qd, slow.time, axis=0)[1:-1], slow.qdd[1:-1], atol=1e-3)


@pytest.mark.parametrize('speed', [0.0, -1.0, 1.1, np.nan])
def test_a_speed_beyond_that_of_the_motion_is_refused(motion, speed):
    with pytest.raises(InvalidArgument, match='speed'):
        slowed(motion, speed)


def test_the_way_to_the_start_is_slow_whatever_the_limits_allow(model):
    here, start = np.zeros(7), np.linspace(-1, 1, 7)
    way = approach(model, here, start)
    time = np.linspace(0.0, way.duration, 1001)
    assert_allclose(way.position(time)[[0, -1]], [here, start], atol=1e-12)
    assert np.abs(way.velocity(time)).max() <= 0.2 + 1e-12


def test_between_samples_a_motion_is_straight_and_outside_at_rest(motion):
    middle = (motion.time[10] + motion.time[11]) / 2
    q, qd, qdd = state_at(motion, middle)
    assert_allclose(q, (motion.q[10] + motion.q[11]) / 2)
    assert_allclose(qdd, (motion.qdd[10] + motion.qdd[11]) / 2)
    assert_allclose(qd, (motion.qd[10] + motion.qd[11]) / 2)
    for time, end in ((-1.0, 0), (99.0, -1)):
        q, qd, qdd = state_at(motion, time)
        assert_allclose(q, motion.q[end])
        assert not qd.any() and not qdd.any()


def expected(model, motion):
    """Return what drives report that are as the URDF says."""
    rigid = inverse_dynamics(model, motion.q, motion.qd, motion.qdd)
    return rigid + friction_torque(model, motion.qd)


def watched(watch, motion, effort):
    """Return the first problem and its time, of an arm that does as asked with these efforts."""
    for k, time in enumerate(motion.time):
        asked = motion.q[k], motion.qd[k], motion.qdd[k]
        problem = watch.problem(time, asked, motion.q[k], motion.qd[k], effort[k])
        if problem:
            return time, problem
    return None, ''


@pytest.mark.parametrize('scale', [1.0, -8.5])
def test_efforts_as_predicted_with_noise_are_no_problem(model, motion, scale):
    torque = expected(model, motion)
    noise = 0.3 * model.effort_limits * np.random.default_rng(0).normal(size=torque.shape)
    watch = MotionWatch(model, motion, effort_scale=scale)
    assert watched(watch, motion, (torque + noise) / scale) == (None, '')


@pytest.mark.parametrize('joint', [0, 3, 6])
def test_a_push_beyond_the_tolerance_is_reported_within_a_quarter_of_a_second(
    model, motion, joint
):
    torque = expected(model, motion)
    push = 1.2 * 0.4 * model.effort_limits[joint]
    torque[motion.time > 1.0, joint] += push
    time, problem = watched(MotionWatch(model, motion), motion, torque)
    assert 1.0 < time < 1.25
    assert repr(model.joint_names[joint]) in problem and 'prediction' in problem


def test_without_an_effort_limit_the_tolerance_is_what_the_motion_needs(model, motion):
    free = replace(model, effort_limits=np.zeros(7))
    needed = np.abs(expected(free, motion)).max(axis=0)
    assert_allclose(MotionWatch(free, motion).effort_tolerance, needed, rtol=1e-2, atol=2e-3)


def test_an_arm_that_does_not_follow_is_reported_by_joint_and_no_effort_is_refused(model, motion):
    watch, asked = MotionWatch(model, motion), state_at(motion, 0.0)
    q = motion.q[0].copy()
    with pytest.raises(InsufficientRecording):
        watch.problem(0.0, asked, q, motion.qd[0], np.full(7, np.nan))
    q[4] += 0.3
    problem = watch.problem(0.0, asked, q, motion.qd[0], np.zeros(7))
    assert "'panda_joint5'" in problem and '0.3' in problem


@pytest.mark.parametrize(
    'given',
    [
        {'effort_tolerance': [1.0, 2.0]},
        {'effort_tolerance': 0.0},
        {'effort_scale': np.inf},
        {'position_tolerance': -0.1},
    ],
)
def test_tolerances_that_are_none_are_refused_by_name(model, motion, given):
    with pytest.raises(InvalidArgument, match=next(iter(given))):
        MotionWatch(model, motion, **given)
