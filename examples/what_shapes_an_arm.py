# SPDX-License-Identifier: Apache-2.0
"""
Print what three papers worked out by hand: minimal parameters, coupling, the terms that matter.

    python examples/what_shapes_an_arm.py [arm.urdf]
"""

import sys
from pathlib import Path

import numpy as np

from robodyn_ros import RobotModel, base_parameters
from robodyn_ros.analysis import coefficients_of_coupling, design_guidelines, simplified_model
from robodyn_ros.analysis.joint_space import JointSpace

ROOT = Path(__file__).resolve().parent.parent


def main(urdf: Path) -> None:
    """Print them for the arm."""
    arm = RobotModel.from_urdf(urdf)
    base = base_parameters(arm)
    print(f'{base.count} of {base.standard_count} inertial parameters matter, the first five:')
    print(*(expression.text('symbols') for expression in base.expressions[:5]), sep='\n')

    print('\nDesign guidelines (Tourassis and Neuman 1985)')
    print(*design_guidelines(arm), sep='\n')

    coupling = coefficients_of_coupling(arm, JointSpace.of(arm).sample(1024)).mean(axis=0)
    pairs = np.triu(coupling, 1)
    i, j = divmod(int(pairs.argmax()), arm.n)
    print(f'\n{arm.joint_names[i]} and {arm.joint_names[j]} couple most: {coupling[i, j]:.2f}')

    print('\nGravity, to 2 % (Bejczy 1974)')
    print(simplified_model(arm, 0.02, parts=['gravity']))


if __name__ == '__main__':
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / 'urdf' / 'jpl_rrp.urdf')
