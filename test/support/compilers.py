# SPDX-License-Identifier: Apache-2.0
"""C compilers that fail, hang or miscompile, as programs to name in CC."""

import shutil
import sys
from pathlib import Path

import pytest

from robodyn_ros.compiled.c.compiler import c_compiler
from robodyn_ros.errors import NoBackend

REAL = shutil.which('cc') or ''


def is_there_a_compiler() -> bool:
    try:
        c_compiler()
    except NoBackend:
        return False
    return True


needs_compiler = pytest.mark.skipif(not is_there_a_compiler(), reason='there is no C compiler')


def program(folder: Path, body: str | bytes, name: str = 'cc') -> str:
    """Return the path of an executable file with a content; text is a shell script."""
    path = folder / name
    path.write_bytes(body if isinstance(body, bytes) else f'#!/bin/sh\n{body}\n'.encode())
    path.chmod(0o755)
    return str(path)


def miscompiler(folder: Path, pattern: str, replacement: str) -> str:
    """Return a compiler of another source: what matches a regular expression is replaced."""
    rewrite = folder / 'rewrite.py'
    rewrite.write_text(
        'import re, sys\n'
        'source = open(sys.argv[1]).read()\n'
        f'changed = re.sub({pattern!r}, {replacement!r}, source)\n'
        'assert changed != source\n'
        "open(sys.argv[1], 'w').write(changed)\n"
    )
    return program(
        folder,
        'for word; do case "$word" in *kernels.c)\n'
        f'  "{sys.executable}" -I -S "{rewrite}" "$word" || exit 1;;\n'
        f'esac; done\nexec "{REAL}" "$@"',
        'miscompiler',
    )


# A thousandth more of the first joint's torque, of one sample or of several at once.
ONE_SAMPLE_WRONG = (r'( out\[0\]\[0\] = )(.*);', r'\g<1>1.001 * (\g<2>);')
MANY_SAMPLES_WRONG = (r'(result\[0\] = )(.*);', r'\g<1>1.001 * (\g<2>);')
SINE_WRONG = ('1.66666666666666324348e-01', '1.66700000000000000000e-01')
