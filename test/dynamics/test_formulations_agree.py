# SPDX-License-Identifier: Apache-2.0
"""Five roads to one torque: every formulation equals Pinocchio, and so every other."""

import ast
from pathlib import Path

import numpy as np
import pytest
from known_arms import PUBLIC_ARMS, known_pair
from oracles import PinocchioArm, random_states, relative_difference
from paper_arms import PAPER_ARMS
from probing import coefficients_by
from robots import random_chain

import robodyn_ros as rd
from robodyn_ros import dynamics
from robodyn_ros.compiled.symbolic.expression import Graph, evaluated
from robodyn_ros.dynamics import METHODS, generalized_dalembert, lagrange_euler

TOLERANCE = 1e-9


@pytest.fixture(scope='module', params=[*PAPER_ARMS, *PUBLIC_ARMS])
def pair(request):
    """An arm and the same in Pinocchio, under gravity in a direction of no symmetry."""
    return known_pair(request.param, gravity=(3.0, -4.0, -8.5))


def test_the_tables_are_complete():
    assert list(METHODS) == [
        'newton_euler',
        'kane',
        'lagrange_euler',
        'generalized_dalembert',
        'lagrangian_coefficients',
    ]


def test_formulations_do_not_import_one_another():
    folder = Path(dynamics.__file__).parent
    for name in METHODS:
        tree = ast.parse((folder / f'{name}.py').read_text(encoding='utf-8'))
        imported = {
            f'{node.module}.{alias.name}'
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert not any(other in path for other in METHODS for path in imported), (name, imported)


def test_mass_matrix_gravity_torque_and_acceleration_with_rotors(pair):
    arm, oracle = pair
    rotors = np.linspace(0.1, 0.6, arm.n)
    geared = arm.with_rotor_inertia(rotors)
    q, qd, tau = random_states(arm, 20, seed=10)
    masses, loads = rd.mass_matrix(geared, q), rd.gravity_torque(geared, q)
    accelerations = rd.forward_dynamics(geared, q, qd, tau)
    still = np.zeros(arm.n)
    for i in range(len(q)):
        mass = oracle.mass_matrix(q[i]) + np.diag(rotors)
        assert relative_difference(masses[i], mass) < TOLERANCE
        assert relative_difference(loads[i], oracle.torque(q[i], still, still)) < TOLERANCE
        free = np.linalg.solve(mass, tau[i] - oracle.torque(q[i], qd[i], still))
        assert relative_difference(accelerations[i], free) < TOLERANCE
    one = rd.forward_dynamics(geared, q[0], qd[0], tau[0])
    assert relative_difference(one, accelerations[0]) < TOLERANCE


@pytest.mark.parametrize('method', METHODS)
def test_torques_with_tip_wrench_and_rotors(pair, method):
    arm, oracle = pair
    rotors = np.linspace(0.1, 0.6, arm.n)
    q, qd, qdd = random_states(arm, 20, seed=1)
    wrench = np.random.default_rng(2).normal(size=(20, 6)) * 10
    torques = rd.inverse_dynamics(
        arm.with_rotor_inertia(rotors), q, qd, qdd, method=method, tip_wrench=wrench
    )
    for value, w, *state in zip(torques, wrench, q, qd, qdd):
        expected = oracle.torque(*state) + oracle.tip_jacobian(state[0]).T @ w + rotors * state[2]
        assert relative_difference(value, expected) < TOLERANCE


@pytest.mark.parametrize('method', METHODS)
def test_one_configuration_gives_what_a_batch_gives(pair, method):
    arm, _ = pair
    states = random_states(arm, 3, seed=3)
    wrench = np.arange(6.0)
    batch = rd.inverse_dynamics(arm, *states, method=method, tip_wrench=wrench)
    for i in range(3):
        one = rd.inverse_dynamics(arm, *(x[i] for x in states), method=method, tip_wrench=wrench)
        np.testing.assert_allclose(one, batch[i], rtol=1e-12, atol=1e-12 * np.abs(batch).max())


@pytest.mark.parametrize('method', METHODS)
def test_one_joint_and_no_configuration_at_all(method):
    nothing = np.zeros((0, 1))
    for prismatic_fraction in (0, 1):
        text = random_chain(np.random.default_rng(1), 1, prismatic_fraction)
        arm = rd.RobotModel.from_urdf(text, tip_link='tip')
        oracle = PinocchioArm.of(text, arm)
        for state in zip(*random_states(arm, 3, seed=9)):
            torque = rd.inverse_dynamics(arm, *state, method=method)
            assert relative_difference(torque, oracle.torque(*state)) < TOLERANCE
        assert rd.inverse_dynamics(arm, *[nothing] * 3, method=method).shape == (0, 1)


@pytest.mark.repeats(check=17)
@pytest.mark.parametrize('seed', range(200))
def test_random_chains(seed):
    generator = np.random.default_rng(seed)
    text = random_chain(
        generator, n=2 + seed % 7, prismatic_fraction=generator.choice([0, 0.3, 1])
    )
    arm = rd.RobotModel.from_urdf(text, tip_link='tip', gravity=generator.normal(size=3) * 6)
    oracle = PinocchioArm.of(text, arm)
    states = random_states(arm, 3, seed)
    wrench = generator.normal(size=(3, 6)) * 10
    expected = np.array(
        [
            oracle.torque(*state) + oracle.tip_jacobian(state[0]).T @ w
            for w, *state in zip(wrench, *states)
        ]
    )
    for method in METHODS:
        torques = rd.inverse_dynamics(arm, *states, method=method, tip_wrench=wrench)
        assert relative_difference(torques, expected) < TOLERANCE, method


@pytest.mark.longer
def test_random_chains_hold_rows_with_beta():
    # Else the formulations would not have been asked about it above.
    with_beta = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        text = random_chain(generator, 2 + seed % 7, generator.choice([0, 0.3, 1]))
        with_beta += rd.RobotModel.from_urdf(text, tip_link='tip').dh.beta.any()
    assert with_beta > 20


def test_lagrange_euler_with_its_leading_transforms(pair):
    arm, oracle = pair
    states = random_states(arm, 5, seed=4)
    torques = lagrange_euler.joint_torques(arm, *states, leading_transforms=True)
    for value, *state in zip(torques, *states):
        assert relative_difference(value, oracle.torque(*state)) < TOLERANCE


@pytest.mark.parametrize(
    'road',
    ['lagrange_euler', 'lagrange_euler, complete', 'lagrangian_coefficients', 'newton_euler'],
)
def test_coefficients(pair, road):
    arm, oracle = pair
    q, qd, _ = random_states(arm, 5, seed=5)
    inertia, velocity, gravity = coefficients_by(road, arm, q)
    still = np.zeros(arm.n)
    for i, row in enumerate(q):
        assert relative_difference(inertia[i], oracle.mass_matrix(row)) < TOLERANCE
        assert relative_difference(gravity[i], oracle.torque(row, still, still)) < TOLERANCE
        h = oracle.torque(row, qd[i], still) - oracle.torque(row, still, still)
        assert relative_difference(velocity[i] @ qd[i] @ qd[i], h) < TOLERANCE
        np.testing.assert_allclose(velocity[i], np.swapaxes(velocity[i], 1, 2), atol=1e-12)


def test_generalized_dalembert_splits_inertia_and_coriolis_torques(pair):
    arm, oracle = pair
    q, qd, _ = random_states(arm, 5, seed=6)
    translational, rotational = generalized_dalembert.inertia_matrices(arm, q)
    h_translational, h_rotational = generalized_dalembert.coriolis_torques(arm, q, qd)
    # Without central inertias nothing turns against the links; without masses nothing else.
    points = arm.inertial_parameters.copy()
    for row in points:
        mass = max(row[9], 1e-300)
        x, y, z = row[6:9] / mass
        row[:6] = row[9] * np.array(
            [y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y]
        )
    bare = arm.with_gravity((0, 0, 0))
    of_points = bare.with_inertial_parameters(points)
    still = np.zeros_like(q)
    np.testing.assert_allclose(translational, rd.mass_matrix(of_points, q), atol=1e-9)
    np.testing.assert_allclose(
        h_translational, rd.inverse_dynamics(of_points, q, qd, still), atol=1e-9
    )
    for i, row in enumerate(q):
        expected = oracle.mass_matrix(row)
        assert relative_difference(translational[i] + rotational[i], expected) < TOLERANCE
        h = oracle.torque(row, qd[i], still[i]) - oracle.torque(row, still[i], still[i])
        assert relative_difference(h_translational[i] + h_rotational[i], h) < TOLERANCE


@pytest.mark.parametrize('method', ['kane', 'generalized_dalembert'])
def test_first_moments_without_mass_have_no_mass_centre(method):
    arm = PAPER_ARMS['spherical'].model()
    parameters = arm.inertial_parameters.copy()
    parameters[2, 9] = 0.0
    regrouped = arm.with_inertial_parameters(parameters)
    state = [np.ones(3)] * 3
    with pytest.raises(rd.errors.InvalidArgument, match="'joint3'"):
        rd.inverse_dynamics(regrouped, *state, method=method)
    for other in ('lagrange_euler', 'lagrangian_coefficients'):
        np.testing.assert_allclose(
            rd.inverse_dynamics(regrouped, *state, method=other),
            rd.inverse_dynamics(regrouped, *state),
            atol=1e-12,
        )


@pytest.mark.parametrize('method', METHODS)
def test_links_without_mass_are_carried_along(method):
    arm = PAPER_ARMS['stanford'].model()
    parameters = arm.inertial_parameters.copy()
    parameters[[0, 3]] = 0.0
    light = arm.with_inertial_parameters(parameters)
    states = random_states(arm, 3, seed=7)
    np.testing.assert_allclose(
        rd.inverse_dynamics(light, *states, method=method),
        rd.inverse_dynamics(light, *states),
        atol=1e-10,
    )


@pytest.mark.parametrize('method', METHODS)
def test_formulations_compute_with_other_numbers_than_floats(method):
    # What counts operations or writes code computes with expressions.
    text = random_chain(np.random.default_rng(5), 4, prismatic_fraction=0.4)
    arm = rd.RobotModel.from_urdf(text, tip_link='tip')
    states = dict(zip(('q', 'qd', 'qdd'), random_states(arm, 3, seed=8)))
    graph = Graph()
    symbols = [np.array(graph.input(name, arm.n)) for name in states]
    torque = METHODS[method](arm, *symbols)
    np.testing.assert_allclose(
        evaluated(torque, states), rd.inverse_dynamics(arm, **states), rtol=0, atol=1e-11
    )
