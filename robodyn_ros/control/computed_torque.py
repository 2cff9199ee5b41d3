# SPDX-License-Identifier: Apache-2.0
"""The control law, and the parts that its torque is the sum of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np

from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.errors import UnknownOption

Mode = Literal['gravity_compensation', 'feedforward', 'computed_torque']
MODES: tuple[Mode, ...] = get_args(Mode)

InverseDynamics = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Terms:
    """Which parts of the model's torque are commanded; a driver may already add some itself."""

    inertial: bool = True
    coriolis: bool = True
    gravity: bool = True
    friction: bool = True


class TorqueParts(NamedTuple):
    """
    A torque taken apart; every array has shape (n,), in [N m] or [N].

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


@dataclass(frozen=True, eq=False)
class ControlLaw:
    """
    The torque for a measured state and a reference.

    Parameters
    ----------
    inverse_dynamics : callable
        (q, qd, qdd), each of shape (N, n), to rigid-body torques of shape (N, n).
    friction_torque : callable
        qd of shape (n,) to the friction torque, shape (n,).
    mode : str
        One of ``MODES``.
    terms : Terms
        What is commanded of the model's torque.
    kp, kd : array, shape (n,)
        Feedback gains [1/s²] and [1/s]; they act on accelerations.
    continuous : array of bool, shape (n,)
        Joints that turn without end: their error is the shorter way round.

    Raises
    ------
    UnknownOption
        No such mode.
    """

    inverse_dynamics: InverseDynamics
    friction_torque: Callable[[np.ndarray], np.ndarray]
    mode: Mode
    terms: Terms
    kp: np.ndarray
    kd: np.ndarray
    continuous: np.ndarray
    _zero: np.ndarray = field(init=False, repr=False)
    _any_continuous: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UnknownOption('mode', self.mode, ', '.join(MODES))
        object.__setattr__(self, '_zero', np.zeros(len(self.kp)))
        object.__setattr__(self, '_any_continuous', bool(np.any(self.continuous)))

    def gravity_torque(self, position: np.ndarray) -> np.ndarray:
        """Return g(q), shape (n,), or zeros where the driver compensates gravity."""
        if not self.terms.gravity:
            return self._zero
        zero = self._zero[None]
        return self.inverse_dynamics(position[None], zero, zero)[0]

    def gravity_and_inertia(
        self, position: np.ndarray, joints: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return g(q) as ``gravity_torque`` does, and M_jj of some joints, zero for the others."""
        rows = np.zeros((1 + len(joints), len(position)))
        rows[1 + np.arange(len(joints)), joints] = 1.0
        zero = np.zeros_like(rows)
        torques = self.inverse_dynamics(zero + position, zero, rows)
        inertia = np.zeros_like(position)
        inertia[joints] = (torques[1:] - torques[0])[np.arange(len(joints)), joints]
        return torques[0] if self.terms.gravity else self._zero, inertia

    def gravity_compensation(self, position: np.ndarray) -> TorqueParts:
        """Return the parts of the torque that only carries the arm's weight."""
        zero = self._zero
        return TorqueParts(zero, zero, self.gravity_torque(position), zero, zero, zero)

    def torque(
        self, position: np.ndarray, velocity: np.ndarray, reference: ReferenceState | None
    ) -> TorqueParts:
        """
        Return the parts of the torque for a measured state, each of shape (n,).

        Without a reference every mode compensates gravity. Otherwise, with the errors
        e = q_d - q and ed = qd_d - qd,

        - feedforward: M(q_d) qdd_d + C(q_d, qd_d) qd_d + g(q_d) + friction(qd_d),
        - computed torque: M(q) (qdd_d + K_d ed + K_p e) + C(q, qd) qd + g(q) + friction(qd_d),

        each part only where its term is switched on; the feedback always is.

        Notes
        -----
        One batched call of the inverse dynamics gives all parts. Friction is compensated at the
        desired velocity: at the measured one its sign would flutter with the noise around rest.
        """
        if reference is None or self.mode == 'gravity_compensation':
            return self.gravity_compensation(position)
        zero = self._zero
        if self.mode == 'feedforward':
            position, velocity, correction = reference.position, reference.velocity, zero
        else:
            correction = self.kd * (reference.velocity - velocity) + self.kp * self.position_error(
                position, reference.position
            )
        states = np.zeros((3, 4, len(zero)))
        states[0] = position
        states[1, 1] = velocity
        states[2, 2] = reference.acceleration
        states[2, 3] = correction
        gravity, moving, inertial, feedback = self.inverse_dynamics(*states)
        terms = self.terms
        return TorqueParts(
            inertial - gravity if terms.inertial else zero,
            moving - gravity if terms.coriolis else zero,
            gravity if terms.gravity else zero,
            self.friction_torque(reference.velocity) if terms.friction else zero,
            feedback - gravity,
            reference.effort,
        )

    def position_error(self, position: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Return wanted - position, shape (n,), the shorter way round for continuous joints."""
        error = wanted - position
        return np.where(self.continuous, wrapped(error), error) if self._any_continuous else error


def friction_compensation(
    viscous: np.ndarray, coulomb: np.ndarray, width: float, velocity: np.ndarray
) -> np.ndarray:
    """
    Return viscous * qd + coulomb * tanh(qd / width), shape (n,) [N m] or [N].

    Parameters
    ----------
    viscous, coulomb : array, shape (n,)
        [N m s/rad] and [N m], or [N s/m] and [N].
    width : float
        At this velocity three quarters of the Coulomb friction are compensated, at three times
        this all but half a percent [rad/s] or [m/s].
    velocity : array, shape (n,)
        Desired [rad/s] or [m/s].

    Notes
    -----
    The sign of ``friction_torque`` would jump by twice the Coulomb friction wherever a motion
    turns round; the tangent has the slope coulomb / width there.
    """
    return viscous * velocity + coulomb * np.tanh(velocity / width)


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Return an angle [rad] with whole turns taken away, in [-pi, pi]."""
    return np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi
