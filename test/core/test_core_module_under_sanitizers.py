# SPDX-License-Identifier: Apache-2.0
"""The core's module for Python under sanitizers: tests of the control, run without a finding."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from controller_core import ROOT, compiled_program, cpp_compiler, sanitizers

pytestmark = pytest.mark.slow  # a module is compiled

FILES = (
    'test_command_pipeline.py',
    'test_contact.py',
    'test_joint_state_buffer.py',
    'test_momentum_observer.py',
    'test_tip_target.py',
    'test_tip_wrench.py',
)
RUN = """
import sys, core_module, pytest
sys.modules['robodyn_ros.control.core_module'] = core_module
failed = pytest.main(sys.argv[1:])
from robodyn_ros.control.core_binding import core
assert core is core_module
sys.exit(failed)
"""


def runtime(name: str) -> str:
    """Return the path of a library of the compiler that Python is to load first, or skip."""
    command = [cpp_compiler(), f'-print-file-name={name}']
    path = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    if not Path(path).is_absolute():
        pytest.skip(f'{cpp_compiler()} has no {name} that Python could load first')
    return path


def test_the_core_reads_and_writes_within_bounds_and_does_nothing_undefined(tmp_path):
    pybind11 = pytest.importorskip('pybind11')
    options = sanitizers(tmp_path, 'address,undefined')
    # libstdc++ too: Python is linked to none, whose functions could be intercepted.
    preloaded = f'{runtime("libasan.so")} {runtime("libstdc++.so")}'
    for include in (pybind11.get_include(), sysconfig.get_path('include')):
        options += ['-isystem', include]
    # Without optimization it compiles in half the time; the tests then take a third more.
    options += ['-O0', '-shared', '-fPIC', '-fvisibility=hidden', '-DROBODYN_SOURCES=""']
    module = compiled_program(ROOT / 'robodyn_ros/control/core/core_module.cpp', tmp_path, options)
    module.rename(tmp_path / 'core_module.so')
    environment = {
        **os.environ,
        'LD_PRELOAD': preloaded,
        'ASAN_OPTIONS': 'detect_leaks=0',  # Python's own, at its end
        'PYTHONMALLOC': 'malloc',
        'PYTHONPATH': os.pathsep.join([str(tmp_path), os.environ.get('PYTHONPATH', '')]),
    }
    # Files stay uncaptured: a finding is written there as the process ends.
    options = ['-q', '--capture=sys', '-p', 'no:cacheprovider', '-m', 'not slow and not longer']
    done = subprocess.run(
        [sys.executable, '-c', RUN, *options, *(ROOT / 'test' / 'control' / f for f in FILES)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
