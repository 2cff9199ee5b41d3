# SPDX-License-Identifier: Apache-2.0
"""What computes the torque in each control cycle, whichever algorithm was asked for."""

import numpy as np
import pytest
from oracles import PinocchioArm, random_states, relative_difference
from robots import public_urdf

import robodyn_ros as rd
from robodyn_ros.control import rigid_body
from robodyn_ros.control.rigid_body import ALGORITHMS, RigidBodyTorque
from robodyn_ros.errors import NoBackend

PATH = public_urdf('panda.urdf')


@pytest.fixture(scope='module')
def arm():
    return rd.RobotModel.from_urdf(PATH, base_link='panda_link0', tip_link='panda_link8')


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_every_algorithm_gives_pinocchio_s_torque(arm, algorithm):
    torque = RigidBodyTorque.of(arm, algorithm)
    assert torque.algorithm == algorithm
    oracle, states = PinocchioArm.of(PATH, arm), random_states(arm, 5, seed=3)
    for value, *state in zip(torque.under(arm)(*states), *states):
        assert relative_difference(value, oracle.torque(*state)) < 1e-9


@pytest.mark.parametrize('algorithm', ALGORITHMS)
@pytest.mark.parametrize('link', ['panda_link8', 'panda_link4', 'panda_hand'])
def test_payload_on_any_link_and_gravity_change_without_compiling(arm, algorithm, link):
    torque = RigidBodyTorque.of(arm, algorithm)
    payload = rd.Payload(1.8, (0.02, 0.0, 0.05), 0.002 * np.eye(3), link)
    loaded = arm.with_payload(payload).with_gravity((3.0, 0.0, -9.0))
    states = random_states(arm, 5, seed=4)
    np.testing.assert_allclose(
        torque.under(loaded)(*states), rd.inverse_dynamics(loaded, *states), atol=1e-10
    )


def test_compiled_falls_back_to_newton_euler_and_says_why(arm, monkeypatch):
    def nothing_works(*_, **__):
        raise NoBackend('C compiler', 'no compiler', 'one that works')

    monkeypatch.setattr(rigid_body, 'compile_model', nothing_works)
    torque = RigidBodyTorque.of(arm, 'compiled')
    assert torque.algorithm == 'newton_euler'
    assert 'no compiler' in torque.notes[0]
    states = random_states(arm, 2, seed=5)
    np.testing.assert_array_equal(torque.under(arm)(*states), rd.inverse_dynamics(arm, *states))
