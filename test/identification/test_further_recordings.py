# SPDX-License-Identifier: Apache-2.0
"""Further public recordings: a coupled wrist, a lift, amperes; each joint held out."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from identify_recordings import JointErrors, further

VARIABLE = 'ROBODYN_FURTHER_RECORDINGS'
BESIDE = Path(__file__).resolve().parents[3] / 'shared' / 'further_recordings'
FOLDER = Path(os.environ.get(VARIABLE) or BESIDE)
ARMS = {path.parent.name: path for path in sorted(FOLDER.glob('*/arm.yaml'))}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ARMS, reason=f'no further recordings in {FOLDER}: set {VARIABLE}'),
]
# Least squares is good where it leaves less than the first; identified may leave the second of it.
GOOD, AS_GOOD = 0.1, 1.2


@pytest.fixture(scope='module', params=sorted(ARMS) or ['none'])
def errors(request) -> JointErrors:
    arms = {splits[0].name: splits for splits in further(FOLDER)}
    return JointErrors.of(arms[request.param])


def test_no_joint_that_least_squares_explains_is_worse_than_zero(errors):
    assert (errors.identified[errors.least_squares < 1.0] < 1.0).all()


def test_a_joint_is_as_good_as_by_least_squares_where_that_is_good(errors):
    good = errors.least_squares < GOOD
    assert good.any()
    np.testing.assert_array_less(errors.identified[good], AS_GOOD * errors.least_squares[good])


def test_each_joint_that_is_worse_than_zero_is_named(errors):
    for found in errors.results:
        held_out = found.errors[-1]
        worse = held_out.identified_moving > held_out.moving_torque
        named = {each.element for each in found.findings if each.code == 'joint_explained_poorly'}
        assert {f'joint {held_out.joint_names[j]!r}' for j in np.flatnonzero(worse)} <= named
