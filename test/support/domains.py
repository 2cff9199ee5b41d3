# SPDX-License-Identifier: Apache-2.0
"""DDS for tests: on this machine alone, in domains in which there is nobody else."""

import fcntl
import os
import tempfile
from pathlib import Path

LOCKS = Path(tempfile.gettempdir()) / f'robodyn_ros_test_domains_{os.getuid()}'
# Robots are in the low ones. Ports of those in between are also given by the kernel to anybody.
CANDIDATES = (*range(215, 233), *range(101, 215))
FIRST_PORT, PORTS = 7400, 250  # of domain 0, and of each: fixed by the protocol
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


def is_inhabited(number):
    """Return whether a process of this machine has bound one of a domain's ports."""
    first = FIRST_PORT + PORTS * number
    bound = set()
    for table in (Path('/proc/net/udp'), Path('/proc/net/udp6')):
        rows = table.read_text().splitlines()[1:] if table.exists() else []
        bound |= {int(row.split()[1].rpartition(':')[2], 16) for row in rows}
    return any(port in bound for port in range(first, first + PORTS))


def claim():
    """
    Return the number of a domain that is this process's until released, or until it ends.

    No other test has it, by a lock, and nobody on this machine talks in it: a robot's own node
    would be talked to by a test, and the test by the robot.
    """
    LOCKS.mkdir(mode=0o700, exist_ok=True)
    for number in CANDIDATES:
        file = open(LOCKS / str(number), 'w', encoding='utf-8')
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        if is_inhabited(number):
            file.close()
            continue
        _held[number] = file
        return number
    raise RuntimeError(
        f'all {len(CANDIDATES)} domains above 100 are taken; allowed: fewer tests at a time'
    )


def release(number):
    """Give a claimed domain back."""
    _held.pop(number).close()
