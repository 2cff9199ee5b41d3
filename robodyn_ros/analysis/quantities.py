# SPDX-License-Identifier: Apache-2.0
"""Symbols, units and quotients of coefficients between revolute and prismatic joints."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_INERTIA_UNITS = ('kg m²', 'kg m', 'kg', 'kg/m')


def symbol(letter: str, *joints: int, of: int | None = None) -> str:
    """
    Return a symbol such as d_12 or c_23(1), for joints counted from 0, written from 1.

    Indices stand apart, as in d_1,10, where one has two digits.
    """
    between = ',' if any(j >= 9 for j in joints) else ''
    written = f'{letter}_{between.join(str(j + 1) for j in joints)}'
    return written if of is None else f'{written}({of + 1})'


def acceleration_unit(prismatic: bool) -> str:
    """Return the unit of a joint acceleration."""
    return 'm/s²' if prismatic else 'rad/s²'


def inertia_unit(prismatic: Iterable[bool]) -> str:
    """Return the unit of d_ij or c_jm(i): each prismatic joint among its indices takes an m."""
    return _INERTIA_UNITS[sum(map(bool, prismatic))]


def ratio_unit(prismatic: bool, by: bool) -> str:
    """Return the unit of R_ij = D_ij / D_ii: of a joint's acceleration by another joint's."""
    return '1' if prismatic == by else ('m' if prismatic else '1/m')


def quotient(values: NDArray, scale: NDArray) -> NDArray:
    """
    Return values / scale, broadcast, and zero where the scale is zero.

    What is divided here is bounded by its scale, so that it is zero there, too.
    """
    values, scale = np.broadcast_arrays(values, scale)
    out = np.zeros(values.shape, np.result_type(values, scale))
    return np.divide(values, scale, out=out, where=scale != 0)
