# SPDX-License-Identifier: Apache-2.0
"""demo.launch.py: the demonstration runs to its end by itself."""

import json
import tempfile
import unittest
from pathlib import Path

import pytest

pytest.importorskip('launch_testing', reason='needs launch_testing, of a ROS installation')
pytest.importorskip('mujoco', reason='needs MuJoCo: pip install mujoco')

import launch_testing
from launch_rig import bad_lines, launched

OUTPUT = Path(tempfile.mkdtemp())
DEMO_TIMEOUT = 240.0  # for a demonstration of four short phases on a loaded machine [s]


@pytest.mark.launch_test
@pytest.mark.ros
@pytest.mark.slow
def generate_test_description():
    return launched(
        'demo',
        output_directory=str(OUTPUT),
        hold_time='0.5',
        base_link='base_link',
        tip_link='tool0',
        tf_prefix='left_',
    )


class TestDemonstration(unittest.TestCase):
    def test_it_ends_by_itself(self, proc_info):
        proc_info.assertWaitForShutdown('robodyn', timeout=DEMO_TIMEOUT)


@launch_testing.post_shutdown_test()
class TestAfterwards(unittest.TestCase):
    def test_it_ended_cleanly(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)

    def test_nothing_went_wrong(self, proc_output):
        self.assertEqual(bad_lines(proc_output), [])

    def test_computed_torque_tracked_best(self):
        numbers = json.loads((OUTPUT / 'summary.json').read_text())
        best = numbers['tracking_rms_computed_torque_rad']
        self.assertLess(best, numbers['tracking_rms_pd_gravity_rad'])
        self.assertEqual(numbers['joint_names'][0], 'left_joint1')
