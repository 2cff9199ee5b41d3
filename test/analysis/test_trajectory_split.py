# SPDX-License-Identifier: Apache-2.0
"""Translational and rotational parts along a trajectory, Fu, Gonzalez and Lee 1987, 3.4.1."""

import numpy as np
import pytest
from oracles import PinocchioArm
from paper_arms import CARTESIAN, PUMA, URDF
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.analysis import TrajectorySplit, split_along
from robodyn_ros.errors import InvalidNumber, WrongShape

SET_POINTS = 31


@pytest.fixture(scope='module')
def motion():
    """Return 31 setpoints, as many as in Figure 3.10, of a smooth motion of the PUMA."""
    t = np.linspace(0, 1, SET_POINTS)[:, None]
    amplitude = np.array([1.0, -0.8, 0.9, 0.5, -0.7, 1.2])
    return amplitude * (10 * t**3 - 15 * t**4 + 6 * t**5), amplitude * 30 * t**2 * (1 - t) ** 2


@pytest.fixture(scope='module')
def split(motion):
    return split_along(PUMA.model(), *motion)


def test_parts_add_up_to_pinocchios_mass_matrix_and_coriolis_torque(split, motion):
    arm = PUMA.model()
    oracle = PinocchioArm.of(URDF / PUMA.file, arm)
    for k, (q, qd) in enumerate(zip(*motion)):
        m = oracle.mass_matrix(q)
        h = oracle.coriolis_matrix(q, qd) @ qd
        for i in range(6):
            assert split[f'h_{i + 1}'].values[k] == pytest.approx(h[i], abs=1e-10)
            for j in range(i, 6):
                assert split[f'D_{i + 1}{j + 1}'].values[k] == pytest.approx(m[i, j], abs=1e-10)


def test_two_link_arm_parts_in_closed_form():
    # Slender rods: of m l2/3 about the end three quarters are translation of the centre of mass.
    m1, m2, length = 2.0, 3.0, 0.5
    arm = rd.RobotModel.from_urdf(two_link_urdf(m1, m2, length))
    q = np.array([[0.3, 0.9], [0.1, -1.2]])
    split = split_along(arm, q, np.ones_like(q))
    c2 = np.cos(q[:, 1])
    square = length**2
    translational = m1 * square / 4 + m2 * square * (5 / 4 + c2)
    assert split['D_11'].translational == pytest.approx(tuple(translational))
    assert split['D_11'].rotational == pytest.approx(((m1 + m2) * square / 12,) * 2)
    assert split['D_22'].translational == pytest.approx((m2 * square / 4,) * 2)
    assert split['D_22'].rotational == pytest.approx((m2 * square / 12,) * 2)
    assert split['D_22'].dominant == 'both'
    assert split['D_22'].lesser_fraction == pytest.approx(1 / 3)
    # All rotations are about one axis, so that nothing turns gyroscopically.
    assert split['h_1'].dominant == split['h_2'].dominant == 'translational'
    assert split_along(arm, q, np.ones_like(q), fraction=0.4)['D_22'].dominant == 'translational'


def test_elements_where_the_book_sees_translation_rule(split):
    # 3.4.1: translation rules D12, D22, D23, D33 and h1, h2, h3; the book's own PUMA has other
    # inertias and another trajectory, which is why the wrist is not compared.
    for symbol in ('D_22', 'D_23', 'D_33', 'h_1', 'h_2', 'h_3'):
        element = split[symbol]
        translational = np.abs(element.translational).max()
        assert translational > np.abs(element.rotational).max(), symbol


def test_last_joint_only_rotates(split):
    # Link 6 has its centre of mass on axis 6.
    assert split['D_66'].dominant == 'rotational'
    assert split['D_66'].lesser_fraction == 0


def test_arm_of_slides_only_translates():
    arm = CARTESIAN.model()
    q = np.zeros((2, 3))
    split = split_along(arm, q, np.ones_like(q))
    assert split['D_11'].dominant == 'translational' and split['D_11'].unit == 'kg'
    assert split['h_1'].dominant == 'none' and split['h_1'].unit == 'N'


def test_split_survives_json(split):
    assert TrajectorySplit.from_json(split.to_json()) == split
    assert len(split.inertia) == 21 and len(split.coriolis) == 6
    assert len(split['D_11'].translational) == SET_POINTS


def test_single_configuration_is_no_trajectory():
    with pytest.raises(WrongShape, match=r'shape \(N, 6\)'):
        split_along(PUMA.model(), np.zeros(6), np.zeros(6))


def test_fraction_beyond_one_is_refused(motion):
    with pytest.raises(InvalidNumber, match='fraction'):
        split_along(PUMA.model(), *motion, fraction=1.5)
