# SPDX-License-Identifier: Apache-2.0
"""The commands `robodyn dh` and `robodyn check`."""

import numpy as np
import pytest
from command_line import error_of, invoked, json_of, output_of
from robots import public_urdf, two_link_urdf

import robodyn_ros as rd
from robodyn_ros.description.chain import Chain
from robodyn_ros.report.residual import conversion_residual

PANDA = (public_urdf('panda.urdf'), '--base', 'panda_link0', '--tip', 'panda_link8')


def test_dh_prints_table_transforms_and_residual():
    printed = output_of('dh', *PANDA)
    assert '3      π/2        0       q3  0.316' in printed
    assert "q7: 'panda_joint7', revolute" in printed
    assert 'Base transform' in printed
    assert '0.333' in printed
    assert 'at 100 states' in printed
    standard = output_of('dh', *PANDA, '--standard')
    assert 'standard DH: Rot(z, θ) Trans(z, d) Trans(x, a) Rot(x, α)' in standard


def test_dh_json_can_be_read_back():
    record = json_of('dh', *PANDA)
    assert record['joint_names'][0] == 'panda_joint1'
    np.testing.assert_allclose(record['a'], [0, 0, 0, 0.0825, -0.0825, 0, 0.088], atol=1e-12)
    assert np.array(record['base_transform']).shape == (4, 4)
    assert record['residual']['position'] < 1e-9
    assert record['residual']['torque'] < 1e-8


def test_residual_shows_a_wrong_table():
    chain = Chain.from_urdf_text(two_link_urdf())
    right, wrong = (
        conversion_residual(chain, rd.RobotModel.from_urdf(two_link_urdf(length=length)))
        for length in (1.0, 1.001)
    )
    assert right.position < 1e-12
    assert right.torque < 1e-12
    assert wrong.position == pytest.approx(0.001, rel=1e-6)
    assert wrong.torque > 1e-4


def test_check_lists_findings_and_its_exit_code_shows_warnings(tmp_path):
    assert "carries 0.76 kg of 'panda_hand'" in output_of('check', *PANDA)
    path = tmp_path / 'arm.urdf'
    path.write_text(two_link_urdf())
    warned = output_of('check', path, code=1)
    assert "joint 'joint1' has no effort limit" in warned
    assert "'base' to 'link2': 2 joints, " in warned
    first, *_ = json_of('check', path, code=1)
    assert (first['code'], first['value']) == ('effort_limit', 'inf')


def test_ambiguous_tip_names_the_candidates_and_exits_with_2():
    error = error_of('dh', PANDA[0])
    assert "\n  'panda_leftfinger': 8 joints, 'panda_joint1'" in error
    assert error.startswith('Error: --tip: ')


def test_several_tips_make_a_tree():
    fingers = ('--tip', 'panda_leftfinger', '--tip', 'panda_rightfinger')
    hand = (PANDA[0], *fingers, '--mimic', 'independent')
    printed = output_of('dh', *hand)
    assert "'panda_link0' to 'panda_leftfinger', 'panda_rightfinger', modified DH" in printed
    assert "Tip transform, frame 8 to 'panda_leftfinger':" in printed
    record = json_of('dh', *hand)
    assert record['parents'] == [-1, 0, 1, 2, 3, 4, 5, 6, 6]
    assert record['tip_links'] == ['panda_leftfinger', 'panda_rightfinger']
    assert record['residual']['torque'] < 1e-8
    assert '9 joints' in output_of('check', *hand)
    assert 'modified for a tree' in error_of('dh', *hand, '--standard')
    assert '51 base (minimal) parameters' in output_of('params', *hand)


def test_locked_joints_and_mimic_joints_can_be_chosen():
    held = output_of('check', *PANDA, '--lock', 'panda_finger_joint1=0.04')
    assert "joint 'panda_finger_joint1', off the chain, is held at 0.04" in held
    assert invoked('check', *PANDA, '--lock', 'finger').exit_code == 2
    finger = (PANDA[0], '--tip', 'panda_rightfinger')
    assert 'mimic' in error_of('dh', *finger)
    assert output_of('dh', *finger, '--mimic', 'independent')


def test_an_error_in_a_file_names_the_file(tmp_path):
    def written(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    arm = written('arm.urdf', two_link_urdf())
    empty, cut = written('empty.csv', ''), written('cut.urdf', '<robot')
    assert "file 'empty.csv', motion: there is no line in it" in error_of('torque', arm, empty)
    assert "file 'cut.urdf', XML: " in error_of('check', cut)
    assert "file 'cut.yaml', trajectory: " in error_of(
        'torque', arm, written('cut.yaml', 'points: []')
    )
    other = written('other.csv', 'time;joint1;joint2\n0;1;2\n')
    for command in ('torque', 'effort'):
        error = error_of(command, arm, other)
        assert "file 'other.csv', " in error and "is ';' the separator? Commas are" in error


def test_a_folder_and_a_file_that_cannot_be_written_are_refused_as_such(tmp_path):
    assert ': a folder; allowed: a file with a URDF' in error_of('check', tmp_path)
    arm, motion = tmp_path / 'arm.urdf', tmp_path / 'motion.csv'
    arm.write_text(two_link_urdf())
    motion.write_text('time,joint1,joint2\n0,0,0\n1,0,0\n2,0,0\n3,0,0\n')
    error = error_of('torque', arm, motion, '-o', '/proc/none.csv')
    assert error.endswith("Error: file '/proc/none.csv': no such file or directory\n")


def test_a_command_that_is_misspelt_is_asked_about():
    assert "No such command 'cheek': is 'check' meant?" in invoked('cheek').stderr
    assert "No such command 'zzz'." in invoked('zzz').stderr
