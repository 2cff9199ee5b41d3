# SPDX-License-Identifier: Apache-2.0
"""What is above the base link: fixed joints turn gravity, joints that move are told."""

import numpy as np
import pytest
from oracles import PinocchioArm
from robots import public_urdf
from scipy.spatial.transform import Rotation

import robodyn_ros as rd
from robodyn_ros.control.control_stack import robot_model
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.description.mjcf import WORLD
from robodyn_ros.simulation.arm import ArmSimulation

CHAIN = {'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
PANDA = public_urdf('panda.urdf').read_text()
Q = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
DOWN = np.array([0.0, 0.0, -9.81])


def mounted(*joints):
    """Return a Panda below joints of (kind, rpy, axis), the first one on the root link."""
    parts, parent = '', 'world'
    for k, (kind, rpy, axis) in enumerate(joints):
        child = 'panda_link0' if k == len(joints) - 1 else f'mount{k}'
        parts += (
            f'<link name="{parent}"/><joint name="m{k}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz="0.1 0.2 1" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/>'
            f'<axis xyz="{axis}"/><limit effort="9" velocity="1" lower="-1" upper="1"/></joint>'
        )
        parent = child
    return PANDA.replace('</robot>', parts + '</robot>')


def fixed(*rpy):
    return 'fixed', rpy, '0 0 1'


def codes(model):
    return {each.code: each for each in model.findings if each.code.endswith('_base')}


ROUND = (0.3, -1.1, 2.0)


@pytest.mark.parametrize(
    'mounts',
    [
        [fixed(0.0, np.pi / 2, 0.0)],
        [fixed(np.pi, 0.0, 0.0)],
        [fixed(*ROUND), fixed(-0.7, 0.2, 0.1), fixed(0.0, 0.0, 1.0)],
    ],
    ids=['wall', 'ceiling', 'several'],
)
def test_fixed_joints_above_the_base_link_turn_gravity(mounts):
    text = mounted(*mounts)
    turn = Rotation.identity()
    for _, rpy, _ in mounts:
        turn = turn * Rotation.from_euler('xyz', rpy)
    arm = rd.RobotModel.from_urdf_text(text, **CHAIN)
    np.testing.assert_allclose(arm.gravity, turn.inv().apply(DOWN), atol=1e-12)
    # The arm from the root link has gravity along that link's axes, and is the same arm.
    whole = rd.RobotModel.from_urdf_text(text, tip_link=CHAIN['tip_link'])
    assert whole.base_link == 'world' and whole.gravity.tolist() == DOWN.tolist()
    expected = PinocchioArm.of(text, whole).torque(Q, np.zeros(7), np.zeros(7))
    np.testing.assert_allclose(rd.gravity_torque(arm, Q), expected, atol=1e-9)
    found = codes(arm)['turned_base']
    assert found.level == 'info' and "'m0'" in str(found) and not codes(whole)
    given = rd.RobotModel.from_urdf_text(text, **CHAIN, gravity=DOWN)
    assert given.gravity.tolist() == DOWN.tolist()


@pytest.mark.parametrize('rpy', [(0.0, 0.0, 0.0), (0.0, 0.0, 1.3)])
def test_a_mount_that_leaves_the_arm_upright_changes_no_digit(rpy):
    plain = rd.RobotModel.from_urdf_text(PANDA, **CHAIN)
    arm = rd.RobotModel.from_urdf_text(mounted(fixed(*rpy)), **CHAIN)
    assert arm.gravity.tobytes() == plain.gravity.tobytes() == DOWN.tobytes()
    assert not codes(arm)


@pytest.mark.parametrize(
    ('kind', 'axis', 'level'),
    [
        ('prismatic', '0 0 1', 'info'),
        ('prismatic', '1 0 0', 'info'),
        ('continuous', '0 0 -1', 'info'),
        ('revolute', '0 1 0', 'warning'),
        ('continuous', '1 0 1', 'warning'),
        ('planar', '0 0 1', 'info'),
        ('floating', '0 0 1', 'warning'),
    ],
)
def test_a_joint_that_moves_above_the_base_link_is_a_finding(kind, axis, level):
    arm = rd.RobotModel.from_urdf_text(mounted((kind, (0, 0, 0), axis)), **CHAIN)
    found = codes(arm)['moving_base']
    assert (found.level, found.element, found.value) == (level, "joint 'm0'", kind)
    assert arm.gravity.tolist() == DOWN.tolist()


def test_a_joint_above_the_base_link_is_held_where_the_others_off_the_chain_are():
    text = mounted(fixed(0.2, 0.0, 0.0), ('revolute', (0, 0, 0), '0 1 0'))
    arm = rd.RobotModel.from_urdf_text(text, **CHAIN, locked_positions={'m1': 0.4})
    turn = Rotation.from_euler('x', 0.2) * Rotation.from_euler('y', 0.4)
    np.testing.assert_allclose(arm.gravity, turn.inv().apply(DOWN), atol=1e-12)
    assert set(codes(arm)) == {'moving_base', 'turned_base'}
    # In its own mount an axis may be upright, and the arm below it not.
    text = mounted(('revolute', (0.0, np.pi / 2, 0.0), '1 0 0'))
    found = codes(rd.RobotModel.from_urdf_text(text, **CHAIN))['moving_base']
    assert found.level == 'info'


def test_the_simulation_the_node_and_the_commands_have_the_same_gravity(tmp_path):
    path = tmp_path / 'arm.urdf'
    path.write_text(mounted(fixed(*ROUND)))
    expected = Rotation.from_euler('xyz', ROUND).inv().apply(DOWN)
    simulated = ArmSimulation.from_urdf(path, **CHAIN)._model.opt.gravity
    settings = ControlSettings(urdf_file=str(path), **CHAIN)
    for gravity in (simulated, robot_model(settings, None).gravity):
        np.testing.assert_allclose(gravity, expected, atol=1e-12)
    given = ControlSettings(urdf_file=str(path), **CHAIN, gravity=(0.0, 0.0, -9.81))
    assert robot_model(given, None).gravity.tolist() == DOWN.tolist()


def test_the_bodies_above_the_base_link_of_an_mjcf_turn_gravity_too(tmp_path):
    pytest.importorskip('mujoco')
    inertial = '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>'
    (tmp_path / 'arm.xml').write_text(
        f'<mujoco><worldbody><body name="mount" euler="0 90 0"><body name="base">{inertial}'
        f'<body name="l">{inertial}<joint name="j"/></body></body></body></worldbody></mujoco>'
    )
    for base, expected in ((WORLD, DOWN), ('base', [9.81, 0.0, 0.0])):
        arm = rd.RobotModel.from_mjcf(tmp_path / 'arm.xml', base_link=base)
        np.testing.assert_allclose(arm.gravity, expected, atol=1e-12)


@pytest.mark.parametrize(
    ('rpy', 'left'),
    [
        ((0.0, np.pi / 2, 0.0), (9.81, 0.0, 9.81)),
        ((np.pi, 0.0, 0.0), (0.0, 0.0, 19.62)),
        ((0.0, 0.0, 1.0), None),
    ],
)
def test_gravity_left_to_a_driver_on_a_tilted_base_is_a_warning(rpy, left):
    settings = ControlSettings(**CHAIN, terms_gravity=False)
    arm = robot_model(settings, mounted(fixed(*rpy)))
    found = [each for each in arm.findings if each.code == 'tilted_driver']
    assert len(found) == (left is not None)
    for each in found:
        np.testing.assert_allclose(each.value, left, atol=1e-12)
        # What the driver gives, and what the node then adds, holds the arm.
        upright = arm.with_gravity(DOWN), arm.with_gravity(each.value)
        torque = sum(rd.gravity_torque(model, Q) for model in upright)
        np.testing.assert_allclose(torque, rd.gravity_torque(arm, Q), atol=1e-9)
    with_gravity = robot_model(ControlSettings(**CHAIN), mounted(fixed(*rpy)))
    assert 'tilted_driver' not in {each.code for each in with_gravity.findings}
