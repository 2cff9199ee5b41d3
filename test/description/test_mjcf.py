# SPDX-License-Identifier: Apache-2.0
"""MJCF in: MuJoCo's own torques; MJCF and URDF out: the same arm; and what is refused."""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from oracles import PinocchioArm
from robots import public_urdf, random_chain, two_link_urdf

import robodyn_ros as rd
from robodyn_ros.description.chain import Chain, LinkTree, serial_chain
from robodyn_ros.description.mjcf import description_of_mjcf, is_mjcf
from robodyn_ros.description.records import (
    Inertial,
    Joint,
    JointLimit,
    Link,
    Mimic,
    RobotDescription,
    robot_description,
)
from robodyn_ros.description.urdf import description_of_urdf, description_of_urdf_text
from robodyn_ros.description.writing import mjcf_of_description, urdf_of_description
from robodyn_ros.errors import (
    InvalidArgument,
    MalformedUrdf,
    NoBackend,
    NoChain,
    NoSuchName,
    RobodynError,
    UnreadableSource,
    UnsupportedJoint,
)
from robodyn_ros.spatial import rotation_from_rpy, rpy_from_rotation

mujoco = pytest.importorskip('mujoco', reason='mujoco is not installed')

ROOT = Path(__file__).resolve().parents[2]

HARD = Path(__file__).with_name('hard.xml').read_text(encoding='utf-8')


def written(folder: Path, text: str, name: str = 'arm.xml') -> Path:
    path = folder / name
    path.write_text(text, encoding='utf-8')
    return path


def chains(description: RobotDescription) -> tuple[list[Chain], Counter[str]]:
    """Return the chain from the root to the end of each set of joints, and why others are none."""
    tree, refused, ends = LinkTree(description), Counter(), {}
    for link in description.links:
        if not tree.child_joints[link]:
            path = tree.path(tree.roots[0], link)
            ends[tuple(joint.name for joint in path if joint.kind != 'fixed')] = link
    found = []
    for joints, link in ends.items():
        if not joints:
            continue
        try:
            found.append(serial_chain(description, tip_link=link, mimic='independent'))
        except RobodynError as error:
            refused[f'{type(error).__name__}: {error.value}'] += 1
    return found, refused


@functools.lru_cache(maxsize=1)
def without_what_is_not_in_the_model(path: Path) -> mujoco.MjModel:
    compiled = mujoco.MjSpec.from_file(str(path)).compile()
    compiled.opt.disableflags |= (
        mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_SPRING
    )
    compiled.opt.gravity = rd.model.STANDARD_GRAVITY
    compiled.opt.density = compiled.opt.viscosity = 0.0
    compiled.body_gravcomp[:] = 0.0
    for name in ('tendon_damping', 'tendon_armature', 'dof_dampingpoly'):
        getattr(compiled, name, np.zeros(1))[:] = 0.0
    return compiled


def disagreement(path: Path, chain: Chain, states: int = 5) -> float:
    """
    Return the largest difference to MuJoCo's inverse dynamics, in parts of the largest torque.

    What a finding says is not in the model does not act in MuJoCo either. Damping and armature do.
    """
    compiled = without_what_is_not_in_the_model(path)
    data = mujoco.MjData(compiled)
    names = {compiled.joint(j).name or f'joint{j}': j for j in range(compiled.njnt)}
    # Joints that turn or slide stand at zero, not at their references, or where they are held.
    for j in range(compiled.njnt):
        if compiled.jnt_type[j] in (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE):
            data.qpos[compiled.jnt_qposadr[j]] = 0.0
    for finding in chain.findings:
        if finding.code == 'locked_joint' and finding.value:
            j = names[finding.element.removeprefix('joint ')[1:-1]]
            data.qpos[compiled.jnt_qposadr[j]] = finding.value
    joints = [names[name] for name in chain.joint_names]
    places, columns = compiled.jnt_qposadr[joints], compiled.jnt_dofadr[joints]
    model = rd.RobotModel.from_chain(chain)
    generator = np.random.default_rng(1)
    worst = largest = 0.0
    for q, qd, qdd in generator.uniform(-1.5, 1.5, (states, 3, model.n)):
        data.qpos[places], data.qvel[columns], data.qacc[columns] = q, qd, qdd
        mujoco.mj_inverse(compiled, data)
        ours = rd.inverse_dynamics(model, q, qd, qdd) + model.viscous_friction * qd
        worst = max(worst, float(np.abs(ours - data.qfrc_inverse[columns]).max()))
        largest = max(largest, float(np.abs(ours).max()))
    return worst / largest if largest else worst


