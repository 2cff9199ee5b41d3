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
class CompiledFunction:
    """
    A function of a compiled library: callable from Python, and from the core without Python.

    Parameters
    ----------
    call : callable
        For Python.
    code : tuple
        As ``CompiledModel.machine_code`` returns it.
    """

    call: Any
    code: tuple[Any, np.ndarray]

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the function's value for N samples, shape (N, n)."""
        return self.call(*arrays)


def core_function(function: InverseDynamics | Friction | OfPosition) -> Any:
    """Return a function of an arm for the core."""
    if isinstance(function, CompiledFunction):
        return core.Function(*function.code)
    return core.Function(function)


def core_arm(
    inverse_dynamics: InverseDynamics,
    friction: Friction,
    joints: int,
    tip: tuple[OfPosition | None, OfPosition | None] = (None, None),
    reach: float = np.inf,
    coupling: np.ndarray | None = None,
) -> Any:
    """
    Return an arm for the core.

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
    functions = core_function(inverse_dynamics), core_function(friction)
    pose, jacobian = (None if each is None else core_function(each) for each in tip)
    return core.Arm(joints, *functions, NonFiniteValue, pose, jacobian, reach, coupling)


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
