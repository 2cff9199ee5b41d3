# SPDX-License-Identifier: Apache-2.0
"""What the command pipeline does when there is a contact: report, stop, float."""

from __future__ import annotations

import numpy as np
import pytest
from control_arm import MASS, NAMES, NO_RATE_LIMIT, WEIGHT, enabled, to

WHAT = "contact: 12 of 4 N m at joint 'elbow', likely on link 'hand'"


def following(**settings):
    """Return an arm on its way from rest."""
    arm = enabled(max_following_error=np.inf, **NO_RATE_LIMIT, **settings)
    arm.run(0.01, (0.1, 0.2))
    arm.pipeline.follow(to([0.6], names=NAMES[:1]))
    arm.run(0.06, (0.12, 0.2), (0.3, 0.0))
    assert arm.pipeline.reference_status == 'moving'
    return arm


def test_report_changes_nothing():
    arm = following()
    arm.pipeline.react_to_contact('report', WHAT)
    assert arm.pipeline.reference_status == 'moving'
    assert arm.pipeline.last_fault == ''


def test_stop_brakes_from_where_the_arm_is_and_holds():
    arm = following()
    arm.pipeline.react_to_contact('stop', WHAT)
    command = arm.run(0.001, (0.12, 0.2), (0.3, 0.0))[-1]
    assert arm.pipeline.reference_status == 'braking'
    np.testing.assert_allclose(command.reference.position, [0.12, 0.2], atol=1e-3)
    np.testing.assert_allclose(command.reference.velocity, [0.3, 0.0], atol=0.02)
    arm.run_elsewhere(2.5, (0.15, 0.2))
    assert arm.pipeline.reference_status == 'holding'
    assert arm.pipeline.last_fault == WHAT
    assert arm.pipeline.dropped_references == 1


def test_contacts_in_a_row_do_not_begin_the_brake_anew():
    slowly = {'braking_acceleration': np.array([0.5, 0.5])}
    once, often = following(**slowly), following(**slowly)
    for arm in (once, often):
        arm.pipeline.react_to_contact('stop', 'the first contact')
    for position in 0.12 + 0.3 * 0.02 * np.arange(1, 41):
        state = (position, 0.2), (0.3, 0.0)
        wanted, braked = (arm.run(0.02, *state)[-1].reference for arm in (once, often))
        often.pipeline.react_to_contact('stop', WHAT)
        np.testing.assert_array_equal(braked.velocity, wanted.velocity)
        np.testing.assert_array_equal(braked.position, wanted.position)
    assert braked.velocity[0] < 0.02  # at 0.8 s of 0.9
    assert often.pipeline.last_fault == WHAT
    assert often.pipeline.dropped_references == 1


def test_contact_after_the_brake_is_given_way_to():
    arm = following()
    arm.pipeline.react_to_contact('stop', WHAT)
    arm.run_elsewhere(2.5, (0.15, 0.2))
    assert arm.pipeline.reference_status == 'holding'
    arm.pipeline.react_to_contact('stop', WHAT)
    command = arm.run_elsewhere(0.1, (0.17, 0.2))[-1]
    np.testing.assert_allclose(command.reference.position, [0.17, 0.2])


@pytest.mark.parametrize('damping', [0.0, 5.0])
def test_float_compensates_gravity_and_damps_what_moves(damping):
    arm = following(damping=damping)
    arm.pipeline.react_to_contact('float', WHAT)
    command = arm.run(0.01, (0.123, 0.2), (0.3, 0.0))[-1]
    assert arm.pipeline.reference_status == 'none'
    drag = damping * MASS * [0.3, 0.0]
    np.testing.assert_allclose(command.torque, WEIGHT * np.cos([0.123, 0.2]) - drag)


@pytest.mark.parametrize('mode', ['gravity_compensation', 'feedforward'])
def test_without_feedback_stop_compensates_gravity_and_damps(mode):
    arm = enabled(mode, **NO_RATE_LIMIT, damping=5.0)
    arm.run(0.01, (0.117, 0.2), (0.3, 0.0))
    arm.pipeline.react_to_contact('stop', WHAT)
    command = arm.run(0.01, (0.12, 0.2), (0.3, 0.0))[-1]
    assert command.torque[0] <= WEIGHT[0] * np.cos(0.12)
    assert arm.pipeline.last_fault == WHAT


@pytest.mark.parametrize('action', ['stop', 'float'])
def test_a_new_trajectory_is_taken_and_takes_note_of_it(action):
    arm = following()
    arm.pipeline.react_to_contact(action, WHAT)
    arm.run_elsewhere(2.5, (0.15, 0.2))
    arm.pipeline.follow(to([0.1], names=NAMES[:1]))
    arm.run(0.1, (0.15, 0.2))
    assert arm.pipeline.reference_status == 'moving'
    assert arm.pipeline.last_fault == ''


def test_a_disabled_pipeline_does_not_react():
    arm = following()
    arm.pipeline.disable()
    arm.pipeline.react_to_contact('stop', WHAT)
    assert arm.pipeline.last_fault == ''


def test_a_second_contact_like_the_first_is_a_fault_of_its_own():
    arm = following()
    counts = [arm.pipeline.fault_changes]
    for _ in range(2):
        arm.pipeline.react_to_contact('stop', WHAT)
        arm.run_elsewhere(2.5, (0.15, 0.2))
        counts.append(arm.pipeline.fault_changes)
    assert counts[1] < counts[2]
    arm.run_elsewhere(0.5, (0.15, 0.2))
    assert arm.pipeline.fault_changes == counts[2]
