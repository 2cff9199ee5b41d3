# SPDX-License-Identifier: Apache-2.0
"""What an effort is: its unit, its sign, what was removed from it, how late it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_recordings import TrueArm, motion
from urdf_parts import joint, link, robot

from robodyn_ros import Payload, RobotModel, gravity_torque
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, NoSuchName
from robodyn_ros.identification import (
    DriveTerms,
    EffortFindings,
    Recording,
    examine_effort,
    identify,
    with_driver_gravity,
)

PENDULUM = robot(
    link('base'),
    joint('j1', 'base', 'arm', axis=(0, 1, 0)),
    link('arm', 3, center=(0.4, 0, 0), inertia=(0.01, 0.1, 0.1)),
)


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(13, 6)


@pytest.fixture(scope='module')
def recording(arm) -> Recording:
    return arm.recording(13, 20.0, rate=100.0)


@pytest.fixture(scope='module')
def clean(arm, recording) -> EffortFindings:
    return examine_effort(arm.urdf, [recording])


@pytest.fixture(scope='module')
def telling(clean) -> list[int]:
    """Return the joints that tell, and that gravity acts on."""
    return [j for j, each in enumerate(clean.joints) if each.gravity == 'included']


def spoilt(recording: Recording, joints, change) -> Recording:
    effort = recording.effort.copy()
    for j in joints:
        effort[:, j] = change(j, effort[:, j])
    return replace(recording, effort=effort)


def codes(found: EffortFindings) -> set[str]:
    return {each.code for each in found.findings}


def test_an_effort_that_is_a_torque_raises_no_alarm(clean, telling):
    assert len(telling) >= 3
    assert not codes(clean) & {'effort_scaled', 'effort_inverted', 'gravity_removed', 'delay'}
    assert all(each.unit in ('torque', 'undecided') for each in clean.joints)
    np.testing.assert_array_equal(clean.effort_scale, 1.0)


@pytest.mark.parametrize('constant', [12.0, 0.05, -12.0])
def test_a_pendulum_in_amperes_has_its_torque_constant_found(constant):
    model = RobotModel.from_urdf(PENDULUM)
    time, q, qd, qdd = motion(model, 1, 20.0, 100.0)
    # (I + m l²) qdd - m g l cos q about y, and friction.
    torque = (0.1 + 3 * 0.4**2) * qdd - 3 * 9.81 * 0.4 * np.cos(q)
    offset = 0.36 / constant
    effort = (torque + 0.8 * qd + 1.5 * np.tanh(qd / 0.01)) / constant + offset
    found = examine_effort(model, [Recording(model.joint_names, time, q, qd, effort)])
    (only,) = found.joints
    assert only.unit == 'scaled'
    assert only.is_inverted == (constant < 0)
    assert only.factor == pytest.approx(constant, rel=2e-3)
    assert only.offset == pytest.approx(offset, rel=0.05)
    assert only.friction == 'included'
    assert only.gravity == 'included'
    assert found.effort_scale == pytest.approx([constant], rel=2e-3)


@pytest.mark.parametrize('factor', [0.1, 10.0])
def test_a_factor_is_recognised_on_each_joint_and_on_all(arm, recording, telling, factor):
    for joints in ([telling[0]], [telling[-1]], range(6)):
        found = examine_effort(
            arm.urdf, [spoilt(recording, joints, lambda j, effort: factor * effort)]
        )
        for j in telling:
            assert found.joints[j].unit == ('scaled' if j in joints else 'torque')
        for j in set(telling) & set(joints):
            assert 1 / 1.6 < found.joints[j].factor * factor < 1.6
            assert found.effort_scale[j] == found.joints[j].factor
        assert 'effort_scaled' in codes(found)


def test_missing_gravity_is_recognised_on_each_joint_and_on_all(arm, recording, telling):
    gravity = gravity_torque(arm.bodies, recording.position)
    for joints in ([telling[0]], [telling[1]], range(6)):
        found = examine_effort(
            arm.urdf, [spoilt(recording, joints, lambda j, effort: effort - gravity[:, j])]
        )
        removed = {j for j, each in enumerate(found.joints) if each.gravity == 'removed'}
        assert removed >= set(telling) & set(joints)
        assert removed <= set(joints)
        said = [each for each in found.findings if each.code == 'gravity_removed']
        assert said and all('--effort-without-gravity' in str(each) for each in said)


@pytest.mark.longer
def test_gravity_that_a_driver_took_is_missed_and_added_again(arm, recording, telling):
    told = arm.urdf.with_payload(Payload(1.5, (0.0, 0.02, 0.05)))  # by the driver's model
    reported = replace(
        recording, effort=recording.effort - gravity_torque(told, recording.position) / 2.0
    )
    whole = with_driver_gravity(reported, told, 2.0)
    np.testing.assert_allclose(whole.effort, recording.effort, atol=1e-12)
    full, again = (
        identify(arm.urdf, each, effort_scale=2.0, friction=DriveTerms(), base_tilt=False)
        for each in (recording, whole)
    )
    np.testing.assert_allclose(
        again.model.inertial_parameters, full.model.inertial_parameters, rtol=1e-6, atol=1e-8
    )


def test_friction_that_is_removed_is_said_to_be(arm):
    time, q, qd, qdd = motion(arm.urdf, 13, 20.0, 100.0)
    arm = replace(arm, viscous=np.zeros(6), coulomb=np.zeros(6))
    found = examine_effort(
        arm.bodies, [Recording(arm.urdf.joint_names, time, q, qd, arm.torque(q, qd, qdd))]
    )
    strong = [each for each in found.joints if each.unit == 'torque']
    assert strong
    assert all(each.friction == 'removed' for each in strong)


def test_a_delay_of_twenty_milliseconds_is_found_of_all_joints_and_of_one(arm, recording, telling):
    def late(j, effort):
        return np.interp(recording.time - 0.02, recording.time, effort)

    found = examine_effort(arm.urdf, [spoilt(recording, range(6), late)])
    assert found.delay == pytest.approx(0.02, abs=2e-3)
    assert 'delay' in codes(found)
    j, *others = telling
    found = examine_effort(arm.urdf, [spoilt(recording, [j], late)])
    assert found.joints[j].delay == pytest.approx(0.02, abs=2e-3)
    np.testing.assert_allclose([found.joints[k].delay for k in others], 0.0, atol=2e-3)
    assert abs(found.delay) < 5e-3


def test_a_joint_that_is_all_friction_is_undecided(arm, recording, telling):
    j = telling[0]
    velocity = recording.velocity[:, j]
    found = examine_effort(
        arm.urdf,
        [spoilt(recording, [j], lambda k, effort: 50 * effort.std() * np.tanh(velocity / 0.01))],
    )
    assert found.joints[j].unit == 'undecided'
    assert np.isnan(found.joints[j].factor)
    assert ('effort_undecided', f"effort of joint '{arm.urdf.joint_names[j]}'") in {
        (each.code, each.element) for each in found.findings
    }


def test_undecided_joints_get_the_others_factor_where_all_are_scaled(arm, recording, telling):
    amperes = spoilt(recording, range(6), lambda j, effort: effort / 12.0)
    found = examine_effort(arm.urdf, [amperes])
    undecided = [j for j, each in enumerate(found.joints) if each.unit == 'undecided']
    known = [each.factor for each in found.joints if each.unit == 'scaled']
    np.testing.assert_allclose(
        found.effort_scale[undecided], np.exp(np.mean(np.log(known))), rtol=1e-12
    )


@pytest.mark.longer
def test_the_scale_that_is_found_serves_to_identify(arm, recording, telling):
    amperes = spoilt(recording, range(6), lambda j, effort: -effort / 12.0)
    scale = examine_effort(arm.urdf, [amperes]).effort_scale
    found = identify(arm.urdf, [amperes], effort_scale=scale)
    # The URDF's masses are off by a third, and so is each joint's scale.
    assert found.errors[0].relative('identified') < 0.15
    assert found.errors[0].relative('identified') < found.errors[0].relative('urdf')


def test_a_joint_that_never_moves_is_undecided(arm, recording):
    position, velocity = recording.position.copy(), recording.velocity.copy()
    position[:, 2], velocity[:, 2] = 0.1, 0.0
    found = examine_effort(arm.urdf, [replace(recording, position=position, velocity=velocity)])
    assert found.joints[2].unit == 'undecided'


@pytest.mark.parametrize(
    ('delay', 'text'),
    [
        (-0.00852, 'not distinguishable from zero, with a deviation of 34 ms'),
        (0.0852, '85 ± 34 ms'),
        (float('nan'), 'unknown'),
    ],
)
def test_a_delay_is_stated_where_it_is_more_than_two_deviations_from_zero(delay, text):
    found = EffortFindings((), delay, 0.034, ())
    assert found.delay_text == text and text in repr(found)


def test_bad_input_is_refused_by_name(arm, recording):
    with pytest.raises(InvalidArgument, match='recordings'):
        examine_effort(arm.urdf, [])
    with pytest.raises(NoSuchName, match='j7'):
        examine_effort(TrueArm.drawn(5, 7).urdf, [recording])
    with pytest.raises(InsufficientRecording):
        examine_effort(arm.urdf, [recording.between(1.0, 1.5)])
