# SPDX-License-Identifier: Apache-2.0
"""
The convex problem of an estimate, by Newton's method: every pseudo-inertia positive definite.

Minimised over the links' pseudo-inertias P_i and the other parameters d is

    1/2 |R x - c|^2 + gamma sum_i [tr(P0_i⁻¹ P_i) - log det(P0_i⁻¹ P_i) - 4] + 1/2 |d / s|^2

with x the ten parameters of each link and d, and with those of d that must be positive kept so by
a barrier. The problem is convex. Newton's method with the exact Hessian runs in coordinates e in
which the present P_i is the identity: P = L M (1 + E) Mᵀ Lᵀ, with L the prior's root and M where
the link stands relative to it. There the Hessian of the log-determinant is the identity, too, each
step is a linear least-squares problem, solved by QR factors, and no product of the regressor with
itself is ever formed, which would cost half the digits.
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
from robodyn_ros.spatial import FloatArray, parameters_of_pseudo_inertia

_MOST_STEPS = 200
_CONTINUATION = 100.0
# Decrease that the next step still promises, relative to the objective, at which it is reached.
_TOLERANCE = 1e-11
# Weight of the barrier that is left at the end, relative to the objective.
_LAST_BARRIER = 1e-8
# A start that is near the optimum needs so much less of a barrier.
_WARM = 1e4
_LEAST_START = 0.001
# Of the promised decrease, that a step must bring (Armijo), or it is halved.
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
class Estimate:
    """
    What the estimator found.

    Attributes
    ----------
    point : _Point
        Values of the unknowns.
    converged : bool
        Whether the optimum was reached to the tolerance.
    steps : int
        Newton steps taken.
    """

    point: _Point
    converged: bool
    steps: int

    @property
    def pseudo_inertia(self) -> FloatArray:
        """Of the links, positive definite, array, shape (n, 4, 4)."""
        return self.point.pseudo_inertia

    @property
    def others(self) -> FloatArray:
        """The other parameters, array, shape (d,)."""
        return self.point.others

    @property
    def objective(self) -> float:
        """What was minimised, without the barrier."""
        return self.point.objective

    @cached_property
    def deviation_factor(self) -> FloatArray:
        """
        F with F Fᵀ the covariance of x, array, shape (10 n + d,) * 2.

        That is the inverse of the objective's Hessian. Barriers are left out: what lies at its
        bound is as uncertain as what does not.
        """
        problem = self.point.problem
        n, size = problem.links, problem.factor.shape[1]
        diagonal = np.full(size, np.sqrt(problem.strength))
        diagonal[10 * n :] = problem.scale / problem.deviation
        stacked = np.vstack([self.point.local_factor(problem.scale), np.diag(diagonal)])
        inverse = solve_triangular(
            _regular(triangular_factor(stacked)), np.eye(size), check_finite=False
        )
        links = inverse[: 10 * n].reshape(n, 10, size)
        others = inverse[10 * n :] * problem.scale[:, None]
        return np.vstack([(self.point.local_bodies @ links).reshape(10 * n, size), others])

    @property
    def inertial_parameters(self) -> FloatArray:
        """Ten parameters of each link, array, shape (n, 10)."""
        return parameters_of_pseudo_inertia(self.pseudo_inertia)

    @property
    def x(self) -> FloatArray:
        """All parameters in the order of the regression's columns, array, shape (10 n + d,)."""
        return self.point.x


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
    and next to the boundary. So the barriers begin as strong as the data and are weakened a
    hundred times at a stretch, down to the prior's own strength for the links, and to 1e-8 of the
    objective for what must be positive.

    References
    ----------
    Wensing, Kim and Slotine 2018 (pseudo-inertia); Lee, Wensing and Park 2020 (divergence);
    Boyd and Vandenberghe 2004, section 11.3 (barrier method).
    """
    problem = problem.reduced()
    point = _beginning(problem, start)
    first = point.data_term
    floor = 1e-22 * max(first, 1e-300)
    barrier = max(first / (problem.factor.shape[1] * (1.0 if start is None else _WARM)), floor)
    converged = False
    steps = 0
    while steps < _MOST_STEPS:
        step, promised = _newton_step(point, barrier)
        last = max(_LAST_BARRIER * point.objective, floor)
        final = barrier <= last
        reached = max(_TOLERANCE * point.objective, floor) if final else 2.0 * barrier
        if promised <= reached:
            if final:
                converged = True
                break
            barrier = max(barrier / _CONTINUATION, 0.5 * last)
            continue
        following = _line_search(point, step, promised, barrier)
        steps += 1
        if following is None:
            # Rounding hides what decrease is left: the optimum, if hardly any was promised.
            if final:
                converged = promised <= 1e3 * reached
                break
            barrier = max(barrier / _CONTINUATION, 0.5 * last)
            continue
        point = following
    return Estimate(point, converged, steps)


def _beginning(problem: Problem, start: Estimate | None) -> _Point:
    if start is not None and len(start.others) == len(problem.deviation):
        roots = np.linalg.cholesky(start.pseudo_inertia)
        relative: FloatArray = np.asarray(np.linalg.solve(problem.prior_roots, roots), dtype=float)
        # What lies at its bound could only double with every step.
        least = np.where(problem.positive, _LEAST_START * problem.scale, -np.inf)
        return _Point(problem, relative, np.maximum(start.others, least))
    identity = np.broadcast_to(np.eye(4), problem.prior.shape)
    return _Point(problem, identity, np.where(problem.positive, 0.1 * problem.scale, 0.0))


# --- Newton's step -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Point:
    """
    Values of the unknowns: an iterate of Newton's method.

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

    def moved(self, step: FloatArray, length: float) -> _Point:
        """Return the point a fraction of a step away; bodies and positive parameters stay so."""
        n = self.problem.links
        strains, axes = np.linalg.eigh(length * matrix_of(step[: 10 * n].reshape(n, 10)))
        bodies = (axes * _grown(strains)[:, None, :]) @ np.swapaxes(axes, -1, -2)
        factor: FloatArray = np.asarray(np.linalg.cholesky(bodies), dtype=float)
        moved = length * step[10 * n :]
        others = np.where(
            self.problem.positive,
            self.others * _grown(moved),
            self.others + self.problem.scale * moved,
        )
        return _Point(self.problem, self.relative @ factor, others)

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


