# SPDX-License-Identifier: Apache-2.0
"""The control law, and the parts that its torque is the sum of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.law_weights import FRICTION, MODES, LawWeights, Mode, Terms
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.errors import UnknownOption

InverseDynamics = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


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
        (width, qd, rigid_torque), a float and twice shape (n,), to the friction torque, shape
        (n,); the width is that of the smooth sign of Coulomb friction [rad/s] or [m/s].
    mode : str
        One of ``MODES``.
    terms : Terms
        What is commanded of the model's torque.
    kp, kd : array, shape (n,)
        Feedback gains [1/s²] and [1/s]; they act on accelerations.
    continuous : array of bool, shape (n,)
        Joints that turn without end: their error is the shorter way round.
    friction_velocity : float
        [rad/s] or [m/s], the width that ``friction_torque`` is given.
    limit_width : float
        Width of the soft joint limits [rad] or [m]; 0: none.
    damping : float
        [1/s]: adds -damping M(q) qd.

    Raises
    ------
    UnknownOption
        No such mode.
    """

    inverse_dynamics: InverseDynamics
    friction_torque: Callable[[float, np.ndarray, np.ndarray], np.ndarray]
    mode: Mode
    terms: Terms
    kp: np.ndarray
    kd: np.ndarray
    continuous: np.ndarray
    friction_velocity: float = 0.01
    limit_width: float = 0.0
    damping: float = 0.0
    _weights: LawWeights | None = None
    _zero: np.ndarray = field(init=False, repr=False)
    _any_continuous: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UnknownOption('mode', self.mode, ', '.join(MODES))
        object.__setattr__(self, '_zero', np.zeros(len(self.kp)))
        object.__setattr__(self, '_any_continuous', bool(np.any(self.continuous)))

    @cached_property
    def weights(self) -> LawWeights:
        """The coefficients that its torque is linear in."""
        if self._weights is not None:
            return self._weights
        return LawWeights.of(
            self.mode,
            self.terms,
            self.kp,
            self.kd,
            friction_velocity=self.friction_velocity,
            limit_width=self.limit_width,
            damping=self.damping,
        )

    @cached_property
    def numbers(self) -> np.ndarray:
        """Its coefficients and the joints' kinds one after the other, for ``CompiledStep``."""
        weights = self.weights
        head = (weights.hold, weights.damping, weights.friction_slope, weights.limit_slope)
        return np.concatenate(
            [
                head,
                weights.feedforward,
                weights.computed,
                weights.kp,
                weights.kd,
                weights.limit_damping,
                self.continuous,
            ]
        )

    def with_weights(self, weights: LawWeights) -> ControlLaw:
        """Return the law of other coefficients, for the same arm."""
        return replace(self, _weights=weights)

    def gravity_torque(self, position: np.ndarray) -> np.ndarray:
        """Return g(q), shape (n,), or zeros where the driver compensates gravity."""
        weight = self.weights.gravity
        if weight == 0.0:
            return self._zero
        zero = self._zero[None]
        return weight * self.inverse_dynamics(position[None], zero, zero)[0]

    def gravity_and_inertia(
        self, position: np.ndarray, joints: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return g(q) as ``gravity_torque`` does, and M_jj of some joints, else zero."""
        rows = np.zeros((1 + len(joints), len(position)))
        rows[1 + np.arange(len(joints)), joints] = 1.0
        zero = np.zeros_like(rows)
        torques = self.inverse_dynamics(zero + position, zero, rows)
        inertia = np.zeros_like(position)
        inertia[joints] = (torques[1:] - torques[0])[np.arange(len(joints)), joints]
        return self.weights.gravity * torques[0], inertia

    def bias_and_inertial_torque(
        self, position: np.ndarray, velocity: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return C(q, qd) qd + g(q) and M(q) qd, shape (n,) each, whatever is commanded."""
        states = np.zeros((3, 3, len(position)))
        states[0] = position
        states[1, 1] = velocity
        states[2, 2] = velocity
        gravity, bias, inertial = self.inverse_dynamics(*states)
        return bias, inertial - gravity

    def torque(
        self, position: np.ndarray, velocity: np.ndarray, reference: ReferenceState | None
    ) -> TorqueParts:
        """
        Return the parts of the torque for a measured state, each of shape (n,).

        Without a reference every mode compensates gravity. Otherwise, with the errors
        e = q_d - q and ed = qd_d - qd,

        - feedforward: M(q_d) qdd_d + C(q_d, qd_d) qd_d + g(q_d) + friction(qd_d),
        - computed torque: M(q) (qdd_d + K_d ed + K_p e) + C(q, qd) qd + g(q) + friction(qd_d),

        each part only where its term is switched on; the feedback always is. Damping, where there
        is any, is part of the feedback.

        Notes
        -----
        One batched call of the inverse dynamics gives all parts. Friction is compensated at the
        desired velocity: at the measured one its sign would flutter with the noise around rest.
        """
        weights, zero = self.weights, self._zero
        has_damping = weights.damping != 0.0 and not np.isnan(velocity).any()
        follows = reference is not None and weights.follows
        if not follows and not has_damping:
            return TorqueParts(zero, zero, self.gravity_torque(position), zero, zero, zero)
        has_feedback = reference is not None and weights.has_feedback
        has_feedforward = reference is not None and weights.has_feedforward
        rows = 1 + has_damping + 3 * has_feedback + 3 * has_feedforward
        states = np.zeros((3, rows, len(zero)))
        states[0] = position
        row = 1
        if has_damping:
            states[2, row] = velocity
            row += 1
        if has_feedback:
            assert reference is not None
            states[1, row] = velocity
            states[2, row + 1] = reference.acceleration
            states[2, row + 2] = weights.kd * (
                reference.velocity - velocity
            ) + weights.kp * self.position_error(position, reference.position)
            row += 3
        if has_feedforward:
            assert reference is not None
            states[0, row:] = reference.position
            states[1, row + 1] = reference.velocity
            states[2, row + 2] = reference.acceleration
        torques = self.inverse_dynamics(*states)
        combination = weights.combination(
            reference is not None, has_damping, has_feedback, has_feedforward
        )
        inertial, coriolis, gravity, friction, feedback, effort = combination @ torques
        if reference is not None:
            near = torques[1 + has_damping :]
            if has_feedback:
                friction += self._friction(weights.computed, reference, torques[0], near)
            if has_feedforward:
                friction += self._friction(
                    weights.feedforward, reference, torques[-3], torques[-2:]
                )
            effort = weights.effort * reference.effort
        return TorqueParts(inertial, coriolis, gravity, friction, feedback, effort)

    def _friction(
        self,
        coefficients: np.ndarray,
        reference: ReferenceState,
        resting: np.ndarray,
        moving: np.ndarray,
    ) -> np.ndarray:
        """
        Return the friction at the desired velocity, as the coefficients say, shape (n,).

        Its load is the rigid body's torque, from that at rest and those in motion and under the
        reference's acceleration, the first two rows.
        """
        weight = coefficients[FRICTION]
        if weight == 0.0:
            return self._zero
        width = 1.0 / self.weights.friction_slope
        rigid_torque = moving[0] + moving[1] - resting
        return weight * self.friction_torque(width, reference.velocity, rigid_torque)

    def position_error(self, position: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Return wanted - position, shape (n,), the shorter way round for continuous joints."""
        error = wanted - position
        return np.where(self.continuous, wrapped(error), error) if self._any_continuous else error


def gravity_overload(
    law: ControlLaw, position: np.ndarray, limits: np.ndarray, names: Sequence[str]
) -> str:
    """
    Return which joint cannot carry the arm at a position, in words; empty: every joint can.

    Parameters
    ----------
    position : array, shape (n,)
        [rad] or [m]
    limits : array, shape (n,)
        Effort limits [N m] or [N].
    names : sequence of n str
    """
    with np.errstate(over='ignore', invalid='ignore'):
        gravity = np.abs(law.gravity_torque(position))
    beyond = ~(gravity <= limits)
    if not beyond.any():
        return ''
    with np.errstate(invalid='ignore'):
        worst = int(np.argmax(np.where(beyond, np.nan_to_num(gravity) - limits, -np.inf)))
    return (
        f'gravity torque of joint {names[worst]!r} here: {gravity[worst]:.4g}; '
        f'allowed: at most its effort limit, {limits[worst]:.4g}'
    )


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Return an angle [rad] with whole turns taken away, in [-pi, pi]."""
    return np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi
