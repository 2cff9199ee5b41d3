# SPDX-License-Identifier: Apache-2.0
"""The package of the ros2_control controller: its example of parameters, its tests without ROS."""

import re
import subprocess

import pytest
import yaml
from controller_core import compiled_program, headers, sanitizers
from controllers_package import controllers_package

from robodyn_ros.ros_parameters import parameters_in

PACKAGE = controllers_package()
PARAMETERS = parameters_in(PACKAGE / 'src' / 'inverse_dynamics_controller.yaml')


def test_example_sets_parameters_that_exist_and_chains_every_joint():
    text = (PACKAGE / 'config' / 'controllers.yaml').read_text()
    filled = text.replace('$(var model_library)', 'arm.so').replace('$(var tf_prefix)', 'left_')
    sections = yaml.safe_load(filled)
    types = sections['/**/controller_manager']['ros__parameters']
    ours = sections['/**/inverse_dynamics_controller']['ros__parameters']
    theirs = sections['/**/joint_trajectory_controller']['ros__parameters']
    assert set(ours) - {'type'} <= {parameter.name for parameter in PARAMETERS}
    assert ours['type'] == types['inverse_dynamics_controller']['type']
    assert ours['type'] == 'robodyn_controllers/InverseDynamicsController'
    assert theirs['joints'] == ours['joints'] == [f'left_joint{i}' for i in range(1, 7)]
    assert theirs['command_joints'] == [
        f'inverse_dynamics_controller/{joint}' for joint in ours['joints']
    ]
    assert theirs['command_interfaces'] == ['position', 'velocity', 'acceleration']


@pytest.mark.slow
def test_tests_without_ros_pass(tmp_path):
    stand_in = PACKAGE / 'test' / 'without_googletest'
    options = [*sanitizers(tmp_path, 'address,undefined'), *headers(tmp_path)]
    source = PACKAGE / 'test' / 'test_controller_logic.cpp'
    program = compiled_program(source, tmp_path, [*options, '-isystem', str(stand_in)])
    result = subprocess.run([program], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    written = re.findall(r'^TEST\((\w+), (\w+)\)', source.read_text(), re.MULTILINE)
    assert written
    assert re.findall(r'^passed (\w+)\.(\w+)$', result.stdout, re.MULTILINE) == written
