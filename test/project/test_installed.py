# SPDX-License-Identifier: Apache-2.0
"""What users install works: from a wheel, a source distribution, and colcon without links."""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from installations import (
    PATIENCE,
    colcon_prefixes,
    environment_of,
    environment_with_dependencies,
    output_of,
)
from simulated_recordings import TrueArm, as_csv

import robodyn_ros as rd
from robodyn_ros.cli import robodyn
from robodyn_ros.control import core_module

ROOT = Path(__file__).resolve().parents[2]
# Whoever installs has a clean copy: nothing built, nothing of this environment.
NOT_SHIPPED = shutil.ignore_patterns(
    '.git',
    '.venv',
    'build',
    'install',
    'log',
    'demo_output',
    '__pycache__',
    '*.egg-info',
    '.*_cache',
    '*.so',
)
# What is in ```sh may be copied and run as it stands, beside the folder urdf.
COMMANDS = {
    path.name: '\n'.join(blocks)
    for path in [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))]
    if (blocks := re.findall(r'^```sh\n(.*?)^```', path.read_text(encoding='utf-8'), re.S | re.M))
}
pytestmark = pytest.mark.slow  # wheels are made and installed
needs_ros = pytest.mark.skipif(
    importlib.util.find_spec('rclpy') is None, reason='ROS 2 (rclpy) is missing'
)


# --- what is shipped ---------------------------------------------------------------------------


def clean_copy(folder):
    """Return a copy of the sources in a folder, a new one for each build."""
    return shutil.copytree(ROOT, folder / 'src' / 'robodyn_ros', ignore=NOT_SHIPPED)


def built_wheel(sources, folder, **options):
    pip = [sys.executable, '-m', 'pip', 'wheel', '-q', '--no-deps', '-w', folder]
    output_of(*pip, sources, **options)
    return next(folder.glob('*.whl'))


def without_a_compiler(folder):
    return {**os.environ, 'CXX': '', 'PATH': str(folder)}


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp('wheel')
    return built_wheel(clean_copy(folder), folder)


@pytest.fixture(scope='module')
def source_distribution(tmp_path_factory):
    folder = tmp_path_factory.mktemp('sdist')
    output_of(sys.executable, 'setup.py', '-q', 'sdist', '-d', folder, cwd=clean_copy(folder))
    return next(folder.glob('*.tar.gz'))


def sources():
    """Return the files under robodyn_ros/ of this checkout: all of them are to be installed."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / 'robodyn_ros').rglob('*')
        if path.is_file() and '__pycache__' not in path.parts and path.suffix != '.so'
    }


def test_every_file_of_the_package_is_shipped_with_what_launch_files_and_compilers_need(
    wheel, source_distribution
):
    with tarfile.open(source_distribution) as archive:
        names = {name.partition('/')[2] for name in archive.getnames()}
    assert sources() - names == set()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert sources() - set(names) == set()
    assert [name for name in names if re.match(r'robodyn_ros/control/core_module\..*so$', name)]
    headers = {path.name for path in (ROOT / 'robodyn_ros/control/core').glob('*.hpp')}
    folders = {'/include/robodyn_ros/core/': headers}
    for folder in ('launch', 'config', 'urdf', 'rviz', 'worlds'):
        known = {path.name for path in (ROOT / folder).iterdir() if path.is_file()}
        folders[f'/share/robodyn_ros/{folder}/'] = known
    for folder, known in folders.items():
        assert {Path(name).name for name in names if folder in name} == known, folder
    for shared in ('cmake/robodyn_rosConfig.cmake', 'parameters/command_pipeline.yaml'):
        assert any(name.endswith(f'/share/robodyn_ros/{shared}') for name in names)


def core_digest(folder=ROOT):
    """Return the digest of the core's sources, which its module knows."""
    sources = sorted((folder / 'robodyn_ros' / 'control' / 'core').glob('*.[ch]pp'))
    return hashlib.sha256(b''.join(path.read_bytes() for path in sources)).hexdigest()


def test_the_core_that_the_tests_run_is_made_of_this_checkouts_sources():
    assert core_module.SOURCES == core_digest(), 'make setup builds it anew'


def test_without_a_compiler_the_library_is_installed_and_a_node_says_what_is_missing(tmp_path):
    wheel = built_wheel(clean_copy(tmp_path), tmp_path, env=without_a_compiler(tmp_path))
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith('.so')]
    python = installed(wheel, tmp_path / 'prefix')
    options = {'cwd': tmp_path, 'env': environment_of(python)}
    path = ROOT / 'urdf' / 'puma560.urdf'
    code = f'import robodyn_ros; print(robodyn_ros.RobotModel.from_urdf({str(path)!r}).n)'
    assert output_of(python, '-c', code, **options).strip() == '6'
    node = subprocess.run(
        [python, '-m', 'robodyn_ros.ros.dynamics.dynamics_node'],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **options,
    )
    assert node.returncode == 1
    assert 'compiled core' in node.stderr and 'sudo apt install g++' in node.stderr
    assert 'Traceback' not in node.stderr


