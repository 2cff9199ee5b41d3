# SPDX-License-Identifier: Apache-2.0
"""
Everything that stands between the control law and the wire.

``CommandPipeline.step`` turns a complete joint state into a command, ``watchdog`` says what to do
when joint states stop coming, and ``stop_command`` what to leave behind. Each returns a command or
nothing. The order is: control law, ramp, soft joint limit (behind an effort clip of its own),
finite check, effort clip, rate limit, effort clip; no torque leaves this module otherwise.

Two clocks are kept apart. Steady time (the argument ``now``) measures staleness and the rate
limit. The time of the joint states (``MeasuredState.time``) moves references and ramps, so that a
simulation gives the same torques at any pace; when it jumps, or stands still for longer than the
state timeout while states come, the reference is dropped and steady time moves the ramp.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.computed_torque import ControlLaw, TorqueParts
from robodyn_ros.control.joint_state_buffer import JointStateBuffer, MeasuredState
from robodyn_ros.control.planning import ReferenceLimits, planned_reference
from robodyn_ros.control.ramp import Ramp
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.soft_joint_limit import limit_penetration, soft_limited_torque
from robodyn_ros.control.torque_limits import TorqueLimiter
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import NonFiniteValue, RejectedTrajectory


class Command(NamedTuple):
    """
    One torque to send, and where it comes from.

    Parameters
    ----------
    torque : array, shape (n,)
        [N m] or [N], finite and within the limits.
    effort_limited, rate_limited : array of bool, shape (n,)
        Joints whose torque that limit changed.
    position_limited : array of bool, shape (n,)
        Joints beyond a position limit, where the guard acts.
    parts : TorqueParts or None
        What the law added up; None when there was no control cycle.
    state : MeasuredState
        The joint state behind it.
    reference : ReferenceState or None
        What was followed.
    """

    torque: np.ndarray
    effort_limited: np.ndarray
    rate_limited: np.ndarray
    position_limited: np.ndarray
    parts: TorqueParts | None
    state: MeasuredState
    reference: ReferenceState | None


class CommandPipeline:
    """
    The state machine behind the commands: enabled or not, fresh or stale, ramping or not.

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
    """

    def __init__(
        self,
        law: ControlLaw,
        joint_states: JointStateBuffer,
        settings: SafetySettings,
        reference_limits: ReferenceLimits,
    ) -> None:
        self.law = law
        self.settings = settings
        self.reference_limits = reference_limits
        self.is_enabled = False
        self.refused_torques = 0  # cycles whose torque was not finite
        self._joint_states = joint_states
        self._reference: Reference | None = None
        self._state: MeasuredState | None = None  # of the last valid cycle since enabling
        self._last_cycle = -np.inf
        self._limiter = TorqueLimiter()
        self._ramp = Ramp()
        self._stale_since: float | None = None
        self._held: np.ndarray | None = None
        self._clock_moved = -np.inf  # when, by steady time, the joint states' clock last did
        self._is_clock_stopped = False
        self._stop_torque: np.ndarray | None = None  # where the stop command leads
        self._is_stop_command_sent = False

    # --- what is asked of it ---------------------------------------------------------------

    def enable(self, now: float) -> None:
        """Begin to command with the next complete state."""
        if self.is_enabled:
            return
        self.is_enabled = True
        self._state = None
        self._last_cycle = now
        self._stale_since = None
        self._stop_torque, self._is_stop_command_sent = None, False
        self._drop_reference()

    def disable(self) -> None:
        """Command nothing more; ``stop_command`` comes before."""
        self.is_enabled = False
        self._drop_reference()

    def change_law(self, law: ControlLaw) -> None:
        """
        Take another mode, other gains or other terms, by a ramp.

        The reference is kept if the new law follows one; feedback only if the arm is near it.
        """
        far = False
        follows = law.mode == 'computed_torque'
        if follows and self._reference is not None and self._state is not None:
            wanted = self._reference.sample(self._state.time).position
            error = law.position_error(self._state.position, wanted)
            far = bool((np.abs(error) > self.reference_limits.max_reference_step).any())
        self.law = law
        if far or law.mode == 'gravity_compensation':
            self._drop_reference()
        self._ramp.is_due = True

    def change_model(self, law: ControlLaw) -> None:
        """
        Take the same law for another payload or gravity; the reference and the feedback go on.

        The next cycle commands what the new model asks for, and the rate limit shapes the change
        of torque. Where a joint has none, a ramp does.
        """
        self.law = law
        if self._state is not None and self._held is not None:
            self._held = law.gravity_torque(self._state.position)
        if not np.isfinite(self.settings.torque_rate_limits).all():
            self._ramp.is_due = True

    def follow(self, trajectory: Trajectory) -> None:
        """
        Follow a trajectory from now on.

        Raises
        ------
        RejectedTrajectory
            Disabled, a mode that follows none, no fresh joint state with known velocities, stamps
            that stand still, or what ``planned_reference`` refuses. What was followed before is
            still followed.
        """
        state = self._state
        if not self.is_enabled:
            raise RejectedTrajectory('trajectory', 'while disabled', 'an enabled, active node')
        if self.law.mode == 'gravity_compensation':
            raise RejectedTrajectory(
                'trajectory', 'in mode gravity_compensation', 'feedforward or computed_torque'
            )
        if self._is_clock_stopped:
            raise RejectedTrajectory(
                'trajectory', "while the joint states' stamps stand still", 'a clock that runs'
            )
        if state is None or self.is_stale or not np.isfinite(state.velocity).all():
            raise RejectedTrajectory(
                'trajectory',
                'without a fresh joint state',
                'trajectories once positions and velocities of all joints are known',
            )
        zero = np.zeros_like(state.position)
        measured = ReferenceState(state.position, state.velocity, zero, zero)
        self._reference = planned_reference(
            trajectory, state.time, measured, self._reference, self.reference_limits
        )

    def cancel(self) -> None:
        """Follow nothing any more: back to gravity compensation, by a ramp."""
        if self._reference is not None:
            self._drop_reference()

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
        elapsed, jumped = self._elapsed(state, now)
        if self.is_stale or (
            self._reference is not None and (jumped or not _is_finite(state.velocity))
        ):
            self._drop_reference()
        reference = self._reference.sample(state.time) if self._reference else None
        try:
            with np.errstate(over='ignore', invalid='ignore'):
                parts = self.law.torque(state.position, state.velocity, reference)
                if self._ramp.is_due:
                    self._begin_ramp(now)
                    elapsed = 0.0
                torque = self._ramp.torque(parts.total, elapsed)
                penetration = limit_penetration(
                    state.position,
                    self.reference_limits.position_limits,
                    self.settings.position_guard,
                )
                if penetration is not None:
                    limits = self.settings.effort_limits
                    torque = soft_limited_torque(
                        np.clip(torque, -limits, limits),
                        penetration,
                        self.law,
                        state.position,
                        state.velocity,
                    )
        except NonFiniteValue:  # an overflow on the way to the model
            torque = None
        if torque is None or not _is_finite(torque):
            self.refused_torques += 1
            return None
        self._ramp.advance(elapsed)  # once, however many cycles were refused before
        self._state = state
        self._last_cycle = now
        self._stale_since = None
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
        if self._stale_since is None:
            self._stale_since = now
            self._drop_reference()
            self._held = self.law.gravity_torque(self._state.position)
        if now - self._stale_since >= self.settings.stale_hold_time:
            self._held = None  # for good, whatever the hold time becomes
        torque = self._action_torque(self.settings.on_stale_state, self._held)
        return None if torque is None else self._limited(torque, self._state, now)

    def stop_command(self, now: float) -> Command | None:
        """
        Return the next command on the way to what ``on_stop`` promises; None once it was sent.

        Call it again and again when commanding is to end, with ``disable`` behind. The way there
        obeys the rate limit like any other: with no limit it is one command. The promise is made
        at the first call, for the last valid state.
        """
        if not self.is_enabled or self._state is None or self._is_stop_command_sent:
            return None
        if self._stop_torque is None:
            gravity = self.law.gravity_torque(self._state.position)
            self._stop_torque = self._action_torque(self.settings.on_stop, gravity)
            if self._stop_torque is None:
                return None
        command = self._limited(self._stop_torque, self._state, now)
        self._is_stop_command_sent = not command.rate_limited.any()
        return command

    def sent(self, now: float) -> None:
        """
        Note that the last command was on the wire by a steady time [s].

        With it, the rate limit holds between commands as they are sent, whatever held up a cycle.
        """
        self._limiter.last_sent = max(self._limiter.last_sent, now)

    # --- what it says about itself ---------------------------------------------------------

    @property
    def is_stale(self) -> bool:
        """Whether the watchdog found the state stale and no valid cycle came since."""
        return self._stale_since is not None

    @property
    def fallback(self) -> str:
        """The action in force: one of ``ACTIONS``, or none."""
        if self._stale_since is None:
            return 'none'
        action = self.settings.on_stale_state
        return 'silent' if action == 'hold_gravity' and self._held is None else action

    @property
    def state(self) -> MeasuredState | None:
        """The state of the last valid cycle since enabling."""
        return self._state

    @property
    def reference_status(self) -> str:
        """One of: none, waiting, moving, holding."""
        if self._reference is None or self._state is None:
            return 'none'
        if self._state.time < self._reference.knots[0]:
            return 'waiting'
        return 'holding' if self._reference.is_finished(self._state.time) else 'moving'

    # --- how -------------------------------------------------------------------------------

    def _drop_reference(self) -> None:
        self._reference = None
        self._ramp.is_due = True

    def _elapsed(self, state: MeasuredState, now: float) -> tuple[float, bool]:
        """
        Return the time since the last cycle [s], and whether the joint states' clock jumped.

        Where it jumped, or stands still for too long, steady time stands in, so that a ramp comes
        to its end whatever the clock does.
        """
        elapsed = state.time - self._state.time if self._state is not None else 0.0
        if self._state is None or elapsed != 0.0:
            self._clock_moved = now
        self._is_clock_stopped = now - self._clock_moved > self.settings.state_timeout
        if 0.0 <= elapsed <= self.settings.state_timeout and not self._is_clock_stopped:
            return elapsed, False
        return now - self._last_cycle, True

    def _begin_ramp(self, now: float) -> None:
        """
        Begin a ramp at the last torque if it is recent; else there is none, and gravity in full.

        The first torque after having been disabled, the last one being older than the state
        timeout, owes nothing to that, the rate limit neither: others may have commanded since, or
        brakes may hold the arm, and will let go at this command. A rise from an old zero would
        drop it. No reference is followed yet, so that each of the first cycles commands gravity
        where the arm then is: one wrong first state does no harm for longer than it is there.
        """
        last = self._limiter.last_torque
        if last is not None and now - self._limiter.last_sent < self.settings.state_timeout:
            self._ramp.begin(last, self.settings.ramp_time)
            return
        self._ramp.skip()
        if self._state is None:
            self._limiter.forget()

    def _action_torque(self, action: str, gravity: np.ndarray | None) -> np.ndarray | None:
        """Return the torque of an action, None for silence."""
        if action == 'zero':
            return np.zeros_like(self.settings.effort_limits)
        if action == 'silent' or gravity is None or not np.isfinite(gravity).all():
            return None
        return gravity

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
        position_limited = (
            np.zeros(len(torque), dtype=bool) if penetration is None else penetration != 0.0
        )
        return Command(*limited, position_limited, parts, state, reference)


def _is_finite(values: np.ndarray) -> bool:
    """Return whether all are; on arrays this short, quicker than numpy's way."""
    return all(map(isfinite, values.tolist()))
