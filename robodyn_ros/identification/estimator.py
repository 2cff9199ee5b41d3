# SPDX-License-Identifier: Apache-2.0
"""
The parameters that explain measured torques best, every link a body that can exist.

Minimised over the links' pseudo-inertias P_i and the other parameters d is

    1/2 |R x - c|^2 + gamma sum_i [tr(P0_i⁻¹ P_i) - log det(P0_i⁻¹ P_i) - 4] + 1/2 |d / s|^2

with x the ten parameters of each link and d, and with those of d that must be positive kept so by
a barrier. The problem is convex. Newton's method with the exact Hessian runs in coordinates in
which the present P_i is the identity: there the Hessian of the log-determinant is the identity,
too, each step is a linear least-squares problem, solved by QR factors, and no product of the
regressor with itself is ever formed, which would cost half the digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from robodyn_ros.identification.factors import triangular_factor
from robodyn_ros.identification.prior import (
    PARAMETERS,
    congruence,
    matrix_of,
    vector_of,
)
from robodyn_ros.spatial import FloatArray, parameters_of_pseudo_inertia

_MOST_STEPS = 200
_CONTINUATION = 20.0
# Decrease that the next step still promises, relative to the objective, at which it is reached.
_TOLERANCE = 1e-11
# Weight of the barrier that is left at the end, relative to the objective.
_LAST_BARRIER = 1e-8
_SUFFICIENT = 1e-4
_TO_BOUNDARY = 0.95


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

    def reduced(self) -> Problem:
        """Return the same problem with at most as many rows as columns, and one for the rest."""
        rows, columns = self.factor.shape
        if rows <= columns + 1:
            return self
        triangle = triangular_factor(np.column_stack([self.factor, self.target]))
        return replace(self, factor=triangle[:, :-1], target=triangle[:, -1])


@dataclass(frozen=True, eq=False)
class Estimate:
    """
    What the estimator found.

    Attributes
    ----------
    pseudo_inertia : array, shape (n, 4, 4)
        Positive definite.
    others : array, shape (d,)
        The other parameters.
    objective : float
        Without the barrier.
    converged : bool
        Whether the optimum was reached to the tolerance.
    steps : int
        Newton steps taken.
    deviation_factor : array, shape (10 n + d, 10 n + d)
        F with F Fᵀ the covariance of x: the inverse of the objective's Hessian, barrier left out.
    """

    pseudo_inertia: FloatArray
    others: FloatArray
    objective: float
    converged: bool
    steps: int
    deviation_factor: FloatArray

    @property
    def inertial_parameters(self) -> FloatArray:
        """Ten parameters of each link, array, shape (n, 10)."""
        return parameters_of_pseudo_inertia(self.pseudo_inertia)

    @property
    def x(self) -> FloatArray:
        """All parameters in the order of the regression's columns, array, shape (10 n + d,)."""
        return np.concatenate([self.inertial_parameters.ravel(), self.others])


@dataclass(frozen=True, eq=False)
class _Point:
    """Lower triangular B_i with P_i = B_i B_iᵀ, and the other parameters."""

    roots: FloatArray
    others: FloatArray

    @property
    def x(self) -> FloatArray:
        pseudo = self.roots @ np.swapaxes(self.roots, -1, -2)
        return np.concatenate([parameters_of_pseudo_inertia(pseudo).ravel(), self.others])


