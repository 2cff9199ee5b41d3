# SPDX-License-Identifier: Apache-2.0
"""In a notebook results are tables and formulas, and names are data in both."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from lxml import html
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros import analysis
from robodyn_ros.analysis.ratios import largest_ratios
from robodyn_ros.record import latex_number, latex_symbol, latex_text

WITH_PRISMATIC = 'urdf/stanford.urdf'


def shown(arm):
    """Return what shows as a table, and how many rows it has."""
    base = rd.base_parameters(arm)
    simplified = analysis.simplified_model(arm, 0.02)
    return {
        'model': (arm, arm.n + len(arm.findings)),
        'findings': (arm.findings, len(arm.findings)),
        'finding': (arm.findings[0], 1),
        'dh': (arm.dh, arm.n),
        'standard dh': (arm.dh.standard(), arm.n),
        'base parameters': (base, base.count),
        'expressions': (base.expressions, base.count),
        'ranges': (analysis.ranges(arm), 2 * arm.n),
        'ranges with a payload': (analysis.ranges(arm, payload=rd.Payload(1.0)), 4 * arm.n),
        'one range': (analysis.ranges(arm).inertia[0], 1),
        'structure': (analysis.inertial_characteristics(arm), 6),
        'gravity': (analysis.gravity_formulas(arm), arm.n),
        'a row of inertia': (analysis.inertia_formulas(arm)[0], arm.n),
        'guidelines': (analysis.design_guidelines(arm), 4),
        'coupling': (analysis.coupling_over_joint_space(arm), arm.n * (arm.n - 1) // 2),
        'largest ratios': (largest_ratios(arm), arm.n),
        'simplified model': (simplified, 5),
        'its formulas': (simplified.formulas, 5),
    }


@pytest.fixture(scope='module')
def planar():
    return rd.RobotModel.from_urdf(two_link_urdf(), gravity=(0, -9.81, 0))


@pytest.fixture(scope='module')
def tables(planar):
    return shown(planar)


def tables_of(record):
    return html.fragments_fromstring(record._repr_html_())


@pytest.mark.longer
def test_a_result_is_a_table_in_a_notebook(tables):
    for name, (record, count) in tables.items():
        rows = 0
        for tree in tables_of(record):
            assert tree.tag == 'table', name
            cells = [row.xpath('td') for row in tree.xpath('tbody/tr')]
            assert {len(row) for row in cells} == {len(tree.xpath('thead/tr/th'))}, name
            rows += len(cells)
        assert rows == count, name
        # A terminal of IPython shows the text, and not the constructor.
        said = []
        record._repr_pretty_(SimpleNamespace(text=said.append), False)
        assert said == [str(record)], name


def test_a_table_says_what_the_text_says(tables):
    for name in ('structure', 'dh', 'base parameters', 'ranges', 'largest ratios', 'guidelines'):
        record, _ = tables[name]
        text = ' '.join(str(record).split())
        for cell in (td.text_content() for tree in tables_of(record) for td in tree.iter('td')):
            assert ' '.join(cell.split()) in text, (name, cell)


HOSTILE = '&lt;script&gt;$\\alert{1}$&amp;%#_^~'


@pytest.mark.longer
def test_names_of_a_urdf_are_neither_html_nor_formulas_in_a_notebook():
    text = two_link_urdf()
    for name in ('link1', 'joint1', 'two_link'):
        text = text.replace(name, f'{name}{HOSTILE}')
    arm = rd.RobotModel.from_urdf(text, gravity=(0, -9.81, 0))
    seen = ''
    for name, (record, _) in shown(arm).items():
        source = record._repr_html_()
        seen += source
        assert '<script' not in source, name
        for tree in tables_of(record):
            assert not tree.xpath('.//script'), name
            assert 'mathjax_ignore' in tree.get('class').split(), name
    for name in ('link1', 'joint1', 'two_link'):
        assert f'{name}&lt;script&gt;$' in seen
    for each in rd.base_parameters(arm).expressions:
        assert 'script' not in each.latex()


def test_names_in_latex_are_letters_only():
    assert latex_text('a_b') == r'\text{a\_b}'
    escaped = latex_text('\\href{x}$^2$~&%#\n')
    assert escaped == (
        r'\text{\textbackslash{}href\{x\}\$\textasciicircum{}2\$\textasciitilde{}\&\%\# }'
    )
    # A symbol of a file, which may say anything.
    formula = analysis.Formula('G$\\href{x}', 'N m', ())
    assert formula.latex() == r'G\$\textbackslash{}href\{x\}'.join([r'\text{', r'} = 0'])


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('d_12', 'd_{12}'),
        ('d_1,10', 'd_{1,10}'),
        ('c_23(1)', 'c_{23}(1)'),
        ('q3', 'q_{3}'),
        ('XXR2', r'\mathit{XXR}_{2}'),
        ('d d_12 / d q3', r'\frac{\partial d_{12}}{\partial q_{3}}'),
        ('RL4', r'\mathit{RL}_{4}'),
    ],
)
def test_indices_stand_below_their_symbol(name, expected):
    assert latex_symbol(name) == expected


def test_numbers_have_six_digits_and_their_power_of_ten_written_out():
    assert latex_number(4.73) == '4.73'
    assert latex_number(-1.2345678e-7) == r'-1.23457 \cdot 10^{-7}'
    assert latex_number(2e12) == r'2 \cdot 10^{12}'


def test_gravity_of_the_planar_arm_is_the_textbooks_formula(planar):
    # (m1 / 2 + m2) g l cos q1 + m2 g l / 2 cos(q1 + q2), with m = 1 kg, l = 1 m, g = 9.81 m/s².
    first, second = analysis.gravity_formulas(planar)
    right = r'4.905 \, \cos\left(q_{1} + q_{2}\right)'
    assert first.latex() == rf'G_{{1}} = 14.715 \, \cos\left(q_{{1}}\right) + {right}'
    assert second.latex() == f'G_{{2}} = {right}'
    assert second._repr_latex_() == rf'$\displaystyle {second.latex()}$'
    assert analysis.gravity_formulas(planar.with_gravity((0, 0, 0)))[0].latex() == 'G_{1} = 0'


def test_regrouping_of_the_planar_arm_is_the_textbooks_formula(planar):
    # Khalil's ZZR1 = ZZ1 + D2^2 m2, with D2 = a2 = 1 m.
    expressions = {each.name: each for each in rd.base_parameters(planar).expressions}
    of_inertia = expressions['ZZR1']
    assert of_inertia.latex('symbols') == (
        r'\mathit{ZZR}_{1} = \mathit{ZZ}_{1} + a_{2}^{2} \, m_{2}'
    )
    assert of_inertia.latex('paper').endswith(r'D_{2}^{2} \, m_{2}')
    assert of_inertia.latex() == r'\mathit{ZZR}_{1} = \mathit{ZZ}_{1} + m_{2}'
    with pytest.raises(rd.InvalidArgument):
        of_inertia.latex('inches')


def value_of(latex, values):
    """Return the right side of an equation in LaTeX, read as a person would, at given values."""
    text = latex.partition(' = ')[2].replace(r'\,', '*').replace(r'\cdot', '*')
    text = re.sub(r'\\(cos|sin)\^\{(\d+)\}\\left\(([^()]*)\\right\)', r'(\1(\3))**\2', text)
    text = text.replace(r'\left', '').replace(r'\right', '').replace('\\cos', 'cos')
    text = text.replace('\\sin', 'sin').replace(r'\mathit', '')
    text = re.sub(r'\{(\w+)\}_\{([\d,]+)\}|\b(\w)_\{([\d,]+)\}', r'\1\3\2\4', text)
    text = re.sub(r'\^\{(-?\d+)\}', r'**(\1)', text)
    text = re.sub(r'(\d) (?=q\d)', r'\1 * ', text)  # a multiple of an angle
    assert '\\' not in text and '{' not in text, text
    return eval(text, {'__builtins__': {}, 'cos': math.cos, 'sin': math.sin, **values})


@pytest.mark.parametrize('file', ['urdf/puma560.urdf', WITH_PRISMATIC, 'urdf/jpl_rrp.urdf'])
def test_latex_of_gravity_and_inertia_has_their_values(file):
    arm = rd.RobotModel.from_urdf(file)
    generator = np.random.default_rng(8)
    gravity = analysis.gravity_formulas(arm)
    inertia = analysis.inertia_formulas(arm)
    for q in generator.uniform(-2, 2, (3, arm.n)):
        at = {f'q{j + 1}': value for j, value in enumerate(q)}
        torque, mass = rd.gravity_torque(arm, q), rd.mass_matrix(arm, q)
        for i in range(arm.n):
            assert value_of(gravity[i].latex(), at) == pytest.approx(
                torque[i], abs=2e-5 * np.abs(torque).max()
            )
            for j, formula in enumerate(inertia[i], start=i):
                assert value_of(formula.latex(), at) == pytest.approx(
                    mass[i, j], abs=2e-5 * np.abs(mass).max()
                )


@pytest.mark.parametrize('lengths', ['numbers', 'symbols'])
@pytest.mark.parametrize('file', ['urdf/puma560.urdf', WITH_PRISMATIC])
def test_latex_of_base_parameters_has_their_values(file, lengths):
    arm = rd.RobotModel.from_urdf(file)
    parameters = np.random.default_rng(9).uniform(0.5, 1.5, (arm.n, 10))
    base = rd.base_parameters(replace(arm, inertial_parameters=parameters))
    known = dict(zip(base.standard.names, base.standard.values, strict=True))
    known |= base.expressions[0].lengths
    for each, value in zip(base.expressions, base.values, strict=True):
        assert value_of(each.latex(lengths), known) == pytest.approx(value, rel=2e-5, abs=1e-6)
