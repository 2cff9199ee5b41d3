# SPDX-License-Identifier: Apache-2.0
"""Checks of array arguments: shape, finite numbers; errors name the argument."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.errors import NonFiniteValue, WrongShape
from robodyn_ros.spatial import FloatArray


def checked_array(name: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """
    Return a copy as floats of exactly this shape.

    Raises
    ------
    WrongShape, NonFiniteValue
        Naming the argument.
    """
    array = _finite_floats(name, values)
    if array.shape != shape:
        raise WrongShape(f'argument {name}', f'shape {array.shape}', f'shape {shape}')
    return array


def checked_states(n: int, **arrays: ArrayLike) -> list[FloatArray]:
    """
    Return arrays (n,) or (N, n), all of one shape: one configuration or N of them.

    Raises
    ------
    WrongShape, NonFiniteValue
        Naming the argument.
    """
    checked: list[FloatArray] = []
    for name, values in arrays.items():
        array = _finite_floats(name, values)
        allowed = f'shape ({n},) or (N, {n})'
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise WrongShape(f'argument {name}', f'shape {array.shape}', allowed)
        if checked and array.shape != checked[0].shape:
            first = next(iter(arrays))
            raise WrongShape(
                f'argument {name}', f'shape {array.shape}', f'that of {first}, {checked[0].shape}'
            )
        checked.append(array)
    return checked


def float_array(name: str, values: ArrayLike) -> FloatArray:
    """
    Return a contiguous copy as floats, of any shape and with any numbers.

    Raises
    ------
    WrongShape
        Naming the argument.
    """
    try:
        if np.iscomplexobj(values):
            raise TypeError('complex numbers')
        return np.array(values, dtype=float, order='C')
    except (TypeError, ValueError) as error:
        raise WrongShape(f'argument {name}', values, 'an array of real numbers') from error


def _finite_floats(name: str, values: ArrayLike) -> FloatArray:
    array = float_array(name, values)
    if not np.isfinite(array).all():
        index = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        where = ''.join(f'[{k}]' for k in index)
        raise NonFiniteValue(f'argument {name}{where}', float(array[index]), 'finite numbers')
    return array


def checked_wrench(tip_wrench: ArrayLike, q: FloatArray) -> FloatArray:
    """Return a wrench (6,), or one (N, 6) for each of the configurations q (N, n)."""
    wrench = _finite_floats('tip_wrench', tip_wrench)
    if wrench.shape not in ((6,), (*q.shape[:-1], 6)):
        allowed = 'shape (6,)' if q.ndim == 1 else f'shape (6,) or ({len(q)}, 6)'
        raise WrongShape('argument tip_wrench', f'shape {wrench.shape}', allowed)
    return wrench
