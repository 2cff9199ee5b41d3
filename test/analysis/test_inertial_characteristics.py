# SPDX-License-Identifier: Apache-2.0
"""
Tourassis and Neuman 1985: Tables 1, 2 and 3, equations (36)-(39), and the design guidelines.

The counts of Table 3 are those of the arms in urdf/, whose masses lie as the paper's count needs.
"""

from dataclasses import replace

import numpy as np
import pytest
from oracles import random_states
from paper_arms import ARTICULATED, CARTESIAN, CYLINDRICAL, JPL, PUMA, SPHERICAL, STANFORD
from robots import random_chain, two_link_urdf
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.analysis import (
    design_guidelines,
    inertial_characteristics,
)
from robodyn_ros.dynamics import christoffel_symbols
from robodyn_ros.spatial import parameters_of_pseudo_inertia

SEEDS = range(8)


def random_arm(seed):
    generator = np.random.default_rng(seed)
    joints = int(generator.integers(3, 7))
    return rd.RobotModel.from_urdf(random_chain(generator, joints, 0.35), tip_link='tip')


def nonzero(structure):
    return tuple(count.nonzero for count in structure.counts)


def test_table_2_any_number_of_joints():
    for paper, counts in ((ARTICULATED, [3, 3, 6, 2, 3]), (PUMA, [6, 15, 30, 40, 6])):
        structure = inertial_characteristics(paper.model())
        assert [count.independent for count in structure.counts] == counts
    for n in range(1, 9):
        arm = rd.RobotModel.from_urdf(random_chain(np.random.default_rng(n), n), tip_link='tip')
        structure = inertial_characteristics(arm)
        assert len(structure.coefficients) == n * (2 * n**2 + 3 * n + 7) // 6


# Arm; d_ii, d_ij, c_jj(i), c_jm(i), G_i; constant d_ii and G_i; printed total and sparsity.
TABLE_3 = [
    pytest.param(CARTESIAN, (3, 0, 0, 0, 1), (3, 1), 4, 0.235, id='Cartesian'),
    pytest.param(CYLINDRICAL, (3, 0, 1, 0, 1), (2, 1), 5, 0.294, id='cylindrical'),
    pytest.param(SPHERICAL, (3, 0, 3, 0, 2), (1, 0), 8, 0.471, id='spherical'),
    # Printed 6 constant d_ii less one: d_33 is a mass and d_66 is diagonal's, both constant.
    pytest.param(STANFORD, (6, 12, 19, 25, 4), (2, 0), 66, 0.680, id='Stanford'),
    # Printed 30 + 34: as d_ij = 0 takes c_jj(i) with it, (36), 14 mutual ones leave at most 29.
    pytest.param(PUMA, (6, 14, 25, 39, 4), (1, 0), 88, 0.907, id='PUMA'),
]


@pytest.mark.parametrize('paper, counts, constant, total, sparsity', TABLE_3)
def test_table_3(paper, counts, constant, total, sparsity):
    structure = inertial_characteristics(paper.model())
    assert nonzero(structure) == counts
    assert (structure.counts[0].constant, structure.counts[4].constant) == constant
    assert structure.total == total
    assert structure.sparsity == pytest.approx(sparsity, abs=6e-4)


# The same arms, their masses anywhere; the print's total. It counts chosen masses, but for the
# Cartesian arm.
ANY_MASSES = [
    pytest.param(CARTESIAN, (3, 0, 0, 0, 1), 4, 4, id='Cartesian'),
    pytest.param(CYLINDRICAL, (3, 1, 1, 0, 1), 6, 5, id='cylindrical'),
    pytest.param(SPHERICAL, (3, 3, 4, 1, 2), 13, 8, id='spherical'),
    pytest.param(ARTICULATED, (3, 3, 6, 1, 2), 15, 16, id='articulated'),
    pytest.param(STANFORD, (6, 14, 24, 28, 5), 77, 66, id='Stanford'),
    pytest.param(PUMA, (6, 15, 30, 39, 5), 95, 88, id='PUMA'),
]


