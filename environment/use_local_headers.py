# SPDX-License-Identifier: Apache-2.0
"""
Make the CMake files of the ROS 2 wheels look for headers where this interpreter has them.

The wheels carry the paths of the machine that built them, to the headers of Python and of NumPy;
with those, no interface package configures. Run with the interpreter of the virtual environment.
"""

import re
import sys
import sysconfig
from pathlib import Path

import numpy

PYTHON_HEADERS = re.compile(r'/opt/python/[^;"/]+/include/python[0-9.]+')
NUMPY_HEADERS = re.compile(r'/opt/python/[^;"]+?/numpy/(?:_core|core)/include')


def main() -> None:
    """Rewrite every CMake file below ``<prefix>/share`` that names the build machine's headers."""
    for path in Path(sys.prefix, 'share').glob('*/cmake/*.cmake'):
        text = path.read_text()
        local = NUMPY_HEADERS.sub(numpy.get_include(), text)
        local = PYTHON_HEADERS.sub(sysconfig.get_path('include'), local)
        if local != text:
            path.write_text(local)


if __name__ == '__main__':
    main()
