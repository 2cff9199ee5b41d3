# SPDX-License-Identifier: Apache-2.0
"""Whether a joint can have come from one measured state to the next, and moves as it may."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.computed_torque import wrapped
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.planning import ReferenceLimits

PLAUSIBLE_SPEED = 2.0
"""A joint's position may change so many times faster than its velocity limit."""

OVERSPEED = 1.5
"""Of its velocity limit: a joint that is faster is driven by no reference of ours."""

PLAUSIBLE_STEP = 0.05
"""And by so much more between two states, for noise [rad] or [m]."""


class Plausibility:
    """
    Holds each state against the last one that was believed.

    One state that the joints cannot have come to is an outlier, and not believed. A second one
    that agrees with it is where the arm is, and where it was before is no longer known.
    """

    def __init__(self) -> None:
        self._doubted: MeasuredState | None = None

    def believe(self) -> None:
        """Doubt no state before this one any more."""
        self._doubted = None

    def verdict(
        self,
        state: MeasuredState,
        last: MeasuredState,
        elapsed: float,
        limits: ReferenceLimits,
    ) -> str:
        """
        Return 'plausible', 'outlier' or 'jump'.

        Parameters
        ----------
        state, last : MeasuredState
            Now, and when it was believed last.
        elapsed : float
            Time in between [s].
        limits : ReferenceLimits
            Knows the velocity limits, and which joints turn without end.
        """
        if _is_reachable(state, last, elapsed, limits):
            self._doubted = None
            return 'plausible'
        before, self._doubted = self._doubted, state
        if before is None or not _is_reachable(state, before, elapsed, limits):
            return 'outlier'
        self._doubted = None
        return 'jump'


def overspeed(state: MeasuredState, limits: ReferenceLimits) -> str:
    """
    Return which joint moves faster than it may, in words; empty: none does.

    A velocity that is not known (NaN) is not too fast.
    """
    velocities = state.velocity.tolist()
    if max(map(abs, velocities)) <= limits.lowest_velocity_limit:  # quicker, and nearly always so
        return ''
    for i, (velocity, limit) in enumerate(zip(velocities, limits.velocity_limits.tolist())):
        if abs(velocity) > OVERSPEED * limit:
            return (
                f'joint {limits.joint_names[i]!r} moves at {velocity:.3g} rad/s or m/s; '
                f'allowed: {OVERSPEED:g} times its velocity limit of {limit:g}'
            )
    return ''


def _is_reachable(
    state: MeasuredState, last: MeasuredState, elapsed: float, limits: ReferenceLimits
) -> bool:
    displacement = state.position - last.position
    if max(map(abs, displacement.tolist())) <= PLAUSIBLE_STEP:  # quicker, and nearly always so
        return True
    displacement = np.where(limits.continuous, wrapped(displacement), displacement)
    reach = PLAUSIBLE_SPEED * limits.velocity_limits * elapsed + PLAUSIBLE_STEP
    return bool((np.abs(displacement) <= reach).all())
