# SPDX-License-Identifier: Apache-2.0
"""Damaged URDF text gives a model or a RobodynError, never anything else."""

import numpy as np
import pytest
from mutations import mutated
from robots import random_chain, two_link_urdf

import robodyn_ros as rd

SOURCES = [two_link_urdf(), random_chain(np.random.default_rng(1), 4)]


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('block', range(4))
@pytest.mark.filterwarnings('error')
def test_damaged_text_gives_a_model_or_a_robodyn_error(block):
    outcomes = {'model': 0, 'error': 0}
    for seed in range(500 * block, 500 * block + 500):
        try:
            arm = rd.RobotModel.from_urdf(mutated(SOURCES[seed % 2], seed))
        except rd.RobodynError as error:
            assert str(error)
            outcomes['error'] += 1
        else:
            assert np.isfinite(arm.inertial_parameters).all()
            assert np.isfinite(arm.dh.tip_transform).all()
            outcomes['model'] += 1
    assert min(outcomes.values()) > 20
