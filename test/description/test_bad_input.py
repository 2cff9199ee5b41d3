# SPDX-License-Identifier: Apache-2.0
"""Each malformed description or argument: one error that names the element and the value."""

import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from robots import two_link_urdf
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.control.command_pipeline import NotFollowing
from robodyn_ros.description.source import LARGEST_SOURCE
from robodyn_ros.description.urdf import urdf_text
from robodyn_ros.parameters import energy_regressor

SOUND = two_link_urdf()


def broken(old: str, new: str) -> str:
    assert old in SOUND
    return SOUND.replace(old, new, 1)


def with_fixed_joint(name: str, parent: str, child: str) -> str:
    return SOUND.replace('</robot>', joint(name, parent, child, 'fixed') + '</robot>')


def error_from(kind, source, **arguments):
    with pytest.raises(kind) as caught:
        rd.RobotModel.from_urdf(source, **arguments)
    assert isinstance(caught.value, errors.RobodynError)
    assert caught.value.allowed
    return str(caught.value)


def test_source_that_cannot_be_read_or_is_too_large(tmp_path):
    large = tmp_path / 'large.urdf'
    with large.open('wb') as file:
        file.truncate(100_000_000)
    for source, words in (
        (tmp_path / 'nowhere.urdf', 'nowhere.urdf'),
        (tmp_path, str(tmp_path)),
        (7, 'int'),
        (large, str(LARGEST_SOURCE)),
        (f'<robot name="r"><!--{"x" * LARGEST_SOURCE}--></robot>', str(LARGEST_SOURCE)),
    ):
        assert words in error_from(errors.UnreadableSource, source)
    notes = tmp_path / 'notes.urdf'
    notes.write_text('two links and a joint')
    assert 'well-formed XML' in error_from(errors.MalformedUrdf, notes)


@pytest.mark.parametrize('name', ['arm.urdf', 'arm.urdf.xacro'])
def test_text_that_is_a_path_is_refused_and_nothing_is_opened(name, tmp_path, monkeypatch):
    path = tmp_path / name
    path.write_text(SOUND)
    assert rd.RobotModel.from_urdf(str(path)).n == 2
    opened = []

    def open_nothing(*arguments, **options):
        opened.append(arguments)
        raise OSError

    for module, function in (
        ('builtins', 'open'),
        ('io', 'open'),
        ('os', 'open'),
        ('os', 'stat'),
        ('xacro', 'process_file'),
    ):
        monkeypatch.setattr(f'{module}.{function}', open_nothing)
    with pytest.raises(errors.MalformedUrdf) as caught:
        rd.RobotModel.from_urdf_text(str(path))
    monkeypatch.undo()
    assert name in str(caught.value)
    assert str(path) not in str(opened)


def test_text_is_a_str_that_begins_with_xml():
    assert rd.RobotModel.from_urdf_text(f'\ufeff\n {SOUND}').n == 2
    for text in ('', '  ', 'robot', f'x{SOUND}'):
        with pytest.raises(errors.MalformedUrdf):
            rd.RobotModel.from_urdf_text(text)
    with pytest.raises(errors.UnreadableSource, match='PosixPath'):
        rd.RobotModel.from_urdf_text(Path('arm.urdf'))


def test_file_that_is_sent_on_is_utf_8_or_refused_by_name(tmp_path):
    path = tmp_path / 'latin.urdf'
    path.write_bytes(SOUND.replace('two_link', 'zwei_glieder_für').encode('latin-1'))
    with pytest.raises(errors.MalformedUrdf, match='latin.urdf.*allowed: UTF-8'):
        urdf_text(path)
    with pytest.raises(errors.UnreadableSource, match='nowhere.urdf'):
        urdf_text(tmp_path / 'nowhere.urdf')


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('kind', ['revolute', 'fixed'])
@pytest.mark.parametrize('count', [3000, 100_000])
def test_thousands_of_joints_are_refused_by_their_number(count, kind):
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    joints = ''.join(
        f'<link name="{k}"/><joint name="j{k}" type="{kind}"><parent link="{k}"/>'
        f'<child link="{k + 1}"/>{limit if count < 10_000 else ""}</joint>'
        for k in range(count)
    )
    text = f'<robot name="r">{joints}<link name="{count}"/></robot>'
    begin = time.process_time()
    words = error_from(errors.MalformedUrdf, text)
    print(f'{count} {kind} joints: {time.process_time() - begin:.2f} s')
    assert 'more than 2000 links and joints' in words


