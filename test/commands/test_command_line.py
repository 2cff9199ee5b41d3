# SPDX-License-Identifier: Apache-2.0
"""The commands `robodyn dh` and `robodyn check`."""

import json
import subprocess
import sys

import numpy as np
import pytest
from robots import public_urdf, two_link_urdf

PANDA = (str(public_urdf('panda.urdf')), '--base', 'panda_link0', '--tip', 'panda_link8')


def robodyn(*arguments):
    return subprocess.run(
        [sys.executable, '-m', 'robodyn_ros.cli', *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_dh_prints_table_transforms_and_residual():
    result = robodyn('dh', *PANDA)
    assert result.returncode == 0
    assert '3      π/2        0       q3  0.316' in result.stdout
    assert "q7: 'panda_joint7', revolute" in result.stdout
    assert 'Base transform' in result.stdout
    assert '0.333' in result.stdout
    assert 'at 100 states' in result.stdout


def test_dh_standard():
    result = robodyn('dh', *PANDA, '--standard')
    assert 'standard DH: Rot(z, θ) Trans(z, d) Trans(x, a) Rot(x, α)' in result.stdout


def test_dh_json_can_be_read_back():
    record = json.loads(robodyn('dh', *PANDA, '--json').stdout)
    assert record['joint_names'][0] == 'panda_joint1'
    np.testing.assert_allclose(record['a'], [0, 0, 0, 0.0825, -0.0825, 0, 0.088], atol=1e-12)
    assert np.array(record['base_transform']).shape == (4, 4)
    assert record['residual']['position'] < 1e-9
    assert record['residual']['torque'] < 1e-8


def test_residual_sees_a_wrong_table():
    import robodyn_ros as rd
    from robodyn_ros.description.chain import Chain
    from robodyn_ros.report.residual import conversion_residual

    chain = Chain.from_urdf_text(two_link_urdf())
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    other = rd.RobotModel.from_urdf(two_link_urdf(length=1.001))
    residual = conversion_residual(chain, arm)
    assert residual.position < 1e-12
    assert residual.torque < 1e-12
    wrong = conversion_residual(chain, other)
    assert wrong.position == pytest.approx(0.001, rel=1e-6)
    assert wrong.torque > 1e-4


def test_check_lists_findings_and_its_exit_code_tells_of_warnings(tmp_path):
    sound = robodyn('check', *PANDA)
    assert sound.returncode == 0
    assert "carries 0.76 kg of 'panda_hand'" in sound.stdout
    path = tmp_path / 'arm.urdf'
    path.write_text(two_link_urdf())
    warned = robodyn('check', str(path))
    assert warned.returncode == 1
    assert "joint 'joint1' has no effort limit" in warned.stdout
    assert "'base' to 'link2': 2 joints, " in warned.stdout
    findings = json.loads(robodyn('check', str(path), '--json').stdout)
    assert (findings[0]['code'], findings[0]['value']) == ('effort_limit', 'inf')


def test_ambiguous_tip_names_the_candidates_and_exits_with_2():
    result = robodyn('dh', PANDA[0])
    assert result.returncode == 2
    assert "\n  'panda_leftfinger': 8 joints, 'panda_joint1'" in result.stderr
    assert result.stderr.startswith('Error: --tip: ')
    assert 'Traceback' not in result.stderr


def test_locked_joints_and_mimic_joints_can_be_chosen():
    result = robodyn('check', *PANDA, '--lock', 'panda_finger_joint1=0.04')
    assert "joint 'panda_finger_joint1', off the chain, is held at 0.04" in result.stdout
    assert robodyn('check', *PANDA, '--lock', 'finger').returncode == 2
    finger = (PANDA[0], '--tip', 'panda_rightfinger')
    assert robodyn('dh', *finger).returncode == 2
    assert robodyn('dh', *finger, '--mimic', 'independent').returncode == 0
