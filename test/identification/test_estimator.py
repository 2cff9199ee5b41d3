# SPDX-License-Identifier: Apache-2.0
"""The estimator finds the optimum: the one that an interior-point solver finds, and the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_arms import known_arm

from robodyn_ros import regressor
from robodyn_ros.identification.estimator import Problem, estimate
from robodyn_ros.identification.prior import prior_pseudo_inertia
from robodyn_ros.spatial import parameters_of_pseudo_inertia, pseudo_inertia


def random_bodies(generator: np.random.Generator, n: int) -> np.ndarray:
    """Return n pseudo-inertias of clouds of points about 20 cm in size."""
    points = np.ones((n, 30, 4))
    points[..., :3] = generator.normal(0, 0.1, (n, 30, 3)) + generator.normal(0, 0.1, (n, 1, 3))
    masses = generator.uniform(0.05, 0.3, (n, 30, 1))
    return np.swapaxes(points * masses, -1, -2) @ points


def random_problem(seed: int, n: int = 4, strength: float = 4.0) -> Problem:
    """Return a noisy regression with fewer directions than unknowns, as an arm's is."""
    generator = np.random.default_rng(seed)
    prior, true = random_bodies(generator, n), random_bodies(generator, n)
    extra = 3 * n
    size = 10 * n + extra
    directions = generator.normal(size=(6 * n + extra, size))
    factor = generator.normal(size=(40 * n, len(directions))) @ directions
    positive = np.arange(extra) < 2 * n
    others = generator.normal(0, 0.5, extra)
    # A third of those that must be positive would rather be negative.
    others[positive] = np.abs(others[positive]) * np.where(np.arange(2 * n) % 3, 1, -0.2)
    x = np.concatenate([parameters_of_pseudo_inertia(true).ravel(), others])
    target = factor @ x + generator.normal(0, 1.0, len(factor))
    return Problem(factor, target, prior, strength, np.full(extra, 0.5), positive)


def interior_point_objective(problem: Problem) -> float:
    cvxpy = pytest.importorskip('cvxpy', reason='cvxpy is not installed')
    n = problem.links
    bodies = [cvxpy.Variable((4, 4), PSD=True) for _ in range(n)]
    others = cvxpy.Variable(len(problem.deviation))
    to_parameters = parameters_of_pseudo_inertia(np.eye(16).reshape(16, 4, 4)).T
    columns = [to_parameters @ cvxpy.vec(body, order='C') for body in bodies]
    divergences = []
    for body, prior in zip(bodies, problem.prior):
        constant = np.linalg.slogdet(prior)[1] - 4
        divergences.append(
            cvxpy.trace(np.linalg.inv(prior) @ body) - cvxpy.log_det(body) + constant
        )
    small = problem.reduced()
    x = cvxpy.hstack([*columns, others])
    objective = 0.5 * cvxpy.sum_squares(small.factor @ x - small.target)
    objective += problem.strength * sum(divergences)
    objective += 0.5 * cvxpy.sum_squares(cvxpy.multiply(1 / problem.deviation, others))
    solver = cvxpy.Problem(cvxpy.Minimize(objective), [others[problem.positive] >= 0])
    solver.solve(
        solver='CLARABEL', tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=500
    )
    return float(solver.value)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('seed', range(10))
def test_objective_is_that_of_an_interior_point_solver(seed):
    problem = random_problem(seed, strength=[4.0, 0.1, 400.0][seed % 3])
    found = estimate(problem)
    assert found.converged
    assert found.objective == pytest.approx(interior_point_objective(problem), rel=1e-6)


@pytest.mark.parametrize('strength', [0.0, 1e-6, 4.0])
def test_bodies_are_positive_definite_however_weak_the_prior(strength):
    found = estimate(random_problem(11, strength=strength))
    assert found.converged
    assert (np.linalg.eigvalsh(found.pseudo_inertia) > 0).all()
    assert (found.others[random_problem(11).positive] > 0).all()


def test_without_noise_and_prior_the_identifiable_combinations_are_the_truth():
    model = known_arm('panda')
    generator = np.random.default_rng(3)
    n = model.n
    prior, _ = prior_pseudo_inertia(model)
    mixing = np.eye(4) + 0.15 * generator.normal(size=(n, 4, 4))
    true = parameters_of_pseudo_inertia(mixing @ prior @ np.swapaxes(mixing, -1, -2))
    q, qd, qdd = (generator.uniform(-2, 2, (300, n)) for _ in range(3))
    drive = np.concatenate([np.eye(n) * x[:, :, None] for x in (qdd, qd, np.sign(qd))], axis=-1)
    rows = np.concatenate([regressor(model, q, qd, qdd), drive], axis=-1).reshape(-1, 13 * n)
    others = np.concatenate([generator.uniform(0.1, 3, 3 * n)])
    x = np.concatenate([true.ravel(), others])
    problem = Problem(
        rows, rows @ x, prior, 0.0, np.full(3 * n, np.inf), np.ones(3 * n, dtype=bool)
    )
    found = estimate(problem)
    assert found.converged
    triangle = np.linalg.svd(rows, full_matrices=False)
    identifiable = triangle[2][triangle[1] > 1e-9 * triangle[1][0]]
    error = np.abs(identifiable @ (found.x - x))
    assert error.max() < 1e-9 * np.abs(identifiable @ x).max()


def test_deviations_are_those_of_the_hessian_by_finite_differences():
    problem = replace(random_problem(5, n=2), positive=np.zeros(6, dtype=bool))
    found = estimate(problem)

    def objective(x: np.ndarray) -> float:
        bodies = pseudo_inertia(x[:20].reshape(2, 10))
        relative = np.linalg.solve(problem.prior, bodies)
        divergence = np.trace(relative, axis1=1, axis2=2) - np.linalg.slogdet(relative)[1] - 4
        residual = problem.factor @ x - problem.target
        return (
            0.5 * residual @ residual
            + problem.strength * divergence.sum()
            + 0.5 * ((x[20:] / problem.deviation) ** 2).sum()
        )

    # Along the principal axes of the covariance the objective rises by a half per deviation.
    for axis in found.deviation_factor.T:
        step = 1e-2 * axis
        curvature = objective(found.x + step) + objective(found.x - step) - 2 * objective(found.x)
        assert curvature == pytest.approx(1e-4, rel=1e-2)
