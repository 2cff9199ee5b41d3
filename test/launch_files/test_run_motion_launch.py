# SPDX-License-Identifier: Apache-2.0
"""run_motion.launch.py prints the motion, and publishes none that was not confirmed."""

import tempfile
import unittest

import pytest

pytest.importorskip('launch_testing', reason='needs launch_testing, of a ROS installation')

from launch_rig import ROOT, Listener, ends_well, launched
from trajectory_msgs.msg import JointTrajectory

MOTION = 'time,joint1,joint2,joint3,joint4,joint5,joint6\n0,0,0,0,0,0,0\n1,0,0,0,0,0,0\n'


@pytest.mark.launch_test
@pytest.mark.ros
def generate_test_description():
    with tempfile.NamedTemporaryFile('w', suffix='.csv', delete=False) as file:
        file.write(MOTION)
    return launched(
        'run_motion',
        motion_file=file.name,
        description_file=str(ROOT / 'urdf' / 'puma560.urdf'),
        namespace='arm',
    ), {}


class TestMotion(unittest.TestCase):
    def test_nothing_is_sent_without_confirmation(self, proc_output):
        listener = Listener()
        try:
            sent = listener.heard(JointTrajectory, '/arm/dynamics_node/joint_trajectory')
            proc_output.assertWaitFor('confirm:=true', timeout=60)
            assert not sent
        finally:
            listener.close()


TestAfterwards = ends_well()
