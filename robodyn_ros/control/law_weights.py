# SPDX-License-Identifier: Apache-2.0
"""
A control law as the coefficients that its torque is linear in.

At one measured state and one reference, the torque of every mode is a sum of the same parts: the
gravity torque, what the reference asks for where it is, what it asks for where the arm is, and the
feedback. A mode, its terms and its gains are nothing but the coefficients of these parts. So the
torque of a convex combination of coefficients is the convex combination of the torques: whatever
changes one law into another by way of it keeps each joint's torque between what the two laws ask
for at the present state, however often the change is changed on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from robodyn_ros.array_record import ArrayRecord

Mode = Literal['gravity_compensation', 'feedforward', 'computed_torque']
MODES: tuple[Mode, ...] = get_args(Mode)

INERTIAL, CORIOLIS, GRAVITY, FRICTION, EFFORT = range(5)
"""Columns of the coefficients of a reference's parts."""


@dataclass(frozen=True)
class Terms:
    """Which parts of the model's torque are commanded; a driver may already add some itself."""

    inertial: bool = True
    coriolis: bool = True
    gravity: bool = True
    friction: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class LawWeights(ArrayRecord):
    """
    The coefficients of one law, or of a law on its way to another.

    Parameters
    ----------
    hold : float
        Of g(q), whether there is a reference or not.
    feedforward, computed : array, shape (5,)
        Of the inertial, Coriolis, gravity, friction and effort parts of the reference: where the
        reference is, and where the arm is measured.
    kp, kd : array, shape (n,)
        Feedback gains [1/s²], [1/s], zero where the mode has no feedback.
    damping : float
        [1/s], of -M(q) qd.
    friction_slope : float
        Slope of the smooth sign of Coulomb friction at rest [s/rad] or [s/m].
    limit_slope : float
        Penetration of the soft joint limits per displacement beyond them [1/rad] or [1/m].
    limit_damping : array, shape (n,)
        Gain of the brake beyond them [1/s].
    """

    hold: float
    feedforward: np.ndarray
    computed: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    damping: float
    friction_slope: float
    limit_slope: float
    limit_damping: np.ndarray

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, 'has_feedforward', bool(self.feedforward.any()))
        feedback = self.computed.any() or self.kp.any() or self.kd.any()
        object.__setattr__(self, 'has_feedback', bool(feedback))

    has_feedforward: bool = False
    has_feedback: bool = False

    @classmethod
    def of(
        cls,
        mode: Mode,
        terms: Terms,
        kp: np.ndarray,
        kd: np.ndarray,
        *,
        friction_velocity: float,
        limit_width: float,
        damping: float = 0.0,
    ) -> LawWeights:
        """
        Return the coefficients of one law.

        Parameters
        ----------
        mode, terms, kp, kd
            As in ``ControlLaw``.
        friction_velocity : float
            Width of the smooth sign of Coulomb friction [rad/s] or [m/s].
        limit_width : float
            Displacement beyond a position limit to the full effect of the soft joint limit
            [rad] or [m]; 0: no soft joint limits.
        damping : float
            [1/s]
        """
        none = np.zeros(5)
        model = np.array(
            [terms.inertial, terms.coriolis, terms.gravity, terms.friction, True], dtype=float
        )
        is_computed, is_feedforward = mode == 'computed_torque', mode == 'feedforward'
        return cls(
            hold=float(terms.gravity) if mode == 'gravity_compensation' else 0.0,
            feedforward=model if is_feedforward else none,
            computed=model if is_computed else none,
            kp=kp if is_computed else np.zeros_like(kp),
            kd=kd if is_computed else np.zeros_like(kd),
            damping=damping,
            friction_slope=1.0 / friction_velocity,
            limit_slope=1.0 / limit_width if limit_width > 0.0 else 0.0,
            limit_damping=kd,
        )

    @cached_property
    def _combinations(self) -> dict[tuple[bool, ...], np.ndarray]:
        return {}

    @property
    def gravity(self) -> float:
        """Coefficient of g(q) where there is no reference."""
        return self.hold + float(self.feedforward[GRAVITY] + self.computed[GRAVITY])

    @property
    def follows(self) -> bool:
        """Whether a reference makes a difference."""
        return self.has_feedforward or self.has_feedback

    @property
    def effort(self) -> float:
        """Coefficient of the reference's own effort."""
        return float(self.feedforward[EFFORT] + self.computed[EFFORT])

    def combination(
        self, has_reference: bool, has_damping: bool, has_feedback: bool, has_feedforward: bool
    ) -> np.ndarray:
        """
        Return the parts of the torque as a matrix, shape (6, k), on the torques of a batch.

        The rows are those of ``TorqueParts``; friction and effort are not of the batch, and zero.
        The k columns are the rigid body's torques here at rest; with damping, under the
        acceleration qd; with feedback, here in motion, at rest under the reference's acceleration
        and under the feedback's; with feedforward, where the reference is at rest, in motion, and
        at rest under its acceleration.
        """
        key = (has_reference, has_damping, has_feedback, has_feedforward)
        known = self._combinations
        if key not in known:
            columns = [np.zeros(6)]
            here = columns[0]
            here[_GRAVITY_PART] = self.hold if has_reference else self.gravity
            if has_damping:
                columns.append(_column(_FEEDBACK_PART, -self.damping))
                here -= columns[-1]
            if has_feedback:
                columns += [
                    _column(_CORIOLIS_PART, self.computed[CORIOLIS]),
                    _column(_INERTIAL_PART, self.computed[INERTIAL]),
                    _column(_FEEDBACK_PART, 1.0),
                ]
                here -= columns[-3] + columns[-2] + columns[-1]
                here[_GRAVITY_PART] += self.computed[GRAVITY]
            if has_feedforward:
                moving = _column(_CORIOLIS_PART, self.feedforward[CORIOLIS])
                driven = _column(_INERTIAL_PART, self.feedforward[INERTIAL])
                there = _column(_GRAVITY_PART, self.feedforward[GRAVITY]) - moving - driven
                columns += [there, moving, driven]
            known[key] = np.stack(columns, axis=1)
        return known[key]

    def mixed(self, other: LawWeights, fraction: float) -> LawWeights:
        """Return the convex combination that has a fraction, 0 to 1, of the other's."""
        return LawWeights(
            *(
                (1.0 - fraction) * getattr(self, name) + fraction * getattr(other, name)
                for name in _COEFFICIENTS
            )
        )


_INERTIAL_PART, _CORIOLIS_PART, _GRAVITY_PART, _, _FEEDBACK_PART, _ = range(6)


def _column(part: int, coefficient: float) -> np.ndarray:
    result = np.zeros(6)
    result[part] = coefficient
    return result


_COEFFICIENTS = (
    'hold',
    'feedforward',
    'computed',
    'kp',
    'kd',
    'damping',
    'friction_slope',
    'limit_slope',
    'limit_damping',
)
