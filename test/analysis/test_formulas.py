# SPDX-License-Identifier: Apache-2.0
"""Coefficients written out as formulas are the coefficients, and so are their derivatives."""

import numpy as np
import pytest
from known_arms import known_pair
from oracles import random_states, relative_difference
from paper_arms import JPL, PAPER_ARMS
from robots import random_chain, random_tree, two_link_urdf
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.analysis import (
    Formula,
    coupling_over_joint_space,
    coupling_ratio_map,
    gravity_formulas,
    inertia_formulas,
    inertial_characteristics,
    ranges,
    split_along,
)
from robodyn_ros.analysis.formulas import Factor, Term, expressions, product_of
from robodyn_ros.compiled.symbolic.expression import Graph, evaluated
from robodyn_ros.errors import MalformedData


def values(arm, q):
    """Return M (N, n, n) and g (N, n) by the formulas."""
    m = np.zeros((len(q), arm.n, arm.n))
    for i, row in enumerate(inertia_formulas(arm)):
        for j, formula in enumerate(row, start=i):
            m[:, i, j] = m[:, j, i] = formula.values(q)
    return m, np.stack([formula.values(q) for formula in gravity_formulas(arm)], axis=-1)


@pytest.mark.parametrize('name', [*PAPER_ARMS, 'panda', 'ur5'])
def test_formulas_of_known_arms_give_pinocchios_mass_matrix_and_gravity(name):
    arm, oracle = known_pair(name)
    q, _, _ = random_states(arm, 10, seed=1)
    m, g = values(arm, q)
    still = np.zeros(arm.n)
    for k in range(len(q)):
        assert relative_difference(m[k], oracle.mass_matrix(q[k])) < 1e-9
        assert relative_difference(g[k], oracle.torque(q[k], still, still)) < 1e-9


@pytest.mark.parametrize('seed', range(16))
def test_formulas_of_random_arms(seed):
    generator = np.random.default_rng(seed)
    if seed < 8:
        text, tips = random_chain(generator, int(generator.integers(1, 5))), 'tip'
    else:
        text, tips = random_tree(generator, int(generator.integers(2, 6)))
    arm = rd.RobotModel.from_urdf(text, tip_link=tips)
    arm = arm.with_rotor_inertia(generator.uniform(0, 1, arm.n))
    arm = arm.with_gravity(generator.normal(size=3) * 5)
    q, _, _ = random_states(arm, 20, seed)
    m, g = values(arm, q)
    scale = max(1.0, np.abs(rd.mass_matrix(arm, q)).max())
    np.testing.assert_allclose(m, rd.mass_matrix(arm, q), atol=1e-9 * scale)
    np.testing.assert_allclose(g, rd.gravity_torque(arm, q), atol=1e-8 * scale)


def test_parallel_axes_are_written_in_sums_of_angles():
    # Fu, Gonzalez and Lee 1987: c1 = m1 g l C1/2 + m2 g l C12/2 + m2 g l C1, c2 = m2 g l C12/2.
    arm = rd.RobotModel.from_urdf(two_link_urdf(2.0, 3.0, 0.5)).with_gravity((0, -9.81, 0))
    first, second = gravity_formulas(arm)
    assert str(second) == 'G_2 = + 7.3575 cos(q1 + q2)'.replace('= +', '=')
    assert [str(term) for term in first.terms] == ['+ 19.62 cos(q1)', '+ 7.3575 cos(q1 + q2)']


@pytest.mark.parametrize(
    'x, y, written',
    [(np.cos(0.3), np.sin(0.3), '19.62 cos(q1 + q2 + 0.3)'), (0, 1, '19.62 sin(q1 + q2)')],
)
def test_parallel_axes_at_an_angle_are_written_with_that_angle_as_phase(x, y, written):
    # A point mass m at joint 3, which lies 0.3 rad off link 2's x axis: G_2 = m g cos(q12 + 0.3);
    # a quarter of a turn needs no phase.
    text = robot(
        link('l0'),
        joint('j1', 'l0', 'l1'),
        link('l1'),
        joint('j2', 'l1', 'l2', xyz=(1, 0, 0)),
        link('l2'),
        joint('j3', 'l2', 'l3', xyz=(x, y, 0)),
        link('l3', 2),
    )
    arm = rd.RobotModel.from_urdf(text).with_gravity((0, -9.81, 0))
    first, second, third = map(str, gravity_formulas(arm))
    sign = '+' if x else '-'
    assert first == f'G_1 = 19.62 cos(q1) {sign} {written}'
    assert second == f'G_2 = {"" if x else "- "}{written}'
    assert third == 'G_3 = 0'