def test_torques_of_a_hard_mjcf_are_those_of_mujoco(tmp_path):
    path = written(tmp_path, HARD)
    found, refused = chains(description_of_mjcf(path))
    assert [chain.joint_names for chain in found] == [
        ('turn', 'slide', 'joint2', 'wrist', 'finger')
    ]
    assert not refused
    assert disagreement(path, found[0], states=20) < 1e-12
    # Off the chain the finger is held, lumped into the hand.
    short = Chain.from_mjcf(path, tip_link='hand', mimic='independent')
    assert disagreement(path, short, states=20) < 1e-12


def test_limits_friction_armature_and_mimic_are_those_of_the_mjcf(tmp_path):
    joints = description_of_mjcf(written(tmp_path, HARD)).joints
    turn, slide, third = joints['turn'], joints['slide'], joints['joint2']
    assert [turn.kind, slide.kind, third.kind] == ['revolute', 'prismatic', 'continuous']
    np.testing.assert_allclose(
        [turn.limit.lower, turn.limit.upper], np.radians([-170, 160]), rtol=1e-15
    )
    assert (slide.limit.lower, slide.limit.upper) == (-0.2, 0.5)
    # A gear of -50 turns -2 to 3 into -150 to 100; 7 of the motor and twice 5 of the other.
    assert (turn.limit.effort, slide.limit.effort, third.limit.effort) == (100.0, 17.0, math.inf)
    assert turn.limit.velocity == math.inf
    assert (turn.damping, turn.rotor_inertia, third.damping, third.friction) == (0.7, 0.02, 3, 1.5)
    # The finger is where the wrist's half way from its reference takes it; neither has one.
    assert joints['finger'].mimic == Mimic('wrist', 0.5, 0.01)
    model = rd.RobotModel.from_mjcf(written(tmp_path, HARD), tip_link='hand')
    np.testing.assert_array_equal(model.rotor_inertia, [0.02] * 4)


def test_an_equality_counts_from_the_references(tmp_path):
    text = HARD.replace('name="wrist"', 'name="wrist" ref="60"').replace(
        'name="finger"', 'name="finger" ref="0.2"'
    )
    path = written(tmp_path, text)
    rule = description_of_mjcf(path).joints['finger'].mimic
    compiled = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(compiled)
    wrist = 0.4
    data.qpos[compiled.joint('wrist').qposadr] = wrist
    data.qpos[compiled.joint('finger').qposadr] = rule.multiplier * wrist + rule.offset
    mujoco.mj_forward(compiled, data)
    violated = data.efc_pos[: data.ne]
    assert len(violated) == 1
    assert abs(violated[0]) < 1e-15


def test_armature_and_damping_of_an_actuator_add_to_the_joints(tmp_path):
    major = int(mujoco.__version__.split('.')[0])
    if major < 4:
        pytest.skip('actuators have no armature before MuJoCo 4')
    text = HARD.replace('gear="-50"', 'gear="-50" armature="1e-4" damping="0.002"')
    path = written(tmp_path, text)
    chain = Chain.from_mjcf(path, mimic='independent')
    assert chain.joints[0].rotor_inertia == pytest.approx(0.02 + 2500e-4)
    assert disagreement(path, chain) < 1e-12


def test_findings_name_what_is_not_in_the_model_and_what_was_inferred(tmp_path):
    text = HARD.replace(
        '</equality>',
        '<joint joint1="turn" polycoef="0 0 1 0 0" joint2="slide"/>'
        '<connect body1="hand" body2="base" anchor="0 0 0"/></equality>'
        '<tendon><fixed name="cord" stiffness="3"><joint joint="slide" coef="2"/></fixed>'
        '</tendon>',
    )
    model = rd.RobotModel.from_mjcf(written(tmp_path, text), mimic='independent')
    found = {(each.code, each.element): each for each in model.findings}
    for code, element, level, value in (
        ('gravity', 'option', 'info', (0.0, 0.0, -1.62)),
        ('gravcomp', "link 'hand'", 'warning', 1.0),
        ('stiffness', "joint 'wrist'", 'warning', 4.0),
        ('gear', "joint 'turn'", 'info', -50.0),
        ('effort_range', "joint 'turn'", 'info', (-150.0, 100.0)),
        ('equality', "joint 'turn'", 'warning', (0.0, 0.0, 1.0, 0.0, 0.0)),
        ('equality', "link 'hand'", 'warning', 'base'),
        ('tendon', "joint 'slide'", 'warning', 'cord'),
    ):
        each = found[code, element]
        assert (each.level, each.value) == (level, value), each
        assert each.message.startswith(element)
    inferred = found['inferred_inertia', "link 'hand'"]
    assert inferred.level == 'warning'
    assert inferred.value == pytest.approx(8 * 0.1 * 0.05 * 0.02 * 800)
    assert ('inferred_inertia', "link 'first'") not in found
    assert 'one unit of its control is -50 N m' in found['gear', "joint 'turn'"].message


