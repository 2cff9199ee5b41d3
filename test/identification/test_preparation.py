# SPDX-License-Identifier: Apache-2.0
"""Preparation delays nothing, keeps both sides of the equation alike, and knows what is motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference_law import presliding_direction
from simulated_recordings import TrueArm, motion

from robodyn_ros.identification import DriveTerms, Recording
from robodyn_ros.identification.comparison import repeats
from robodyn_ros.identification.drive_terms import candidates, drive_columns, presliding_state
from robodyn_ros.identification.preparation import (
    Band,
    even_samples,
    low_passed,
    motion_band,
    states_of,
)
from robodyn_ros.identification.rows import rows_of, tilt_axes


def test_a_low_pass_keeps_a_slow_sine_where_it_is_and_takes_a_fast_one():
    time = np.arange(0.0, 10.0, 0.002)
    slow, fast = np.sin(2 * np.pi * 0.5 * time), np.sin(2 * np.pi * 40.0 * time)
    kept = low_passed((slow + fast)[:, None], 5.0, 500.0)[:, 0]
    assert np.abs(kept - slow)[250:-250].max() < 1e-3
    # At the ends there is no telling what is noise: a fifth of it may stay.
    assert np.abs(kept - slow).max() < 0.2


def test_the_terms_of_a_drive_are_named_in_words():
    named = str(DriveTerms(presliding=0.01, curve=True, load=True))
    assert named == 'viscous and Coulomb friction, a curve, load, presliding over 0.01'


def test_a_straight_line_passes_a_filter_unchanged_to_its_ends():
    line = np.linspace(-1.0, 3.0, 400)[:, None]
    np.testing.assert_allclose(low_passed(line, 5.0, 100.0), line, atol=1e-4)


def test_true_parameters_explain_prepared_rows():
    arm = TrueArm.drawn(4, 6)
    (stretch,) = even_samples(arm.recording(4, noise=0.0))
    rows = rows_of(arm.urdf, states_of(stretch, motion_band([stretch])), np.ones(6))
    coefficients = np.stack([arm.rotor_inertia, arm.viscous, arm.coulomb, arm.offset], axis=1)
    torque = rows.inertial @ arm.bodies.inertial_parameters.ravel()
    torque = torque + (rows.drive(DriveTerms()) * coefficients).sum(axis=-1)
    error = np.where(rows.used, torque - rows.effort, 0.0)
    size = np.sqrt((rows.effort**2).mean(axis=0))
    assert (np.sqrt((error**2).sum(axis=0) / rows.used.sum(axis=0)) < 0.003 * size).all()


def test_the_band_follows_the_motion_between_two_and_ten_hertz():
    time = np.arange(0.0, 20.0, 0.005)
    for frequency, cutoff in ((0.1, 2.0), (1.0, 5.0), (6.0, 10.0)):
        q = 0.1 * np.sin(2 * np.pi * frequency * time)[:, None]
        qd = 0.2 * np.pi * frequency * np.cos(2 * np.pi * frequency * time)[:, None]
        (stretch,) = even_samples(Recording(('j',), time, q, qd, q))
        assert motion_band([stretch]).cutoff == pytest.approx(cutoff, rel=0.15)


def test_standing_before_and_after_the_motion_is_left_out_unless_asked_for():
    time = np.arange(0.0, 10.0, 0.01)
    q = np.where(time < 3, 0.0, np.where(time > 7, 2.0, (time - 3) / 2))[:, None]
    qd = np.where((time >= 3) & (time <= 7), 0.5, 0.0)[:, None]
    recording = Recording(('j',), time, q, qd, 1.0 + q)
    (moving,) = even_samples(recording)
    assert moving.time[0] == pytest.approx(3.0, abs=0.02)
    assert moving.time[-1] == pytest.approx(7.0, abs=0.02)
    (whole,) = even_samples(recording, standing=True)
    assert whole.time[-1] == pytest.approx(9.99, abs=0.001)


def test_differenced_velocities_are_nearly_the_measured_ones():
    arm = TrueArm.drawn(1, 3)
    recording = arm.recording(1, noise=0.0)
    bare = replace(recording, velocity=None)
    band = Band(5.0)
    measured, differenced = (states_of(even_samples(each)[0], band) for each in (recording, bare))
    inside = slice(100, 1500)
    np.testing.assert_allclose(
        np.interp(measured.time[inside], differenced.time, differenced.qd[:, 0]),
        measured.qd[inside, 0],
        atol=2e-3,
    )


def test_presliding_turns_over_its_displacement_and_is_kept_at_rest():
    qd = np.concatenate([np.full(50, 0.1), np.zeros(100), np.full(50, -0.1)])[:, None]
    z = presliding_state(qd, 0.001, 1e-3)[:, 0]
    # The solution of dz/dt = (qd / d)(1 - z) from zero, and of the way back from there.
    assert z[49] == pytest.approx(1 - np.exp(-5.0))
    assert (z[50:150] == z[49]).all()
    assert z[-1] == pytest.approx(-1 + (1 + z[49]) * np.exp(-5.0))


def test_presliding_of_a_recording_is_that_of_the_observers_samples():
    qd = np.random.default_rng(5).normal(scale=0.01, size=(500, 2))
    found, turned = presliding_state(qd, 0.001, 2e-5), np.zeros(2)
    for velocity, expected in zip(qd, found):
        turned = presliding_direction(turned, velocity, 0.001, 2e-5)
        np.testing.assert_allclose(turned, expected, atol=1e-12)


def test_presliding_does_not_depend_on_the_step():
    fine = presliding_state(np.full((1000, 1), 0.05), 0.0001, 1e-3)[-1]
    coarse = presliding_state(np.full((10, 1), 0.05), 0.01, 1e-3)[-1]
    np.testing.assert_allclose(fine, coarse)


def test_a_dozen_kinds_of_friction_are_compared_the_plainest_first():
    assert len(set(candidates())) == 12
    assert candidates()[0] == DriveTerms()
    names = {len(terms.names) for terms in candidates()}
    assert names == {4, 5, 6, 7}


def test_columns_of_a_drive_are_the_terms_in_order():
    qd, qdd = np.array([[0.3]]), np.array([[-2.0]])
    terms = DriveTerms(curve=True, load=True)
    columns = drive_columns(terms, qd, qdd, rigid_torque=np.array([[-5.0]]))[0, 0]
    np.testing.assert_allclose(
        columns, [-2.0, 0.3, 1.0, 1.0, np.tanh(3.0), np.tanh(0.75), 5.0], rtol=1e-9
    )


def test_tilt_axes_are_level_and_of_unit_length():
    np.testing.assert_allclose(tilt_axes(np.array([0, 0, -9.81])), [[1, 0, 0], [0, 1, 0]])
    generator = np.random.default_rng(0)
    for gravity in generator.normal(size=(20, 3)):
        axes = tilt_axes(gravity)
        np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
        np.testing.assert_allclose(axes @ gravity, 0.0, atol=1e-12)


def test_a_motion_repeats_itself_shifted_and_at_another_rate_but_no_other_motion():
    arm = TrueArm.drawn(3, 5)
    (first,) = even_samples(arm.recording(1))
    (again,) = even_samples(arm.recording(1, 15.0, rate=130.0))
    (other,) = even_samples(arm.recording(2))
    assert repeats([again], [first])
    assert not repeats([other], [first])


def test_a_simulated_motion_is_consistent_with_its_derivatives():
    arm = TrueArm.drawn(3, 5)
    time, q, qd, qdd = motion(arm.urdf, 0, 5.0, 1000.0)
    np.testing.assert_allclose(np.gradient(q, time, axis=0)[1:-1], qd[1:-1], atol=1e-3)
    np.testing.assert_allclose(np.gradient(qd, time, axis=0)[1:-1], qdd[1:-1], atol=1e-2)
