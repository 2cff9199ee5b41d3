# SPDX-License-Identifier: Apache-2.0
"""Arms that are not as their URDF says, their rotors, and what sensors make of them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from robots import public_urdf, two_link_urdf

from robodyn_ros import RobotModel, forward_dynamics, friction_torque
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.simulation.arm import Sensors
from robodyn_ros.simulation.sampled_arm import sampled_arm
from robodyn_ros.spatial import pseudo_inertia


@pytest.fixture(scope='module')
def panda():
    return RobotModel.from_urdf(public_urdf('panda.urdf'), tip_link='panda_link8')


@pytest.mark.parametrize('seed', range(5))
def test_a_sampled_arm_has_bodies_that_can_exist_and_others_than_the_urdf(panda, seed):
    true = sampled_arm(panda, seed)
    assert (np.linalg.eigvalsh(pseudo_inertia(true.inertial_parameters)) > 0).all()
    ratio = true.inertial_parameters[:, 9] / panda.inertial_parameters[:, 9]
    assert 0.05 < np.abs(ratio - 1).mean() < 0.6
    for sampled in (true.rotor_inertia, true.viscous_friction, true.coulomb_friction):
        assert (sampled > 0).all()
    assert (true.dh == panda.dh) and (sampled_arm(panda, seed) == true)
    assert sampled_arm(panda, seed + 1) != true


def test_a_rotor_in_the_simulator_is_one_in_forward_dynamics():
    arm = pytest.importorskip('robodyn_ros.simulation.arm')
    pytest.importorskip('mujoco', reason='needs MuJoCo: pip install mujoco')
    text = two_link_urdf().replace('ixx="0"', 'ixx="0.01"')  # rods are no bodies to MuJoCo
    rotors = np.array([0.3, 0.7])
    tau, step = np.array([2.0, -1.0]), 1e-5
    simulation = arm.ArmSimulation.from_urdf(text, time_step=step, rotor_inertia=rotors)
    simulation.step(tau)
    model = RobotModel.from_urdf(text).with_rotor_inertia(rotors)
    expected = forward_dynamics(model, np.zeros(2), np.zeros(2), tau)
    assert_allclose(simulation.velocity / step, expected, rtol=1e-4)
    with pytest.raises(InvalidArgument, match='rotor_inertia'):
        arm.ArmSimulation.from_urdf(text, rotor_inertia=[1.0])
    with pytest.raises(InvalidArgument, match='rotor_inertia'):
        arm.ArmSimulation.from_urdf(text, rotor_inertia=[1.0, -1.0])


def test_a_coupled_drive_in_the_simulator_is_the_models():
    arm = pytest.importorskip('robodyn_ros.simulation.arm')
    pytest.importorskip('mujoco', reason='needs MuJoCo: pip install mujoco')
    text = two_link_urdf().replace('ixx="0"', 'ixx="0.01"')
    drives = replace(
        RobotModel.from_urdf(text),
        coupling=np.array([[1.0, 1.0]]),
        coupled_rotor_inertia=np.array([0.4]),
        coupled_friction=np.array([[0.5, 1.5, 0.0, 0.0]]),
    )
    simulation = arm.ArmSimulation.from_urdf(text, time_step=1e-4, drives=drives)
    for _ in range(20):
        simulation.step([3.0, 4.0])
    q, qd = simulation.position, simulation.velocity
    simulation.step([3.0, 4.0])
    expected = forward_dynamics(drives, q, qd, [3.0, 4.0] - friction_torque(drives, qd))
    assert_allclose((simulation.velocity - qd) / 1e-4, expected, rtol=2e-3)


def test_sensors_report_steps_and_noise_of_the_size_asked_for():
    sensors = Sensors(0.01, 0.1, np.array([1.0, 3.0]), seed=4)
    read = [
        sensors.measured(np.array([0.123, 1.0]), np.zeros(2), np.zeros(2)) for _ in range(4000)
    ]
    positions, velocities, efforts = (np.array(column) for column in zip(*read))
    assert_allclose(positions, np.tile([0.12, 1.0], (4000, 1)))
    assert_allclose(velocities.std(axis=0), 0.1, rtol=0.05)
    assert_allclose(efforts.std(axis=0), [1.0, 3.0], rtol=0.05)


def test_sensors_without_faults_report_what_is():
    state = np.array([0.123]), np.array([0.4]), np.array([5.0])
    for given, reported in zip(state, Sensors().measured(*state), strict=True):
        assert_allclose(reported, given, rtol=0)


@pytest.mark.parametrize('given', [(-1.0,), (0.0, np.nan), (0.0, 0.0, np.array([1.0, -1.0]))])
def test_sensors_that_are_none_are_refused(given):
    with pytest.raises(InvalidArgument, match='parameter'):
        Sensors(*given)
