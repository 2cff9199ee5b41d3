# SPDX-License-Identifier: Apache-2.0
"""
The inertial parameters that a robot's torques depend on, and how.

``regressor`` writes the torque as a matrix times the inertial parameters; ``base_parameters``
finds the fewest parameters that suffice, as formulas (Gautier and Khalil 1988).
"""

from robodyn_ros.parameters.base_parameters import (
    BaseParameters,
    base_parameters,
    parameters_record,
)
from robodyn_ros.parameters.combinations import LinearCombination
from robodyn_ros.parameters.energy import energy_regressor
from robodyn_ros.parameters.regressor import StandardParameters, regressor

__all__ = [
    'BaseParameters',
    'StandardParameters',
    'LinearCombination',
    'base_parameters',
    'energy_regressor',
    'parameters_record',
    'regressor',
]
