# SPDX-License-Identifier: Apache-2.0
"""
Regrouping from link n to link 1: the base parameters as combinations of the standard ones.

Gautier and Khalil 1988, eqs. (20) and (21), in the one form that both are cases of, and that
holds with the Hayati angle and in trees too: the eliminated body moves from frame j to the frame
before, j - 1 in a chain, by the constant part of the row. Against the print: (20)'s first line is
XXR_j; in (21) XY's first coefficient is C(theta) S(theta) C(alpha), XZ's first term has a plus and
YZ's first term too.

Coefficients are polynomials in the table's lengths a_j, b_j and d_j; their factors are products of
the sines and cosines of its angles, exact for right angles. Where what a first link gives up
depends on a length itself (without gravity it may), that length is in the factors as a number.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.table import DHTable
from robodyn_ros.parameters.elimination import Elimination, link_transform
from robodyn_ros.parameters.energy import recursion_matrix
from robodyn_ros.spatial import FloatArray, rotation_z, transform

Monomial = tuple[str, ...]
"""A product of lengths by name, sorted: () is 1, ('a3', 'a3') the square of a3."""

Polynomials = dict[Monomial, FloatArray]
"""Arrays of polynomials, as the arrays of each monomial's factors."""

# Factors are products of a few sines and cosines: what is smaller than this is rounding.
_ROUNDING = 1e-14


def regrouped(dh: DHTable, eliminations: list[Elimination], count: int) -> Polynomials:
    """
    Return all kept parameters, link by link, in terms of all standard ones.

    Parameters
    ----------
    dh : DHTable
        Modified.
    eliminations : list of n Elimination
    count : int
        Number of standard parameters: ten for each link, then what the joints have of their own.

    Returns
    -------
    Polynomials of arrays (count, count)
        Row k tells what stands in the k-th place once everything is regrouped; rows of eliminated
        parameters are zero.
    """
    n = dh.n
    rows: Polynomials = defaultdict(lambda: np.zeros((count, count)))
    rows[()] = np.eye(count)
    for j in range(n - 1, -1, -1):
        taken = eliminations[j]
        places = [*range(10 * j, 10 * j + 10), 10 * n + j][: taken.bodies.shape[1]]
        eliminated = [places[k] for k in taken.eliminated]
        parent = int(dh.parents[j])
        steps = _recursion_polynomials(dh, j) if parent >= 0 else {}
        for monomial in list(rows):
            amounts = rows[monomial][eliminated]
            if not amounts.any():
                continue
            bodies = taken.bodies.T @ amounts
            rows[monomial][places] -= bodies
            rows[monomial][eliminated] = 0.0
            for factor, matrix in steps.items():
                product = tuple(sorted(monomial + factor))
                rows[product][10 * parent : 10 * parent + 10] += matrix.T @ bodies[:10]
    for array in rows.values():
        array[np.abs(array) < _ROUNDING] = 0.0
    return {monomial: array for monomial, array in rows.items() if array.any()}


def lengths(dh: DHTable) -> dict[str, float]:
    """Return the lengths [m] that coefficients are polynomials of, by name: a2, d2, a3 ..."""
    result = {}
    for j in np.flatnonzero(dh.parents >= 0):
        result[f'b{j + 1}'] = float(dh.b[j])
        result[f'a{j + 1}'] = float(dh.a[j])
        if not dh.prismatic[j]:
            result[f'd{j + 1}'] = float(dh.d[j])
    return {name: value for name, value in result.items() if value != 0.0}


def evaluated(polynomials: Mapping[Monomial, FloatArray], values: dict[str, float]) -> FloatArray:
    """Return the array of the polynomials' values; what cancels up to rounding is zero."""
    total = np.zeros_like(next(iter(polynomials.values())))
    size = np.zeros_like(total)
    for monomial, array in polynomials.items():
        term = math.prod(values[name] for name in monomial) * array
        total += term
        size += np.abs(term)
    total[np.abs(total) <= _ROUNDING * size] = 0.0
    return total


def _recursion_polynomials(dh: DHTable, j: int) -> Polynomials:
    """Return lambda_j's constant part as polynomials in a_j, b_j and d_j."""
    rotation = link_transform(dh, j)[:3, :3]
    directions: dict[str, NDArray] = {}
    if dh.a[j] != 0.0:
        directions[f'a{j + 1}'] = rotation_z(dh.gamma[j])[:, 0]
    if dh.b[j] != 0.0:
        directions[f'b{j + 1}'] = np.array([0.0, 0.0, 1.0])
    if not dh.prismatic[j] and dh.d[j] != 0.0:
        directions[f'd{j + 1}'] = rotation[:, 2]

    def at(translation: NDArray) -> NDArray:
        return recursion_matrix(transform(rotation, translation))

    # Quadratic in the translation: differences give its coefficients without error.
    here = at(np.zeros(3))
    result: Polynomials = {(): here}
    for name, u in directions.items():
        result[(name,)] = (at(u) - at(-u)) / 2
        result[(name, name)] = (at(u) + at(-u)) / 2 - here
    for (one, u), (other, w) in combinations(directions.items(), 2):
        result[one, other] = (at(u + w) - at(u - w)) / 2 - (at(w) - at(-w)) / 2
    return result
