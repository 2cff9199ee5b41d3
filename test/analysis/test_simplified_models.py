# SPDX-License-Identifier: Apache-2.0
"""Simplified models: the terms that Bejczy 1974 kept (Table 3), errors, operations, code."""

import shutil
import subprocess

import numpy as np
import pytest
from known_arms import known_arm
from oracles import random_states
from paper_arms import JPL, JPL_INPUT_INERTIA, JPL_LOAD, STANFORD
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.analysis import SimplifiedModel, simplified_model
from robodyn_ros.compiled.symbolic.expression import evaluated
from robodyn_ros.compiled.symbolic.kernels import build_kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime
from robodyn_ros.errors import InvalidArgument

RIGHT = np.pi / 2
LIMITS = {'joint2': (-RIGHT, RIGHT), 'joint3': (0.0, 1.1176), 'joint5': (-RIGHT, RIGHT)}

# Table 3, each term as the functions in it; D44 of the print's D4 has s5 for the second s4.
S2, C2, S4, C4, S5, C5 = 'sin(q2)', 'cos(q2)', 'sin(q4)', 'cos(q4)', 'sin(q5)', 'cos(q5)'
TABLE_3 = {
    'd_11': [(), ('sin(q2)^2',), ('sin(q2)^2', 'q3'), ('sin(q2)^2', 'q3', C5),
             ('sin(q2)^2', 'q3^2')],
    'd_22': [(), ('q3',), ('q3', C5), ('q3^2',)],
    'd_33': [()],
    'd_44': [(), ('sin(q5)^2',)],
    'd_55': [()],
    'd_66': [()],
    'G_2': [(S2,), (S2, 'q3'), (S2, C5), (C2, S4, S5)],
    'G_3': [(C2,)],
    'G_4': [(S2, C4, S5)],
    'G_5': [(S2, S4, C5), (C2, S5)],
}  # fmt: skip


def kept(simplified):
    return {
        x.formula.symbol: {frozenset(map(str, term.factors)) for term in x.formula.terms}
        for x in (*simplified.inertia, *simplified.gravity)
    }


@pytest.fixture(scope='module')
def jpl():
    return JPL.model().with_rotor_inertia(JPL_INPUT_INERTIA)


@pytest.fixture(scope='module', params=['bare', 'loaded'])
def case(request, jpl):
    arm = jpl.with_payload(JPL_LOAD) if request.param == 'loaded' else jpl
    # Without load 2 % everywhere; the load asks for 2 % in the mean, as Bejczy allowed up to 15 %.
    measure = 'largest' if request.param == 'bare' else 'mean'
    return request.param, arm, simplified_model(arm, 0.02, measure=measure, limits=LIMITS)


def test_terms_that_bejczy_kept_are_kept(case):
    _, _, simplified = case
    terms = kept(simplified)
    for symbol, expected in TABLE_3.items():
        assert {frozenset(term) for term in expected} <= terms[symbol], symbol


def test_hardly_any_other_term_is_kept(case):
    # d_11: b6 and b10 of (119), without which it is 5 % (loaded: 15 %) off at places; G_4: d4,
    # which is 5 % of an unloaded G_4.
    name, _, simplified = case
    terms = kept(simplified)
    others = {
        symbol: terms[symbol] - {frozenset(term) for term in expected}
        for symbol, expected in TABLE_3.items()
    }
    b6, b10 = frozenset({C2, S2, 'q3', S4, S5}), frozenset({C4, S5})
    assert others.pop('d_11') <= {b6, b10}
    assert others.pop('G_4') == ({frozenset({S2, S4})} if name == 'bare' else set())
    assert not any(others.values())


def test_error_is_under_bejczys_five_percent_on_average(case):
    # Against the arm itself, at positions of our own.
    _, arm, simplified = case
    upper = np.array([3, RIGHT, 1.1176, 3, RIGHT, 3])
    q = np.random.default_rng(1).uniform([-3, -RIGHT, 0, -3, -RIGHT, -3], upper, (5000, 6))
    m, g = rd.mass_matrix(arm, q), rd.gravity_torque(arm, q)
    inertia = np.diagonal(m, axis1=1, axis2=2)
    found = np.diagonal(simplified.mass_matrix(q), axis1=1, axis2=2)
    assert (np.abs(found - inertia) / inertia).mean(axis=0).max() < 0.05
    error = np.abs(simplified.gravity_torque(q) - g)
    loads = np.abs(g).max(axis=0)
    assert (error[:, 1:5] / loads[1:5]).mean(axis=0).max() < 0.05


