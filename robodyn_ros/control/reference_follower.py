# SPDX-License-Identifier: Apache-2.0
"""What is followed, and how following ends: at its own end, braked, or fading."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.braking import REST_SPEED, STILL, braking_reference, is_at_rest
from robodyn_ros.control.computed_torque import ControlLaw, TorqueParts
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.planning import ReferenceLimits, planned_reference
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.trajectory import Trajectory

SETTLING_TIME, LONGEST_SETTLING = 0.3, 0.8
"""
After a brake, before a torque is left behind that stays as it is, at least; and at most, for all
joints to be ``STILL`` [s]: without friction what is left of the motion grows tenfold in a quarter
of a second.
"""


class ReferenceFollower:
    """
    The active reference, if there is one.

    Attributes
    ----------
    reference : Reference or None
        What is followed, the brake to rest included.
    is_braking : bool
        Whether it leads to rest, and nobody asked for it.
    is_brake_due : bool
        Whether the arm is to be braked as soon as its velocities are known.
    drops : int
        References that were given up though nobody asked for it.
    last_drop : str
        Why the last one was; empty: none was.
    """

    def __init__(self) -> None:
        self.drops = 0
        self.last_drop = ''
        self.forget()

    def forget(self) -> None:
        """Follow nothing any more."""
        self.reference: Reference | None = None
        self.is_braking = self.is_brake_due = False
        self._fading: Reference | None = None  # what of a feedforward is left
        self._fade = 0.0  # time since it began to fade [s]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is followed, and nothing of it is left."""
        return self.reference is None and self._fading is None and not self.is_brake_due

    @property
    def is_fading(self) -> bool:
        """Whether something of a reference is left that is no longer followed."""
        return self._fading is not None

    def follow(
        self, trajectory: Trajectory, state: MeasuredState, limits: ReferenceLimits
    ) -> None:
        """
        Follow a trajectory from a measured state, or from what is followed, on.

        Raises
        ------
        RejectedTrajectory
            What ``planned_reference`` refuses; what was followed before is still followed.
        """
        zero = np.zeros_like(state.position)
        measured = ReferenceState(state.position, state.velocity, zero, zero)
        planned = planned_reference(trajectory, state.time, measured, self.reference, limits)
        self.forget()
        self.reference = planned

    def sample(self, time: float) -> ReferenceState | None:
        """Return what is to be followed at a time [s]; None: nothing."""
        return None if self.reference is None else self.reference.sample(time)

    def status(self, time: float) -> str:
        """Return one of: none, waiting, moving, braking, holding."""
        if self.reference is None:
            return 'none'
        if time < self.reference.knots[0]:
            return 'waiting'
        if self.reference.is_finished(time):
            return 'holding'
        return 'braking' if self.is_braking else 'moving'

    def has_settled(self, velocity: np.ndarray, time: float) -> bool:
        """Return whether no brake is under way, or its last errors have faded."""
        if self.reference is None or not self.is_braking:
            return is_at_rest(velocity)
        since = time - self.reference.knots[-1]
        if since < SETTLING_TIME:
            return False
        return is_at_rest(velocity, STILL if since < LONGEST_SETTLING else REST_SPEED)

    def end(
        self, law: ControlLaw, time: float, settings: SafetySettings, limits: ReferenceLimits
    ) -> None:
        """End what is followed: brake along it where the law has feedback, or let it fade."""
        reference = self.reference
        self.forget()
        if reference is None:
            return
        if law.weights.has_feedback:
            wanted = reference.sample(time)
            self.brake(law, wanted.position, wanted.velocity, time, settings, limits)
        elif law.weights.has_feedforward:
            self._fading = reference

    def drop(self, why: str) -> None:
        """Follow nothing any more, for a reason that is kept."""
        if self.reference is not None and not self.is_braking:
            self.drops += 1
            self.last_drop = why
        self.forget()

    def give_up(self, law: ControlLaw, why: str) -> None:
        """End what is followed; brake from the measured state, where the law has feedback."""
        self.drop(why)
        self.is_brake_due = law.weights.has_feedback

    def is_far(
        self, law: ControlLaw, state: MeasuredState | None, limits: ReferenceLimits
    ) -> bool:
        """Return whether the arm is too far from the reference for feedback to begin."""
        if self.reference is None or state is None:
            return False
        error = law.position_error(state.position, self.reference.sample(state.time).position)
        return bool((np.abs(error) > limits.max_reference_step).any())

    def fault(
        self,
        law: ControlLaw,
        state: MeasuredState,
        wanted: ReferenceState | None,
        is_clock_believed: bool,
        settings: SafetySettings,
        limits: ReferenceLimits,
    ) -> str:
        """Return why what is wanted now cannot be followed on, in words; empty: it can."""
        if wanted is None:
            return ''
        if not is_clock_believed:
            return "the joint states' stamps jumped, stopped or do not keep pace with time"
        if not state.has_velocities:
            return 'velocities are no longer known'
        largest = settings.max_following_error
        if not law.weights.follows or largest == np.inf:
            return ''
        error = np.abs(law.position_error(state.position, wanted.position)).tolist()
        worst = max(range(len(error)), key=error.__getitem__)
        if error[worst] <= largest:
            return ''
        return (
            f'joint {limits.joint_names[worst]!r} is {error[worst]:.3g} rad or m from its '
            f'reference; allowed: max_following_error = {largest:g}'
        )

    def brake(
        self,
        law: ControlLaw,
        position: np.ndarray,
        velocity: np.ndarray,
        time: float,
        settings: SafetySettings,
        limits: ReferenceLimits,
    ) -> None:
        """Follow a brake to rest from a position and velocity, shape (n,), and hold there."""
        self.forget()
        self.reference = brake_to_rest(law, position, velocity, time, settings, limits)
        self.is_braking = True

    def end_fading(self) -> None:
        """Let nothing be left of a reference that fades; the rate limit shapes what that does."""
        self._fading = None

    def faded(
        self,
        parts: TorqueParts,
        law: ControlLaw,
        state: MeasuredState,
        ahead: float,
        duration: float,
    ) -> TorqueParts:
        """Return the parts of a torque without reference with what is left of one that fades."""
        if self._fading is None:
            return parts
        rest = 1.0 - min((self._fade + ahead) / max(duration, 1e-9), 1.0)
        followed = law.torque(state.position, state.velocity, self._fading.sample(state.time))
        return TorqueParts(*(rest * a + (1.0 - rest) * b for a, b in zip(followed, parts)))

    def advance(self, elapsed: float, duration: float) -> None:
        """Let time pass [s]; fading takes the duration [s]."""
        if self._fading is not None:
            self._fade += elapsed
            if self._fade >= duration:
                self._fading = None


def brake_to_rest(
    law: ControlLaw,
    position: np.ndarray,
    velocity: np.ndarray,
    time: float,
    settings: SafetySettings,
    limits: ReferenceLimits,
) -> Reference:
    """Return the brake to rest from a position and velocity, shape (n,), at a time [s]."""
    acceleration = settings.braking_acceleration
    return braking_reference(
        law,
        position,
        velocity,
        time,
        effort_limits=settings.effort_limits,
        rate_limits=settings.torque_rate_limits,
        braking_acceleration=(
            np.full_like(position, np.inf) if acceleration is None else acceleration
        ),
        position_limits=limits.position_limits,
    )
