# SPDX-License-Identifier: Apache-2.0
"""What the manifests declare is what the code imports, and what is installed where."""

import ast
import configparser
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from lxml import etree

ROOT = Path(__file__).resolve().parents[2]

# How rosdep and PyPI call what Python imports under another name.
ROSDEP_KEYS = {
    'click': 'python3-click',
    'jinja2': 'python3-jinja2',
    'lxml': 'python3-lxml',
    'markupsafe': 'python3-jinja2',  # which is built on it
    'matplotlib': 'python3-matplotlib',
    'numpy': 'python3-numpy',
    'rich': 'python3-rich',
    'scipy': 'python3-scipy',
    'urdf_parser_py': 'urdfdom_py',
    'yaml': 'python3-yaml',
}
# Imported where they are needed, with a plain error where they are missing.
OPTIONAL = {'mujoco', 'rosbags', 'xacro'}
# Of PyPI alone; threads.py does without it on a ROS machine.
WITHOUT_ROSDEP_KEY = {'threadpoolctl'}

# What the launch files start or are started with; Gazebo, RViz and ros2_control are not for all.
STARTED = {'robot_state_publisher', 'ros2launch'}


def imported_packages(folder='robodyn_ros'):
    names = set()
    for path in (ROOT / folder).rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.split('.')[0])
    return names - set(sys.stdlib_module_names) - {'robodyn_ros'}


def manifest(path):
    return etree.parse(str(ROOT / path)).getroot()


def test_package_xml_names_every_imported_package_and_no_other():
    declared = {
        element.text
        for element in manifest('package.xml')
        if element.tag in ('depend', 'exec_depend')
    }
    imported = imported_packages() - OPTIONAL - WITHOUT_ROSDEP_KEY | imported_packages('launch')
    assert declared == {ROSDEP_KEYS.get(name, name) for name in imported} | STARTED


def test_runtime_requirements_name_every_imported_package_of_pypi():
    lines = (ROOT / 'environment' / 'runtime.txt').read_text().splitlines()
    listed = {re.split(r'[<>=~]', line)[0].replace('-', '_') for line in lines if line[:1] != '#'}
    # PyPI knows one of them by another name.
    listed = {'yaml' if name == 'pyyaml' else name for name in listed}
    assert listed == imported_packages() & {*ROSDEP_KEYS, *WITHOUT_ROSDEP_KEY}


def test_every_optional_import_has_an_extra():
    tree = ast.parse((ROOT / 'setup.py').read_text(encoding='utf-8'))
    (extras,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'EXTRAS'
    )
    named = {re.split('[<>=~]', name)[0] for names in extras.values() for name in names}
    assert named == OPTIONAL
    page = (ROOT / 'docs' / 'installation.md').read_text(encoding='utf-8')
    assert set(re.findall(r'^\| `(\w+)` \|', page, re.M)) == set(extras)


def test_the_interface_package_generates_every_interface_that_is_there():
    cmake = (ROOT / 'robodyn_interfaces' / 'CMakeLists.txt').read_text()
    there = {
        f'{path.parent.name}/{path.name}'
        for path in (ROOT / 'robodyn_interfaces').glob('*/*')
        if path.suffix in ('.msg', '.srv')
    }
    assert set(re.findall(r'(?:msg|srv)/\w+\.(?:msg|srv)', cmake)) == there


def test_every_number_of_an_interface_has_its_unit_in_its_comment():
    for path in (ROOT / 'robodyn_interfaces').glob('*/*'):
        for line in path.read_text().splitlines():
            if re.match(r'float64|float32', line):
                comment = line.partition('#')[2]
                assert '[' in comment or 'unit' in comment, f'{path.name}: {line}'


def test_version_is_the_same_everywhere():
    import robodyn_ros

    setup = re.search(r"version='([^']+)'", (ROOT / 'setup.py').read_text()).group(1)
    assert manifest('package.xml').findtext('version') == setup
    assert manifest('robodyn_interfaces/package.xml').findtext('version') == setup
    assert robodyn_ros.__version__ == setup


def test_ros_finds_executables_where_it_looks_and_the_shell_finds_the_command():
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


def test_every_source_file_names_its_licence():
    sources = [
        *ROOT.glob('*.py'),
        *(ROOT / 'environment').glob('*.py'),
        *(ROOT / 'environment').glob('*.sh'),
        *(
            path
            for folder in ('robodyn_ros', 'test', 'launch', 'benchmarks', 'examples')
            for path in (ROOT / folder).rglob('*.py')
        ),
    ]
    unnamed = [
        path
        for path in sources
        if path.stat().st_size
        and 'SPDX-License-Identifier: Apache-2.0' not in path.read_text(encoding='utf-8')[:200]
    ]
    assert not unnamed
