# SPDX-License-Identifier: Apache-2.0
"""One arm's functions as machine code, its constants folded in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache as remembered
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.compiled import numba_backend
from robodyn_ros.compiled.c import backend as c_backend
from robodyn_ros.compiled.c import cache
from robodyn_ros.compiled.symbolic.kernels import KERNELS, Kernel, build_kernel
from robodyn_ros.compiled.symbolic.run_time import RunTime
from robodyn_ros.errors import NoBackend, NotCompiledFor, RefusedCacheEntry, UnknownOption
from robodyn_ros.model import Payload, RobotModel
from robodyn_ros.spatial import FloatArray

BACKENDS = ('auto', 'c', 'numba')
_GENERATORS = ('compiled', 'parameters', 'dh', 'kinematics.py', 'spatial.py')


def _missing(*arguments: Any, **keywords: Any) -> NDArray:
    raise NotCompiledFor('function', 'not compiled', 'those of compile_model(kernels=...)')


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """
    The functions of ``robodyn_ros`` for one arm, without their argument ``model``.

    Each takes arrays of one sample (n,), or of N samples (N, n) in one call that releases the
    GIL, and writes into ``out`` where it is given: a C-contiguous float64 array of the result's
    shape, which makes the call free of allocations. Numbers that are not finite give results that
    are not finite; nothing checks for them.

    Attributes
    ----------
    model : RobotModel
        The arm at its present gravity and payload.
    backend : 'c' or 'numba'
    notes : tuple of str
        What did not work on the way: a compiler that is missing, a cache that was refused.
    operation_counts : mapping of function name to (multiplications, additions)
        Of one sample. Sines, cosines and changes of sign are not counted.
    inverse_dynamics : (q, qd, qdd, out=None, *, tip_wrench=None) -> (n,)
    gravity_torque : (q, out=None) -> (n,)
    bias_torque : (q, qd, out=None) -> (n,)
        Coriolis, centrifugal and gravity torques together: C(q, qd) qd + g(q).
    mass_matrix : (q, out=None) -> (n, n)
    forward_dynamics : (q, qd, tau, out=None) -> (n,)
    forward_kinematics : (q, out=None) -> (4, 4)
    jacobian : (q, out=None) -> (6, n)
    base_regressor : (q, qd, qdd, out=None) -> (n, count)
        That of ``base_parameters(model)``, of the links without rotors.
    tip_wrench_torque : (q, tip_wrench, out=None) -> (n,)
        What ``tip_wrench`` adds to the inverse dynamics.
    """

    model: RobotModel
    backend: str
    notes: tuple[str, ...]
    operation_counts: Mapping[str, tuple[int, int]]
    _run_time: RunTime
    _bind: Callable[[FloatArray], dict[str, Any]]
    inverse_dynamics: Callable[..., NDArray] = _missing
    gravity_torque: Callable[..., NDArray] = _missing
    bias_torque: Callable[..., NDArray] = _missing
    mass_matrix: Callable[..., NDArray] = _missing
    forward_dynamics: Callable[..., NDArray] = _missing
    forward_kinematics: Callable[..., NDArray] = _missing
    jacobian: Callable[..., NDArray] = _missing
    base_regressor: Callable[..., NDArray] = _missing
    tip_wrench_torque: Callable[..., NDArray] = _missing

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.model.n

    def with_model(self, model: RobotModel) -> CompiledModel:
        """
        Return the same machine code for another gravity or payload; nothing is compiled.

        Parameters
        ----------
        model : RobotModel
            As ``self.model`` but for what ``compile_model(runtime=...)`` made an input.

        Returns
        -------
        CompiledModel

        Raises
        ------
        NotCompiledFor
            The model differs in something that is no run-time input.
        """
        functions = self._bind(self._run_time.values(model))
        return replace(self, model=model, **functions)

    def with_gravity(self, gravity: ArrayLike) -> CompiledModel:
        """
        Return the same machine code under another gravity; see ``with_model``.

        Parameters
        ----------
        gravity : array-like, shape (3,)
            [m/s²], in the base link's axes.

        Returns
        -------
        CompiledModel

        Raises
        ------
        NotCompiledFor, WrongShape, NonFiniteValue
        """
        return self.with_model(self.model.with_gravity(gravity))

    def with_payload(self, payload: Payload) -> CompiledModel:
        """
        Return the same machine code with a further payload; see ``with_model``.

        Parameters
        ----------
        payload : Payload

        Returns
        -------
        CompiledModel

        Raises
        ------
        NotCompiledFor, NoSuchLink, ImplausiblePayload, WrongShape, NonFiniteValue
        """
        return self.with_model(self.model.with_payload(payload))


def compile_model(
    model: RobotModel,
    backend: str = 'auto',
    *,
    kernels: Sequence[str] = KERNELS,
    runtime: Sequence[str] = (),
    payload_links: Iterable[str] | None = None,
) -> CompiledModel:
    """
    Return the functions of an arm as machine code.

    Parameters
    ----------
    model : RobotModel
    backend : 'auto', 'c' or 'numba'
        A C extension, or numba; ``'auto'`` takes the first that works.
    kernels : sequence of str
        The functions to compile; ``NODE_KERNELS`` are those that a controller needs.
    runtime : sequence of 'gravity' and 'payload'
        What stays an input, to be changed later without compiling: see ``with_model``.
    payload_links : iterable of str, optional
        The links that may carry a payload; the tip link where not given.

    Raises
    ------
    UnknownOption, NoSuchLink
    NoBackend
        None of the backends works here; the message says why.
    """
    if backend not in BACKENDS:
        raise UnknownOption('argument backend', backend, ', '.join(map(repr, BACKENDS)))
    for name in kernels:
        if name not in KERNELS:
            raise UnknownOption('argument kernels', name, ', '.join(map(repr, KERNELS)))
    names = tuple(name for name in KERNELS if name in kernels)
    run_time = RunTime.of(model, runtime, payload_links)
    notes: list[str] = []
    for kind in ('c', 'numba') if backend == 'auto' else (backend,):
        try:
            counts, bind = _BACKENDS[kind](run_time, names, notes)
        except NoBackend as error:
            notes.append(str(error))
            continue
        functions = bind(run_time.values(model))
        return CompiledModel(
            model, kind, tuple(notes), MappingProxyType(counts), run_time, bind, **functions
        )
    raise NoBackend('backends', '; '.join(notes), 'a C compiler with Python.h, or numba')


Backend = tuple[dict[str, tuple[int, int]], Callable[[FloatArray], dict[str, Any]]]


def _c_backend(run_time: RunTime, names: tuple[str, ...], notes: list[str]) -> Backend:
    key = _key(run_time, names, c_backend.build_identity())
    content = None
    try:
        content = cache.stored(key)
    except (RefusedCacheEntry, OSError) as error:
        notes.append(f'not taken from the cache: {error}')
    if content is None:
        kernels = _kernels(run_time, names)
        counts = json.dumps({kernel.name: kernel.operation_count for kernel in kernels})
        content = counts.encode() + b'\n' + c_backend.compiled_module(kernels)
        try:
            cache.store(key, content)
        except (RefusedCacheEntry, OSError) as error:
            notes.append(f'not put into the cache: {error}')
    head, code = content.split(b'\n', 1)
    module = c_backend.load_module(code)
    return (
        {name: (m, a) for name, (m, a) in json.loads(head).items()},
        lambda parameters: c_backend.bound_functions(module, parameters),
    )


def _numba_backend(run_time: RunTime, names: tuple[str, ...], notes: list[str]) -> Backend:
    kernels = _kernels(run_time, names)
    bind = numba_backend.compiled_functions(kernels)
    return {kernel.name: kernel.operation_count for kernel in kernels}, bind


_BACKENDS = {'c': _c_backend, 'numba': _numba_backend}


def _kernels(run_time: RunTime, names: tuple[str, ...]) -> list[Kernel]:
    return [build_kernel(name, run_time) for name in names]


def _key(run_time: RunTime, names: tuple[str, ...], identity: str) -> str:
    """Return the digest of all that machine code depends on."""
    model, digest = run_time.model, hashlib.sha256()
    arrays = [value for value in vars(model.dh).values() if isinstance(value, np.ndarray)]
    arrays += [model.inertial_parameters, model.rotor_inertia, model.gravity]
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
