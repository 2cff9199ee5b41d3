# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo, alone and under a control law."""

from robodyn_ros.simulation.arm import ArmSimulation, CannotSimulate, MujocoMissing
from robodyn_ros.simulation.closed_loop import LAWS, SimulatedMotion, simulated_motion

__all__ = [
    'LAWS',
    'ArmSimulation',
    'CannotSimulate',
    'MujocoMissing',
    'SimulatedMotion',
    'simulated_motion',
]