def bodies_anywhere(joints, seed):
    """Return parameters (n, 10) of links of six point masses each, wherever they may be."""
    generator = np.random.default_rng(seed)
    masses, points = generator.uniform(0.2, 1, (joints, 6)), generator.normal(size=(joints, 6, 3))
    homogeneous = np.concatenate([points, np.ones((joints, 6, 1))], axis=2)
    pseudo = np.einsum('jk,jka,jkb->jab', masses, homogeneous, homogeneous)
    return parameters_of_pseudo_inertia(pseudo)


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('paper, counts, total, printed', ANY_MASSES)
def test_table_3_with_masses_anywhere(paper, counts, total, printed, seed):
    arm = paper.model()
    structure = inertial_characteristics(
        arm.with_inertial_parameters(bodies_anywhere(arm.n, seed))
    )
    assert nonzero(structure) == counts
    assert structure.total == total
    assert (total == printed) == (paper is CARTESIAN)


def test_table_3_articulated_arm_has_one_coefficient_less_than_printed():
    # c_12(3), which the print counts, vanishes where axis 1 is perpendicular to parallel 2 and 3.
    structure = inertial_characteristics(ARTICULATED.model())
    assert nonzero(structure) == (3, 3, 6, 1, 2)
    assert structure.total == 16 - 1
    assert structure['c_23(1)'].nonzero and not structure['c_13(2)'].nonzero


def test_table_3_stanford_count_of_bejczys_arm_needs_an_asymmetric_hand():
    # Appendix B has k611 = k622, which takes six coefficients away.
    arm = JPL.model()
    assert inertial_characteristics(arm).total == 60
    parameters = arm.inertial_parameters.copy()
    parameters[5, 0] *= 1.3
    structure = inertial_characteristics(arm.with_inertial_parameters(parameters))
    assert nonzero(structure) == (6, 12, 19, 25, 4)


@pytest.mark.parametrize(
    'paper, anthropomorphism, printed',
    [(CARTESIAN, 0, 0.235), (CYLINDRICAL, 1 / 3, 0.294), (SPHERICAL, 2 / 3, 0.471),
     (ARTICULATED, 1, 0.941), (STANFORD, 5 / 6, 0.680), (PUMA, 1, 0.907)],
    ids=lambda value: getattr(value, 'file', None),
)  # fmt: skip
def test_empirical_formula_gives_the_printed_sparsity(paper, anthropomorphism, printed):
    structure = inertial_characteristics(paper.model())
    assert structure.degree_of_anthropomorphism == pytest.approx(anthropomorphism)
    expected = 0.235 * (1 + anthropomorphism**2) ** 2
    assert structure.empirical_sparsity == pytest.approx(expected, rel=2e-3)
    assert structure.empirical_sparsity == pytest.approx(printed, rel=5e-2)


@pytest.mark.parametrize('seed', SEEDS)
def test_table_1_self_inertia_of_a_translational_joint_is_the_mass_beyond(seed):
    arm = random_arm(seed)
    mass = np.cumsum(arm.inertial_parameters[::-1, 9])[::-1]
    q = random_states(arm, 1, seed)[0][0]
    structure = inertial_characteristics(arm)
    for i in np.flatnonzero(arm.dh.prismatic):
        assert rd.mass_matrix(arm, q)[i, i] == pytest.approx(mass[i])
        assert structure[f'd_{i + 1}{i + 1}'].constant
        assert structure[f'd_{i + 1}{i + 1}'].unit == 'kg'


@pytest.mark.parametrize('seed', SEEDS)
def test_table_1_functional_dependence(seed):
    arm = random_arm(seed)
    structure = inertial_characteristics(arm)
    slides = arm.dh.prismatic
    names = arm.joint_names
    for i in range(arm.n):
        for j in range(i, arm.n):
            allowed = set(names[i + 1 :])
            if slides[j]:
                allowed.discard(names[j])
            if slides[i] and slides[j]:
                allowed = set(names[i + 1 : j])
            assert set(structure[f'd_{i + 1}{j + 1}'].joints) <= allowed
    for x in structure.coefficients:
        if x.symbol.startswith('c'):
            lowest = min(int(character) for character in x.symbol if character.isdigit())
            assert set(x.joints) <= set(names[lowest:])
    for i in range(arm.n):
        # A slide changes only the lever of the torques before it.
        if slides[i]:
            assert set(structure[f'G_{i + 1}'].joints) <= set(names[:i])