def test_a_link_between_two_joints_of_one_body_is_no_finding_for_its_lack_of_mass(tmp_path):
    text = one().replace('/></body>', '/><joint name="k" axis="0 1 0"/></body>')
    model = rd.RobotModel.from_mjcf(written(tmp_path, text))
    assert model.joint_names == ('j', 'k')
    assert 'no_mass' not in [finding.code for finding in model.findings]


def test_inferred_masses_are_refused_on_request(tmp_path):
    path = written(tmp_path, HARD)
    with pytest.raises(MalformedUrdf, match="link 'hand' mass.*unless inferred_inertia='finding'"):
        rd.RobotModel.from_mjcf(path, inferred_inertia='error')
    with pytest.raises(InvalidArgument, match='inferred_inertia'):
        rd.RobotModel.from_mjcf(path, inferred_inertia='warn')
    # What stands still has a mass that does not matter.
    still = '<mujoco><worldbody><body><geom size="1"/></body>{}</worldbody></mujoco>'.format(
        '<body name="a"><joint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body>'
    )
    description_of_mjcf(written(tmp_path, still), inferred_inertia='error')


def test_names_that_are_missing_collide_with_none(tmp_path):
    inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    text = (
        f'<mujoco><worldbody><body name="body2">{inertial}<joint name="joint1"/>'
        f'<body>{inertial}<joint/><joint type="slide" name="joint0"/></body></body>'
        '</worldbody></mujoco>'
    )
    description = description_of_mjcf(written(tmp_path, text))
    assert list(description.joints) == ['joint1', 'joint1_', 'joint0']
    assert list(description.links) == ['world', 'body2', 'body2__joint1_', 'body2_']


# --- there and back ------------------------------------------------------------------------------

# This one's first link has an inertia about one axis only, which MuJoCo refuses: below.
NO_BODY = 'six_axis_industrial.urdf'
ARMS = sorted(path.name for path in (ROOT / 'urdf').glob('*.urdf') if path.name != NO_BODY)
PUBLIC = {'panda.urdf': 'panda_link8', 'ur5_robot.urdf': 'ee_link', 'xarm7.urdf': 'link_eef'}
PUBLIC['z1.urdf'] = 'gripperMover'


@pytest.mark.parametrize('name', [*ARMS, *PUBLIC, 'random'])
def test_an_arm_through_mjcf_and_back_is_the_same(name, tmp_path):
    if name == 'random':
        text = random_chain(np.random.default_rng(4), 6)
        first = description_of_urdf_text(text)
    else:
        source = ROOT / 'urdf' / name if name in ARMS else public_urdf(name)
        text, first = source.read_text(encoding='utf-8'), description_of_urdf(source)
    tip = PUBLIC.get(name)
    before = serial_chain(first, tip_link=tip, mimic='independent')
    path = written(tmp_path, mjcf_of_description(first))
    assert (
        disagreement(
            path,
            Chain.from_mjcf(path, base_link=None, tip_link=before.tip_links, mimic='independent'),
        )
        < 1e-12
    )
    back = urdf_of_description(description_of_mjcf(path))
    arguments = {'base_link': before.base_link, 'tip_link': before.tip_links}
    after = Chain.from_urdf_text(back, mimic='independent', **arguments)
    model, read = rd.RobotModel.from_chain(before), rd.RobotModel.from_chain(after)
    assert read.joint_names == model.joint_names
    np.testing.assert_allclose(read.viscous_friction, model.viscous_friction, rtol=1e-15)
    np.testing.assert_allclose(read.coulomb_friction, model.coulomb_friction, rtol=1e-15)
    limits = np.where(np.isinf(model.effort_limits), 1e9, model.effort_limits)
    np.testing.assert_array_equal(read.effort_limits[limits < 1e9], limits[limits < 1e9])
    for joint, again in zip(before.joints, after.joints, strict=True):
        assert joint.mimic == again.mimic
    ours, theirs = PinocchioArm.of(text, model), PinocchioArm.of(back, read)
    for q, qd, qdd in np.random.default_rng(2).uniform(-1.5, 1.5, (10, 3, model.n)):
        torque, mass = ours.torque(q, qd, qdd), ours.mass_matrix(q)
        same = {'rtol': 0, 'atol': 1e-12}
        np.testing.assert_allclose(theirs.tip_pose(q), ours.tip_pose(q), **same)
        for expected, found in (
            (torque, theirs.torque(q, qd, qdd)),
            (torque, rd.inverse_dynamics(read, q, qd, qdd)),
            (mass, theirs.mass_matrix(q)),
            (mass, rd.mass_matrix(read, q)),
        ):
            assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


def test_mujoco_names_a_link_that_no_body_can_be(tmp_path):
    path = written(tmp_path, mjcf_of_description(description_of_urdf(ROOT / 'urdf' / NO_BODY)))
    with pytest.raises(MalformedUrdf, match='A [+] B >= C.*link1'):
        description_of_mjcf(path)