def estimate(problem: Problem, start: Estimate | None = None) -> Estimate:
    """
    Return the parameters at the optimum; ``converged`` says whether it was reached.

    Parameters
    ----------
    problem : Problem
    start : Estimate, optional
        Of a similar problem, to begin at; the prior where not given.

    Notes
    -----
    Newton's method by itself stalls where the prior is weak against the data, far from the optimum
    and next to the boundary. So the barriers begin as strong as the data and are weakened twenty
    times at a stretch, down to the prior's own strength for the links, and to 1e-8 of the
    objective for what must be positive.

    References
    ----------
    Wensing, Kim and Slotine 2018 (pseudo-inertia); Lee, Wensing and Park 2020 (divergence);
    Boyd and Vandenberghe 2004, section 11.3 (barrier method).
    """
    problem = problem.reduced()
    prior_roots: FloatArray = np.asarray(np.linalg.cholesky(problem.prior), dtype=float)
    point = _beginning(problem, prior_roots, start)
    first = _data_term(problem, point)
    floor = 1e-22 * max(first, 1e-300)
    barrier = max(first / (problem.factor.shape[1] * (1.0 if start is None else 1e4)), floor)
    converged = False
    steps = 0
    while steps < _MOST_STEPS:
        matrix, vector = _linear_problem(problem, prior_roots, point, barrier)
        step, promised = _least_squares(matrix, vector)
        objective = _data_term(problem, point) + _prior_term(problem, prior_roots, point)
        last = max(_LAST_BARRIER * objective, floor)
        final = barrier <= last
        reached = max(_TOLERANCE * objective, floor) if final else 0.5 * barrier
        if promised <= reached:
            if final:
                converged = True
                break
            barrier = max(barrier / _CONTINUATION, 0.5 * last)
            continue
        following = _line_search(problem, prior_roots, point, step, promised, barrier)
        steps += 1
        if following is None:
            # Rounding hides what decrease is left: the optimum, if hardly any was promised.
            if final:
                converged = promised <= 1e3 * reached
                break
            barrier = max(barrier / _CONTINUATION, 0.5 * last)
            continue
        point = following
    pseudo = point.roots @ np.swapaxes(point.roots, -1, -2)
    return Estimate(
        pseudo_inertia=pseudo,
        others=point.others,
        objective=_data_term(problem, point) + _prior_term(problem, prior_roots, point),
        converged=converged,
        steps=steps,
        deviation_factor=_deviation_factor(problem, point),
    )


def _beginning(problem: Problem, prior_roots: FloatArray, start: Estimate | None) -> _Point:
    if start is not None and len(start.others) == len(problem.deviation):
        roots: FloatArray = np.asarray(np.linalg.cholesky(start.pseudo_inertia), dtype=float)
        return _Point(roots, start.others)
    scale = _scale(problem)
    return _Point(prior_roots, np.where(problem.positive, 0.1 * scale, 0.0))


def _data_term(problem: Problem, point: _Point) -> float:
    residual = problem.factor @ point.x - problem.target
    return 0.5 * float(residual @ residual)


def _prior_term(problem: Problem, prior_roots: FloatArray, point: _Point) -> float:
    ridge = 0.5 * float(((point.others / problem.deviation) ** 2).sum())
    if problem.strength == 0.0:
        return ridge
    return ridge + problem.strength * _divergence(prior_roots, point)


def _divergence(prior_roots: FloatArray, point: _Point) -> float:
    """Return the sum of tr(P0⁻¹ P) - log det(P0⁻¹ P) - 4 over the links."""
    relative = _relative(prior_roots, point)
    logarithms = 2.0 * float(np.log(np.diagonal(relative, axis1=-2, axis2=-1)).sum())
    return float((relative**2).sum()) - logarithms - 4 * len(relative)


def _relative(prior_roots: FloatArray, point: _Point) -> FloatArray:
    """Return the roots M_i with P_i = L_i M_i M_iᵀ L_iᵀ, L_i the prior's root."""
    return np.asarray(np.linalg.solve(prior_roots, point.roots), dtype=float)


def _barrier_term(
    problem: Problem, prior_roots: FloatArray, point: _Point, barrier: float
) -> float:
    """
    Return what the barriers add to the objective.

    The links' is the prior's divergence, too, as far as it is stronger than the prior: the
    logarithm alone would have no optimum along what the data leave open.
    """
    relative = point.others[problem.positive] / _scale(problem)[problem.positive]
    value = barrier * float((relative - np.log(relative)).sum())
    if barrier > problem.strength:
        value += (barrier - problem.strength) * _divergence(prior_roots, point)
    return value


def _scale(problem: Problem) -> FloatArray:
    """Return how large the other parameters are, about."""
    return np.where(np.isfinite(problem.deviation), problem.deviation, 1.0)