def test_a_core_that_cannot_be_compiled_is_no_installation(tmp_path):
    copy = clean_copy(tmp_path)
    source = copy / 'robodyn_ros' / 'control' / 'core' / 'core_module.cpp'
    source.write_text('#error broken\n', encoding='utf-8')
    with pytest.raises(AssertionError, match='error broken'):
        built_wheel(copy, tmp_path)


# --- where it is installed ---------------------------------------------------------------------


def installed(what, folder):
    python = environment_with_dependencies(folder)
    output_of(sys.executable, '-m', 'pip', '--python', python, 'install', '-q', '--no-deps', what)
    return python


@pytest.fixture(scope='module')
def from_wheel(wheel, tmp_path_factory):
    return installed(wheel, tmp_path_factory.mktemp('from_wheel') / 'prefix')


@pytest.fixture(scope='module')
def from_source(source_distribution, tmp_path_factory):
    return installed(source_distribution, tmp_path_factory.mktemp('from_source') / 'prefix')


@pytest.fixture(scope='module')
def from_colcon(tmp_path_factory):
    """Return the interpreter where README's line has built a workspace, without links."""
    if importlib.util.find_spec('colcon') is None:
        pytest.skip('colcon is missing: environment/colcon.txt')
    workspace = tmp_path_factory.mktemp('from_colcon')
    python = environment_with_dependencies(workspace / 'prefix')
    clean_copy(workspace)
    readme = (ROOT / 'README.md').read_text(encoding='utf-8')
    (line,) = re.findall(r'^colcon build .*$', readme, re.M)
    environment = environment_of(python) | colcon_prefixes()
    output_of(
        'bash',
        '-ec',
        f'colcon() {{ {python} -m colcon "$@"; }}\n{line}\nenv -0 > environment',
        cwd=workspace,
        env=environment,
    )
    return python


@pytest.fixture
def elsewhere(tmp_path):
    """Return how to run a command of an installation: outside the checkout, its cache empty."""

    def options(python):
        environment = environment_of(python)
        sourced = python.parents[2] / 'environment'
        if sourced.exists():
            lines = sourced.read_text(encoding='utf-8').split('\0')
            environment = dict(line.split('=', 1) for line in lines if '=' in line)
        environment['ROBODYN_CACHE_DIR'] = str(tmp_path / 'cache')
        return {'cwd': tmp_path, 'env': environment}

    return options


# The source distribution installs the same files as the wheel.
@pytest.fixture(params=['wheel', pytest.param('colcon', marks=needs_ros)])
def python(request):
    return request.getfixturevalue(f'from_{request.param}')


# --- where nothing was installed -------------------------------------------------------------


