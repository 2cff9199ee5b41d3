# SPDX-License-Identifier: Apache-2.0
"""
Let an arm in MuJoCo make one motion under each control law, without ROS, and print its errors.

    python examples/control_in_mujoco.py [arm.urdf]

The last line is computed torque that believes in a payload which is not there.
"""

import sys
from pathlib import Path

import numpy as np

from robodyn_ros import Payload, RobotModel
from robodyn_ros.motions import example_motion
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.simulation.closed_loop import LAWS, simulated_motion

ROOT = Path(__file__).resolve().parent.parent


def main(urdf: Path) -> None:
    """Print the largest error of each joint under each law."""
    arm = RobotModel.from_urdf(urdf)
    motion = example_motion(arm)
    simulation = ArmSimulation.from_urdf(urdf)
    wrong = arm.with_payload(Payload(1.0))
    runs = [(law, arm) for law in LAWS] + [('computed_torque', wrong)]
    with np.printoptions(precision=5, suppress=True):
        for law, model in runs:
            did = simulated_motion(simulation, model, motion, law)
            print(f'{law:22}', np.abs(did.error).max(axis=0))


if __name__ == '__main__':
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / 'urdf' / 'puma560.urdf')
