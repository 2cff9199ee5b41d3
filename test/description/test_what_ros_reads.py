# SPDX-License-Identifier: Apache-2.0
"""What robot_state_publisher reads is read, with a finding that names what is odd."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from robots import public_urdfs, two_link_urdf

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.description.rewriting import JointDynamics, rewritten_urdf
from robodyn_ros.description.sanitizing import sanitized

# In the environment that runs the tests, whether or not it is activated.
CHECK_URDF = shutil.which(
    'check_urdf', path=f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'
)
LIMIT = '<limit lower="-1" upper="1" effort="10" velocity="2"/>'
SOUND = (
    two_link_urdf()
    .replace('<robot', '<?xml version="1.0"?><robot')
    .replace('<axis xyz="0 0 1"/></joint>', f'<axis xyz="0 0 1"/>{LIMIT}</joint>')
)
TOOL = (
    '<link name="tool"/><joint name="flange" type="fixed"><parent link="link2"/>'
    '<child link="tool"/>{}</joint>'
)


def changed(old, new):
    assert old in SOUND
    return SOUND.replace(old, new, 1).encode()


def with_tool(inside):
    return changed('</robot>', TOOL.format(inside) + '</robot>')


ODD = {
    'line break before the declaration': (b'\n' + SOUND.encode(), 'xml_declaration'),
    'comment before the declaration': (b'<!-- xacro -->\n' + SOUND.encode(), 'xml_declaration'),
    'prefix not declared': (changed('</robot>', '<sensor:camera/></robot>'), 'xml_namespace'),
    'prefixes not declared': (changed('</robot>', '<a:b c:d="1"/></robot>'), 'xml_namespace'),
    'hyphens in a comment': (changed('</robot>', '<!-- a -- b --></robot>'), 'xml_comment'),
    'bare ampersand': (changed('</robot>', '<gazebo mesh="a&b c & d"/></robot>'), 'xml_ampersand'),
    'text in Latin-1': (
        changed('</robot>', '<!-- Ren\u00e9 --></robot>').decode().encode('latin1'),
        'xml_encoding',
    ),
    'document type': (changed('<robot', '<!DOCTYPE robot><robot'), 'xml_document_type'),
    'xacro element': (
        changed('</robot>', '<xacro:arm xmlns:xacro="http://ros.org/wiki/xacro"/></robot>'),
        'xacro_element',
    ),
    'xacro element without namespace': (
        changed('<link name="link2">', '<link name="link2"><xacro:inertia/>'),
        'xacro_element',
    ),
    'axis of a fixed joint lacks xyz': (with_tool('<axis xzy="0 0 1"/>'), 'ignored_element'),
    'axis of a fixed joint is no vector': (with_tool('<axis xyz="z"/>'), 'ignored_element'),
    'second origin': (
        changed('<origin xyz="1.0 0 0"/>', '<origin xyz="1.0 0 0"/><origin xyz="5 0 0"/>'),
        'repeated_element',
    ),
    'second inertial': (changed('</inertial>', '</inertial><inertial/>'), 'repeated_element'),
    'inertial without inertia': (
        changed('<mass value="1.0"/>', '<mass value="1.0"/><!--').replace(
            b'</inertial>', b'--></inertial>', 1
        ),
        'incomplete_inertial',
    ),
    'inertial without mass': (changed('<mass value="1.0"/>', ''), 'incomplete_inertial'),
    'no axis': (changed('<axis xyz="0 0 1"/>', ''), 'axis_missing'),
}


@pytest.mark.parametrize('oddity', ODD)
def test_odd_urdf_is_read_with_a_finding(oddity, tmp_path):
    content, code = ODD[oddity]
    path = tmp_path / 'odd.urdf'
    path.write_bytes(content)
    arm = rd.RobotModel.from_urdf(path)
    assert code in {each.code for each in arm.findings}
    sound = rd.RobotModel.from_urdf(SOUND)
    if code not in ('axis_missing', 'incomplete_inertial'):
        np.testing.assert_array_equal(arm.inertial_parameters, sound.inertial_parameters)
        np.testing.assert_array_equal(arm.dh.a, sound.dh.a)


@pytest.mark.repeats(check=4)
@pytest.mark.parametrize('oddity', ODD)
@pytest.mark.skipif(CHECK_URDF is None, reason='needs check_urdf (liburdfdom-tools)')
def test_the_parser_of_ros_reads_it_too(oddity, tmp_path):
    path = tmp_path / 'odd.urdf'
    path.write_bytes(ODD[oddity][0])
    # TinyXML reads declared namespaces and prefixes as names, so that nothing of it is special.
    answer = subprocess.run([CHECK_URDF, path], capture_output=True, timeout=60)
    if oddity == 'comment before the declaration' and answer.returncode != 0:
        # urdfdom 3 read it; TinyXML-2, by which later ones read, does not.
        assert b'XML_ERROR_PARSING_DECLARATION' in answer.stderr
    else:
        assert answer.returncode == 0, answer.stderr


def findings(content, code):
    """Return the findings of a kind."""
    arm = rd.RobotModel.from_urdf_text(content if isinstance(content, str) else content.decode())
    return [each for each in arm.findings if each.code == code]


def finding(content, code):
    """Return the one finding of a kind."""
    (found,) = findings(content, code)
    return found


def test_xacro_element_that_may_hide_joints_is_a_warning_that_names_it():
    text = '<xacro:pelvis/><xacro:pelvis/><xacro:arm/></robot>'
    first, second = findings(changed('</robot>', text), 'xacro_element')
    assert first.level == second.level == 'warning'
    assert (first.value, second.value) == ('<xacro:pelvis>, 2 times', '<xacro:arm>')


def test_element_that_is_given_twice_is_a_warning_where_the_two_differ():
    limit = f'{LIMIT}{LIMIT}'
    assert finding(changed(LIMIT, limit), 'repeated_element').level == 'info'
    other = LIMIT.replace('"10"', '"20"')
    found = finding(changed(LIMIT, LIMIT + other), 'repeated_element')
    assert found.level == 'warning'
    assert found.element == "joint 'joint1'"


def test_what_an_inertial_lacks_is_zero():
    content, code = ODD['inertial without inertia']
    arm = rd.RobotModel.from_urdf_text(content.decode())
    np.testing.assert_allclose(arm.inertial_parameters[0], [0, 0, 0, 0.25, 0, 0.25, 0.5, 0, 0, 1])
    assert finding(content, code).level == 'info'
    content, code = ODD['inertial without mass']
    assert rd.RobotModel.from_urdf_text(content.decode()).inertial_parameters[0, 9] == 0
    assert finding(content, code).level == 'warning'


def test_missing_axis_is_along_x():
    arm = rd.RobotModel.from_urdf_text(changed('<axis xyz="0 0 1"/>', '').decode())
    rotation = rd.forward_kinematics(arm, [0.5, 0.0])[:3, :3]
    np.testing.assert_allclose(rotation @ [1, 0, 0], [1, 0, 0], atol=1e-15)


def test_what_stands_still_is_no_finding():
    text = changed('<link name="base"/>', '<link name="base"><xacro:inertia/></link>')
    assert not findings(text, 'xacro_element')


def test_zero_axis_matters_only_where_the_joint_moves():
    text = with_tool('').decode().replace('type="fixed"', 'type="continuous"')
    text = text.replace('<child link="tool"/>', '<child link="tool"/><axis xyz="0 0 0"/>')
    assert rd.RobotModel.from_urdf_text(text, tip_link='link2').n == 2
    with pytest.raises(errors.MalformedUrdf, match="'flange'"):
        rd.RobotModel.from_urdf_text(text, tip_link='tool')
    with pytest.raises(errors.MalformedUrdf, match="'flange'"):
        rd.RobotModel.from_urdf_text(text, tip_link='link2', locked_positions={'flange': 0.1})


def test_namespace_of_the_whole_file_changes_nothing():
    arm = rd.RobotModel.from_urdf_text(SOUND.replace('<robot', '<robot xmlns="http://a"'))
    assert arm == rd.RobotModel.from_urdf_text(SOUND)


def test_odd_file_can_be_written_with_other_friction():
    content = ODD['line break before the declaration'][0]
    written = rewritten_urdf(content, {}, {'joint1': JointDynamics(0.5, 0.25)})
    assert written.startswith(b'\n<?xml')
    arm = rd.RobotModel.from_urdf_text(written.decode())
    assert arm.viscous_friction.tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ('old', 'new', 'element', 'meant'),
    [
        ('<inertial>', '<inertail>', "link 'link1'", '<inertail>'),
        ('<limit ', '<limits ', "joint 'joint1'", '<limits>'),
        ('<mass ', '<Mass ', "link 'link1'", '<Mass>'),
    ],
)
def test_misspelt_element_is_a_warning_and_is_dropped(old, new, element, meant):
    text = SOUND.replace(old, new, 1)
    closing = old.replace('<', '</')
    if closing in text:
        text = text.replace(closing, new.replace('<', '</'), 1)
    found = finding(text, 'unknown_element')
    assert (found.level, found.element, found.value) == ('warning', element, meant)
    assert f'is {old.strip(" >")}> meant?' in str(found)


def test_of_many_unknown_elements_some_are_findings_and_each_once():
    again = changed('<inertial>', '<inertail/>' * 1000 + '<inertial>')
    told = str(finding(again, 'unknown_element'))
    assert '<inertail>, 1000 times, which is ignored' in told
    many = ''.join(f'<unheard_of_{k}/>' for k in range(1000))
    assert len(findings(changed('<inertial>', many + '<inertial>'), 'unknown_element')) == 10


@pytest.mark.parametrize(
    ('added', 'old', 'element', 'level', 'words'),
    [
        ('<lnik/>', '<link name="base"/>', 'robot', 'warning', '<lnik>, which'),
        ('<inertial/>', '<link name="base"/>', 'robot', 'warning', 'belongs into <link>'),
        ('<RefPoint/>', '<link name="base"/>', 'robot', 'info', '<RefPoint>, which is ignored'),
        (
            '<visual><geomerty/></visual>',
            '<inertial>',
            "link 'link1'",
            'info',
            '<geomerty> in <visual>, which is ignored: is <geometry> meant?',
        ),
        (
            '<collision><geometry><origin/></geometry></collision>',
            '<inertial>',
            "link 'link1'",
            'info',
            '<origin> in <geometry>, which is ignored: it belongs into',
        ),
        ('<friction/>', '<axis ', "joint 'joint1'", 'info', '<friction>, which is ignored'),
        ('<safety_control/>', '<axis ', "joint 'joint1'", 'info', 'is <safety_controller> meant?'),
        ('<mass value="2"/>', '<inertial>', "link 'link1'", 'warning', 'belongs into <inertial>'),
    ],
)
def test_element_that_urdf_does_not_have_there_is_a_finding(added, old, element, level, words):
    content = changed(old, added + old)
    found = finding(content, 'unknown_element')
    assert (found.element, found.level) == (element, level)
    assert words in str(found)


def test_extensions_of_public_descriptions_are_no_finding():
    told = set()
    for path in public_urdfs():
        with suppress(errors.RobodynError):  # two of them are none
            found = sanitized(path.read_bytes())[1]
            told |= {(path.name, each.value) for each in found if each.code == 'unknown_element'}
    assert told == {('so101.urdf', '<origin>')}  # of a link, which has none


EXTENSIONS = (
    '<visual/>',
    '<collision/>',
    '<contact><lateral_friction value="1"/></contact>',
    '<self_collision_checking/>',
    '<gravity>0</gravity>',
    '<drake:acceleration xmlns:drake="http://drake.mit.edu"/>',
    '<isaac:inertail xmlns:isaac="http://isaac"/>',
    '<sensor type="camera"/>',
    '<surface/>',
)


def test_extensions_are_no_finding():
    sound = {each.code for each in rd.RobotModel.from_urdf_text(SOUND).findings}
    for extension in EXTENSIONS:
        text = changed('<link name="link1">', f'<link name="link1">{extension}').decode()
        codes = {each.code for each in rd.RobotModel.from_urdf_text(text).findings}
        assert codes == sound, extension
