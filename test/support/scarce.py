# SPDX-License-Identifier: Apache-2.0
"""Programs to run before a node's own, that take something of the machine away from it."""

UNPRIVILEGED = 12345
"""A user whom nobody else's processes count against."""

# Root may have any number of processes. What follows is another user, and may still read what only
# root may (the interpreter, the test's folder), and so may what it starts.
AS_ANOTHER_USER = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
KEEP_CAPABILITIES, AMBIENT, RAISE, READ_AND_WRITE_ALL = 8, 47, 2, 1
assert libc.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0) == 0
os.setgroups([]); os.setresgid(*3 * ({UNPRIVILEGED},)); os.setresuid(*3 * ({UNPRIVILEGED},))
bits = 1 << READ_AND_WRITE_ALL
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(bits, bits, bits)
assert libc.capset(header, data) == 0
assert libc.prctl(AMBIENT, RAISE, READ_AND_WRITE_ALL, 0, 0) == 0
"""

# Its own /dev/shm, of a size.
OWN_SHARED_MEMORY = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
NEW_NAMESPACE, PRIVATE_ALL_THE_WAY_DOWN = 0x20000, 0x44000
assert libc.unshare(NEW_NAMESPACE) == 0
assert libc.mount(b'none', b'/', None, PRIVATE_ALL_THE_WAY_DOWN, None) == 0
assert libc.mount(b'tmpfs', b'/dev/shm', b'tmpfs', 0, b'size={size}') == 0
"""

# A file that leaves so many pages of it.
FULL_BUT_FOR = """
full = os.open('/dev/shm/full', os.O_WRONLY | os.O_CREAT)
try:
    while os.write(full, bytes(4096)):
        pass
except OSError:
    os.truncate('/dev/shm/full', os.path.getsize('/dev/shm/full') - {pages} * 4096)
"""

# Full from the beginning; but without two pages the tracer in ROS's libraries ends every process
# that loads them by SIGBUS.
FULL_SHARED_MEMORY = OWN_SHARED_MEMORY.format(size='64k') + FULL_BUT_FOR.format(pages=2)

# No process and no thread more, once something was called for the first time.
NO_MORE_PROCESSES = """
import resource
from {module} import {owner} as owner
function = owner.{function}
def last(*arguments):
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    return function(*arguments)
owner.{function} = last
"""
