# SPDX-License-Identifier: Apache-2.0
"""One arm's functions as machine code, its constants folded in."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache as remembered
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.compiled.c import backend, cache
from robodyn_ros.compiled.functions import (
    NotCompiled,
    OfAcceleration,
    OfAccelerationAndWrench,
    OfPosition,
    OfTorque,
    OfVelocity,
    OfVelocityAndTorque,
    OfVelocityWidthAndTorque,
    OfWrench,
)
from robodyn_ros.compiled.symbolic.kernels import KERNELS, KernelName, build_kernel
from robodyn_ros.compiled.symbolic.run_time import FRICTION, RunTime
from robodyn_ros.compiled.verification import check_functions
from robodyn_ros.errors import NoBackend, RefusedCacheEntry, UnknownOption
from robodyn_ros.model import Payload, RobotModel

_GENERATORS = (
    'compiled',
    'parameters',
    'dh',
    'dynamics/friction.py',
    'kinematics.py',
    'spatial.py',
)


@dataclass(frozen=True, eq=False, repr=False)
class CompiledModel:
    """
    The functions of ``robodyn_ros`` for one arm, without their argument ``model``.

    Each takes arrays of one sample (n,), or of N samples (N, n) in one call that releases the
    GIL, and writes into ``out`` where it is given: a C-contiguous float64 array of the result's
    shape, which makes the call free of allocations. Numbers that are not finite give results that
    are not finite; nothing checks for them.

    Two are equal where model, functions and run-time inputs are. It pickles as these: unpickling
    takes the machine code from the cache, or compiles it there.

    Attributes
    ----------
    model : RobotModel
        The arm at its present gravity and payload.
    notes : tuple of str
        What did not work on the way: a cache that was refused.
    operation_counts : mapping of function name to (multiplications, additions)
        Of one sample. Sines, cosines and changes of sign are not counted.
    inverse_dynamics : (q, qd, qdd, out=None, *, tip_wrench=None) -> (n,)
        Joint torques [N m or N] that cause accelerations qdd [rad/s² or m/s²], where the tip
        exerts the wrench (6,) [N, N m] on the world.
    gravity_torque : (q, out=None) -> (n,)
        Joint torques [N m or N] that hold the arm still.
    bias_torque : (q, qd, out=None) -> (n,)
        Coriolis, centrifugal and gravity torques together, C(q, qd) qd + g(q) [N m or N].
    mass_matrix : (q, out=None) -> (n, n)
        M(q) [kg m², kg m or kg].
    coriolis_matrix : (q, qd, out=None) -> (n, n)
        C(q, qd) of the Christoffel symbols, with dM/dt - 2 C skew-symmetric.
    forward_dynamics : (q, qd, tau, out=None) -> (n,)
        Accelerations [rad/s² or m/s²] that torques cause.
    forward_kinematics : (q, out=None) -> (4, 4)
        The tip link's pose in the base link's frame.
    jacobian : (q, out=None) -> (6, n)
        The tip's Jacobian, linear rows first, in base link axes.
    friction_torque : (qd, rigid_torque=None, out=None) -> (n,)
        Joint torques [N m or N] that overcome friction; friction that grows with load is left out
        without the rigid body's torque (n,).
    smooth_friction_torque : (qd, width, rigid_torque=None, out=None) -> (n,)
        The same with tanh(qd / width) for the sign of qd, to be commanded; width (1,) [rad/s or
        m/s], (N, 1) for N samples.
    base_regressor : (q, qd, qdd, out=None) -> (n, count)
        That of ``base_parameters(model)``, of the links without rotors.
    tip_wrench_torque : (q, tip_wrench, out=None) -> (n,)
        What ``tip_wrench`` adds to the inverse dynamics [N m or N].
    """

    model: RobotModel
    notes: tuple[str, ...]
    operation_counts: Mapping[str, tuple[int, int]]
    _run_time: RunTime
    _module: Any
    inverse_dynamics: OfAccelerationAndWrench = NotCompiled('inverse_dynamics')
    gravity_torque: OfPosition = NotCompiled('gravity_torque')
    bias_torque: OfVelocity = NotCompiled('bias_torque')
    mass_matrix: OfPosition = NotCompiled('mass_matrix')
    coriolis_matrix: OfVelocity = NotCompiled('coriolis_matrix')
    forward_dynamics: OfTorque = NotCompiled('forward_dynamics')
    forward_kinematics: OfPosition = NotCompiled('forward_kinematics')
    jacobian: OfPosition = NotCompiled('jacobian')
    friction_torque: OfVelocityAndTorque = NotCompiled('friction_torque')
    smooth_friction_torque: OfVelocityWidthAndTorque = NotCompiled('smooth_friction_torque')
    base_regressor: OfAcceleration = NotCompiled('base_regressor')
    tip_wrench_torque: OfWrench = NotCompiled('tip_wrench_torque')

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
        functions = backend.bound_functions(self._module, self._run_time.values(model))
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

    def __repr__(self) -> str:
        names = ', '.join(self.operation_counts)
        return f'CompiledModel({self.model.tip_link}, {self.n} joints: {names})'

    def _source(self) -> tuple[RunTime, tuple[str, ...], RobotModel]:
        """Return all that the machine code and its parameters follow from."""
        return self._run_time, tuple(self.operation_counts), self.model

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompiledModel) and self._source() == other._source()

    def __hash__(self) -> int:
        return hash(self._source())

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiled, self._source()


def compile_model(
    model: RobotModel,
    *,
    kernels: Sequence[KernelName] = KERNELS,
    runtime: Sequence[Literal['gravity', 'payload']] = (),
    payload_links: Iterable[str] | None = None,
) -> CompiledModel:
    """
    Return the functions of an arm as machine code, made by the machine's C compiler.

    Parameters
    ----------
    model : RobotModel
    kernels : sequence of str
        The functions to compile, of ``KERNELS``.
    runtime : sequence of 'gravity' and 'payload'
        What stays an input, to be changed later without compiling: see ``with_model``.
    payload_links : iterable of str, optional
        The links that may carry a payload; the tip link where not given.

    Raises
    ------
    UnknownOption
        A kernel or a run-time input is not one of those that exist.
    NoSuchLink
    NoBackend
        There is no C compiler with Python's headers, or it failed, or its code computes other
        torques than Newton-Euler does in NumPy. The functions of ``robodyn_ros`` serve without.
    """
    for name in kernels:
        if name not in KERNELS:
            raise UnknownOption('argument kernels', name, ', '.join(map(repr, KERNELS)))
    names = tuple(name for name in KERNELS if name in kernels)
    return _compiled(RunTime.of(model, runtime, payload_links), names, model)


def _compiled(
    run_time: RunTime, names: tuple[KernelName, ...], model: RobotModel
) -> CompiledModel:
    """Return functions for a model that differs from the one compiled in run-time inputs only."""
    notes: list[str] = []
    identity = backend.build_identity()
    key = _key(run_time, names, identity)
    content = None
    try:
        content = cache.stored(key)
    except (RefusedCacheEntry, OSError) as error:
        notes.append(f'not taken from the cache: {error}')
    is_new = content is None
    if content is None:
        kernels = [build_kernel(name, run_time) for name in names]
        counts = json.dumps({kernel.name: kernel.operation_count for kernel in kernels})
        content = counts.encode() + b'\n' + backend.compiled_module(kernels)
    head, code = content.split(b'\n', 1)
    module = backend.load_module(code)
    functions = backend.bound_functions(module, run_time.values(model))
    try:
        check_functions(functions, model, ' '.join(identity.splitlines()[:2]))
        if is_new:
            cache.store(key, content)
    except NoBackend:
        with contextlib.suppress(RefusedCacheEntry, OSError):
            cache.remove(key)
        raise
    except (RefusedCacheEntry, OSError) as error:
        notes.append(f'not put into the cache: {error}')
    return CompiledModel(
        model,
        tuple(notes),
        MappingProxyType({name: (m, a) for name, (m, a) in json.loads(head).items()}),
        run_time,
        module,
        **functions,
    )


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
