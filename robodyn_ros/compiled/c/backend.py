# SPDX-License-Identifier: Apache-2.0
"""Kernels as a C extension module, compiled with the machine's own compiler."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.compiled.c.extension_source import extension_source
from robodyn_ros.compiled.symbolic.kernels import Kernel
from robodyn_ros.errors import NoBackend, SingularMassMatrix, WrongShape
from robodyn_ros.spatial import FloatArray

FLAGS = ('-std=gnu11', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-fno-math-errno')
_NATIVE = '-march=native'
_MODULE = 'robodyn_kernels'
_LONGEST_COMPILATION = 300.0
_WANTED = 'a compiler that works, with Python.h; NumPy computes the same without'


def c_compiler() -> list[str]:
    """
    Return the command of the C compiler: ``CC`` from the environment, else cc, gcc or clang.

    Raises
    ------
    NoBackend
        There is none.
    """
    named = os.environ.get('CC')
    for command in [shlex.split(named)] if named else [['cc'], ['gcc'], ['clang']]:
        path = shutil.which(command[0])
        if path:
            return [path, *command[1:]]
    raise NoBackend('C compiler', named or 'cc, gcc, clang', _WANTED)


def build_identity() -> str:
    """Return what, besides the arm, the machine code depends on."""
    command = c_compiler()
    version = subprocess.run([*command, '--version'], capture_output=True, text=True, check=False)
    return '\n'.join(
        [
            ' '.join(command),
            version.stdout,
            ' '.join(FLAGS),
            sys.version,
            np.__version__,
            sysconfig.get_config_var('SOABI') or '',
            _processor(),
        ]
    )


def _processor() -> str:
    """Return what -march=native depends on: a home directory may serve several machines."""
    with contextlib.suppress(OSError), open('/proc/cpuinfo', encoding='utf-8') as file:
        wanted = ('model name', 'flags', 'Features', 'CPU part')
        return ''.join(sorted({line for line in file if line.startswith(wanted)}))
    return platform.processor() + platform.machine()


def compiled_module(kernels: Sequence[Kernel]) -> bytes:
    """
    Return the machine code of an extension module with these kernels.

    Raises
    ------
    NoBackend
        The compiler failed; the value is what it said.
    """
    command = c_compiler()
    try:
        with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
            source, module = Path(folder, 'kernels.c'), Path(folder, 'kernels.so')
            source.write_text(extension_source(kernels), encoding='utf-8')
            headers = [f'-I{sysconfig.get_path("include")}', f'-I{np.get_include()}']
            for native in ([_NATIVE], []):
                result = subprocess.run(
                    [*command, *FLAGS, *native, *headers, str(source), '-o', str(module)],
                    capture_output=True,
                    text=True,
                    timeout=_LONGEST_COMPILATION,
                    check=False,
                )
                if result.returncode == 0:
                    return module.read_bytes()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoBackend('C compiler', str(error), _WANTED) from error
    raise NoBackend('C compiler', result.stderr[-500:], _WANTED)


def load_module(code: bytes) -> Any:
    """
    Return the extension module of machine code that was just compiled or verified.

    The dynamic loader reads it from a fresh directory that is the user's alone.

    Raises
    ------
    NoBackend
        It cannot be loaded.
    """
    try:
        with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
            path = Path(folder, 'kernels.so')
            path.write_bytes(code)
            loader = ExtensionFileLoader(_MODULE, str(path))
            module = module_from_spec(ModuleSpec(_MODULE, loader, origin=str(path)))
            loader.exec_module(module)
            return module
    except (ImportError, OSError) as error:
        raise NoBackend('compiled module', str(error), 'one that can be loaded') from error


def bound_functions(module: Any, parameters: FloatArray) -> dict[str, Any]:
    """Return a module's functions, bound to run-time parameters."""
    return module.bind(parameters, WrongShape, SingularMassMatrix)
