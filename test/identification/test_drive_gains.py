# SPDX-License-Identifier: Apache-2.0
"""What a unit of effort is worth, found from a load of known mass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_recordings import TrueArm

from robodyn_ros import Payload
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, NoSuchName
from robodyn_ros.identification import DriveGains, Recording, identify_drive_gains

GAINS = np.array([12.0, 12.0, 9.8, 10.7, 10.0, 10.3])
LOAD = Payload(2.5, (0.03, 0.05, 0.08), 0.01 * np.eye(3))


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(13, 6)


def recorded(arm: TrueArm, seed: int, *, load: Payload | None = None) -> Recording:
    bodies = arm.bodies if load is None else arm.bodies.with_payload(load)
    recording = replace(arm, bodies=bodies).recording(seed, 25.0, rate=100.0, noise=0.01)
    return replace(recording, effort=recording.effort / GAINS)


@pytest.fixture(scope='module')
def found(arm) -> DriveGains:
    return identify_drive_gains(arm.urdf, recorded(arm, 1), recorded(arm, 2, load=LOAD), 2.5)


def test_gains_are_found_within_two_per_cent_and_their_deviations(found):
    assert found.converged
    assert found.known.sum() >= 4
    np.testing.assert_allclose(found.gain[found.known], GAINS[found.known], rtol=0.02)
    error = (found.gain - GAINS) / found.deviation
    assert (np.abs(error[found.known]) < 4).all()
    np.testing.assert_allclose(found.center_of_mass, LOAD.center_of_mass, atol=0.01)


def test_gains_are_in_proportion_to_the_mass_that_is_said(arm, found):
    twice = identify_drive_gains(arm.urdf, recorded(arm, 1), recorded(arm, 2, load=LOAD), 5.0)
    np.testing.assert_allclose(twice.gain[found.known] / found.gain[found.known], 2.0, rtol=0.02)


@pytest.fixture(scope='module')
def relative(arm) -> DriveGains:
    return identify_drive_gains(arm.urdf, [recorded(arm, 1), recorded(arm, 3)])


def test_without_a_load_proportions_are_found_within_their_deviations(relative):
    known = relative.known
    assert relative.converged
    assert known.sum() >= 3
    error = np.log(relative.gain / GAINS)[known]
    error -= error.mean()
    assert np.abs(error).max() < 0.05
    assert (np.abs(error) < 4 * (relative.deviation / relative.gain)[known]).all()
    # That a common factor is missing is said.
    assert 'gains_relative' in {each.code for each in relative.findings}
    assert np.isnan(relative.center_of_mass).all()


def test_common_factor_is_that_of_the_models_masses(arm, relative):
    light = replace(arm.urdf, inertial_parameters=0.5 * arm.urdf.inertial_parameters)
    found = identify_drive_gains(light, [recorded(arm, 1), recorded(arm, 3)])
    both = found.known & relative.known
    np.testing.assert_allclose(found.gain[both] / relative.gain[both], 0.5, rtol=0.05)


def test_a_single_joint_has_no_proportion_to_tell():
    arm = TrueArm.drawn(3, 1)
    found = identify_drive_gains(arm.urdf, arm.recording(1, 15.0, rate=100.0))
    assert not found.known.any()


def test_a_joint_that_feels_nothing_is_named(arm):
    def still(recording: Recording) -> Recording:
        position, velocity = recording.position.copy(), recording.velocity.copy()
        position[:, 3], velocity[:, 3] = 0.1, 0.0
        return replace(recording, position=position, velocity=velocity)

    found = identify_drive_gains(
        arm.urdf, still(recorded(arm, 1)), still(recorded(arm, 2, load=LOAD)), 2.5
    )
    assert not found.known[3]
    assert "joint 'j4'" in {each.element for each in found.findings}


def test_bad_input_is_refused_by_name(arm):
    recording = recorded(arm, 1)
    for mass in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidArgument, match='mass'):
            identify_drive_gains(arm.urdf, recording, recording, mass)
    for loaded, mass in ((recording, None), (None, 1.0)):
        with pytest.raises(InvalidArgument, match='mass'):
            identify_drive_gains(arm.urdf, recording, loaded, mass)
    with pytest.raises(NoSuchName, match='j7'):
        identify_drive_gains(TrueArm.drawn(5, 7).urdf, recording, recording, 1.0)
    with pytest.raises(InsufficientRecording):
        identify_drive_gains(arm.urdf, recording.between(0, 0.5), recording, 1.0)
