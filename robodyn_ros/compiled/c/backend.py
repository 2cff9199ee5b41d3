# SPDX-License-Identifier: Apache-2.0
"""Kernels as a C extension module, compiled with the machine's own compiler."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.compiled.c.compiler import WANTED, c_compiler, compiler_version, output_of
from robodyn_ros.compiled.c.extension_source import extension_source
from robodyn_ros.compiled.symbolic.kernels import Kernel
from robodyn_ros.errors import NoBackend, SingularMassMatrix, WrongShape
from robodyn_ros.spatial import FloatArray

FLAGS = ('-std=gnu11', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-fno-math-errno')
_NATIVE = '-march=native'
_MODULE = 'robodyn_kernels'
# Twenty times what a laptop takes [s]: 1 s for a Panda's inverse dynamics, of 600 operations.
_LONGEST_COMPILATION = 10.0
_LONGEST_PER_OPERATION = 0.02
_loaded: dict[bytes, Any] = {}  # by the digest of their code: the loader never lets go of one


def build_identity() -> str:
    """Return what, besides the arm, the machine code depends on."""
    command = c_compiler()
    return '\n'.join(
        [
            ' '.join(command),
            compiler_version(command),
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
    operations = sum(sum(kernel.operation_count) for kernel in kernels)
    return compiled_source(extension_source(kernels), _LONGEST_PER_OPERATION * operations)


def compiled_source(source: str, longer: float = 0.0) -> bytes:
    """
    Return the machine code of an extension module.

    Parameters
    ----------
    source : str
        All of it, for Python and NumPy.
    longer : float
        Than ten seconds the compiler may take [s].

    Raises
    ------
    NoBackend
        The compiler failed; the value is what it said.
    """
    command = c_compiler()
    deadline = time.monotonic() + _LONGEST_COMPILATION + longer
    try:
        with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
            file, module = Path(folder, 'kernels.c'), Path(folder, 'kernels.so')
            file.write_text(source, encoding='utf-8')
            headers = [f'-I{sysconfig.get_path("include")}', f'-I{np.get_include()}']
            for native in ([_NATIVE], []):
                code, said = output_of(
                    [*command, *FLAGS, *native, *headers, str(file), '-o', str(module)],
                    max(deadline - time.monotonic(), 0.0),
                    'stderr',
                )
                if code == 0:
                    return module.read_bytes()
    except OSError as error:
        raise NoBackend('C compiler', str(error), WANTED) from error
    raise NoBackend('C compiler', said.strip()[-500:] or f'exit code {code}', WANTED)


def load_module(code: bytes, name: str = _MODULE) -> Any:
    """
    Return the extension module of machine code that was just compiled or verified.

    The dynamic loader reads it from a fresh directory that is the user's alone. The same code is
    mapped once, however often it is asked for.

    Raises
    ------
    NoBackend
        It cannot be loaded.
    """
    digest = hashlib.sha256(code).digest()
    if digest not in _loaded:
        _loaded[digest] = _mapped(code, name)
    return _loaded[digest]


def _mapped(code: bytes, name: str) -> Any:
    try:
        with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
            path = Path(folder, 'kernels.so')
            path.write_bytes(code)
            loader = ExtensionFileLoader(name, str(path))
            module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
            loader.exec_module(module)
            return module
    except (ImportError, OSError) as error:
        raise NoBackend('compiled module', str(error), 'one that can be loaded') from error


def bound_functions(module: Any, parameters: FloatArray) -> dict[str, Any]:
    """Return a module's functions, bound to run-time parameters."""
    return module.bind(parameters, WrongShape, SingularMassMatrix)
