# SPDX-License-Identifier: Apache-2.0
"""The controller loads a library only where nobody but its user and root may write it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from controller_core import compiled_program, cpp_compiler, exported, headers
from controllers_package import controllers_package
from robots import two_link_urdf

from robodyn_ros import RobotModel


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """Return a program that loads a library, and a library."""
    folder = tmp_path_factory.mktemp('built')
    source = Path(__file__).with_name('load_library.cpp')
    options = headers(folder)
    library = folder / 'arm.so'
    pendulum = controllers_package() / 'test' / 'pendulum_model.cpp'
    command = [cpp_compiler(), '-std=c++17', '-shared', '-fPIC', *options, pendulum, '-o', library]
    subprocess.run(command, check=True, timeout=300)
    return compiled_program(source, folder, options), library


@pytest.fixture
def arm(built, tmp_path):
    """Return a library in folders of its own, and what the program says to a path."""
    program, library = built
    (tmp_path / 'mine' / 'model').mkdir(parents=True, mode=0o755)
    path = shutil.copy(library, tmp_path / 'mine' / 'model')
    os.chmod(path, 0o755)

    def said(path, **options):
        done = subprocess.run([program, path], capture_output=True, text=True, **options)
        return done.stdout.strip()

    assert said(path) == 'swing'
    return tmp_path / 'mine' / 'model' / 'arm.so', said


@pytest.mark.parametrize('mode', [0o775, 0o757])
@pytest.mark.parametrize('part', ['.', '..', '../..'])
def test_what_others_may_write_is_not_loaded(arm, part, mode):
    path, said = arm
    open_part = (path / part if part != '.' else path).resolve()
    os.chmod(open_part, mode)
    assert f"others may write '{open_part}'" in said(path)
    link = path.parents[2] / 'link.so'
    link.symlink_to(path)
    assert f"others may write '{open_part}'" in said(link)


def test_a_folder_with_the_sticky_bit_may_lead_to_a_library(arm):
    path, said = arm
    os.chmod(path.parent, 0o1777)
    assert said(path) == 'swing'


@pytest.mark.skipif(os.geteuid() != 0, reason='only root gives a file to another user')
@pytest.mark.parametrize('part', ['.', '..'])
def test_what_belongs_to_another_user_is_not_loaded(arm, part):
    path, said = arm
    other = (path / part if part != '.' else path).resolve()
    os.chown(other, 12345, -1)
    assert f"'{other}' belongs to user 12345" in said(path)


def test_an_exported_library_is_the_users_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        library = exported(RobotModel.from_urdf(two_link_urdf()), tmp_path)
    finally:
        os.umask(before)
    assert library.stat().st_mode & 0o777 == 0o755


def test_a_library_is_named_by_an_absolute_path(arm):
    path, said = arm
    searched = {**os.environ, 'LD_LIBRARY_PATH': str(path.parent)}
    for name in ('arm.so', './arm.so', '', 'libm.so.6'):
        assert f"'{name}'; allowed: an absolute path" in said(name, cwd=path.parent, env=searched)
    assert 'a file that is there' in said('/nowhere/arm.so')
    assert 'a regular file' in said(path.parent)


def test_library_of_another_version_is_refused_by_its_symbol(built, tmp_path):
    program, _ = built
    pendulum = controllers_package() / 'test' / 'pendulum_model.cpp'
    path = tmp_path / 'old.so'
    old = [*headers(tmp_path), '-Drobodyn_model_v5=robodyn_model_v4']
    command = [cpp_compiler(), '-std=c++17', '-shared', '-fPIC', *old, pendulum, '-o', path]
    subprocess.run(command, check=True, timeout=300)
    path.chmod(0o755)
    said = subprocess.run([program, path], capture_output=True, text=True).stdout
    assert 'has no robodyn_model_v5: make it with the robodyn export --shared of this' in said
