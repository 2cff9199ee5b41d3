# SPDX-License-Identifier: Apache-2.0
"""Rigid-body dynamics and friction of a model: M(q) qdd + C(q, qd) qd + g(q) = tau."""

from robodyn_ros.dynamics.derivatives import (
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
    linearization,
)
from robodyn_ros.dynamics.friction import friction_torque, smooth_friction_torque
from robodyn_ros.dynamics.rigid_body import (
    METHODS,
    Method,
    bias_torque,
    christoffel_symbols,
    coriolis_matrix,
    forward_dynamics,
    gravity_torque,
    inverse_dynamics,
    mass_matrix,
)

__all__ = [
    'METHODS',
    'Method',
    'bias_torque',
    'christoffel_symbols',
    'coriolis_matrix',
    'forward_dynamics',
    'forward_dynamics_derivatives',
    'friction_torque',
    'smooth_friction_torque',
    'gravity_torque',
    'inverse_dynamics',
    'inverse_dynamics_derivatives',
    'linearization',
    'mass_matrix',
]