@pytest.mark.parametrize('seed', SEEDS)
def test_coefficients_that_random_positions_show_count_and_no_others(seed):
    arm = random_arm(seed)
    structure = inertial_characteristics(arm)
    q = random_states(arm, 40, seed + 100)[0]
    inertia = np.abs(rd.mass_matrix(arm, q)).max(axis=0)
    symbols = np.abs(christoffel_symbols(arm, q)).max(axis=0)
    for x in structure.coefficients:
        numbers = [int(character) - 1 for character in x.symbol if character.isdigit()]
        if x.symbol[0] == 'c':
            j, m, i = numbers
            assert (symbols[i, j, m] > 1e-9) == x.nonzero or x.fraction < 1e-6, x
        elif x.symbol[0] == 'd':
            assert (inertia[tuple(numbers)] > 1e-12) == x.nonzero, x
        assert 0 <= x.fraction <= 1 + 1e-12
        assert x.nonzero or x.fraction < 1e-13


def test_fraction_weighs_a_velocity_coefficient_against_the_outer_joints_inertia():
    # c_jm(i) by sqrt(d_ii d_mm), j <= m; the maxima are over more positions here.
    arm = PUMA.model()
    structure = inertial_characteristics(arm)
    q = random_states(arm, 2000, seed=7)[0]
    largest = np.sqrt(np.diagonal(rd.mass_matrix(arm, q), axis1=1, axis2=2).max(axis=0))
    c = np.abs(christoffel_symbols(arm, q)).max(axis=0)
    for x in structure.coefficients:
        if x.kind == 'Coriolis' and x.fraction > 1e-9:
            j, m, i = (int(character) - 1 for character in x.symbol if character.isdigit())
            bound = c[i, j, m] / (largest[i] * largest[m])
            assert 0.4 * bound < x.fraction < 1.05 * bound, x


@pytest.mark.parametrize('mass, length', [(1.0, 1.0), (2.5, 0.3)])
def test_fractions_of_a_pendulum_on_a_slide(mass, length):
    # d_11 = m, d_12 = -m l s, d_22 = m l2, c_22(1) = -m l c; with gravity along x G_1 = -m g,
    # G_2 = m g l s, along y G_2 = -m g l c: every fraction is |s| or |c|, and that of G_1 is 1.
    text = robot(
        link('base'),
        joint('j1', 'base', 'a', 'prismatic', axis=(1, 0, 0)),
        link('a'),
        joint('j2', 'a', 'b'),
        link('b', mass, center=(length, 0, 0)),
    )
    arm = rd.RobotModel.from_urdf(text)
    along_x = inertial_characteristics(arm.with_gravity((-9.81, 0, 0)))
    along_y = inertial_characteristics(arm.with_gravity((0, -9.81, 0)))
    assert along_x['G_1'].fraction == pytest.approx(1)
    assert along_x['G_2'].fraction == pytest.approx(along_x['d_12'].fraction)
    assert along_y['G_2'].fraction == pytest.approx(along_y['c_22(1)'].fraction)
    assert 0.9 < along_x['d_12'].fraction <= 1 and 0.9 < along_y['G_2'].fraction <= 1
    assert (along_x['d_11'].fraction, along_x['d_22'].fraction) == pytest.approx((1, 1))


def test_gravity_and_inertia_that_are_not_there_have_no_coefficients():
    arm = PUMA.model()
    # Gravity along the first axis does not load it.
    assert not inertial_characteristics(arm)['G_1'].nonzero
    assert inertial_characteristics(arm.with_gravity((9.81, 0, 0)))['G_1'].nonzero
    assert inertial_characteristics(arm.with_gravity((0, 0, 0))).counts[4].nonzero == 0
    bare = arm.with_inertial_parameters(np.zeros((6, 10)))
    assert inertial_characteristics(bare).total == 0


