# SPDX-License-Identifier: Apache-2.0
"""Recordings of real arms: held-out errors, coverage, bodies that can exist."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examine_effort import cases, is_alarm, truth
from identify_recordings import Split, splits

from robodyn_ros import RobotModel
from robodyn_ros.errors import InsufficientRecording
from robodyn_ros.identification import (
    DriveGains,
    Identification,
    Recording,
    examine_effort,
    identify,
    identify_drive_gains,
    identify_payload,
)
from robodyn_ros.spatial import pseudo_inertia

RECORDINGS = Path(__file__).resolve().parents[3] / 'shared' / 'recordings'
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f'no recordings in {RECORDINGS}'),
]
NAMES = ('Panda a', 'fer', 'UR10 13', 'UR10e 30 s -> 50', 'UR10e 30 s -> 14')


@pytest.fixture(scope='module', params=NAMES)
def case(request) -> tuple[Split, Identification]:
    split = next(each for each in splits(RECORDINGS) if each.name.startswith(request.param))
    found = identify(
        split.model, split.training, validation=[split.held_out], effort_scale=split.scale
    )
    return split, found


def test_held_out_error_is_accepted(case):
    split, found = case
    assert found.converged
    assert 100 * found.errors[-1].relative('identified') <= split.accept


def test_bodies_can_exist(case):
    _, found = case
    assert (np.linalg.eigvalsh(pseudo_inertia(found.model.inertial_parameters)) > 0).all()


def test_the_band_of_the_same_arm_covers_what_it_says(case):
    split, found = case
    if split.name == 'Panda a -> fer':
        pytest.skip('another arm of the type: nothing is promised')
    expected = found.predict(split.held_out)
    inside = np.abs(expected.measured - expected.effort) <= 1.96 * expected.deviation
    assert 0.88 <= inside.mean() <= 0.99


def test_the_same_motion_again_is_noticed():
    split = next(splits(RECORDINGS))
    again = Recording.from_csv(RECORDINGS / 'panda' / 'motion_a_again.csv', split.model)
    found = identify(split.model, split.training, validation=[again])
    assert found.errors[-1].repeats_training


@pytest.fixture(scope='module')
def pair() -> tuple[RobotModel, Recording, Recording, DriveGains]:
    """Return the UR10e, a motion without and with 2.805 kg, and the gains that they give."""
    folder = RECORDINGS / 'ur10e'
    model = RobotModel.from_urdf(folder / 'arm.urdf', base_link='base_link', tip_link='tool0')
    without, with_load = (
        Recording.from_csv(folder / name, model)
        for name in ('20_02_19_14harm50sec.csv', '20_02_19_14harm50secLoad.csv')
    )
    return model, without, with_load, identify_drive_gains(model, without, with_load, 2.805)


def test_gains_agree_with_the_controllers_own(pair):
    gains = pair[3]
    assert gains.known[[1, 2]].all()
    np.testing.assert_allclose(gains.gain[[1, 2]], [11.97, 9.83], rtol=0.03)


def test_the_load_is_found_with_the_model_of_another_day(pair):
    model, _, with_load, gains = pair
    other = Recording.from_csv(RECORDINGS / 'ur10e' / '20_02_10-30sec_12harm.csv', model)
    found = identify(model, [other], effort_scale=gains.gain)
    assert identify_payload(found, with_load).payload.mass == pytest.approx(2.805, rel=0.04)


def test_amperes_are_recognised_on_the_joints_that_tell(pair):
    model, without, _, _ = pair
    joints = examine_effort(model, [without]).joints
    assert [each.joint for each in joints if each.unit == 'scaled'] == [
        model.joint_names[j] for j in (1, 2, 3)
    ]
    assert all(6 < each.factor < 14 for each in joints if each.unit == 'scaled')


def test_no_counted_joint_of_a_clean_recording_raises_an_alarm():
    for case in cases(RECORDINGS):
        try:
            counted = np.flatnonzero(truth(case).counted)
        except InsufficientRecording:  # one pose
            continue
        found = examine_effort(case.model, [case.recording])
        assert not [j for j in counted if is_alarm(found.joints[j])], case.name
