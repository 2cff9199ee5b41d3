# SPDX-License-Identifier: Apache-2.0
"""A node whose arm drifts says so, with what explains it."""

import math
import re
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


def gravity_in(text: str) -> float:
    """Return the gravity that explains a drift, of a diagnostics message or the log [m/s^2]."""
    drifts = re.search(r'the arm drifts, joint\d by .*: explained by gravity of (\S+) in', text)
    return float(drifts[1]) if drifts else math.nan


@pytest.mark.slow
def test_arm_in_another_gravity_is_a_warning_that_names_it(tmp_path):
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(xacro.process_file(str(ROOT / 'urdf' / 'arm.urdf.xacro')).toxml())
    rig = LockstepRig(tmp_path / 'log')
    # Estimated from a second or three of motion, again and again: the last digit varies.
    actual = pytest.approx(9.8, abs=0.004)
    try:
        rig.start(urdf_file=urdf)
        rig.start_simulator(urdf_file=urdf, initial_position=BENT, gravity=[0.0, 0.0, -9.8])
        assert rig.transition('activate')
        rig.until(lambda: gravity_in(rig.report.get('message', '')) == actual, patience=240.0)
        assert rig.report['level'] == WARN
        assert rig.report['message'].startswith('compensating gravity; the arm drifts, ')
        rig.until(lambda: 'the arm drifts' in rig.log)
        assert gravity_in(rig.log) == actual
        assert rig.log.count('the arm drifts') == 1
    finally:
        rig.close()
