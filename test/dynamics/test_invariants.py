# SPDX-License-Identifier: Apache-2.0
"""What holds for every arm, whatever its numbers: symmetry, energy, payloads as bodies."""

import numpy as np
import pytest
from compiled_arms import as_tuple
from known_arms import known_arm, urdf_of
from loads import carrying
from oracles import PinocchioArm, random_states, relative_difference
from robots import random_chain
from scipy.integrate import solve_ivp

import robodyn_ros as rd
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dynamics import METHODS
from robodyn_ros.spatial import pseudo_inertia


@pytest.mark.parametrize('name', ['panda', 'ur5', 'tiago'])
def test_mass_matrix_is_symmetric_and_positive_definite(name):
    arm = known_arm(name)
    m = rd.mass_matrix(arm, random_states(arm, 100, seed=4)[0])
    assert np.array_equal(m, np.swapaxes(m, 1, 2))
    assert np.linalg.eigvalsh(m).min() > 0


# Functions of the model and its position, velocity, acceleration or torque, as many as they take.
FUNCTIONS = (
    (
        rd.gravity_torque,
        rd.mass_matrix,
        rd.christoffel_symbols,
        rd.forward_kinematics,
        rd.jacobian,
    ),
    (rd.bias_torque, rd.coriolis_matrix),
    (
        rd.inverse_dynamics,
        rd.forward_dynamics,
        rd.regressor,
        rd.inverse_dynamics_derivatives,
        rd.forward_dynamics_derivatives,
        rd.linearization,
    ),
)


def test_one_state_gives_what_a_batch_gives():
    arm = known_arm('panda')
    states = random_states(arm, 3, seed=8)
    for count, functions in enumerate(FUNCTIONS, start=1):
        for function in functions:
            batch = as_tuple(function(arm, *states[:count]))
            single = as_tuple(function(arm, *(x[1] for x in states[:count])))
            for many, one in zip(batch, single, strict=True):
                assert one.shape == many.shape[1:], function
                assert relative_difference(one, many[1]) < 1e-11, function


def potential_energy(arm, q):
    """Return minus the sum of m g . c, from the frames' poses alone."""
    frames = frame_transforms(arm.dh, np.asarray(q))
    first_moments = pseudo_inertia(arm.inertial_parameters)[:, :, 3]
    return -sum(arm.gravity @ (frame @ h)[:3] for frame, h in zip(frames, first_moments))


@pytest.mark.parametrize('seed', range(3))
def test_energy_is_conserved_along_a_free_motion(seed):
    arm = rd.RobotModel.from_urdf(random_chain(np.random.default_rng(seed), 3), tip_link='tip')
    free = np.zeros(3)

    def derivative(_, x):
        return np.concatenate([x[3:], rd.forward_dynamics(arm, x[:3], x[3:], free)])

    def energy(x):
        return x[3:] @ rd.mass_matrix(arm, x[:3]) @ x[3:] / 2 + potential_energy(arm, x[:3])

    start = np.array([0.1, -0.2, 0.3, 0.5, 0.1, -0.4])
    motion = solve_ivp(derivative, (0, 0.5), start, method='DOP853', rtol=1e-10, atol=1e-10)
    assert motion.success
    swing = max(
        abs(potential_energy(arm, x[:3]) - potential_energy(arm, start[:3])) for x in motion.y.T
    )
    assert swing > 1e-2  # the arm did move
    for x in motion.y.T:
        assert abs(energy(x) - energy(start)) < 1e-7 * max(1.0, swing)


@pytest.mark.parametrize('name', ['jpl_rrp', 'panda'])
def test_payloads_on_any_links_add_up_as_bodies_of_the_urdf_do(name):
    bare = arm = known_arm(name, gravity=(2.0, 5.0, -8.0))
    text = urdf_of(name).read_text(encoding='utf-8')
    center, inertia = (0.1, -0.2, 0.05), np.diag([0.02, 0.03, 0.025])
    states = random_states(arm, 3, seed=5)
    for link in bare.link_frames:
        arm = arm.with_payload(rd.Payload(3.0, center, inertia, link))
        text = carrying(text, link, 3.0, center, inertia)
        oracle = PinocchioArm.of(text, bare)
        expected = np.array([oracle.torque(*state) for state in zip(*states)])
        for method in METHODS:
            torque = rd.inverse_dynamics(arm, *states, method=method)
            assert relative_difference(torque, expected) < 1e-9, (link, method)


def test_payload_of_no_mass_changes_nothing():
    arm = known_arm('panda')
    loaded = arm.with_payload(rd.Payload(mass=0.0, center_of_mass=(0.1, 0, 0)))
    np.testing.assert_array_equal(loaded.inertial_parameters, arm.inertial_parameters)
