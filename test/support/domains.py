# SPDX-License-Identifier: Apache-2.0
"""DDS for tests: on this machine alone, and at no time two tests in one domain."""

import fcntl
import os
import tempfile
from pathlib import Path

LOCKS = Path(tempfile.gettempdir()) / f'robodyn_ros_test_domains_{os.getuid()}'
HIGHEST = 100  # above it, ports of a domain meet those the kernel gives to anybody
_held = {}


def stay_on_loopback():
    """
    Have this process, and those that it starts, talk by UDP on the loopback interface alone.

    Fast DDS's shared memory, which a discovery range of this machine brings along, crashes now and
    then on a busy machine when a participant is destroyed whose peers were killed; each of these
    leaves files in /dev/shm; and `publish` may wait 333 ms for it.
    """
    if os.environ.get('RMW_IMPLEMENTATION', 'rmw_fastrtps_cpp').startswith('rmw_fastrtps'):
        profile = str(Path(__file__).with_name('loopback.xml'))
        os.environ['FASTRTPS_DEFAULT_PROFILES_FILE'] = profile
        os.environ['FASTDDS_DEFAULT_PROFILES_FILE'] = profile
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'SYSTEM_DEFAULT'
    else:
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'


def claim():
    """Return the number of a domain that is this process's until released, or until it ends."""
    LOCKS.mkdir(mode=0o700, exist_ok=True)
    for number in range(1, HIGHEST + 1):
        file = open(LOCKS / str(number), 'w', encoding='utf-8')
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        _held[number] = file
        return number
    raise RuntimeError(f'all {HIGHEST} domains are taken; allowed: fewer tests at a time')


def release(number):
    """Give a claimed domain back."""
    _held.pop(number).close()
