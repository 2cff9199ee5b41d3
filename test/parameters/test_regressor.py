# SPDX-License-Identifier: Apache-2.0
"""The torque and energy regressors against Pinocchio, the appendix, and finite differences."""

import numpy as np
import pytest
from known_arms import known_pair
from oracles import PinocchioArm, random_states, relative_difference
from parameter_arms import dh_arm, generic_arm, pinocchio_regressor
from robots import random_chain

import robodyn_ros as rd
from robodyn_ros.dh.frames import frame_transforms, joint_transforms
from robodyn_ros.parameters import StandardParameters, energy_regressor
from robodyn_ros.parameters.energy import energy_form, joint_axis, moved_twist, recursion_matrix
from robodyn_ros.spatial import inverse_transform, moved_parameters, pseudo_inertia, transform


@pytest.fixture(scope='module', params=['panda', 'ur5'])
def pair(request):
    return known_pair(request.param, gravity=(1.0, 2.0, -9.0))


def about_dh_frames(arm, pinocchio_columns):
    """Return Pinocchio's columns, about URDF joints, as columns about the DH frames."""
    blocks = []
    for i, link in enumerate(StandardParameters(arm).links[::10]):
        dh_frame_in_joint = inverse_transform(arm.link_frames[link][1])
        move = moved_parameters(np.eye(10), dh_frame_in_joint).T
        blocks.append(pinocchio_columns[..., 10 * i : 10 * i + 10] @ move)
    return np.concatenate(blocks, axis=-1)


def test_regressor_is_pinocchios_reordered(pair):
    arm, oracle = pair
    states = random_states(arm, 50, seed=1)
    expected = about_dh_frames(arm, pinocchio_regressor(oracle, states))
    assert relative_difference(rd.regressor(arm, *states), expected) < 1e-12


@pytest.mark.parametrize('seed', range(40))
def test_regressor_of_random_chains_is_pinocchios_reordered(seed):
    text = random_chain(np.random.default_rng(seed), 1 + seed % 8, prismatic_fraction=0.5)
    arm = rd.RobotModel.from_urdf(text, tip_link='tip')
    states = random_states(arm, 5, seed)
    expected = about_dh_frames(arm, pinocchio_regressor(PinocchioArm.of(text, arm), states))
    assert relative_difference(rd.regressor(arm, *states), expected) < 1e-9


def test_regressor_times_parameters_is_the_torque(pair):
    arm, _ = pair
    states = random_states(arm, 50, seed=2)
    torque = rd.regressor(arm, *states) @ arm.inertial_parameters.ravel()
    assert relative_difference(torque, rd.inverse_dynamics(arm, *states)) < 1e-12


def test_no_states_give_no_rows():
    arm = generic_arm('RPR')
    empty = np.zeros((0, 3))
    assert rd.regressor(arm, empty, empty, empty).shape == (0, 3, 30)


def test_links_do_not_load_the_joints_beyond_them():
    arm = generic_arm('RPRR')
    columns = rd.regressor(arm, *random_states(arm, 5, seed=4)).reshape(5, 4, 4, 10)
    for link in range(4):
        assert not columns[:, link + 1 :, link].any()


def test_rotor_and_friction_columns():
    arm = generic_arm('RPR').with_rotor_inertia([0.1, 0.2, 0.3])
    states = random_states(arm, 20, seed=5)
    parameters = StandardParameters(arm, rotor_inertia=True, friction=True)
    assert ' '.join(parameters.names[28:]) == 'mZ3 m3 Ia1 Ia2 Ia3 Fv1 Fv2 Fv3 Fc1 Fc2 Fc3'
    assert parameters.units[30:36] == ('kg m²', 'kg', 'kg m²', 'N m s/rad', 'N s/m', 'N m s/rad')
    full = rd.regressor(arm, *states, rotor_inertia=True, friction=True)
    expected = rd.inverse_dynamics(arm, *states) + rd.friction_torque(arm, states[1])
    assert relative_difference(full @ parameters.values, expected) < 1e-12


# --- energies --------------------------------------------------------------------------------


@pytest.mark.parametrize('kinds', ['RRRRRR', 'RPRPRR', 'PRPRP'])
def test_energies_are_those_of_the_mass_matrix_and_of_the_mass_centres(kinds):
    arm = generic_arm(kinds, seed=6)
    q, qd, _ = random_states(arm, 20, seed=6)
    kinetic, potential = energy_regressor(arm, q, qd)
    x = arm.inertial_parameters.ravel()
    expected = np.einsum('ki,kij,kj->k', qd, rd.mass_matrix(arm, q), qd) / 2
    assert relative_difference(kinetic @ x, expected) < 1e-12
    moments = pseudo_inertia(arm.inertial_parameters)[:, :, 3]
    points = (frame_transforms(arm.dh, q) @ moments[..., None])[..., :3, 0]
    assert relative_difference(potential @ x, -points.sum(axis=1) @ arm.gravity) < 1e-12


def test_lagranges_equation_of_the_energies_gives_the_torque_regressor():
    arm = generic_arm('RPRR', seed=7)
    q, qd, qdd = (x[0] for x in random_states(arm, 1, seed=7))
    h = 1e-4
    steps = h * np.eye(arm.n)

    def lagrangian(position, rate):
        kinetic, potential = energy_regressor(arm, position, rate)
        return kinetic - potential

    def momentum(t):  # dE / d qd, quadratic in qd: the central difference is exact
        position, rate = q + qd * t + qdd * t * t / 2, qd + qdd * t
        return np.array(
            [
                (lagrangian(position, rate + s) - lagrangian(position, rate - s)) / (2 * h)
                for s in steps
            ]
        )

    force = np.array([(lagrangian(q + s, qd) - lagrangian(q - s, qd)) / (2 * h) for s in steps])
    expected = (momentum(h) - momentum(-h)) / (2 * h) - force
    np.testing.assert_allclose(rd.regressor(arm, q, qd, qdd), expected, atol=1e-5)


