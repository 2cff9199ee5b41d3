# SPDX-License-Identifier: Apache-2.0
"""
Draw Figure 5 of Angeles, Ma and Rojas 1989: the Stanford arm's torques along their trajectory.

    python examples/stanford_torques.py [stanford_torques.png]

The torques are computed twice, out of Kane's equations as in the paper and out of Newton and
Euler's; the script prints how far apart the two are.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt
import numpy as np

from robodyn_ros import RobotModel, inverse_dynamics

ROOT = Path(__file__).resolve().parent.parent
DURATION = 10.0


def trajectory(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, qd, qdd (N, 6) at times t (N,) [s]: q(0) + A (t - sin(B t) / B), section 7.1."""
    start = np.array([0, np.pi / 2, 0, 0, 0, 0])
    rate = np.array([np.pi / 30, -np.pi / 60, 0.01, np.pi / 30, np.pi / 30, np.pi / 30])
    # By eq. (8) the paper's offset b3 is minus the slide along z3.
    rate[2] = -rate[2]
    b = 2 * np.pi / DURATION
    t = t[:, None]
    return (
        start + rate * (t - np.sin(b * t) / b),
        rate * (1 - np.cos(b * t)),
        rate * b * np.sin(b * t),
    )


def main(target: Path) -> None:
    """Compute both torques and write the figure to ``target``."""
    arm = RobotModel.from_urdf(ROOT / 'urdf' / 'stanford.urdf')
    t = np.linspace(0, DURATION, 501)
    states = trajectory(t)
    kane = inverse_dynamics(arm, *states, method='kane')
    newton_euler = inverse_dynamics(arm, *states, method='newton_euler')
    print(f'Kane against Newton-Euler: at most {np.abs(kane - newton_euler).max():.1e} N m or N')

    figure, axes = plt.subplots(2, 3, figsize=(10, 5.4), sharex=True, layout='constrained')
    for i, (axis, torque) in enumerate(zip(axes.flat, kane.T), start=1):
        unit, scale = ('N' if arm.dh.prismatic[i - 1] else 'N m'), 1.0
        if np.abs(torque).max() < 0.01:
            unit, scale = f'm{unit}', 1e3
        axis.plot(t, scale * torque, color='tab:blue', linewidth=2.5, label='Kane')
        axis.plot(t, scale * newton_euler[:, i - 1], 'k--', linewidth=1, label='Newton-Euler')
        axis.set_title(f'$\\tau_{i}$ [{unit}]', loc='left')
        axis.grid(color='0.9')
        axis.spines[['top', 'right']].set_visible(False)
    for axis in axes[1]:
        axis.set_xlabel('time [s]')
    axes[0, 0].legend(frameon=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)
    print(f'wrote {target}')


if __name__ == '__main__':
    main(Path(sys.argv[1] if len(sys.argv) > 1 else 'stanford_torques.png'))
