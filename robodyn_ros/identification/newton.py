# SPDX-License-Identifier: Apache-2.0
"""
A regression with bodies for unknowns, and Newton's step on it.

The step is taken in coordinates e in which every link's present pseudo-inertia is the identity:
P = L M (1 + E) Mᵀ Lᵀ, with L the prior's root and M where the link stands relative to it. There
the Hessian of the log-determinant is the identity, and the step a linear least-squares problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from robodyn_ros.identification.factors import triangular_factor
from robodyn_ros.identification.prior import (
    PARAMETERS,
    congruence,
    matrix_of,
    vector_of,
)
from robodyn_ros.spatial import FloatArray

_SUFFICIENT = 1e-4
_MOST_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Problem:
    """
    A regression with bodies for unknowns.

    Attributes
    ----------
    factor : array, shape (m, 10 n + d)
        R: columns of the ten parameters of each link, then of the others.
    target : array, shape (m,)
        c
    prior : array, shape (n, 4, 4)
        Pseudo-inertias P0, positive definite.
    strength : float
        gamma; 0: no prior, but bodies all the same.
    deviation : array, shape (d,)
        s: how large the others are thought to be; infinite where nothing is known.
    positive : array of bool, shape (d,)
        Which of the others must be positive.
    """

    factor: FloatArray
    target: FloatArray
    prior: FloatArray
    strength: float
    deviation: FloatArray
    positive: np.ndarray

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.prior)

    @cached_property
    def prior_roots(self) -> FloatArray:
        """Lower triangular L_i with P0_i = L_i L_iᵀ, array, shape (n, 4, 4)."""
        return np.asarray(np.linalg.cholesky(self.prior), dtype=float)

    @cached_property
    def scale(self) -> FloatArray:
        """How large the other parameters are, about, array, shape (d,)."""
        return np.where(np.isfinite(self.deviation), self.deviation, 1.0)

    def reduced(self) -> Problem:
        """Return the same problem with at most as many rows as columns, and one for the rest."""
        rows, columns = self.factor.shape
        if rows <= columns + 1:
            return self
        triangle = triangular_factor(np.column_stack([self.factor, self.target]))
        return replace(self, factor=triangle[:, :-1], target=triangle[:, -1])


@dataclass(frozen=True, eq=False)
class Point:
    """
    Where the unknowns stand.

    Attributes
    ----------
    problem : Problem
    relative : array, shape (n, 4, 4)
        Lower triangular M_i with P_i = L_i M_i M_iᵀ L_iᵀ.
    others : array, shape (d,)
    """

    problem: Problem
    relative: FloatArray
    others: FloatArray

    @cached_property
    def roots(self) -> FloatArray:
        """L_i M_i, lower triangular, array, shape (n, 4, 4)."""
        return self.problem.prior_roots @ self.relative

    @cached_property
    def pseudo_inertia(self) -> FloatArray:
        """Of the links, array, shape (n, 4, 4)."""
        return self.roots @ np.swapaxes(self.roots, -1, -2)

    @cached_property
    def x(self) -> FloatArray:
        """All parameters, in the order of the regression's columns."""
        bodies = vector_of(self.pseudo_inertia) @ PARAMETERS.T
        return np.concatenate([bodies.ravel(), self.others])

    @cached_property
    def residual(self) -> FloatArray:
        """The target less the regression, c - R x."""
        return self.problem.target - self.problem.factor @ self.x

    @cached_property
    def data_term(self) -> float:
        """Half of the squared residual."""
        return 0.5 * float(self.residual @ self.residual)

    @cached_property
    def divergence(self) -> float:
        """The sum of tr(P0⁻¹ P) - log det(P0⁻¹ P) - 4 over the links."""
        diagonals = np.diagonal(self.relative, axis1=-2, axis2=-1)
        logarithms = 2.0 * float(np.log(diagonals).sum())
        return float((self.relative**2).sum()) - logarithms - 4 * len(self.relative)

    @cached_property
    def objective(self) -> float:
        """What is minimised, without barriers."""
        ridge = 0.5 * float(((self.others / self.problem.deviation) ** 2).sum())
        prior = self.problem.strength * self.divergence if self.problem.strength else 0.0
        return self.data_term + ridge + prior

    def with_barrier(self, barrier: float) -> float:
        """
        Return the objective with barriers.

        The links' barrier is the prior's divergence, too, as far as it is stronger than the prior:
        the logarithm alone would have no optimum along what the data leave open.
        """
        held = self.problem.positive
        relative = self.others[held] / self.problem.scale[held]
        value = self.objective + barrier * float((relative - np.log(relative)).sum())
        if barrier > self.problem.strength:
            value += (barrier - self.problem.strength) * self.divergence
        return value

    def moved(self, step: FloatArray, length: float) -> Point:
        """Return the point a fraction of a step away; bodies and positive parameters stay so."""
        n = self.problem.links
        strains, axes = np.linalg.eigh(length * matrix_of(step[: 10 * n].reshape(n, 10)))
        bodies = (axes * grown(strains)[:, None, :]) @ np.swapaxes(axes, -1, -2)
        factor: FloatArray = np.asarray(np.linalg.cholesky(bodies), dtype=float)
        moved = length * step[10 * n :]
        others = np.where(
            self.problem.positive,
            self.others * grown(moved),
            self.others + self.problem.scale * moved,
        )
        return Point(self.problem, self.relative @ factor, others)

    @cached_property
    def local_scale(self) -> FloatArray:
        """What the other parameters' coordinates are multiples of; positive ones: themselves."""
        return np.where(self.problem.positive, self.others, self.problem.scale)

    @cached_property
    def local_bodies(self) -> FloatArray:
        """Derivatives of links' parameters by their coordinates, array, shape (n, 10, 10)."""
        return PARAMETERS @ congruence(self.roots)

    def local_factor(self, scale: FloatArray) -> FloatArray:
        """Return R dx / de, the other parameters' coordinates scaled."""
        n = self.problem.links
        links = self.problem.factor[:, : 10 * n].reshape(-1, n, 10).swapaxes(0, 1)
        of_links = (links @ self.local_bodies).swapaxes(0, 1).reshape(-1, 10 * n)
        return np.hstack([of_links, self.problem.factor[:, 10 * n :] * scale])


