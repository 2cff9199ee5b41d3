# SPDX-License-Identifier: Apache-2.0
"""C(q, qd) and the Christoffel symbols: skew-symmetry, symmetries, derivatives of M, Pinocchio."""

import numpy as np
import pytest
from compiled_arms import chain_and_oracle
from known_arms import known_pair
from oracles import random_states, relative_difference

import robodyn_ros as rd

ARMS = ['panda', 'tiago', 'jpl_rrp', 'puma560', 'two_link_planar', 'chain']


@pytest.fixture(scope='module', params=ARMS)
def pair(request):
    return chain_and_oracle(15) if request.param == 'chain' else known_pair(request.param)


def rate_of_mass_matrix(arm, q, qd, step=1e-6):
    before, after = rd.mass_matrix(arm, [q - step * qd, q + step * qd])
    return (after - before) / (2 * step)


def test_coriolis_torque_is_pinocchios(pair):
    arm, oracle = pair
    q, qd, _ = random_states(arm, 20, seed=1)
    for c, row, velocity in zip(rd.coriolis_matrix(arm, q, qd), q, qd):
        expected = oracle.coriolis_matrix(row, velocity) @ velocity
        assert relative_difference(c @ velocity, expected) < 1e-9


def test_rate_of_mass_matrix_less_twice_coriolis_matrix_is_skew(pair):
    arm, _ = pair
    q, qd, _ = random_states(arm, 20, seed=3)
    for c, row, velocity in zip(rd.coriolis_matrix(arm, q, qd), q, qd):
        rate = rate_of_mass_matrix(arm, row, velocity)
        skew = rate - 2 * c
        assert np.abs(skew + skew.T).max() < 1e-7 * max(1.0, np.abs(rate).max())


def test_christoffel_symbols_are_half_sums_of_derivatives_of_the_mass_matrix(pair):
    arm, _ = pair
    q = random_states(arm, 1, seed=4)[0][0]
    slopes = np.stack([rate_of_mass_matrix(arm, q, unit) for unit in np.eye(arm.n)], axis=-1)
    expected = (slopes + np.swapaxes(slopes, 1, 2) - np.moveaxis(slopes, 2, 0)) / 2
    scale = max(1.0, np.abs(slopes).max())
    np.testing.assert_allclose(rd.christoffel_symbols(arm, q), expected, atol=1e-7 * scale)


def test_coriolis_matrix_is_the_sum_of_the_symbols(pair):
    arm, _ = pair
    q, qd, _ = random_states(arm, 5, seed=5)
    symbols = rd.christoffel_symbols(arm, q)
    c = rd.coriolis_matrix(arm, q, qd)
    assert relative_difference(c, (symbols @ qd[:, None, :, None])[..., 0]) < 1e-12


def test_symbols_are_symmetric_non_interacting_and_reflective(pair):
    # Tourassis and Neuman 1985, below (37), (38) and (39).
    arm, _ = pair
    symbols = rd.christoffel_symbols(arm, random_states(arm, 1, seed=6)[0][0])
    for i in range(arm.n):
        for j in range(arm.n):
            for m in range(arm.n):
                assert symbols[i, j, m] == symbols[i, m, j]
                if j <= i and j <= m:
                    assert symbols[i, j, m] == -symbols[m, j, i]
            if j <= i:
                assert symbols[i, j, i] == 0
