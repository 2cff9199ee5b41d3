# SPDX-License-Identifier: Apache-2.0
"""Minimal parameters of public and of random chains: Pinocchio's rank, Pinocchio's torque."""

from functools import cache

import numpy as np
import pytest
from known_arms import known_arm, urdf_of
from oracles import PinocchioArm, random_states
from parameter_arms import pinocchio_regressor, public_chains, ranks
from robots import random_chain

import robodyn_ros as rd

# Public chains whose rank itself depends on the tolerance: their axes are parallel, or upright,
# only up to rounded angles.
NEARLY_SINGULAR = {('al5d_robot.urdf', 'link4'), ('puma560_robot.urdf', 'link7')}


def check(source, arm, seed=0):
    """Check the torque; return the count and the ranks of Pinocchio's regressor around 1e-9."""
    oracle = PinocchioArm.of(source, arm)
    states = random_states(arm, 40 + 2 * arm.n, seed)
    base = rd.base_parameters(arm)
    full = pinocchio_regressor(oracle, states)
    expected = np.array([oracle.torque(*state) for state in zip(*states)])
    error = np.abs(base.regressor(*states) @ base.values - expected).max()
    assert error <= 1e-9 * np.abs(expected).max()
    assert base.residual < 1e-9
    return base, ranks(full)


def check_public(path, base_link, tip_link):
    arm = rd.RobotModel.from_urdf(
        path, base_link=base_link, tip_link=tip_link, mimic='independent'
    )
    base, counts = check(path, arm)
    if len(counts) > 1:
        assert (path.name, tip_link) in NEARLY_SINGULAR
        assert base.depends_on_tolerance
    else:
        assert counts == {base.count}


PAPERS_COUNTS = {
    'scemi': 36,
    'puma560': 36,
    'six_axis_industrial': 36,
    'stanford': 33,
    'jpl_rrp': 33,
}


@pytest.mark.parametrize('name', PAPERS_COUNTS)
def test_papers_arms_from_their_urdf(name):
    base, counts = check(urdf_of(name), known_arm(name))
    assert counts == {base.count} == {PAPERS_COUNTS[name]}


def identity(chain):
    path, base_link, tip_link, _ = chain
    return f'{path.stem}-{base_link}-{tip_link}'


@pytest.mark.repeats(check=10)
@pytest.mark.parametrize('chain', public_chains()[::8], ids=identity)
def test_some_public_chains(chain):
    check_public(*chain[:3])


@pytest.mark.slow
@pytest.mark.parametrize('chain', public_chains(), ids=identity)
def test_every_public_chain(chain):
    check_public(*chain[:3])


@cache
def random_arm(seed):
    generator = np.random.default_rng(seed)
    n = 1 + seed % 7
    text = random_chain(generator, n, prismatic_fraction=(0.2, 0.5, 0.7)[seed % 3])
    return text, rd.RobotModel.from_urdf(text, tip_link='tip')


SEEDS = range(300)
BLOCK = 30


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('first', SEEDS[::BLOCK])
def test_random_hard_chains(first):
    apart = []
    for seed in SEEDS[first : first + BLOCK]:
        text, arm = random_arm(seed)
        base, counts = check(text, arm, seed)
        if len(counts) > 1:
            apart.append(seed)
            assert base.depends_on_tolerance, seed
        else:
            assert counts == {base.count}, seed
    # Axes at 1e-13 to 1e-1 from parallel are among them on purpose.
    assert len(apart) <= BLOCK / 3, apart


@pytest.mark.longer
def test_random_chains_have_prismatic_joints_in_every_place():
    kinds = [random_arm(seed)[1].dh.prismatic for seed in SEEDS]
    for j in range(7):
        here = [bool(kind[j]) for kind in kinds if len(kind) > j]
        assert {True, False} <= set(here)
        first_and_here = [bool(kind[0]) for kind in kinds if len(kind) > j and kind[j]]
        assert {True} <= set(first_and_here)
