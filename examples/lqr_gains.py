# SPDX-License-Identifier: Apache-2.0
"""
Design a controller that holds an arm at a point, and try it against the arm's own dynamics.

    python examples/lqr_gains.py [urdf]

``linearization`` gives A and B about a state of rest; the gains K minimise the integral of
xT Q x + duT R du for u = g(q0) - K (x - x0) (linear-quadratic regulator). The closed loop is
simulated with the rigid body's equations, not with the linear ones, from a tenth of a radian off.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import solve_continuous_are

import robodyn_ros as rd

STANDARD = Path(__file__).resolve().parents[1] / 'urdf' / 'puma560.urdf'


def lqr_gains(arm: rd.RobotModel, q: np.ndarray) -> np.ndarray:
    """Return K (n, 2 n) about rest at q: an error of 0.1 rad weighs as much as 5 % of a torque."""
    n = arm.n
    a, b = rd.linearization(arm, q, np.zeros(n), rd.gravity_torque(arm, q))
    scale = np.maximum(np.abs(np.diag(rd.mass_matrix(arm, q))), 1e-3)
    state_weights = np.diag(np.concatenate([np.full(n, 100.0), np.full(n, 1.0)]))
    torque_weights = np.diag(1.0 / scale**2)
    return np.linalg.solve(
        torque_weights, b.T @ solve_continuous_are(a, b, state_weights, torque_weights)
    )


def main() -> None:
    """Print poles, and how the arm comes to rest."""
    arm = rd.RobotModel.from_urdf(sys.argv[1] if len(sys.argv) > 1 else STANDARD)
    q = np.linspace(0.3, -0.4, arm.n)
    gains = lqr_gains(arm, q)
    a, b = rd.linearization(arm, q, np.zeros(arm.n), rd.gravity_torque(arm, q))
    poles = np.linalg.eigvals(a - b @ gains)
    slowest = poles[np.argmax(poles.real)]
    free = np.linalg.eigvals(a).real.max()
    print(f'{arm.n} joints; without feedback a deviation grows by {free:.2f} 1/s')
    print(f'with it the slowest decays by {-slowest.real:.2f} 1/s')

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        error = np.concatenate([x[: arm.n] - q, x[arm.n :]])
        tau = rd.gravity_torque(arm, q) - gains @ error
        return np.concatenate([x[arm.n :], rd.forward_dynamics(arm, x[: arm.n], x[arm.n :], tau)])

    start = np.concatenate([q + 0.1 * (-1.0) ** np.arange(arm.n), np.zeros(arm.n)])
    motion = solve_ivp(rate, (0.0, 3.0), start, rtol=1e-6, atol=1e-8, t_eval=[0.0, 0.5, 1.0, 3.0])
    for t, x in zip(motion.t, motion.y.T):
        print(f'{t:4.1f} s: {np.abs(x[: arm.n] - q).max():.2e} rad off')


if __name__ == '__main__':
    main()
