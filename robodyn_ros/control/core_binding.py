# SPDX-License-Identifier: Apache-2.0
"""The compiled core, ``core/``, and its arguments from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.control.law import Friction, InverseDynamics, OfPosition
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
