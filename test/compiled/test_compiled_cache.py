# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code is the user's own, and gives back what was stored or nothing."""

import multiprocessing
import os
import stat

import numpy as np
import pytest
from compilers import needs_compiler
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.compiled import compile_model
from robodyn_ros.compiled.c import cache, library
from robodyn_ros.compiled.c.cache import RefusedCacheEntry
from robodyn_ros.errors import NoBackend

KEY = 'a' * 64


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    path = tmp_path / 'cache'
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(path))
    return path


def test_what_was_stored_comes_back(directory):
    assert cache.stored(KEY) is None
    cache.store(KEY, b'code')
    assert cache.stored(KEY) == b'code'
    cache.store(KEY, b'other')
    assert cache.stored(KEY) == b'other'
    assert os.listdir(directory) == [KEY]


def test_directory_and_files_are_private(directory):
    cache.store(KEY, b'code')
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / KEY).stat().st_mode) == 0o600


def test_every_changed_byte_is_noticed(directory):
    cache.store(KEY, b'code')
    whole = (directory / KEY).read_bytes()
    for k in range(len(whole)):
        (directory / KEY).write_bytes(whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :])
        with pytest.raises(RefusedCacheEntry):
            cache.stored(KEY)
    for cut in (0, 10, len(whole) - 1):
        (directory / KEY).write_bytes(whole[:cut])
        with pytest.raises(RefusedCacheEntry):
            cache.stored(KEY)


def link(path):
    path.rename(path.with_name('elsewhere'))
    path.symlink_to(path.with_name('elsewhere'))


def link_directory(path):
    link(path.parent)


def put_a_pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def put_the_entry_of_another_name(path):
    cache.store('b' * 64, b'code')
    path.with_name('b' * 64).rename(path)


@pytest.mark.parametrize(
    'change', [link, link_directory, put_a_pipe, put_the_entry_of_another_name]
)
def test_what_is_no_entry_of_ours_is_refused(directory, change):
    cache.store(KEY, b'code')
    change(directory / KEY)
    with pytest.raises(RefusedCacheEntry):
        cache.stored(KEY)


@pytest.mark.parametrize('mode', [0o755, 0o770, 0o707])
def test_directory_open_to_others_is_refused(directory, mode):
    cache.store(KEY, b'code')
    directory.chmod(mode)
    assert_refused('mode')


def test_foreign_owner_is_refused(directory, monkeypatch):
    cache.store(KEY, b'code')
    monkeypatch.setattr(os, 'geteuid', lambda: os.getuid() + 1)
    assert_refused('owner')


def assert_refused(why):
    """Neither reading nor writing is done."""
    for call in (lambda: cache.stored(KEY), lambda: cache.store(KEY, b'x')):
        with pytest.raises(RefusedCacheEntry, match=why):
            call()


@pytest.mark.parametrize('mode', [0o622, 0o606, 0o640])
def test_file_open_to_others_is_refused(directory, mode):
    cache.store(KEY, b'code')
    (directory / KEY).chmod(mode)
    with pytest.raises(RefusedCacheEntry, match='mode'):
        cache.stored(KEY)


@needs_compiler
def test_directory_in_place_of_an_entry_leaves_the_functions_and_notes(arm, directory):
    compile_model(arm, kernels=['gravity_torque'])
    (entry,) = directory.iterdir()
    entry.unlink()
    entry.mkdir(mode=0o700)
    (entry / 'content').touch()
    compiled = compile_model(arm, kernels=['gravity_torque'])
    assert len(compiled.notes) == 2  # neither read nor written
    gravity_is_right(arm, compiled)
    assert os.listdir(directory) == [entry.name]


def _store(number):
    cache.store(KEY, bytes([number]) * 100_000)
    return set(cache.stored(KEY))


@pytest.mark.longer
def test_processes_that_store_at_once_leave_one_whole_entry(directory):
    with multiprocessing.get_context('spawn').Pool(4) as pool:
        seen = pool.map(_store, range(24))
    assert all(len(values) == 1 for values in seen)
    assert os.listdir(directory) == [KEY]


@pytest.fixture
def arm():
    return rd.RobotModel.from_urdf(two_link_urdf(), gravity=(0, -9.81, 0))


@pytest.fixture
def compilations(monkeypatch):
    """Return a list that grows by one with every run of the compiler."""
    runs = []
    original = library.compiled_library
    monkeypatch.setattr(
        library, 'compiled_library', lambda *given: (runs.append(1), original(*given))[1]
    )
    return runs


def gravity_is_right(arm, compiled):
    np.testing.assert_allclose(
        compiled.gravity_torque([0.1, 0.2]), rd.gravity_torque(arm, [0.1, 0.2]), atol=1e-12
    )


@needs_compiler
def test_second_compilation_comes_from_the_cache(arm, compilations):
    first, second = (compile_model(arm, kernels=['gravity_torque']) for _ in range(2))
    assert len(compilations) == 1
    assert first.operation_counts == second.operation_counts
    gravity_is_right(arm, second)


@pytest.mark.longer
@needs_compiler
def test_another_model_option_or_version_is_compiled_anew(arm, compilations, monkeypatch):
    kernels = ['gravity_torque']
    compile_model(arm, kernels=kernels)
    compile_model(arm.with_gravity((0, -1, 0)), kernels=kernels)
    compile_model(arm, kernels=kernels, runtime=['gravity'])
    compile_model(arm, kernels=['bias_torque'])
    from robodyn_ros.compiled import compiled_model

    monkeypatch.setattr(compiled_model, '_generator', lambda: 'the next version')
    compile_model(arm, kernels=kernels)
    assert len(compilations) == 5


@needs_compiler
def test_damaged_code_is_never_loaded_but_compiled_again(arm, directory, compilations):
    compile_model(arm, kernels=['gravity_torque'])
    (entry,) = directory.iterdir()
    entry.write_bytes(entry.read_bytes()[:-1] + b'x')
    again = compile_model(arm, kernels=['gravity_torque'])
    assert len(compilations) == 2
    assert 'changed' in again.notes[0]
    gravity_is_right(arm, again)
    assert compile_model(arm, kernels=['gravity_torque']).notes == ()


@needs_compiler
def test_full_disk_leaves_the_functions_and_a_note(arm, monkeypatch):
    def full(*_, **__):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(cache, '_write', full)
    compiled = compile_model(arm, kernels=['gravity_torque'])
    assert 'No space left' in compiled.notes[0]
    gravity_is_right(arm, compiled)


def test_without_a_compiler_the_error_names_it_and_what_serves_instead(arm, monkeypatch):
    monkeypatch.setenv('CC', '/nowhere/cc')
    with pytest.raises(NoBackend, match=r'/nowhere/cc.*NumPy'):
        compile_model(arm)