def test_two_link_arm_depends_on_the_second_angle_alone():
    structure = inertial_characteristics(rd.RobotModel.from_urdf(two_link_urdf()))
    assert structure['d_11'].joints == structure['d_12'].joints == ('joint2',)
    assert structure['d_22'].constant
    assert structure['c_11(2)'].joints == ('joint2',)
    # Gravity, minus z, is along both axes of this arm.
    assert not structure['G_1'].nonzero and not structure['G_2'].nonzero


def test_tolerance_accepts_a_right_angle_of_five_digits():
    arm = CYLINDRICAL.model()
    alpha = arm.dh.alpha.copy()
    alpha[2] += 4e-6
    rounded = replace(arm, dh=replace(arm.dh, alpha=alpha))
    assert inertial_characteristics(rounded).total > 5
    assert inertial_characteristics(rounded, tolerance=1e-4).total == 5


def test_structure_has_units():
    structure = inertial_characteristics(STANFORD.model())
    assert 'total' in str(structure) and '66' in str(structure)
    assert structure['d_22'].unit == 'kg m²'
    assert structure['d_13'].unit == 'kg m'
    assert structure['c_22(3)'].unit == 'kg m'
    assert structure['G_3'].unit == 'N' and structure['G_4'].unit == 'N m'


def test_one_axis_has_no_angle_to_another():
    model = rd.RobotModel.from_urdf(two_link_urdf(), tip_link='link1')
    assert str(design_guidelines(model)[1]).endswith('(angles between axes: none)')


def test_guidelines_of_the_puma():
    first, right, masses, gravity = design_guidelines(PUMA.model())
    assert first.met is None and first.values == (0, 6)
    # Axes 2 and 3 are parallel, so that 1 and 3, 2 and 4 keep their angles, too.
    assert right.meaning == 'angles between axes 1-2 1-3 2-3 2-4 3-4 4-5 5-6'
    assert right.met and right.values == pytest.approx((90, 90, 0, 90, 90, 90, 90), abs=1e-9)
    assert masses.met is False  # 13, 17, 5, 0.8, 0.35, 0.09 kg
    assert masses.values == pytest.approx((13, 17, 5, 0.8, 0.35, 0.09))
    assert gravity.met and gravity.values == (pytest.approx(0, abs=1e-12),)
    assert 'not met' in str(masses)


def test_masses_decrease_as_the_third_guideline_asks_where_no_two_are_equal():
    # "The masses of the links should decrease": under (34), "constitute a decreasing sequence".
    arm = JPL.model()
    masses = design_guidelines(arm)[2]
    assert masses.met is True
    assert masses.unit == 'kg' and masses.values == tuple(sorted(masses.values, reverse=True))
    parameters = arm.inertial_parameters.copy()
    parameters[3, 9] = parameters[2, 9]
    masses = design_guidelines(arm.with_inertial_parameters(parameters))[2]
    assert masses.values[2] == masses.values[3]
    assert masses.met is False


def test_guidelines_of_the_cartesian_arm():
    first, right, _, gravity = design_guidelines(CARTESIAN.model())
    assert first.values == (3, 3)
    assert right.met
    assert gravity.met is False  # its first joint lifts


def test_guidelines_find_an_oblique_axis():
    arm = PUMA.model()
    alpha = arm.dh.alpha.copy()
    alpha[4] = np.radians(60)
    right = design_guidelines(replace(arm, dh=replace(arm.dh, alpha=alpha)))[1]
    assert right.met is False
    assert right.values[5] == pytest.approx(60) and '4-5' in right.meaning.split()[8]


def chain(*joints):
    """Return an arm of joints (kind, alpha, theta) in modified DH, with inertias of all kinds."""
    generator = np.random.default_rng(len(joints))
    parts = [link('l0')]
    for k, (kind, alpha, theta) in enumerate(joints, start=1):
        xyz, center = generator.uniform(-0.5, 0.5, (2, 3))
        parts += [
            joint(f'f{k}', f'l{k - 1}', f'f{k}', 'fixed', xyz=xyz, rpy=(alpha, 0, 0)),
            link(f'f{k}'),
            joint(f'j{k}', f'f{k}', f'l{k}', kind, rpy=(0, 0, theta)),
            link(f'l{k}', 6 - k, center, (1, 1.2, 0.9, 0.1, 0.05, -0.08)),
        ]
    return rd.RobotModel.from_urdf(robot(*parts))


