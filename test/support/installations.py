# SPDX-License-Identifier: Apache-2.0
"""Environments that have what the packages depend on, and nothing of this checkout."""

import os
import subprocess
import sys
from pathlib import Path

PATIENCE = 600.0  # for one command on a loaded machine [s]


def output_of(*command, timeout=PATIENCE, **options):
    """Return what a command prints to both streams, once it has ended well."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        **options,
    )
    assert done.returncode == 0, f'{command}:\n{done.stdout[-5000:]}'
    return done.stdout


def environment_with_dependencies(folder):
    """
    Return the interpreter of a new environment that has what we depend on, and nothing of ours.

    What lies in these folders is found; their .pth files, which lead to this checkout, are not
    read.
    """
    output_of(sys.executable, '-m', 'venv', '--without-pip', folder)
    paths = [
        path
        for path in sys.path
        if path.endswith('-packages') and not Path(path, 'robodyn_ros').exists()
    ]
    (site_packages,) = (folder / 'lib').glob('python*/site-packages')
    (site_packages / 'dependencies.pth').write_text('\n'.join(paths), encoding='utf-8')
    return folder / 'bin' / 'python'


def environment_of(python):
    """Return the environment of whoever uses an installation, and knows of no checkout."""
    path = os.pathsep.join(
        [
            str(python.parent),
            *os.environ['PATH'].split(os.pathsep),
            str(Path(sys.executable).parent),
        ]
    )
    ours = {'PYTHONPATH', 'ROBODYN_CACHE_DIR'}
    return {name: value for name, value in os.environ.items() if name not in ours} | {'PATH': path}


def colcon_prefixes():
    """Return the variables by which colcon finds the ROS of this environment."""
    prefixes = os.pathsep.join([sys.prefix, os.environ.get('AMENT_PREFIX_PATH', '')]).strip(':')
    return {'CMAKE_PREFIX_PATH': prefixes, 'AMENT_PREFIX_PATH': prefixes}
