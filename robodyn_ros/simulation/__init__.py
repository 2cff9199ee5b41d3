# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo, alone and under a control law."""

from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.simulation.closed_loop import LAWS, SimulatedMotion, simulated_motion

__all__ = [
    'LAWS',
    'ArmSimulation',
    'SimulatedMotion',
    'simulated_motion',
]
