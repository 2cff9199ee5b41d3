# SPDX-License-Identifier: Apache-2.0
"""The arm in MuJoCo is the arm of the URDF: no mass invented, nothing moves that is welded."""

import sys

import numpy as np
import pytest
from robots import public_urdf

from robodyn_ros.errors import InvalidNumber, NonFiniteValue, WrongShape
from robodyn_ros.simulation.arm import ArmSimulation, CannotSimulate, MujocoMissing

pytest.importorskip('mujoco')


@pytest.fixture(scope='module')
def panda():
    return ArmSimulation(public_urdf('panda.urdf'), tip_link='panda_link8')


def link(name, mass=None):
    inertial = (
        ''
        if mass is None
        else (
            f'<inertial><origin xyz="0 0 0.1"/><mass value="{mass}"/>'
            '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
        )
    )
    return f'<link name="{name}">{inertial}</link>'


def joint(name, kind, parent, child, inside=''):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/>{inside}</joint>'
    )


def robot(*parts):
    return f'<robot name="test">{"".join(parts)}</robot>'


def slider(dynamics=''):
    """One mass of 2 kg on a horizontal rail, from 'world' to 'carriage'."""
    return robot(
        link('world'),
        link('carriage', 2.0),
        joint(
            'rail',
            'prismatic',
            'world',
            'carriage',
            '<axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/>' + dynamics,
        ),
    )


def test_brakes_hold_the_arm_until_the_first_torque(panda):
    q = np.array([0.1, -0.5, 0.2, -2.0, 0.3, 1.5, 0.4])
    panda.reset(q)
    for _ in range(50):
        panda.wait()
    assert panda.brakes_engaged
    assert panda.time == pytest.approx(0.05)
    np.testing.assert_array_equal(panda.position, q)
    panda.step(np.zeros(7))
    assert not panda.brakes_engaged
    assert np.all(panda.velocity != 0)


@pytest.mark.parametrize(
    'name, tip, welded',
    [
        ('panda.urdf', 'panda_link8', ('panda_finger_joint1', 'panda_finger_joint2')),
        ('ur5_robot.urdf', 'tool0', ()),
    ],
)
def test_one_step_is_forward_dynamics_as_pinocchio_computes_it(name, tip, welded):
    pinocchio = pytest.importorskip('pinocchio')
    model = pinocchio.buildModelFromUrdf(str(public_urdf(name)))
    model = pinocchio.buildReducedModel(
        model, [model.getJointId(joint_name) for joint_name in welded], pinocchio.neutral(model)
    )
    data = model.createData()
    step = 1e-6
    simulation = ArmSimulation(public_urdf(name), tip_link=tip, time_step=step)
    assert simulation.joint_names == tuple(model.names)[1:]
    rng = np.random.default_rng(7)
    lower, upper = model.lowerPositionLimit, model.upperPositionLimit
    for _ in range(10):
        simulation.reset(rng.uniform(0.9 * lower + 0.1 * upper, 0.1 * lower + 0.9 * upper))
        tau = rng.uniform(-10, 10, simulation.n)
        for _ in range(3):
            q, qd = simulation.position, simulation.velocity
            simulation.step(tau)
            measured = (simulation.velocity - qd) / step
            expected = pinocchio.aba(model, data, q, qd, tau)
            np.testing.assert_allclose(
                measured, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()
            )


