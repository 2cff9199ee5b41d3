# SPDX-License-Identifier: Apache-2.0
"""The package of the ros2_control controller says of itself what it holds."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from controller_core import compiled_program, headers, sanitizers
from lxml import etree

import robodyn_ros
from robodyn_ros.ros_parameters import parameters_in

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robodyn_controllers'
CMAKE = (PACKAGE / 'CMakeLists.txt').read_text()
MANIFEST = etree.parse(str(PACKAGE / 'package.xml')).getroot()
PARAMETERS = parameters_in(PACKAGE / 'src' / 'inverse_dynamics_controller.yaml')
SOURCES = sorted(PACKAGE.rglob('*.[ch]pp'))


def test_manifest_names_every_package_that_is_built_with_and_no_other():
    declared = {
        element.text
        for element in MANIFEST
        if element.tag in ('depend', 'build_depend', 'test_depend', 'buildtool_depend')
    }
    dependencies = re.search(r'set\(DEPENDENCIES(.*?)\)', CMAKE, re.DOTALL)[1].split()
    found = set(dependencies) | set(re.findall(r'find_package\((\w+) REQUIRED\)', CMAKE))
    assert declared == found


def test_every_package_that_a_source_includes_is_a_dependency():
    declared = {element.text for element in MANIFEST if 'depend' in element.tag}
    own = {'robodyn_controllers', 'pendulum.hpp', 'gtest'}
    included = {
        name.partition('/')[0]
        for path in SOURCES
        for name in re.findall(r'#include [<"](\w+[/.][^>"]+)[>"]', path.read_text())
    }
    standard = {'dlfcn.h'}
    assert included - own - standard <= declared


def test_version_is_that_of_the_library():
    assert MANIFEST.findtext('version') == robodyn_ros.__version__


def test_plugin_is_described_as_it_is_exported():
    described = etree.parse(str(PACKAGE / 'robodyn_controllers.xml')).getroot()
    assert described.get('path') == MANIFEST.findtext('name')
    plugin = described.find('class')
    source = (PACKAGE / 'src' / 'inverse_dynamics_controller.cpp').read_text()
    exported = re.search(r'PLUGINLIB_EXPORT_CLASS\(\s*([\w:]+),\s*([\w:]+)\)', source).groups()
    assert (plugin.get('type'), plugin.get('base_class_type')) == exported
    assert plugin.get('name') == plugin.get('type').replace('::', '/')
    assert 'pluginlib_export_plugin_description_file(controller_interface' in CMAKE


def test_every_source_is_built_installed_or_tested():
    for path in SOURCES:
        folder = path.relative_to(PACKAGE).parts[0]
        if folder == 'src':
            assert f'src/{path.name}' in CMAKE
        elif folder == 'test' and path.name.startswith('test_'):
            assert f'add_tests({path.stem}' in CMAKE
    assert {path.name for path in PACKAGE.glob('test/*.[ch]pp')} == {
        'pendulum.hpp',
        'pendulum_model.cpp',
        'test_command_pipeline.cpp',
        'test_controller_logic.cpp',
        'test_described_kinematics.cpp',
        'test_inverse_dynamics_controller.cpp',
        'test_load_inverse_dynamics_controller.cpp',
    }


def test_every_file_names_its_licence():
    named = 'SPDX-License-Identifier: Apache-2.0'
    for path in PACKAGE.rglob('*'):
        if path.is_file() and path.suffix != '.md' and '__pycache__' not in path.parts:
            assert named in path.read_text()[:300], path


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


@pytest.mark.longer
@pytest.mark.parametrize('name', ['test_command_pipeline', 'test_controller_logic'])
def test_tests_without_ros_pass(tmp_path, name):
    stand_in = PACKAGE / 'test' / 'without_googletest'
    options = [*sanitizers(tmp_path, 'address,undefined'), *headers(tmp_path)]
    source = PACKAGE / 'test' / f'{name}.cpp'
    program = compiled_program(source, tmp_path, [*options, '-isystem', str(stand_in)])
    result = subprocess.run([program], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    written = re.findall(r'^TEST\((\w+), (\w+)\)', source.read_text(), re.MULTILINE)
    assert written
    assert re.findall(r'^passed (\w+)\.(\w+)$', result.stdout, re.MULTILINE) == written
