# SPDX-License-Identifier: Apache-2.0
"""
Everything that stands between the control law and the wire.

``CommandPipeline.step`` turns a complete joint state into a command, ``watchdog`` says what to do
when joint states stop coming, and ``stop_command`` what to leave behind. Each returns a command or
nothing. The order is: control law, soft joint limits (behind an effort clip of their own), finite
check, effort clip, rate limit, effort clip; no torque leaves this module otherwise.

No change throws the arm. A change of mode, gains or terms fades: each joint's torque stays
between what the active laws ask for at the present state (``law_transition``). A new reference,
a payload or gravity, enabling and recovery act at once, at the pace of the rate limit. A reference
that ends early is braked to rest (``braking``) where there is feedback; in feedforward it fades to
gravity; and where gravity compensation takes over a moving arm, damping brings it to rest.

Two clocks are kept apart. Steady time (the argument ``now``) measures staleness, the rate limit
and transitions. The time of the joint states (``MeasuredState.time``) moves references, while it
keeps pace with the steady one (``stamp_clock``); simulated time moves both, so that a simulation
gives the same torques at any pace.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from robodyn_ros.control.active_law import ActiveLaw
from robodyn_ros.control.braking import is_at_rest
from robodyn_ros.control.command import Command
from robodyn_ros.control.computed_torque import ControlLaw, TorqueParts, gravity_overload
from robodyn_ros.control.fallback import Fallback
from robodyn_ros.control.joint_state_buffer import JointStateBuffer, MeasuredState
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.plausibility import Plausibility
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.reference_follower import ReferenceFollower
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.soft_joint_limit import soft_limited
from robodyn_ros.control.stamp_clock import StampClock
from robodyn_ros.control.torque_limits import TorqueLimiter
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import NonFiniteValue, RejectedTrajectory


class CommandPipeline:
    """
    The state machine behind the commands: enabled or not, fresh or stale, following or not.

    Parameters
    ----------
    law : ControlLaw
        What to command while all is well.
    joint_states : JointStateBuffer
        Asked for staleness only; the states themselves come through ``step``.
    settings : SafetySettings
        What never to exceed, and what to do when states stop.
    reference_limits : ReferenceLimits
        What a trajectory must respect.
    is_time_simulated : bool
        Whether the states' stamps are of a clock that runs at any pace.

    Attributes
    ----------
    last_fault : str
        Why a reference was last given up, or commanding refused; empty: it was not.
    refused_torques, implausible_states, following_errors : int
        Cycles without a finite torque; states that no joint can have come to; references that were
        given up because the arm was too far away.
    """

    def __init__(
        self,
        law: ControlLaw,
        joint_states: JointStateBuffer,
        settings: SafetySettings,
        reference_limits: ReferenceLimits,
        *,
        is_time_simulated: bool = False,
    ) -> None:
        self.settings = settings
        self.reference_limits = reference_limits
        self.is_enabled = False
        self.last_fault = ''
        self.refused_torques = 0
        self.implausible_states = 0
        self.following_errors = 0
        self._joint_states = joint_states
        self._law = ActiveLaw(law)
        self._follower = ReferenceFollower()
        self._clock = StampClock(is_time_simulated)
        self._plausibility = Plausibility()
        self._limiter = TorqueLimiter()
        self._state: MeasuredState | None = None  # of the last valid cycle since enabling
        self._last_cycle = -np.inf
        self._elapsed = 0.0  # since the last valid cycle [s]
        self._fallback = Fallback()
        self._is_stopping = False

    # --- what is asked of it ---------------------------------------------------------------

    def enable(self, now: float) -> None:
        """Begin to command with the next complete state."""
        if self.is_enabled:
            return
        self.is_enabled = True
        self.last_fault = ''
        self._state = None
        self._last_cycle = now
        self._elapsed = 0.0
        self._clock.reset()
        self._plausibility = Plausibility()
        self._fallback = Fallback()
        self._is_stopping = False
        self._law.jump()
        self._follower.forget()

    def disable(self) -> None:
        """Command nothing more; ``stop_command`` comes before."""
        self.is_enabled = False
        self._is_stopping = False
        self._follower.forget()

    def change_law(self, law: ControlLaw) -> None:
        """
        Take another mode, other gains or other terms; the active law fades into it.

        A reference is kept while an active law follows one. Where feedback begins far from it,
        the arm is braked where it is instead.
        """
        begins_feedback = law.weights.has_feedback and not self._law.goal.has_feedback
        is_moving = self._state is not None and not is_at_rest(self._state.velocity)
        is_damped = self._law.goal.damping != 0.0 or (
            is_moving and self._follower.reference is not None
        )
        self._law.change(law, self.settings.ramp_time, self.settings.damping if is_damped else 0.0)
        if begins_feedback and self._follower.is_far(law, self._state, self.reference_limits):
            self._follower.give_up(law, 'feedback began while the arm was far from the reference')

    def change_model(self, law: ControlLaw) -> None:
        """
        Take the same law for another payload or gravity; the reference and the feedback go on.

        The next cycle commands what the new model asks for, and the rate limit shapes the change
        of torque. Where a joint has none, the old model fades into the new one.
        """
        if self._state is not None:
            self._fallback.change_gravity(law.gravity_torque(self._state.position))
        is_shaped = np.isfinite(self.settings.torque_rate_limits).all() or self._state is None
        self._law.change_model(law, 0.0 if is_shaped else self.settings.ramp_time)

    def follow(self, trajectory: Trajectory) -> None:
        """
        Follow a trajectory from now on.

        Raises
        ------
        RejectedTrajectory
            Disabled or stopping, a mode that follows none, no fresh joint state with known
            velocities, stamps that do not keep pace with time, or what ``planned_reference``
            refuses. What was followed before is still followed.
        """
        state = self._state
        if not self.is_enabled or self._is_stopping:
            raise RejectedTrajectory('trajectory', 'while disabled', 'an enabled, active node')
        if self.law.mode == 'gravity_compensation':
            raise RejectedTrajectory(
                'trajectory', 'in mode gravity_compensation', 'feedforward or computed_torque'
            )
        if not self._clock.may_be_followed(self._last_cycle):
            how = 'stand still' if self._clock.is_stopped else 'run faster or slower than time'
            raise RejectedTrajectory(
                'trajectory', f"while the joint states' stamps {how}", 'a clock that keeps pace'
            )
        if state is None or self.is_stale or not np.isfinite(state.velocity).all():
            raise RejectedTrajectory(
                'trajectory',
                'without a fresh joint state',
                'trajectories once positions and velocities of all joints are known',
            )
        self._follower.follow(trajectory, state, self.reference_limits)
        self.last_fault = ''
        self._law.end_damping(self.settings.ramp_time)

    def cancel(self) -> None:
        """Follow nothing any more: brake to rest and hold, or fade; a fault is taken note of."""
        self.last_fault = ''
        if self._state is not None and not self._follower.is_braking:
            self._follower.end(self.law, self._state.time, self.settings, self.reference_limits)

    def begin_stop(self) -> None:
        """Bring a moving arm to rest, until ``has_stopped``; no trajectory is taken any more."""
        if not self.is_enabled or self._is_stopping:
            return
        self._is_stopping = True
        if self._follower.is_idle:
            self._law.jump(self.settings.damping)
        else:
            self.cancel()

    def continue_from(self, torque: np.ndarray, sent: float) -> None:
        """
        Go on from a torque that another commanded in this one's place, sent at a steady time [s].

        It is as if states had been stale: what was followed before is given up.
        """
        self._limiter.last_torque, self._limiter.last_sent = torque, sent
        if self._state is not None:
            self._become_stale(self._state, sent)

    # --- what it commands ------------------------------------------------------------------

    def step(self, state: MeasuredState, now: float) -> Command | None:
        """
        Return the command of one control cycle, or None where there must be none.

        Parameters
        ----------
        state : MeasuredState
            Every joint refreshed since the last cycle.
        now : float
            Steady time [s].
        """
        if not self.is_enabled or self._joint_states.stale_joints(now):
            return None
        if not self._is_believed(state, now):
            return None
        reading = self._clock.advance(state.time, now, self.settings.state_timeout)
        self._elapsed += reading.elapsed
        if self._state is None:
            overload = gravity_overload(
                self.law,
                state.position,
                self.settings.effort_limits,
                self.reference_limits.joint_names,
            )
            if overload:
                self.last_fault = overload
                self.refused_torques += 1
                return None
            if now - self._limiter.last_sent >= self.settings.state_timeout:
                self._limiter.forget()  # others may have commanded since, or brakes hold the arm
            self._law.jump(self.settings.damping)
        elif self.is_stale:
            # At the pace of the rate limit alone.
            self._law.jump(0.0 if self._follower.is_brake_due else self.settings.damping)
        law = self._law.at(self._elapsed)
        reference = self._supervised_reference(state, reading.is_believed)
        torque = None
        try:
            with np.errstate(over='ignore', invalid='ignore'):
                parts = self._follower.faded(
                    law.torque(state.position, state.velocity, reference),
                    law,
                    state,
                    self._elapsed,
                    self.settings.ramp_time,
                )
                torque, penetration = soft_limited(
                    parts.total,
                    law,
                    state,
                    self.settings.effort_limits,
                    self.reference_limits.position_limits,
                )
        except NonFiniteValue:  # an overflow on the way to the model
            pass
        if torque is None or not _is_finite(torque):
            self.refused_torques += 1
            return None
        self._advance(state)
        self._state = state
        self._last_cycle = now
        self._fallback.end()
        return self._limited(torque, state, now, parts, reference, penetration)

    def watchdog(self, now: float) -> Command | None:
        """
        Return the command that a stale state asks for at this time, or None.

        Call it once per watchdog period. A state is stale when a joint is, or when no cycle gave
        a valid torque for as long.
        """
        if not self.is_enabled or self._state is None:
            return None
        overdue = now - self._last_cycle > self.settings.state_timeout
        if not overdue and not self._joint_states.stale_joints(now):
            return None
        self._become_stale(self._state, now)
        torque = self._fallback.stale_torque(self.settings, now)
        return None if torque is None else self._limited(torque, self._state, now)

    def stop_command(self, now: float) -> Command | None:
        """
        Return the next command on the way to what ``on_stop`` says; None once it was sent.

        Call it again and again when commanding is to end, with ``begin_stop`` before, where the
        arm moves, and ``disable`` behind. The way there obeys the rate limit like any other: with
        no limit it is one command. Where it leads is decided at the first call, for the last valid
        state.
        """
        if not self.is_enabled or self._state is None or self._fallback.is_stop_command_sent:
            return None
        gravity = self.law.gravity_torque(self._state.position)
        torque = self._fallback.stop_torque(self.settings, gravity)
        if torque is None:
            return None
        command = self._limited(torque, self._state, now)
        self._fallback.is_stop_command_sent = not command.rate_limited.any()
        return command

    def sent(self, now: float) -> None:
        """
        Note that the last command was on the wire by a steady time [s].

        With it, the rate limit holds between commands as they are sent, whatever held up a cycle.
        """
        self._limiter.last_sent = max(self._limiter.last_sent, now)

    # --- what it says about itself ---------------------------------------------------------

    @property
    def law(self) -> ControlLaw:
        """The latest law; the active one may still be in transition to it."""
        return self._law.latest

    @property
    def is_stale(self) -> bool:
        """Whether the watchdog found the state stale and no valid cycle came since."""
        return self._fallback.stale_since is not None

    @property
    def has_stopped(self) -> bool:
        """Whether there is nothing to wait for before the stop command: no motion, no states."""
        if self._state is None or self.is_stale or self.law.mode == 'feedforward':
            return True
        if self._follower.is_brake_due or self.reference_status == 'braking':
            return False
        return is_at_rest(self._state.velocity) or np.isnan(self._state.velocity).any()

    @property
    def fallback(self) -> str:
        """The action under way: one of ``ACTIONS``, or none."""
        return self._fallback.action(self.settings)

    @property
    def state(self) -> MeasuredState | None:
        """The state of the last valid cycle since enabling."""
        return self._state

    @property
    def last_torque(self) -> np.ndarray | None:
        """The last command, shape (n,) [N m] or [N]; None before the first."""
        return self._limiter.last_torque

    @property
    def dropped_references(self) -> int:
        """How many references were given up though nobody asked for it."""
        return self._follower.drops

    @property
    def last_drop(self) -> str:
        """Why the last one was; empty: none was."""
        return self._follower.last_drop

    @property
    def reference_status(self) -> str:
        """One of: none, waiting, moving, braking, holding."""
        return 'none' if self._state is None else self._follower.status(self._state.time)

    # --- how -------------------------------------------------------------------------------

    def _become_stale(self, state: MeasuredState, now: float) -> None:
        """Give up what is followed, once."""
        if self.is_stale:
            return
        if self._follower.reference is not None:
            stale = ', '.join(self._joint_states.stale_joints(now))
            self._follower.give_up(self.law, f'no fresh state of {stale or "the arm"}')
        self._follower.end_fading()
        self._fallback.begin(self.law.gravity_torque(state.position), now)

    def _supervised_reference(
        self, state: MeasuredState, is_clock_believed: bool
    ) -> ReferenceState | None:
        """
        Return what is to be followed now, None: nothing.

        Before, a reference that cannot be followed on is given up, and braked where it is due.
        """
        follower, law = self._follower, self.law
        wanted = follower.sample(state.time)
        fault = follower.fault(
            law, state, wanted, is_clock_believed, self.settings, self.reference_limits
        )
        if fault:
            self.last_fault = fault
            self.following_errors += 'max_following_error' in fault
            follower.give_up(law, fault)
            wanted = None
        if not is_clock_believed:
            follower.end_fading()
        elif follower.is_brake_due and _is_finite(state.velocity):
            q, qd, time = state.position, state.velocity, state.time
            follower.brake(law, q, qd, time, self.settings, self.reference_limits)
            wanted = follower.sample(time)
        return wanted

    def _advance(self, state: MeasuredState) -> None:
        """Let the time since the last valid cycle pass, for all that fades."""
        elapsed, self._elapsed = self._elapsed, 0.0
        self._law.advance(elapsed, state.velocity, self.settings.ramp_time)
        self._follower.advance(elapsed, self.settings.ramp_time)
        if not self._law.follows:
            self._follower.drop(f'mode {self.law.mode} follows none')

    def _is_believed(self, state: MeasuredState, now: float) -> bool:
        """Return whether the joints can have come here since the last cycle."""
        last = self._state
        if last is None or self.is_stale:
            return True
        elapsed, stamped = now - self._last_cycle, state.time - last.time
        if elapsed < stamped <= self.settings.state_timeout:
            elapsed = stamped  # a simulation may run ahead of time
        verdict = self._plausibility.verdict(state, last, elapsed, self.reference_limits)
        self.implausible_states += verdict != 'plausible'
        if verdict == 'jump' and self._follower.reference is not None:
            self.last_fault = 'a position changed faster than its joint can move'
            self._follower.give_up(self.law, self.last_fault)
        return verdict != 'outlier'

    def _limited(
        self,
        torque: np.ndarray,
        state: MeasuredState,
        now: float,
        parts: TorqueParts | None = None,
        reference: ReferenceState | None = None,
        penetration: np.ndarray | None = None,
    ) -> Command:
        """Return the command after the limits; it counts as sent."""
        limited = self._limiter.limited(
            torque, self.settings.effort_limits, self.settings.torque_rate_limits, now
        )
        is_beyond = penetration != 0.0 if penetration is not None else np.zeros(len(torque), bool)
        return Command(*limited, is_beyond, parts, state, reference)


def _is_finite(values: np.ndarray) -> bool:
    """Return whether all are; on arrays this short, quicker than numpy's way."""
    return all(map(isfinite, values.tolist()))
