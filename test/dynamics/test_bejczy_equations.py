# SPDX-License-Identifier: Apache-2.0
"""
Bejczy 1974, (29)-(68), (C.1)-(C.7) and Appendix A against the arm, at random positions.

With the numbers of Appendix B, and with numbers of which no two are alike: k611 = k622 hides what
is wrong with (66). Every misprint is shown to be one: the print to the letter is off.
"""

from dataclasses import replace

import bejczy
import bejczy_matrices
import numpy as np
import pytest
from oracles import random_states
from paper_arms import JPL

import robodyn_ros as rd
from robodyn_ros.dh.frames import frame_transforms, joint_operators, relative_transforms
from robodyn_ros.spatial import parameters_of_pseudo_inertia

NUMBERS = [
    pytest.param(bejczy.APPENDIX_B, id='Appendix B'),
    *(pytest.param(bejczy.any_numbers(seed), id=f'any numbers {seed}') for seed in range(3)),
]
OFFSET = replace(bejczy.any_numbers(7), x6=0.31, y6=-0.17)


def to_paper_frames(arm):
    """Return the paper's link frames in those of the arm's own table (6, 4, 4)."""
    own = frame_transforms(arm.dh, np.zeros(6))
    return np.linalg.inv(own) @ np.array(JPL.frames(np.zeros(6)))


def arm_of(numbers):
    arm = JPL.model()
    t = to_paper_frames(arm)
    moved = t @ numbers.pseudo_inertias() @ np.swapaxes(t, -1, -2)
    return arm.with_inertial_parameters(parameters_of_pseudo_inertia(moved))


@pytest.fixture(scope='module')
def q():
    return random_states(JPL.model(), 200, seed=12)[0]


def diagonal(numbers, q):
    return np.diagonal(rd.mass_matrix(arm_of(numbers), q), axis1=1, axis2=2)


def scale(values):
    return np.abs(values).max()


def test_arm_of_appendix_b_is_the_urdf():
    np.testing.assert_allclose(
        arm_of(bejczy.APPENDIX_B).inertial_parameters,
        JPL.model().inertial_parameters,
        atol=1e-9,
    )


@pytest.mark.parametrize('numbers', NUMBERS)
def test_58_to_68_total_inertias(numbers, q):
    found = diagonal(numbers, q)
    equations = (bejczy.d11, bejczy.d22, bejczy.d33, bejczy.d44, bejczy.d55, bejczy.d66)
    for joint, equation in enumerate(equations):
        np.testing.assert_allclose(equation(numbers, q), found[:, joint], atol=1e-11)


@pytest.mark.parametrize('numbers', NUMBERS)
def test_46_to_56_gravity_terms_are_minus_the_holding_torque(numbers, q):
    g = rd.gravity_torque(arm_of(numbers), q)
    np.testing.assert_allclose(bejczy.gravity_terms(numbers, q), -g, atol=1e-10)


@pytest.mark.parametrize('numbers', NUMBERS)
def test_29_to_44_restricted_model(numbers, q):
    # The starred values neglect z4, which the print calls a straight extension of the boom.
    straight = replace(numbers, z=np.where(np.arange(6) == 3, 0.0, numbers.z))
    q = np.where(np.arange(6) < 3, q, 0.0)
    inertia, gravity = bejczy.restricted(straight, q)
    arm = arm_of(straight)
    np.testing.assert_allclose(inertia, rd.mass_matrix(arm, q)[:, :3, :3], atol=1e-11)
    np.testing.assert_allclose(gravity, -rd.gravity_torque(arm, q)[:, :3], atol=1e-10)


def test_what_the_restricted_model_of_the_jpl_arm_neglects(q):
    q = np.where(np.arange(6) < 3, q, 0.0)
    inertia, gravity = bejczy.restricted(bejczy.APPENDIX_B, q)
    arm = JPL.model()
    exact, held = rd.mass_matrix(arm, q)[:, :3, :3], -rd.gravity_torque(arm, q)[:, :3]
    # z4 = -0.54 cm of 1.08 kg: d4 of (127), 0.056 N m, and 2 d4 r3 s2 c2 of D11.
    assert scale(gravity - held) == pytest.approx(0.056, rel=0.03)
    assert scale(inertia - exact) < 2e-3 * scale(exact)
    assert scale(inertia - exact) > 0


