# SPDX-License-Identifier: Apache-2.0
"""
One arm's functions in a compiled library: checked against NumPy, cached, loaded on demand.

Every argument of a function is an array of one sample, or of N samples with a leading axis N;
``out`` is a C-contiguous float64 array of the result's shape, or a tuple of them where there are
several results, which makes the call free of allocations.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache as remembered
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from robodyn_ros.compiled.c import cache, library
from robodyn_ros.compiled.c.shared import MODEL_KERNELS, model_header, model_source
from robodyn_ros.compiled.symbolic.kernels import KINDS, WRENCH, build_kernel, checked_kernels
from robodyn_ros.compiled.symbolic.run_time_inputs import DH, FRICTION, ROTORS, RunTime
from robodyn_ros.compiled.verification import check_functions
from robodyn_ros.errors import ModelMismatch, NoBackend, Phrase
from robodyn_ros.model import Payload, RobotModel, checked_model
from robodyn_ros.spatial import FloatArray

# What the generated code depends on.
_GENERATORS = (
    'compiled',
    'parameters',
    'dh',
    'dynamics/friction.py',
    'kinematics.py',
    'spatial.py',
)


# --- compiled library ----------------------------------------------------------------------------


class _ArmCode:
    """
    Libraries of one arm, shared by all models that differ in run-time inputs only.

    Parameters
    ----------
    run_time : RunTime
    names : tuple of str, optional
        The functions that there are, in one module. Where not given, each function has a module of
        its own, made when it is asked for; the inverse dynamics shares one with the tip wrench.

    Attributes
    ----------
    notes : list of str
        What failed in preparing it: a cache that was refused.
    operation_counts : dict of function name to (multiplications, additions)
        Of the functions that were asked for.
    """

    def __init__(self, run_time: RunTime, names: tuple[str, ...] | None) -> None:
        self.run_time = run_time
        self.names = names
        self.notes: list[str] = []
        self.operation_counts: dict[str, tuple[int, int]] = {}
        self._modules: dict[tuple[str, ...], Any] = {}

    def functions(self, name: str, model: RobotModel, parameters: FloatArray) -> dict[str, Any]:
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
            return {name: _NotCompiled(name)}
        if group not in self._modules:
            self._modules[group] = self._module(group, model, parameters)
        return library.bound_functions(self._modules[group], parameters)

    @property
    def is_model(self) -> bool:
        """Whether the library is a ``robodyn_model``, too."""
        has_all = self.names is not None and {*MODEL_KERNELS} <= {*self.names}
        return has_all and self.run_time.with_gravity and bool(self.run_time.varying)

    def model(self) -> Any:
        """Return the library's ``robodyn_model``."""
        if self.names is None or not self.is_model:
            wanted = f"kernels {', '.join(MODEL_KERNELS)} and runtime ('gravity', 'payload')"
            raise ModelMismatch('library of an arm', Phrase('compiled in part'), wanted)
        return library.model_of(self._modules[self.names])

    def _group(self, name: str) -> tuple[str, ...]:
        """Return the functions that share a module with one."""
        if self.names is not None:
            return self.names
        return ('inverse_dynamics', WRENCH) if name == 'inverse_dynamics' else (name,)

    def _module(self, names: tuple[str, ...], model: RobotModel, parameters: FloatArray) -> Any:
        """Return a module from the cache, or compiled; checked against NumPy."""
        identity = library.build_identity()
        key = _key(self.run_time, names, identity, self.is_model)
        content = None
        try:
            content = cache.stored(key)
        except (cache.RefusedCacheEntry, OSError) as error:
            self.notes.append(f'not taken from the cache: {error}')
        is_new = content is None
        if content is None:
            content = self._compiled(names)
        head, code = content.split(b'\n', 1)
        module = library.loaded_library(code)
        functions = library.bound_functions(module, parameters)
        try:
            check_functions(functions, model, ' '.join(identity.splitlines()[:2]))
            if is_new:
                cache.store(key, content)
        except NoBackend:
            with contextlib.suppress(cache.RefusedCacheEntry, OSError):
                cache.remove(key)
            raise
        except (cache.RefusedCacheEntry, OSError) as error:
            self.notes.append(f'not put into the cache: {error}')
        self.operation_counts |= {name: (m, a) for name, (m, a) in json.loads(head).items()}
        return module

    def _compiled(self, names: Sequence[str]) -> bytes:
        """Return operation counts and compiled library, as they are cached."""
        kernels = [build_kernel(name, self.run_time) for name in names]
        counts = json.dumps({kernel.name: kernel.operation_count for kernel in kernels})
        more = model_header() + model_source(self.run_time) if self.is_model else ''
        return counts.encode() + b'\n' + library.compiled_library(kernels, more)


