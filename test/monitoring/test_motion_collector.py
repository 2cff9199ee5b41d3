# SPDX-License-Identifier: Apache-2.0
"""Motions cut from samples as they come, whatever velocities the driver gives with them."""

from __future__ import annotations

import numpy as np
import pytest

from robodyn_ros.errors import MalformedData
from robodyn_ros.monitoring.motions import MotionCollector, examined

RATE = 100.0


def collected(recording, velocity):
    """Return the motions that are over when a recording has come, the arm standing around it."""
    still = int(3.0 * RATE)
    around = ((still, still), (0, 0))
    q, tau = (np.pad(x, around, mode='edge') for x in (recording.position, recording.effort))
    qd = np.pad(velocity, around, constant_values=0.0 if np.isfinite(velocity).all() else np.nan)
    collector = MotionCollector(recording.joint_names)
    motions = [
        collector.add(100.0 + k / RATE, *sample) for k, sample in enumerate(zip(q, qd, tau))
    ]
    return [each for each in motions if each is not None]


def late(velocity, seconds):
    return np.roll(velocity, int(seconds * RATE), axis=0)


WRONG = {
    'zero': (lambda qd: 0.0 * qd, 'is zero while it moves'),
    'of the wrong sign': (lambda qd: -qd, 'has the wrong sign'),
    'of the wrong sign, one joint': (lambda qd: qd * [1.0, -1.0, 1.0], "'j2' has the wrong sign"),
    'too large, one joint': (lambda qd: qd * [1.0, 1.0, 1.4], "'j3' is 1.4 times"),
    'late': (lambda qd: late(qd, 0.2), '200 ms behind'),
}


@pytest.mark.parametrize('wrong', WRONG)
@pytest.mark.parametrize('duration', [5.0, 9.0])
def test_wrong_velocities_are_named_and_those_of_the_positions_taken(arm, found, wrong, duration):
    spoil, words = WRONG[wrong]
    recording = arm.recording(50, duration, rate=RATE)
    clean, spoilt = (
        examined(found, *collected(recording, velocity), 'live')
        for velocity in (recording.velocity, spoil(recording.velocity))
    )
    assert clean.warnings == ()
    assert {each.code for each in spoilt.warnings} == {'wrong_velocity'}
    assert any(words in str(each) for each in spoilt.warnings)
    for right, told in zip(clean.motions, spoilt.motions, strict=True):
        np.testing.assert_allclose(told.terms.friction, right.terms.friction, atol=0.15)


def test_without_velocities_those_of_the_positions_are_taken_without_a_warning(arm, found):
    recording = arm.recording(50, 9.0, rate=RATE)
    (motion,) = collected(recording, np.full_like(recording.velocity, np.nan))
    assert motion.velocity is None
    told = examined(found, motion, 'live')
    assert told.warnings == () and len(told.motions) == 1
    assert np.abs(told.motions[0].terms.friction).max() < 0.2


@pytest.mark.parametrize(
    ('spoil', 'words'),
    [(np.degrees, 'in degrees'), (lambda qd: qd[:, [1, 0, 2]], "that of joint 'j2'")],
)
def test_velocities_of_another_unit_or_order_are_refused(arm, found, spoil, words):
    recording = arm.recording(50, 9.0, rate=RATE)
    with pytest.raises(MalformedData, match=words):
        examined(found, *collected(recording, spoil(recording.velocity)), 'live')


def test_an_arm_that_stands_with_coarse_encoders_begins_no_motion(arm, found):
    recording = arm.recording(50, 9.0, rate=RATE)
    noise = np.random.default_rng(4).normal(0.0, 1e-3, recording.position.shape)
    still = 0.0 * recording.velocity
    stands = type(recording)(
        recording.joint_names,
        recording.time,
        recording.position[:1] + noise,
        still,
        recording.effort,
    )
    assert collected(stands, still) == []
