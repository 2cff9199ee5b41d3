# SPDX-License-Identifier: Apache-2.0
"""
Draw the plot of docs/an_arm_that_yields.md, and print its numbers.

    python docs/draw_stiffness.py

The Panda of example-robot-data in MuJoCo with friction, rotors and noise, and a model that is
10 % wrong, as benchmarks/impedance.py has it, in the same bent posture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'test' / 'support'))

from soft_arm import Named, SoftArm, push_loop, rendered  # noqa: E402

PANDA = Named('panda.urdf', 'panda_link0', 'panda_link8')
STIFFNESS = np.array([400.0] * 3 + [30.0] * 3)
GIVEN = {'mode': 'cartesian_impedance', 'impedance_tip_stiffness': STIFFNESS}
AXIS, PUSH = 1, 20.0
LARGEST = 1e5  # that impedance.tip_stiffness takes [N/m]
COLORS = ('#d55e00', '#0072b2')


def stiffest(rate: float) -> float:
    """Return the largest stiffness along all axes that the rate leaves as it is [N/m]."""
    low, high = 1.0, LARGEST
    while high > 1.01 * low:
        middle = (low * high) ** 0.5
        given = {**GIVEN, 'impedance_tip_stiffness': np.append([middle] * 3, STIFFNESS[3:])}
        arm = SoftArm(PANDA, rate, error=0.0, friction=0.0, noise=0.0, ramp_time=0.0, **given)
        arm.run(0.2)
        low, high = (low, middle) if arm.core.is_stiffness_limited else (middle, high)
    return low


def main() -> None:
    """Draw both panels."""
    figure = Figure(figsize=(11, 4.2), layout='constrained')
    left, right = figure.subplots(1, 2)
    for color, fraction in zip(COLORS, (0.0, 0.8)):
        arm = SoftArm(PANDA, **GIVEN, friction_compensation=fraction)
        arm.run(1.0)
        force, moved = push_loop(arm, AXIS, PUSH)
        label = f'friction_compensation {fraction:g}'
        left.plot(force, 1e3 * moved, color=color, label=label)
        stiffness, width = rendered(force, moved)
        print(f'{label}: {stiffness:.0f} N/m, {1e3 * width:.1f} mm wide')
    ends = np.array([-PUSH, PUSH])
    left.plot(ends, 1e3 * ends / STIFFNESS[0], 'k--', linewidth=1, label='400 N/m')
    left.set_xlabel('force of a slow push [N]')
    left.set_ylabel('the tip has moved [mm]')
    left.set_title('How soft: what friction hides')
    rates = np.array([100.0, 250.0, 500.0, 1000.0])
    largest = [stiffest(rate) for rate in rates]
    for rate, value in zip(rates, largest):
        print(f'{rate:g} Hz: up to {value:.0f} N/m')
    right.loglog(rates, largest, 'o-', color=COLORS[1], label='largest, along three axes')
    right.axhspan(200.0, 800.0, color='#dddddd', label='200 to 800 N/m')
    right.set_xticks(rates, [f'{rate:g}' for rate in rates])
    right.minorticks_off()
    right.set_xlabel('joint states a second [Hz]')
    right.set_ylabel('stiffness [N/m]')
    right.set_title('How stiff: what the rate allows')
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(ROOT / 'docs' / 'images' / 'stiffness.png', dpi=110)


if __name__ == '__main__':
    main()
