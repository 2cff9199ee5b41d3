# SPDX-License-Identifier: Apache-2.0
"""The model's torque for many states of a reference at once, each term where it is wanted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.control.law import InverseDynamics, Terms
from robodyn_ros.control.rigid_body import RigidBodyTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.model import RobotModel


@dataclass(frozen=True, eq=False)
class ReferenceTorque:
    """
    What the mode feedforward of the dynamics node commands, for N states.

    Parameters
    ----------
    model : RobotModel
        The arm with what it carries.
    inverse_dynamics : callable
        The model's: (q, qd, qdd), each of shape (N, n), to torques of shape (N, n).
    terms : Terms
        What is commanded of the model's torque.
    friction_velocity : float
        Width of the smooth sign of Coulomb friction [rad/s] or [m/s].
    """

    model: RobotModel
    inverse_dynamics: InverseDynamics
    terms: Terms
    friction_velocity: float

    @classmethod
    def of(
        cls,
        model: RobotModel,
        settings: ControlSettings | None = None,
        torque: RigidBodyTorque | None = None,
    ) -> ReferenceTorque:
        """Return that of a model under some settings; not given: the defaults, Newton-Euler."""
        settings = settings or ControlSettings()
        torque = torque or RigidBodyTorque('newton_euler')
        terms = Terms(
            settings.terms_inertial,
            settings.terms_coriolis,
            settings.terms_gravity,
            settings.terms_friction,
        )
        return cls(model, torque.under(model), terms, settings.friction_velocity)

    def at(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the torque at N states, shape (N, n) like each argument [N m] or [N]."""
        terms, zero = self.terms, np.zeros_like(q)
        total = self.inverse_dynamics(q, qd, qdd)
        torque = total.copy()
        if not (terms.inertial and terms.coriolis and terms.gravity):
            resting = self.inverse_dynamics(q, zero, zero)
            moving = self.inverse_dynamics(q, qd, zero)
            torque -= (not terms.inertial) * (total - moving)
            torque -= (not terms.coriolis) * (moving - resting)
            torque -= (not terms.gravity) * resting
        if terms.friction:
            torque += smooth_friction_torque(self.model, self.friction_velocity, qd, total)
        return torque