def test_inertia_of_the_two_link_arm_as_the_book_prints_it():
    arm = rd.RobotModel.from_urdf(two_link_urdf(1.0, 1.0, 1.0))
    (d11, d12), (d22,) = inertia_formulas(arm)
    expected = [({(): 5 / 3, ('cos',): 1.0}, d11), ({(): 1 / 3, ('cos',): 0.5}, d12),
                ({(): 1 / 3}, d22)]  # fmt: skip
    for numbers, formula in expected:
        found = {tuple(f.function for f in t.factors): t.coefficient for t in formula.terms}
        assert found == pytest.approx(numbers)
        assert formula.unit == 'kg m²'


def test_of_two_squares_the_one_that_leaves_fewer_terms_is_written():
    # (60): m4 k411 c4^2 + m4 k433 s4^2 and k_5, k_6 with c4^2 s5^2 once k_11 = k_22 there.
    d22 = inertia_formulas(JPL.model())[1][0]
    products = {' '.join(map(str, term.factors)) for term in d22.terms}
    assert products == {
        '', 'cos(q4)^2', 'cos(q4)^2 sin(q5)^2', 'q3', 'q3 cos(q5)', 'q3^2'
    }  # fmt: skip


@pytest.mark.parametrize('seed', range(3))
def test_derivative_is_the_limit_of_differences(seed):
    arm = rd.RobotModel.from_urdf(random_chain(np.random.default_rng(seed), 4), tip_link='tip')
    q, _, _ = random_states(arm, 5, seed)
    h = 1e-5
    for formula in [row[0] for row in inertia_formulas(arm)] + list(gravity_formulas(arm)):
        for k, step in enumerate(h * np.eye(4)):
            expected = (formula.values(q + step) - formula.values(q - step)) / (2 * h)
            np.testing.assert_allclose(formula.derivative(k).values(q), expected, atol=1e-6)


def test_straight_line_code_of_formulas_computes_them():
    arm = JPL.model()
    formulas = [f for row in inertia_formulas(arm) for f in row] + list(gravity_formulas(arm))
    q, _, _ = random_states(arm, 10, seed=3)
    outputs = expressions(formulas, Graph().input('q', 6))
    expected = np.stack([formula.values(q) for formula in formulas], axis=-1)
    np.testing.assert_allclose(evaluated(outputs, {'q': q}), expected, atol=1e-10)


def test_formula_reads_as_mathematics():
    sine = Factor((1,), 'sin')
    slide = Factor((2,), 'position', power=2)
    turned = Factor((0, 1), 'cos', (1, -1), 0.5)
    terms = (Term(-2.5, ()), Term(1.0, product_of([slide, sine])), Term(-3.0, (turned,)))
    formula = Formula('d_11', 'kg m²', terms)
    assert str(formula) == 'd_11 = - 2.5 + 1 sin(q2) q3^2 - 3 cos(q1 - q2 + 0.5)'
    assert str(Formula('G_1', 'N m', ())) == 'G_1 = 0'
    assert formula.joints == (0, 1, 2)


def test_records_of_the_analysis_survive_json():
    arm = rd.RobotModel.from_urdf(two_link_urdf()).with_gravity((0, -9.81, 0))
    q = np.array([[0.3, 0.9], [0.1, -1.2]])
    for record in (
        *gravity_formulas(arm),
        *coupling_over_joint_space(arm),
        inertial_characteristics(arm),
        ranges(arm, payload=rd.Payload(1.0)),
        coupling_ratio_map(arm, 'joint1', 'joint2', ('joint1', 'joint2'), resolution=2),
        split_along(arm, q, np.ones_like(q)),
    ):
        assert type(record).from_json(record.to_json()) == record


@pytest.mark.parametrize(
    'text, named',
    [
        ('{', 'Formula as JSON'),
        (100_000 * '[', 'Formula as JSON'),
        (5000 * '9', 'Formula as JSON'),
        ('[]', 'Formula'),
        ('{"symbol": "G", "unit": "N"}', 'symbol, unit, terms'),
        ('{"symbol": 1, "unit": "N", "terms": []}', 'Formula.symbol'),
        ('{"symbol": "G", "unit": "N", "terms": 3}', 'Formula.terms'),
        (
            '{"symbol": "G", "unit": "N", "terms": [{"coefficient": "x", "factors": []}]}',
            r'Formula.terms\[0\].coefficient',
        ),
        (
            '{"symbol": "G", "unit": "N", "terms": [{"coefficient": 1.0, "factors": [{"joints": '
            '[0], "function": "tan", "multiples": [1], "phase": 0.0, "power": 1}]}]}',
            r"factors\[0\].function: 'tan'; allowed: 'position', 'cos', 'sin'",
        ),
    ],
)
def test_json_of_another_kind_is_refused_by_name(text, named):
    with pytest.raises(MalformedData, match=named):
        Formula.from_json(text)
