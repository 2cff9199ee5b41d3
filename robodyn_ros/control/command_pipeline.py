# SPDX-License-Identifier: Apache-2.0
"""
Everything that stands between the control law and the wire.

``CommandPipeline.step`` turns a complete joint state into a command, ``watchdog`` says what to do
when joint states are late or stop coming, and ``stop_command`` what to leave behind. Each returns
a command or nothing. The order is: control law, soft joint limits (behind an effort clip of their
own), finite check, effort clip, rate limit, effort clip; no torque leaves this module otherwise.

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

import numpy as np

from robodyn_ros.control.active_law import ActiveLaw
from robodyn_ros.control.braking import is_at_rest
from robodyn_ros.control.bridging import Bridging
from robodyn_ros.control.command import Command
from robodyn_ros.control.compiled_step import CompiledStep
from robodyn_ros.control.computed_torque import ControlLaw
from robodyn_ros.control.evaluation import EvaluatedTorque, evaluated_torque
from robodyn_ros.control.fallback import Fallback
from robodyn_ros.control.joint_state_buffer import JointStateBuffer, MeasuredState
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.reference_follower import ReferenceFollower
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.supervision import Supervision
from robodyn_ros.control.torque_limits import TorqueLimiter
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import RejectedTrajectory


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
    compiled : CompiledStep, optional
        Computes the torques; without it NumPy does.

    Attributes
    ----------
    refused_torques : int
        Cycles without a finite torque, or with a load that the drives cannot carry.
    """

    def __init__(
        self,
        law: ControlLaw,
        joint_states: JointStateBuffer,
        settings: SafetySettings,
        reference_limits: ReferenceLimits,
        *,
        is_time_simulated: bool = False,
        compiled: CompiledStep | None = None,
    ) -> None:
        self.settings = settings
        self.reference_limits = reference_limits
        self.is_enabled = False
        self.refused_torques = 0
        self._joint_states = joint_states
        self._law = ActiveLaw(law)
        self._follower = ReferenceFollower()
        self._supervision = Supervision(is_time_simulated)
        self._bridging = Bridging(is_time_simulated)
        self._compiled = compiled
        self._limiter = TorqueLimiter(compiled)
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
        self._supervision.reset()
        self._state = None
        self._last_cycle = now
        self._elapsed = 0.0
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
        if not self.is_enabled or self._is_stopping:
            raise RejectedTrajectory('trajectory', 'while disabled', 'an enabled, active node')
        state = self._supervision.state_to_follow_from(
            self.law, self._state, self._last_cycle, self.is_stale
        )
        self._follower.follow(trajectory, state, self.reference_limits)
        self._supervision.last_fault = ''
        self._law.end_damping(self.settings.ramp_time)

    def cancel(self) -> None:
        """Follow nothing any more: brake to rest and hold, or fade; a fault is taken note of."""
        self._supervision.last_fault = ''
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
        supervision, follower = self._supervision, self._follower
        settings, limits = self.settings, self.reference_limits
        if self._state is not None and not self.is_stale:
            elapsed, longest = now - self._last_cycle, settings.state_timeout
            if not supervision.is_believed(
                state, self._state, elapsed, follower, self.law, longest, limits
            ):
                return None
        reading = supervision.clock.advance(state.time, now, settings.state_timeout)
        self._elapsed += reading.elapsed
        if self._state is None:
            if supervision.is_overloaded(self.law, state, settings, limits):
                self.refused_torques += 1
                return None
            if now - self._limiter.last_sent >= settings.state_timeout:
                self._limiter.forget()  # others may have commanded since, or brakes hold the arm
            if state.has_velocities and not is_at_rest(state.velocity):
                follower.is_brake_due = self.law.weights.has_feedback
            self._law.jump(0.0 if follower.is_brake_due else settings.damping)
        elif self.is_stale:
            # At the pace of the rate limit alone.
            self._law.jump(0.0 if follower.is_brake_due else settings.damping)
        if supervision.is_too_fast(state, follower, limits):
            self._law.jump(settings.damping)
        reference = supervision.reference(
            self.law, follower, state, reading.is_believed, settings, limits
        )
        law = self._law.at(self._elapsed)
        evaluated = evaluated_torque(
            law, follower, state, reference, self._elapsed, settings, limits, self._compiled
        )
        if evaluated is None:
            self.refused_torques += 1
            return None
        self._advance(state)
        if not self.is_stale:
            self._bridging.note(now - self._last_cycle)
        self._state = state
        self._last_cycle = now
        self._fallback.end()
        return self._limited(evaluated.torque, state, now, evaluated, reference)

    def watchdog(self, now: float) -> Command | None:
        """
        Return the command that a late or a stale state asks for at this time, or None.

        Call it once per watchdog period. A state is stale when a joint is, or when no cycle gave
        a valid torque for as long; until then a gap is bridged.
        """
        if not self.is_enabled or self._state is None:
            return None
        gap = now - self._last_cycle
        if gap <= self.settings.state_timeout and not self._joint_states.stale_joints(now):
            return self._bridged(self._state, gap, now)
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
        if self._follower.is_brake_due or not self._follower.has_settled(self._state.time):
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
    def last_fault(self) -> str:
        """Why a reference was last given up, or commanding refused; empty: it was not."""
        return self._supervision.last_fault

    @property
    def implausible_states(self) -> int:
        """How many states no joint can have come to."""
        return self._supervision.implausible_states

    @property
    def following_errors(self) -> int:
        """How many references were given up because the arm was too far away."""
        return self._supervision.following_errors

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

    def _bridged(self, state: MeasuredState, gap: float, now: float) -> Command | None:
        """Return the command for where the arm should be by now, if its state is late."""
        if self.is_stale or self._follower.is_brake_due or not self._bridging.is_due(state, gap):
            return None
        elapsed = self._elapsed + gap
        expected = self._bridging.expected_state(self._follower, state, gap)
        evaluated = evaluated_torque(
            self._law.at(elapsed),
            self._follower,
            expected,
            self._follower.sample(expected.time),
            elapsed,
            self.settings,
            self.reference_limits,
            self._compiled,
        )
        return None if evaluated is None else self._limited(evaluated.torque, state, now)

    def _become_stale(self, state: MeasuredState, now: float) -> None:
        """Give up what is followed, once."""
        if self.is_stale:
            return
        gap = now - self._last_cycle
        expected = self._bridging.expected_state(self._follower, state, gap)
        if self._follower.reference is not None:
            stale = ', '.join(self._joint_states.stale_joints(now))
            self._follower.give_up(self.law, f'no fresh state of {stale or "the arm"}')
        self._follower.end_fading()
        self._fallback.begin(self.law.gravity_torque(expected.position), now)

    def _advance(self, state: MeasuredState) -> None:
        """Let the time since the last valid cycle pass, for all that fades."""
        elapsed, self._elapsed = self._elapsed, 0.0
        self._law.advance(elapsed, state.velocity, self.settings.ramp_time)
        self._follower.advance(elapsed, self.settings.ramp_time)
        if not self._law.follows:
            self._follower.drop(f'mode {self.law.mode} follows none')

    def _limited(
        self,
        torque: np.ndarray,
        state: MeasuredState,
        now: float,
        evaluated: EvaluatedTorque | None = None,
        reference: ReferenceState | None = None,
    ) -> Command:
        """Return the command after the limits; it counts as sent."""
        limited = self._limiter.limited(
            torque, self.settings.effort_limits, self.settings.torque_rate_limits, now
        )
        is_beyond, parts = np.zeros(len(torque), bool), None
        if evaluated is not None:
            parts = evaluated.parts
            if evaluated.penetration is not None:
                is_beyond = evaluated.penetration != 0.0
        return Command(*limited, is_beyond, parts, state, reference)