AXIS, MASS = 'axis xyz="0 0 1"', 'mass value="1.0"'
MALFORMED = {
    'cut short': (SOUND[:200], 'XML'),
    'of another root': ('<sdf/>', "'sdf'"),
    'without links': ('<robot name="r"/>', 'no <link>'),
    **{
        f'axis {xyz}': (broken(AXIS, f'axis xyz="{xyz}"'), "'joint1'", value)
        for xyz, value in (
            ('0 0 0', '[0.0, 0.0, 0.0]'),
            ('-0 0 0', '[0.0, 0.0, 0.0]'),
            ('0 nan 1', ''),
            ('0 inf 1', ''),
            ('0 1e400 1', ''),
        )
    },
    **{
        f'mass {mass}': (broken(MASS, f'mass value="{mass}"'), "link 'link1' mass")
        for mass in ('-1', 'nan', 'inf', '1e400')
    },
    **{
        f'mass {word!r}': (broken(MASS, f'mass value="{word}"'), repr(word))
        for word in ('heavy', '1,5', '1_0', '0x10', '', '1 2')
    },
    'vector of two numbers': (broken('xyz="0.5 0 0"', 'xyz="0.5 0"'), '3 numbers'),
    'without ixx': (broken(' ixx="0', ' unknownixx="0'), 'ixx'),
    'without iyz': (broken(' iyz="0', ' unknowniyz="0'), 'iyz'),
    'joint without parent': (broken('<parent link="base"/>', ''), "joint 'joint1'"),
    'unknown parent': (broken('<parent link="base"/>', '<parent link="ground"/>'), "'ground'"),
    'unknown type': (broken('type="continuous"', 'type="spherical"'), "'spherical'"),
    'joint without a name': (broken('name="joint1" ', ''), 'line 1'),
    'link name given twice': (broken('<link name="link2">', '<link name="link1">'), "'link1'"),
    'joint name given twice': (broken('name="joint2"', 'name="joint1"'), "'joint1'", 'once'),
    'link with two parents': (with_fixed_joint('again', 'base', 'link2'), "'again'"),
    'joints that close a loop': (with_fixed_joint('back', 'link2', 'base'), 'loops'),
    'entity that nothing declares': (broken('"1.0"', '"&mass;"'), "'mass'"),
    **{
        f'document type {declaration}': (f'<!DOCTYPE robot {declaration}>{SOUND}', 'DOCTYPE')
        for declaration in (
            'SYSTEM "robot.dtd"',
            'PUBLIC "-//x" "robot.dtd"',
            '[<!ENTITY a "b">]',
            '[<!ENTITY % a "b">]',
        )
    },
    'entities of what is no sound XML either': (
        f'\n<!DOCTYPE robot [<!ENTITY a "b">]>{SOUND}'.replace('<link', '<x:y/><link', 1),
        "entity 'a'",
    ),
    'more undeclared prefixes than anyone has': (
        broken('<link', ''.join(f'<p{i}:x/>' for i in range(100)) + '<link'),
        'prefix',
    ),
}


@pytest.mark.parametrize('how', MALFORMED)
def test_malformed_urdf_is_refused_by_what_is_wrong(how):
    text, *words = MALFORMED[how]
    message = error_from(errors.MalformedUrdf, text)
    assert all(word in message for word in words)


def test_arguments_that_do_not_go_with_the_robot_are_refused():
    for kind, arguments, *words in (
        (errors.NoSuchName, {'tip_link': 'hand'}, "'hand'", "'link2'"),
        (errors.NoChain, {'base_link': 'link2', 'tip_link': 'link1'}, "'link2'"),
        (errors.NoChain, {'base_link': 'link1', 'tip_link': 'link1'}, "'link1'"),
        (errors.NoSuchName, {'locked_positions': {'finger': 0.0}}, "'finger'"),
        (errors.InvalidArgument, {'locked_positions': {'joint1': 0.0}}, "'joint1'"),
        (errors.InvalidArgument, {'gravity': (0, 0)}, 'gravity'),
        (errors.NonFiniteValue, {'gravity': (0, 0, np.nan)}, 'gravity[2]'),
        (errors.InvalidArgument, {'mimic': 'copy'}, "'copy'"),
    ):
        message = error_from(kind, SOUND, **arguments)
        assert all(word in message for word in words), arguments


def test_joint_that_no_serial_chain_holds():
    for kind in ('floating', 'planar'):
        text = broken('type="continuous"', f'type="{kind}"')
        assert kind in error_from(errors.UnsupportedJoint, text)


def test_mimic_joint_on_the_chain():
    text = broken('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="joint2"/>')
    error = error_from(errors.UnsupportedJoint, text)
    assert "'joint2'" in error and error.endswith("no mimic joint, unless mimic='independent'")
    assert rd.RobotModel.from_urdf(text, mimic='independent').n == 2


@pytest.mark.parametrize(
    'error',
    [
        errors.UnsupportedJoint('joint', 'mimics', 'none', choice=('mimic', 'independent')),
        NotFollowing('trajectory', 'the mode follows none', 'set another'),
    ],
    ids=['with a choice', 'with words of its own'],
)
def test_errors_keep_their_words_in_a_pickle(error):
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), str(twin), twin.choice) == (type(error), str(error), error.choice)


def test_entity_bomb():
    entities = '<!ENTITY a "aaaaaaaaaa">' + ''.join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip('abcdefgh', 'bcdefghi')
    )
    bomb = f'<!DOCTYPE robot [{entities}]><robot name="&i;"/>'
    assert 'XML' in error_from(errors.MalformedUrdf, bomb)


