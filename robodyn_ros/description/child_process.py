# SPDX-License-Identifier: Apache-2.0
"""
Processes of their own for what reads a file that may be hostile: they can be bounded and ended.

The limits of a process are those of all its threads: the caller's would outlast the file.
"""

from __future__ import annotations

import json
import os
import sys


def child_command(program: str, *arguments: str) -> list[str]:
    """
    Return the command of a process that runs a program of this package.

    It imports what this process can, but nothing from the folder that it begins in. Its
    ``sys.argv[1:]`` are the arguments. It has ``output``, a binary file that is its standard
    output, to which nothing else is printed, and ``limit(memory, file, seconds)``: bytes that it
    may take, bytes of each file that it may write, and time of computing, all from then on.

    Parameters
    ----------
    program : str
        Python, with no foreign text in it.
    *arguments : str
    """
    folders = [
        each
        for each in filter(None, sys.path)
        if not (os.path.exists(each) and os.path.samefile(each, '.'))
    ]
    return [sys.executable, '-I', '-c', _BEGINNING + program, json.dumps(folders), *arguments]


_BEGINNING = """
import json, os, resource, sys

sys.path[:] = json.loads(sys.argv.pop(1))
output = os.fdopen(os.dup(1), 'wb')
os.dup2(2, 1)


def limit(memory, file, seconds):
    with open('/proc/self/statm') as sizes:
        memory += int(sizes.read().split()[0]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_CPU, 1 + int(seconds + sum(os.times()[:2]))),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))

"""
