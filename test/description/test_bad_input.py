# SPDX-License-Identifier: Apache-2.0
"""Each malformed description or argument: one error that names the element and the value."""

import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.control.command_pipeline import FollowsNone
from robodyn_ros.description.source import LARGEST_SOURCE
from robodyn_ros.description.urdf import urdf_text

SOUND = two_link_urdf()


def broken(old: str, new: str) -> str:
    assert old in SOUND
    return SOUND.replace(old, new, 1)


def error_from(kind, source, **arguments):
    with pytest.raises(kind) as caught:
        rd.RobotModel.from_urdf(source, **arguments)
    assert isinstance(caught.value, errors.RobodynError)
    assert caught.value.allowed
    return str(caught.value)


def test_no_such_file(tmp_path):
    assert 'nowhere.urdf' in error_from(errors.UnreadableSource, tmp_path / 'nowhere.urdf')


def test_folder_instead_of_a_file(tmp_path):
    assert str(tmp_path) in error_from(errors.UnreadableSource, tmp_path)


def test_source_of_another_type():
    assert 'int' in error_from(errors.UnreadableSource, 7)


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


def test_not_xml(tmp_path):
    path = tmp_path / 'notes.urdf'
    path.write_text('two links and a joint')
    assert 'well-formed XML' in error_from(errors.MalformedUrdf, path)


def test_xml_that_is_cut_short():
    assert 'XML' in error_from(errors.MalformedUrdf, SOUND[:200])


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


def test_root_element_other_than_robot():
    assert "'sdf'" in error_from(errors.MalformedUrdf, '<sdf/>')


def test_no_links():
    assert 'no <link>' in error_from(errors.MalformedUrdf, '<robot name="r"/>')


def test_no_such_link():
    message = error_from(errors.NoSuchName, SOUND, tip_link='hand')
    assert "'hand'" in message
    assert "'link2'" in message


def test_no_path_from_base_to_tip():
    message = error_from(errors.NoChain, SOUND, base_link='link2', tip_link='link1')
    assert "'link2'" in message


def test_base_that_is_the_tip():
    message = error_from(errors.NoChain, SOUND, base_link='link1', tip_link='link1')
    assert "'link1'" in message


@pytest.mark.parametrize('axis', ['axis xyz="0 0 0"', 'axis xyz="-0 0 0"'])
def test_zero_axis(axis):
    message = error_from(errors.MalformedUrdf, broken('axis xyz="0 0 1"', axis))
    assert "'joint1'" in message
    assert '[0.0, 0.0, 0.0]' in message


@pytest.mark.parametrize('number', ['nan', 'inf', '1e400'])
def test_axis_that_is_not_finite(number):
    text = broken('axis xyz="0 0 1"', f'axis xyz="0 {number} 1"')
    assert "'joint1'" in error_from(errors.MalformedUrdf, text)


@pytest.mark.parametrize('mass', ['-1', 'nan', 'inf', '1e400'])
def test_mass_that_no_body_has(mass):
    message = error_from(errors.MalformedUrdf, broken('mass value="1.0"', f'mass value="{mass}"'))
    assert "link 'link1' mass" in message


@pytest.mark.parametrize('word', ['heavy', '1,5', '1_0', '0x10', '', '1 2'])
def test_mass_that_is_no_number(word):
    message = error_from(errors.MalformedUrdf, broken('mass value="1.0"', f'mass value="{word}"'))
    assert repr(word) in message


def test_vector_of_two_numbers():
    message = error_from(errors.MalformedUrdf, broken('xyz="0.5 0 0"', 'xyz="0.5 0"'))
    assert '3 numbers' in message


@pytest.mark.parametrize('attribute', ['ixx', 'iyz'])
def test_inertia_that_lacks_an_element(attribute):
    text = broken(f' {attribute}="0', f' unknown{attribute}="0')
    assert attribute in error_from(errors.MalformedUrdf, text)


def test_joint_without_parent():
    text = broken('<parent link="base"/>', '')
    assert "joint 'joint1'" in error_from(errors.MalformedUrdf, text)


def test_joint_with_an_unknown_parent():
    text = broken('<parent link="base"/>', '<parent link="ground"/>')
    assert "'ground'" in error_from(errors.MalformedUrdf, text)


def test_joint_of_an_unknown_type():
    text = broken('type="continuous"', 'type="spherical"')
    assert "'spherical'" in error_from(errors.MalformedUrdf, text)


def test_joint_without_a_name():
    assert 'line 1' in error_from(errors.MalformedUrdf, broken('name="joint1" ', ''))


def test_link_name_given_twice():
    text = broken('<link name="link2">', '<link name="link1">')
    assert "'link1'" in error_from(errors.MalformedUrdf, text)


def test_link_with_two_parents():
    text = SOUND.replace(
        '</robot>',
        '<joint name="again" type="fixed"><parent link="base"/><child link="link2"/></joint>'
        '</robot>',
    )
    assert "'again'" in error_from(errors.MalformedUrdf, text)


def test_joints_that_close_a_loop():
    text = SOUND.replace(
        '</robot>',
        '<joint name="back" type="fixed"><parent link="link2"/><child link="base"/></joint>'
        '</robot>',
    )
    assert 'loops' in error_from(errors.MalformedUrdf, text)


