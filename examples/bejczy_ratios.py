# SPDX-License-Identifier: Apache-2.0
"""
Draw Figures 4 to 11 of Bejczy 1974: what matters beside a joint's own inertia, for the JPL arm.

    python examples/bejczy_ratios.py [bejczy_ratios.png]

Figures 4 to 7: which fraction of one joint's acceleration another one feels, the wrist straight, a
part of the boom. Figures 8 to 11: which acceleration gravity equals, with 1.8 kg in the hand. The
three lengths of Figure 8 and the two wrist angles of Figure 10 are not in the scan, and are ours.
The script prints the largest value of each beside the paper's.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt
import numpy as np

from robodyn_ros import Payload, RobotModel
from robodyn_ros.analysis import coupling_ratios, gravity_ratios

ROOT = Path(__file__).resolve().parent.parent
URDF = ROOT / 'urdf' / 'jpl_rrp.urdf'
# Appendix B: as seen at the joints [kg m², kg]; urdf/jpl_rrp.urdf says how they were converted.
INPUT_INERTIA = np.array([0.95331, 2.19332, 0.78183, 0.10592, 0.09674, 0.01984])
LOAD = Payload(1.8, inertia=1.8 * 442e-6 ** (2 / 3) / 6 * np.eye(3))
LENGTHS = (1.118, 0.813, 0.508)
THETA = np.linspace(0, np.pi / 2, 91)


@dataclass(frozen=True)
class Curves:
    """A figure: its name, unit, printed maximum, and a curve for each label."""

    name: str
    unit: str
    printed: str
    curves: dict[str, np.ndarray]


def positions(n: int, r3: float, theta5: float = 0.0) -> np.ndarray:
    """Return positions (N, n): theta2 over ``THETA``, the boom r3 out [m], the wrist bent."""
    q = np.zeros((len(THETA), max(n, 6)))
    q[:, 1], q[:, 2], q[:, 4] = THETA, r3, theta5
    return q[:, :n]


def figures() -> list[Curves]:
    """Return the eight figures."""
    boom = RobotModel.from_urdf(URDF, tip_link='link3').with_rotor_inertia(INPUT_INERTIA[:3])
    bare = RobotModel.from_urdf(URDF).with_payload(LOAD)
    loaded = bare.with_rotor_inertia(INPUT_INERTIA)

    def coupling(i: int, j: int, factor: float = 1.0, lengths: tuple = LENGTHS) -> dict:
        return {
            f'r3 = {100 * r3:.1f} cm': factor
            * np.abs(coupling_ratios(boom, positions(3, r3))[:, i, j])
            for r3 in lengths
        }

    def gravity(i: int, r3: float = 1.0, theta5: float = 0.0) -> np.ndarray:
        return np.abs(gravity_ratios(loaded, positions(6, r3, np.radians(theta5)))[:, i])

    return [
        Curves('Figure 4: R1 = |D12 / D11|', '', '0.5', coupling(0, 1)),
        Curves('Figure 5: R2 = |D13 / D11|', '1/cm', '0.0037', coupling(0, 2, 0.01)),
        Curves('Figure 6: R3 = |D12 / D22|', '', '0.11', coupling(1, 0)),
        Curves('Figure 7: R4 = |D13 / D33|', 'cm', '14.45', coupling(2, 0, 100, (1.118,))),
        Curves(
            'Figure 8: K1, joint 2', 'rad/s²', '',
            {f'r3 = {100 * r3:.1f} cm': gravity(1, r3) for r3 in LENGTHS},
        ),
        # The paper leaves the input inertia of joint 3 out of K2.
        Curves(
            'Figure 9: K2, joint 3', 'cm/s²', '981',
            {
                'links alone': 100 * np.abs(gravity_ratios(bare, positions(6, 1.0))[:, 2]),
                'with input inertia': 100 * gravity(2),
            },
        ),
        Curves(
            'Figure 10: K3, joint 4', 'rad/s²', '',
            {f'θ5 = {angle}°': gravity(3, theta5=angle) for angle in (90, 45)},
        ),
        Curves('Figure 11: K4, joint 5', 'rad/s²', '', {'θ5 = 90°': gravity(4, theta5=90)}),
    ]  # fmt: skip


def main(target: Path) -> None:
    """Print the largest values and write the figures to ``target``."""
    drawn = figures()
    canvas, axes = plt.subplots(2, 4, figsize=(13, 6), sharex=True, layout='constrained')
    for axis, figure in zip(axes.flat, drawn):
        for label, values in figure.curves.items():
            axis.plot(np.degrees(THETA), values, label=label)
        largest = max(values.max() for values in figure.curves.values())
        printed = f' (printed {figure.printed})' if figure.printed else ''
        print(f'{figure.name}: at most {largest:.4g} {figure.unit}{printed}')
        unit = f' [{figure.unit}]' if figure.unit else ''
        axis.set_title(figure.name + unit, loc='left', fontsize='medium')
        axis.grid(color='0.9')
        axis.spines[['top', 'right']].set_visible(False)
        if len(figure.curves) > 1:
            axis.legend(frameon=False, fontsize='small')
    for axis in axes[1]:
        axis.set_xlabel('θ2 [deg]')
    target.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(target, dpi=90)
    print(f'wrote {target}')


if __name__ == '__main__':
    main(Path(sys.argv[1] if len(sys.argv) > 1 else 'bejczy_ratios.png'))
