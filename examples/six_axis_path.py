# SPDX-License-Identifier: Apache-2.0
"""
Compute Example 2 of Angeles, Ma and Rojas 1989: an industrial arm's hand on a straight line.

    python examples/six_axis_path.py [six_axis_path.png]

The hand moves along x = 1.33 m, y = s(t), z = 1.80 m within a second and does not turn; s has no
velocity and no acceleration at its ends. Figures 6, 7 and 8 of the paper are s, the joint angles
and the torques. How far s goes is in its Figure 6 alone, and is ours here, as is the polynomial
of fifth degree in place of their spline.

The print is put right in three places: d = -b by its eq. (8); Table 3 has theta4 = 39.6 degrees
for 93.6, its digits exchanged; and with that its angles leave the hand 10 mm away from the line.
The path begins where the orientation is theirs, and the position the text's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt
import numpy as np

from robodyn_ros import RobotModel, forward_kinematics, inverse_dynamics, jacobian

ROOT = Path(__file__).resolve().parent.parent
DURATION = 1.0
DISTANCE = 0.5
START = np.array([1.33, 0.0, 1.80])
TABLE_3 = np.radians([0.0, 68.5, -135.0, 93.6, 90.0, 90.0])


def line(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return s and its derivatives (N,) [m, and per s, s²] at times t (N,) [s]."""
    x = t / DURATION
    return (
        DISTANCE * x**3 * (10 - 15 * x + 6 * x**2),
        DISTANCE / DURATION * 30 * x**2 * (1 - x) ** 2,
        DISTANCE / DURATION**2 * 60 * x * (1 - x) * (1 - 2 * x),
    )


def solved(arm: RobotModel, pose: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return joint positions (n,) that bring the hand to a pose (4, 4), by Newton's method."""
    q = near.copy()
    for _ in range(50):
        now = forward_kinematics(arm, q)
        turn = sum(np.cross(now[:3, k], pose[:3, k]) for k in range(3)) / 2
        error = np.concatenate([pose[:3, 3] - now[:3, 3], turn])
        if np.abs(error).max() < 1e-13:
            break
        q = q + np.linalg.solve(jacobian(arm, q), error)
    return q


def trajectory(arm: RobotModel, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, qd, qdd (N, 6) at times t (N,) [s]."""
    pose = forward_kinematics(arm, TABLE_3)
    pose[:3, 3] = START
    near = TABLE_3
    q, qd, qdd = np.zeros((3, len(t), arm.n))
    h = 1e-6
    for k, (s, sd, sdd) in enumerate(zip(*line(t))):
        pose[1, 3] = s
        q[k] = near = solved(arm, pose, near)
        j = jacobian(arm, q[k])
        qd[k] = np.linalg.solve(j, [0, sd, 0, 0, 0, 0])
        rate = (jacobian(arm, q[k] + h * qd[k]) - jacobian(arm, q[k] - h * qd[k])) / (2 * h)
        qdd[k] = np.linalg.solve(j, np.array([0, sdd, 0, 0, 0, 0]) - rate @ qd[k])
    return q, qd, qdd


def main(target: Path) -> None:
    """Print where the path begins, and write the figures to ``target``."""
    arm = RobotModel.from_urdf(ROOT / 'urdf' / 'six_axis_industrial.urdf')
    x, _, z = forward_kinematics(arm, TABLE_3)[:3, 3]
    print(f'Table 3, with theta4 = 93.6 deg: hand at ({x:.3f}, 0, {z:.3f}) m')
    t = np.linspace(0, DURATION, 101)
    states = trajectory(arm, t)
    angles = ', '.join(f'{angle:.1f}' for angle in np.degrees(states[0][0]).round(3) + 0.0)
    print(f'at (1.33, 0, 1.80) m: {angles} deg')
    kane = inverse_dynamics(arm, *states, method='kane')
    newton_euler = inverse_dynamics(arm, *states, method='newton_euler')
    print(f'Kane against Newton-Euler: at most {np.abs(kane - newton_euler).max():.1e} N m')

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout='constrained')
    axes[0].plot(t, line(t)[0], color='black')
    axes[0].set_title('s [m]', loc='left')
    for i in range(arm.n):
        axes[1].plot(t, np.degrees(states[0][:, i]), label=f'$\\theta_{i + 1}$')
        axes[2].plot(t, kane[:, i], label=f'$\\tau_{i + 1}$')
    axes[1].set_title('joint angles [deg]', loc='left')
    axes[2].set_title('torques [N m]', loc='left')
    for axis in axes:
        axis.set_xlabel('time [s]')
        axis.grid(color='0.9')
        axis.spines[['top', 'right']].set_visible(False)
    for axis in axes[1:]:
        axis.legend(frameon=False, ncols=2, fontsize='small')
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)
    print(f'wrote {target}')


if __name__ == '__main__':
    main(Path(sys.argv[1] if len(sys.argv) > 1 else 'six_axis_path.png'))
