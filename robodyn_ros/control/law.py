# SPDX-License-Identifier: Apache-2.0
"""Modes of the control law, and the parts of its torque; the law is ``core/torque.hpp``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

Mode = Literal[
    'gravity_compensation',
    'feedforward',
    'computed_torque',
    'joint_impedance',
    'cartesian_impedance',
]
MODES: tuple[Mode, ...] = get_args(Mode)
# Those in which a reference is followed; the core asks the law's coefficients.
FOLLOWING: tuple[Mode, ...] = MODES[1:]
IMPEDANCES: tuple[Mode, ...] = MODES[3:]

# (q, qd, qdd), each of shape (N, n), to rigid-body torques of shape (N, n).
InverseDynamics = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

# (velocity, direction of motion from -1 to 1, rigid body's torque), (N, n) each, to torques;
# directions are those of the drives, (N, n + m) with m coupled ones.
Friction = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Terms:
    """Parts of the model's torque that are commanded; a driver may already add some itself."""

    inertial: bool = True
    coriolis: bool = True
    gravity: bool = True
    friction: bool = True


class TorqueParts(NamedTuple):
    """
    The parts of a torque; every array has shape (n,), in [N m] or [N].

    Parameters
    ----------
    inertial : array
        Mass matrix times the desired acceleration.
    coriolis, gravity, friction : array
        What their names say; zero where the term is switched off.
    feedback : array
        Mass matrix times what corrects the error.
    effort : array
        The trajectory's own feedforward.
    """

    inertial: np.ndarray
    coriolis: np.ndarray
    gravity: np.ndarray
    friction: np.ndarray
    feedback: np.ndarray
    effort: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """The sum of the parts."""
        return (
            self.inertial
            + self.coriolis
            + self.gravity
            + self.friction
            + self.feedback
            + self.effort
        )


# Positions (1, n) to the tip's pose (1, 4, 4) or Jacobian (1, 6, n).
OfPosition = Callable[[np.ndarray], np.ndarray]
