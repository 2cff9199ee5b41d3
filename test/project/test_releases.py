# SPDX-License-Identifier: Apache-2.0
"""The three packages are released from repositories of their own: release/split_packages.sh."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from installations import colcon_prefixes, environment_of, environment_with_dependencies, output_of

pytest.importorskip('catkin_pkg', reason='catkin_pkg is missing: environment/colcon.txt')

from catkin_pkg.changelog import Changelog, populate_changelog_from_rst
from catkin_pkg.package import parse_package
from catkin_pkg.package_version import get_forthcoming_label, rename_section
from catkin_pkg.packages import find_packages

ROOT = Path(__file__).resolve().parents[2]
INNER = ('robodyn_interfaces', 'robodyn_controllers')
PACKAGES = (*INNER, 'robodyn_ros')
# Where each distribution's packages are made, of those that are supported or come next.
PLATFORMS = {
    'jazzy': 'ubuntu:noble',
    'kilted': 'ubuntu:noble',
    'lyrical': 'ubuntu:resolute',
    'rolling': 'ubuntu:resolute',
}
# Of the root's tests, those that show in seconds that library, core and messages were built.
SHOWING = (
    'dynamics',
    'ros_parameters',
    'control/test_core_against_numpy.py',
    'ros/test_conversions.py',
    'ros/services/test_service_refusals.py',
)

if not all((ROOT / name).is_dir() for name in INNER):
    pytest.skip('this is the repository of one package', allow_module_level=True)


def manifest(package):
    """Return a package as tools read its manifest."""
    return parse_package(str(ROOT if package == 'robodyn_ros' else ROOT / package))


def depended_on(package):
    """Return the names that a package depends on in any way, whatever a condition says."""
    found = manifest(package)
    kinds = ('build', 'buildtool', 'build_export', 'buildtool_export', 'exec', 'test', 'doc')
    return {each.name for kind in kinds for each in getattr(found, f'{kind}_depends')}


# --- what each manifest says -------------------------------------------------------------------


def test_the_controller_runs_without_the_package_that_it_is_built_with():
    package = manifest('robodyn_controllers')
    needed = {each.name for each in package.exec_depends + package.build_export_depends}
    assert 'rclcpp' in needed
    assert needed.isdisjoint({'robodyn_ros', 'rclpy'})
    assert not [name for name in needed if name.startswith('python')]
    assert 'robodyn_ros' in {each.name for each in package.build_depends}


@pytest.mark.parametrize('package', PACKAGES)
def test_each_package_brings_its_licence(package):
    found = manifest(package)
    (licence,) = found.licenses
    text = Path(found.filename).with_name(licence.file).read_bytes()
    assert text == (ROOT / 'LICENSE').read_bytes()


@pytest.mark.parametrize('package', PACKAGES)
def test_tools_take_every_change_of_a_release_from_its_changelog(package):
    found = manifest(package)
    text = Path(found.filename).with_name('CHANGELOG.rst').read_text(encoding='utf-8')
    label = get_forthcoming_label(text)
    if label:  # as catkin_prepare_release will write it
        text = rename_section(text, label, f'{found.version} (2026-01-01)')
    changes = populate_changelog_from_rst(Changelog(found.name), text)
    lists = [
        each for each in changes.get_content_of_version(found.version) if hasattr(each, 'bullets')
    ]
    section = re.split(r'^\d.* \(.*\)\n-+$', text, flags=re.M)[1]
    written = re.findall(r'^\* ', section, re.M)
    assert written and sum(len(each.bullets) for each in lists) == len(written)


@pytest.mark.parametrize('distribution', PLATFORMS)
def test_each_dependency_is_a_package_of_ours_or_a_key_of_rosdep(distribution):
    command = shutil.which('rosdep')
    if command is None:
        pytest.skip('rosdep is missing')
    options = ['--rosdistro', distribution, '--os', PLATFORMS[distribution]]
    known = subprocess.run([command, 'resolve', *options, 'rclpy'], capture_output=True, text=True)
    if known.returncode:
        pytest.skip(f'rosdep knows nothing of {distribution}: {known.stderr.strip()[:200]}')
    keys = set().union(*map(depended_on, PACKAGES)) - set(PACKAGES)
    output_of(command, 'resolve', *options, *sorted(keys))


# --- the three repositories --------------------------------------------------------------------


@pytest.fixture(scope='module')
def splits(tmp_path_factory):
    """Return the folder with a repository for each package."""
    if not (ROOT / '.git').exists() or git(ROOT, 'rev-parse', '--is-shallow-repository') == 'true':
        pytest.skip('there is no history to split')
    if subprocess.run(['git', 'subtree', '-h'], capture_output=True).returncode not in (0, 129):
        pytest.skip('git subtree is missing')
    folder = tmp_path_factory.mktemp('splits')
    output_of(ROOT / 'release' / 'split_packages.sh', folder)
    return folder


def git(folder, *words):
    return output_of('git', '-C', folder, *words).strip()


@pytest.mark.longer
@pytest.mark.parametrize('package', PACKAGES)
def test_tools_find_exactly_one_package_in_each_repository(package, splits):
    found = find_packages(str(splits / package))
    assert {path: each.name for path, each in found.items()} == {'.': package}
    # Nor is there one further down, which bloom and rosdep would overlook.
    assert len(list((splits / package).rglob('package.xml'))) == 1


@pytest.mark.longer
@pytest.mark.parametrize('package', INNER)
def test_a_repository_holds_a_folder_and_its_history(package, splits):
    assert git(splits / package, 'rev-parse', 'HEAD^{tree}') == git(
        ROOT, 'rev-parse', f'HEAD:{package}'
    )
    subjects = git(ROOT, 'log', '--format=%s', '--', package).splitlines()
    assert len(subjects) > 1
    assert set(git(splits / package, 'log', '--format=%s').splitlines()) >= set(subjects)


@pytest.mark.longer
def test_the_roots_repository_is_this_one_without_the_two(splits):
    folder = splits / 'robodyn_ros'
    assert git(folder, 'rev-parse', 'HEAD^') == git(ROOT, 'rev-parse', 'HEAD')
    changed = git(folder, 'diff', '--name-status', 'HEAD^', 'HEAD').splitlines()
    assert {line.partition('\t')[0] for line in changed} == {'D'}
    assert {line.partition('\t')[2].partition('/')[0] for line in changed} == set(INNER)


# --- a workspace of the three ------------------------------------------------------------------


@pytest.fixture(scope='module')
def workspace(splits, tmp_path_factory):
    """Return a workspace where plain colcon has built them, the interpreter, the environment."""
    if importlib.util.find_spec('colcon') is None or importlib.util.find_spec('rclpy') is None:
        pytest.skip('colcon or ROS 2 (rclpy) is missing')
    folder = tmp_path_factory.mktemp('workspace')
    for package in PACKAGES:
        shutil.copytree(splits / package, folder / 'src' / package)
    python = environment_with_dependencies(folder / 'prefix')
    environment = environment_of(python) | colcon_prefixes()
    colcon = [python, '-m', 'colcon']
    listed = output_of(*colcon, 'list', '--names-only', cwd=folder, env=environment)
    assert set(listed.split()) == set(PACKAGES)
    left_out = [] if has_ros2_control() else ['--packages-skip', 'robodyn_controllers']
    options = ['--event-handlers', 'console_direct+', '--base-paths', 'src', *left_out]
    # Else colcon compiles nothing side by side where the machine is busy.
    environment['MAKEFLAGS'] = f'-j{os.cpu_count()}'
    cmake = ['--cmake-args', f'-DPython3_EXECUTABLE={python}']
    output_of(*colcon, 'build', *options, *cmake, cwd=folder, env=environment, timeout=1800)
    sourced = output_of(
        'bash', '-c', 'source install/setup.bash && env -0', cwd=folder, env=environment
    )
    lines = [line for line in sourced.split('\0') if '=' in line]
    return folder, python, dict(line.split('=', 1) for line in lines)


def has_ros2_control():
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    return any(Path(each, 'share', 'controller_interface').is_dir() for each in prefixes if each)


@pytest.mark.slow
def test_the_root_builds_beside_the_interfaces_and_passes_its_tests(workspace):
    folder, python, environment = workspace
    where = (
        'import json, robodyn_ros.control.core_module as core, robodyn_interfaces\n'
        'print(json.dumps([core.__file__, robodyn_interfaces.__file__]))'
    )
    for path in json.loads(output_of(python, '-c', where, cwd=folder, env=environment)):
        assert Path(path).is_relative_to(folder / 'install')
    chosen = [f'test/{each}' for each in SHOWING]
    said = output_of(
        python,
        '-c',  # not -m, which would find the sources of this folder first
        'import sys, pytest; sys.path.remove(""); sys.exit(pytest.main(sys.argv[1:]))',
        *('-q', '-rs', '-p', 'no:cacheprovider', '-m', 'not longer and not slow'),
        *chosen,
        cwd=folder / 'src' / 'robodyn_ros',
        env=environment,
    )
    assert re.search(r'\d+ passed', said), said


@pytest.mark.slow
def test_the_controllers_logic_is_built_with_the_exported_target_and_passes_its_tests(workspace):
    folder, _, environment = workspace
    cmake = shutil.which('cmake', path=environment['PATH'])
    package = folder / 'src' / 'robodyn_controllers'
    name = 'test_controller_logic'  # what needs no ros2_control
    project = folder / 'logic'
    project.mkdir()
    lines = [
        'cmake_minimum_required(VERSION 3.18)',
        'project(logic CXX)',
        'find_package(robodyn_ros REQUIRED)',
    ]
    lines += [
        f'add_executable({name} {package}/test/{name}.cpp)',
        f'target_include_directories({name} PRIVATE {package}/include)',
        f'target_include_directories({name} SYSTEM PRIVATE {package}/test/without_googletest)',
        f'target_link_libraries({name} robodyn_ros::core ${{CMAKE_DL_LIBS}})',
    ]
    (project / 'CMakeLists.txt').write_text('\n'.join(lines), encoding='utf-8')
    output_of(cmake, '-S', project, '-B', project / 'build', env=environment)
    cache = (project / 'build' / 'CMakeCache.txt').read_text(encoding='utf-8')
    found = re.search(r'^robodyn_ros_DIR:PATH=(.*)$', cache, re.M)[1]
    assert Path(found).is_relative_to(folder / 'install')
    output_of(cmake, '--build', project / 'build', env=environment)
    assert 'passed' in output_of(project / 'build' / name)


@pytest.mark.slow
def test_the_controllers_package_builds_and_what_it_loads_names_no_python(workspace):
    folder, python, environment = workspace
    if not has_ros2_control():
        pytest.skip('ros2_control (controller_interface) is not installed')
    library = folder / 'install/robodyn_controllers/lib/librobodyn_controllers.so'
    needed = output_of('readelf', '-d', library)
    assert 'NEEDED' in needed and 'python' not in needed.lower()
    output_of(
        *(python, '-m', 'colcon', 'test', '--base-paths', 'src'),
        *('--packages-select', 'robodyn_controllers', '--return-code-on-test-failure'),
        cwd=folder,
        env=environment,
    )
