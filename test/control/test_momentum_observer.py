# SPDX-License-Identifier: Apache-2.0
"""External torques: against closed forms, the outside's own in MuJoCo, and at odd samples."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from robots import public_urdf, two_link_urdf

from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.control.contact import MomentumObserver
from robodyn_ros.dynamics.friction import friction_of
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.simulation.arm import ArmSimulation

ARMS = {'panda.urdf': ('panda_link0', 'panda_link8'), 'ur5_robot.urdf': ('base_link', 'tool0')}


def arm(name):
    base, tip = ARMS[name]
    return RobotModel.from_urdf(public_urdf(name), base_link=base, tip_link=tip)


def observer(model, gain=30.0, **options):
    options = {'is_held': True, 'longest': 10.0, **options}
    return MomentumObserver(
        partial(inverse_dynamics, model),
        partial(friction_of, model),
        np.full(model.n, gain),
        **options,
    )


@pytest.fixture(scope='module')
def two_link():
    return RobotModel.from_urdf(two_link_urdf(), gravity=(0.0, -9.81, 0.0))


@pytest.mark.repeats(check=1, test=2)
@pytest.mark.parametrize('name', sorted(ARMS))
@pytest.mark.parametrize('rate', [125.0, 1000.0])
def test_in_motion_it_is_the_low_pass_of_the_external_torque(name, rate):
    # q = a sin(w t), an external torque that varies, too; the torque of the drives is exact.
    model = arm(name)
    n, step, gain = model.n, 1.0 / rate, 25.0
    generator = np.random.default_rng(1)
    amplitude, frequency, phase = generator.uniform((0.2, 1.0, 0.0), (0.6, 3.0, 6.0), (n, 3)).T
    size, external_frequency = generator.uniform((2.0, 1.0), (10.0, 6.0), (n, 2)).T

    def motion(time):
        angle = frequency * time + phase
        return (
            amplitude * np.sin(angle),
            amplitude * frequency * np.cos(angle),
            -amplitude * frequency**2 * np.sin(angle),
        )

    found, worst = observer(model, gain, is_held=False), 0.0
    for k in range(round(3.0 * rate)):
        time = k * step
        q, qd, qdd = motion(time)
        external = size * np.sin(external_frequency * time)
        got = found.update(q, qd, inverse_dynamics(model, q, qd, qdd) - external, time)
        if time > 1.0:
            # The steady response of K / (s + K) to a sine.
            lag = np.arctan2(external_frequency, gain)
            wanted = size * np.cos(lag) * np.sin(external_frequency * time - lag)
            worst = max(worst, float(np.abs(got - wanted).max()))
    assert worst < 0.3 * (100.0 * step) ** 2 + 1e-3 * (rate > 500.0)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('name', sorted(ARMS))
def test_torques_agree_with_those_that_mujoco_applies(name):
    pytest.importorskip('mujoco')
    model, (base, tip) = arm(name), ARMS[name]
    simulation = ArmSimulation.from_urdf(public_urdf(name), base_link=base, tip_link=tip)
    simulation.reset(np.array([0.3, -0.8, 0.4, -1.4, 0.5, 1.2, 0.2][: model.n]))
    simulation.push([12.0, -9.0, 20.0, 1.0, -2.0, 0.5])
    found, followed, zero = observer(model), -np.expm1(-30.0 * 1e-3), np.zeros(model.n)
    found.update(simulation.position, simulation.velocity, zero, 0.0)
    expected, largest = zero, 0.0
    for k in range(400):
        # Gravity and damping: the arm gives way, and moves.
        q, qd = simulation.position, simulation.velocity
        torque = inverse_dynamics(model, q, zero, zero) - 2.0 * qd
        external = simulation.external_torque
        expected = expected + followed * (external - expected)
        simulation.step(torque)
        got = found.update(simulation.position, simulation.velocity, torque, (k + 1) * 1e-3)
        largest = max(largest, float(np.abs(external).max()))
        # Coulomb friction, which MuJoCo has exactly, is what differs on the arm that has any.
        slack = 0.02 * largest + model.coulomb_friction
        assert (np.abs(got - expected) <= slack).all()
    np.testing.assert_allclose(got, expected, atol=0.01 * largest)
    assert np.abs(qd).max() > 0.1


@pytest.mark.parametrize('which', range(3))
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_a_sample_that_is_not_finite_is_one_that_never_came(two_link, which, value):
    q, zero = np.array([0.3, -0.7]), np.zeros(2)
    held = inverse_dynamics(two_link, q, zero, zero) - np.array([4.0, -2.5])
    found, plain = observer(two_link), observer(two_link)
    for k in range(20):
        plain.update(q, zero, held, 0.01 * k)
        sample = [q.copy(), zero.copy(), held.copy()]
        if k in (0, 7):
            sample[which][1] = value
            assert found.update(*sample, 0.01 * k) is None
        else:
            found.update(*sample, 0.01 * k)
    assert found.skipped == 2
    assert np.isfinite(found.torque).all()
    # One step less at the beginning, one of twice the length in the middle.
    share = -np.expm1(-30.0 * 0.01 * 18) / -np.expm1(-30.0 * 0.01 * 19)
    np.testing.assert_allclose(found.torque, share * plain.torque, rtol=1e-9)


@pytest.mark.parametrize('jump', [-0.001, 0.2, np.nan])
def test_a_time_that_jumps_begins_anew(two_link, jump):
    q, zero = np.array([0.3, -0.7]), np.zeros(2)
    found = observer(two_link, longest=0.1)
    for k in range(20):
        found.update(q, zero, np.zeros(2), 0.01 * k)
    assert np.abs(found.torque).max() > 1.0
    assert found.update(q, zero, np.zeros(2), 0.19 + jump) is None
    assert not found.torque.any()


def test_a_time_that_stands_still_changes_nothing(two_link):
    q, zero = np.array([0.3, -0.7]), np.zeros(2)
    found = observer(two_link)
    for k in range(20):
        found.update(q, zero, np.zeros(2), 0.01 * k)
    before = found.torque
    given = found.update(q + 1.0, zero + 1.0, np.ones(2), 0.19)
    np.testing.assert_array_equal(given, found.torque)
    np.testing.assert_array_equal(found.torque, before)
    after, plain = found.update(q, zero, np.zeros(2), 0.2), observer(two_link)
    for k in range(21):
        wanted = plain.update(q, zero, np.zeros(2), 0.01 * k)
    np.testing.assert_allclose(after, wanted, rtol=1e-12)


def test_whole_turns_of_a_joint_are_no_motion(two_link):
    # A driver may report continuous joints in [-pi, pi]: the position jumps, the arm does not.
    found, step = observer(two_link, is_held=False), 0.01
    qd, zero = np.full(2, 2.0), np.zeros(2)
    for k in range(400):
        q = np.remainder(2.0 * k * step + np.pi, 2.0 * np.pi) - np.pi + np.zeros(2)
        got = found.update(q, qd, inverse_dynamics(two_link, q, qd, zero), k * step)
    np.testing.assert_allclose(got, 0.0, atol=0.02)


@pytest.mark.parametrize('gain', [0.0, -1.0, np.nan, np.inf])
def test_a_gain_that_is_not_positive_is_refused(two_link, gain):
    with pytest.raises(InvalidArgument):
        observer(two_link, gain)