def test_viscous_friction_is_that_of_the_urdf():
    simulation = ArmSimulation(slider('<dynamics damping="3"/>'))
    for _ in range(20_000):
        simulation.step([1.5])
        if simulation.position[0] > 0.9:
            break
    velocity_after = simulation.time / (2.0 / 3.0)  # time constants of mass over damping
    expected = 1.5 / 3.0 * (1 - np.exp(-velocity_after))
    assert simulation.velocity[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize('push, moves', [(0.4, False), (0.6, True)])
def test_coulomb_friction_is_that_of_the_urdf(push, moves):
    simulation = ArmSimulation(slider('<dynamics friction="0.5"/>'))
    for _ in range(1000):
        simulation.step([push])
    # A mass of 2 kg under the force that is left travels a t^2 / 2.
    expected = (push - 0.5) / 2.0 / 2.0 if moves else 0.0
    assert simulation.position[0] == pytest.approx(expected, abs=5e-5)


def test_a_position_limit_stops_the_joint():
    simulation = ArmSimulation(slider())
    for _ in range(3000):
        simulation.step([2.0])
    assert simulation.position[0] == pytest.approx(1.0, abs=0.01)


def test_links_without_mass_get_none():
    simulation = ArmSimulation(
        robot(
            link('base'),
            link('arm', 2.0),
            link('flange'),
            link('camera', 0.0),
            joint('shoulder', 'continuous', 'base', 'arm', '<axis xyz="0 1 0"/>'),
            joint('bolt', 'fixed', 'arm', 'flange'),
            joint('glue', 'fixed', 'arm', 'camera'),
        ),
        tip_link='flange',
    )
    assert simulation._model.body_mass.sum() == pytest.approx(2.0)


def test_a_moving_link_without_mass_is_refused_and_not_given_one():
    with pytest.raises(CannotSimulate, match='mass'):
        ArmSimulation(
            robot(link('base'), link('arm'), joint('shoulder', 'continuous', 'base', 'arm'))
        )


def test_joints_off_the_chain_are_welded_where_the_model_locks_them():
    arm = robot(
        link('base'),
        link('arm', 2.0),
        link('flange'),
        link('left', 0.5),
        link('right', 0.5),
        joint('shoulder', 'continuous', 'base', 'arm', '<axis xyz="0 1 0"/>'),
        joint('bolt', 'fixed', 'arm', 'flange'),
        joint('finger', 'prismatic', 'arm', 'left', '<axis xyz="1 0 0"/>'),
        joint(
            'twin',
            'prismatic',
            'arm',
            'right',
            '<axis xyz="1 0 0"/><mimic joint="finger" multiplier="-1" offset="0.3"/>',
        ),
    )
    simulation = ArmSimulation(arm, tip_link='flange', gravity=(0, 0, -10))
    assert simulation.joint_names == ('shoulder',)
    # The twin stands 0.3 m off: gravity turns the arm about y by 0.5 kg * 10 m/s² * 0.3 m.
    inertia = 2 * 0.1**2 + 0.5 * 0.1**2 + 0.5 * (0.1**2 + 0.3**2) + 3 * 0.02
    simulation.step([0.0])
    acceleration = simulation.velocity[0] / simulation.time_step
    assert acceleration == pytest.approx(0.5 * 10 * 0.3 / inertia, rel=1e-9)


def test_gravity_is_in_the_axes_of_the_base_link():
    lying = robot(
        link('floor'),
        link('base'),
        link('arm', 2.0),
        joint('mount', 'fixed', 'floor', 'base', '<origin xyz="0 0 0" rpy="0 1.57 0"/>'),
        joint(
            'lift',
            'prismatic',
            'base',
            'arm',
            '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="9" velocity="9"/>',
        ),
    )
    simulation = ArmSimulation(lying, base_link='base')
    simulation.step([0.0])
    assert simulation.velocity[0] == pytest.approx(-9.81 * simulation.time_step)


def test_joint_without_axis_turns_about_x():
    arm = robot(link('base'), link('arm', 2.0), joint('shoulder', 'continuous', 'base', 'arm'))
    np.testing.assert_array_equal(ArmSimulation(arm)._model.jnt_axis, [[1, 0, 0]])


def test_a_torque_that_is_none_leaves_the_arm_where_it_was(panda):
    panda.reset(np.zeros(7))
    with pytest.raises(WrongShape):
        panda.step(np.zeros(6))
    with pytest.raises(NonFiniteValue):
        panda.step([0, 0, 0, np.nan, 0, 0, 0])
    assert panda.brakes_engaged
    assert panda.time == 0


@pytest.mark.parametrize('time_step', [0.0, -0.001, np.nan, np.inf])
def test_time_step_must_be_positive(time_step):
    with pytest.raises(InvalidNumber, match='time_step'):
        ArmSimulation(slider(), time_step=time_step)


def test_without_mujoco_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(MujocoMissing, match='pip install mujoco'):
        ArmSimulation(slider())
