# SPDX-License-Identifier: Apache-2.0
"""Theorems 1 to 7 of Gautier and Khalil 1988 on chains of all sorts, by numbers alone."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import random_states, relative_difference
from parameter_arms import DOWN, TILTED, dh_arm, generic_arm, rank, structured_arm

import robodyn_ros as rd
from robodyn_ros.parameters import energy_regressor

NAMES = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'mX', 'mY', 'mZ', 'm')
TENSOR = NAMES[:6]
ELIMINATED_BY_20 = {'YY', 'mZ', 'm'}

kinds_and_seed = (st.text('RP', min_size=2, max_size=5), st.integers(0, 2**32 - 1))


def arm_of(kinds, seed):
    return structured_arm(np.random.default_rng(seed), kinds)


def columns_of(arm, seed=0):
    """Return the columns of each link (n, rows, 10), relative to the largest element."""
    columns = rd.regressor(arm, *random_states(arm, 60, seed)).reshape(-1, 10 * arm.n)
    # The triangle of a QR factorisation has all lengths and dependencies of its columns.
    triangle = np.linalg.qr(columns / np.abs(columns).max(), mode='r')
    return np.moveaxis(triangle.reshape(-1, arm.n, 10), 1, 0)


def independent(links):
    """Return the rank of the columns of the given links together."""
    return rank(np.concatenate(list(links), axis=1)) if len(links) else 0


def forms_of(arm, seed=0):
    """Return DE and DU less its mean, stacked over states, (n, rows, 10)."""
    q, qd, _ = random_states(arm, 60, seed)
    kinetic, potential = energy_regressor(arm, q, qd)
    stacked = np.concatenate([kinetic, potential - potential.mean(axis=0)])
    return np.moveaxis(stacked.reshape(-1, arm.n, 10), 1, 0)


def kept_by_general_relations(kinds):
    return sum(4 if kind == 'P' else 7 for kind in kinds)


def check_theorem_1_beyond(arm, kinds, j):
    """Check that (20), (21) find all that regroups beyond link j; return what has no effect."""
    columns = columns_of(arm)
    added = independent(columns) - independent(columns[:j])
    assert added == kept_by_general_relations(kinds[j:])
    size = np.abs(columns[j:]).max(axis=1)
    return {name for link in size for name, length in zip(NAMES, link) if length < 1e-9}


@given(*kinds_and_seed)
def test_theorem_1_where_the_ten_forms_are_independent(kinds, seed):
    arm = arm_of(kinds, seed)
    for j, forms in enumerate(forms_of(arm), start=1):
        if j < arm.n and rank(forms, 1e-6) == 10:
            assert check_theorem_1_beyond(arm, kinds, j) == set()
            break


@given(st.integers(3, 6), st.integers(0, 2**32 - 1))
@example(n=6, seed=52819)  # the origin of frame 4 lies where no inner axis moves it
def test_theorem_1_as_printed_for_arms_without_prismatic_joints_under_gravity(n, seed):
    # Without gravity it fails even there: axes 2 and 3 on one line, for example. Its last
    # sentence, that every parameter further out has an effect, fails under gravity too: a mass
    # has none whose frame's origin stays where it is. (20) eliminates it all the same.
    arm = arm_of('R' * n, seed)
    if not arm.gravity.any():
        arm = arm.with_gravity(TILTED)
    for j, forms in enumerate(forms_of(arm), start=1):
        if j < n and np.abs(forms).max(axis=0).min() > 1e-9:
            assert check_theorem_1_beyond(arm, 'R' * n, j) <= ELIMINATED_BY_20
            break


@pytest.mark.parametrize('gravity', [DOWN, TILTED])
def test_theorem_1_as_printed_fails_for_a_turning_base_with_two_oblique_sliders(gravity):
    # Every DE of link 2 is different from zero, yet link 2 turns about one axis only: the first
    # moment of link 3 along that axis regroups too, which (21) does not find.
    arm = generic_arm('RPP', seed=1, gravity=gravity)
    assert np.abs(forms_of(arm)[1]).max(axis=0).min() > 1e-3
    assert rank(forms_of(arm)[1], 1e-6) < 10
    columns = columns_of(arm)
    added = independent(columns) - independent(columns[:2])
    assert added == kept_by_general_relations('P') - 1
    assert rd.base_parameters(arm).count == independent(columns)


@given(st.text('RP', min_size=3, max_size=5), st.integers(0, 2**32 - 1))
def test_theorem_2_regrouping_two_links_down_goes_through_the_link_between(kinds, seed):
    columns = columns_of(arm_of(kinds, seed))
    for j in range(2, len(kinds)):
        inner = np.concatenate(list(columns[: j - 1]), axis=1)
        basis, size, _ = np.linalg.svd(inner, full_matrices=False)
        basis = basis[:, size > 1e-9]
        outside = columns[j] - basis @ (basis.T @ columns[j])
        _, size, combinations = np.linalg.svd(outside)
        regrouped = columns[j] @ combinations[np.sum(size > 1e-9) :].T
        between = columns[j - 1]
        left, size, _ = np.linalg.svd(between, full_matrices=False)
        left = left[:, size > 1e-9]
        np.testing.assert_allclose(left @ (left.T @ regrouped), regrouped, atol=1e-8)


@given(*kinds_and_seed)
def test_theorems_3_and_4_the_first_link_shows_little(kinds, seed):
    arm = arm_of(kinds, seed)
    first = np.abs(columns_of(arm)[0]).max(axis=0)
    if kinds[0] == 'P':
        hidden = {*TENSOR, 'mX', 'mY', 'mZ'}
    else:
        hidden = {'XX', 'XY', 'XZ', 'YY', 'YZ', 'mZ', 'm'}
        hidden |= {'mX', 'mY'} if along(arm) else set()
    no_effect = rd.base_parameters(arm).no_effect
    for name, size in zip(NAMES, first):
        if name in hidden:
            assert size < 1e-12
            assert f'{name}1' in no_effect


def along(arm):
    """Return whether the first axis is along gravity."""
    axis = arm.dh.constant_rotations[0, :, 2]
    return np.abs(np.cross(axis, arm.gravity)).max() < 1e-12


def regrouped_by_20(x, y, alpha, d, r):
    """Return parameters of links j - 1 and j with YY, mZ, m of link j put into link j - 1."""
    x, y = dict(zip(NAMES, x)), dict(zip(NAMES, y))
    ca, sa = np.cos(alpha), np.sin(alpha)
    yy, mz, m = y['YY'], y['mZ'], y['m']
    x['XX'] += yy + 2 * r * mz + r * r * m
    x['YY'] += ca**2 * yy + 2 * r * ca**2 * mz + (d * d + r * r * ca**2) * m
    x['ZZ'] += sa**2 * yy + 2 * r * sa**2 * mz + (d * d + r * r * sa**2) * m
    x['XY'] += d * sa * mz + d * r * sa * m
    x['XZ'] += -d * ca * mz - d * r * ca * m
    x['YZ'] += ca * sa * yy + 2 * r * ca * sa * mz + r * r * ca * sa * m
    x['mX'] += d * m
    x['mY'] += -sa * mz - r * sa * m
    x['mZ'] += ca * mz + r * ca * m
    x['m'] += m
    y['XX'] -= yy  # the print's first line has XXR_(j-1)
    y['YY'] = y['mZ'] = y['m'] = 0.0
    return list(x.values()), list(y.values())


def regrouped_by_21(x, y, alpha, theta):
    """Return parameters of links j - 1 and j with the tensor of link j put into link j - 1."""
    x, y = dict(zip(NAMES, x)), dict(zip(NAMES, y))
    ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    xx, xy, xz, yy, yz, zz = (y[name] for name in TENSOR)
    x['XX'] += c * c * xx + s * s * yy - 2 * c * s * xy
    x['YY'] += (
        s * s * ca * ca * xx
        + c * c * ca * ca * yy
        + sa * sa * zz
        + 2 * c * s * ca * ca * xy
        - 2 * s * ca * sa * xz
        - 2 * c * ca * sa * yz
    )
    x['ZZ'] += (
        s * s * sa * sa * xx
        + c * c * sa * sa * yy
        + ca * ca * zz
        + 2 * c * s * sa * sa * xy
        + 2 * s * ca * sa * xz
        + 2 * c * ca * sa * yz
    )
    # Against the print: C(alpha) in XY's first factor, plus in front of XZ's and YZ's first terms.
    x['XY'] += (
        c * s * ca * xx - c * s * ca * yy + (c * c - s * s) * ca * xy - c * sa * xz + s * sa * yz
    )
    x['XZ'] += (
        c * s * sa * xx - c * s * sa * yy + (c * c - s * s) * sa * xy + c * ca * xz - s * ca * yz
    )
    x['YZ'] += (
        s * s * ca * sa * xx
        + c * c * ca * sa * yy
        - ca * sa * zz
        + 2 * c * s * ca * sa * xy
        + s * (ca * ca - sa * sa) * xz
        + c * (ca * ca - sa * sa) * yz
    )
    y.update(dict.fromkeys(TENSOR, 0.0))
    return list(x.values()), list(y.values())


def regrouped(arm, j, x, y):
    """Return parameters of links j and j + 1 with what can be regrouped of the latter."""
    dh = arm.dh
    if dh.prismatic[j]:
        return regrouped_by_21(x, y, dh.alpha[j], dh.theta[j])
    return regrouped_by_20(x, y, dh.alpha[j], dh.a[j], dh.d[j])


@pytest.mark.parametrize('kinds', ['RRRRRR', 'RRRRRP'])
def test_theorems_5_and_6_expressions_have_the_coefficients_of_relations_20_and_21(kinds):
    arm = dh_arm(
        kinds, [0, 40, 50, 60, 70, 35], [0, 0.1, 0.2, 0.3, 0.4, 0.3], [0.2] * 6, [0] * 5 + [25]
    )
    found = {e.name.replace('R', ''): e.coefficients for e in rd.base_parameters(arm).expressions}
    for name in NAMES:
        unit = [float(each == name) for each in NAMES]
        inner, outer = (dict(zip(NAMES, row)) for row in regrouped(arm, 5, np.zeros(10), unit))
        inner['XX'] -= inner['YY']  # YY of link 5 regroups in its turn
        for regrouped_into, link, names in (
            (inner, 5, 'XX XY XZ YZ ZZ mX mY'),
            (outer, 6, 'XX XY XZ YZ ZZ mX mY' if kinds[5] == 'R' else 'mX mY mZ m'),
        ):
            for each in names.split():
                coefficient = found[f'{each}{link}'].get(f'{name}6', 0.0)
                assert coefficient == pytest.approx(regrouped_into[each], abs=1e-13), (each, name)


@given(*kinds_and_seed, st.integers(1, 4))
def test_theorems_5_and_6_relations_20_and_21_leave_the_torque_as_it_is(kinds, seed, link):
    arm = generic_arm(kinds, seed % 1000, gravity=(TILTED, DOWN)[seed % 2])
    j = 1 + link % (arm.n - 1)
    x = arm.inertial_parameters.copy()
    x[j - 1], x[j] = regrouped(arm, j, x[j - 1], x[j])
    states = random_states(arm, 10, seed % 1000)
    torque = rd.inverse_dynamics(arm, *states)
    other = rd.inverse_dynamics(arm.with_inertial_parameters(x), *states)
    assert relative_difference(other, torque) < 1e-12


@given(st.text('RP', min_size=1, max_size=7), st.integers(0, 2**32 - 1))
def test_theorem_7_bounds_the_count(kinds, seed):
    # Printed -3 - sigma_1; Theorems 3 and 4 need 1 - sigma_1.
    bound = 7 * kinds.count('R') + 4 * kinds.count('P') - 3 - (kinds[0] == 'R')
    assert rd.base_parameters(arm_of(kinds, seed)).count <= bound


@pytest.mark.parametrize('kinds', ['R', 'P', 'RR', 'RRR', 'RRRRRR', 'RRRRRRR', 'RRPRRR', 'RRRPPR'])
def test_theorem_7_is_sharp_for_arms_whose_first_two_joints_turn(kinds):
    # 38 = 7 n - 4 of six joints, 45 of seven.
    bound = 7 * kinds.count('R') + 4 * kinds.count('P') - 3 - (kinds[0] == 'R')
    arm = generic_arm(kinds, gravity=TILTED)
    assert rd.base_parameters(arm).count == bound == independent(columns_of(arm))
