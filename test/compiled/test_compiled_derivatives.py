# SPDX-License-Identifier: Apache-2.0
"""Generated code of the derivatives gives what Pinocchio gives."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_arms import PUBLIC_ARMS, chain_and_oracle, interpreted, public_arm
from compilers import needs_compiler
from oracles import PinocchioArm, random_states, relative_difference
from robots import public_urdf

import robodyn_ros as rd
from robodyn_ros.compiled import compile_model
from robodyn_ros.compiled.symbolic.kernels import build_kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime

NAMES = ('inverse_dynamics_derivatives', 'forward_dynamics_derivatives')
SAMPLES = 2


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(tmp_path / 'own'))


def given_states(arm, seed):
    q, qd, qdd = random_states(arm, SAMPLES, seed)
    return {'q': q, 'qd': qd, 'qdd': qdd, 'tau': rd.inverse_dynamics(arm, q, qd, qdd)}


def assert_pinocchio_s(arm, oracle, given, by_torque, by_acceleration):
    """Compare derivatives of torques and of accelerations at each state."""
    # Accelerations lose as many digits as the condition of M has, on both sides.
    condition = np.linalg.cond(rd.mass_matrix(arm, given['q'])).max()
    for k in range(SAMPLES):
        q, qd, qdd, tau = (given[key][k] for key in ('q', 'qd', 'qdd', 'tau'))
        for ours, theirs in zip(by_torque, oracle.torque_derivatives(q, qd, qdd), strict=True):
            assert relative_difference(ours[k], theirs) < 1e-9
        theirs = oracle.acceleration_derivatives(q, qd, tau)
        for ours, wanted in zip(by_acceleration, theirs, strict=True):
            assert relative_difference(ours[k], wanted) < max(1e-9, 1e-14 * condition)


@pytest.mark.repeats(check=4)
@pytest.mark.parametrize('block', range(20))
def test_expressions_of_derivatives_are_pinocchio_s_on_random_chains(block):
    for seed in range(10 * block, 10 * block + 10):
        arm, oracle = chain_and_oracle(seed)
        given = given_states(arm, seed)
        run_time = RunTime.of(arm, ())
        results = (interpreted(build_kernel(name, run_time), given) for name in NAMES)
        assert_pinocchio_s(arm, oracle, given, *results)


def compiled_derivatives(arm, given):
    compiled = compile_model(arm, kernels=NAMES)
    state = given['q'], given['qd']
    return (
        compiled.inverse_dynamics_derivatives(*state, given['qdd']),
        compiled.forward_dynamics_derivatives(*state, given['tau']),
    )


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize('seed', range(0, 200, 20))
def test_compiled_derivatives_are_pinocchio_s_on_random_chains(seed):
    arm, oracle = chain_and_oracle(seed)
    given = given_states(arm, seed)
    assert_pinocchio_s(arm, oracle, given, *compiled_derivatives(arm, given))


@needs_compiler
def test_results_that_cancel_up_to_rounding_are_no_fault_of_the_compiler():
    arm, _ = chain_and_oracle(160)
    compiled = compile_model(arm, kernels=('inverse_dynamics_derivatives',))
    _, of_velocity = compiled.inverse_dynamics_derivatives([0.1], [0.2], [0.3])[:2]
    assert abs(of_velocity).max() < 1e-15


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize('name', ['ur5', 'panda'])
def test_compiled_derivatives_of_public_arms_are_pinocchio_s(name):
    source, arm = public_urdf(PUBLIC_ARMS[name][0]), public_arm(name)
    given = given_states(arm, 1)
    oracle = PinocchioArm.of(source, arm)
    assert_pinocchio_s(arm, oracle, given, *compiled_derivatives(arm, given))
