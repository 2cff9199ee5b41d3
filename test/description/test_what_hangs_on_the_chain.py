# SPDX-License-Identifier: Apache-2.0
"""Links off the chain: lumped, locked, massless, on the root; and the choice of the chain."""

import math

import numpy as np
import pytest
from known_arms import known_arm, urdf_of
from oracles import PinocchioArm, random_states, relative_difference

import robodyn_ros as rd
from robodyn_ros import errors

BOX = (
    '<inertial><origin xyz="0.1 0 0.05"/><mass value="2"/><inertia ixx="0.02" iyy="0.03" '
    'izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>'
)


LIMIT = '<limit lower="-2" upper="2" effort="50" velocity="3"/>'


def link(name, inertial=''):
    return f'<link name="{name}">{inertial}</link>'


def joint(name, kind, parent, child, extra='', xyz='0 0 0.3'):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="0.2 0 0"/>{extra}{LIMIT}</joint>'
    )


def robot(*parts):
    return f'<robot name="r">{"".join(parts)}</robot>'


ARM = (
    link('base'),
    joint('j1', 'revolute', 'base', 'l1', '<axis xyz="0 0 1"/>'),
    link('l1', BOX),
    joint('j2', 'revolute', 'l1', 'l2', '<axis xyz="0 1 0"/>'),
    link('l2', BOX),
)
GRIPPER = (
    joint('finger', 'prismatic', 'l2', 'f1', '<axis xyz="1 0 0"/>'),
    link('f1', BOX),
    joint('thumb', 'revolute', 'l2', 'f2', '<axis xyz="0 1 0"/>'),
    link('f2', BOX),
)


def agrees_with_pinocchio(text, arm, locked=None):
    oracle = PinocchioArm.of(text, arm, locked)
    for state in zip(*random_states(arm, 5, seed=11)):
        assert relative_difference(rd.inverse_dynamics(arm, *state), oracle.torque(*state)) < 1e-9


def found(arm, **wanted):
    """Return the finding with these attributes, of which there is one."""
    (finding,) = [f for f in arm.findings if all(getattr(f, key) == wanted[key] for key in wanted)]
    return finding


def test_link_without_inertial_has_no_mass_which_is_found():
    arm = rd.RobotModel.from_urdf(robot(*ARM[:-1], link('l2')))
    assert arm.inertial_parameters[1].tolist() == [0.0] * 10
    assert found(arm, code='no_mass').element == "link 'l2'"


def test_what_is_fixed_to_a_link_is_lumped_into_it():
    text = robot(
        *ARM,
        joint('f', 'fixed', 'l1', 'box'),
        link('box', BOX),
        joint('g', 'fixed', 'box', 'lid'),
        link('lid', BOX),
        joint('h', 'fixed', 'l2', 'a'),
        link('a', BOX),
        joint('i', 'fixed', 'l2', 'b', xyz='0.2 0 0'),
        link('b', BOX),
    )
    arm = rd.RobotModel.from_urdf(text, tip_link='l2')
    assert arm.inertial_parameters[:, 9].tolist() == [6.0, 6.0]
    agrees_with_pinocchio(text, arm)


def test_joints_off_the_chain_are_locked_at_zero_or_as_given_with_a_finding():
    text = robot(*ARM, *GRIPPER)
    for positions in ({}, {'finger': 0.04, 'thumb': -0.7}):
        arm = rd.RobotModel.from_urdf(text, tip_link='l2', locked_positions=positions)
        agrees_with_pinocchio(text, arm, positions)
        locked = {f.element for f in arm.findings if f.code == 'locked_joint'}
        assert locked == {"joint 'finger'", "joint 'thumb'"}


