# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: kind, shape, finite numbers; errors name the argument."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.errors import InvalidArgument, NonFiniteValue, Phrase, WrongType
from robodyn_ros.spatial import FloatArray

T = TypeVar('T')


def checked_type(name: str, value: T, kind: type[Any] | tuple[type[Any], ...], allowed: str) -> T:
    """
    Return the argument, if it is of this kind.

    Raises
    ------
    WrongType
        Naming the argument.
    """
    if isinstance(value, kind):
        return value
    raise WrongType(f'argument {name}', _shown(value), allowed)


def checked_number(name: str, value: Any) -> float:
    """
    Return one real number, finite or not.

    Raises
    ------
    WrongType
        Naming the argument.
    """
    if not isinstance(value, Real):
        raise WrongType(f'argument {name}', _shown(value), 'a number')
    return float(value)


def checked_sequence(
    name: str, values: Iterable[T], kind: type[Any] | tuple[type[Any], ...], allowed: str
) -> tuple[T, ...]:
    """
    Return a sequence whose entries are of one kind; a text is no sequence of letters here.

    Raises
    ------
    WrongType
        Naming the argument.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise WrongType(f'argument {name}', _shown(values), f'several: {allowed}')
    entries = enumerate(values)
    return tuple(checked_type(f'{name}[{k}]', each, kind, allowed) for k, each in entries)


def checked_array(name: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """
    Return a copy as floats of exactly this shape.

    Raises
    ------
    InvalidArgument, NonFiniteValue
        Naming the argument.
    """
    array = _finite_floats(name, values)
    if array.shape != shape:
        raise InvalidArgument(f'argument {name}', Phrase(f'shape {array.shape}'), f'shape {shape}')
    return array


def checked_per_joint(name: str, values: ArrayLike, n: int) -> FloatArray:
    """
    Return a copy (n,) as floats: one number for all joints, or one for each.

    Raises
    ------
    InvalidArgument, NonFiniteValue
        Naming the argument.
    """
    array = float_array(name, values)
    return checked_array(name, np.full(n, array) if array.ndim == 0 else array, (n,))


def checked_gains(name: str, values: ArrayLike, n: int) -> FloatArray:
    """
    Return an array (n,) of what is zero or more: one value for all joints, or one for each.

    Raises
    ------
    InvalidArgument, NonFiniteValue
        Naming the argument.
    """
    array = np.atleast_1d(_finite_floats(name, values))
    if array.shape not in ((1,), (n,)):
        allowed = f'1 or {n}, one for each joint'
        raise InvalidArgument(f'argument {name}', Phrase(f'{array.size} values'), allowed)
    if (array < 0.0).any():
        raise InvalidArgument(f'argument {name}', array.tolist(), 'each zero or more')
    return np.broadcast_to(array, n)


def checked_states(n: int, **arrays: ArrayLike) -> list[FloatArray]:
    """
    Return arrays (n,) or (N, n), all of one shape: one configuration or N of them.

    Raises
    ------
    InvalidArgument, NonFiniteValue
        Naming the argument.
    """
    checked: list[FloatArray] = []
    for name, values in arrays.items():
        array = _finite_floats(name, values)
        allowed = f'shape ({n},) or (N, {n})'
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise InvalidArgument(f'argument {name}', Phrase(f'shape {array.shape}'), allowed)
        if checked and array.shape != checked[0].shape:
            first = next(iter(arrays))
            raise InvalidArgument(
                f'argument {name}',
                Phrase(f'shape {array.shape}'),
                f'that of {first}, {checked[0].shape}',
            )
        checked.append(array)
    return checked


def float_array(name: str, values: ArrayLike) -> FloatArray:
    """
    Return a contiguous copy as floats, of any shape and with any numbers.

    Raises
    ------
    InvalidArgument
        Naming the argument.
    """
    try:
        if values is None or np.iscomplexobj(values):
            raise TypeError('None or complex numbers')
        return np.array(values, dtype=float, order='C')
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f'argument {name}', values, 'an array of real numbers') from error


def _finite_floats(name: str, values: ArrayLike) -> FloatArray:
    array = float_array(name, values)
    if not np.isfinite(array).all():
        index = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        where = ''.join(f'[{k}]' for k in index)
        raise NonFiniteValue(f'argument {name}{where}', float(array[index]), 'finite numbers')
    return array


def checked_wrench(name: str, wrench: ArrayLike, q: FloatArray, size: int = 6) -> FloatArray:
    """Return a wrench (size,), or one (N, size) for each of the configurations q (N, n)."""
    array = _finite_floats(name, wrench)
    if array.shape not in ((size,), (*q.shape[:-1], size)):
        allowed = f'shape ({size},)' + (f' or ({len(q)}, {size})' if q.ndim > 1 else '')
        raise InvalidArgument(f'argument {name}', Phrase(f'shape {array.shape}'), allowed)
    return array


def _shown(value: Any) -> Any:
    """Return what an error shows of a value: of large ones the kind."""
    short = value is None or isinstance(value, (str, bool, int, float))
    return value if short else type(value).__name__