@pytest.mark.parametrize('kind', ['floating', 'planar'])
def test_joint_that_no_serial_chain_holds(kind):
    text = broken('type="continuous"', f'type="{kind}"')
    assert kind in error_from(errors.UnsupportedJoint, text)


def test_mimic_joint_on_the_chain():
    text = broken('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="joint2"/>')
    error = error_from(errors.UnsupportedJoint, text)
    assert "'joint2'" in error and error.endswith("no mimic joint, unless mimic='independent'")
    assert rd.RobotModel.from_urdf(text, mimic='independent').n == 2
    assert "'copy'" in error_from(errors.InvalidArgument, SOUND, mimic='copy')


@pytest.mark.parametrize(
    'error',
    [
        errors.UnsupportedJoint('joint', 'mimics', 'none', choice=('mimic', 'independent')),
        FollowsNone('trajectory', 'the mode follows none', 'set another'),
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


@pytest.mark.parametrize(
    'declaration',
    [
        'SYSTEM "robot.dtd"',
        'PUBLIC "-//x" "robot.dtd"',
        '[<!ENTITY a "b">]',
        '[<!ENTITY % a "b">]',
    ],
)
def test_document_type_that_refers_elsewhere_or_has_entities(declaration):
    message = error_from(errors.MalformedUrdf, f'<!DOCTYPE robot {declaration}>{SOUND}')
    assert 'DOCTYPE' in message


def test_entity_that_nothing_declares():
    assert "'mass'" in error_from(errors.MalformedUrdf, broken('"1.0"', '"&mass;"'))


def test_entities_of_text_that_is_no_sound_xml_either():
    text = f'\n<!DOCTYPE robot [<!ENTITY a "b">]>{SOUND}'.replace('<link', '<x:y/><link', 1)
    assert "entity 'a'" in error_from(errors.MalformedUrdf, text)


def test_more_undeclared_prefixes_than_anyone_has():
    text = SOUND.replace('<link', ''.join(f'<p{i}:x/>' for i in range(100)) + '<link', 1)
    assert 'prefix' in error_from(errors.MalformedUrdf, text)


def test_file_of_100_megabytes(tmp_path):
    path = tmp_path / 'large.urdf'
    with path.open('wb') as file:
        file.truncate(100_000_000)
    message = error_from(errors.UnreadableSource, path)
    assert str(LARGEST_SOURCE) in message


def test_text_of_more_than_is_read():
    text = f'<robot name="r"><!--{"x" * LARGEST_SOURCE}--></robot>'
    assert str(LARGEST_SOURCE) in error_from(errors.UnreadableSource, text)


def test_macros_that_were_not_expanded_where_no_joint_is_left():
    text = (
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/>'
        '<link name="a"/></robot>'
    )
    assert 'xacro' in error_from(errors.NoChain, text)


def test_gravity_of_the_wrong_shape_or_not_finite():
    assert 'gravity' in error_from(errors.InvalidArgument, SOUND, gravity=(0, 0))
    assert 'gravity[2]' in error_from(errors.NonFiniteValue, SOUND, gravity=(0, 0, np.nan))


def test_locked_position_of_no_joint_or_a_moving_one():
    message = error_from(errors.NoSuchName, SOUND, locked_positions={'finger': 0.0})
    assert "'finger'" in message
    message = error_from(errors.InvalidArgument, SOUND, locked_positions={'joint1': 0.0})
    assert "'joint1'" in message


@pytest.fixture(scope='module')
def arm():
    return rd.RobotModel.from_urdf(SOUND)


def test_arguments_of_the_wrong_shape(arm):
    two, three = np.zeros(2), np.zeros(3)
    for call in (
        lambda: rd.inverse_dynamics(arm, two, two, three),
        lambda: rd.inverse_dynamics(arm, [two] * 4, two, two),
        lambda: rd.mass_matrix(arm, three),
        lambda: rd.forward_kinematics(arm, [[two]]),
        lambda: rd.jacobian(arm, 1.0),
        lambda: rd.gravity_torque(arm, 'ab'),
        lambda: rd.forward_dynamics(arm, two, three, two),
        lambda: rd.friction_torque(arm, three),
        lambda: rd.inverse_dynamics(arm, two, two, two, tip_wrench=three),
        lambda: arm.with_inertial_parameters(np.zeros((2, 9))),
        lambda: arm.with_rotor_inertia(three),
    ):
        with pytest.raises(errors.InvalidArgument, match='argument'):
            call()


def test_arguments_that_are_not_finite(arm):
    two = np.zeros(2)
    with pytest.raises(errors.NonFiniteValue, match=r'qd\[1\]: nan'):
        rd.inverse_dynamics(arm, two, [0, np.nan], two)


def test_method_that_does_not_exist(arm):
    two = np.zeros(2)
    with pytest.raises(errors.InvalidArgument, match='newton_euler'):
        rd.inverse_dynamics(arm, two, two, two, method='guess')


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


def test_payload_on_a_link_that_does_not_exist(arm):
    with pytest.raises(errors.NoSuchName, match="'hand'"):
        arm.with_payload(rd.Payload(1.0, link='hand'))


def test_negative_rotor_inertia(arm):
    with pytest.raises(errors.InvalidArgument, match="'joint2'"):
        arm.with_rotor_inertia([0.1, -0.1])


def test_arm_whose_links_have_no_mass_has_no_accelerations():
    arm = rd.RobotModel.from_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/></joint></robot>'
    )
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
