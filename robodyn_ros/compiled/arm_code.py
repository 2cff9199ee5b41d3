# SPDX-License-Identifier: Apache-2.0
"""The machine code of one arm's functions: compiled, checked, kept, and mapped on demand."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from functools import cache as remembered
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.compiled.c import backend, cache
from robodyn_ros.compiled.functions import NotCompiled
from robodyn_ros.compiled.symbolic.kernel import KernelName
from robodyn_ros.compiled.symbolic.kernels import WRENCH, build_kernel
from robodyn_ros.compiled.symbolic.run_time import FRICTION, RunTime
from robodyn_ros.compiled.verification import check_functions
from robodyn_ros.errors import NoBackend, RefusedCacheEntry
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

_GENERATORS = (
    'compiled',
    'parameters',
    'dh',
    'dynamics/friction.py',
    'kinematics.py',
    'spatial.py',
)


class ArmCode:
    """
    Extension modules of one arm, shared by all models that differ in run-time inputs only.

    Parameters
    ----------
    run_time : RunTime
    names : tuple of str, optional
        The functions that there are, in one module. Where not given, each function has a module of
        its own, made when it is asked for; the inverse dynamics shares one with the tip wrench.

    Attributes
    ----------
    notes : list of str
        What did not work on the way: a cache that was refused.
    operation_counts : dict of function name to (multiplications, additions)
        Of the functions that were asked for.
    """

    def __init__(self, run_time: RunTime, names: tuple[KernelName, ...] | None) -> None:
        self.run_time = run_time
        self.names = names
        self.notes: list[str] = []
        self.operation_counts: dict[str, tuple[int, int]] = {}
        self._modules: dict[tuple[KernelName, ...], Any] = {}

    def functions(
        self, name: KernelName, model: RobotModel, parameters: FloatArray
    ) -> dict[str, Any]:
        """
        Return the functions of the module that holds one, bound to a model's run-time inputs.

        Parameters
        ----------
        name : str
            Of the function.
        model : RobotModel
        parameters : array
            What ``run_time.values(model)`` returned.

        Raises
        ------
        NoBackend
        """
        group = self._group(name)
        if name not in group:
            return {name: NotCompiled(name)}
        if group not in self._modules:
            self._modules[group] = self._module(group, model, parameters)
        return backend.bound_functions(self._modules[group], parameters)

    def module_of(self, name: KernelName) -> Any:
        """Return the module that holds a function which was asked for before."""
        return self._modules[self._group(name)]

    def _group(self, name: KernelName) -> tuple[KernelName, ...]:
        """Return the functions that share a module with one."""
        if self.names is not None:
            return self.names
        return ('inverse_dynamics', WRENCH) if name == 'inverse_dynamics' else (name,)

    def _module(
        self, names: tuple[KernelName, ...], model: RobotModel, parameters: FloatArray
    ) -> Any:
        """Return a module from the cache, or compiled; checked against NumPy."""
        identity = backend.build_identity()
        key = _key(self.run_time, names, identity)
        content = None
        try:
            content = cache.stored(key)
        except (RefusedCacheEntry, OSError) as error:
            self.notes.append(f'not taken from the cache: {error}')
        is_new = content is None
        if content is None:
            content = self._compiled(names)
        head, code = content.split(b'\n', 1)
        module = backend.load_module(code)
        functions = backend.bound_functions(module, parameters)
        try:
            check_functions(functions, model, ' '.join(identity.splitlines()[:2]))
            if is_new:
                cache.store(key, content)
        except NoBackend:
            with contextlib.suppress(RefusedCacheEntry, OSError):
                cache.remove(key)
            raise
        except (RefusedCacheEntry, OSError) as error:
            self.notes.append(f'not put into the cache: {error}')
        self.operation_counts |= {name: (m, a) for name, (m, a) in json.loads(head).items()}
        return module

    def _compiled(self, names: Sequence[KernelName]) -> bytes:
        """Return operation counts and machine code, as they are kept."""
        kernels = [build_kernel(name, self.run_time) for name in names]
        counts = json.dumps({kernel.name: kernel.operation_count for kernel in kernels})
        return counts.encode() + b'\n' + backend.compiled_module(kernels)


def _key(run_time: RunTime, names: tuple[str, ...], identity: str) -> str:
    """Return the digest of all that machine code depends on."""
    model, digest = run_time.model, hashlib.sha256()
    arrays = [value for value in vars(model.dh).values() if isinstance(value, np.ndarray)]
    arrays += [model.inertial_parameters, model.rotor_inertia, model.gravity]
    arrays += [getattr(model, name) for name in FRICTION]
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode() + array.tobytes())
    choices = (names, run_time.with_gravity, run_time.varying, identity, _generator())
    digest.update(repr(choices).encode())
    return digest.hexdigest()


@remembered
def _generator() -> str:
    """Return the digest of the modules that make the code: it changes with every version."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for name in _GENERATORS:
        place = package / name
        for file in sorted(place.rglob('*.[ph]*')) if place.is_dir() else [place]:
            if file.suffix in ('.py', '.h'):
                digest.update(file.read_bytes())
    return digest.hexdigest()