def test_an_mjcf_through_itself_is_the_same(tmp_path):
    path = written(tmp_path, HARD)
    chain = Chain.from_mjcf(path, mimic='independent')
    again = written(tmp_path, mjcf_of_description(chain.description), 'again.xml')
    assert disagreement(again, Chain.from_mjcf(again, mimic='independent')) < 1e-12
    model, read = (rd.RobotModel.from_mjcf(each, mimic='independent') for each in (path, again))
    states = np.random.default_rng(3).uniform(-1, 1, (3, 20, model.n))
    expected = rd.inverse_dynamics(model, *states)
    difference = np.abs(rd.inverse_dynamics(read, *states) - expected).max()
    assert difference < 1e-12 * np.abs(expected).max()
    for name in ('rotor_inertia', 'viscous_friction', 'coulomb_friction', 'effort_limits'):
        np.testing.assert_array_equal(getattr(read, name), getattr(model, name))
    np.testing.assert_allclose(read.position_limits, model.position_limits, rtol=1e-15)


def test_names_are_escaped_and_mujoco_names_a_link_without_mass(tmp_path):
    body = Inertial(1.0, np.zeros(3), np.eye(3))
    name = '"<b>&\'é'
    x = np.array([1.0, 0.0, 0.0])

    def described(given):
        joint = Joint(name, 'continuous', name, 'tip', np.eye(4), x, rotor_inertia=0.5)
        return robot_description([Link(name), Link('tip', given)], [joint], name=name)

    path = written(tmp_path, mjcf_of_description(described(body)))
    assert rd.RobotModel.from_mjcf(path, base_link=name).rotor_inertia == 0.5
    text = urdf_of_description(described(body))
    assert rd.RobotModel.from_urdf_text(text).joint_names == (name,)
    with pytest.raises(MalformedUrdf, match='mass and inertia.*tip'):
        description_of_mjcf(written(tmp_path, mjcf_of_description(described(None))))


def test_what_mjcf_lacks_is_refused():
    x = np.array([1.0, 0.0, 0.0])
    links = [Link('base'), Link('tip', Inertial(1.0, np.zeros(3), np.eye(3)))]
    for kind in ('planar', 'floating'):
        joint = Joint('j', kind, 'base', 'tip', np.eye(4), x)
        with pytest.raises(UnsupportedJoint, match="joint 'j'.*" + kind):
            mjcf_of_description(robot_description(links, [joint]))
    joint = Joint('j', 'fixed', 'base', 'world', np.eye(4), x)
    with pytest.raises(InvalidArgument, match='world'):
        mjcf_of_description(robot_description([Link('base'), Link('world')], [joint]))


def test_a_robot_that_floats_in_the_world_is_written_and_read(tmp_path):
    body = Inertial(1.0, np.zeros(3), np.eye(3))
    x = np.array([1.0, 0.0, 0.0])
    description = robot_description(
        [Link('world'), Link('trunk', body), Link('arm', body)],
        [
            Joint('free', 'floating', 'world', 'trunk', np.eye(4), x),
            Joint('j', 'revolute', 'trunk', 'arm', np.eye(4), x, limit=JointLimit(-1, 1)),
        ],
    )
    path = written(tmp_path, mjcf_of_description(description))
    assert description_of_mjcf(path).joints['free'].kind == 'floating'
    with pytest.raises(UnsupportedJoint, match="joint 'free' on the chain"):
        rd.RobotModel.from_mjcf(path)
    assert rd.RobotModel.from_mjcf(path, base_link='trunk').joint_names == ('j',)


@pytest.mark.parametrize('pitch', [math.pi / 2, -math.pi / 2, 1.5707963, -1.57079632, 0.3])
def test_roll_pitch_yaw_are_exact_where_pitch_is_a_right_angle(pitch):
    for roll, yaw in ((0.0, 0.0), (0.4, -2.0), (3.0, 1.0), (-math.pi / 2, math.pi)):
        rotation = rotation_from_rpy((roll, pitch, yaw))
        again = rotation_from_rpy(rpy_from_rotation(rotation))
        np.testing.assert_allclose(again, rotation, rtol=0, atol=5e-16)


# --- what is refused -----------------------------------------------------------------------------

BALL = HARD.replace(
    '<joint name="wrist" pos="0 0.07 0" axis="0 0 1" stiffness="4" springref="10"/>',
    '<joint name="wrist" type="ball"/>',
).replace(
    '<equality><joint joint1="finger" joint2="wrist" polycoef="0.01 0.5 0 0 0"/></equality>', ''
)
MANY = '<replicate count="{}"><body><joint/><geom size="1"/></body></replicate>'


