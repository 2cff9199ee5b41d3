# SPDX-License-Identifier: Apache-2.0
"""
Everything that stands between the control law and the wire.

`TorquePath.step` turns a complete joint state into a command, `TorquePath.watchdog` says what to
do when joint states stop coming, and `TorquePath.last_word` what to leave behind. Each returns a
command or nothing. The order is: control law, ramp, finite check, effort clip, rate limit, effort
clip; no torque leaves this module by another way.

Two clocks are kept apart. Steady time (the argument ``now``) measures staleness and the rate
limit. The time of the joint states (``MeasuredState.time``) moves references and ramps, so that a
simulation gives the same torques at any pace; when it jumps, the reference is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.control.computed_torque import ControlLaw, TorqueParts
from robodyn_ros.control.joint_state_buffer import JointStateBuffer, MeasuredState
from robodyn_ros.control.planning import ReferenceLimits, planned_reference
from robodyn_ros.control.ramp import Ramp
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import NonFiniteValue, RejectedTrajectory

LONGEST_RATE_STEP = 0.01
"""However long nothing was sent, the rate limit allows no more than this time's step [s]."""

_SHORTEST = 1e-9  # stands for two commands in one instant; keeps "no limit" times it infinite [s]

ACTIONS = ('hold_gravity', 'zero', 'silent')


@dataclass(frozen=True)
class SafetySettings:
    """
    What the torque path holds itself to.

    Parameters
    ----------
    effort_limits : array, shape (n,)
        Largest torque [N m] or force [N] of each joint.
    torque_rate_limits : array, shape (n,)
        Largest change [N m/s] or [N/s]; infinite: none.
    ramp_time : float
        How long a change of law takes [s].
    state_timeout : float
        Age at which a joint state is stale [s].
    on_stale_state, on_stop : str
        One of `ACTIONS`.
    stale_hold_time : float
        How long gravity is held on a stale state before silence [s].
    """

    effort_limits: np.ndarray
    torque_rate_limits: np.ndarray
    ramp_time: float
    state_timeout: float
    on_stale_state: str
    stale_hold_time: float
    on_stop: str


