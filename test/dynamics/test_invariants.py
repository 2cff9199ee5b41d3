# SPDX-License-Identifier: Apache-2.0
"""What holds for every arm, whatever its numbers: symmetry, energy, superposition."""

import numpy as np
import pytest
from oracles import random_states
from robots import public_urdf, random_chain
from scipy.integrate import solve_ivp

import robodyn_ros as rd
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.spatial import pseudo_inertia

ARMS = [
    ('panda.urdf', 'panda_link0', 'panda_link8'),
    ('ur5_robot.urdf', 'base_link', 'tool0'),
    ('tiago.urdf', 'base_footprint', 'arm_tool_link'),
]


@pytest.fixture(scope='module', params=ARMS, ids=lambda row: row[0])
def arm(request):
    file, base, tip = request.param
    return rd.RobotModel.from_urdf(public_urdf(file), base_link=base, tip_link=tip)


def potential_energy(arm, q):
    """Return minus the sum of m g . c, from the frames' poses alone."""
    frames = frame_transforms(arm.dh, np.asarray(q))
    first_moments = pseudo_inertia(arm.inertial_parameters)[:, :, 3]
    return -sum(arm.gravity @ (frame @ h)[:3] for frame, h in zip(frames, first_moments))


def test_mass_matrix_is_symmetric_and_positive_definite(arm):
    q, _, _ = random_states(arm, 100, seed=4)
    m = rd.mass_matrix(arm, q)
    assert np.array_equal(m, np.swapaxes(m, 1, 2))
    assert np.linalg.eigvalsh(m).min() > 0


def test_forward_dynamics_undoes_inverse_dynamics(arm):
    q, qd, qdd = random_states(arm, 50, seed=5)
    tau = rd.inverse_dynamics(arm, q, qd, qdd)
    np.testing.assert_allclose(rd.forward_dynamics(arm, q, qd, tau), qdd, rtol=1e-7, atol=1e-7)


def test_gravity_torque_is_the_gradient_of_the_potential(arm):
    q, _, _ = random_states(arm, 1, seed=6)
    step = 1e-5 * np.eye(arm.n)
    gradient = [
        (potential_energy(arm, q[0] + h) - potential_energy(arm, q[0] - h)) / 2e-5 for h in step
    ]
    np.testing.assert_allclose(rd.gravity_torque(arm, q[0]), gradient, atol=1e-5)


def test_jacobian_is_the_derivative_of_the_tip_pose(arm):
    q = random_states(arm, 1, seed=8)[0][0]
    h = 1e-6
    columns = []
    for step in h * np.eye(arm.n):
        before, after = rd.forward_kinematics(arm, [q - step, q + step])
        spin = (after[:3, :3] - before[:3, :3]) / (2 * h) @ rd.forward_kinematics(arm, q)[:3, :3].T
        columns.append([*(after - before)[:3, 3] / (2 * h), spin[2, 1], spin[0, 2], spin[1, 0]])
    np.testing.assert_allclose(rd.jacobian(arm, q), np.array(columns).T, atol=1e-8)


def test_rotor_inertia_stands_on_the_diagonal(arm):
    rotors = np.linspace(0.1, 1.0, arm.n)
    geared = arm.with_rotor_inertia(rotors)
    q, qd, qdd = random_states(arm, 3, seed=9)
    np.testing.assert_allclose(
        rd.mass_matrix(geared, q) - rd.mass_matrix(arm, q), [np.diag(rotors)] * 3, atol=1e-12
    )
    np.testing.assert_allclose(
        rd.inverse_dynamics(geared, q, qd, qdd) - rd.inverse_dynamics(arm, q, qd, qdd),
        rotors * qdd,
        atol=1e-10,
    )
    np.testing.assert_allclose(rd.gravity_torque(geared, q), rd.gravity_torque(arm, q), atol=0)


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


def test_payload_of_no_mass_changes_nothing(arm):
    loaded = arm.with_payload(rd.Payload(mass=0.0, center_of_mass=(0.1, 0, 0)))
    np.testing.assert_array_equal(loaded.inertial_parameters, arm.inertial_parameters)


def test_two_payloads_add(arm):
    one = rd.Payload(1.0, (0.1, 0.0, 0.05), np.diag([0.01, 0.02, 0.02]))
    other = rd.Payload(2.0, (0.0, -0.1, 0.05), np.diag([0.03, 0.02, 0.02]))
    state = [x[0] for x in random_states(arm, 1, seed=10)]
    bare, *loaded = (
        rd.inverse_dynamics(model, *state)
        for model in (
            arm,
            arm.with_payload(one),
            arm.with_payload(other),
            arm.with_payload(one).with_payload(other),
        )
    )
    np.testing.assert_allclose(loaded[2] - bare, loaded[0] + loaded[1] - 2 * bare, atol=1e-10)


def test_friction_is_viscous_plus_coulomb():
    arm = rd.RobotModel.from_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/><dynamics damping="2" friction="3"/></joint></robot>'
    )
    np.testing.assert_array_equal(
        rd.friction_torque(arm, [[0.5], [0.0], [-1.0]]), [[4.0], [0.0], [-5.0]]
    )
