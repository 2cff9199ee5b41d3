# SPDX-License-Identifier: Apache-2.0
"""Recordings of real arms: held-out errors, coverage, bodies that can exist."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from identify_recordings import Split, splits

from robodyn_ros.identification import Identification, Recording, identify
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