@dataclass(frozen=True)
class Command:
    """
    One torque to send, and where it comes from.

    Parameters
    ----------
    torque : array, shape (n,)
        [N m] or [N], finite and within the limits.
    effort_limited, rate_limited : array of bool, shape (n,)
        Joints whose torque that limit changed.
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
    parts: TorqueParts | None
    state: MeasuredState
    reference: ReferenceState | None


class TorquePath:
    """
    The state machine behind the commands: enabled or not, fresh or stale, ramping or not.

    Parameters
    ----------
    law : ControlLaw
        What to command while all is well.
    joint_states : JointStateBuffer
        Asked for staleness only; the states themselves come through `step`.
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
        self._last_torque: np.ndarray | None = None
        self._last_sent = -np.inf
        self._ramp = Ramp()
        self._stale_since: float | None = None
        self._held: np.ndarray | None = None

    # --- what is asked of it ---------------------------------------------------------------

    def enable(self, now: float) -> None:
        """Begin to command with the next complete state, by a ramp."""
        if self.is_enabled:
            return
        self.is_enabled = True
        self._state = None
        self._last_cycle = now
        self._stale_since = None
        self._drop_reference()

    def disable(self, now: float) -> Command | None:
        """Command nothing more after the last word, which is returned."""
        word = self.last_word(now)
        self.is_enabled = False
        self._drop_reference()
        return word

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

    def follow(self, trajectory: Trajectory) -> None:
        """
        Follow a trajectory from now on.

        Raises
        ------
        RejectedTrajectory
            Disabled, a mode that follows none, no fresh joint state with known velocities, or
            what `planned_reference` refuses. What was followed before is still followed.
        """
        state = self._state
        if not self.is_enabled:
            raise RejectedTrajectory('trajectory', 'while disabled', 'an enabled, active node')
        if self.law.mode == 'gravity_compensation':
            raise RejectedTrajectory(
                'trajectory', 'in mode gravity_compensation', 'feedforward or computed_torque')
        if state is None or self.is_stale or not np.isfinite(state.velocity).all():
            raise RejectedTrajectory(
                'trajectory', 'without a fresh joint state',
                'trajectories once positions and velocities of all joints are known')
        zero = np.zeros_like(state.position)
        measured = ReferenceState(state.position, state.velocity, zero, zero)
        self._reference = planned_reference(
            trajectory, state.time, measured, self._reference, self.reference_limits)

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
        unknown = not np.isfinite(state.velocity).all()
        if self.is_stale or (self._reference is not None and (jumped or unknown)):
            self._drop_reference()
        reference = self._reference.sample(state.time) if self._reference else None
        try:
            with np.errstate(over='ignore', invalid='ignore'):
                parts = self.law.torque(state.position, state.velocity, reference)
                if self._ramp.is_due:
                    self._ramp.begin(self._ramp_origin(state, now))
                else:
                    self._ramp.advance(elapsed)
                torque = self._ramp.torque(parts.total, self.settings.ramp_time)
        except NonFiniteValue:  # an overflow on the way to the model
            torque = None
        if torque is None or not np.isfinite(torque).all():
            self.refused_torques += 1
            return None
        self._state = state
        self._last_cycle = now
        self._stale_since = None
        return self._limited(torque, state, now, parts, reference)

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
        action = self.settings.on_stale_state
        held_for = now - self._stale_since
        if action == 'hold_gravity' and held_for >= self.settings.stale_hold_time:
            return None
        torque = self._action_torque(action, self._held)
        return None if torque is None else self._limited(torque, self._state, now)

    def last_word(self, now: float) -> Command | None:
        """
        Return the command to leave behind when commanding ends, or None.

        Notes
        -----
        It is not rate limited: the driver goes on acting on it, and a torque between the last
        one and the promised one would move the arm for as long as that.
        """
        if not self.is_enabled or self._state is None:
            return None
        gravity = self.law.gravity_torque(self._state.position)
        torque = self._action_torque(self.settings.on_stop, gravity)
        return None if torque is None else self._limited(
            torque, self._state, now, last=True)

    # --- what it says about itself ---------------------------------------------------------

    @property
    def is_stale(self) -> bool:
        """Whether the watchdog found the state stale and no valid cycle came since."""
        return self._stale_since is not None

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

        Where it jumped, steady time stands in, so that a ramp comes to its end whatever the
        clock does.
        """
        if self._state is None:
            return 0.0, False
        elapsed = state.time - self._state.time
        if 0.0 <= elapsed <= self.settings.state_timeout:
            return elapsed, False
        return now - self._last_cycle, True

    def _ramp_origin(self, state: MeasuredState, now: float) -> np.ndarray:
        """Return where a ramp begins: the last torque if it is recent, else gravity in full."""
        if self._last_torque is not None and now - self._last_sent < self.settings.state_timeout:
            return self._last_torque
        if self._state is None:
            # Before it was enabled others may have commanded: there is nothing to continue.
            self._last_torque = None
        return self.law.gravity_torque(state.position)

    @staticmethod
    def _action_torque(action: str, gravity: np.ndarray | None) -> np.ndarray | None:
        """Return the torque of an action, None for silence."""
        if action == 'silent' or gravity is None or not np.isfinite(gravity).all():
            return None
        return np.zeros_like(gravity) if action == 'zero' else gravity

    def _limited(
        self,
        torque: np.ndarray,
        state: MeasuredState,
        now: float,
        parts: TorqueParts | None = None,
        reference: ReferenceState | None = None,
        last: bool = False,
    ) -> Command:
        """Return the command after the limits, and remember it as sent."""
        limits = self.settings.effort_limits
        clipped = np.clip(torque, -limits, limits)
        allowed = clipped
        if self._last_torque is not None and not last:
            elapsed = min(max(now - self._last_sent, _SHORTEST), LONGEST_RATE_STEP)
            step = self.settings.torque_rate_limits * elapsed
            allowed = np.clip(clipped, self._last_torque - step, self._last_torque + step)
        sent = np.clip(allowed, -limits, limits)
        self._last_torque = sent
        self._last_sent = now
        return Command(sent, clipped != torque, allowed != clipped, parts, state, reference)
