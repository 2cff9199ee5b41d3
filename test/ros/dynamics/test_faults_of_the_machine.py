# SPDX-License-Identifier: Apache-2.0
"""The compiler, the files and the signals of the machine that the node runs on."""

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from compilers import MANY_SAMPLES_WRONG, ONE_SAMPLE_WRONG, REAL, miscompiler, program
from fault_rig import POSITION, case, fault

from robodyn_ros.ros.signals import STOP_SIGNALS

pytestmark = [pytest.mark.slow, pytest.mark.ros]

needs_compiler = pytest.mark.skipif(not REAL, reason='there is no C compiler')
WARN = 1


@pytest.fixture
def own(own, tmp_path):
    """A node that compiles into a cache of its own."""
    own.environment['ROBODYN_CACHE_DIR'] = str(tmp_path / 'cache')
    return own


def commands(rig, gravity):
    """Bring the node up, and return whether it commands gravity."""
    rig.bring_up(POSITION)
    return np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=1e-6)


# --- the compiler ------------------------------------------------------------------------------

HANG = 'case "$*" in {} ) echo 1.0; exit 0;; esac\nsleep 1000 & echo $! > "{}"; wait'


SERVES = 'newton_euler serves; WARN names it.'


@pytest.mark.parametrize(
    'compiler',
    [
        case('compiler of another machine', SERVES, b'\x7fELF for a machine of another kind'),
        case('compiler whose messages are not UTF-8', SERVES, r"printf 'caf\351' >&2; exit 1"),
        case(
            'compiler that prints a hundred megabytes and fails',
            SERVES,
            'yes | head -c 100000000 >&2; exit 1',
        ),
        case(
            'compiler that is killed, as for lack of memory',
            SERVES,
            'case "$*" in --version) ;; *) kill -KILL $$;; esac',
        ),
        case('compiler that leaves nothing', SERVES, 'exit 0'),
        case(
            'compiler that leaves garbage',
            SERVES,
            'for last; do :; done; case "$last" in *.so) echo rubbish > "$last";; esac',
        ),
    ],
)
def test_compiler_that_fails_leaves_newton_euler(own, gravity, tmp_path, compiler):
    leaves_newton_euler(own, gravity, program(tmp_path, compiler))


@pytest.mark.parametrize(
    'command',
    [
        case('CC with an open quotation', SERVES, 'cc "'),
        case('CC that is no program', SERVES, '/nowhere/cc'),
    ],
)
def test_command_that_is_no_compiler_leaves_newton_euler(own, gravity, command):
    leaves_newton_euler(own, gravity, command)


def leaves_newton_euler(rig, gravity, compiler):
    rig.environment['CC'] = compiler
    rig.launch()
    assert commands(rig, gravity)
    assert 'algorithm newton_euler instead of compiled' in rig.log
    rig.stream(POSITION, lambda: rig.report.get('algorithm') == 'newton_euler')
    assert rig.report['model_level'] == WARN and 'newton_euler' in rig.report['model_message']


@needs_compiler
@fault('CC that is blank', 'cc, gcc or clang compile.')
def test_blank_compiler_is_none(own, gravity):
    own.environment['CC'] = ' '
    own.launch()
    assert commands(own, gravity)
    own.stream(POSITION, lambda: own.report.get('algorithm') == 'compiled')


@needs_compiler
@pytest.mark.parametrize(
    'wrong',
    [
        case(
            'compiler that miscompiles',
            'Compared at configure, not kept; newton_euler serves; WARN.',
            ONE_SAMPLE_WRONG,
        ),
        case('compiler that miscompiles vector instructions', 'The same.', MANY_SAMPLES_WRONG),
    ],
)
def test_miscompiled_torque_is_not_commanded(own, gravity, tmp_path, wrong):
    own.environment['CC'] = miscompiler(tmp_path, *wrong)
    own.launch()
    assert commands(own, gravity)
    own.stream(POSITION, lambda: own.report.get('algorithm') == 'newton_euler')
    assert re.search('where .+ gives', own.log) and own.report['model_level'] == WARN
    assert list((tmp_path / 'cache').glob('*')) == []