def test_mimic_joint_off_the_chain_follows_its_locked_leader():
    mimic = '<axis xyz="0 1 0"/><mimic joint="finger" multiplier="-2" offset="0.1"/>'
    text = robot(*ARM, *GRIPPER[:2], joint('thumb', 'revolute', 'l2', 'f2', mimic), GRIPPER[3])
    arm = rd.RobotModel.from_urdf(text, tip_link='l2', locked_positions={'finger': 0.04})
    agrees_with_pinocchio(text, arm, {'finger': 0.04, 'thumb': -2 * 0.04 + 0.1})
    finding = found(arm, element="joint 'thumb'")
    assert finding.value == pytest.approx(0.02)
    assert "'finger'" in finding.message


def test_mimic_joint_off_the_chain_of_a_joint_that_moves_is_a_warning():
    mimic = '<axis xyz="0 1 0"/><mimic joint="j1" offset="0.1"/>'
    text = robot(*ARM, joint('thumb', 'revolute', 'l2', 'f2', mimic), GRIPPER[3])
    arm = rd.RobotModel.from_urdf(text, tip_link='l2')
    agrees_with_pinocchio(text, arm, {'thumb': 0.1})
    assert found(arm, element="joint 'thumb'").level == 'warning'


def test_mimic_joint_that_leads_nowhere_is_a_warning():
    for leader in ('thumb', 'nobody'):
        mimic = f'<mimic joint="{leader}" offset="0.1"/>'
        text = robot(*ARM, joint('thumb', 'revolute', 'l2', 'f2', mimic), GRIPPER[3])
        arm = rd.RobotModel.from_urdf(text, tip_link='l2')
        assert found(arm, element="joint 'thumb'").level == 'warning'


def test_inertia_on_the_root_link_has_no_effect():
    text = robot(link('base', BOX), *ARM[1:])
    heavy, light = rd.RobotModel.from_urdf(text), rd.RobotModel.from_urdf(robot(*ARM))
    np.testing.assert_array_equal(heavy.inertial_parameters, light.inertial_parameters)


def test_dummy_and_world_links_change_nothing():
    text = robot(
        link('world'),
        joint('w', 'fixed', 'world', 'base'),
        *ARM,
        joint('d', 'fixed', 'l2', 'dummy'),
        link('dummy'),
        joint('t', 'fixed', 'dummy', 'tool0'),
        link('tool0'),
    )
    arm = rd.RobotModel.from_urdf(text)
    assert (arm.base_link, arm.tip_link) == ('world', 'tool0')
    agrees_with_pinocchio(text, arm)


def test_base_inside_the_tree_carries_only_what_lies_beyond():
    text = robot(*ARM, joint('j3', 'revolute', 'l2', 'l3'), link('l3', BOX))
    arm = rd.RobotModel.from_urdf(text, base_link='l1', tip_link='l3')
    assert arm.joint_names == ('j2', 'j3')
    agrees_with_pinocchio(text, arm)


def test_floating_joint_off_the_chain_is_locked_with_a_warning():
    text = robot(*ARM, joint('free', 'floating', 'l2', 'ball'), link('ball', BOX))
    arm = rd.RobotModel.from_urdf(text, tip_link='l2')
    assert found(arm, element="joint 'free'").level == 'warning'
    assert arm.inertial_parameters[1, 9] == 4.0


OTHERS = (
    joint('lift', 'prismatic', 'world', 'base', '<axis xyz="0 0 1"/>'),
    link('world', BOX),
    joint('neck', 'revolute', 'base', 'head', '<axis xyz="0 0 1"/>'),
    link('head', BOX),
    joint('mast', 'revolute', 'world', 'lamp', '<axis xyz="0 1 0"/>'),
    link('lamp', BOX),
    joint('dial', 'continuous', 'l2', 'needle', '<axis xyz="1 0 0"/>'),
    link('needle'),
    joint('drive', 'revolute', 'l2', 'spindle', '<axis xyz="1 0 0"/>'),
    link('spindle'),
    joint('driven', 'revolute', 'l2', 'jaw', '<axis xyz="1 0 0"/><mimic joint="drive"/>'),
    link('jaw', BOX),
    joint('wrist', 'revolute', 'l2', 'palm', '<axis xyz="1 0 0"/>'),
    link('palm'),
    joint('held', 'revolute', 'palm', 'ball', '<axis xyz="0 1 0"/>'),
    link('ball', BOX),
)