def test_numbers_of_bejczys_terms(jpl):
    # Table 4, in the mean of his columns; b1 holds b12 and parts of what he drops, and b2 the
    # difference of k211 and k233.
    simplified = simplified_model(jpl, 0.05, limits=LIMITS)
    numbers = {
        (x.formula.symbol, frozenset(map(str, term.factors))): term.coefficient
        for x in (*simplified.inertia, *simplified.gravity)
        for term in x.formula.terms
    }
    printed = {
        ('d_11', ()): 1.423, ('d_11', ('sin(q2)^2',)): 2.51, ('d_11', ('sin(q2)^2', 'q3')): -5.49,
        ('d_11', ('sin(q2)^2', 'q3^2')): 6.48, ('d_11', ('sin(q2)^2', 'q3', C5)): 0.232,
        ('d_22', ()): 4.72, ('d_22', ('q3',)): -5.49, ('d_22', ('q3^2',)): 6.48,
        ('d_44', ()): 0.107, ('d_44', ('sin(q5)^2',)): 0.015,
        ('G_2', (S2,)): 2.788 * 9.81, ('G_2', (S2, 'q3')): -6.47 * 9.81,
        ('G_3', (C2,)): 6.47 * 9.81,
    }  # fmt: skip
    for (symbol, term), value in printed.items():
        assert numbers[symbol, frozenset(term)] == pytest.approx(value, rel=2e-2), (symbol, term)


def test_bejczys_extremes_119_and_121(jpl):
    # (119)'s first line with b1-b4 gives 5.89 at most, (120) adds b5; 7.09 of (121) should be
    # 6.945. b6 and b10 are nothing there.
    simplified = simplified_model(jpl, 0.02, limits=LIMITS)
    outstretched = simplified.mass_matrix((0, RIGHT, 1.1176, 0, 0, 0))
    b5 = 0.2319 * 1.1176
    assert outstretched[0, 0] - b5 == pytest.approx(5.89, rel=1e-2)
    assert outstretched[1, 1] == pytest.approx(6.945, rel=1e-2)


def test_terms_of_the_jpl_arm_are_dropped_at_a_price_worth_it(jpl):
    simplified = simplified_model(jpl, 0.02, limits=LIMITS)
    assert simplified.operations.total < 0.75 * simplified.exact_operations.total
    assert sum(x.dropped_terms for x in simplified.inertia) > 20


@pytest.mark.repeats(check=1)
# What nobody would miss [N m].
@pytest.mark.parametrize(('name', 'negligible'), [('panda', 0.05), ('ur5', 0.0)])
def test_simplified_gravity_stays_under_two_percent_with_operations_saved(name, negligible):
    arm = known_arm(name)
    simplified = simplified_model(arm, 0.02, parts=['gravity'], negligible_torque=negligible)
    lower, upper = arm.position_limits.T
    q = np.random.default_rng(2).uniform(lower, upper, (20000, arm.n))
    g = rd.gravity_torque(arm, q)
    allowed = np.maximum(0.02 * np.abs(g).max(axis=0), negligible)
    error = np.abs(simplified.gravity_torque(q) - g).max(axis=0)
    assert (error < allowed + 1e-9).all()
    # Of all the arm's torques together, too.
    assert np.linalg.norm(error) < 0.02 * np.linalg.norm(g, axis=1).max()
    exact, operations = simplified.exact_operations, simplified.operations
    assert operations.total < exact.total
    assert operations.functions <= exact.functions
    # Fewer than the recursion customized for this arm takes.
    recursion = build_kernel('gravity_torque', RunTime.of(arm, ()))
    assert operations.total < sum(recursion.operation_count)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('measure', ['largest', 'mean'])
def test_measured_error_stays_under_the_given_one(measure):
    arm = STANFORD.model()
    for error in (0.1, 0.01):
        simplified = simplified_model(arm, error, measure=measure)
        for x in (*simplified.inertia, *simplified.gravity):
            measured = x.largest_error if measure == 'largest' else x.mean_error
            assert measured <= error, x.formula.symbol


def test_errors_of_the_two_link_arm_are_weighed_as_promised():
    # D12 = m l2 / 3 + m l2 c / 2 beside sqrt(D11 D22): 0.884 at q2 = 0, D22 = m l2 / 3 alone.
    # Dropped, it is wrong by that; G2 = m g l / 2 cos, weighed against 8 N m / 0.8.
    arm = rd.RobotModel.from_urdf(two_link_urdf()).with_gravity((0, -9.81, 0))
    simplified = simplified_model(arm, 1.2, parts=['inertia'])
    d12 = next(x for x in simplified.inertia if x.formula.symbol == 'd_12')
    assert not d12.formula.terms
    coupling = (1 / 3 + 1 / 2) / np.sqrt((5 / 3 + 1) / 3)
    assert d12.largest_error == pytest.approx(coupling, rel=1e-3)
    simplified = simplified_model(arm, 0.8, parts=['gravity'], negligible_torque=8.0)
    assert not simplified.gravity[1].formula.terms
    assert simplified.gravity[1].largest_error == pytest.approx(9.81 / 2 / 10, rel=1e-3)


