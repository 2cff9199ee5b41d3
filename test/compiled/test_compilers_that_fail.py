# SPDX-License-Identifier: Apache-2.0
"""Whatever the compiler does, it holds nobody up, leaves nothing behind, and is not believed."""

import gc
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from compilers import MANY_SAMPLES_WRONG, ONE_SAMPLE_WRONG, REAL, SINE_WRONG, miscompiler, program
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.compiled import compile_model
from robodyn_ros.compiled.c import compiler, library
from robodyn_ros.compiled.verification import largest_difference
from robodyn_ros.errors import NoBackend

pytestmark = [pytest.mark.longer, pytest.mark.skipif(not REAL, reason='there is no C compiler')]

PATIENCE = 20.0  # for the end of a killed process [s]


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    path = tmp_path / 'cache'
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(path))
    return path


@pytest.fixture
def arm():
    return rd.RobotModel.from_urdf(two_link_urdf(), gravity=(0, -9.81, 0))


def compiled(arm):
    return compile_model(arm, kernels=['inverse_dynamics', 'mass_matrix'])


def is_right(arm, functions):
    q = np.array([0.1, 0.2])
    np.testing.assert_allclose(functions.mass_matrix(q), rd.mass_matrix(arm, q), atol=1e-12)


# --- what cannot be run ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('command', 'words'),
    [
        (b'\x7fELF for a machine of another kind', 'Exec format error.*NumPy'),
        (r"printf 'caf\351 ferm\351' >&2; exit 1", 'caf.* ferm'),  # no UTF-8
        ('cc "', 'environment variable CC'),  # an open quotation
        ("'", 'environment variable CC'),
        ('cc \\', 'environment variable CC'),
        (f'{REAL} -fno-such-option', 'no-such-option'),
    ],
)
def test_command_that_does_not_compile_is_refused_with_its_reason(
    arm, monkeypatch, tmp_path, command, words
):
    is_program = isinstance(command, bytes) or 'exit' in command
    monkeypatch.setenv('CC', program(tmp_path, command) if is_program else command)
    with pytest.raises(NoBackend, match=words):
        compiled(arm)


@pytest.mark.parametrize('command', ['', ' ', '\t '])
def test_blank_command_is_none_and_the_usual_compiler_serves(arm, monkeypatch, command):
    monkeypatch.setenv('CC', command)
    is_right(arm, compiled(arm))


# --- what it prints ----------------------------------------------------------------------------


def test_version_that_is_not_utf_8_matters_to_nobody(arm, monkeypatch, tmp_path):
    version = r"""case "$*" in *--version*) printf 'caf\351';; esac"""
    monkeypatch.setenv('CC', program(tmp_path, f'{version}\nexec {REAL} "$@"'))
    is_right(arm, compiled(arm))


def test_hundred_megabytes_of_messages_end_as_a_short_reason(arm, monkeypatch, tmp_path):
    flood = 'yes warning | head -c 100000000 >&2; echo; echo the end >&2; exit 1'
    monkeypatch.setenv('CC', program(tmp_path, flood))
    with pytest.raises(NoBackend) as caught:
        compiled(arm)
    assert 'the end' in caught.value.value and len(caught.value.value) < 1000


def test_messages_do_not_depend_on_the_locale(monkeypatch, tmp_path):
    monkeypatch.setenv('LC_ALL', 'xx_YY.nonsense')
    said = compiler.output_of([program(tmp_path, 'echo $LC_ALL')], 10.0, 'stdout')
    assert said == (0, 'C\n')


def test_noise_of_a_preloaded_library_does_not_change_the_cache_s_key(monkeypatch, tmp_path):
    before = library.build_identity()
    monkeypatch.setenv('LD_PRELOAD', '/no/such/library.so')
    assert library.build_identity() == before


# --- how long it takes -------------------------------------------------------------------------

HANG = 'sleep 1000 & echo $! > "{}"; wait'


def until_ended(pid):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            state = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == 'Z':
            return True
        time.sleep(0.01)
    return False


def hanging(tmp_path, only_to_compile=False):
    """Return a compiler that hangs in a process of its own, and where that one's id is written."""
    file = tmp_path / 'pid'
    version = 'case "$*" in --version) echo 1.0; exit 0;; esac\n' if only_to_compile else ''
    return program(tmp_path, version + HANG.format(file)), file


