# SPDX-License-Identifier: Apache-2.0
"""Kernels through numba, for machines without a C compiler."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.arguments import float_array
from robodyn_ros.compiled.symbolic.kernels import WRENCH, Kernel
from robodyn_ros.compiled.symbolic.run_time import PARAMETERS
from robodyn_ros.errors import NoBackend, SingularMassMatrix, WrongShape
from robodyn_ros.spatial import FloatArray

Functions = dict[str, Callable[..., Any]]

_DONE, _SINGULAR, _WRONG_SHAPE = range(3)

# What numba compiles and what calls it, spelled out with the names of a kernel's arguments.
_COMPILED = """
def one({arguments}, out):
    if {wrong} or out.shape != {shape}:
        return {WRONG_SHAPE}
    return line({arguments}, out)

def many({arguments}, out):
    if {wrong} or {uneven} or out.shape[1:] != {shape}:
        return {WRONG_SHAPE}
    state = {DONE}
    for i in range(out.shape[0]):
        state |= line({rows}, out[i])
    return state

def typed(context, {arguments}, out):
    return signature({arguments}, out)
"""
_CALL = """
def call({listed}, out=None{keyword}):
    {loaded}
    try:
        result = empty({shape}) if out is None else out
        if not one({bound}{listed}, result):
            return result
    except TypeError:
        pass
    return general(({listed},), out)
"""
_LOADED = 'if tip_wrench is not None: return loaded(({listed},), out, tip_wrench)'


def compiled_functions(kernels: Sequence[Kernel]) -> Callable[[FloatArray], Functions]:
    """
    Return the function that binds kernels to run-time parameters.

    Raises
    ------
    NoBackend
        numba is not installed, or does not work here.
    """
    try:
        compiled = {kernel.name: _compiled(kernel) for kernel in kernels}
    except Exception as error:  # whatever ails numba, there is no backend then
        raise NoBackend('numba', f'{type(error).__name__}: {error}'[:500], 'numba') from error

    def bind(parameters: FloatArray) -> Functions:
        own = np.array(parameters, dtype=float)
        functions: Functions = {}
        for kernel in sorted(kernels, key=lambda kernel: kernel.name != WRENCH):
            wrench = functions.get(WRENCH) if kernel.name == 'inverse_dynamics' else None
            functions[kernel.name] = _function(kernel, *compiled[kernel.name], own, wrench)
        return functions

    return bind


def _compiled(kernel: Kernel) -> tuple[Any, Any]:
    """Return the kernel for one sample and for many: ([parameters], *inputs, out) -> state."""
    numba = importlib.import_module('numba')
    emit_kernel = importlib.import_module('robodyn_ros.compiled.llvm_code').emit_kernel
    parameters = [PARAMETERS] * kernel.has_parameters
    names = [name for name, _ in kernel.inputs]
    integer = numba.int64

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        arrays = [
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(signature.args, values)
        ]
        return emit_kernel(builder, kernel, dict(zip([*parameters, *names], arrays)), arrays[-1])

    scope: dict[str, Any] = {'signature': lambda *types: (integer(*types), emit)}
    exec(
        _COMPILED.format(
            arguments=', '.join([*parameters, *names]),
            rows=', '.join([*parameters, *(f'{name}[i]' for name in names)]),
            wrong=' or '.join(f'{name}.shape[-1] != {width}' for name, width in kernel.inputs),
            uneven=' or '.join(f'{name}.shape[0] != out.shape[0]' for name in names),
            shape=kernel.shape,
            DONE=_DONE,
            WRONG_SHAPE=_WRONG_SHAPE,
        ),
        scope,
    )
    scope['line'] = numba.extending.intrinsic(scope['typed'])
    dimensions = [numba.float64[::1], numba.float64[:, ::1], numba.float64[:, :, ::1]]
    bound = dimensions[:1] * len(parameters)
    last = len(kernel.shape)
    one = integer(*bound, *dimensions[:1] * len(names), dimensions[last - 1])
    many = integer(*bound, *dimensions[1:2] * len(names), dimensions[last])
    # Nothing is allocated, so that numba need not count references: a quarter of a call's time.
    return (
        numba.njit([one], _nrt=False)(scope['one']),
        numba.njit([many], nogil=True)(scope['many']),
    )


def _function(
    kernel: Kernel,
    one: Any,
    many: Any,
    parameters: FloatArray,
    wrench_torque: Callable[..., NDArray] | None,
) -> Callable[..., NDArray]:
    """Return a kernel as a function of arrays: float64 of one sample go the short way."""
    names = [name for name, _ in kernel.inputs]
    bound = (parameters,) * kernel.has_parameters

    def general(arrays: Sequence[Any], out: NDArray | None) -> NDArray:
        given = [float_array(name, x) for name, x in zip(names, arrays)]
        batch = given[0].shape[:-1]
        for (name, width), array in zip(kernel.inputs, given):
            if array.shape != (*batch, width) or len(batch) > 1:
                allowed = f'shape ({width},) or (N, {width}), as many rows as {names[0]}'
                raise WrongShape(f'argument {name}', f'shape {array.shape}', allowed)
        shape = (*batch, *kernel.shape)
        result = np.empty(shape) if out is None else _checked_out(out, shape)
        if (many if batch else one)(*bound, *given, result) == _SINGULAR:
            raise SingularMassMatrix(
                'mass matrix',
                'a pivot that is not positive',
                'positive definite: inertia about every joint (see the findings)',
            )
        return result

    def loaded(arrays: Sequence[Any], out: NDArray | None, tip_wrench: Any) -> NDArray:
        wrench = float_array('tip_wrench', tip_wrench)
        if wrench.ndim == 1 and np.ndim(arrays[0]) == 2:
            wrench = np.tile(wrench, (len(arrays[0]), 1))
        assert wrench_torque is not None
        share = wrench_torque(arrays[0], wrench)
        result = general(arrays, out)
        result += share
        return result

    scope: dict[str, Any] = {'one': one, 'general': general, 'loaded': loaded}
    scope |= {'empty': np.empty, 'parameters': parameters}
    exec(
        _CALL.format(
            listed=', '.join(names),
            keyword=', *, tip_wrench=None' if wrench_torque else '',
            loaded=_LOADED.format(listed=', '.join(names)) if wrench_torque else '',
            bound='parameters, ' * kernel.has_parameters,
            shape=kernel.shape if len(kernel.shape) > 1 else kernel.shape[0],
        ),
        scope,
    )
    return scope['call']


def _checked_out(out: Any, shape: tuple[int, ...]) -> NDArray:
    if (
        isinstance(out, np.ndarray)
        and out.shape == shape
        and out.dtype == np.float64
        and out.flags.carray
    ):
        return out
    allowed = f'a writeable, contiguous array of float64, shape {shape}'
    raise WrongShape('argument out', f'shape {getattr(out, "shape", None)}', allowed)
