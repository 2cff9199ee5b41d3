# SPDX-License-Identifier: Apache-2.0
"""What every formulation owes physics: power, reciprocity, free motion, payloads that add."""

import numpy as np
import pytest
from oracles import random_states
from paper_arms import PAPER_ARMS
from robots import public_urdf, random_chain
from scipy.integrate import solve_ivp

import robodyn_ros as rd
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dynamics import METHODS
from robodyn_ros.spatial import pseudo_inertia

ARMS = ['jpl_rrp', 'stanford', 'puma560', 'cylindrical', 'panda', 'chain']


@pytest.fixture(scope='module', params=ARMS)
def arm(request):
    gravity = (2.0, 5.0, -8.0)
    if request.param == 'chain':
        text = random_chain(np.random.default_rng(21), 6)
        return rd.RobotModel.from_urdf(text, tip_link='tip', gravity=gravity)
    if request.param == 'panda':
        return rd.RobotModel.from_urdf(
            public_urdf('panda.urdf'),
            base_link='panda_link0',
            tip_link='panda_link8',
            gravity=gravity,
        )
    return PAPER_ARMS[request.param].model().with_gravity(gravity)


def energy(arm, q, qd):
    """Return kinetic and potential energy from the motion of the links' frames alone."""
    step = 1e-6
    before, here, after = (frame_transforms(arm.dh, q + k * step * qd) for k in (-1, 0, 1))
    velocity = (after - before) / (2 * step)
    bodies = pseudo_inertia(arm.inertial_parameters)
    kinetic = np.trace(velocity @ bodies @ np.swapaxes(velocity, 1, 2), axis1=1, axis2=2).sum() / 2
    return kinetic - (here @ bodies)[:, :3, 3].sum(axis=0) @ arm.gravity


def test_power_at_the_joints_is_the_rate_of_energy(arm):
    q, qd, qdd = (x[0] for x in random_states(arm, 1, seed=1))
    h = 1e-4

    def at(t):
        return q + t * qd + t * t / 2 * qdd, qd + t * qdd

    rate = (energy(arm, *at(h)) - energy(arm, *at(-h))) / (2 * h)
    for method in METHODS:
        power = qd @ rd.inverse_dynamics(arm, q, qd, qdd, method=method)
        assert power == pytest.approx(rate, rel=1e-5, abs=1e-4), method


def test_reciprocity(arm):
    # What an acceleration of joint k asks of joint i, one of joint i asks of joint k.
    q = np.broadcast_to(random_states(arm, 1, seed=2)[0][0], (arm.n, arm.n))
    still, units = np.zeros_like(q), np.eye(arm.n)
    for method in METHODS:
        columns = rd.inverse_dynamics(arm, q, still, units, method=method)
        columns = columns - rd.inverse_dynamics(arm, q, still, still, method=method)
        atol = 1e-12 * np.abs(columns).max() + 1e-12
        np.testing.assert_allclose(columns, columns.T, atol=atol, err_msg=method)


def test_rotors_add_their_share_to_every_formulation(arm):
    states = random_states(arm, 3, seed=3)
    rotors = np.linspace(0.1, 1.0, arm.n)
    for method in METHODS:
        geared = rd.inverse_dynamics(arm.with_rotor_inertia(rotors), *states, method=method)
        bare = rd.inverse_dynamics(arm, *states, method=method)
        np.testing.assert_allclose(geared - bare, rotors * states[2], atol=1e-10, err_msg=method)


def test_payload_of_no_mass_changes_nothing(arm):
    states = random_states(arm, 2, seed=4)
    loaded = arm.with_payload(rd.Payload(0.0, (0.1, 0, 0)))
    for method in METHODS:
        np.testing.assert_array_equal(
            rd.inverse_dynamics(loaded, *states, method=method),
            rd.inverse_dynamics(arm, *states, method=method),
            err_msg=method,
        )


def test_two_payloads_add(arm):
    one = rd.Payload(1.0, (0.1, 0.0, 0.05), np.diag([0.01, 0.02, 0.02]))
    other = rd.Payload(2.0, (0.0, -0.1, 0.05), np.diag([0.03, 0.02, 0.02]))
    states = random_states(arm, 2, seed=5)
    models = (
        arm,
        arm.with_payload(one),
        arm.with_payload(other),
        arm.with_payload(one).with_payload(other),
    )
    for method in METHODS:
        bare, first, second, both = (
            rd.inverse_dynamics(model, *states, method=method) for model in models
        )
        sum_of_both = first + second - 2 * bare
        np.testing.assert_allclose(both - bare, sum_of_both, atol=1e-9, err_msg=method)


def test_payload_weighs_where_its_link_is(arm):
    # A payload on any link of the arm: its weight times the motion of its centre of mass.
    q = random_states(arm, 1, seed=6)[0][0]
    still = np.zeros(arm.n)
    center = np.array([0.1, -0.2, 0.05])
    for link in arm.link_frames:
        loaded = arm.with_payload(rd.Payload(3.0, center, link=link))

        def place(position, link=link):
            body, placed = arm.link_frames[link]
            frame = np.eye(4) if body < 0 else frame_transforms(arm.dh, position)[body]
            return (frame @ placed @ [*center, 1])[:3]

        h = 1e-6
        slope = [(place(q + e) - place(q - e)) / (2 * h) for e in h * np.eye(arm.n)]
        expected = -3.0 * np.array(slope) @ arm.gravity
        for method in METHODS:
            added = rd.inverse_dynamics(loaded, q, still, still, method=method)
            added = added - rd.inverse_dynamics(arm, q, still, still, method=method)
            np.testing.assert_allclose(added, expected, atol=1e-6, err_msg=f'{method}, {link}')


@pytest.mark.parametrize('method', METHODS)
def test_energy_is_conserved_along_a_free_motion(method):
    arm = PAPER_ARMS['spherical'].model()
    start = np.array([0.1, 0.8, 0.5, 0.9, -0.4, 0.3])

    def derivative(_, x):
        q, qd = x[:3], x[3:]
        bias = rd.inverse_dynamics(arm, q, qd, np.zeros(3), method=method)
        return np.concatenate([qd, np.linalg.solve(rd.mass_matrix(arm, q), -bias)])

    motion = solve_ivp(derivative, (0, 0.4), start, method='DOP853', rtol=1e-10, atol=1e-10)
    energies = [energy(arm, x[:3], x[3:]) for x in motion.y.T]
    assert np.ptp(motion.y[1]) > 0.1  # the arm did move
    assert np.ptp(energies) < 1e-6