def _grown(strain: FloatArray) -> FloatArray:
    """
    Return what 1 becomes under relative steps: 1 + e, and 1 / (-4 e) below e = -1/2.

    Both have the same value and slope there. So what is positive stays so without a shorter step,
    and what lies at its bound, where a barrier asks for a twentieth, gets there at once.
    """
    return np.where(strain > -0.5, 1.0 + strain, -0.25 / np.minimum(strain, -0.5))


def _newton_step(point: _Point, barrier: float) -> tuple[FloatArray, float]:
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


def _line_search(
    point: _Point, step: FloatArray, promised: float, barrier: float
) -> _Point | None:
    """Return a point along the step that is better by as much as it should, or None."""
    length = 1.0
    before = point.with_barrier(barrier)
    for _ in range(_MOST_HALVINGS):
        moved = point.moved(step, length)
        if moved.with_barrier(barrier) <= before - _SUFFICIENT * length * promised:
            return moved
        length *= 0.5
    return None


def _regular(upper: FloatArray) -> FloatArray:
    """
    Return a triangular matrix that can be solved with: zeros on its diagonal are replaced.

    A zero stands for a parameter that neither the data nor the prior determine.
    """
    diagonal = np.abs(np.diagonal(upper))
    empty = diagonal <= 1e-150 + 1e-16 * diagonal.max()
    if not empty.any():
        return upper
    result = upper.copy()
    result[empty, empty] = max(diagonal.max(), 1.0)
    return result