def grown(strain: FloatArray) -> FloatArray:
    """
    Return what 1 becomes under relative steps: 1 + e, and 1 / (-4 e) below e = -1/2.

    Both have the same value and slope there. So what is positive stays so without a shorter step,
    and what lies at its bound, where a barrier asks for a twentieth, gets there at once.
    """
    return np.where(strain > -0.5, 1.0 + strain, -0.25 / np.minimum(strain, -0.5))


def newton_step(point: Point, barrier: float) -> tuple[FloatArray, float]:
    """Return Newton's step e under a barrier, and the decrease that it promises."""
    problem = point.problem
    n, size = problem.links, problem.factor.shape[1]
    scale = point.local_scale
    weight = max(problem.strength, barrier)
    gram = np.swapaxes(point.relative, -1, -2) @ point.relative
    diagonal = np.full(size, np.sqrt(weight))
    diagonal[10 * n :] = scale / problem.deviation
    held = np.flatnonzero(problem.positive)
    rows = problem.factor.shape[0]
    matrix = np.zeros((rows + size + len(held), size + 1))
    matrix[:rows, :-1] = point.local_factor(scale)
    matrix[:rows, -1] = point.residual
    matrix[rows + np.arange(size), np.arange(size)] = diagonal
    matrix[rows : rows + 10 * n, -1] = np.sqrt(weight) * vector_of(np.eye(4) - gram).ravel()
    matrix[rows + 10 * n : rows + size, -1] = -point.others / problem.deviation
    matrix[rows + size + np.arange(len(held)), 10 * n + held] = np.sqrt(barrier)
    matrix[rows + size :, -1] = np.sqrt(barrier) * (1.0 - (point.others / problem.scale)[held])
    triangle = triangular_factor(matrix)
    right = triangle[:size, size]
    upper = _regular(triangle[:size, :size])
    return solve_triangular(upper, right, check_finite=False), 0.5 * float(right @ right)


def line_search(point: Point, step: FloatArray, promised: float, barrier: float) -> Point | None:
    """Return a point along the step that is better by as much as it should, or None."""
    length = 1.0
    before = point.with_barrier(barrier)
    for _ in range(_MOST_HALVINGS):
        moved = point.moved(step, length)
        if moved.with_barrier(barrier) <= before - _SUFFICIENT * length * promised:
            return moved
        length *= 0.5
    return None


def deviation_factor(point: Point) -> FloatArray:
    """
    Return F, shape (10 n + d,) * 2, with F Fᵀ the inverse of the objective's Hessian.

    Barriers are left out: what lies at its bound is as uncertain as what does not.
    """
    problem = point.problem
    n, size = problem.links, problem.factor.shape[1]
    diagonal = np.full(size, np.sqrt(problem.strength))
    diagonal[10 * n :] = problem.scale / problem.deviation
    stacked = np.vstack([point.local_factor(problem.scale), np.diag(diagonal)])
    inverse = solve_triangular(
        _regular(triangular_factor(stacked)), np.eye(size), check_finite=False
    )
    links = inverse[: 10 * n].reshape(n, 10, size)
    others = inverse[10 * n :] * problem.scale[:, None]
    return np.vstack([(point.local_bodies @ links).reshape(10 * n, size), others])


def _regular(upper: FloatArray) -> FloatArray:
    """Return a triangle without zeros on its diagonal: a parameter that nothing determines."""
    diagonal = np.abs(np.diagonal(upper))
    empty = diagonal <= 1e-150 + 1e-16 * diagonal.max()
    if not empty.any():
        return upper
    result = upper.copy()
    result[empty, empty] = max(diagonal.max(), 1.0)
    return result