def test_guideline_of_right_angles_finds_axes_that_are_not_neighbours():
    # Three slides, each at right angles to the next: d_13 = m3 z1 . z3 = -5 cos(30 deg) m3 / 5.
    right = np.pi / 2
    slides = [('prismatic', 0, 0), ('prismatic', right, np.pi / 6), ('prismatic', right, 0)]
    arm = chain(*slides)
    guideline = design_guidelines(arm)[1]
    assert guideline.met is False
    assert guideline.values == pytest.approx((90, 150, 90))
    mass = arm.inertial_parameters[2, 9]
    assert rd.mass_matrix(arm, np.zeros(3))[0, 2] == pytest.approx(-mass * np.sqrt(3) / 2)
    straight = chain(slides[0], ('prismatic', right, 0), slides[2])
    assert design_guidelines(straight)[1].met is True
    assert rd.mass_matrix(straight, np.zeros(3))[0, 2] == pytest.approx(-mass)


def test_angle_that_a_joint_between_changes_is_none_of_the_guidelines():
    right = np.pi / 2
    arm = chain(('revolute', 0, 0), ('revolute', right, 0.5), ('revolute', right, 0))
    guideline = design_guidelines(arm)[1]
    assert guideline.met is True
    assert guideline.meaning == 'angles between axes 1-2 2-3'


def test_number_of_coefficients_grows_as_n_to_the_2_55_from_three_to_six_joints():
    for n in range(3, 7):
        count = n * (2 * n**2 + 3 * n + 7) / 6
        assert n**2.55 == pytest.approx(count, rel=0.04)
    assert 9**2.55 < 0.93 * 9 * (2 * 81 + 27 + 7) / 6  # "for this range" only: it is of order 3


def test_sparsity_of_the_articulated_arm_does_not_obey_the_formula_that_all_obey():
    # 15 of 17, where the print counts 16; (0.235) 4 is 0.94.
    structure = inertial_characteristics(ARTICULATED.model())
    assert structure.sparsity == pytest.approx(15 / 17)
    assert structure.empirical_sparsity / structure.sparsity == pytest.approx(1.0667, abs=2e-3)


@pytest.mark.parametrize('seed', SEEDS)
def test_joint_that_slides_causes_no_centrifugal_force_and_none_with_joints_beyond(seed):
    # c_ij(m) = 0 for i <= j, joint i prismatic, all m.
    arm = random_arm(seed)
    structure = inertial_characteristics(arm)
    c = christoffel_symbols(arm, random_states(arm, 1, seed)[0][0])
    symbols = {x.symbol: x for x in structure.coefficients}
    for i in np.flatnonzero(arm.dh.prismatic):
        assert np.abs(c[:, i, i:]).max() < 1e-12
        for j in range(i, arm.n):
            for m in range(arm.n):
                found = symbols.get(f'c_{i + 1}{j + 1}({m + 1})')
                assert found is None or not found.nonzero


@pytest.mark.parametrize('kinds', ['RP', 'PR', 'RRP', 'PRR', 'RPR'])
def test_parallel_revolute_and_prismatic_joints_are_not_coupled(kinds):
    # Table 1: d_ij of a revolute and a prismatic joint has the factor z_i x z_j.
    names = {'R': 'revolute', 'P': 'prismatic'}
    arm = chain(*((names[kind], 0.0, 0.4 * k) for k, kind in enumerate(kinds)))
    q = random_states(arm, 5, seed=9)[0]
    structure = inertial_characteristics(arm)
    for i in range(len(kinds)):
        for j in range(i + 1, len(kinds)):
            coupled = kinds[i] == kinds[j]
            assert structure[f'd_{i + 1}{j + 1}'].nonzero == coupled
            assert (np.abs(rd.mass_matrix(arm, q)[:, i, j]).max() > 1e-9) == coupled
