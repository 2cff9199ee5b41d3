# SPDX-License-Identifier: Apache-2.0
"""Coefficient of coupling, Tourassis and Neuman 1985, (32)-(35)."""

import numpy as np
import pytest
from compiled_arms import random_arm, tree_arm
from known_arms import known_pair
from oracles import random_states
from paper_arms import CARTESIAN, CYLINDRICAL, PUMA, SPHERICAL, STANFORD
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.analysis import (
    coefficients_of_coupling,
    coupling_over_joint_space,
    kinematic_factors,
    loading_factors,
)


@pytest.mark.parametrize('drawn', [random_arm, tree_arm])
@pytest.mark.parametrize('seed', range(12))
def test_coupling_between_zero_and_one_is_loading_factor_times_kinematic_factor(seed, drawn):
    # The kinematic factor comes from axes and radii of gyration, not from the mass matrix. The
    # paper bounds it by 1, which holds where the inner joint is prismatic.
    arm = drawn(seed)
    q = random_states(arm, 200, seed)[0]
    coupling = coefficients_of_coupling(arm, q)
    loading, kinematic = loading_factors(arm), kinematic_factors(arm, q)
    np.testing.assert_allclose(loading * kinematic, coupling, atol=1e-9)
    for factor in (coupling, loading):
        assert factor.min() >= 0 and factor.max() <= 1 + 1e-12
    assert kinematic.min() >= 0
    for i in np.flatnonzero(arm.dh.prismatic):
        assert kinematic[:, i, i:].max() <= 1 + 1e-9


def test_kinematic_factor_exceeds_one_where_mass_lies_on_the_inner_axis():
    # All of link 1's mass on axis 1, link 2 a point: k_12 = 1 when stretched, though joint 2
    # moves only a quarter of the mass that joint 1 moves.
    text = robot(
        link('base'),
        joint('j1', 'base', 'a'),
        link('a', 3),
        joint('j2', 'a', 'b', xyz=(1, 0, 0)),
        link('b', 1, center=(1, 0, 0)),
    )
    arm = rd.RobotModel.from_urdf(text)
    stretched = np.zeros(2)
    assert coefficients_of_coupling(arm, stretched)[0, 1] == pytest.approx(1)
    assert loading_factors(arm)[0, 1] == pytest.approx(0.5)
    assert kinematic_factors(arm, stretched)[0, 1] == pytest.approx(2)


def test_coupling_of_the_panda_by_pinocchios_mass_matrix():
    arm, oracle = known_pair('panda')
    q = random_states(arm, 1, seed=1)[0][0]
    m = oracle.mass_matrix(q)
    root = np.sqrt(np.diag(m))
    np.testing.assert_allclose(
        coefficients_of_coupling(arm, q), np.abs(m) / np.outer(root, root), atol=1e-12
    )


def test_loading_factor_is_the_root_of_the_ratio_of_moved_masses():
    masses = np.array([13, 17, 5, 0.8, 0.35, 0.09])
    factors = loading_factors(PUMA.model())
    assert factors[0, 2] == pytest.approx(np.sqrt(masses[2:].sum() / masses.sum()))
    assert factors[4, 5] == pytest.approx(np.sqrt(0.09 / 0.44))
    np.testing.assert_allclose(factors, factors.T)


@pytest.mark.parametrize('paper', [CARTESIAN, CYLINDRICAL, SPHERICAL], ids=lambda p: p.file)
def test_arms_with_diagonal_inertia_are_uncoupled(paper):
    for pair in coupling_over_joint_space(paper.model()):
        assert pair.largest.value == 0 and pair.mean == pytest.approx(0, abs=1e-15)


@pytest.fixture(scope='module')
def stanford():
    arm = STANFORD.model()
    return arm, coupling_over_joint_space(arm)


@pytest.mark.longer
def test_largest_coupling_is_reached_where_it_says_and_nowhere_exceeded(stanford):
    arm, pairs = stanford
    lower, upper = arm.position_limits.T
    k = coefficients_of_coupling(arm, np.random.default_rng(2).uniform(lower, upper, (20000, 6)))
    for pair in pairs:
        i, j = (arm.joint_names.index(name) for name in pair.joints)
        at = coefficients_of_coupling(arm, pair.largest.position)[i, j]
        assert at == pytest.approx(pair.largest.value, abs=1e-9)
        assert k[:, i, j].max() <= pair.largest.value + 1e-9
        assert k[:, i, j].mean() == pytest.approx(pair.mean, abs=5e-3)


@pytest.mark.longer
def test_joint_space_coupling_splits_into_its_factors(stanford):
    arm, pairs = stanford
    assert len(pairs) == 15
    for pair in pairs:
        assert pair.largest.value == pytest.approx(
            pair.loading_factor * pair.largest_kinematic_factor
        )
        assert pair.mean == pytest.approx(pair.loading_factor * pair.mean_kinematic_factor)
        assert 0 < pair.loading_factor < 1


def test_links_without_mass_are_uncoupled():
    arm = PUMA.model()
    parameters = arm.inertial_parameters.copy()
    parameters[4:] = 0
    bare = arm.with_inertial_parameters(parameters)
    q = random_states(arm, 5, seed=3)[0]
    for k in (coefficients_of_coupling(bare, q), kinematic_factors(bare, q)):
        assert np.isfinite(k).all()
        assert not k[:, 5, :].any()
