# SPDX-License-Identifier: Apache-2.0
"""The active law: the latest one, or a transition to it, with the damping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robodyn_ros.control.braking import is_at_rest
from robodyn_ros.control.computed_torque import ControlLaw
from robodyn_ros.control.law_transition import BlendedDynamics, LawTransition
from robodyn_ros.control.law_weights import LawWeights

_DAMPING_TIMES = 10.0  # time constants after which damping ends although an arm is kept moving


class ActiveLaw:
    """
    The latest law, and the transition to it.

    Attributes
    ----------
    latest : ControlLaw
        What was asked for last.
    """

    def __init__(self, law: ControlLaw) -> None:
        self.latest = law
        self._transition = LawTransition(law.weights)
        self._awaited_model: ControlLaw | None = None  # until a blend under way is over
        self._mixed = law  # the latest with the weights of some time
        self._mixed_from = law
        self._damped = 0.0  # time since damping began [s]

    @property
    def goal(self) -> LawWeights:
        """The coefficients that it is on its way to."""
        return self._transition.goal

    @property
    def follows(self) -> bool:
        """Whether a reference makes a difference, or does until the transition is over."""
        return self._transition.is_under_way or self.goal.follows

    @property
    def is_steady(self) -> bool:
        """Whether nothing of it changes with time."""
        return (
            not self._transition.is_under_way
            and self.goal.damping == 0.0
            and not isinstance(self.latest.inverse_dynamics, BlendedDynamics)
        )

    def at(self, ahead: float) -> ControlLaw:
        """Return the active law a time [s] ahead."""
        weights = self._transition.weights(ahead)
        if weights is not self._mixed.weights or self._mixed_from is not self.latest:
            self._mixed_from = self.latest
            self._mixed = self.latest.with_weights(weights)
        return self._mixed

    def change(self, law: ControlLaw, duration: float, damping: float) -> None:
        """Fade into another mode, other gains or terms in a duration [s], with damping [1/s]."""
        before, self.latest = self.latest, law
        goal = law.weights
        if goal == before.weights:
            return
        if damping != 0.0 and law.mode == 'gravity_compensation':
            goal = replace(goal, damping=damping)
            self._damped = 0.0
        self._transition.begin(goal, duration)

    def change_model(self, law: ControlLaw, duration: float) -> None:
        """Take the same law for another load, in a duration [s]; a change under way ends first."""
        old = self.latest.inverse_dynamics
        if duration <= 0.0:
            self.latest = law
        elif isinstance(old, BlendedDynamics) and not old.is_over:
            self._awaited_model = law
        else:
            old = old.goal if isinstance(old, BlendedDynamics) else old
            blend = BlendedDynamics(old, law.inverse_dynamics, duration)
            self.latest = replace(law, inverse_dynamics=blend)

    def jump(self, damping: float = 0.0) -> None:
        """Apply the latest law at once, with damping [1/s]; the rate limit shapes it."""
        weights = self.latest.weights
        if damping != 0.0 and self.latest.mode != 'feedforward':
            weights = replace(weights, damping=damping)
            self._damped = 0.0
        self._transition.jump(weights)

    def end_damping(self, duration: float) -> None:
        """Fade the damping out in a duration [s]."""
        if self.goal.damping != 0.0:
            self._transition.begin(replace(self.goal, damping=0.0), duration)

    def advance(self, elapsed: float, velocity: np.ndarray, duration: float) -> None:
        """Let time pass [s], at a velocity (n,); what begins by it takes the duration [s]."""
        self._transition.advance(elapsed)
        dynamics = self.latest.inverse_dynamics
        if isinstance(dynamics, BlendedDynamics):
            dynamics.advance(elapsed)
            if dynamics.is_over:
                self.latest = replace(self.latest, inverse_dynamics=dynamics.goal)
                awaited, self._awaited_model = self._awaited_model, None
                if awaited is not None:
                    self.change_model(awaited, duration)
        if self.goal.damping != 0.0 and not self._transition.is_under_way:
            self._damped += elapsed
            if is_at_rest(velocity) or self._damped * self.goal.damping > _DAMPING_TIMES:
                self.end_damping(duration)