@pytest.mark.parametrize(
    ('text', 'arguments', 'error', 'words'),
    [
        ('<mujoco', {}, MalformedUrdf, 'well-formed'),
        ('<robot name="x"><link name="a"/></robot>', {}, MalformedUrdf, "root element: 'robot'"),
        ('<mujoco><wordbody/></mujoco>', {}, MalformedUrdf, 'wordbody'),
        ('<!DOCTYPE mujoco [<!ENTITY a "b">]><mujoco/>', {}, MalformedUrdf, "entity 'a'"),
        (HARD, {'base_link': 'bsae'}, NoSuchName, "base_link: 'bsae'.*'base'"),
        (HARD, {'tip_link': 'base'}, NoChain, "'world' to 'base'"),
        (HARD, {}, UnsupportedJoint, "joint 'finger'.*mimics 'wrist'"),
        (BALL, {}, UnsupportedJoint, "joint 'wrist' on the chain: 'floating'"),
        (MANY.format('1e6').join(('<mujoco><worldbody>', '</worldbody></mujoco>')), {},
         MalformedUrdf, 'repeated ones included'),
        (HARD.replace('<worldbody>', '<asset><model name="m" file="m.xml"/></asset><worldbody>'),
         {}, MalformedUrdf, 'in one piece'),
        (HARD.replace('mass="3"', 'mass="nan"'), {}, MalformedUrdf, 'nan|NaN|number'),
    ],
)  # fmt: skip
def test_bad_mjcf_is_refused_by_name(text, arguments, error, words, tmp_path):
    with pytest.raises(error, match=words):
        rd.RobotModel.from_mjcf(written(tmp_path, text), **arguments)


def test_files_are_looked_at_before_mujoco_reads_them(tmp_path, monkeypatch):
    with pytest.raises(UnreadableSource, match='no such file'):
        description_of_mjcf(tmp_path / 'none.xml')
    with pytest.raises(UnreadableSource, match='a file'):
        description_of_mjcf(tmp_path)
    part = '<mujoco><worldbody>' + MANY.format(600) + '</worldbody></mujoco>'
    main = written(
        tmp_path, '<mujoco><include file="part.xml"/><include file="more.xml"/></mujoco>'
    )
    written(tmp_path, part, 'part.xml')
    written(tmp_path, part, 'more.xml')
    with pytest.raises(MalformedUrdf, match='repeated'):
        description_of_mjcf(main)
    monkeypatch.setattr('robodyn_ros.description.mjcf_source.LARGEST_SOURCE', 200)
    with pytest.raises(UnreadableSource, match='what it includes'):
        description_of_mjcf(main)


ONE = """<mujoco>{head}<worldbody><body name="l"><inertial pos="0 0 0.1" mass="1"
 diaginertia="0.01 0.01 0.01"/><joint name="j" {joint}/>{shapes}</body></worldbody>{tail}
</mujoco>"""


def one(head: str = '', joint: str = '', shapes: str = '', tail: str = '') -> str:
    """Return an MJCF of one joint."""
    return ONE.format(head=head, joint=joint, shapes=shapes, tail=tail)


def inferred(asset: str) -> str:
    """Return an MJCF whose mass comes from the mesh ``a``."""
    text = one(head=asset, shapes='<geom type="mesh" mesh="a"/>')
    return text.replace(text[text.index('<inertial') : text.index('<joint')], '')


CUBE = ' '.join(f'{x} {y} {z}' for x in (0, 1) for y in (0, 1) for z in (0, 1))


@pytest.mark.parametrize(
    'text',
    [
        '<mujoco><include file="{file}"/></mujoco>',
        inferred('<asset><mesh name="a" file="{file}"/></asset>'),
        inferred('<compiler meshdir="{folder}"/><asset><mesh name="a" file="cube.obj"/></asset>'),
    ],
    ids=['include', 'mesh', 'meshdir'],
)
@pytest.mark.parametrize('is_absolute', [True, False])
def test_no_file_outside_of_the_folder_of_an_mjcf_is_opened(text, is_absolute, tmp_path):
    outside = tmp_path if is_absolute else Path('..')
    written(tmp_path, ''.join(f'v {line}\n' for line in ('0 0 0', '1 0 0')), 'cube.obj')
    (tmp_path / 'robot').mkdir()
    text = text.replace('{file}', str(outside / 'cube.obj')).replace('{folder}', str(outside))
    with pytest.raises(MalformedUrdf, match=r"cube.obj'; allowed: a file in the folder of the"):
        description_of_mjcf(written(tmp_path / 'robot', text))


def test_a_mesh_below_the_folder_gives_the_mass(tmp_path):
    (tmp_path / 'meshes').mkdir()
    faces = ((1, 2, 4), (1, 4, 3), (5, 8, 6), (5, 7, 8), (1, 6, 2), (1, 5, 6), (3, 4, 8),
             (3, 8, 7), (1, 3, 7), (1, 7, 5), (2, 8, 4), (2, 6, 8))  # fmt: skip
    corners = np.reshape(CUBE.split(), (-1, 3))
    lines = [f'v {" ".join(corner)}' for corner in corners]
    lines += [f'f {" ".join(map(str, face))}' for face in faces]
    written(tmp_path / 'meshes', '\n'.join(lines), 'a.obj')
    told = '<compiler meshdir="meshes"/><asset><mesh file="a.obj"/></asset>'
    link = description_of_mjcf(written(tmp_path, inferred(told))).links['l']
    assert link.inertial.mass == pytest.approx(1000.0)


