# SPDX-License-Identifier: Apache-2.0
"""The former name of run_motion.launch.py, for one release."""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import LogInfo

from robodyn_ros.ros.launching import included


def generate_launch_description() -> LaunchDescription:
    """Return what run_motion.launch.py starts."""
    said = 'identify.launch.py is run_motion.launch.py now; the old name works for one release'
    return LaunchDescription([LogInfo(msg=said), included(Path(__file__).parent, 'run_motion')])
