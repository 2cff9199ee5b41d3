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

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robodyn_ros.identification.newton import (
    Point,
    Problem,
    deviation_factor,
    line_search,
    newton_step,
)
from robodyn_ros.spatial import FloatArray, parameters_of_pseudo_inertia

__all__ = ['Estimate', 'Problem', 'estimate']

_MOST_STEPS = 200
_CONTINUATION = 100.0
# Decrease that the next step still promises, relative to the objective, at which it is reached.
_TOLERANCE = 1e-11
# Weight of the barrier that is left at the end, relative to the objective.
_LAST_BARRIER = 1e-8
# A start that is near the optimum needs so much less of a barrier.
_WARM = 1e4
_LEAST_START = 0.001


@dataclass(frozen=True, eq=False)
class Estimate:
    """
    What the estimator found.

    Attributes
    ----------
    point : Point
        Where the unknowns stand.
    converged : bool
        Whether the optimum was reached to the tolerance.
    steps : int
        Newton steps taken.
    """

    point: Point
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

        That is the inverse of the objective's Hessian, barrier left out.
        """
        return deviation_factor(self.point)

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
        step, promised = newton_step(point, barrier)
        last = max(_LAST_BARRIER * point.objective, floor)
        final = barrier <= last
        reached = max(_TOLERANCE * point.objective, floor) if final else 2.0 * barrier
        if promised <= reached:
            if final:
                converged = True
                break
            barrier = max(barrier / _CONTINUATION, 0.5 * last)
            continue
        following = line_search(point, step, promised, barrier)
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


def _beginning(problem: Problem, start: Estimate | None) -> Point:
    if start is not None and len(start.others) == len(problem.deviation):
        roots = np.linalg.cholesky(start.pseudo_inertia)
        relative: FloatArray = np.asarray(np.linalg.solve(problem.prior_roots, roots), dtype=float)
        # What lies at its bound could only double with every step.
        least = np.where(problem.positive, _LEAST_START * problem.scale, -np.inf)
        return Point(problem, relative, np.maximum(start.others, least))
    identity = np.broadcast_to(np.eye(4), problem.prior.shape)
    return Point(problem, identity, np.where(problem.positive, 0.1 * problem.scale, 0.0))
