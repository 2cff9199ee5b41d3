# SPDX-License-Identifier: Apache-2.0
"""Drives that turn with two joints: found where they are, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_recordings import TrueArm

from robodyn_ros import friction_torque
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.identification import DriveTerms, Identification, Recording, identify

WRIST = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
CROSSED = np.array([0.0, 0.0, -1.0, 1.0, 0.0, 0.0])


def true_terms(arm: TrueArm, gears: np.ndarray) -> tuple[float, float, float]:
    """Return inertia, viscous and Coulomb friction of a drive as strong as its joints'."""
    turned = gears != 0
    inertia, viscous = arm.rotor_inertia[turned].min(), arm.viscous[turned].min()
    return float(inertia), float(viscous), 2.0 * float(arm.coulomb[turned].min())


def coupled(arm: TrueArm, gears: np.ndarray, seed: int) -> Recording:
    """Return a recording of an arm with a further drive, by the formula of a motor."""
    recording = arm.recording(seed)
    rate = recording.velocity @ gears
    inertia, viscous, coulomb = true_terms(arm, gears)
    own = inertia * np.gradient(rate, recording.time) + viscous * rate
    own += coulomb * np.tanh(rate / 0.01)
    return replace(recording, effort=recording.effort + own[:, None] * gears)


def relative(found: Identification) -> np.ndarray:
    """Return the held-out error of each joint over its torque."""
    return found.errors[-1].identified / found.errors[-1].torque


@pytest.mark.longer
@pytest.mark.parametrize(('seed', 'gears'), [(6, WRIST), (7, CROSSED)])
def test_a_crossed_wrist_is_found_and_predicted_to_the_noise(seed, gears, tmp_path):
    arm = TrueArm.drawn(seed, 6)
    train, held_out = (coupled(arm, gears, s) for s in (seed, seed + 500))
    without = identify(arm.urdf, train, validation=held_out, friction=DriveTerms(), coupling=())
    found = identify(arm.urdf, train, validation=held_out, friction=DriveTerms())
    np.testing.assert_array_equal(np.abs(found.model.coupling), np.abs(gears[None]))
    assert np.abs(found.model.coupling @ gears) == pytest.approx(2.0)
    # The noise is 2 %, less than that behind the low-pass.
    assert (relative(found) < 0.02).all()
    assert (relative(without)[gears != 0] > 5 * relative(found)[gears != 0]).all()
    assert not any(each.code == 'effort_unexplained' for each in found.findings)
    found.save(tmp_path / 'identified.yaml')
    again = Identification.load(tmp_path / 'identified.yaml')
    expected, read = found.predict(held_out), again.predict(held_out)
    np.testing.assert_array_equal(read.effort, expected.effort)
    np.testing.assert_array_equal(read.deviation, expected.deviation)
    qd = held_out.velocity[::100]
    applied = found.applied_to(arm.urdf)
    np.testing.assert_array_equal(friction_torque(applied, qd), friction_torque(found.model, qd))


@pytest.mark.longer
@pytest.mark.parametrize('seed', range(4))
def test_a_serial_arm_has_no_coupled_drive(seed):
    arm = TrueArm.drawn(seed, 6)
    found = identify(arm.urdf, arm.recording(seed), friction=DriveTerms())
    assert found.model.coupling.shape == (0, 6)


@pytest.mark.longer
def test_parameters_of_known_gears_lie_within_their_deviations():
    arm, gears = TrueArm.drawn(8, 4), np.array([0.0, 0.0, 0.5, 1.0])
    found = identify(arm.urdf, coupled(arm, gears, 8), friction=DriveTerms(), coupling=[gears])
    own = [each for each in found.parameters if '0.5' in each.element]
    assert [each.name for each in own] == ['Ia', 'Fv', 'Fc']
    for each, true in zip(own, true_terms(arm, gears), strict=True):
        assert abs(each.value - true) < 4 * each.deviation
    model = found.model
    values = [model.coupled_rotor_inertia[0], *model.coupled_friction[0, :2]]
    assert values == [each.value for each in own]


@pytest.mark.parametrize('given', [[1.0, 1.0], [[0.0, 1.0]], [[1.0, np.nan]], 'both'])
def test_gears_that_are_none_are_refused(given):
    arm = TrueArm.drawn(1, 2)
    with pytest.raises(InvalidArgument, match='coupling'):
        identify(arm.urdf, arm.recording(1, 2.0), coupling=given)