def test_meshes_that_masses_are_inferred_from_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr('robodyn_ros.description.mjcf_source.LARGEST_MESHES', 1000)
    written(tmp_path, 'v 0 0 0\n' * 100, 'a.obj')
    for count, size in ((1, 200), (5, 60)):
        written(tmp_path, 'v 0 0 0\n' * size, 'a.obj')
        meshes = ''.join(f'<mesh name="{"a" * (k + 1)}" file="a.obj"/>' for k in range(count))
        shapes = ''.join(f'<geom type="mesh" mesh="{"a" * (k + 1)}"/>' for k in range(count))
        text = inferred(f'<asset>{meshes}</asset>')
        text = text.replace('<geom type="mesh" mesh="a"/>', shapes)
        with pytest.raises(UnreadableSource, match="mesh 'a.*over 1000 bytes"):
            description_of_mjcf(written(tmp_path, text))


@pytest.mark.parametrize(
    ('asset', 'words'),
    [
        ('<mesh name="a" builtin="cone" params="200000000 0.1"/>', "'200000000'; allowed: at mo"),
        ('<mesh name="a" file="none.stl"/>', "none.stl'; allowed: a file, or the link's <inert"),
        ('<mesh name="a" file="pipe.stl"/>', "pipe.stl'; allowed: a file, or the link's <inert"),
    ],
)
def test_a_mesh_that_cannot_give_a_mass_is_refused_by_name(asset, words, tmp_path):
    os.mkfifo(tmp_path / 'pipe.stl')
    path = written(tmp_path, inferred(f'<asset>{asset}</asset>'))
    with pytest.raises(RobodynError, match=f"mesh.* 'a'.*{words}"):
        description_of_mjcf(path)


@pytest.mark.parametrize(
    'head',
    [
        '<asset><mesh name="a" file="none.stl"/></asset>',
        '<asset><mesh name="a" builtin="supertorus" params="20000 0.1 1 1"/></asset>',
        '<asset><texture name="t" type="2d" file="/none.png"/><material name="a" texture="t"/>'
        '</asset>',
        '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>',
        '<size nkey="2000000000" memory="100G" nuserdata="2000000000"/>',
        '<compiler><lengthrange mode="all" interval="1e9" timestep="1e-9" inttotal="1e12"/>'
        '</compiler>',
    ],
    ids=['missing', 'torus', 'texture', 'terrain', 'size', 'lengthrange'],
)
def test_what_no_model_is_made_of_costs_nothing(head, tmp_path):
    shapes = '<geom type="mesh" mesh="a" material="a"/>' if 'name="a"' in head else ''
    tail = '<actuator><muscle joint="j"/></actuator>' if 'lengthrange' in head else ''
    model = rd.RobotModel.from_mjcf(written(tmp_path, one(head, shapes=shapes, tail=tail)))
    assert model.joint_names == ('j',)


BALL = '<geom size="0.1" {}/>'
VISUAL = '<default><default class="seen"><geom mass="0"/></default></default>'


@pytest.mark.parametrize(
    ('head', 'geom', 'ball'),
    [
        ('', 'mass="0"', ''),
        ('', 'density="0"', ''),
        (VISUAL, 'class="seen"', ''),
        (VISUAL.replace('mass="0"', 'group="2"'), 'class="seen"', 'group="3"'),
        ('', 'group="2"', 'group="3"'),
    ],
)
def test_a_shape_without_a_mass_needs_no_mesh(head, geom, ball, tmp_path):
    ranges = '<compiler inertiagrouprange="3 4"/>' if ball else ''
    mesh = '<asset><mesh name="a" file="none.stl"/></asset>'
    text = inferred(ranges + head + mesh).replace(
        '<geom type="mesh" mesh="a"/>', f'<geom type="mesh" mesh="a" {geom}/>{BALL.format(ball)}'
    )
    link = description_of_mjcf(written(tmp_path, text)).links['l']
    assert link.inertial.mass == pytest.approx(4.0 / 3.0 * np.pi * 0.1**3 * 1000.0)


@pytest.mark.parametrize('joint', ['', '<joint/>', '<frame><joint/></frame>'])
def test_only_what_stands_still_needs_no_mesh_for_its_mass(joint, tmp_path):
    base = f'<body name="base">{joint}<geom type="mesh" mesh="a"/><body name="l">'
    text = one('<asset><mesh name="a" file="none.stl"/></asset>')
    text = text.replace('<body name="l">', base).replace('</body>', '</body></body>')
    path = written(tmp_path, text)
    if joint:
        with pytest.raises(UnreadableSource, match="mesh 'a'"):
            description_of_mjcf(path)
    else:
        assert description_of_mjcf(path).links['l'].inertial.mass == 1.0


