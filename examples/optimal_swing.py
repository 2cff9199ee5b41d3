# SPDX-License-Identifier: Apache-2.0
"""
Swing a hanging pendulum of two links up, with a motor that cannot lift it: optimised with SciPy.

    python examples/optimal_swing.py

The torques over two seconds are the unknowns; the cost is their square, and the arm must stand
upright at the end. The state is carried from step to step by Euler's method (symplectic), and the
gradient back from the end to the beginning by the transposed Jacobians of the steps, which
``forward_dynamics_derivatives`` gives: one call a step, whatever the number of unknowns. It uses
compiled functions where there is a C compiler.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

import robodyn_ros as rd

URDF = """
<robot name="swing">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 -0.25"/><mass value="1"/>
    <inertia ixx="0.021" iyy="0.021" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0 -0.25"/><mass value="1"/>
    <inertia ixx="0.021" iyy="0.021" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/>
    <origin xyz="0 0 -0.5"/><axis xyz="0 1 0"/></joint>
</robot>
"""
STEPS, PERIOD = 100, 0.02
LARGEST = 6.0  # [N m]; 9.8 N m would hold it stretched out to the side
UPRIGHT = np.array([np.pi, 0.0, 0.0, 0.0])
WEIGHT = 200.0  # of the squared error at the end, against the squared torques


class Swing:
    """The cost of a sequence of torques (STEPS, 2), and its gradient."""

    def __init__(self, arm: rd.RobotModel) -> None:
        try:
            compiled = rd.compile_model(arm)
            self._accelerations = compiled.forward_dynamics
            self._derivatives = compiled.forward_dynamics_derivatives
        except rd.NoBackend:
            self._accelerations = lambda *state: rd.forward_dynamics(arm, *state)
            self._derivatives = lambda *state: rd.forward_dynamics_derivatives(arm, *state)

    def motion(self, torques: np.ndarray) -> np.ndarray:
        """Return the states (STEPS + 1, 4) from rest, hanging."""
        states = np.zeros((len(torques) + 1, 4))
        for k, tau in enumerate(torques):
            q, qd = states[k, :2].copy(), states[k, 2:].copy()
            states[k + 1, 2:] = qd + PERIOD * self._accelerations(q, qd, tau)
            states[k + 1, :2] = q + PERIOD * states[k + 1, 2:]
        return states

    def cost(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the cost and its gradient."""
        torques = flat.reshape(STEPS, 2)
        states = self.motion(torques)
        error = states[-1] - UPRIGHT
        cost = PERIOD * (torques**2).sum() + WEIGHT * error @ error
        gradient = 2.0 * PERIOD * torques
        # All states at once; then from the last to the first.
        by_q, by_qd, by_tau = self._derivatives(states[:-1, :2], states[:-1, 2:], torques)
        adjoint = 2.0 * WEIGHT * error
        for k in range(STEPS - 1, -1, -1):
            pull = PERIOD * (adjoint[2:] + PERIOD * adjoint[:2])
            gradient[k] += by_tau[k].T @ pull
            adjoint = np.concatenate(
                [
                    adjoint[:2] + by_q[k].T @ pull,
                    adjoint[2:] + PERIOD * adjoint[:2] + by_qd[k].T @ pull,
                ]
            )
        return cost, gradient.ravel()


def optimal_torques(swing: Swing) -> np.ndarray:
    """Return the torques (STEPS, 2) that swing the arm up."""
    start = 0.5 * np.random.default_rng(3).normal(size=2 * STEPS)
    found = minimize(
        swing.cost,
        start,
        jac=True,
        method='L-BFGS-B',
        bounds=[(-LARGEST, LARGEST)] * (2 * STEPS),
        options={'maxiter': 2000, 'maxfun': 4000},
    )
    return found.x.reshape(STEPS, 2)


def main() -> None:
    """Print what the optimised swing takes, and where it ends."""
    arm = rd.RobotModel.from_urdf(URDF)
    swing = Swing(arm)
    torques = optimal_torques(swing)
    end = swing.motion(torques)[-1]
    print(f'largest torque {np.abs(torques).max():.2f} N m of {LARGEST:g} allowed')
    print(f'at the end {np.abs(end[:2] - UPRIGHT[:2]).max():.3f} rad off upright,', end=' ')
    print(f'moving with {np.abs(end[2:]).max():.3f} rad/s')


if __name__ == '__main__':
    main()
