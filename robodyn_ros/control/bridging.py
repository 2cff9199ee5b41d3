# SPDX-License-Identifier: Apache-2.0
"""
What a short gap between joint states is bridged with: the state that the motion leads to.

A torque that stays as it is soon fits neither the motion nor gravity, and an arm without friction
runs away from where it was to go: 100 ms in a motion of two seconds may double its kinetic energy.
So, while a state is late but not stale, the commands go on for where the arm should be by now: its
errors from the reference move on as they last moved, and without a reference it coasts. Once the
state is stale, what followed a reference is braked from there by the model alone; the gravity that
is held then is that of where this ends.
"""

from __future__ import annotations

from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.reference_follower import ReferenceFollower

SHORTEST_GAP, LONGEST_GAP = 0.02, 0.15
"""Shorter gaps need no bridge; over longer ones a prediction is worth nothing [s]."""

_MISSED_STATES = 3.0  # a state is late after so many periods
_WEIGHT = 0.1  # of the newest gap in the mean period


class Bridging:
    """
    Knows how often states come, and so when one is late.

    Parameters
    ----------
    is_time_simulated : bool
        Whether the states' time may stand still or run at any pace: nothing is predicted then.
    """

    def __init__(self, is_time_simulated: bool) -> None:
        self._is_time_simulated = is_time_simulated
        self._period = 0.0  # mean [s]

    def note(self, elapsed: float) -> None:
        """Take note of the time between two states [s]."""
        self._period += _WEIGHT * (elapsed - self._period)

    def predicts(self, state: MeasuredState) -> bool:
        """Return whether it is known where the arm goes from a state."""
        return not self._is_time_simulated and state.has_velocities

    def is_due(self, state: MeasuredState, gap: float) -> bool:
        """Return whether a time [s] without states since the last one is to be bridged."""
        if not self.predicts(state):
            return False
        return max(SHORTEST_GAP, _MISSED_STATES * self._period) < gap <= LONGEST_GAP

    def expected_state(
        self, follower: ReferenceFollower, state: MeasuredState, gap: float
    ) -> MeasuredState:
        """
        Return where the arm should be a time [s] after its last measured state.

        Over gaps longer than ``LONGEST_GAP`` it is where the arm should be after that; where
        nothing is predicted, the measured state.
        """
        if not self.predicts(state):
            return state
        ahead = min(gap, LONGEST_GAP)
        before, wanted = follower.sample(state.time), follower.sample(state.time + ahead)
        position = state.position + ahead * state.velocity
        velocity = state.velocity
        if before is not None and wanted is not None:
            position = position + wanted.position - before.position - ahead * before.velocity
            velocity = velocity + wanted.velocity - before.velocity
        return state._replace(position=position, velocity=velocity, time=state.time + ahead)