def test_compiler_that_does_not_say_its_version_is_ended_with_what_it_started(
    arm, monkeypatch, tmp_path
):
    monkeypatch.setattr(compiler, 'VERSION_TIMEOUT', 0.3)
    command, file = hanging(tmp_path)
    monkeypatch.setenv('CC', command)
    with pytest.raises(NoBackend, match='no end after 0.3 s'):
        compiled(arm)
    assert until_ended(int(file.read_text()))


def test_compiler_that_does_not_end_is_asked_once_and_ended(arm, monkeypatch, tmp_path):
    monkeypatch.setattr(library, '_LONGEST_COMPILATION', 0.5)
    monkeypatch.setattr(library, '_LONGEST_PER_OPERATION', 0.0)
    command, file = hanging(tmp_path, only_to_compile=True)
    monkeypatch.setenv('CC', command)
    runs = []
    output_of = library.output_of
    monkeypatch.setattr(library, 'output_of', lambda *args: (runs.append(1), output_of(*args))[1])
    with pytest.raises(NoBackend, match='no end after'):
        compiled(arm)
    assert until_ended(int(file.read_text()))
    assert len(runs) == 1


def test_helper_that_a_compiler_leaves_running_is_not_waited_for(tmp_path):
    body = f'sleep 1000 & echo $! > "{tmp_path / "pid"}"; echo done'
    said = compiler.output_of([program(tmp_path, body)], 60.0, 'stdout')
    pid = int((tmp_path / 'pid').read_text())
    os.kill(pid, signal.SIGKILL)
    assert said == (0, 'done\n')


class Interruption(BaseException):
    """As a signal's handler raises it."""


def test_interrupted_compilation_leaves_nothing_running(arm, monkeypatch, tmp_path):
    command, file = hanging(tmp_path, only_to_compile=True)
    monkeypatch.setenv('CC', command)

    def interrupt(*_):
        if not file.exists() or not file.read_text():
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            return
        raise Interruption

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Interruption):
            compiled(arm)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert until_ended(int(file.read_text()))


@pytest.mark.parametrize('number', range(20))
def test_compiler_that_is_interrupted_while_it_starts_ends(monkeypatch, tmp_path, number):
    command, _ = hanging(tmp_path)
    begun = []

    class Slow(subprocess.Popen):
        """A process whose number is returned long after it began."""

        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            begun.append(self.pid)
            time.sleep(0.02)

    def interrupt(*_):
        raise Interruption

    monkeypatch.setattr(subprocess, 'Popen', Slow)
    before = signal.signal(signal.SIGALRM, interrupt)
    gc.disable()  # what a callback of the collector raises is ignored
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.001 * number)
        with pytest.raises(Interruption):
            compiler.output_of([command], 1000.0, 'stdout')
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert all(until_ended(each) for each in begun)


def test_compiler_of_a_killed_process_ends_with_what_it_started(tmp_path):
    command, file = hanging(tmp_path)
    code = (
        'from robodyn_ros.compiled.c.compiler import output_of\n'
        f'output_of([{command!r}], 1000.0, "stdout")\n'
    )
    process = subprocess.Popen([sys.executable, '-c', code])
    deadline = time.monotonic() + PATIENCE
    while not file.exists() or not file.read_text():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)  # the guard starts behind the compiler
    process.kill()
    process.wait()
    assert until_ended(int(file.read_text()))


# --- where it keeps what it made ---------------------------------------------------------------


def test_user_without_an_account_on_the_machine_gets_functions_and_a_note(arm, monkeypatch):
    def unknown(uid):
        raise KeyError(f'getpwuid(): uid not found: {uid}')

    for name in ('HOME', 'XDG_CACHE_HOME', 'ROBODYN_CACHE_DIR'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, 'getpwuid', unknown)
    functions = compiled(arm)
    assert 'ROBODYN_CACHE_DIR' in functions.notes[0]
    is_right(arm, functions)


def test_no_place_for_temporary_files_is_a_reason(arm, monkeypatch):
    monkeypatch.setattr('tempfile.tempdir', '/no/such/place')
    with pytest.raises(NoBackend, match='/no/such/place'):
        compiled(arm)


