# SPDX-License-Identifier: Apache-2.0
"""The drive terms of one motion of a public arm: found by torques that Pinocchio computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('pinocchio', reason='pin is not installed')

from ageing_arms import AgeingArm, with_push

from robodyn_ros.errors import InsufficientRecording, NoSuchName
from robodyn_ros.identification import DriveTerms, Identification, identify
from robodyn_ros.monitoring.motion_terms import motion_terms


@pytest.fixture(scope='module')
def arm() -> AgeingArm:
    return AgeingArm('ur5')


@pytest.fixture(scope='module')
def found(arm) -> Identification:
    training = [arm.motion(10_000 + k, duration=20.0) for k in range(2)]
    return identify(arm.urdf, training, friction=DriveTerms(), base_tilt=False)


def test_friction_of_one_joint_that_grew_is_found_in_that_joint_alone(arm, found):
    factors = np.ones(6)
    factors[2] = 1.3
    terms = motion_terms(found, arm.motion(1, friction=factors))
    np.testing.assert_allclose(terms.friction, factors - 1.0, atol=0.03)
    assert (
        np.abs(terms.friction - factors + 1.0) < 4.0 * np.hypot(terms.friction_deviation, 0.01)
    ).all()


def test_a_payload_is_weighed_and_is_no_friction(arm, found):
    terms = motion_terms(found, arm.motion(2, load=1.6))
    assert terms.payload[0] == pytest.approx(0.6, abs=0.02)
    assert terms.payload[3] == pytest.approx(0.6 * 0.05, abs=0.003)
    np.testing.assert_allclose(terms.friction, 0.0, atol=0.05)


def test_coulomb_friction_is_distinguished_from_viscous(arm, found):
    factors = np.ones(6)
    factors[1] = 1.5
    terms = motion_terms(found, arm.motion(3, coulomb=factors, duration=20.0))
    viscous, coulomb, load = terms.terms[1]
    assert coulomb == pytest.approx(0.5, abs=0.1) and viscous == pytest.approx(0.0, abs=0.1)
    assert np.isnan(load)  # the model has no such term


def test_deviations_are_those_of_many_motions(arm, found):
    many = [motion_terms(found, arm.motion(100 + k)) for k in range(12)]
    errors = np.array([each.friction for each in many])
    errors -= errors.mean(axis=0)
    scatter = np.sqrt((errors**2).sum() / (errors.size - 6))
    told = np.sqrt(np.mean([each.friction_deviation**2 for each in many]))
    assert 0.5 < scatter / told < 2.0


def test_a_push_is_left_out_and_changes_nothing(arm, found):
    free = arm.motion(4, duration=20.0)
    torque = np.array([0.0, 2.0, 2.0, 0.5, 0.0, 0.0]) * arm.size
    pushed = with_push(free, 5.0, 7.0, torque)
    expected, terms = motion_terms(found, free), motion_terms(found, pushed)
    assert expected.left_out == 0.0
    assert 0.1 <= terms.left_out < 0.25
    np.testing.assert_allclose(terms.friction, expected.friction, atol=0.02)
    assert terms.payload[0] == pytest.approx(expected.payload[0], abs=0.03)


def test_of_a_motion_that_is_pushed_throughout_nothing_is_said(arm, found):
    pushed = arm.motion(5)
    torque = np.array([0.0, 3.0, 3.0, 3.0, 0.0, 0.0]) * arm.size
    for start in np.arange(0.0, 10.0, 1.6):
        pushed = with_push(pushed, start, start + 0.8, torque)
    with pytest.raises(InsufficientRecording, match='pushed'):
        motion_terms(found, pushed)


def test_efforts_in_amperes_give_the_same(arm, found):
    recording = arm.motion(6)
    gain = np.linspace(5.0, 10.0, 6)
    drive = replace(found.drive_model, effort_scale=found.drive_model.effort_scale * gain)
    amperes = motion_terms(
        replace(found, drive_model=drive), replace(recording, effort=recording.effort / gain)
    )
    newton_metres = motion_terms(found, recording)
    np.testing.assert_allclose(amperes.friction, newton_metres.friction, rtol=1e-6, atol=1e-9)


def test_a_joint_that_stands_says_nothing(arm, found):
    recording = arm.motion(7)
    position, velocity = recording.position.copy(), recording.velocity.copy()
    position[:, 5], velocity[:, 5] = position[0, 5], 0.0
    effort = recording.effort.copy()
    terms = motion_terms(
        found, replace(recording, position=position, velocity=velocity, effort=effort)
    )
    assert np.isnan(terms.friction[5]) and np.isfinite(terms.friction[:5]).all()


def test_another_arm_is_refused(found):
    other = AgeingArm('panda').motion(1, duration=2.0)
    with pytest.raises(NoSuchName):
        motion_terms(found, other)


def test_the_same_samples_have_the_same_digest_and_others_another(arm, found):
    first, again, other = (motion_terms(found, arm.motion(k)) for k in (8, 8, 9))
    assert first.digest == again.digest != other.digest
