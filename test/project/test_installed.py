# SPDX-License-Identifier: Apache-2.0
"""What is installed from a wheel or a source distribution works, away from the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

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
)
PATIENCE = 600.0  # for one command on a loaded machine [s]


def output_of(*command, **options):
    """Return what a command prints, once it has ended well."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **options,
    )
    assert done.returncode == 0, f'{command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}'
    return done.stdout


@pytest.fixture(scope='module')
def clean_copy(tmp_path_factory):
    """Return a copy of the sources without anything that was made of them."""
    copy = tmp_path_factory.mktemp('sources') / 'robodyn_ros'
    shutil.copytree(ROOT, copy, ignore=NOT_SHIPPED)
    return copy


@pytest.fixture(scope='module')
def wheel(clean_copy, tmp_path_factory):
    folder = tmp_path_factory.mktemp('wheel')
    output_of(sys.executable, '-m', 'pip', 'wheel', '-q', '--no-deps', '-w', folder, clean_copy)
    return next(folder.glob('*.whl'))


@pytest.fixture(scope='module')
def source_distribution(clean_copy, tmp_path_factory):
    folder = tmp_path_factory.mktemp('sdist')
    output_of(sys.executable, 'setup.py', '-q', 'sdist', '-d', folder, cwd=clean_copy)
    return next(folder.glob('*.tar.gz'))


def sources():
    """Return the files under robodyn_ros/ of this checkout."""
    package = ROOT / 'robodyn_ros'
    return {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob('*')
        if path.is_file() and '__pycache__' not in path.parts
    }


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert sources() - set(archive.namelist()) == set()


def test_every_file_of_the_package_is_in_the_source_distribution(source_distribution):
    with tarfile.open(source_distribution) as archive:
        names = {name.partition('/')[2] for name in archive.getnames()}
    assert sources() - names == set()


def installed(what, folder):
    """
    Return the interpreter of a new environment that holds nothing of ours but one installation.

    What it depends on is found where the tests find it; nested .pth files are not read, so that
    the links to this checkout are not followed.
    """
    output_of(sys.executable, '-m', 'venv', '--without-pip', folder)
    python = folder / 'bin' / 'python'
    paths = {sysconfig.get_path('purelib'), sysconfig.get_path('platlib')}
    version = f'python{sys.version_info.major}.{sys.version_info.minor}'
    dependencies = folder / 'lib' / version / 'site-packages' / 'dependencies.pth'
    dependencies.write_text('\n'.join(paths))
    output_of(sys.executable, '-m', 'pip', '--python', python, 'install', '-q', '--no-deps', what)
    return python


@pytest.fixture(scope='module', params=['wheel', 'source_distribution'])
def python(request, tmp_path_factory):
    what = request.getfixturevalue(request.param)
    return installed(what, tmp_path_factory.mktemp(request.param) / 'prefix')


@pytest.fixture
def elsewhere(python, tmp_path):
    """Return how to run a command: outside the checkout, no path to it, a cache of its own."""
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    environment |= {
        'PATH': f'{python.parent}:{os.environ["PATH"]}',
        'ROBODYN_CACHE_DIR': str(tmp_path / 'cache'),
    }
    return {'cwd': tmp_path, 'env': environment}


def test_the_installed_library_is_what_is_imported(python, elsewhere):
    code = 'import robodyn_ros; print(robodyn_ros.__file__)'
    place = Path(output_of(python, '-c', code, **elsewhere).strip())
    assert place.is_relative_to(python.parents[1])


def test_an_installed_library_compiles_an_arm(python, elsewhere):
    code = (
        'import numpy as np, robodyn_ros as rd\n'
        f'arm = rd.RobotModel.from_urdf({str(ROOT / "urdf" / "puma560.urdf")!r})\n'
        'q = np.linspace(0.1, 0.6, arm.n)\n'
        'given = rd.compile_model(arm).gravity_torque(q)\n'
        'np.testing.assert_allclose(given, rd.gravity_torque(arm, q), atol=1e-9)\n'
    )
    output_of(python, '-c', code, **elsewhere)
