# SPDX-License-Identifier: Apache-2.0
"""The core knows no ROS: every module outside ros/ is importable on a machine without it."""

import pkgutil
import subprocess
import sys

import pytest

import robodyn_ros


def core_modules():
    names = [
        module.name
        for module in pkgutil.walk_packages(robodyn_ros.__path__, 'robodyn_ros.')
        if module.name.split('.')[1] != 'ros'
    ]
    assert 'robodyn_ros.dynamics.newton_euler' in names
    assert 'robodyn_ros.ros_parameters' in names and 'robodyn_ros.ros' not in names
    return names


@pytest.mark.longer
def test_core_is_importable_where_ros_is_missing():
    # A finder that refuses ROS stands in for a machine without it.
    code = (
        'import importlib, sys\n'
        'class NoRos:\n'
        '    def find_spec(self, name, path=None, target=None):\n'
        "        ours = name.split('.')[:2] == ['robodyn_ros', 'ros']\n"
        "        if ours or name.split('.')[0] in ('rclpy', 'robodyn_interfaces')"
        " or name.endswith(('_msgs', '_srvs')):\n"
        '            raise ModuleNotFoundError(name)\n'
        'sys.meta_path.insert(0, NoRos())\n'
        f'for name in {core_modules()!r}: importlib.import_module(name)\n'
    )
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
