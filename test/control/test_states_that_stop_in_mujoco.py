# SPDX-License-Identifier: Apache-2.0
"""An arm whose joint states stop in motion comes to rest by the model alone."""

import numpy as np
import pytest

pytest.importorskip('mujoco')

from frictionless_arm import FrictionlessArm

TURN = np.array([0.5, -0.3, 0.4, 0.5, -0.4, 0.3, 0.5])
DURATION = 2.0


def moving(instant, **settings):
    """Return an arm a time [s] after its motion began."""
    arm = FrictionlessArm(mode='computed_torque', **settings)
    arm.run(0.1)
    arm.follow(TURN, DURATION)
    arm.run(instant)
    return arm


@pytest.fixture(scope='module')
def plain_energy():
    return max(moving(1.2 * DURATION).energies)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('instant', [0.25, 0.5, 0.75])
@pytest.mark.parametrize('silence', [0.3, 0.6])
def test_arm_is_slower_after_a_silence_than_before_and_holds_when_states_come_back(
    plain_energy, instant, silence
):
    arm = moving(instant * DURATION)
    before = arm.energies[-1]
    arm.run(silence, has_subscribers=False)
    assert max(arm.energies) < 1.1 * plain_energy
    assert arm.energies[-1] < 0.02 * before
    arm.run(2.0)
    assert max(arm.energies) < 1.1 * plain_energy
    assert arm.energies[-1] < 1e-6 * before
    assert arm.pipeline.reference_status == 'holding'


def test_zero_torque_on_stale_states_is_not_braked():
    arm = moving(0.5 * DURATION, on_stale_state='zero', torque_rate_limit=(0.0,))
    arm.run(0.15, has_subscribers=False)
    assert not arm.torque.any()
