# SPDX-License-Identifier: Apache-2.0
"""The compiled core, ``core/``, and its arguments from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.control.law import ControlLaw, Friction, InverseDynamics, OfPosition
from robodyn_ros.errors import NoBackend, NonFiniteValue, Phrase

try:
    import robodyn_ros.control.core_module as core
except ImportError as error:
    raise NoBackend(
        'compiled core of the control pipeline',
        Phrase(str(error)),
        'robodyn_ros installed anew where there is a C++ compiler (sudo apt install g++)',
    ) from error


@dataclass(frozen=True, eq=False)
class LoadedLibrary:
    """
    An arm's library under a load: its inverse dynamics for Python, all of it for the core.

    Parameters
    ----------
    call : callable
        For Python.
    library : capsule
        The ``robodyn_model``.
    load : array
        Gravity and the inertias that a payload changes, as the library takes them.
    """

    call: Any
    library: Any
    load: np.ndarray

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the inverse dynamics for N samples, shape (N, n)."""
        return self.call(*arrays)


def core_arm(
    inverse_dynamics: InverseDynamics,
    friction: Friction,
    joints: int,
    tip: tuple[OfPosition | None, OfPosition | None] = (None, None),
    reach: float = np.inf,
    coupling: np.ndarray | None = None,
) -> Any:
    """
    Return an arm under a load for the core; what a library has is taken from it alone.

    Parameters
    ----------
    inverse_dynamics, friction : callable
    joints : int
    tip : pair of callable, optional
        The tip's pose and Jacobian.
    reach : float
        Of the tip [m].
    coupling : array, shape (m, n), optional
        Of the coupled drives, as ``RobotModel`` has it.
    """
    if isinstance(inverse_dynamics, LoadedLibrary):
        return core.Arm(inverse_dynamics.library, inverse_dynamics.load)
    return core.Arm(joints, inverse_dynamics, friction, NonFiniteValue, *tip, reach, coupling)


def core_law(law: ControlLaw) -> Any:
    """Return a law's settings for the core."""
    settings, terms = core.LawSettings(), law.terms
    settings.mode = getattr(core.Mode, law.mode)
    settings.terms = core.Terms(terms.inertial, terms.coriolis, terms.gravity, terms.friction)
    settings.kp, settings.kd = law.kp, law.kd
    settings.friction_velocity = law.friction_velocity
    settings.position_guard = law.limit_width
    settings.stiffness = settings.nullspace_stiffness = np.zeros_like(law.kp)
    if (impedance := law.impedance) is not None:
        settings.stiffness = impedance.stiffness
        settings.nullspace_stiffness = impedance.nullspace_stiffness
        settings.tip_stiffness = impedance.tip_stiffness
        settings.is_tip_stiffness_in_base = impedance.is_in_base
        settings.tip_point = impedance.tip_point
        settings.damping_ratio = impedance.damping_ratio
        settings.friction_compensation = impedance.friction_compensation
        settings.friction_dead_zone = impedance.friction_dead_zone
    return settings
