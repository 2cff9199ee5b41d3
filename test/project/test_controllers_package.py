# SPDX-License-Identifier: Apache-2.0
"""The package of the ros2_control controller says of itself what it holds."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from controller_core import FAULTS, headers
from lxml import etree

import robodyn_ros
from robodyn_ros.control.parameter_table import BY_NAME
from robodyn_ros.control.settings import ControlSettings

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robodyn_controllers'
CMAKE = (PACKAGE / 'CMakeLists.txt').read_text()
MANIFEST = etree.parse(str(PACKAGE / 'package.xml')).getroot()
PARAMETERS = yaml.safe_load((PACKAGE / 'src' / 'inverse_dynamics_controller.yaml').read_text())
SOURCES = sorted(PACKAGE.rglob('*.[ch]pp'))

# What the controller has beside the node's parameters, what it defines otherwise, and what of the
# node it has not: it is loaded, its model comes with the library, and it watches no contact.
OWN = {'model_library', 'check_description', 'state_publish_rate'}
OTHERWISE = {'joints', 'gravity', 'command_scale'}
OF_THE_NODE = {
    'controller_manager', 'controller', 'urdf_file', 'identified_model', 'base_link', 'tip_link',
    'algorithm', 'watchdog_period',
    'effort_scale', 'on_contact', 'contact_threshold_moving', 'contact_threshold_standing',
    'contact_dwell', 'observer_gain', 'observed_effort', 'wrench_point', 'external_effort_topic',
    'external_effort_scale', 'external_effort_limit', 'autostart',
}  # fmt: skip


def flat(parameters, prefix=''):
    """Return the parameters by their full names."""
    found = {}
    for name, value in parameters.items():
        if 'type' in value:
            found[prefix + name] = value
        else:
            found |= flat(value, f'{prefix}{name}.')
    return found


CONTROLLERS = flat(PARAMETERS['inverse_dynamics_controller'])


def test_manifest_names_every_package_that_is_built_with_and_no_other():
    declared = {
        element.text
        for element in MANIFEST
        if element.tag in ('depend', 'build_depend', 'test_depend', 'buildtool_depend')
    }
    dependencies = re.search(r'set\(DEPENDENCIES(.*?)\)', CMAKE, re.DOTALL)[1].split()
    found = set(dependencies) | set(re.findall(r'find_package\((\w+) REQUIRED\)', CMAKE))
    assert declared == found | {'robodyn_ros'}


def test_every_package_that_a_source_includes_is_a_dependency():
    declared = {element.text for element in MANIFEST if 'depend' in element.tag}
    own = {'robodyn_controllers', 'pendulum.hpp', 'gtest', 'gmock'}
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
            assert f'test/{path.name}' in CMAKE
    assert {path.name for path in PACKAGE.glob('test/*.[ch]pp')} == {
        'pendulum.hpp',
        'pipeline_c_api.cpp',
        'test_command_pipeline.cpp',
        'test_described_kinematics.cpp',
        'test_load_inverse_dynamics_controller.cpp',
    }


def test_every_file_names_its_licence():
    named = 'SPDX-License-Identifier: Apache-2.0'
    for path in PACKAGE.rglob('*'):
        if path.is_file() and path.suffix != '.md' and '__pycache__' not in path.parts:
            assert named in path.read_text()[:300], path


def test_headers_that_it_includes_are_those_that_robodyn_ros_installs(tmp_path):
    headers(tmp_path)
    there = {f'robodyn_ros/{path.name}' for path in tmp_path.rglob('*.h')}
    included = {
        name
        for path in SOURCES
        for name in re.findall(r'#include "(robodyn_ros/[^"]+)"', path.read_text())
    }
    assert included == there
    setup = (ROOT / 'setup.py').read_text()
    assert all(f"/{Path(name).name}'" in setup for name in included)


def test_parameters_are_the_nodes_and_a_few_of_its_own():
    assert set(CONTROLLERS) == set(BY_NAME) - OF_THE_NODE | OWN


@pytest.mark.parametrize('name', sorted(set(CONTROLLERS) - OWN - OTHERWISE))
def test_a_parameter_has_the_nodes_default_type_and_bounds(name):
    ours, theirs = CONTROLLERS[name], BY_NAME[name]
    assert ours['type'] == theirs.kind.replace('[]', '_array')
    default = theirs.default
    assert ours['default_value'] == (list(default) if isinstance(default, tuple) else default)
    rules = ours.get('validation', {})
    if theirs.choices:
        assert rules['one_of<>'] == [list(theirs.choices)]
    if theirs.bounds:
        low, high = theirs.bounds
        allowed = rules.get('bounds<>') or [
            *(rules.get('gt_eq<>') or rules['lower_element_bounds<>']),
            1e9,
        ]
        assert allowed == [low, high]
    assert bool(ours.get('read_only')) is not theirs.is_live


def test_settings_of_the_core_have_the_nodes_defaults():
    header = (PACKAGE / 'include' / 'robodyn_controllers' / 'settings.hpp').read_text()
    defaults = dict(re.findall(r'double (\w+) = ([\d.]+);', header))
    of_node = {field.name: field.default for field in fields(ControlSettings)}
    assert len(defaults) == 8
    assert {name: float(value) for name, value in defaults.items()} == {
        name: of_node[name] for name in defaults
    }
    actions = dict(re.findall(r'Action (\w+) = Action::(\w+);', header))
    assert actions == {'on_stale_state': 'hold_gravity', 'on_stop': 'hold_gravity'}


def test_faults_are_numbered_as_the_tests_read_them():
    header = (PACKAGE / 'include' / 'robodyn_controllers' / 'pipeline_state.hpp').read_text()
    body = re.search(r'enum class Fault : std::uint8_t\n\{(.*?)\};', header, re.DOTALL)[1]
    names = re.findall(r'^  (\w+),', body, re.MULTILINE)
    assert tuple(name.replace('_', ' ') for name in names) == FAULTS


def test_example_sets_parameters_that_exist_and_chains_every_joint():
    text = (PACKAGE / 'config' / 'controllers.yaml').read_text()
    sections = yaml.safe_load(text.replace('$(var model_library)', 'arm.so'))
    types = sections['/**/controller_manager']['ros__parameters']
    ours = sections['/**/inverse_dynamics_controller']['ros__parameters']
    theirs = sections['/**/joint_trajectory_controller']['ros__parameters']
    assert set(ours) - {'type'} <= set(CONTROLLERS)
    assert ours['type'] == types['inverse_dynamics_controller']['type']
    assert ours['type'] == 'robodyn_controllers/InverseDynamicsController'
    assert theirs['joints'] == ours['joints']
    assert theirs['command_joints'] == [
        f'inverse_dynamics_controller/{joint}' for joint in ours['joints']
    ]
    assert theirs['command_interfaces'] == ['position', 'velocity', 'acceleration']


def vendored_gtest():
    """Return the folder of GoogleTest's sources, or skip the test."""
    prefixes = [sys.prefix, *os.environ.get('AMENT_PREFIX_PATH', '').split(':')]
    for folder in (
        *(Path(prefix, 'src', 'gtest_vendor') for prefix in prefixes if prefix),
        Path('/usr/src/googletest/googletest'),
    ):
        if (folder / 'src' / 'gtest-all.cc').is_file():
            return folder
    pytest.skip('no GoogleTest: neither gtest_vendor nor libgtest-dev')


def test_gtest_of_the_pipeline_passes(tmp_path):
    compiler = shutil.which('c++')
    if compiler is None:
        pytest.skip('there is no C++ compiler')
    gtest, program = vendored_gtest(), tmp_path / 'program'
    sources = [
        PACKAGE / 'test' / 'test_command_pipeline.cpp',
        *(gtest / 'src' / name for name in ('gtest-all.cc', 'gtest_main.cc')),
    ]
    options = [*headers(tmp_path), '-isystem', gtest / 'include', f'-I{gtest}', '-std=c++17']
    subprocess.run([compiler, *options, *sources, '-o', program, '-lpthread'], check=True)
    result = subprocess.run([program], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
