# SPDX-License-Identifier: Apache-2.0
"""Joint states that come seldom make the commands no engine."""

import pytest

pytest.importorskip('mujoco')

from frictionless_arm import FrictionlessArm

from robodyn_ros.errors import RejectedTrajectory

RATES = [5.0, 10.0, 12.0, 20.0, 30.0, 50.0]  # Hz


def slow(rate, **settings):
    return FrictionlessArm(period=1.0 / rate, state_timeout=max(0.1, 2.5 / rate), **settings)


def allowed_growth(rate):
    """Return by how much: before the third state nothing is known of the period."""
    return 1.1 if rate >= 20.0 else 1.3 if rate >= 10.0 else 2.0


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('rate', RATES)
def test_an_arm_under_gravity_compensation_gains_no_energy(rate):
    arm = slow(rate, speed=0.2)
    arm.run(8.0)
    assert max(arm.energies) < allowed_growth(rate) * arm.energies[0]
    assert arm.energies[-1] < 0.2 * arm.energies[0]
    assert arm.pipeline.last_fault == ''


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('rate', RATES)
def test_an_arm_that_moves_when_computed_torque_begins_gains_no_energy(rate):
    arm = slow(rate, speed=0.3, mode='computed_torque')
    arm.run(3.0)
    assert max(arm.energies) < allowed_growth(rate) * arm.energies[0]
    assert arm.energies[-1] < (0.05 if rate >= 10.0 else 0.3) * arm.energies[0]
    # Twice the default gains need 40 Hz, and two thirds of that are tolerated.
    assert bool(arm.pipeline.last_fault) == (rate < 26.0)
    assert arm.pipeline.reference_status == ('none' if rate < 26.0 else 'holding')


@pytest.mark.repeats(check=2)
@pytest.mark.parametrize('rate', RATES)
def test_a_trajectory_is_followed_or_refused_with_the_rate_that_its_gains_need(rate):
    arm = slow(rate, mode='computed_torque')
    arm.run(3.0 / rate)
    if rate > 40.0:
        arm.follow(0.4, 2.0)
        arm.run(3.0)
        assert max(arm.energies) < 0.35
        return
    with pytest.raises(
        RejectedTrajectory, match=f'at {rate:.0f}.*kp = 100 and kd = 20 need 40 Hz'
    ):
        arm.follow(0.4, 2.0)
    arm.run(1.0)
    assert max(arm.energies) < 1e-9


def test_what_is_followed_is_given_up_where_states_become_too_slow():
    arm = slow(50.0, mode='computed_torque')
    arm.run(0.2)
    arm.follow(0.8, 4.0)
    arm.run(1.0)
    arm.cycles = 100  # milliseconds
    arm.run(4.0)
    assert 'need 40 Hz' in arm.pipeline.last_fault
    assert max(arm.energies) < 0.35
    assert arm.energies[-1] < 1e-3 * max(arm.energies)
