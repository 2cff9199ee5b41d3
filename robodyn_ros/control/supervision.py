# SPDX-License-Identifier: Apache-2.0
"""Which states are believed, and whether the arm goes where it is sent."""

from __future__ import annotations

from robodyn_ros.control.computed_torque import ControlLaw, gravity_overload
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.plausibility import Plausibility, overspeed
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.reference_follower import ReferenceFollower
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.stamp_clock import ElapsedTime, StampClock
from robodyn_ros.errors import FollowsNone, RejectedTrajectory


class Supervision:
    """
    Looks at each state before it is commanded for, and remembers what was wrong.

    Parameters
    ----------
    elapsed : ElapsedTime
        Knows whether the states' stamps are of a clock that runs at any pace.

    Attributes
    ----------
    clock : StampClock
        Of the states' stamps.
    last_fault : str
        Why a reference was last given up, or commanding refused; empty: it was not.
    implausible_states, following_errors : int
        States that no joint can have come to; references that were given up because the arm was
        too far away.
    """

    def __init__(self, elapsed: ElapsedTime) -> None:
        self.clock = StampClock(elapsed)
        self.implausible_states = 0
        self.following_errors = 0
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next state."""
        self.last_fault = ''
        self.clock.reset()
        self._plausibility = Plausibility()
        self._is_too_fast = False

    def state_to_follow_from(
        self, law: ControlLaw, state: MeasuredState | None, last_cycle: float, is_stale: bool
    ) -> MeasuredState:
        """
        Return the state that a trajectory can begin at.

        Parameters
        ----------
        law : ControlLaw
            The latest.
        state : MeasuredState or None
            Of the last valid cycle.
        last_cycle : float
            When that was, by the steady clock [s].
        is_stale : bool
            Whether states have stopped coming since.

        Raises
        ------
        FollowsNone
            The mode does.
        RejectedTrajectory
            Stamps that do not keep pace with time, or no fresh state with known velocities.
        """
        if law.mode == 'gravity_compensation':
            raise FollowsNone(
                'trajectory',
                'the mode is gravity_compensation',
                'set parameter mode to feedforward or computed_torque',
            )
        if not self.clock.may_be_followed(last_cycle):
            how = 'stand still' if self.clock.is_stopped else 'run faster or slower than time'
            raise RejectedTrajectory(
                'trajectory', f"while the joint states' stamps {how}", 'a clock that keeps pace'
            )
        if state is None or is_stale or not state.has_velocities:
            raise RejectedTrajectory(
                'trajectory',
                'without a fresh joint state',
                'trajectories once positions and velocities of all joints are known',
            )
        return state

    def is_overloaded(
        self,
        law: ControlLaw,
        state: MeasuredState,
        settings: SafetySettings,
        limits: ReferenceLimits,
    ) -> bool:
        """Return whether a joint's drive cannot carry the arm where it is."""
        overload = gravity_overload(
            law, state.position, settings.effort_limits, limits.joint_names
        )
        if overload:
            self.last_fault = overload
        return bool(overload)

    def is_believed(
        self,
        state: MeasuredState,
        last: MeasuredState,
        elapsed: float,
        follower: ReferenceFollower,
        law: ControlLaw,
        longest: float,
        limits: ReferenceLimits,
    ) -> bool:
        """
        Return whether the joints can have come to a state from the last one.

        Parameters
        ----------
        elapsed : float
            Steady time in between [s].
        follower, law
            A reference is given up where the arm is suddenly elsewhere.
        longest : float
            That a simulation may run ahead of steady time [s].
        limits : ReferenceLimits
        """
        stamped = state.time - last.time
        if elapsed < stamped <= longest:
            elapsed = stamped
        verdict = self._plausibility.verdict(state, last, elapsed, limits)
        self.implausible_states += verdict != 'plausible'
        if verdict == 'jump' and follower.reference is not None:
            self.last_fault = 'a position changed faster than its joint can move'
            follower.give_up(law, self.last_fault)
        return verdict != 'outlier'

    def believe(self) -> None:
        """Take note of a state that is near the last one."""
        self._plausibility.believe()

    def is_too_fast(
        self, state: MeasuredState, follower: ReferenceFollower, limits: ReferenceLimits
    ) -> bool:
        """Return whether a joint is faster than it may be; a reference is dropped then."""
        fault = overspeed(state, limits)
        if fault:
            if not self._is_too_fast:  # told once, not with the speed of every cycle
                self.last_fault = fault
            follower.drop(fault)
        self._is_too_fast = bool(fault)
        return self._is_too_fast

    def reference(
        self,
        law: ControlLaw,
        follower: ReferenceFollower,
        state: MeasuredState,
        is_clock_believed: bool,
        settings: SafetySettings,
        limits: ReferenceLimits,
    ) -> ReferenceState | None:
        """
        Return what is to be followed now, None: nothing.

        Before, a reference that cannot be followed on is given up, and braked where it is due.
        """
        wanted = follower.sample(state.time)
        fault = follower.fault(law, state, wanted, is_clock_believed, settings, limits)
        if fault:
            self.last_fault = fault
            self.following_errors += 'max_following_error' in fault
            follower.give_up(law, fault)
            wanted = None
        if not is_clock_believed:
            follower.end_fading()
        elif follower.is_brake_due and state.has_velocities:
            q, qd, time = state.position, state.velocity, state.time
            follower.brake(law, q, qd, time, settings, limits)
            wanted = follower.sample(time)
        return wanted