@needs_compiler
@fault(
    'code that goes wrong while it runs',
    'Gravity is compared once a second: ERROR, and newton_euler serves, within the rate limit.',
)
def test_torque_that_goes_wrong_while_it_runs_is_replaced(own, gravity, tmp_path):
    broken = tmp_path / 'broken'
    own.launch_patched(
        'import os\n'
        'from robodyn_ros.control.model_torque import RigidBodyTorque\n'
        'under = RigidBodyTorque.under\n'
        'def patched(self, model):\n'
        '    function = under(self, model)\n'
        "    if self.algorithm != 'compiled':\n"
        '        return function\n'
        '    return lambda *state: function(*state) * (\n'
        f'        1.2 if os.path.exists({str(broken)!r}) else 1.0\n'
        '    )\n'
        'RigidBodyTorque.under = patched\n'
    )
    assert commands(own, gravity)
    own.stream(POSITION, lambda: own.report.get('algorithm') == 'compiled')
    broken.touch()
    own.stream(POSITION, lambda: own.report.get('algorithm') == 'newton_euler')
    assert '[ERROR]' in own.log and 'where Newton-Euler gives' in own.log
    own.stream(
        POSITION, lambda: np.array(own.commands[-1].data) == pytest.approx(gravity, abs=1e-6)
    )


def hang(rig, tmp_path, version):
    """Start a node whose compiler hangs, and return the id of what hangs."""
    file = tmp_path / 'pid'
    rig.environment['CC'] = program(tmp_path, HANG.format(version, file))
    rig.launch()
    rig.until(lambda: file.exists() and file.read_text())
    return int(file.read_text())


def has_ended(pid):
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] == 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return True


@fault(
    'SIGTERM while the compiler hangs',
    'Configuring ends at once, with the compiler and its children; exit code 0.',
)
def test_hanging_compiler_does_not_keep_the_node_from_ending(own, tmp_path):
    pid = hang(own, tmp_path, '--version')
    assert own.end(signal.SIGTERM) == 0
    own.until(lambda: has_ended(pid))
    assert 'stop requested while configuring' in own.log and 'Traceback' not in own.log


@fault('SIGKILL while the compiler hangs', 'The compiler and its children end.')
def test_hanging_compiler_does_not_outlive_a_killed_node(own, tmp_path):
    pid = hang(own, tmp_path, '--version')
    own.spin(0.3)
    own.kill()
    own.until(lambda: has_ended(pid))


@fault(
    'compiler that reports no version',
    'Ended after 10 s; newton_euler serves; WARN.',
)
def test_compiler_without_a_version_is_given_up(own, gravity, tmp_path):
    pid = hang(own, tmp_path, 'never')
    assert commands(own, gravity)
    own.until(lambda: has_ended(pid))
    assert 'no end after 10 s' in own.log


# --- the files ---------------------------------------------------------------------------------


@fault(
    'unknown user without HOME',
    'No cache: the node compiles at each start.',
)
def test_unknown_user_without_home_stops_nothing(own, gravity):
    del own.environment['ROBODYN_CACHE_DIR']
    for name in ('HOME', 'XDG_CACHE_HOME'):
        own.environment.pop(name, None)
    own.launch_patched(
        'import pwd\n'
        'def unknown(uid):\n'
        "    raise KeyError(f'getpwuid(): uid not found: {uid}')\n"
        'pwd.getpwuid = unknown\n'
    )
    assert commands(own, gravity)