def _key(run_time: RunTime, names: tuple[str, ...], identity: str, is_model: bool) -> str:
    """Return the digest of all inputs of a compiled library."""
    model, digest = run_time.model, hashlib.sha256()
    arrays = [getattr(model.dh, name) for name in DH]
    arrays += [model.inertial_parameters, model.gravity, *(getattr(model, x) for x in ROTORS)]
    arrays += [getattr(model, name) for name in FRICTION]
    if is_model:
        arrays += [model.position_limits, model.velocity_limits, model.effort_limits]
        digest.update(repr((model.joint_names, model.base_link, model.tip_links)).encode())
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
        for file in sorted(place.rglob('*.[pch]*')) if place.is_dir() else [place]:
            if file.suffix in ('.py', '.h', '.c'):
                digest.update(file.read_bytes())
    return digest.hexdigest()


class _NotCompiled:
    """
    Stands in place of a function that ``compile_model(kernels=...)`` left out.

    Parameters
    ----------
    name : str
        The function's.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any, **keywords: Any) -> FloatArray:
        """
        Raise ``ModelMismatch``.

        Raises
        ------
        ModelMismatch
            Always; it names the function.
        """
        raise ModelMismatch(
            f'function {self.name}',
            Phrase('not compiled'),
            f'compile_model with {self.name!r} among its kernels',
        )

    def __repr__(self) -> str:
        return f'NotCompiled({self.name!r})'


# --- the functions of one arm --------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class CompiledModel:
    """
    The functions of ``robodyn_ros`` for one arm, without their argument ``model``.

    They are attributes, named in ``compiled.KERNELS``; those of the tip know no other link. Of a
    tree they give the poses (k, 4, 4) and Jacobians (k, 6, n) of all tips, and take their wrenches
    one after the other, (6 k,), in the order of ``model.tip_links``.
    Each takes arrays of one sample (n,), or of N samples (N, n) in one call that releases the
    GIL, and writes into ``out`` where it is given: a C-contiguous float64 array of the result's
    shape, a tuple of them where there are several results, which makes the call free of
    allocations. Numbers that are not finite give results that are not finite, where the functions
    of ``robodyn_ros`` raise ``NonFiniteValue``: nothing checks for them here.

    What ``compile_model`` was not told to compile at once is compiled when the attribute is read
    first, which takes from a fraction of a second to several, or milliseconds from the cache; it
    may raise ``NoBackend``, then.

    Two are equal where model, functions and run-time inputs are. It pickles as these: unpickling
    takes the compiled library from the cache, or compiles it there.

    Attributes
    ----------
    model : RobotModel
        The arm at its present gravity and payload.
    """

    model: RobotModel
    _code: _ArmCode
    _parameters: FloatArray

    @property
    def notes(self) -> tuple[str, ...]:
        """What failed in preparing it: a cache that was refused."""
        return tuple(self._code.notes)

    @property
    def operation_counts(self) -> Mapping[str, tuple[int, int]]:
        """
        Multiplications and additions of one sample, by function, of those compiled so far.

        Sines, cosines and changes of sign are not counted.
        """
        return MappingProxyType(self._code.operation_counts)

    if TYPE_CHECKING:  # below the class each kernel is made an attribute

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def _function(self, name: str) -> Any:
        """Return a function bound to the model's run-time inputs."""
        return self._code.functions(name, self.model, self._parameters)[name]

    def library(self) -> tuple[Any, FloatArray]:
        """
        Return the arm's ``robodyn_model`` for other compiled code, as a capsule, and its load.

        The library stays loaded.

        Raises
        ------
        ModelMismatch
            It was compiled without one of its functions, or without gravity and payload as inputs.
        """
        return self._code.model(), self._parameters

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.model.n

    def with_model(self, model: RobotModel) -> CompiledModel:
        """
        Return the same compiled code for another gravity or payload; nothing is compiled.

        Parameters
        ----------
        model : RobotModel
            As ``self.model`` but for what ``compile_model(runtime=...)`` made an input.

        Returns
        -------
        CompiledModel

        Raises
        ------
        ModelMismatch
            The model differs in something that is no run-time input.
        """
        checked_model(model)
        return CompiledModel(model, self._code, self._code.run_time.values(model))

    def with_gravity(self, gravity: ArrayLike) -> CompiledModel:
        """
        Return the same compiled code under another gravity; see ``with_model``.

        Parameters
        ----------
        gravity : array-like, shape (3,)
            [m/s²], in the base link's axes.

        Returns
        -------
        CompiledModel

        Raises
        ------
        ModelMismatch, InvalidArgument, NonFiniteValue
        """
        return self.with_model(self.model.with_gravity(gravity))

    def with_payload(self, payload: Payload) -> CompiledModel:
        """
        Return the same compiled code with a further payload; see ``with_model``.

        Parameters
        ----------
        payload : Payload

        Returns
        -------
        CompiledModel

        Raises
        ------
        ModelMismatch, NoSuchName, InvalidArgument, NonFiniteValue
        """
        return self.with_model(self.model.with_payload(payload))

    def __repr__(self) -> str:
        names = self._code.names
        held = 'all functions' if names is None else ', '.join(names)
        tips = ', '.join(self.model.tip_links)
        return f'CompiledModel({tips}, {self.n} joints: {held})'

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompiledModel) and self._source() == other._source()

    def __hash__(self) -> int:
        return hash(self._source())

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiled, self._source()

    def _source(self) -> tuple[RunTime, tuple[str, ...] | None, RobotModel]:
        """Return all inputs of the compiled code and its parameters."""
        return self._code.run_time, self._code.names, self.model


