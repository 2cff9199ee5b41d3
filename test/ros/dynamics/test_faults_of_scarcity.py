# SPDX-License-Identifier: Apache-2.0
"""The machine of the node has no process, thread or shared memory left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

import fault_rig
from fault_rig import POSITION, case, fault
from scarce import (
    AS_ANOTHER_USER,
    FULL_BUT_FOR,
    FULL_SHARED_MEMORY,
    NO_MORE_PROCESSES,
    OWN_SHARED_MEMORY,
)

pytestmark = [pytest.mark.slow, pytest.mark.ros]

FOLLOW = NO_MORE_PROCESSES.format(
    module='robodyn_ros.control.command_pipeline', owner='CommandPipeline', function='follow'
)
FORGET = NO_MORE_PROCESSES.format(
    module='robodyn_ros.ros.dynamics.dynamics_node', owner='DynamicsNode', function='on_cleanup'
)


# Node, driver and rig in a /dev/shm of their own.
FILLING_UP = f"""
import os, sys
{OWN_SHARED_MEMORY.format(size='24m')}
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from fault_rig import rig_in
rig = rig_in(Path(sys.argv[2]), sys.argv[3])
try:
    rig.launch(mode='computed_torque')
    rig.driver(rate=100.0)
    rig.until_commanded()
    rig.in_motion()
    {FULL_BUT_FOR.format(pages=0).replace(chr(10), chr(10) + 4 * ' ')}
    rig.until_commanded(500)
    assert rig.report['watchdog'] == 'watching'
    assert rig.end() == 0
    rig.check_stream()
finally:
    rig.close()
"""


@pytest.fixture
def own(own, tmp_path):
    """A node that compiles into a cache of its own."""
    own.environment['ROBODYN_CACHE_DIR'] = str(tmp_path / 'cache')
    return own


def needs(program, what):
    """Skip the test where a program is not allowed to take something away from itself."""
    child = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True)
    if child.returncode:
        pytest.skip(f'not allowed here: {what} ({child.stderr.strip().splitlines()[-1]})')


@pytest.mark.parametrize(
    ('number', 'on_stop'),
    [
        case(
            'ulimit -u reached in motion',
            'The motion continues; SIGINT ends it by the stop command, with code 0.',
            signal.SIGINT,
            'zero',
        ),
        case(
            'ulimit -u reached in motion, then SIGKILL',
            'The watchdog brakes and sends the stop command.',
            signal.SIGKILL,
            'hold_gravity',
        ),
    ],
)
def test_motion_needs_no_process_more(own, gravity, number, on_stop):
    needs(AS_ANOTHER_USER, 'to become another user')
    own.launch_patched(AS_ANOTHER_USER + FOLLOW, on_stop=on_stop, mode='computed_torque')
    own.driver(rate=100.0)
    own.until_commanded()
    # The watchdog needs threads of its own to begin with.
    count = len(own.reports)
    own.until(lambda: len(own.reports) > count + 2 and is_watched(own))
    own.in_motion()
    own.until_commanded(100)
    assert most_processes(own) == '1'
    own.process.send_signal(number)
    own.until(lambda: own.process.poll() is not None)
    assert own.process.returncode == (0 if number == signal.SIGINT else -number)
    wanted = gravity if on_stop == 'hold_gravity' else np.zeros(7)
    own.until(lambda: np.array(own.commands[-1].data) == pytest.approx(wanted, abs=1e-6))


def is_watched(rig):
    """Whether the watchdog has looked at the node just before the last report."""
    return float(rig.report['watchdog_process_lateness_ms']) < 100.0


def most_processes(rig):
    """Return how many processes the node's user may have, as the kernel says it."""
    with open(f'/proc/{rig.process.pid}/limits', encoding='utf-8') as limits:
        return next(line.split()[2] for line in limits if line.startswith('Max processes'))


@fault(
    'ulimit -u reached before it is configured again',
    'newton_euler serves; WARN names the reason.',
)
def test_configuring_needs_no_process_more(own, tmp_path):
    needs(AS_ANOTHER_USER, 'to become another user')
    own.launch_patched(AS_ANOTHER_USER + FORGET, autostart=False)
    for transition in ('configure', 'cleanup'):
        assert own.transition(transition)
    for entry in (tmp_path / 'cache').iterdir():
        entry.unlink()
    assert own.transition('configure')
    own.until(lambda: 'algorithm newton_euler instead of compiled' in own.log)
    own.until(lambda: 'newton_euler' in own.report.get('model_message', ''))
    assert not own.commands
    assert own.end() == 0


@fault(
    'full /dev/shm',
    'Fast DDS uses UDP; node, services and watchdog share anonymous memory.',
)
def test_full_shared_memory_stops_nothing(own, gravity):
    needs(FULL_SHARED_MEMORY, 'to mount a /dev/shm of its own')
    own.launch_patched(FULL_SHARED_MEMORY)
    own.bring_up(POSITION)
    assert np.array(own.commands[-1].data) == pytest.approx(gravity, abs=1e-6)
    own.stream(POSITION, lambda: own.report.get('watchdog') == 'watching')
    assert os.statvfs(f'/proc/{own.process.pid}/root/dev/shm').f_bavail == 0
    assert own.set_parameter('mode', 'computed_torque', own.send_home).successful
    assert own.end() == 0


@fault('/dev/shm that fills up in motion', 'Everything continues.')
def test_shared_memory_that_fills_up_stops_nothing(tmp_path, panda_urdf):
    needs(FULL_SHARED_MEMORY, 'to mount a /dev/shm of its own')
    support = Path(fault_rig.__file__).parent
    child = subprocess.run(
        [sys.executable, '-c', FILLING_UP, support, tmp_path / 'node', panda_urdf],
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