@needs_compiler
@pytest.mark.parametrize(
    'damage',
    [
        case('cache entry cut short', 'Refused and compiled again.', 'cut'),
        case('cache directory that is a link', 'Refused; compiled at each start.', 'link'),
        case('cache directory of another user', 'Refused; compiled at each start.', 'owner'),
    ],
)
def test_damaged_cache_stops_nothing(own, gravity, tmp_path, damage):
    cache = tmp_path / 'cache'
    code = 'from robodyn_ros.control.model_torque import RigidBodyTorque\n'
    code += 'from robodyn_ros import RobotModel\n'
    code += f'arm = RobotModel.from_urdf({str(own.robot["urdf_file"])!r}, '
    code += "base_link='panda_link0', tip_link='panda_link8')\n"
    code += "assert RigidBodyTorque.of(arm, 'compiled').algorithm == 'compiled'\n"
    subprocess.run([sys.executable, '-c', code], env=own.environment, check=True)
    (entry,) = cache.iterdir()
    if damage == 'cut':
        entry.write_bytes(entry.read_bytes()[:-100])
    elif damage == 'link':
        cache.rename(tmp_path / 'elsewhere')
        cache.symlink_to(tmp_path / 'elsewhere')
    elif os.geteuid() == 0:
        os.chown(cache, 12345, 12345)
    else:
        pytest.skip('only root can give a directory away')
    own.launch()
    assert commands(own, gravity)
    own.stream(POSITION, lambda: own.report.get('algorithm') == 'compiled')
    assert own.report['algorithm_notes']  # what was refused


# --- the surroundings --------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize(
    'environment',
    [
        case(
            'a library to preload that is not there',
            'The loader reports it.',
            {'LD_PRELOAD': '/no/such/library.so'},
        ),
        case(
            'a locale with ASCII only',
            'Units and names are printed in UTF-8 anyway.',
            {'LC_ALL': 'C', 'PYTHONCOERCECLOCALE': '0', 'PYTHONUTF8': '0'},
        ),
        case(
            'a locale that does not exist',
            'Nothing changes.',
            {'LC_ALL': 'xx_YY.nonsense', 'LANG': '\x01'},
        ),
        case('TMPDIR that is not there', 'Another place serves.', {'TMPDIR': '/no/such/place'}),
    ],
)
def test_odd_environment_changes_nothing(own, gravity, environment):
    own.environment.update(environment)
    own.launch()
    assert commands(own, gravity)
    own.stream(POSITION, lambda: own.report.get('algorithm') == 'compiled')
    assert own.end() == 0
    assert 'Traceback' not in own.log


@needs_compiler
@fault('sixty-four open files at most', 'It is enough.')
def test_few_open_files_are_enough(own, gravity):
    own.launch_patched('import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n')
    assert commands(own, gravity)
    own.stream(POSITION, lambda: own.report.get('algorithm') == 'compiled')


# --- signals -----------------------------------------------------------------------------------


@fault(
    'eighty signals at once, of all kinds that stop a process', 'One stop command; exit code 0.'
)
def test_storm_of_signals_ends_once(own):
    own.launch(on_stop='zero')
    own.bring_up(POSITION)
    own.pause()  # so that all are pending when it wakes
    for _ in range(20):
        for number in STOP_SIGNALS:
            own.process.send_signal(number)
    own.go_on()
    assert own.end(signal.SIGTERM) == 0
    assert np.array(own.commands[-1].data) == pytest.approx(np.zeros(7), abs=1e-6)
    assert own.log.count('stop requested') == 1 and 'Traceback' not in own.log


@fault(
    'limit of processor time reached',
    'SIGXCPU ends the node; the watchdog sends the stop command.',
)
def test_limit_of_processor_time_leaves_the_stop_command_to_the_watchdog(own):
    own.launch(on_stop='zero')
    own.bring_up(POSITION)
    ticks = os.sysconf('SC_CLK_TCK')
    used = sum(map(int, Path(f'/proc/{own.process.pid}/stat').read_text().split()[13:15])) / ticks
    resource.prlimit(own.process.pid, resource.RLIMIT_CPU, (int(used) + 1, int(used) + 60))
    own.stream(POSITION, lambda: own.process.poll() is not None)
    assert own.process.returncode == -signal.SIGXCPU
    own.until(lambda: np.array(own.commands[-1].data) == pytest.approx(np.zeros(7), abs=1e-6))
