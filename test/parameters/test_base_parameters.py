# SPDX-License-Identifier: Apache-2.0
"""The minimal parameters' counts, formulas and forms, against papers and a numeric method."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_arms import known_arm
from markdown_tables import tables
from numeric_reduction import numeric_reduction
from oracles import random_states, relative_difference
from parameter_arms import DOWN, TILTED, dh_arm, generic_arm, ranks, scemi, structured_arm
from robots import public_urdf

import robodyn_ros as rd
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.parameters import energy_regressor, parameters_record
from robodyn_ros.parameters.regressor import excitation

# --- formulas --------------------------------------------------------------------------------

D3, RL4 = ('a3',), ('d4',)
ONE = {(): 1.0}
MINUS = {(): -1.0}
DISTAL = ('m4', 'm5', 'm6')

# Gautier and Khalil 1988, section 9. Corrected: YYR2 of the print lacks YY3, so that XXR2 loses
# it and ZZR1 gains it.
SCEMI = {
    'ZZR1': {'ZZ1': ONE, 'YY2': ONE, 'YY3': ONE, **dict.fromkeys(('m3', *DISTAL), {D3 * 2: 1.0})},
    'XXR2': {'XX2': ONE, 'YY2': MINUS, **dict.fromkeys(('m3', *DISTAL), {D3 * 2: -1.0})},
    'XZR2': {'XZ2': ONE, 'mZ3': {D3: -1.0}},
    'ZZR2': {'ZZ2': ONE, **dict.fromkeys(('m3', *DISTAL), {D3 * 2: 1.0})},
    'mXR2': {'mX2': ONE, **dict.fromkeys(('m3', *DISTAL), {D3: 1.0})},
    'XXR3': {
        'XX3': ONE,
        'YY3': MINUS,
        'YY4': ONE,
        'mZ4': {RL4: 2.0},
        **dict.fromkeys(DISTAL, {RL4 * 2: 1.0}),
    },
    'ZZR3': {'ZZ3': ONE, 'YY4': ONE, 'mZ4': {RL4: 2.0}, **dict.fromkeys(DISTAL, {RL4 * 2: 1.0})},
    'mYR3': {'mY3': ONE, 'mZ4': ONE, **dict.fromkeys(DISTAL, {RL4: 1.0})},
    'XXR4': {'XX4': ONE, 'YY5': ONE, 'YY4': MINUS},
    'ZZR4': {'ZZ4': ONE, 'YY5': ONE},
    'mYR4': {'mY4': ONE, 'mZ5': MINUS},
    'XXR5': {'XX5': ONE, 'YY6': ONE, 'YY5': MINUS},
    'ZZR5': {'ZZ5': ONE, 'YY6': ONE},
    'mYR5': {'mY5': ONE, 'mZ6': ONE},
    'XXR6': {'XX6': ONE, 'YY6': MINUS},
}
ALONE = (
    'XY2 YZ2 mY2 XY3 XZ3 YZ3 mX3 XY4 XZ4 YZ4 mX4 XY5 XZ5 YZ5 mX5 XY6 XZ6 YZ6 ZZ6 mX6 mY6'.split()
)


@pytest.mark.parametrize('source', ['alpha2 = 90', 'alpha2 = -90', 'urdf'])
def test_scemi_has_the_papers_36_parameters_symbolically(source):
    if source == 'urdf':
        arm = known_arm('scemi')
    else:
        alpha = [0, 90 if source == 'alpha2 = 90' else -90, 0, -90, 90, -90]
        arm = dh_arm('RRRRRR', alpha, [0, 0, 0.5, 0, 0, 0], [0, 0, 0, 0.4, 0, 0])
    base = rd.base_parameters(arm)
    found = {
        expression.name: {name: dict(c) for name, c in expression.terms.items()}
        for expression in base.expressions
    }
    assert found == {**SCEMI, **{name: {name: ONE} for name in ALONE}}
    assert base.count == 36
    assert base.standard_count == 60
    assert ' '.join(base.no_effect) == 'XX1 XY1 XZ1 YY1 YZ1 mX1 mY1 mZ1 m1 mZ2 m2'


def test_formulas_read_as_the_paper_prints_them_with_numbers_or_with_our_symbols():
    expressions = {e.name: e for e in rd.base_parameters(scemi()).expressions}
    text = {name: e.text('paper') for name, e in expressions.items()}
    assert text['XXR2'] == 'XXR2 = XX2 − YY2 − D3² (m3 + m4 + m5 + m6)'
    assert text['XXR3'] == 'XXR3 = XX3 − YY3 + YY4 + 2 RL4 mZ4 + RL4² (m4 + m5 + m6)'
    assert text['mYR4'] == 'mYR4 = mY4 − mZ5'
    assert text['XY2'] == 'XY2 = XY2'
    xxr3 = expressions['XXR3']
    assert xxr3.text('symbols') == 'XXR3 = XX3 − YY3 + YY4 + 2 d4 mZ4 + d4² (m4 + m5 + m6)'
    assert str(xxr3) == 'XXR3 = XX3 − YY3 + YY4 + 0.8 mZ4 + 0.16 (m4 + m5 + m6)'
    with pytest.raises(InvalidArgument, match="'paper'"):
        xxr3.text('latex')


def test_two_link_arm_in_a_vertical_plane():
    # Closed form: tau depends on ZZ1 + l^2 m2, ZZ2, mX1 + l m2, mX2 and, for links that are not
    # slender, mY1 and mY2 (Fu, Gonzalez and Lee 1987, section 3.2.6).
    base = rd.base_parameters(dh_arm('RR', [0, 0], [0, 0.7], [0, 0], gravity=(0, -9.81, 0)))
    assert [e.text('symbols') for e in base.expressions] == [
        'ZZR1 = ZZ1 + a2² m2',
        'mXR1 = mX1 + a2 m2',
        'mY1 = mY1',
        'ZZ2 = ZZ2',
        'mX2 = mX2',
        'mY2 = mY2',
    ]


# --- counts ----------------------------------------------------------------------------------

# docs/minimal_parameters.md: an arm of each row, by what the row begins with.
COUNTED = {
    'SCEMI': lambda gravity: known_arm('scemi', gravity=gravity),
    'general six axes': lambda gravity: generic_arm('RRRRRR', gravity=gravity),
    'Stanford': lambda gravity: known_arm('stanford', gravity=gravity),
    'Panda': lambda gravity: generic_arm('RRRRRRR', gravity=gravity),
    'Cobra 600': lambda gravity: dh_arm(
        'RRPR', [0, 0, 180, 0], [0, 0.325, 0.275, 0], [0.387, 0, 0, 0], gravity=gravity
    ),
}


def test_the_page_has_the_counts_that_are_found_and_these_are_the_ranks():
    [(heads, *rows)] = tables('minimal_parameters.md', 'arm', 'base, upright', 'base, tilted')
    assert len(rows) == len(COUNTED)
    for begin, arm_under in COUNTED.items():
        cells = dict(zip(heads, next(row for row in rows if row[0].startswith(begin))))
        assert int(cells['standard']) == 10 * arm_under(DOWN).n
        for head, gravity in (('base, upright', DOWN), ('base, tilted', TILTED)):
            arm = arm_under(gravity)
            count = rd.base_parameters(arm).count
            assert int(cells[head]) == count, begin
            assert ranks(rd.regressor(arm, *random_states(arm, 80, seed=1))) == {count}, begin


@pytest.mark.parametrize(
    ('file', 'base', 'tip', 'upright', 'tilted'),
    [
        ('panda.urdf', 'panda_link0', 'panda_link8', 43, 45),
        ('ur5_robot.urdf', 'base_link', 'tool0', 36, 38),
        ('lbr_iiwa_14_r820.urdf', 'base_link', 'tool0', 43, 45),
    ],
)
def test_gravity_along_the_first_axis_hides_two_parameters(file, base, tip, upright, tilted):
    arm = rd.RobotModel.from_urdf(public_urdf(file), base_link=base, tip_link=tip)
    assert rd.base_parameters(arm).count == upright
    assert rd.base_parameters(arm.with_gravity((0, 0, 3.0))).count == upright
    assert rd.base_parameters(arm.with_gravity(TILTED)).count == tilted
    assert not rd.base_parameters(arm).depends_on_tolerance


def test_without_gravity_first_links_show_less():
    assert rd.base_parameters(scemi(gravity=(0, 0, 0))).count == 34


# --- against the numeric method --------------------------------------------------------------


def check_against_numbers(arm, **options):
    base = rd.base_parameters(arm, **options)
    numeric = numeric_reduction(arm, **options)
    assert base.count == numeric.count
    # One span: each set of columns gives the other.
    np.testing.assert_allclose(
        numeric.regrouping[:, base.columns] @ base.regrouping,
        numeric.regrouping,
        atol=1e-7 * np.abs(numeric.regrouping).max(initial=1.0),
    )
    return base


@pytest.mark.longer
@given(st.text('RP', min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_closed_form_agrees_with_rank_revealing_qr(kinds, seed):
    arm = structured_arm(np.random.default_rng(seed), kinds)
    base = check_against_numbers(arm)
    assert base.residual < 1e-12
    assert not base.depends_on_tolerance
    states = random_states(arm, 5, seed % 1000)
    torque = rd.inverse_dynamics(arm, *states)
    assert relative_difference(base.regressor(*states) @ base.values, torque) < 1e-11
    for expression, row in zip(base.expressions, base.regrouping, strict=True):
        factors = [expression.coefficients.get(name, 0.0) for name in base.standard.names]
        np.testing.assert_allclose(factors, row, rtol=1e-12, atol=1e-12 * np.abs(row).max())
        for lengths in ('numbers', 'symbols', 'paper'):
            assert expression.text(lengths).startswith(f'{expression.name} = ')


@given(st.text('RP', min_size=1, max_size=5), st.integers(0, 2**32 - 1), st.booleans())
def test_rotors_and_friction_agree_with_rank_revealing_qr(kinds, seed, friction):
    generator = np.random.default_rng(seed)
    arm = structured_arm(generator, kinds).with_rotor_inertia(generator.uniform(0, 1, len(kinds)))
    base = check_against_numbers(arm, rotor_inertia=True, friction=friction)
    states = random_states(arm, 5, seed % 1000)
    torque = rd.inverse_dynamics(arm, *states)
    if friction:
        torque = torque + rd.friction_torque(arm, states[1])
    assert relative_difference(base.regressor(*states) @ base.values, torque) < 1e-11
    full = arm.with_inertial_parameters(base.to_inertial_parameters())
    torque_of_full = (
        rd.inverse_dynamics(full.with_rotor_inertia(np.zeros(arm.n)), *states)
        + base.to_rotor_inertia() * states[2]
    )
    assert relative_difference(torque_of_full, rd.inverse_dynamics(arm, *states)) < 1e-11


@pytest.mark.longer
def test_no_effect_means_no_effect():
    for seed in range(60):
        generator = np.random.default_rng(seed)
        arm = structured_arm(generator, ''.join(generator.choice(['R', 'P'], 5)))
        columns = rd.regressor(arm, *random_states(arm, 20, seed)).reshape(-1, 50)
        size = np.abs(columns).max(axis=0)
        names = rd.base_parameters(arm).standard.names
        expected = {name for name, s in zip(names, size) if s < 1e-12 * size.max()}
        assert set(rd.base_parameters(arm).no_effect) == expected


def test_regrouping_holds_with_a_hayati_angle():
    beta = [0, 1.5, 0, 2]
    arm = dh_arm('RRRR', [0, 2, 90, 1], [0, 0.4, 0.3, 0.2], [0, 0.1, 0.2, 0.1], beta=beta)
    base = check_against_numbers(arm)
    assert base.residual < 1e-14


# --- rotors and friction ---------------------------------------------------------------------


def test_rotors_that_turn_with_their_link_alone_regroup_with_it():
    base = rd.base_parameters(scemi(), rotor_inertia=True)
    text = {e.name: e.text('paper') for e in base.expressions}
    assert text['ZZR1'] == 'ZZR1 = ZZ1 + YY2 + YY3 + D3² (m3 + m4 + m5 + m6) + Ia1'
    assert text['ZZR2'] == 'ZZR2 = ZZ2 + D3² (m3 + m4 + m5 + m6) + Ia2'
    assert [name for name in base.names if name.startswith('Ia')] == ['Ia3', 'Ia4', 'Ia5', 'Ia6']
    assert base.count == 40


def test_rotors_count_where_the_model_has_any():
    arm = scemi()
    assert rd.base_parameters(arm).count == 36
    geared = arm.with_rotor_inertia([0.1] * 6)
    assert rd.base_parameters(geared).count == 40
    assert rd.base_parameters(geared, rotor_inertia=False).count == 36
    states = random_states(arm, 5, seed=3)
    base = rd.base_parameters(geared)
    torque = rd.inverse_dynamics(geared, *states)
    assert relative_difference(base.regressor(*states) @ base.values, torque) < 1e-12


def test_friction_never_regroups():
    base = rd.base_parameters(scemi(), friction=True)
    assert base.count == 48
    assert base.names[36:] == tuple(f'{name}{j}' for name in ('Fv', 'Fc') for j in range(1, 7))


# --- what the result offers ------------------------------------------------------------------


def test_identified_values_make_a_full_set():
    base = rd.base_parameters(scemi())
    values = np.arange(36.0)
    full = base.to_inertial_parameters(values)
    np.testing.assert_array_equal(full.ravel()[list(base.columns)], values)
    with pytest.raises(InvalidArgument, match='argument values'):
        base.to_inertial_parameters(np.zeros(35))


def test_regressor_takes_one_state_or_many():
    arm = scemi()
    base = rd.base_parameters(arm)
    states = random_states(arm, 4, seed=2)
    assert base.regressor(*states).shape == (4, 6, 36)
    assert base.regressor(*(x[0] for x in states)).shape == (6, 36)


def test_energy_is_the_same_up_to_a_constant():
    arm = scemi(gravity=TILTED)
    q, qd, _ = random_states(arm, 30, seed=4)
    kinetic, potential = energy_regressor(arm, q, qd)
    change = arm.inertial_parameters - rd.base_parameters(arm).to_inertial_parameters()
    np.testing.assert_allclose(kinetic @ change.ravel(), 0, atol=1e-10)
    shift = potential @ change.ravel()
    np.testing.assert_allclose(shift - shift[0], 0, atol=1e-10)


def test_conditioning_is_that_of_the_normalised_base_regressor():
    arm = scemi()
    base = rd.base_parameters(arm)
    rows = base.regressor(*excitation(arm)).reshape(-1, base.count)
    gram = (rows / np.linalg.norm(rows, axis=0)).T @ (rows / np.linalg.norm(rows, axis=0))
    eigenvalues = np.linalg.eigvalsh(gram)
    expected = np.sqrt(eigenvalues[-1] / eigenvalues[0])
    assert base.conditioning == pytest.approx(expected, rel=1e-9)
    assert base.residual < 1e-14
    assert base.general_links == (False, False, False, True, True, True)


def test_conditioning_of_a_single_joint_without_gravity_is_one():
    assert rd.base_parameters(dh_arm('R', [0], [0], [0], gravity=[0, 0, 0])).conditioning == 1.0


def test_geometry_near_a_singular_one_is_flagged():
    exact = dh_arm('RRR', [0, 0, 90], [0, 0.4, 0.3], [0, 0, 0])
    nearly = dh_arm('RRR', [0, np.degrees(1e-5), 90], [0, 0.4, 0.3], [0, 0, 0])
    assert not rd.base_parameters(exact).depends_on_tolerance
    flagged = rd.base_parameters(nearly)
    assert flagged.depends_on_tolerance
    fewest, most = flagged.count_range
    assert fewest == rd.base_parameters(exact).count < most
    assert rd.base_parameters(nearly, tolerance=1e-3).count == rd.base_parameters(exact).count
    assert 'close to a singular one' in str(flagged)


@pytest.mark.parametrize('tolerance', [0.0, -1e-9, 1.0, float('nan')])
def test_tolerance_lies_between_zero_and_one(tolerance):
    with pytest.raises(InvalidArgument, match='tolerance'):
        rd.base_parameters(scemi(), tolerance=tolerance)


def test_expressions_carry_link_unit_and_value():
    base = rd.base_parameters(scemi())
    for expression, value, name in zip(base.expressions, base.values, base.names, strict=True):
        assert expression.value == value
        assert expression.name == name
        total = sum(
            factor * base.standard.values[base.standard.names.index(parameter)]
            for parameter, factor in expression.coefficients.items()
        )
        assert total == pytest.approx(value, abs=1e-12)
    assert (base.expressions[0].link, base.expressions[0].unit) == ('l1', 'kg m²')
    assert (base.expressions[-1].link, base.expressions[-1].unit) == ('l6', 'kg m')


def test_report_shows_every_parameter_and_its_formula():
    base = rd.base_parameters(scemi())
    text = base.text('paper')
    assert text.startswith(
        '36 base (minimal) parameters out of 60 standard ones, gravity (0, 0, -9.81) m/s²'
    )
    for expression in base.expressions:
        assert expression.text('paper').partition(' = ')[2] in text
    assert 'without effect: XX1 XY1 XZ1 YY1 YZ1 mX1 mY1 mZ1 m1 mZ2 m2' in text
    assert 'lengths [m]: D3 = 0.5, RL4 = 0.4' in text


def test_record_survives_json():
    base = rd.base_parameters(scemi())
    record = json.loads(json.dumps(parameters_record(base)))
    assert record['count'] == 36
    assert record['lengths'] == {'a3': 0.5, 'd4': 0.4}
    xxr2 = next(row for row in record['parameters'] if row['name'] == 'XXR2')
    assert xxr2['expression'] == 'XXR2 = XX2 − YY2 − 0.25 (m3 + m4 + m5 + m6)'
    assert xxr2['terms'][2] == {
        'parameter': 'm3',
        'coefficient': -0.25,
        'polynomial': [{'factor': -1.0, 'lengths': ['a3', 'a3']}],
    }


def test_values_cannot_be_written():
    base = rd.base_parameters(scemi())
    for array in (base.values, base.regrouping):
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 1.0


def test_documented_formulas_are_those_of_the_ur5():
    page = (Path(__file__).parents[2] / 'docs' / 'minimal_parameters.md').read_text('utf-8')
    block = page.partition('<!-- formulas: ur5 -->\n```text\n')[2].partition('```')[0]
    arm = known_arm('ur5')
    formulas = [e.text('symbols') for e in rd.base_parameters(arm).expressions]
    sides = [formula.split(' = ') for formula in formulas]
    alone = [left for left, right in sides if left == right]
    assert block.splitlines() == [each for each in formulas if each.split(' = ')[0] not in alone]
    assert f'The other {len(alone)} are standard parameters: {" ".join(alone)}.' in ' '.join(
        page.split()
    )