def test_an_empty_environment_gets_what_is_needed_and_reports_when_asked_for(wheel, tmp_path):
    output_of(sys.executable, '-m', 'venv', tmp_path / 'prefix')
    python = tmp_path / 'prefix' / 'bin' / 'python'
    pip = [python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check']
    options = {'cwd': tmp_path, 'env': environment_of(python)}
    try:
        output_of(*pip, wheel, **options)
    except AssertionError as error:
        if 'onnection' in str(error):
            pytest.skip('no index of packages can be reached')
        raise
    puma = ROOT / 'urdf' / 'puma560.urdf'
    assert 'robodyn check' in output_of('robodyn', '--help', **options)
    assert len(re.findall('joint[1-6]', output_of('robodyn', 'dh', puma, **options))) >= 6
    report = ['robodyn', 'report', str(puma), '-o', 'report.html']
    refused = subprocess.run(report, capture_output=True, text=True, timeout=PATIENCE, **options)
    assert refused.returncode == 2 and "pip install 'robodyn-ros[report]'" in refused.stderr
    assert 'Traceback' not in refused.stderr
    output_of(*pip, f'{wheel}[report]', **options)
    output_of(*report, **options)
    assert (tmp_path / 'report.html').stat().st_size > 100_000


# --- what works there --------------------------------------------------------------------------


def test_what_is_imported_is_what_was_installed_and_compiles_an_arm(python, elsewhere):
    code = (
        'import numpy as np, robodyn_ros as rd, robodyn_ros.control.core_module as core\n'
        'print(rd.__file__, core.__file__, core.SOURCES)\n'
        f'arm = rd.RobotModel.from_urdf({str(ROOT / "urdf" / "puma560.urdf")!r})\n'
        'q = np.linspace(0.1, 0.6, arm.n)\n'
        'given = rd.compile_model(arm).gravity_torque(q)\n'
        'np.testing.assert_allclose(given, rd.gravity_torque(arm, q), atol=1e-9)\n'
    )
    *places, digest = output_of(python, '-c', code, **elsewhere(python)).split()
    assert all(Path(place).is_relative_to(python.parents[2]) for place in places)
    assert digest == core_digest()


def test_wheel_and_source_distribution_install_the_same_files(from_wheel, from_source):
    # So that a command that runs from the one runs from the other.
    def installed_files(python):
        prefix = python.parents[1]
        return {
            # Of what is compiled the name: it may know where.
            str(path.relative_to(prefix)): '' if path.suffix == '.so' else path.read_bytes()
            for folder in ('lib', 'share', 'include')
            for path in (prefix / folder).rglob('*')
            if path.is_file() and path.suffix != '.pyc' and '.dist-info' not in str(path)
        }

    ours, others = installed_files(from_wheel), installed_files(from_source)
    assert ours == others
    assert any(name.endswith('vectors.h') for name in ours)
    assert any(Path(name).name.startswith('core_module.') for name in ours)


@needs_ros
@pytest.mark.ros
def test_an_installed_node_is_started_commands_and_is_stopped(python, elsewhere, tmp_path):
    shutil.copy(ROOT / 'examples' / 'node_without_ros2_command.py', tmp_path)
    path = ROOT / 'urdf' / 'puma560.urdf'
    said = output_of(python, 'node_without_ros2_command.py', path, **elsewhere(python))
    assert 'stopped, exit codes [0, 0]' in said
    assert 'instead of compiled' not in said
    arm = rd.RobotModel.from_urdf(path)
    assert len(re.findall(r'joint\d: -?[\d.]+ N m', said)) == arm.n  # two programs write
    given = json.loads(re.search(r'gravity (\[.*?\])', said).group(1))
    np.testing.assert_allclose(given, rd.gravity_torque(arm, np.zeros(arm.n)), atol=0.1)


@needs_ros
@pytest.mark.ros
def test_a_node_whose_code_cannot_be_compiled_commands_and_says_why(
    from_source, elsewhere, tmp_path
):
    shutil.copy(ROOT / 'examples' / 'node_without_ros2_command.py', tmp_path)
    (header,) = from_source.parents[1].rglob('vectors.h')
    hidden = header.rename(header.with_suffix('.hidden'))
    try:
        path = ROOT / 'urdf' / 'puma560.urdf'
        said = output_of(
            from_source, 'node_without_ros2_command.py', path, **elsewhere(from_source)
        )
    finally:
        hidden.rename(header)
    assert re.search(r'WARN.*algorithm newton_euler instead of compiled: .*vectors\.h', said), said
    assert re.search(r'^joint2: -?[\d.]+ N m$', said, re.M)
    assert 'stopped, exit codes [0, 0]' in said


@needs_ros
@pytest.mark.ros
def test_the_demonstration_runs_where_it_is_installed(from_wheel, elsewhere, tmp_path):
    output_of('robodyn', 'demo', '--output', 'out', '--hold-time', '0.5', **elsewhere(from_wheel))
    numbers = json.loads((tmp_path / 'out' / 'summary.json').read_text(encoding='utf-8'))
    assert numbers['tracking_rms_computed_torque_rad'] < numbers['tracking_rms_pd_gravity_rad']


def test_commands_that_need_a_recording_run_where_they_are_installed(
    from_wheel, elsewhere, tmp_path
):
    arm = TrueArm.drawn(1, 3)
    (tmp_path / 'arm.urdf').write_text(arm.text, encoding='utf-8')
    for name, seed in (('recording', 1), ('other', 40)):
        as_csv(tmp_path / f'{name}.csv', arm.recording(seed, 12.0, rate=100.0))
    chain = '--base base --tip tip'
    output_of(
        'bash',
        '-ec',
        f'robodyn effort arm.urdf recording.csv {chain}\n'
        f'robodyn identify arm.urdf recording.csv --validate other.csv -o identified {chain}\n'
        f'robodyn contact-thresholds arm.urdf other.csv --identified identified/identified.yaml'
        f' {chain}\n'
        f'robodyn payload arm.urdf other.csv --identified identified/identified.yaml {chain}\n',
        **elsewhere(from_wheel),
    )
    assert (tmp_path / 'identified' / 'identified.yaml').is_file()


@pytest.mark.parametrize('page', COMMANDS)
def test_commands_of_the_pages_run_one_after_the_other(page, from_wheel, elsewhere, tmp_path):
    share = from_wheel.parents[1] / 'share' / 'robodyn_ros'
    (tmp_path / 'urdf').symlink_to(share / 'urdf')
    output_of('bash', '-ec', COMMANDS[page], **elsewhere(from_wheel))


def test_the_table_of_commands_runs_from_top_to_bottom(from_wheel, elsewhere, tmp_path):
    share = from_wheel.parents[1] / 'share' / 'robodyn_ros'
    (tmp_path / 'urdf').symlink_to(share / 'urdf')
    page = (ROOT / 'docs' / 'command_line.md').read_text(encoding='utf-8')
    table, _, below = page.partition('\n## ')
    lines = re.findall(r'^\| `(robodyn [^`]+)` \|', table, re.M)
    shown = {line.split()[1] for line in lines}
    # What needs a recording, or a node that runs, is named below the table.
    named = set(re.findall(r'`robodyn ([\w-]+)', below)) - shown
    assert set(robodyn.list_commands(None)) - shown == named
    for line in lines:
        assert output_of('bash', '-ec', line, **elsewhere(from_wheel)), line
