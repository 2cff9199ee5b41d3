# SPDX-License-Identifier: Apache-2.0
"""
Print what an arm has to do to hold still, to move, and to carry a payload.

    python examples/urdf_to_torque.py [arm.urdf]
"""

import sys
from pathlib import Path

import numpy as np

from robodyn_ros import Payload, RobotModel, forward_kinematics, gravity_torque, inverse_dynamics

ROOT = Path(__file__).resolve().parent.parent


def main(urdf: Path) -> None:
    """Print DH table, findings and torques of the arm."""
    arm = RobotModel.from_urdf(urdf)
    print(arm.dh)
    print(*arm.findings, sep='\n')

    q = np.full(arm.n, 0.4)
    qd, qdd = np.full((2, arm.n), 0.5)
    with np.printoptions(precision=3, suppress=True):
        print('tip at [m]', forward_kinematics(arm, q)[:3, 3])
        print('to hold still   ', gravity_torque(arm, q))
        print('to speed up     ', inverse_dynamics(arm, q, qd, qdd))
        loaded = arm.with_payload(Payload(2.0, center_of_mass=(0, 0, 0.1)))
        print('2 kg at the tip ', gravity_torque(loaded, q) - gravity_torque(arm, q))
        hung = arm.with_gravity((-9.81, 0, 0))
        print('hung on a wall  ', gravity_torque(hung, q))


if __name__ == '__main__':
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / 'urdf' / 'puma560.urdf')
