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
gives the same torques at any pace, and while it stands still nothing is stale.
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.braking import STILL, is_at_rest
from robodyn_ros.control.command import Command
from robodyn_ros.control.computed_torque import ControlLaw
from robodyn_ros.control.evaluation import EvaluatedTorque, evaluated_torque
from robodyn_ros.control.fallback import Fallback
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.pipeline_state import PipelineState
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.reference_follower import brake_to_rest
from robodyn_ros.control.safety_settings import ContactAction
from robodyn_ros.control.torque_limits import LONGEST_RATE_STEP
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import FollowsNone
from robodyn_ros.spatial import FloatArray


class CommandPipeline(PipelineState):
    """The state machine behind the commands: enabled or not, fresh or stale, following or not."""

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
        self._fallback, self._refusal = Fallback(), ''
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
        FollowsNone
            Disabled or stopping, or a mode that follows none.
        RejectedTrajectory
            No fresh joint state with known velocities, stamps that do not keep pace with time, or
            what ``planned_reference`` refuses. What was followed before is still followed.
        """
        if not self.is_enabled or self._is_stopping:
            raise FollowsNone(
                'trajectory',
                'the node is not active',
                'activate it (lifecycle), or call ~/enable where it was disabled',
            )
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

    def react_to_contact(self, action: ContactAction, what: str) -> None:
        """
        Give up what is followed, because of a contact that the text describes.

        ``stop`` brakes to rest and holds, where the law has feedback; in other modes, and with
        ``float``, gravity is compensated and damping brings the arm to rest. A new trajectory or
        a cancellation takes note of it, as of a fault.
        """
        if not self.is_enabled or action == 'report':
            return
        self._supervision.last_fault = what
        if action == 'stop' and self.law.weights.has_feedback:
            self._follower.give_up(self.law, what)
        else:
            self._follower.drop(what)
            self._law.jump(self.settings.damping)

    def continue_from(self, torque: np.ndarray, sent: float) -> None:
        """
        Go on from a torque that another commanded in this one's place, sent at a steady time [s].

        It is as if states had been stale: what was followed before is given up.
        """
        self._limiter.last_torque, self._limiter.last_sent = torque, sent
        if self._state is not None:
            self._become_stale(self._state, sent, 'the watchdog commanded meanwhile')

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
        reading = self._supervision.clock.advance(state.time, now, self.settings.state_timeout)
        self._elapsed += reading.elapsed
        if reading.is_believed and (command := self._plain_cycle(state, now)) is not None:
            return command
        return self._whole_cycle(state, now, reading.is_believed)

    def watchdog(self, now: float) -> Command | None:
        """
        Return the command that a late or a stale state asks for at this time, or None.

        Call it once per watchdog period. A state is stale when a joint is, or when no cycle gave
        a valid torque for as long; until then a gap is bridged.
        """
        if not self.is_enabled or self._state is None:
            return None
        gap = now - self._last_cycle
        if not self._is_late(self._state, now):
            return self._bridged(self._state, gap, now)
        self._become_stale(self._state, now, self._cause(now))
        torque = self._stale_torque(now)
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

    # --- how -------------------------------------------------------------------------------

    def _plain_cycle(self, state: MeasuredState, now: float) -> Command | None:
        """Return the command of a cycle about which nothing is unusual, else None."""
        last, follower, law = self._state, self._follower, self._law
        if last is None or self._plain is None or self.is_stale or not law.is_steady:
            return None
        if self._added(now) is not None:
            return None
        reference = follower.reference
        if follower.is_brake_due or follower.is_fading or (reference and not law.goal.follows):
            return None
        command = self._plain.command(
            law.at(0.0),
            self.settings,
            self.reference_limits,
            reference,
            state,
            last,
            self._limiter,
            now,
        )
        if command is not None:
            self._elapsed = 0.0
            self._supervision.believe()
            self._take(state, now)
        return command

    def _whole_cycle(
        self, state: MeasuredState, now: float, is_clock_believed: bool
    ) -> Command | None:
        """Return the command of any cycle, or None where there must be none."""
        supervision, follower = self._supervision, self._follower
        settings, limits = self.settings, self.reference_limits
        if self._state is not None and not self.is_stale:
            elapsed, longest = now - self._last_cycle, settings.state_timeout
            if not supervision.is_believed(
                state, self._state, elapsed, follower, self.law, longest, limits
            ):
                self._refusal = 'no plausible state'
                return None
        if self._state is None:
            if supervision.is_overloaded(self.law, state, settings, limits):
                self.refused_torques += 1
                return None
            if now - self._limiter.last_sent >= settings.state_timeout:
                self._limiter.forget()  # others may have commanded since, or brakes hold the arm
            if state.has_velocities and not is_at_rest(state.velocity, STILL):
                follower.is_brake_due = self.law.weights.has_feedback
            self._law.jump(0.0 if follower.is_brake_due else settings.damping)
        elif self.is_stale:
            # At the pace of the rate limit alone.
            self._law.jump(0.0 if follower.is_brake_due else settings.damping)
        if supervision.is_too_fast(state, follower, limits):
            self._law.jump(settings.damping)
        reference = supervision.reference(
            self.law, follower, state, is_clock_believed, settings, limits
        )
        law = self._law.at(self._elapsed)
        evaluated = evaluated_torque(
            law,
            follower,
            state,
            reference,
            self._elapsed,
            settings,
            limits,
            self._compiled,
            self._added(now),
        )
        if evaluated is None:
            self.refused_torques += 1
            self._refusal = 'no finite torque'
            return None
        self._advance(state)
        self._take(state, now)
        return self._limited(evaluated.torque, state, now, evaluated, reference)

    def _take(self, state: MeasuredState, now: float) -> None:
        """Take a state as the last one that was commanded for."""
        if not self.is_stale:
            self._bridging.note(now - self._last_cycle)
        self._state = state
        self._last_cycle = now
        self._refusal = ''
        self._fallback.end()

    def _is_late(self, last: MeasuredState, now: float) -> bool:
        """Return whether a joint is stale, or the last valid cycle was as long ago."""
        joint_states = self._joint_states
        if joint_states.stale_joints(now):
            return True
        stamp = last.time if last.stamped else np.nan
        waited = joint_states.elapsed.since(self._last_cycle, stamp, now)
        return waited > self.settings.state_timeout

    def _bridged(self, state: MeasuredState, gap: float, now: float) -> Command | None:
        """Return the command for where the arm should be by now, if its state is late."""
        if self.is_stale or self._follower.is_brake_due or not self._bridging.is_due(state, gap):
            return None
        gap += self._half_a_step(now)
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
            self._added(now),
        )
        return None if evaluated is None else self._limited(evaluated.torque, state, now)

    def _added(self, now: float) -> FloatArray | None:
        """Return what somebody else has added, shape (n,); None: nothing."""
        return None if self.added is None or self._is_stopping else self.added.at(now)

    def _half_a_step(self, now: float) -> float:
        """Return the time [s] to the middle of that for which a command will act, if as before."""
        return 0.5 * min(now - self._limiter.last_sent, LONGEST_RATE_STEP)

    def _cause(self, now: float) -> str:
        """Return why there has been no valid cycle."""
        if stale := self._joint_states.stale_joints(now):
            return f'no fresh state of {", ".join(stale)}'
        return self._refusal or 'no control cycle in time'

    def _become_stale(self, state: MeasuredState, now: float, cause: str) -> None:
        """Give up what is followed, once."""
        if self.is_stale:
            return
        gap = now - self._last_cycle
        expected = self._bridging.expected_state(self._follower, state, gap)
        if self._follower.reference is not None:
            self._follower.give_up(self.law, cause)
        self._follower.end_fading()
        position, velocity, braking = expected.position, expected.velocity, None
        is_brake_due = self._follower.is_brake_due and self._bridging.predicts(expected)
        if is_brake_due and not is_at_rest(velocity):
            braking = brake_to_rest(
                self.law, position, velocity, now, self.settings, self.reference_limits
            )
            position = braking.end_state.position
        self._fallback.begin(cause, self.law.gravity_torque(position), now, braking)

    def _stale_torque(self, now: float) -> np.ndarray | None:
        """Return what stale states ask for, first of all a brake that nobody measures."""
        held = self._fallback.stale_torque(self.settings, now)
        wanted = self._fallback.braked(self.settings, now + self._half_a_step(now))
        if held is None or wanted is None:
            return held
        with np.errstate(over='ignore', invalid='ignore'):
            torque = self.law.torque(wanted.position, wanted.velocity, wanted).total
        return torque if np.isfinite(torque).all() else held

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
