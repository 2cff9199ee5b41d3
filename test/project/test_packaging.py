# SPDX-License-Identifier: Apache-2.0
"""What is installed where; environment/check_packages.py checks what the manifests declare."""

import configparser
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_ros_and_the_shell_find_executables_in_their_folders():
    config = configparser.ConfigParser()
    config.read(ROOT / 'setup.cfg')
    assert config['develop']['script_dir'] == '$base/lib/robodyn_ros'
    assert config['install']['install_scripts'] == '$base/lib/robodyn_ros'
    try:
        scripts = distribution('robodyn-ros').entry_points.select(group='console_scripts')
    except PackageNotFoundError:
        pytest.skip('robodyn_ros is not installed')
    assert {script.name for script in scripts} >= {'robodyn', 'dynamics_node', 'simulator_node'}
    for name in ('dynamics_node', 'simulator_node', 'robodyn'):
        assert Path(sys.prefix, 'lib', 'robodyn_ros', name).is_file()
    assert Path(sys.prefix, 'bin', 'robodyn').is_file()
