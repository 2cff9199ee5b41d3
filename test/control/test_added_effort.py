# SPDX-License-Identifier: Apache-2.0
"""An effort that is added: by name, scaled, limited, faded, and inside all limits."""

from __future__ import annotations

import numpy as np
import pytest
from control_arm import GRAVITY, NAMES, NO_RATE_LIMIT, Q, enabled

from robodyn_ros.control.command_pipeline import AddedEffort

TIMEOUT = 0.1


def added(names=NAMES, scale=(1.0, -0.5), limit=(5.0, 3.0)):
    return AddedEffort(names, np.array(scale), np.array(limit), TIMEOUT)


def test_it_is_scaled_and_then_limited():
    effort = added()
    assert effort.at(0.0) is None
    assert not effort.receive(NAMES, [2.0, 4.0], 10.0)
    np.testing.assert_array_equal(effort.at(10.0), [2.0, -2.0])
    assert not effort.receive(NAMES, [-20.0, 40.0], 10.0)
    np.testing.assert_array_equal(effort.at(10.0), [-5.0, -3.0])
    assert not effort.receive(NAMES, [1e308, -1e308], 10.0)
    np.testing.assert_array_equal(effort.at(10.0), [5.0, 3.0])


def test_joints_are_known_by_their_names():
    effort = added()
    assert not effort.receive(['elbow', 'shoulder'], [4.0, 2.0], 10.0)
    np.testing.assert_array_equal(effort.at(10.0), [2.0, -2.0])
    assert not effort.receive(['elbow'], [4.0], 10.0)
    np.testing.assert_array_equal(effort.at(10.0), [0.0, -2.0])


def test_the_joints_of_a_like_arm_may_have_another_prefix():
    effort = added(['left_shoulder', 'left_elbow'])
    assert not effort.receive(['right_elbow', 'right_shoulder'], [4.0, 2.0], 10.0)
    np.testing.assert_array_equal(effort.at(10.0), [2.0, -2.0])
    assert effort.receive(['right_elbow', 'right_wrist'], [1.0, 1.0], 10.0)


def test_an_old_effort_fades_and_is_gone_when_it_is_twice_as_old():
    effort = added()
    effort.receive(NAMES, [2.0, 4.0], 10.0)
    np.testing.assert_allclose(effort.at(10.1), [2.0, -2.0])
    np.testing.assert_allclose(effort.at(10.15), [1.0, -1.0], atol=1e-9)
    np.testing.assert_allclose(effort.at(10.199), [0.02, -0.02], atol=1e-9)
    assert effort.at(10.2001) is None


@pytest.mark.parametrize(
    ('names', 'values', 'why'),
    [
        (('shoulder', 'wrist', 'elbow'), (1.0, 1.0, 1.0), '3 names'),
        (NAMES, (1.0,), '2 names but 1 efforts'),
        (NAMES, (1.0, np.nan), 'not finite'),
        (NAMES, (np.inf, 1.0), 'not finite'),
        (('elbow', 'elbow'), (1.0, 1.0), 'twice'),
        (('wrist',), (1.0,), "'wrist'"),
    ],
)
def test_what_cannot_be_used_changes_nothing(names, values, why):
    effort = added()
    effort.receive(NAMES, [2.0, 4.0], 10.0)
    assert why in effort.receive(names, values, 10.05)
    assert effort.refused == 1
    np.testing.assert_array_equal(effort.at(10.1), [2.0, -2.0])


def test_it_is_added_to_gravity_compensation_and_taken_away_when_it_is_old():
    arm = enabled('gravity_compensation', **NO_RATE_LIMIT)
    arm.pipeline.added = added()
    np.testing.assert_allclose(arm.run(0.01, Q)[-1].torque, GRAVITY)
    arm.pipeline.added.receive(NAMES, [2.0, 4.0], arm.now)
    command = arm.run(0.05, Q)[-1]
    np.testing.assert_allclose(command.torque, GRAVITY + [2.0, -2.0])
    np.testing.assert_allclose(command.parts.effort, [2.0, -2.0])
    np.testing.assert_allclose(arm.run(0.2, Q)[-1].torque, GRAVITY)


def test_it_is_inside_the_effort_and_the_rate_limit():
    arm = enabled('gravity_compensation', effort_limits=np.array([22.0, 30.0]))
    before = arm.run(0.01, Q)[-1].torque
    arm.pipeline.added = added(scale=(1.0, 1.0), limit=(1e6, 1e6))
    arm.pipeline.added.receive(NAMES, [500.0, 500.0], arm.now)
    for command in arm.run(0.05, Q):
        assert (np.abs(command.torque) <= [22.0, 30.0]).all()
        assert (np.abs(command.torque - before) <= 1000.0 * 0.001 + 1e-9).all()
        before = command.torque
    np.testing.assert_allclose(before, [22.0, 30.0])


def test_nothing_is_added_on_the_way_to_a_stop():
    arm = enabled('gravity_compensation')
    arm.run(0.01, Q)
    arm.pipeline.added = added()
    arm.pipeline.begin_stop()
    arm.pipeline.added.receive(NAMES, [2.0, 4.0], arm.now)
    np.testing.assert_allclose(arm.run(0.05, Q)[-1].torque, GRAVITY)