def test_joints_that_move_neither_base_nor_a_mass_of_the_model_are_named():
    text = robot(*ARM, *GRIPPER, *OTHERS)
    ends = {'base_link': 'base', 'tip_link': 'l2'}
    arm = rd.RobotModel.from_urdf(text, **ends)
    assert arm.unmodelled_joints == ('neck', 'mast', 'dial')
    for name in ('finger', 'thumb', *arm.unmodelled_joints, 'drive', 'wrist', 'held'):
        moved = rd.RobotModel.from_urdf(text, locked_positions={name: 0.4}, **ends)
        is_same = np.allclose(moved.inertial_parameters, arm.inertial_parameters, atol=1e-12)
        assert is_same == (name in arm.unmodelled_joints), name


def test_several_roots_need_a_base():
    text = robot(*ARM, link('elsewhere'))
    with pytest.raises(errors.NoChain, match="'elsewhere'"):
        rd.RobotModel.from_urdf(text)
    assert rd.RobotModel.from_urdf(text, base_link='base').n == 2


def test_joint_without_axis_turns_about_x():
    text = robot(link('base'), joint('j', 'revolute', 'base', 'l1'), link('l1', BOX))
    arm = rd.RobotModel.from_urdf(text)
    np.testing.assert_allclose(rd.jacobian(arm, [0.0])[3:, 0], [1, 0, 0], atol=1e-15)
    agrees_with_pinocchio(text, arm)


def test_axis_of_any_length_gives_the_same_arm():
    long = robot(*ARM).replace('xyz="0 1 0"', 'xyz="0 1e-7 0"')
    arm = rd.RobotModel.from_urdf(long)
    np.testing.assert_array_equal(
        arm.inertial_parameters, rd.RobotModel.from_urdf(robot(*ARM)).inertial_parameters
    )
    assert 'axis_not_unit' in {f.code for f in arm.findings}


def test_urchin_objects_give_the_same_arm():
    urchin = pytest.importorskip('urchin')
    ours = known_arm('panda')
    theirs = rd.RobotModel.from_urdfpy(
        urchin.URDF.load(str(urdf_of('panda')), lazy_load_meshes=True),
        base_link=ours.base_link,
        tip_link=ours.tip_link,
    )
    state = [x[0] for x in random_states(ours, 1, seed=12)]
    np.testing.assert_allclose(
        rd.inverse_dynamics(theirs, *state), rd.inverse_dynamics(ours, *state), atol=1e-9
    )
    for name in ('effort_limits', 'position_limits', 'velocity_limits', 'viscous_friction'):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))


def test_kilogram_that_urchin_invents_is_found(tmp_path):
    urchin = pytest.importorskip('urchin')
    path = tmp_path / 'arm.urdf'
    path.write_text(robot(*ARM, joint('f', 'fixed', 'l2', 'tool0'), link('tool0')))
    ours = rd.RobotModel.from_urdf(path)
    theirs = rd.RobotModel.from_urdfpy(urchin.URDF.load(str(path)))
    assert theirs.inertial_parameters[1, 9] == ours.inertial_parameters[1, 9] + 1.0
    assert found(theirs, code='placeholder_inertial').element == "link 'tool0'"


def test_object_that_is_no_robot():
    with pytest.raises(errors.MalformedUrdf, match='dict'):
        rd.RobotModel.from_urdfpy({'links': []})