def test_c_1_to_c_7_hand_off_its_axis(q):
    found = diagonal(OFFSET, q)
    np.testing.assert_allclose(bejczy.d11(OFFSET, q), found[:, 0], atol=1e-11)
    np.testing.assert_allclose(bejczy.d22(OFFSET, q), found[:, 1], atol=1e-11)
    np.testing.assert_allclose(bejczy.d44(OFFSET, q), found[:, 3], atol=1e-11)
    g = rd.gravity_torque(arm_of(OFFSET), q)
    np.testing.assert_allclose(bejczy.gravity_terms(OFFSET, q), -g, atol=1e-10)
    # Joints 3, 5 and 6 do not feel it.
    centred = replace(OFFSET, x6=0.0, y6=0.0)
    assert scale((found - diagonal(centred, q))[:, [2, 4, 5]]) < 1e-11


@pytest.mark.parametrize(
    'equation, numbers, joint',
    [
        pytest.param(bejczy.d11, bejczy.any_numbers(3), 1, id='(58)'),
        pytest.param(bejczy.d55, bejczy.any_numbers(3), 5, id='(66)'),
        pytest.param(bejczy.d22, OFFSET, 2, id='(C.6)'),
    ],
)
def test_misprinted_inertias_are_not_the_arms(equation, numbers, joint, q):
    found = diagonal(numbers, q)[:, joint - 1]
    assert scale(equation(numbers, q, printed=True) - found) > 1e-2 * scale(found)


def test_misprint_of_66_does_not_show_with_the_jpl_hand(q):
    # k611 = k622, the reason that the paper gives for D55 being constant, (86).
    printed = bejczy.d55(bejczy.APPENDIX_B, q, printed=True)
    np.testing.assert_allclose(printed, diagonal(bejczy.APPENDIX_B, q)[:, 4], atol=1e-12)


def test_misprint_of_c_7_is_in_its_own_terms(q):
    # (58) put right, (C.7) as printed.
    centred = replace(OFFSET, x6=0.0, y6=0.0)
    added = bejczy.d11(OFFSET, q, printed=True) - bejczy.d11(centred, q, printed=True)
    found = diagonal(OFFSET, q)[:, 0] - diagonal(centred, q)[:, 0]
    assert scale(added - found) > 0.1 * scale(found)


def test_load_an_inch_off_turns_the_hand_where_theta_5_is_90_degrees():
    # Text under (100): 0.58 N m at joint 6 with x6 = 1 in; its theta4 = 90 has to be theta5.
    numbers = replace(bejczy.APPENDIX_B.loaded(), x6=0.0254)
    right = np.pi / 2
    arm = arm_of(numbers)
    assert abs(rd.gravity_torque(arm, (0, 0, 1, 0, right, right))[5]) == pytest.approx(
        0.58, rel=1e-2
    )
    assert rd.gravity_torque(arm, (0, 0, 1, right, 0, right))[5] == pytest.approx(0, abs=1e-12)


def test_appendix_a(q):
    # U_ji = 0A_i Q_i iA_j of Lagrange-Euler, on to the paper's frame j.
    arm = JPL.model()
    steps, to_paper = joint_operators(arm.dh), to_paper_frames(arm)
    frames, relative = frame_transforms(arm.dh, q), relative_transforms(arm.dh, q)
    for j, i in bejczy_matrices.MATRICES:
        u = frames[:, i - 1] @ steps[i - 1] @ relative[:, i - 1, j - 1] @ to_paper[j - 1]
        printed = bejczy_matrices.partial_derivative(j, i, q)
        np.testing.assert_allclose(printed, u, atol=1e-12, err_msg=f'U_{j}{i}')


def test_appendix_a_misprints(q):
    for j, i, row, column in bejczy_matrices.MISPRINTS:
        right = bejczy_matrices.partial_derivative(j, i, q)
        off = np.abs(bejczy_matrices.partial_derivative(j, i, q, printed=True) - right).max(axis=0)
        assert off[row - 1, column - 1] > 0.1
        off[row - 1, column - 1] = 0
        assert not off.any()


def test_appendix_b_first_pseudo_inertia_lacks_a_sign():
    # J_1(1, 1) is half of - k111² + k122² + k133²; printed with + it is no J of any inertia.
    j1 = bejczy.APPENDIX_B.pseudo_inertias()[0]
    k = bejczy.APPENDIX_B.k[0]
    tensor = np.trace(j1[:3, :3]) * np.eye(3) - j1[:3, :3]
    np.testing.assert_allclose(np.diag(tensor), k, atol=1e-12)
    printed = j1.copy()
    printed[0, 0] = k.sum() / 2
    tensor = np.trace(printed[:3, :3]) * np.eye(3) - printed[:3, :3]
    assert tensor[1, 1] > 1.5 * k[1]
