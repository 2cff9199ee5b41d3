# SPDX-License-Identifier: Apache-2.0
"""The arms in urdf/ are the papers' arms: poses, DH tables and inertias as printed."""

import numpy as np
import pytest
from oracles import random_states
from paper_arms import PAPER_ARMS, TWO_LINK, URDF

import robodyn_ros as rd
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.spatial import (
    inertia_tensor,
    inertial_parameters,
    moved_parameters,
    parameters_of_pseudo_inertia,
    pseudo_inertia,
)

WITH_PRINTED_INERTIAS = ('jpl_rrp', 'stanford', 'six_axis_industrial')


@pytest.fixture(params=PAPER_ARMS)
def pair(request):
    paper = PAPER_ARMS[request.param]
    return paper, paper.model()


def test_every_file_has_its_paper():
    assert sorted(path.stem for path in URDF.glob('*.urdf')) == sorted(PAPER_ARMS)


def test_tip_is_where_the_papers_last_frame_is(pair):
    paper, arm = pair
    assert ''.join('P' if slides else 'R' for slides in arm.dh.prismatic) == paper.kinds
    q, _, _ = random_states(arm, 20, seed=1)
    for pose, row in zip(rd.forward_kinematics(arm, q), q):
        np.testing.assert_allclose(pose, paper.frames(row)[-1], rtol=0, atol=1e-12)


def test_tables_have_the_papers_twists_and_lengths(pair):
    # But for the direction of a common normal, which turns both signs, and the first row, which
    # goes into the base transform.
    paper, arm = pair
    alpha, a, _, _ = paper.modified_rows()
    theirs = np.stack([alpha, a])[:, 1:]
    assert not arm.dh.beta.any()
    standard = arm.dh.standard()
    for ours in (
        np.stack([arm.dh.alpha, arm.dh.a])[:, 1:],
        np.stack([standard.alpha, standard.a])[:, :-1],
    ):
        difference = np.minimum(*(np.abs(ours - sign * theirs).max(axis=0) for sign in (1, -1)))
        assert difference.max() < 1e-12


def test_table_has_the_papers_offsets(pair):
    # Where axes are parallel an offset may stand in any of their rows: their sum counts. Those of
    # the first and of the last axis go into the base and the tip transform. An angle may differ
    # by half a turn, as the common normals do.
    paper, arm = pair
    alpha, _, theta, d = paper.modified_rows()
    first = 0
    for last in range(arm.n):
        if last + 1 < arm.n and alpha[last + 1] == 0:
            continue
        row = slice(first, last + 1)
        if first > 0 and last + 1 < arm.n:
            assert arm.dh.d[row].sum() == pytest.approx(d[row].sum(), abs=1e-12)
            half_turns = (arm.dh.theta[row].sum() - theta[row].sum()) / np.pi
            assert half_turns == pytest.approx(round(half_turns), abs=1e-12)
        first = last + 1


@pytest.mark.parametrize('name', WITH_PRINTED_INERTIAS)
def test_links_have_the_printed_inertias(name):
    paper = PAPER_ARMS[name]
    arm = paper.model()
    q = random_states(arm, 1, seed=2)[0][0]
    ours = frame_transforms(arm.dh, q)
    for frame, own, papers_frame, printed in zip(
        ours, pseudo_inertia(arm.inertial_parameters), paper.frames(q), paper.pseudo_inertias()
    ):
        np.testing.assert_allclose(
            frame @ own @ frame.T,
            papers_frame @ printed @ papers_frame.T,
            rtol=0,
            atol=1e-10 * printed.max(),
        )


def test_pseudo_inertia_is_the_integral_of_3_2_17_and_not_3_2_18_with_its_plus():
    # Point masses: the integral of r rT dm, r = (x, y, z, 1), is a sum. The tensor defined under
    # (3.2-17) has - sum of x y dm off its diagonal, so that (3.2-18), (3.2-19) and Bejczy's (10)
    # need a minus there, where they print I_xy and k_12 squared.
    generator = np.random.default_rng(4)
    mass, points = generator.uniform(0.2, 2, 5), generator.normal(size=(5, 3))
    homogeneous = np.column_stack([points, np.ones(5)])
    integral = np.einsum('k,ki,kj->ij', mass, homogeneous, homogeneous)
    squares = (points**2).sum(axis=1)[:, None, None] * np.eye(3)
    tensor = np.einsum('k,kij->ij', mass, squares - points[:, :, None] * points[:, None, :])
    center = mass @ points / mass.sum()
    shift = center @ center * np.eye(3) - np.outer(center, center)
    parameters = inertial_parameters(mass.sum(), center, tensor - mass.sum() * shift)
    np.testing.assert_allclose(inertia_tensor(parameters), tensor, atol=1e-12)
    np.testing.assert_allclose(pseudo_inertia(parameters), integral, atol=1e-12)
    np.testing.assert_allclose(parameters_of_pseudo_inertia(integral), parameters, atol=1e-12)
    printed = np.trace(tensor) / 2 * np.eye(3) - 2 * np.diag(np.diag(tensor)) + tensor
    np.testing.assert_allclose(np.diag(printed), np.diag(integral)[:3], atol=1e-12)
    off_diagonal = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(printed[off_diagonal], -integral[:3, :3][off_diagonal], atol=1e-12)
    # From one frame to another it goes with T on both sides, as in of Tourassis and Neuman.
    pose = TWO_LINK.frames(np.array([0.3, 0.8]))[-1]
    moved = homogeneous @ pose.T
    np.testing.assert_allclose(
        pseudo_inertia(moved_parameters(parameters, pose)),
        np.einsum('k,ki,kj->ij', mass, moved, moved),
        atol=1e-12,
    )


def test_limits_hold_the_arm_against_gravity(pair):
    _, arm = pair
    lower, upper = arm.position_limits.T
    q = np.random.default_rng(3).uniform(lower, upper, (200, arm.n))
    assert (np.abs(rd.gravity_torque(arm, q)) < arm.effort_limits).all()
    assert (arm.velocity_limits > 0).all()
    assert np.isfinite(arm.effort_limits).all()
