# SPDX-License-Identifier: Apache-2.0
"""
Compile an arm, compute the torques of a long trajectory in one call, and compare with NumPy's.

    python examples/compiled_trajectory.py [arm.urdf]
"""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.compiled import compile_model

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = 10_000


def main(urdf: Path) -> None:
    """Print operation counts, times and the difference."""
    arm = RobotModel.from_urdf(urdf)
    compiled = compile_model(arm, kernels=('inverse_dynamics',))
    multiplications, additions = compiled.operation_counts['inverse_dynamics']
    print(f'{multiplications} multiplications, {additions} additions')

    t = np.linspace(0, 10, SAMPLES)[:, None]
    phase = np.arange(arm.n)
    q, qd, qdd = np.sin(t + phase), np.cos(t + phase), -np.sin(t + phase)
    torque = np.empty_like(q)
    began = perf_counter()
    compiled.inverse_dynamics(q, qd, qdd, out=torque)
    print(f'{SAMPLES} states in {1e3 * (perf_counter() - began):.3g} ms')
    began = perf_counter()
    expected = inverse_dynamics(arm, q, qd, qdd)
    print(f'NumPy takes {1e3 * (perf_counter() - began):.3g} ms')
    print(f'largest difference: {np.abs(torque - expected).max():.1e} N m')


if __name__ == '__main__':
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / 'urdf' / 'puma560.urdf')