def _attribute(name: str) -> cached_property[Any]:
    attribute: cached_property[Any] = cached_property(lambda self: self._function(name))
    attribute.__doc__ = KINDS[name].description
    attribute.__set_name__(CompiledModel, name)
    return attribute


for _name in KINDS:
    setattr(CompiledModel, _name, _attribute(_name))


def compile_model(
    model: RobotModel,
    *,
    kernels: Sequence[str] | None = None,
    runtime: Sequence[Literal['gravity', 'payload']] = (),
    payload_links: Iterable[str] | None = None,
) -> CompiledModel:
    """
    Return the functions of an arm, compiled by the machine's C compiler.

    Parameters
    ----------
    model : RobotModel
    kernels : sequence of str, optional
        The functions to compile at once, of ``KERNELS``; the others raise ``ModelMismatch`` when
        they are called. Where not given, the inverse dynamics is compiled at once, and each
        other function when it is read first.
    runtime : sequence of 'gravity' and 'payload'
        What stays an input, to be changed later without compiling: see ``with_model``.
    payload_links : iterable of str, optional
        The links that may carry a payload; the tip links where not given.

    Raises
    ------
    InvalidArgument
        A kernel or a run-time input is not one of those that exist.
    NoSuchName
    NoBackend
        There is no C compiler, or it failed, or its code computes something
        else than NumPy does. The functions of ``robodyn_ros`` serve without.
    """
    checked_model(model)
    names = None if kernels is None else checked_kernels(kernels)
    return _compiled(RunTime.of(model, runtime, payload_links), names, model)


def _compiled(
    run_time: RunTime, names: tuple[str, ...] | None, model: RobotModel
) -> CompiledModel:
    """Return functions for a model that differs from the one compiled in run-time inputs only."""
    code, parameters = _ArmCode(run_time, names), run_time.values(model)
    for name in ('inverse_dynamics',) if names is None else names[:1]:
        code.functions(name, model, parameters)
    return CompiledModel(model, code, parameters)