def test_a_total_mass_counts_what_stands_still(tmp_path):
    base = '<body name="base"><geom size="0.1" mass="3"/><body name="l">'
    text = one('<compiler settotalmass="1"/>').replace('<body name="l">', base)
    path = written(tmp_path, text.replace('</body>', '</body></body>'))
    mass = mujoco.MjModel.from_xml_path(str(path)).body('l').mass[0]
    assert description_of_mjcf(path).links['l'].inertial.mass == pytest.approx(mass)


@pytest.mark.parametrize('scheme', ['package://nowhere/', 'file:///nowhere/', ''])
def test_a_urdf_needs_no_mesh(scheme):
    text = two_link_urdf()
    shape = f'<geometry><mesh filename="{scheme}none.stl"/></geometry>'
    meshes = f'<visual>{shape}</visual><collision>{shape}</collision></link>'
    found = rd.RobotModel.from_urdf_text(text.replace('</link>', meshes))
    assert found == rd.RobotModel.from_urdf_text(text)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (one(joint='ref="nan"'), "joint 'j' ref: nan"),
        (one(joint='limited="true" range="nan 1"'), "joint 'j' range: nan"),
        (one(joint='damping="1e308"'), "joint 'j' damping: 1e\\+308"),
        (one(joint='frictionloss="1e308"'), "joint 'j' frictionloss: 1e\\+308"),
        (one(joint='armature="-1"'), "joint 'j' armature: -1.0; allowed: zero or more"),
        (one(tail='<actuator><motor joint="j" gear="nan"/></actuator>'), "joint 'j' .*: nan"),
        (one(tail='<actuator><motor joint="j" nsample="2000000000"/></actuator>'), 'nsample'),
        (one(tail='<sensor>' + '<clock/>' * 20000 + '</sensor>'), 'elements, repeated ones'),
        (one(shapes='<flexcomp name="f" type="gmsh" file="f.msh" dim="2"/>'), 'file: .f.msh'),
    ],
)
def test_a_number_that_no_joint_has_is_refused_by_name(text, words, tmp_path):
    with pytest.raises(MalformedUrdf, match=words):
        rd.RobotModel.from_mjcf(written(tmp_path, text))


def test_an_include_that_is_no_file_or_comes_twice_is_refused(tmp_path):
    os.mkfifo(tmp_path / 'pipe.xml')
    with pytest.raises(UnreadableSource, match='pipe.xml'):
        description_of_mjcf(written(tmp_path, '<mujoco><include file="pipe.xml"/></mujoco>'))
    with pytest.raises(MalformedUrdf, match="include: 'arm.xml'; allowed: each file once"):
        description_of_mjcf(written(tmp_path, '<mujoco><include file="arm.xml"/></mujoco>'))


@pytest.mark.parametrize(
    ('count', 'text'),
    [(300, '<mujoco/>'), (30, '<mujoco><include file="part{next}.xml"/></mujoco>')],
    ids=['many', 'deep'],
)
def test_too_many_files_are_refused_by_the_name_of_one_too_many(count, text, tmp_path):
    for k in range(count + 1):
        part = text if k < count else '<mujoco/>'
        written(tmp_path, part.replace('{next}', str(k + 1)), f'part{k}.xml')
    named = range(count if 'next' not in text else 1)
    includes = ''.join(f'<include file="part{k}.xml"/>' for k in named)
    with pytest.raises(MalformedUrdf, match=r"include: 'part\d+.xml'; allowed: at most 200 files"):
        description_of_mjcf(written(tmp_path, f'<mujoco>{includes}</mujoco>'))


def test_elements_that_files_nest_deeper_than_one_may_are_refused(tmp_path):
    for k in range(3):
        more = f'<include file="part{k + 1}.xml"/>' if k < 2 else ''
        text = '<mujoco>' + 200 * '<body>' + more + 200 * '</body>' + '</mujoco>'
        written(tmp_path, text, f'part{k}.xml')
    main = written(tmp_path, '<mujoco><include file="part0.xml"/></mujoco>')
    with pytest.raises(MalformedUrdf, match='<body> within 251 elements;'):
        description_of_mjcf(main)


@pytest.mark.parametrize('link', ['link.xml', 'up/outside.xml'])
@pytest.mark.parametrize('text', ['<mujoco><include file="{}"/></mujoco>', None])
def test_no_link_leads_outside_of_the_folder_of_an_mjcf(link, text, tmp_path):
    text = text or inferred('<asset><mesh name="a" file="{}"/></asset>')
    folder = tmp_path / 'robot'
    folder.mkdir()
    written(tmp_path, '<mujoco/>', 'outside.xml')
    (folder / 'link.xml').symlink_to('../outside.xml')
    (folder / 'up').symlink_to('..')
    with pytest.raises(MalformedUrdf, match='a file in the folder of the MJCF, or below it'):
        description_of_mjcf(written(folder, text.replace('{}', link)))


