# SPDX-License-Identifier: Apache-2.0
"""Damping does not drive an arm whose velocities are measured wrong."""

import numpy as np
import pytest

pytest.importorskip('mujoco')

from frictionless_arm import FrictionlessArm


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('joint', [3, 6])
def test_an_arm_that_moves_when_it_is_enabled_is_not_driven(joint):
    arm = FrictionlessArm(0.05, joint)
    arm.run(2.0)
    assert max(arm.energies) < 1.6 * arm.energies[0]
    name = arm.stack.model.joint_names[joint]
    words = f'velocity of joint {name!r} has the wrong sign'
    assert arm.pipeline.wrong_velocities == [words]
    assert words in arm.pipeline.last_fault


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('joint', [3, 6])
def test_neither_contacts_nor_a_stop_begin_again_what_was_given_up(joint):
    arm = FrictionlessArm(0.05, joint)
    arm.run(0.5)
    arm.pipeline.react_to_contact('float', 'a contact')
    arm.run(0.5)
    arm.pipeline.begin_stop()
    arm.run(1.0)
    assert max(arm.energies) < 2.0 * arm.energies[0]


def test_an_arm_that_is_too_fast_is_not_driven():
    arm = FrictionlessArm(0.0, 3)
    arm.run(0.01)
    arm.move(2.0 * arm.stack.model.velocity_limits * (np.arange(7) == 3))
    moving = arm.energy
    arm.run(1.0)
    assert max(arm.energies) < 2.0 * moving
    assert 'moves at' in arm.pipeline.last_fault
    assert 'has the wrong sign' in arm.pipeline.wrong_velocities[0]
    assert arm.energies[-1] < 0.05 * moving
