# SPDX-License-Identifier: Apache-2.0
"""A node whose arm drifts says so, with what explains it."""

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

import xacro
from lockstep_rig import LockstepRig

pytestmark = pytest.mark.ros

ROOT = Path(__file__).parents[3]
BENT = [0.5, 0.5, -0.5, 0.5, 0.5, 0.0]
WARN = 1


@pytest.mark.slow
def test_arm_in_another_gravity_is_a_warning_that_names_it(tmp_path):
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(xacro.process_file(str(ROOT / 'urdf' / 'arm.urdf.xacro')).toxml())
    rig = LockstepRig(tmp_path / 'log')
    words = 'gravity of 9.8 in place of 9.81 m/s^2 ('
    try:
        rig.start(urdf_file=urdf)
        rig.start_simulator(urdf_file=urdf, initial_position=BENT, gravity=[0.0, 0.0, -9.8])
        assert rig.transition('activate')
        rig.until(lambda: words in rig.report.get('message', ''), patience=240.0)
        assert rig.report['level'] == WARN
        assert rig.report['message'].startswith(
            'compensating gravity; the arm drifts, joint2 by -'
        )
        rig.until(lambda: words in rig.log)
        assert rig.log.count('the arm drifts') == 1
    finally:
        rig.close()