def _local_columns(problem: Problem, point: _Point) -> FloatArray:
    """Return dx / de, shape (10 n + d, 10 n + d): e is 0 here, each body the identity."""
    n = problem.links
    result = np.zeros((problem.factor.shape[1],) * 2)
    blocks = PARAMETERS @ congruence(point.roots)
    for i in range(n):
        result[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = blocks[i]
    scale = np.where(problem.positive, point.others, _scale(problem))
    result[np.arange(10 * n, len(result)), np.arange(10 * n, len(result))] = scale
    return result


def _local_factor(problem: Problem, columns: FloatArray) -> FloatArray:
    """Return R dx / de."""
    n = problem.links
    links = problem.factor[:, : 10 * n].reshape(-1, n, 10).swapaxes(0, 1)
    blocks = np.stack([columns[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] for i in range(n)])
    of_links = (links @ blocks).swapaxes(0, 1).reshape(-1, 10 * n)
    return np.hstack([of_links, problem.factor[:, 10 * n :] * np.diagonal(columns)[10 * n :]])


def _linear_problem(
    problem: Problem, prior_roots: FloatArray, point: _Point, barrier: float
) -> tuple[FloatArray, FloatArray]:
    """Return matrix and vector whose least-squares solution is Newton's step e."""
    n, size = problem.links, problem.factor.shape[1]
    columns = _local_columns(problem, point)
    scale = np.diagonal(columns)[10 * n :]
    weight = max(problem.strength, barrier)
    relative = _relative(prior_roots, point)
    gram = np.swapaxes(relative, -1, -2) @ relative
    wanted = vector_of(np.eye(4) - gram)
    diagonal = np.full(size, np.sqrt(weight))
    diagonal[10 * n :] = scale / problem.deviation
    rows = [_local_factor(problem, columns), np.diag(diagonal)]
    aims = [
        problem.target - problem.factor @ point.x,
        np.concatenate([np.sqrt(weight) * wanted.ravel(), -point.others / problem.deviation]),
    ]
    held = np.flatnonzero(problem.positive)
    if len(held):
        barriers = np.zeros((len(held), size))
        barriers[np.arange(len(held)), 10 * n + held] = np.sqrt(barrier)
        rows.append(barriers)
        aims.append(np.sqrt(barrier) * (1.0 - (point.others / _scale(problem))[held]))
    return np.vstack(rows), np.concatenate(aims)


def _least_squares(matrix: FloatArray, vector: FloatArray) -> tuple[FloatArray, float]:
    """Return the least-squares solution, and by how much it lowers half the squared residual."""
    triangle = triangular_factor(np.column_stack([matrix, vector]))
    size = matrix.shape[1]
    right = triangle[:size, size]
    upper = _regular(triangle[:size, :size])
    return solve_triangular(upper, right, check_finite=False), 0.5 * float(right @ right)


def _regular(upper: FloatArray) -> FloatArray:
    """Return a triangle without zeros on its diagonal: a parameter that nothing determines."""
    diagonal = np.abs(np.diagonal(upper))
    empty = diagonal <= 1e-150 + 1e-16 * diagonal.max()
    if not empty.any():
        return upper
    result = upper.copy()
    result[empty, empty] = max(diagonal.max(), 1.0)
    return result


def _line_search(
    problem: Problem,
    prior_roots: FloatArray,
    point: _Point,
    step: FloatArray,
    promised: float,
    barrier: float,
) -> _Point | None:
    n = problem.links
    bodies = matrix_of(step[: 10 * n].reshape(n, 10))
    others = step[10 * n :]
    held = problem.positive
    inwards = min(
        float(np.linalg.eigvalsh(bodies).min()), float(others[held].min()) if held.any() else 0.0
    )
    length = 1.0 if inwards > -_TO_BOUNDARY else -_TO_BOUNDARY / inwards
    scale = np.where(held, point.others, _scale(problem))

    def value(at: _Point) -> float:
        return (
            _data_term(problem, at)
            + _prior_term(problem, prior_roots, at)
            + _barrier_term(problem, prior_roots, at, barrier)
        )

    before = value(point)
    for _ in range(40):
        moved = _Point(
            point.roots @ np.linalg.cholesky(np.eye(4) + length * bodies),
            point.others + length * scale * others,
        )
        if value(moved) <= before - _SUFFICIENT * length * promised:
            return moved
        length *= 0.5
    return None


def _deviation_factor(problem: Problem, point: _Point) -> FloatArray:
    n = problem.links
    columns = _local_columns(problem, point)
    # Without the barrier: what lies at its bound is as uncertain as what does not.
    scale = _scale(problem)
    size = len(columns)
    columns[np.arange(10 * n, size), np.arange(10 * n, size)] = scale
    diagonal = np.full(size, np.sqrt(problem.strength))
    diagonal[10 * n :] = scale / problem.deviation
    stacked = np.vstack([_local_factor(problem, columns), np.diag(diagonal)])
    upper = _regular(triangular_factor(stacked))
    return columns @ solve_triangular(upper, np.eye(size), check_finite=False)
