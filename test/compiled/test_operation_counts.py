# SPDX-License-Identifier: Apache-2.0
"""Counts of operations, against the papers' tables and earlier generators."""

import numpy as np
import operation_counts as counts
import pytest
from counting import folded_count, formulation_count, structural_count

ARMS = counts.arms()


def under(count, limit):
    return count[0] <= limit[0] and count[1] <= limit[1]


@pytest.mark.parametrize('name', ARMS)
def test_any_arm_of_the_structure_takes_no_more_than_the_first_tracer(name):
    count = structural_count(counts.general_inertias(ARMS[name]))
    assert under(count, counts.TO_BE_UNDER[name])


@pytest.mark.parametrize('name', counts.SYMPYBOTICS)
def test_fewer_than_sympybotics(name):
    count = structural_count(counts.general_inertias(ARMS[name]))
    assert under(count, counts.SYMPYBOTICS[name])


@pytest.mark.parametrize('name', ARMS)
def test_own_numbers_take_fewer_than_any_numbers(name):
    own, general = folded_count(ARMS[name]), counts.general_inertias(ARMS[name])
    assert own[0] < structural_count(general)[0]
    assert own[1] < structural_count(general)[1]


@pytest.mark.parametrize('name', counts.TABLE_1)
def test_general_inertias_take_fewer_than_gautier_and_khalil_print(name):
    count = structural_count(counts.general_inertias(ARMS[name]))
    assert count[0] < counts.TABLE_1[name][0][0]
    assert count[1] < counts.TABLE_1[name][0][1]


@pytest.mark.parametrize('name', counts.SIMPLE_MOMENTS)
@pytest.mark.parametrize('terminal_forces', [False, True])
@pytest.mark.parametrize('rotor', [0.0, 0.3])
def test_simplified_inertias_take_fewer_than_gautier_and_khalil_print(
    name, rotor, terminal_forces
):
    arm = counts.simplified_inertias(ARMS[name], counts.SIMPLE_MOMENTS[name])
    arm = arm.with_rotor_inertia(rotor * np.arange(1, arm.n + 1))
    count = structural_count(arm, terminal_forces=terminal_forces)
    assert count[0] < counts.TABLE_1[name][1][0]
    assert count[1] < counts.TABLE_1[name][1][1]


def test_operations_grow_linearly_up_to_thirty_joints():
    joints = np.array([4, 5, 10, 20, 30])
    both = np.array([structural_count(counts.general_arm(n)) for n in joints])
    step = both[1] - both[0]
    np.testing.assert_array_equal(both, both[0] + np.outer(joints - 4, step))
    assert (step <= [92, 81]).all()


@pytest.mark.parametrize(('method', 'degree'), counts.DEGREES.items())
def test_formulations_grow_as_polynomials(method, degree):
    first = 3
    found = [
        formulation_count(counts.general_arm(n), method) for n in range(first, first + degree + 2)
    ]
    for k in range(2):
        text = counts.polynomial([count[k] for count in found], first, degree)
        assert text != 'no polynomial'


def test_document_is_up_to_date():
    written = counts.ROOT.joinpath('docs', 'operation_counts.md').read_text(encoding='utf-8')
    assert written == counts.document()


def test_polynomial_through_counts():
    cubes = [2 * n**3 - n + 5 for n in range(3, 9)]
    assert counts.polynomial(cubes, 3, 3) == '2 n³ − 1 n + 5'
    assert counts.polynomial(cubes, 3, 2) == 'no polynomial'
