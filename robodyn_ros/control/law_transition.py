# SPDX-License-Identifier: Apache-2.0
"""A change of law: its coefficients move to those of the new one, torques stay between."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.computed_torque import InverseDynamics
from robodyn_ros.control.law_weights import LawWeights


class LawTransition:
    """
    The active weights, in transition to those of the latest law.

    Each joint's torque is between what the active laws ask for at the present state: see
    ``law_weights``. A change on the way begins where the way has come to, and a change to what is
    the goal already changes nothing.

    Parameters
    ----------
    weights : LawWeights
        The first ones.

    Attributes
    ----------
    goal : LawWeights
        Where the transition leads.
    """

    def __init__(self, weights: LawWeights) -> None:
        self.goal = weights
        self._origin = weights
        self._elapsed = 0.0
        self._duration = 0.0

    @property
    def is_under_way(self) -> bool:
        """Whether the goal is not yet reached."""
        return self._origin is not self.goal

    def begin(self, goal: LawWeights, duration: float) -> None:
        """Begin to move from the active weights to others, in a duration [s]."""
        if goal == self.goal:
            return
        self._origin, self.goal = self.weights(0.0), goal
        self._elapsed, self._duration = 0.0, duration

    def jump(self, goal: LawWeights) -> None:
        """Apply weights at once; the rate limit shapes what that does to the torque."""
        self._origin = self.goal = goal

    def advance(self, elapsed: float) -> None:
        """Let time pass [s]."""
        if self._origin is self.goal:
            return
        self._elapsed += elapsed
        if self._elapsed >= self._duration:
            self._origin = self.goal

    def weights(self, ahead: float) -> LawWeights:
        """Return the active weights a time [s] ahead."""
        elapsed = self._elapsed + ahead
        if self._origin is self.goal or elapsed >= self._duration:
            return self.goal
        return self._origin.mixed(self.goal, elapsed / self._duration)


class BlendedDynamics:
    """
    An inverse dynamics on its way to another, for joints that no rate limit protects from a step.

    Every torque is linear in the inverse dynamics, so that the torque of a law with the blend is
    the blend of its torques with the one and the other.

    Parameters
    ----------
    origin, goal : callable
        As in ``ControlLaw``.
    duration : float
        [s]
    """

    def __init__(self, origin: InverseDynamics, goal: InverseDynamics, duration: float) -> None:
        self.goal = goal
        self._origin = origin
        self._elapsed = 0.0
        self._duration = duration

    @property
    def is_over(self) -> bool:
        """Whether the goal is reached."""
        return self._elapsed >= self._duration

    def advance(self, elapsed: float) -> None:
        """Let time pass [s]."""
        self._elapsed += elapsed

    def __call__(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the blend of the torques, shape (N, n)."""
        if self.is_over:
            return self.goal(q, qd, qdd)
        fraction = self._elapsed / self._duration
        return (1.0 - fraction) * self._origin(q, qd, qdd) + fraction * self.goal(q, qd, qdd)
