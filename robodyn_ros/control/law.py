# SPDX-License-Identifier: Apache-2.0
"""A control law's settings and the model that it computes with; the law is ``core/torque.hpp``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from robodyn_ros.errors import InvalidArgument

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


@dataclass(frozen=True, eq=False)
class Impedance:
    """
    Springs of the impedance modes, and the compensation of friction.

    Parameters
    ----------
    stiffness, nullspace_stiffness : array, shape (n,)
        Of the joints, and of a joint towards the posture in the tip's null space [N m/rad], [N/m].
    tip_stiffness : array, shape (6,)
        Along and about three axes [N/m], [N m/rad].
    is_in_base : bool
        Whether the axes are the base link's; otherwise those of the tip's reference.
    tip_point : array, shape (3,)
        Where the tip's spring acts, in the tip link's frame [m].
    damping_ratio : float
        Of every mode.
    friction_compensation : float
        Fraction of the model's friction that is compensated by the measured velocity.
    friction_dead_zone : float
        Velocity up to which Coulomb friction is not [rad/s] or [m/s].
    """

    stiffness: np.ndarray
    nullspace_stiffness: np.ndarray
    tip_stiffness: np.ndarray
    is_in_base: bool
    tip_point: np.ndarray
    damping_ratio: float
    friction_compensation: float
    friction_dead_zone: float

    def stiffness_of(self, mode: Mode) -> str:
        """Return the stiffness in a mode, as text with units; empty: it has none."""

        def text(values: np.ndarray) -> str:
            return ' '.join(f'{value:g}' for value in values)

        if mode == 'joint_impedance':
            return f'joints {text(self.stiffness)} [N m/rad or N/m]'
        if mode == 'cartesian_impedance':
            axes = 'base' if self.is_in_base else 'reference'
            along, about = text(self.tip_stiffness[:3]), text(self.tip_stiffness[3:])
            return f'tip {along} N/m, {about} N m/rad, axes of the {axes}'
        return ''


@dataclass(frozen=True, eq=False)
class ControlLaw:
    """
    The settings and the model of a control law.

    Parameters
    ----------
    inverse_dynamics : InverseDynamics
    friction : Friction
    mode : str
        One of ``MODES``.
    terms : Terms
        What is commanded of the model's torque.
    kp, kd : array, shape (n,)
        Feedback gains [1/s²] and [1/s]; they act on accelerations.
    friction_velocity : float
        Width of the smooth sign of Coulomb friction [rad/s] or [m/s].
    limit_width : float
        Width of the soft joint limits [rad] or [m]; 0: none.
    impedance : Impedance, optional
        Not given: no stiffness anywhere.
    forward_kinematics, jacobian : callable, optional
        Of the tip; not given: no stiffness there.
    coupling : array, shape (m, n), optional
        Of the coupled drives, as ``RobotModel`` has it.

    Raises
    ------
    InvalidArgument
        No such mode.
    """

    inverse_dynamics: InverseDynamics
    friction: Friction
    mode: Mode
    terms: Terms
    kp: np.ndarray
    kd: np.ndarray
    friction_velocity: float = 0.01
    limit_width: float = 0.0
    impedance: Impedance | None = None
    forward_kinematics: OfPosition | None = None
    jacobian: OfPosition | None = None
    coupling: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidArgument('mode', self.mode, ', '.join(MODES))

    @property
    def stiffness(self) -> str:
        """The stiffness of the springs, as text with units; empty: there are none."""
        return '' if self.impedance is None else self.impedance.stiffness_of(self.mode)