def test_what_is_dropped_of_gravity_does_not_depend_on_what_the_arm_weighs():
    arm = known_arm('ur5')
    light = arm.with_inertial_parameters(1e-6 * arm.inertial_parameters)
    dropped, of_light = (
        [x.dropped_terms for x in simplified_model(each, 0.02, parts=['gravity']).gravity]
        for each in (arm, light)
    )
    assert dropped == of_light and any(dropped)


def test_no_error_allowed_drops_nothing_and_leaves_the_dynamics_as_they_are():
    arm = STANFORD.model()
    simplified = simplified_model(arm, 0.0)
    assert not any(x.dropped_terms for x in (*simplified.inertia, *simplified.gravity))
    assert simplified.operations == simplified.exact_operations
    states = random_states(arm, 20, seed=3)
    torque = rd.inverse_dynamics(arm, *states)
    np.testing.assert_allclose(
        simplified.mass_matrix(states[0]), rd.mass_matrix(arm, states[0]), atol=1e-9
    )
    np.testing.assert_allclose(simplified.inverse_dynamics(*states), torque, atol=1e-8)
    one = simplified.inverse_dynamics(*(x[0] for x in states))
    np.testing.assert_allclose(one, torque[0], atol=1e-8)


def test_simplified_model_still_conserves_energy():
    # Power of tau - g equals the rate of the simplified kinetic energy.
    arm = STANFORD.model()
    simplified = simplified_model(arm, 0.1)
    q, qd, qdd = (x[0] for x in random_states(arm, 1, seed=5))
    power = qd @ (simplified.inverse_dynamics(q, qd, qdd) - simplified.gravity_torque(q))
    h = 1e-6

    def energy(t):
        velocity = qd + qdd * t
        position = q + qd * t + qdd * t**2 / 2
        return velocity @ simplified.mass_matrix(position) @ velocity / 2

    assert power == pytest.approx((energy(h) - energy(-h)) / (2 * h), rel=1e-6)


@pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler')
def test_exported_code_computes_the_simplified_model(tmp_path, jpl):
    simplified = simplified_model(jpl, 0.02, limits=LIMITS)
    header, source, self_test = simplified.export_c(tmp_path, name='jpl')
    program = tmp_path / 'program'
    strict = ['-std=c99', '-Wall', '-Wextra', '-Werror', '-pedantic', '-O1']
    subprocess.run(['cc', *strict, source, self_test, '-o', program, '-lm'], check=True)
    result = subprocess.run([program], capture_output=True, text=True)
    assert 'all results agree' in result.stdout
    for name in ('gravity_torque', 'mass_matrix', 'inverse_dynamics'):
        assert f'jpl_{name}' in header.read_text()


def test_code_of_a_simplified_model_is_the_model(jpl):
    simplified = simplified_model(jpl, 0.05, limits=LIMITS)
    states = dict(zip(('q', 'qd', 'qdd'), random_states(jpl, 10, seed=6)))
    kernels = {kernel.name: kernel for kernel in simplified.kernels}
    assert set(kernels) == {'gravity_torque', 'mass_matrix', 'inverse_dynamics'}
    for name, kernel in kernels.items():
        expected = getattr(simplified, name)(*(states[key] for key, _ in kernel.inputs))
        values = evaluated(kernel.outputs, states).reshape(expected.shape)
        np.testing.assert_allclose(values, expected, atol=1e-10)


def test_model_of_gravity_alone_survives_json_and_offers_nothing_else(tmp_path, jpl):
    simplified = simplified_model(jpl, 0.02, parts=['gravity'], limits=LIMITS)
    again = SimplifiedModel.from_json(simplified.to_json(indent=1))
    assert again == simplified
    q = np.full(6, 0.4)
    np.testing.assert_array_equal(again.gravity_torque(q), simplified.gravity_torque(q))
    assert 'terms dropped' in str(simplified)
    assert [kernel.name for kernel in simplified.kernels] == ['gravity_torque']
    with pytest.raises(InvalidArgument, match="mass_matrix.*'gravity_torque'"):
        simplified.export_c(tmp_path, functions=['mass_matrix'])
    with pytest.raises(InvalidArgument, match="inertia.*'gravity'"):
        simplified.mass_matrix(q)


@pytest.mark.parametrize(
    'arguments',
    [
        {'error': -0.1},
        {'error': np.nan},
        {'error': 0.1, 'negligible_torque': -1.0},
        {'error': 0.0, 'negligible_torque': 1.0},
        {'error': 0.1, 'measure': 'median'},
        {'error': 0.1, 'parts': ['friction']},
    ],
)
def test_arguments_that_make_no_sense_are_refused(jpl, arguments):
    with pytest.raises(InvalidArgument):
        simplified_model(jpl, **arguments)