def test_external_entity(tmp_path):
    secret = tmp_path / 'secret'
    secret.write_text('hunter2')
    text = f'<!DOCTYPE robot [<!ENTITY x SYSTEM "{secret.as_uri()}">]>' + SOUND.replace(
        '<robot name="two_link">', '<robot name="two_link">&x;'
    )
    assert 'hunter2' not in error_from(errors.MalformedUrdf, text)


def test_macros_that_were_not_expanded_where_no_joint_is_left():
    text = (
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/>'
        '<link name="a"/></robot>'
    )
    assert 'xacro' in error_from(errors.NoChain, text)


def test_arguments_of_the_wrong_shape_or_value_are_named():
    arm = rd.RobotModel.from_urdf(SOUND)
    two, three = np.zeros(2), np.zeros(3)
    for named, call in (
        ('qdd', lambda: rd.inverse_dynamics(arm, two, two, three)),
        ('qd', lambda: rd.inverse_dynamics(arm, [two] * 4, two, two)),
        ('tip_wrench', lambda: rd.inverse_dynamics(arm, two, two, two, tip_wrench=three)),
        ('q', lambda: rd.mass_matrix(arm, three)),
        ('q', lambda: rd.forward_kinematics(arm, [[two]])),
        ('q', lambda: rd.jacobian(arm, 1.0)),
        ('q', lambda: rd.gravity_torque(arm, 'ab')),
        ('q', lambda: rd.christoffel_symbols(arm, three)),
        ('qd', lambda: rd.coriolis_matrix(arm, two, three)),
        ('qd', lambda: rd.friction_torque(arm, three)),
        ('rigid_torque', lambda: rd.friction_torque(arm, [two] * 4, rigid_torque=two)),
        ('qd', lambda: rd.forward_dynamics(arm, two, three, two)),
        ('qd', lambda: rd.inverse_dynamics_derivatives(arm, two, three, two)),
        ('qd', lambda: rd.forward_dynamics_derivatives(arm, two, three, two)),
        ('qd', lambda: rd.linearization(arm, two, three, two)),
        ('qd', lambda: rd.regressor(arm, two, three, two)),
        ('q', lambda: energy_regressor(arm, three, three)),
        ('', lambda: arm.with_inertial_parameters(np.zeros((2, 9)))),
        ('', lambda: arm.with_rotor_inertia(three)),
    ):
        with pytest.raises(errors.InvalidArgument, match=f'argument {named}'):
            call()
    for function in (
        rd.inverse_dynamics,
        rd.inverse_dynamics_derivatives,
        rd.forward_dynamics_derivatives,
        rd.linearization,
        rd.regressor,
    ):
        with pytest.raises(errors.NonFiniteValue, match=r'argument qd\[1\]: nan'):
            function(arm, two, [0, np.nan], two)
    with pytest.raises(errors.InvalidArgument, match='newton_euler'):
        rd.inverse_dynamics(arm, two, two, two, method='guess')
    with pytest.raises(errors.NoSuchName, match="'hand'"):
        arm.with_payload(rd.Payload(1.0, link='hand'))
    with pytest.raises(errors.InvalidArgument, match="'joint2'"):
        arm.with_rotor_inertia([0.1, -0.1])


@pytest.mark.parametrize(
    ('arguments', 'kind'),
    [
        ({'mass': -1.0}, errors.InvalidArgument),
        ({'mass': np.nan}, errors.NonFiniteValue),
        ({'mass': 1.0, 'center_of_mass': (0, 0)}, errors.InvalidArgument),
        ({'mass': 0.0, 'inertia': np.eye(3)}, errors.InvalidArgument),
        ({'mass': 1.0, 'inertia': -np.eye(3)}, errors.InvalidArgument),
        ({'mass': 1.0, 'inertia': np.diag([1.0, 1.0, 3.0])}, errors.InvalidArgument),
        ({'mass': 1.0, 'inertia': np.triu(np.ones((3, 3)))}, errors.InvalidArgument),
    ],
)
def test_payload_that_no_body_is_cannot_be_made(arguments, kind):
    with pytest.raises(kind, match='payload'):
        rd.Payload(**arguments)


def test_arm_whose_links_have_no_mass_has_no_accelerations():
    text = robot(link('a'), link('b'), joint('j', 'a', 'b'))
    arm = rd.RobotModel.from_urdf(text)
    with pytest.raises(errors.NoSolution, match='inertia about joint 1 is 0'):
        rd.forward_dynamics(arm, [0.0], [0.0], [1.0])


def test_home_folder_is_found_in_a_path_and_never_in_a_text(tmp_path, monkeypatch):
    (tmp_path / 'arm.urdf').write_text(two_link_urdf())
    monkeypatch.setenv('HOME', str(tmp_path))
    assert rd.RobotModel.from_urdf('~/arm.urdf').n == 2
    assert rd.RobotModel.from_urdf(Path('~/arm.urdf')).n == 2
    with pytest.raises(errors.MalformedUrdf, match='no path is opened here'):
        rd.RobotModel.from_urdf_text('~/arm.urdf')
    for missing in ('~/no.urdf', '~nobody_of_this_name/arm.urdf', '~\0/arm.urdf'):
        with pytest.raises(errors.UnreadableSource, match='no such file'):
            rd.RobotModel.from_urdf(missing)