def test_xacro_files_are_expanded_where_xacro_is_installed_and_name_themselves(tmp_path):
    pytest.importorskip('xacro')
    path = tmp_path / 'arm.urdf.xacro'
    path.write_text(
        robot(*ARM)
        .replace('<robot ', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')
        .replace(
            '<link name="base">', '<xacro:property name="m" value="${1 + 2}"/><link name="base">'
        )
        .replace('mass value="2"', 'mass value="${m}"')
    )
    assert rd.RobotModel.from_urdf(path).inertial_parameters[:, 9].tolist() == [3.0, 3.0]
    path = tmp_path / 'arm.xacro'
    path.write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="${nothing}"/>')
    with pytest.raises(errors.MalformedUrdf, match=r"arm\.xacro.*name 'nothing' is not defined"):
        rd.RobotModel.from_urdf(path)


@pytest.mark.longer
@pytest.mark.parametrize(
    ('longest', 'expression', 'words'),
    [
        (1.0, '9**9**9', 'not expanded within 1 s'),
        (60.0, "'a' * 10**12", 'when evaluating expression'),
        (60.0, "'a' * 2**25", 'over 16777216 bytes'),
    ],
)
def test_xacro_that_takes_too_much_is_ended(longest, expression, words, tmp_path, monkeypatch):
    pytest.importorskip('xacro')
    monkeypatch.setattr('robodyn_ros.description.source.LONGEST_EXPANSION', longest)
    path = tmp_path / 'arm.xacro'
    path.write_text(
        f'<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="${{{expression}}}"/>'
    )
    with pytest.raises(errors.RobodynError, match=words):
        rd.RobotModel.from_urdf(path)


def test_xacro_imports_nothing_from_the_folder_that_it_is_called_in(tmp_path, monkeypatch):
    pytest.importorskip('xacro')
    for name in ('xacro', 'json', 'resource', 'yaml'):
        (tmp_path / f'{name}.py').write_text('raise SystemExit')
    path = tmp_path / 'arm.xacro'
    path.write_text(robot(*ARM))
    monkeypatch.chdir(tmp_path)
    assert rd.RobotModel.from_urdf(path).n == 2


CHECKS = {
    'inertia_not_positive': ('ixx="0.02"', 'ixx="-0.02"'),
    'triangle_inequality': ('ixx="0.02"', 'ixx="0.2"'),
    'far_center_of_mass': ('xyz="0.1 0 0.05"', 'xyz="100 0 0.05"'),
    'half_inertial': ('mass value="2"', 'mass value="0"'),
    'large_inertia': ('ixx="0.02" iyy="0.03" izz="0.03"', 'ixx="20" iyy="30" izz="30"'),
    'mass_ratio': ('mass value="2"', 'mass value="0.002"'),
}


@pytest.mark.parametrize('code', CHECKS)
def test_checker_finds_and_does_not_repair(code):
    old, new = CHECKS[code]
    sound = robot(*ARM)
    head, tail = sound.split('<link name="l2">')
    text = f'{head}<link name="l2">{tail.replace(old, new)}'
    arm = rd.RobotModel.from_urdf(text)
    finding = found(arm, code=code)
    assert finding.level in ('warning', 'info')
    assert 'l2' in finding.element
    assert code not in {f.code for f in rd.RobotModel.from_urdf(sound).findings}
    agrees_with_pinocchio(text, arm)


@pytest.mark.parametrize(
    ('limit', 'code'),
    [
        ('<limit lower="-1" upper="1" velocity="1"/>', 'effort_limit'),
        ('<limit lower="-1" upper="1" velocity="1" effort="0"/>', 'effort_limit'),
        ('<limit lower="1" upper="-1" velocity="1" effort="9"/>', 'position_limits'),
        ('<limit velocity="1" effort="9"/>', 'position_limits'),
        (
            '<limit lower="-1" upper="1" velocity="1" effort="9"/><dynamics damping="-1"/>',
            'negative_friction',
        ),
    ],
)
def test_checker_compares_limits(limit, code):
    text = robot(*ARM).replace(f'<axis xyz="0 1 0"/>{LIMIT}', f'<axis xyz="0 1 0"/>{limit}')
    assert (code, "joint 'j2'") in {
        (f.code, f.element) for f in rd.RobotModel.from_urdf(text).findings
    }


def changed_arm(*edits):
    text = robot(*ARM)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return rd.RobotModel.from_urdf(text)


def levels(arm):
    return {finding.code: finding.level for finding in arm.findings}


@pytest.mark.parametrize(
    ('edit', 'code', 'level'),
    [
        (('effort="', 'effort="9999999'), 'effort_limit', 'warning'),
        (('velocity="', 'velocity="9999999'), 'velocity_limit', 'info'),
        (('lower="-', 'lower="-180'), 'position_limits', 'info'),
        (('rpy="0.2 0 0"', 'rpy="90 0 0"'), 'large_angle', 'warning'),
        (('0.3" rpy', '300" rpy'), 'long_link', 'warning'),
    ],
)
def test_units_and_limits_that_no_arm_has_are_found(edit, code, level):
    assert levels(changed_arm(edit)).get(code) == level
    assert code not in levels(changed_arm())


def test_printed_finding_is_a_sentence_with_the_number_where_it_belongs():
    arm = changed_arm(
        ('effort="50"', 'effort="-3"'), ('lower="-2" upper="2"', 'lower="9" upper="2"')
    )
    printed = {str(finding) for finding in arm.findings}
    assert "joint 'j1' has an effort limit of -3 N m" in printed
    assert "joint 'j2' has inverted position limits, 9 to 2 rad" in printed


def test_an_arm_without_any_mass_is_one_warning():
    bare = [part.replace(BOX, '') for part in ARM]
    (finding,) = rd.RobotModel.from_urdf(robot(*bare)).findings
    assert (finding.code, finding.level) == ('no_masses', 'warning')
    assert 'every torque is 0' in finding.message


def test_an_arm_of_placeholders_is_found():
    grams = ('mass value="2"', 'mass value="0.01"')
    assert levels(changed_arm(grams))['light_arm'] == 'warning'
    three = robot(*ARM, link('l3', BOX), joint('j3', 'revolute', 'l2', 'l3', LIMIT))
    assert levels(rd.RobotModel.from_urdf(three))['equal_masses'] == 'warning'
    other = three.replace('mass value="2"', 'mass value="3"', 1)
    assert 'equal_masses' not in levels(rd.RobotModel.from_urdf(other))


def test_a_link_that_weighs_nothing_beside_two_heavy_ones_is_one_warning():
    text = robot(*ARM, link('l3', BOX), joint('j3', 'revolute', 'l2', 'l3', LIMIT))
    head, tail = text.split('<link name="l2">')
    text = head + '<link name="l2">' + tail.replace('mass value="2"', 'mass value="1e-8"', 1)
    found = [f for f in rd.RobotModel.from_urdf(text).findings if f.code == 'mass_ratio']
    assert [f.element for f in found] == ["link 'l2'"]


def test_warnings_come_first_and_what_costs_most_torque_before_the_rest():
    heavy = ('ixx="0.02" iyy="0.03" izz="0.03"', 'ixx="20" iyy="30" izz="30"')
    arm = changed_arm(heavy, ('effort="', 'effort="-'), ('velocity="', 'velocity="9999999'))
    codes = [finding.code for finding in arm.findings]
    assert codes == ['large_inertia'] * 2 + ['effort_limit'] * 2 + ['velocity_limit'] * 2
    # The triangle inequality of link 1 is off by 0.1 kg m², that of link 2 by 1 kg m².
    parts = [part.replace('ixx="0.02"', f'ixx="{x}"') for part, x in zip(ARM, (0, 0, 0.1, 0, 1))]
    found = rd.RobotModel.from_urdf(robot(*parts)).findings
    assert [f.element for f in found if f.code == 'triangle_inequality'] == [
        "link 'l2'",
        "link 'l1'",
    ]


def test_sound_arm_has_no_warnings():
    arm = known_arm('panda')
    assert not [f for f in arm.findings if f.level == 'warning']
    lumped = found(arm, code='lumped_mass')
    assert math.isclose(lumped.value, 0.76)
    assert "'panda_hand'" in str(lumped)
