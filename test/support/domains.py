# SPDX-License-Identifier: Apache-2.0
"""DDS domains for tests: at no time do two tests on this machine have the same one."""

import fcntl
import os
import tempfile
from pathlib import Path

LOCKS = Path(tempfile.gettempdir()) / f'robodyn_ros_test_domains_{os.getuid()}'
HIGHEST = 100  # above it, ports of a domain meet those the kernel gives to anybody
_held = {}


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
