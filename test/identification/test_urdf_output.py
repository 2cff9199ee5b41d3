# SPDX-License-Identifier: Apache-2.0
"""The URDF that comes out: the same file, the identified torques, links that can exist."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from known_arms import known_arm, urdf_of
from oracles import PinocchioArm
from robots import public_urdf, random_chain, random_tree, two_link_urdf

from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.description.urdf import description_of_urdf, description_of_urdf_text
from robodyn_ros.errors import MalformedUrdf, ModelMismatch
from robodyn_ros.identification.prior import prior_pseudo_inertia
from robodyn_ros.identification.urdf_output import identified_mjcf, identified_urdf
from robodyn_ros.spatial import inertial_parameters, parameters_of_pseudo_inertia, pseudo_inertia

CHANGED = re.compile(rb'\s*<inertial>.*?</inertial>|\s*<dynamics[^>]*/>', re.DOTALL)


def other_bodies(model: RobotModel, seed: int) -> RobotModel:
    """Return the model with bodies that are off by a third, and friction."""
    generator = np.random.default_rng(seed)
    prior, _ = prior_pseudo_inertia(model)
    mixing = np.eye(4) + 0.15 * generator.normal(size=(model.n, 4, 4))
    bodies = parameters_of_pseudo_inertia(mixing @ prior @ np.swapaxes(mixing, -1, -2))
    return replace(
        model.with_inertial_parameters(bodies),
        viscous_friction=generator.uniform(0.1, 3, model.n),
        coulomb_friction=generator.uniform(0.1, 3, model.n),
    )


def states(model: RobotModel, seed: int = 0) -> tuple[np.ndarray, ...]:
    return tuple(np.random.default_rng(seed).uniform(-1.5, 1.5, (3, 20, model.n)))


def test_what_hangs_on_a_link_is_scaled_down_where_the_body_is_lighter(tmp_path):
    model, text = known_arm('panda'), urdf_of('panda').read_text()
    light = model.with_inertial_parameters(model.inertial_parameters * 0.2)
    path = tmp_path / 'light.urdf'
    path.write_bytes(identified_urdf(light, text))
    full = pin.buildModelFromUrdf(str(path))
    assert all(
        (np.linalg.eigvalsh(inertia.toPseudoInertia().toMatrix()) > 0).all()
        for inertia in full.inertias[1:]
    )
    read = RobotModel.from_urdf(path, base_link='panda_link0', tip_link='panda_link8')
    np.testing.assert_allclose(
        read.inertial_parameters, light.inertial_parameters, rtol=1e-9, atol=1e-12
    )


PUBLIC_ARMS = {
    'panda': 'panda_link8',
    'ur3_robot': 'ee_link',
    'ur5_gripper': 'ee_link',
    'ur10_robot': 'ee_link',
    'kinova': 'j2s6s200_end_effector',
    'xarm7': 'link_eef',
    'z1': 'gripperMover',
    'so101': 'moving_jaw_so101_v1_link',
    'tiago_pro': 'gripper_left_fingertip_left_link',
    'talos_left_arm': 'gripper_left_motor_double_link',
    'irb140': 'tool0',
    'kr210l150': 'tool0',
    'lbr_iiwa_14_r820': 'tool0',
    'puma560_robot': 'link7',
}
MESHES = re.compile(r'<(visual|collision)\b(?:[^>]*/>|.*?</\1>)', re.DOTALL)
COMPILER = '<mujoco><compiler balanceinertia="false" fusestatic="false"/></mujoco></robot>'


def mujoco_torques(mujoco, text: str, model: RobotModel, states) -> np.ndarray:
    """Return the inverse dynamics of a chain without friction, other joints at zero."""
    text = MESHES.sub('', text).replace('</robot>', COMPILER)
    simulated = mujoco.MjModel.from_xml_string(text)
    simulated.opt.gravity[:] = model.gravity
    simulated.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    simulated.dof_damping[:] = 0.0
    data = mujoco.MjData(simulated)
    joints = [simulated.joint(name).id for name in model.joint_names]
    places, columns = simulated.jnt_qposadr[joints], simulated.jnt_dofadr[joints]
    torques = []
    for state in zip(*states, strict=True):
        data.qpos[places], data.qvel[columns], data.qacc[columns] = state
        mujoco.mj_inverse(simulated, data)
        torques.append(data.qfrc_inverse[columns].copy())
    return np.array(torques)


@pytest.mark.repeats(check=2)
@pytest.mark.parametrize('seed', [1, 2])
@pytest.mark.parametrize('name', PUBLIC_ARMS)
def test_pinocchio_mujoco_and_we_read_the_identified_torques_from_it(name, seed, tmp_path):
    mujoco = pytest.importorskip('mujoco', reason='mujoco is not installed')
    source, tip = public_urdf(f'{name}.urdf'), PUBLIC_ARMS[name]
    model = RobotModel.from_urdf(source, tip_link=tip, mimic='independent')
    true = other_bodies(model, seed)
    before, after = source.read_bytes(), identified_urdf(true, source)
    assert CHANGED.sub(b'', after) == CHANGED.sub(b'', before)
    path = tmp_path / 'identified.urdf'
    path.write_bytes(after)
    given = states(model, seed)
    expected = inverse_dynamics(true, *given)
    read = RobotModel.from_urdf(path, tip_link=tip, mimic='independent')
    arm = PinocchioArm.of(path, read)
    for torques in (
        inverse_dynamics(read, *given),
        np.array([arm.torque(*state) for state in zip(*given, strict=True)]),
        mujoco_torques(mujoco, after.decode(), model, given),
    ):
        assert np.abs(torques - expected).max() < 1e-9 * np.abs(expected).max()
    links = description_of_urdf(path).links
    for link, (body, _) in read.link_frames.items():
        own = links[link].inertial
        if body >= 0 and own is not None and own.mass > 0:
            parameters = inertial_parameters(own.mass, own.center_of_mass, own.inertia)
            assert (np.linalg.eigvalsh(pseudo_inertia(parameters)) > 0).all(), link


@pytest.mark.parametrize('seed', range(10))
def test_random_arms_with_prismatic_joints_survive_the_round_trip(seed):
    generator = np.random.default_rng(seed)
    text, tips = (random_chain(generator, 5), 'tip') if seed < 5 else random_tree(generator, 6)
    model = RobotModel.from_urdf(text, base_link='base', tip_link=tips)
    true = other_bodies(model, seed)
    read = RobotModel.from_urdf_text(
        identified_urdf(true, text).decode(), base_link='base', tip_link=tips
    )
    given = states(model)
    expected = inverse_dynamics(true, *given)
    np.testing.assert_allclose(
        inverse_dynamics(read, *given), expected, atol=1e-9 * np.abs(expected).max()
    )
    np.testing.assert_allclose(read.viscous_friction, true.viscous_friction, rtol=1e-12)
    np.testing.assert_allclose(read.coulomb_friction, true.coulomb_friction, rtol=1e-12)


@pytest.mark.parametrize('name', ['panda', 'xarm7', 'z1'])
def test_mujoco_has_the_identified_torques_from_the_mjcf_and_it_serves_as_a_source(name, tmp_path):
    mujoco = pytest.importorskip('mujoco', reason='mujoco is not installed')
    source, tip = public_urdf(f'{name}.urdf'), PUBLIC_ARMS[name]
    model = RobotModel.from_urdf(source, tip_link=tip, mimic='independent')
    true = other_bodies(model, 3).with_rotor_inertia(np.linspace(0.1, 1.0, model.n))
    written = identified_mjcf(true, source)
    given = states(model)
    expected = inverse_dynamics(true, *given)
    found = mujoco_torques(mujoco, written.decode(), model, given)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
    path = tmp_path / 'identified.xml'
    path.write_bytes(written)
    read = RobotModel.from_mjcf(path, base_link=model.base_link, tip_link=tip, mimic='independent')
    for each in ('viscous_friction', 'coulomb_friction', 'rotor_inertia'):
        np.testing.assert_array_equal(getattr(read, each), getattr(true, each))
    # An MJCF that something was identified with: out as MJCF, and as a URDF.
    other = other_bodies(read, 4)
    expected = inverse_dynamics(other, *given)
    found = mujoco_torques(mujoco, identified_mjcf(other, path).decode(), model, given)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
    back = RobotModel.from_urdf_text(
        identified_urdf(other, path).decode(),
        base_link=model.base_link,
        tip_link=tip,
        mimic='independent',
    ).with_rotor_inertia(other.rotor_inertia)
    assert np.abs(inverse_dynamics(back, *given) - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize('seed', range(8))
def test_a_point_mass_that_hangs_on_a_link_is_a_body_afterwards(seed):
    point = np.array2string(np.random.default_rng(seed).uniform(-0.2, 0.2, 3))[1:-1]
    end = (
        f'<link name="hand"><inertial><origin xyz="{point}"/><mass value="8"/><inertia ixx="0" '
        'ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link><joint name="grip" '
        'type="fixed"><parent link="link2"/><child link="hand"/></joint></robot>'
    )
    text = two_link_urdf().replace('</robot>', end)
    light = other_bodies(RobotModel.from_urdf(text), seed)
    light = light.with_inertial_parameters(light.inertial_parameters * 0.5)
    hand = description_of_urdf_text(identified_urdf(light, text).decode()).links['hand'].inertial
    smallest, middle, largest = np.linalg.eigvalsh(hand.inertia)
    assert 1e-6 < largest < smallest + middle


def test_links_without_inertial_and_joints_without_dynamics_get_them():
    text = (
        '<?xml version="1.0"?>\n<!-- kept: <inertial> -->\n<robot name="x">\n  <link name="b"/>\n'
        '  <link name="a>b" />\n  <joint name="j" type="continuous"><parent link="b"/>\n'
        '    <child link="a>b"/><axis xyz="0 1 0"/></joint>\n</robot>\n'
    )
    model = RobotModel.from_urdf(text)
    body = parameters_of_pseudo_inertia(np.diag([0.1, 0.2, 0.3, 2.0]))
    true = replace(
        model.with_inertial_parameters(body[None]),
        viscous_friction=np.array([0.5]),
        coulomb_friction=np.array([0.25]),
    )
    written = identified_urdf(true, text).decode()
    assert '<!-- kept: <inertial> -->' in written
    read = RobotModel.from_urdf(written)
    np.testing.assert_allclose(read.inertial_parameters, true.inertial_parameters, atol=1e-12)
    assert read.viscous_friction == 0.5
    assert read.coulomb_friction == 0.25


def test_another_robots_urdf_and_a_document_type_are_refused():
    model = RobotModel.from_urdf(two_link_urdf())
    with pytest.raises(ModelMismatch, match='DH table'):
        identified_urdf(model, two_link_urdf(length=1.1))
    with pytest.raises(MalformedUrdf):
        identified_urdf(model, '<!DOCTYPE robot [<!ENTITY x "y">]>' + two_link_urdf())


def test_a_coupled_drive_is_a_tendon_of_the_mjcf_and_friction_in_the_urdf():
    mujoco = pytest.importorskip('mujoco', reason='needs MuJoCo: pip install mujoco')
    text = two_link_urdf().replace('ixx="0"', 'ixx="0.01"')
    model = RobotModel.from_urdf(text)
    drives = replace(
        model,
        coupling=np.array([[-0.5, 1.0]]),
        coupled_rotor_inertia=np.array([0.4]),
        coupled_friction=np.array([[0.8, 1.5, 0.0, 0.0]]),
    )
    read = mujoco.MjModel.from_xml_string(identified_mjcf(drives, text).decode())
    assert np.ravel(read.tendon_damping)[0] == 0.8
    assert (read.tendon_frictionloss[0], read.tendon_armature[0]) == (1.5, 0.4)
    np.testing.assert_array_equal(read.wrap_prm[:2], [-0.5, 1.0])
    alone = RobotModel.from_urdf(identified_urdf(drives, text).decode())
    np.testing.assert_allclose(alone.viscous_friction, [0.2, 0.8])
    np.testing.assert_allclose(alone.coulomb_friction, [0.75, 1.5])