def printed_lambda(alpha, d, theta, r):
    """Return lambda as Gautier and Khalil 1988 print it in their appendix, in their letters."""
    ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    cc, ss, cs_a, cs = ca * ca, sa * sa, ca * sa, c * s
    dj1 = [
        [c * c, cs * ca, cs * sa, s * s * cc, s * s * cs_a, s * s * ss],
        [
            -2 * cs,
            (c * c - s * s) * ca,
            (c * c - s * s) * sa,
            2 * cs * cc,
            2 * cs * cs_a,
            2 * cs * ss,
        ],
        [0, -c * sa, c * ca, -2 * s * cs_a, s * (cc - ss), 2 * s * cs_a],
        [s * s, -cs * ca, -cs * sa, c * c * cc, c * c * cs_a, c * c * ss],
        [0, s * sa, -s * ca, -2 * c * cs_a, c * (cc - ss), 2 * c * cs_a],
        [0, 0, 0, ss, -cs_a, cc],
    ]
    ds1 = np.transpose(
        [
            [0, 0, 2 * r],
            [c * sa * r - s * ca * d, -c * ca * d - s * sa * r, sa * d],
            [-c * ca * r - s * sa * d, -c * sa * d + s * ca * r, -ca * d],
            [2 * (c * d + s * cs_a * r), 2 * (c * cs_a * r - s * d), 2 * cc * r],
            [s * r * (ss - cc), c * r * (ss - cc), 2 * cs_a * r],
            [2 * (c * d - s * cs_a * r), 2 * (-c * cs_a * r - s * d), 2 * ss * r],
        ]
    )
    dm1 = [[r * r, sa * d * r, -ca * d * r, cc * r * r + d * d, cs_a * r * r, ss * r * r + d * d]]
    # The transposed transform stands in the first moments' and the mass's columns.
    t = np.array(
        [
            [c, -s, 0, d],
            [s * ca, c * ca, -sa, -r * sa],
            [s * sa, c * sa, ca, r * ca],
            [0, 0, 0, 1],
        ]
    )
    result = np.zeros((10, 10))
    result[:, :6] = np.vstack([dj1, ds1, dm1])
    result[6:, 6:] = t.T
    return result


def test_recursion_matrix_is_the_appendixs():
    generator = np.random.default_rng(8)
    for _ in range(20):
        alpha, theta = generator.uniform(-np.pi, np.pi, 2)
        d, r = generator.uniform(-1, 1, 2)
        arm = dh_arm('R', [np.degrees(alpha)], [d], [r])
        rotation, origin = (x[0] for x in joint_transforms(arm.dh, np.array([theta])))
        step = transform(rotation, origin)
        np.testing.assert_allclose(
            recursion_matrix(step), printed_lambda(alpha, d, theta, r), atol=1e-12
        )


def printed_f(prismatic, rate, alpha, d, theta, r, w, v):
    """Return f as the appendix prints it, with qd_j for its q_j."""
    ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    none = [0, 0, 0]
    dj2 = [none, none, [c, s * ca, s * sa], none, [-s, c * ca, c * sa], [0, -sa, ca]]
    ds2 = [[s, -c * ca, -c * sa], [c, s * ca, s * sa], [0, 0, 0]]
    ds3 = [
        [-c * r, -c * sa * d - s * ca * r, c * ca * d - s * sa * r],
        [s * r, -c * ca * r + s * sa * d, -c * sa * r - s * ca * d],
        [0, 0, 0],
    ]
    ds4 = [[-s, c * ca, c * sa], [-c, -s * ca, -s * sa], [0, 0, 0]]
    dm2, dm3 = [0, -ca * d, -sa * d], [0, -sa, ca]
    revolute = 0.0 if prismatic else 1.0
    sliding = 1.0 - revolute
    on_w = np.vstack(
        [
            revolute * np.array(dj2),
            sliding * np.array(ds2) + revolute * np.array(ds3),
            [sliding * np.array(dm2)],
        ]
    )
    on_v = np.vstack([np.zeros((6, 3)), revolute * np.array(ds4), [sliding * np.array(dm3)]])
    last = np.array([0, 0, 0, 0, 0, revolute, 0, 0, 0, sliding])
    return rate * (on_w @ w + on_v @ v) + rate**2 * last / 2


@pytest.mark.parametrize('kind', 'RP')
def test_f_is_the_appendixs(kind):
    generator = np.random.default_rng(9)
    for _ in range(20):
        alpha, theta = generator.uniform(-np.pi, np.pi, 2)
        d, r, rate = generator.uniform(-1, 1, 3)
        w, v = generator.normal(size=(2, 3))
        arm = dh_arm('R', [np.degrees(alpha)], [d], [r])
        step = transform(*(x[0] for x in joint_transforms(arm.dh, np.array([theta]))))
        axis, swung = joint_axis(kind == 'P'), moved_twist(step, np.concatenate([w, v]))
        f = rate * energy_form(axis, swung) + rate**2 * energy_form(axis, axis) / 2
        expected = printed_f(kind == 'P', rate, alpha, d, theta, r, w, v)
        np.testing.assert_allclose(f, expected, atol=1e-12)