def test_an_installation_of_links_is_read(tmp_path):
    source, installed = tmp_path / 'source', tmp_path / 'installed'
    for folder in (source, installed):
        folder.mkdir()
    written(source, '<mujoco><include file="part.xml"/></mujoco>')
    written(source, one(), 'part.xml')
    for file in source.iterdir():
        (installed / file.name).symlink_to(file)
    assert list(description_of_mjcf(installed / 'arm.xml').joints) == ['j']


def test_an_obj_file_has_no_more_faces_than_an_stl_file(tmp_path, monkeypatch):
    monkeypatch.setattr('robodyn_ros.description.mjcf_source._MOST_FACES', 3)
    text = '\r'.join(['v 0 0 0', 'v 1 0 0', 'v 0 1 0', 'v 0 0 1', *(4 * [' f 1 2 3'])])
    written(tmp_path, text, 'a.obj')
    path = written(tmp_path, inferred('<asset><mesh name="a" file="a.obj"/></asset>'))
    with pytest.raises(UnreadableSource, match='over 3 faces'):
        description_of_mjcf(path)


@pytest.mark.parametrize('name', ['shared.xacro', 'linked.xml', 'plain.xml'])
def test_what_an_mjcf_includes_is_never_expanded(name, tmp_path):
    code = '<mujoco xmlns:xacro="http://www.ros.org/wiki/xacro"><option wind="${1/0}"/></mujoco>'
    written(tmp_path, code, 'shared.xacro')
    written(tmp_path, code, 'plain.xml')
    (tmp_path / 'linked.xml').symlink_to('shared.xacro')
    main = written(tmp_path, f'<mujoco><include file="{name}"/></mujoco>')
    words = 'wind' if name == 'plain.xml' else 'a .xacro is code, and not run'
    for read in (description_of_mjcf, rd.RobotModel.from_mjcf):
        with pytest.raises(MalformedUrdf, match=words):
            read(main)


def test_an_mjcf_is_read_as_plain_bytes_whatever_its_name(tmp_path):
    path = written(tmp_path, one().replace('"j"', '"j${1 + 1}"'), 'arm.xacro')
    assert list(description_of_mjcf(path).joints) == ['j${1 + 1}']


def test_names_of_an_mjcf_in_latin_1_are_read(tmp_path):
    path = tmp_path / 'arm.xml'
    path.write_bytes(one().replace('"j"', '"é"').encode('latin-1'))
    assert rd.RobotModel.from_mjcf(path).joint_names == ('é',)


def test_mujoco_that_is_missing_is_named(tmp_path, monkeypatch):
    path = written(tmp_path, HARD)
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(NoBackend, match='pip install mujoco'):
        rd.RobotModel.from_mjcf(path)


def test_an_mjcf_is_distinguished_from_a_urdf_by_name_and_root(tmp_path):
    assert is_mjcf(written(tmp_path, HARD))
    assert is_mjcf(written(tmp_path, HARD, 'arm.mjcf'))
    assert not is_mjcf(written(tmp_path, '<robot name="x"><link name="a"/></robot>'))
    assert not is_mjcf(HARD)
    assert not is_mjcf('panda_description')


# --- public robots -------------------------------------------------------------------------------


def public_mjcfs() -> list[Path]:
    """Return the robots and grippers of robosuite, where it is installed."""
    found = importlib.util.find_spec('robosuite')
    if found is None or found.origin is None:
        return []
    assets = Path(found.origin).parent / 'models' / 'assets'
    return sorted([*assets.glob('robots/*/robot.xml'), *assets.glob('grippers/*.xml')])


@pytest.mark.slow
@pytest.mark.skipif(not public_mjcfs(), reason='robosuite is not installed (157 MB)')
def test_torques_of_public_mjcfs_are_those_of_mujoco():
    refused: Counter[str] = Counter()
    worst, count = 0.0, 0
    for path in public_mjcfs():
        try:
            description = description_of_mjcf(path)
        except MalformedUrdf as error:
            refused[str(error.value)] += 1
            continue
        found, reasons = chains(description)
        refused += reasons
        try:
            without_what_is_not_in_the_model(path)
        except ValueError as error:  # what it draws is at fault, which we do not read
            refused[f'MuJoCo alone: {error}'] += 1
            continue
        count += len(found)
        for chain in found:
            difference = disagreement(path, chain)
            assert difference < 1e-9, (path, chain.joint_names)
            worst = max(worst, difference)
    print(f'{count} chains, worst {worst:.1e}, refused {dict(refused)}')
    assert count > 30