def test_same_code_is_mapped_once(arm):
    first = compiled(arm)
    code = Path('/proc/self/maps').read_text().count('kernels.so')
    again = [compiled(arm.with_gravity(arm.gravity)) for _ in range(3)]
    assert Path('/proc/self/maps').read_text().count('kernels.so') == code
    for functions in (first, *again):
        is_right(arm, functions)


# --- what it leaves ----------------------------------------------------------------------------

OUTPUT = 'for last; do :; done; case "$last" in --version) exit 0;; esac\n'


@pytest.mark.parametrize(
    'body',
    [
        'exit 0',
        OUTPUT + 'echo rubbish > "$last"',
        OUTPUT + ': > "$last"',
        OUTPUT
        + 'echo "int PyInit_another;" > "$last.c"\n'
        + f'{REAL} -shared "$last.c" -o "$last"',
        OUTPUT + 'mkdir "$last"',
    ],
    ids=['nothing', 'rubbish', 'an empty file', 'another module', 'a directory'],
)
def test_output_that_is_no_module_of_ours_is_a_reason_and_not_kept(
    arm, monkeypatch, tmp_path, directory, body
):
    monkeypatch.setenv('CC', program(tmp_path, body))
    with pytest.raises(NoBackend):
        compiled(arm)
    assert not directory.exists() or list(directory.iterdir()) == []


def test_code_that_crashes_is_not_kept(tmp_path, directory):
    crash = (r'( out\[0\]\[0\] = )(.*);', r'\g<1>*(volatile double *)0;')
    code = (
        'import numpy as np, robodyn_ros as rd, sys\n'
        f'sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})\n'
        'from robots import two_link_urdf\n'
        'arm = rd.RobotModel.from_urdf(two_link_urdf())\n'
        "rd.compile_model(arm, kernels=['inverse_dynamics'])\n"
    )
    environment = {**os.environ, 'CC': miscompiler(tmp_path, *crash)}
    ended = subprocess.run(
        [sys.executable, '-c', code], env=environment, stderr=subprocess.DEVNULL
    )
    assert ended.returncode == -signal.SIGSEGV
    assert not directory.exists() or list(directory.iterdir()) == []


# --- what it makes -----------------------------------------------------------------------------


@pytest.mark.parametrize('wrong', [ONE_SAMPLE_WRONG, MANY_SAMPLES_WRONG, SINE_WRONG])
def test_code_that_computes_something_else_is_refused_and_not_kept(
    arm, monkeypatch, tmp_path, directory, wrong
):
    command = miscompiler(tmp_path, *wrong)
    monkeypatch.setenv('CC', command)
    with pytest.raises(NoBackend, match=rf'{re.escape(command)}.*Newton-Euler gives'):
        compiled(arm)
    assert list(directory.iterdir()) == []


def test_kept_code_that_computes_something_else_is_dropped(arm, monkeypatch, tmp_path, directory):
    def believe(*_):
        pass

    command = miscompiler(tmp_path, *ONE_SAMPLE_WRONG)
    monkeypatch.setenv('CC', command)
    with monkeypatch.context() as patch:
        patch.setattr('robodyn_ros.compiled.compiled_model.check_functions', believe)
        compiled(arm)
    assert len(list(directory.iterdir())) == 1
    with pytest.raises(NoBackend, match='Newton-Euler gives'):
        compiled(arm)
    assert list(directory.iterdir()) == []


def test_difference_is_measured_against_each_element_s_largest_value():
    wanted = np.array([[1e3, 1.0], [-1e3, 0.5]])
    assert largest_difference(wanted, wanted) == ''
    assert largest_difference(wanted + [[1e-5, 0.0], [0.0, 0.0]], wanted) == ''
    assert '1.0001 ' in largest_difference(wanted + [[0.0, 1e-4], [0.0, 0.0]], wanted)
    assert '1000.01 ' in largest_difference(wanted + [[1e-2, 0.0], [0.0, 0.0]], wanted)


def test_number_that_is_not_finite_differs_from_one_that_is():
    wanted = np.array([[1.0, 2.0]])
    assert 'nan where' in largest_difference(np.array([[1.0, np.nan]]), wanted)
    assert 'inf where' in largest_difference(np.array([[np.inf, 2.0]]), wanted)
    assert largest_difference(np.array([[1.0, 2.0]]), np.array([[np.nan, 2.0]])) == ''
