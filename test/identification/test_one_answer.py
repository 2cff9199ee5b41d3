# SPDX-License-Identifier: Apache-2.0
"""What an effort is has one answer, whoever asks; and what a result is worth, is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulated_recordings import TrueArm, motion
from urdf_parts import joint, link, robot

from robodyn_ros import Payload, RobotModel, gravity_torque, inverse_dynamics
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.identification import (
    DriveTerms,
    Identification,
    Recording,
    examine_effort,
    identify,
    identify_payload,
)
from robodyn_ros.identification.effort_examination import with_driver_gravity
from robodyn_ros.identification.recording import clipped as clipped_samples
from robodyn_ros.identification.regression import least_squares

# A vertical lift of 6 kg with an arm of 6 kg on it.
LIFT = robot(
    link('base'),
    joint('lift', 'base', 'carriage', 'prismatic'),
    link('carriage', 6, center=(0.05, 0, 0.1), inertia=(0.08, 0.08, 0.03)),
    joint('shoulder', 'carriage', 'upper', xyz=(0.15, 0, 0), axis=(0, 1, 0)),
    link('upper', 3, center=(0.15, 0, 0), inertia=(0.005, 0.03, 0.03)),
    joint('elbow', 'upper', 'fore', xyz=(0.3, 0, 0), axis=(0, 1, 0)),
    link('fore', 3, center=(0.15, 0.02, 0), inertia=(0.004, 0.02, 0.02)),
)
WEIGHT = 12 * 9.81
COULOMB, VISCOUS = np.array([12.0, 2.0, 1.5]), np.array([40.0, 3.0, 2.0])


def on_a_lift(seed: int = 1) -> tuple[RobotModel, Recording]:
    """Return the lift and what its drives report where nothing else carries it."""
    model = RobotModel.from_urdf(LIFT)
    time, q, qd, qdd = motion(model, seed, 20.0, 100.0)
    effort = inverse_dynamics(model, q, qd, qdd) + VISCOUS * qd + COULOMB * np.tanh(qd / 0.01)
    noise = np.random.default_rng(seed).normal(size=effort.shape) * [1.0, 0.1, 0.1]
    return model, Recording(model.joint_names, time, q, qd, effort + noise)


def less(recording: Recording, torque: np.ndarray) -> Recording:
    return replace(recording, effort=recording.effort - torque)


def warned(found) -> set[tuple[str, str]]:
    return {(each.code, each.element) for each in found.findings if each.level == 'warning'}


def test_columns_that_are_the_same_are_undecided_and_those_that_are_not_are_known():
    time = np.linspace(0.0, 20.0, 500)
    columns = np.column_stack([117.72 + 0 * time, np.sin(time), 0 * time, 1.0 + 0 * time])
    effort = 117.72 + 2.0 * np.sin(time) + 0.1 * np.random.default_rng(0).normal(size=500)
    coefficients, deviation, residual = least_squares(columns, effort)
    np.testing.assert_array_equal(np.isinf(deviation), [True, False, False, True])
    assert coefficients[1] == pytest.approx(2.0, abs=0.03)
    assert 117.72 * coefficients[0] + coefficients[3] == pytest.approx(117.72, abs=0.05)
    assert residual < 2e-3


def test_coulomb_friction_and_offset_of_a_joint_that_turns_one_way_are_undecided():
    speed = 0.5 + 0.2 * np.sin(np.linspace(0.0, 20.0, 500))
    columns = np.column_stack([speed, np.tanh(speed / 0.01), np.ones(500)])
    effort = 2.0 * speed + 3.0 + 0.01 * np.random.default_rng(0).normal(size=500)
    coefficients, deviation, _ = least_squares(columns, effort)
    np.testing.assert_array_equal(np.isinf(deviation), [False, True, True])
    assert coefficients[0] == pytest.approx(2.0, abs=0.01)


def test_a_lift_that_its_drive_carries_reports_a_force():
    model, recording = on_a_lift()
    lift = examine_effort(model, recording).joints[0]
    assert (lift.unit, lift.gravity) == ('torque', 'included')
    assert lift.factor == pytest.approx(1.0, abs=0.01)
    assert np.isnan(lift.offset)  # gravity, or an offset
    found = identify(model, recording, friction=DriveTerms())
    assert not warned(found)
    assert found.model.inertial_parameters[:, 9].sum() == pytest.approx(12.0, rel=0.03)


@pytest.mark.parametrize('balance', [None, [WEIGHT, 0.0, 0.0]])
def test_a_lift_that_a_counterweight_carries_keeps_its_mass(balance):
    model, recording = on_a_lift()
    balanced = less(recording, np.array([WEIGHT, 0.0, 0.0]))
    (said,) = (x for x in examine_effort(model, balanced).findings if x.code == 'gravity_carried')
    assert said.value == pytest.approx(WEIGHT, rel=0.01)
    found = identify(model, balanced, friction=DriveTerms(), balance=balance)
    assert ('gravity_carried', "effort of joint 'lift'") in warned(found)
    masses = found.model.inertial_parameters[:, 9]
    np.testing.assert_allclose(masses, [6.0, 3.0, 3.0], rtol=0.1)
    # The model that is written takes what the drives do: weight less counterweight.
    assert found.model.effort_offset[0] == pytest.approx(-WEIGHT, rel=0.02)
    new = less(on_a_lift(2)[1], np.array([WEIGHT, 0.0, 0.0]))
    seen = found.predict(new)
    left = np.sqrt(np.mean((seen.effort - seen.measured)[seen.moving[:, 0], 0] ** 2))
    assert left < 1.0  # of 13 N, 1 N of noise


def test_a_joint_whose_gravity_a_spring_carries_is_left_out_and_empties_nothing():
    model, recording = on_a_lift()
    carried = gravity_torque(model, recording.position) * [0.0, 1.0, 0.0]
    found = identify(model, less(recording, carried), friction=DriveTerms())
    assert ('gravity_removed', "effort of joint 'shoulder'") in warned(found)
    assert ('joint_left_out', "joint 'shoulder'") in warned(found)
    np.testing.assert_allclose(found.model.inertial_parameters[:, 9], [6.0, 3.0, 3.0], rtol=0.1)


def test_efforts_without_any_gravity_are_refused_with_what_to_do():
    arm = TrueArm.drawn(13, 6)
    recording = arm.recording(13, 20.0, rate=100.0)
    taken = less(recording, gravity_torque(arm.bodies, recording.position))
    with pytest.raises(InvalidArgument, match='--effort-without-gravity'):
        identify(arm.urdf, taken, friction=DriveTerms())


def test_identify_takes_the_unit_that_the_examination_finds():
    arm = TrueArm.drawn(13, 6)
    recording = arm.recording(13, 20.0, rate=100.0)
    effort = recording.effort / np.linspace(9.0, 13.0, 6) * [1, -1, 1, 1, 1, 1]
    amperes = replace(recording, effort=effort)
    examined = examine_effort(arm.urdf, amperes)
    found = identify(arm.urdf, amperes, friction=DriveTerms())
    said = {'effort_scaled', 'effort_inverted'}
    of_both = [{x for x in warned(each) if x[0] in said} for each in (examined, found)]
    assert of_both[0] == of_both[1]
    assert len(of_both[0]) == 7
    assert found.effort_scale[1] < 0.0
    # Refined from there; the examination's own factors are the first of them.
    np.testing.assert_allclose(found.effort_scale, examined.effort_scale, rtol=0.5)
    assert found.errors[0].relative('identified') < 0.03
    assert found.drive_model.scale_is_assumed


def test_a_unit_that_is_assumed_reaches_the_payload_through_the_file(tmp_path: Path):
    arm = TrueArm.drawn(13, 6)
    recording = arm.recording(13, 20.0, rate=100.0)
    amperes = replace(recording, effort=recording.effort / 10.0)
    identify(arm.urdf, amperes, friction=DriveTerms()).save(tmp_path / 'identified.yaml')
    known = Identification.load(tmp_path / 'identified.yaml')
    assert known.drive_model.scale_is_assumed
    bodies = arm.bodies.with_payload(Payload(2.0, (0.05, 0.0, 0.1)))
    loaded = replace(arm, bodies=bodies).recording(14, 20.0, rate=100.0)
    loaded = replace(loaded, effort=loaded.effort / 10.0)
    found = identify_payload(known, loaded)
    assert 'payload_unit' in {code for code, _ in warned(found)}
    assert abs(found.payload.mass - 2.0) < 2 * found.mass_deviation
    measured = identify_payload(known, loaded, effort_scale=10.0)
    assert 'payload_unit' not in {code for code, _ in warned(measured)}
    assert measured.mass_deviation < 0.3 * found.mass_deviation


def test_a_slow_motion_in_amperes_of_the_wrong_sign_is_not_a_torque_without_gravity():
    model = RobotModel.from_urdf(
        robot(
            link('base'),
            joint('j1', 'base', 'arm', axis=(0, 1, 0)),
            link('arm', 3, center=(0.4, 0, 0), inertia=(0.01, 0.1, 0.1)),
        )
    )
    time, q, qd, qdd = motion(model, 1, 60.0, 50.0)
    slow = 10.0
    torque = -3 * 9.81 * 0.4 * np.cos(q) + (0.1 + 3 * 0.4**2) * qdd / slow**2
    effort = (torque + 0.5 * np.tanh(qd / slow / 0.01)) / -12.0
    effort += 0.002 * np.random.default_rng(0).normal(size=effort.shape)
    found = examine_effort(
        model, Recording(model.joint_names, time * slow, q, qd / slow, effort)
    ).joints[0]
    assert (found.unit, found.gravity, found.is_inverted) == ('scaled', 'included', True)
    assert found.factor == pytest.approx(-12.0, rel=0.05)


@pytest.mark.parametrize('seed', [13, 21, 5])
def test_efforts_of_two_joints_that_were_exchanged_are_named(seed):
    arm = TrueArm.drawn(seed, 6)
    recording = arm.recording(seed, 20.0, rate=100.0)
    assert 'effort_order' not in {code for code, _ in warned(examine_effort(arm.urdf, recording))}
    for j in range(5):
        order = np.arange(6)
        order[[j, j + 1]] = j + 1, j
        found = examine_effort(arm.urdf, replace(recording, effort=recording.effort[:, order]))
        of_joint = [each.of_joint for each in found.joints]
        assert of_joint[j] == found.joints[j + 1].joint
        assert of_joint[j + 1] == found.joints[j].joint
        assert not any(of_joint[:j] + of_joint[j + 2 :])


@pytest.mark.parametrize('j', [1, 2, 3])
def test_efforts_of_two_joints_that_were_exchanged_change_no_body(j):
    arm = TrueArm.drawn(13, 6)
    recording = arm.recording(13, 20.0, rate=100.0)
    order = np.arange(6)
    order[[j, j + 1]] = j + 1, j
    exchanged = replace(recording, effort=recording.effort[:, order])
    found = identify(arm.urdf, exchanged, friction=DriveTerms())
    pair = {f'joint {arm.urdf.joint_names[k]!r}' for k in (j, j + 1)}
    assert {element for code, element in warned(found) if code == 'joint_left_out'} == pair
    assert not pair & {element for code, element in warned(found) if code == 'joint_never_moves'}
    true = gravity_torque(arm.bodies, recording.position)
    errors = [
        np.linalg.norm(gravity_torque(each, recording.position) - true)
        for each in (found.model, arm.urdf)
    ]
    assert errors[0] < errors[1]


@pytest.mark.parametrize('part', [0.5, 0.8])
def test_efforts_that_are_clipped_are_named_and_not_identified_from(part):
    arm = TrueArm.drawn(13, 6)
    recording = arm.recording(13, 20.0, rate=100.0)
    assert 'effort_clipped' not in {x.code for x in examine_effort(arm.urdf, recording).findings}
    largest = part * np.abs(recording.effort).max(axis=0)
    clipped = replace(recording, effort=np.clip(recording.effort, -largest, largest))
    names = {f'effort of joint {name!r}' for name in arm.urdf.joint_names}
    found = identify(arm.urdf, clipped, friction=DriveTerms())
    for each in (found, examine_effort(arm.urdf, clipped)):
        assert {element for code, element in warned(each) if code == 'effort_clipped'} == names
    true = gravity_torque(arm.bodies, recording.position)
    error = gravity_torque(found.model, recording.position) - true
    assert np.linalg.norm(error) < 0.03 * np.linalg.norm(true)
    assert found.errors[0].relative('identified') < 0.05


def test_a_joint_that_rests_at_its_largest_load_is_not_clipped():
    """Its effort has steps of 0.1 %, and its encoder flickers by one of 17 bits."""
    random = np.random.default_rng(1)
    time = np.arange(0.0, 20.0, 0.001)
    moved = np.clip(time - 10.0, 0.0, None)
    position = 0.3 * np.sin(2.0 * moved)
    step = 2.0 * np.pi / 2**17
    position = step * np.round(position / step + random.uniform(-0.6, 0.6, len(time)))
    effort = 0.001 * np.round(1000.0 * np.cos(2.0 * moved))
    columns = {'position': position[:, None], 'velocity': None, 'effort': effort[:, None]}
    assert not clipped_samples(Recording(('a',), time, **columns)).any()


def test_clipped_efforts_without_gravity_are_left_out_before_it_is_added():
    arm = TrueArm.drawn(13, 6)
    recording = arm.recording(13, 20.0, rate=100.0)
    effort = recording.effort - gravity_torque(arm.urdf, recording.position)
    largest = 0.8 * np.abs(effort).max(axis=0)
    is_clipped = (np.abs(effort) >= largest).any(axis=1)
    whole = with_driver_gravity(
        replace(recording, effort=np.clip(effort, -largest, largest)), arm.urdf
    )
    np.testing.assert_array_equal(whole.time, recording.time[~is_clipped])
    np.testing.assert_allclose(whole.effort, recording.effort[~is_clipped], atol=1e-9)


@pytest.mark.parametrize('order', [[1, 0], [1, 2, 0], [1, 0, 3, 2]])
def test_efforts_that_are_all_those_of_other_joints_are_refused(order):
    arm = TrueArm.drawn(13, len(order))
    recording = arm.recording(13, 20.0, rate=100.0)
    exchanged = replace(recording, effort=recording.effort[:, order])
    with pytest.raises(InvalidArgument, match='that of another joint at all of them'):
        identify(arm.urdf, exchanged, friction=DriveTerms())


@pytest.mark.parametrize('seed', [13, 21])
def test_one_reversed_effort_is_named_even_where_the_urdf_is_wrong(seed):
    arm = TrueArm.drawn(seed, 6)
    recording = arm.recording(seed, 20.0, rate=100.0)
    for j, name in enumerate(arm.urdf.joint_names):
        effort = recording.effort * np.where(np.arange(6) == j, -1.0, 1.0)
        found = examine_effort(arm.urdf, replace(recording, effort=effort))
        inverted = {x for x in warned(found) if x[0] == 'effort_inverted'}
        assert inverted == {('effort_inverted', f'effort of joint {name!r}')}
        assert np.sign(found.effort_scale).tolist() == np.where(np.arange(6) == j, -1, 1).tolist()


def test_a_joint_that_is_explained_worse_than_by_zero_is_named():
    arm = TrueArm.drawn(13, 6)
    training, new = (arm.recording(seed, 20.0, rate=100.0) for seed in (13, 900))
    effort = new.effort.copy()
    effort[:, 5] *= -1.0  # a motor that was connected the other way round in between
    found = identify(
        arm.urdf, training, validation=replace(new, effort=effort), friction=DriveTerms()
    )
    (said,) = (x for x in found.findings if x.code == 'joint_explained_poorly')
    assert said.element == f'joint {arm.urdf.joint_names[5]!r}'
    assert 'worse than to predict zero' in str(said)


def test_masses_far_from_the_urdf_are_said():
    arm = TrueArm.drawn(13, 6)
    light = arm.urdf.with_inertial_parameters(0.4 * arm.bodies.inertial_parameters)
    found = identify(light, arm.recording(13, 20.0, rate=100.0), friction=DriveTerms())
    assert ('mass_far', 'arm') in warned(found)
