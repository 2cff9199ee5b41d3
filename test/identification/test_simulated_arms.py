# SPDX-License-Identifier: Apache-2.0
"""Arms whose truth is known: it is found, within the deviations that are stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from robots import random_tree
from simulated_recordings import TrueArm, motion

from robodyn_ros import inverse_dynamics
from robodyn_ros.identification import DriveTerms, Identification, Recording, identify
from robodyn_ros.spatial import pseudo_inertia

SEEDS = [pytest.param(seed, marks=[] if seed < 4 else pytest.mark.slow) for seed in range(20)]


def identified(arm: TrueArm, seed: int) -> Identification:
    return identify(
        arm.urdf,
        [arm.recording(seed)],
        validation=[arm.recording(seed + 500)],
        friction=DriveTerms(),
    )


def squared_deviations(found: Identification, arm: TrueArm) -> float:
    """Return chi squared of all parameters, their correlations included, per parameter."""
    drive = np.stack([arm.rotor_inertia, arm.viscous, arm.coulomb, arm.offset], axis=1)
    bodies = found.drive_model.base.regrouping @ arm.bodies.inertial_parameters.ravel()
    true = np.concatenate([bodies, drive.ravel()])
    error = np.array([each.value for each in found.parameters]) - true
    size = np.sqrt(np.diagonal(found.covariance))
    correlation = found.covariance / np.outer(size, size)
    return float((error / size) @ np.linalg.solve(correlation, error / size)) / len(error)


@pytest.mark.repeats(check=2)
@pytest.mark.parametrize('seed', SEEDS)
def test_parameters_lie_within_their_deviations_and_torques_within_two_per_cent(seed):
    arm = TrueArm.drawn(seed, 2 + seed % 8)
    found = identified(arm, seed)
    assert found.converged
    # 99.99 % of chi squared over 15 parameters, two joints', lies below 2.9.
    assert squared_deviations(found, arm) < 2.9
    held_out = found.errors[-1]
    assert held_out.relative('urdf') > 0.1
    assert held_out.relative('identified') < 0.02
    assert not held_out.repeats_training
    assert (np.linalg.eigvalsh(pseudo_inertia(found.model.inertial_parameters)) > 0).all()


@pytest.mark.parametrize('seed', [3, 8])
def test_a_tree_is_identified_and_read_back(seed, tmp_path):
    text, tips = random_tree(np.random.default_rng(seed), 5)
    arm = TrueArm.of(text, seed, tip_link=tips)
    assert len(arm.urdf.dh.branches) > 1
    found = identified(arm, seed)
    assert found.converged and squared_deviations(found, arm) < 2.9
    assert found.errors[-1].relative('identified') < 0.02
    found.save(tmp_path / 'identified.yaml')
    assert Identification.load(tmp_path / 'identified.yaml').model == found.model


def test_the_band_holds_what_is_measured_on_another_motion():
    arm = TrueArm.drawn(3, 5)
    found = identified(arm, 3)
    expected = found.predict(arm.recording(600))
    inside = np.abs(expected.measured - expected.effort) <= 1.96 * expected.deviation
    assert 0.88 < inside.mean() < 0.99


def test_friction_that_grows_with_load_is_chosen_and_found():
    arm = TrueArm.drawn(12, 4)

    def recording(seed: int) -> Recording:
        time, q, qd, qdd = motion(arm.urdf, seed, 20.0, 200.0)
        rigid = inverse_dynamics(arm.bodies, q, qd, qdd)
        effort = arm.torque(q, qd, qdd) + 0.1 * np.abs(rigid) * np.tanh(qd / 0.01)
        noise = np.random.default_rng(seed).normal(size=q.shape)
        return Recording(arm.urdf.joint_names, time, q, qd, effort + 0.01 * effort.std() * noise)

    found = identify(arm.urdf, [recording(1)], validation=[recording(2)])
    assert found.terms.load
    (chosen,) = (each for each in found.candidates if each.terms == found.terms)
    assert 0.0 < chosen.relative_error < 0.02
    strong = np.abs(found.errors[-1].torque) > 0.3 * found.errors[-1].torque.max()
    np.testing.assert_allclose(found.friction.load[strong], 0.1, atol=0.02)
    assert found.errors[-1].relative('identified') < 0.02


def test_a_tilted_base_is_found_and_a_level_one_is_left_alone():
    arm = TrueArm.drawn(5, 4)
    level = identify(arm.urdf, [arm.recording(5)], friction=DriveTerms())
    assert not level.base_tilt.any()
    (known,) = [each for each in level.findings if each.code == 'well_known']
    assert str(known) == (
        f'{known.value} of {len(level.parameters)} parameters are known to within 10 %'
    )
    angle = np.radians(3.0)
    gravity = 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    arm.bodies = arm.bodies.with_gravity(gravity)
    found = identify(arm.urdf, [arm.recording(5)], friction=DriveTerms())
    assert 'base_tilt' in {finding.code for finding in found.findings}
    np.testing.assert_allclose(found.model.gravity, gravity, atol=0.05)


def test_a_delay_of_twenty_milliseconds_is_reported():
    arm = TrueArm.drawn(3, 5)
    time, q, qd, qdd = motion(arm.urdf, 1, 20.0, 200.0)
    effort = arm.torque(q, qd, qdd)
    late = Recording(arm.urdf.joint_names, time[4:], q[4:], qd[4:], effort[:-4])
    found = identify(arm.urdf, [late], friction=DriveTerms())
    assert found.delay_deviation < 0.0015
    assert found.delay == pytest.approx(0.020, abs=2.0 * found.delay_deviation)
    assert 'delay' in {finding.code for finding in found.findings}


@pytest.mark.longer
def test_efforts_in_amperes_are_noticed_and_predicted_in_amperes():
    arm = TrueArm.drawn(13, 6)
    torque_of_ampere = np.linspace(9.0, 13.0, 6)
    recording = arm.recording(13)
    amperes = replace(recording, effort=recording.effort / torque_of_ampere)
    found = identify(arm.urdf, [amperes], friction=DriveTerms())
    (unit,) = [finding for finding in found.findings if finding.code == 'effort_unit']
    np.testing.assert_allclose(unit.value, found.effort_scale, rtol=1e-3)
    expected = found.predict(amperes)
    error = np.linalg.norm(expected.effort - expected.measured)
    assert error < 0.02 * np.linalg.norm(expected.measured)
    given = identify(arm.urdf, [amperes], friction=DriveTerms(), effort_scale=torque_of_ampere)
    assert 'effort_unit' not in {finding.code for finding in given.findings}


@pytest.mark.longer
def test_contact_is_weighted_down_and_a_recording_with_a_load_is_named():
    arm = TrueArm.drawn(13, 6)
    clean, new = arm.recording(13), arm.recording(900)
    effort = clean.effort.copy()
    effort[1500:1700] += 3.0 * effort.std(axis=0)
    pushed = replace(clean, effort=effort)
    found = identify(arm.urdf, [pushed], validation=[new], friction=DriveTerms())
    assert 'outlying_rows' in {finding.code for finding in found.findings}
    assert found.errors[-1].relative('identified') < 0.05
    loaded = replace(clean, effort=1.5 * clean.effort)
    found = identify(
        arm.urdf, [arm.recording(14), arm.recording(15), loaded], friction=DriveTerms()
    )
    assert ('recording_differs', 'recording 3') in {
        (finding.code, finding.element) for finding in found.findings
    }
