# SPDX-License-Identifier: Apache-2.0
"""
What the watchdog commands from taking over until the node commands again, or until it ends.

The arm is braked while joint states come: its kinetic energy then falls with every command. At
rest it is carried on for a while, because a torque that no longer follows the arm is unstable: a
Panda without friction that is left with it moves at 5 rad/s within a second. Without joint states
nothing better is known than gravity where the arm was last.
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.joint_state_buffer import JointStateBuffer, MeasuredState
from robodyn_ros.control.possible_positions import PossiblePositions
from robodyn_ros.control.torque_limits import TorqueLimiter
from robodyn_ros.dynamics import inverse_dynamics
from robodyn_ros.errors import NonFiniteValue
from robodyn_ros.ros.watchdog.shared_command import Arm, LastCommand, WatchdogSettings

BRAKING_RATE = 10.0
"""Largest rate at which velocities decay [1/s]."""

DELAY_MARGIN = 0.2
"""Largest product of that rate and the delay: braking with old velocities feeds an oscillation."""

ENERGY_MARGIN = 1.5
"""Growth of the kinetic energy at which braking is given up: it does not do what it should."""

REST_ENERGY = 0.01
"""Too little for braking to be given up for it [J]."""

REST_SPEED = 0.01
"""A joint that is slower is at rest [rad/s] or [m/s]."""

LONGEST_BRAKING = 4.0
"""Until the arm counts as being at rest, whether it is or not [s]."""

DISCOVERY_TIME = 0.5
"""That the first joint states are waited for [s]."""


class Takeover:
    """
    A command for every moment, within the node's limits, continuing its last command.

    Parameters
    ----------
    arm : Arm
        What is commanded.
    settings : WatchdogSettings
        What to do.
    last : LastCommand
        Of the node.
    now : float
        Steady time [s].

    Attributes
    ----------
    is_over : bool
        Whether the node is gone and the stop command has been sent.
    is_steady : bool
        Whether the last command was the one before.
    joint_states : JointStateBuffer
        To be fed with joint states.
    """

    def __init__(
        self, arm: Arm, settings: WatchdogSettings, last: LastCommand, now: float
    ) -> None:
        self.is_over = False
        self.is_steady = False
        self.joint_states = JointStateBuffer(
            arm.model.joint_names,
            settings.state_timeout,
            arm.continuous,
            PossiblePositions.of(arm.model),
        )
        self._arm = arm
        self._settings = settings
        self._limiter = TorqueLimiter()
        self._limiter.last_torque, self._limiter.last_sent = last.torque, last.time
        at_rest = np.zeros_like(last.position)
        self._held = self._gravity_and_braking(last.position, at_rest)[0]
        self._begin = self._last_state = now
        self._delay = 0.0  # between the joint states that were used [s], slow to shrink
        self._first_energy: float | None = None
        self._brakes = settings.brakes
        self._end_of_node: float | None = None
        self._rest_since: float | None = None  # after that [s]
        self._is_yielding = False
        self._state: MeasuredState | None = None

    @property
    def last(self) -> tuple[float, np.ndarray]:
        """When a torque was sent last [s], and which, the node's own included."""
        assert self._limiter.last_torque is not None  # it never forgets here
        return self._limiter.last_sent, self._limiter.last_torque

    def command(self, now: float, is_node_alive: bool) -> np.ndarray | None:
        """Return the torque to send at a steady time [s], shape (n,), in chain order, or None."""
        settings = self._settings
        if not is_node_alive and self._end_of_node is None:
            self._end_of_node = now
        action = settings.on_stale_state if is_node_alive else settings.on_stop
        if action == 'silent':
            self.is_over = not is_node_alive
            return None
        torque, is_done = np.zeros_like(settings.effort_limits), True
        if action == 'hold_gravity':
            torque, is_done = self._held_torque(now)
            if is_node_alive and now - self._last_state > settings.stale_hold_time:
                return None
        before = self.last[1]
        limited = self._limiter.limited(
            torque, settings.effort_limits, settings.torque_rate_limits, now
        )
        self.is_steady = np.array_equal(limited.torque, before)
        if not is_node_alive:
            self.is_over = self._is_left(now, is_done) and not limited.rate_limited.any()
        return limited.torque

    def _is_left(self, now: float, is_done: bool) -> bool:
        """Return whether the arm may be left to itself, once the node is gone."""
        assert self._end_of_node is not None
        is_late = now - self._end_of_node > LONGEST_BRAKING
        if self._settings.on_stop != 'hold_gravity':
            return is_done or is_late
        if self._is_yielding:
            return True
        if not self._has_states(now):  # they may come back
            return is_done and now - self._last_state >= self._settings.stale_hold_time
        if self._rest_since is None and (is_done or is_late):
            self._rest_since = now
        held = now - self._rest_since if self._rest_since is not None else 0.0
        return self._rest_since is not None and held >= self._settings.stale_hold_time

    def yield_commands(self) -> None:
        """Carry the arm no longer, once the node is gone: somebody else is about to."""
        self._is_yielding = True

    def sent(self, now: float) -> None:
        """Note that the last command was on the wire by a steady time [s]."""
        self._limiter.last_sent = max(self._limiter.last_sent, now)

    def _held_torque(self, now: float) -> tuple[np.ndarray, bool]:
        """Return gravity and what brakes, and whether nothing more is to be expected of that."""
        joint_states = self.joint_states
        if joint_states.is_complete:
            self._delay = max(now - self._last_state, 0.9 * self._delay)
            if now - self._last_state > self._settings.state_timeout:
                self._first_energy = None  # what the arm gained meanwhile is not of the braking
            self._state, self._last_state = joint_states.take(), now
        if self._state is None or not self._has_states(now):
            is_awaited = self._state is None and now - self._begin < DISCOVERY_TIME
            return self._held, not is_awaited
        position, velocity = self._state.position, self._state.velocity
        is_known = bool(np.isfinite(velocity).all())
        velocity = velocity if is_known else np.zeros_like(velocity)
        # Gravity of where the arm was would push it on.
        position = position + (now - self._last_state) * velocity
        try:
            gravity, braking = self._gravity_and_braking(position, velocity)
        except NonFiniteValue:  # an absurd velocity
            return self._held, False
        if not (np.isfinite(gravity).all() and np.isfinite(braking).all()):
            return self._held, False
        self._held = gravity
        self._brakes = self._brakes and not (is_known and self._gains_energy(velocity, braking))
        if is_known and (np.abs(velocity) < REST_SPEED).all():
            return gravity, True
        if not self._brakes:
            return gravity, not self._settings.brakes
        rate = min(BRAKING_RATE, DELAY_MARGIN / self._delay) if self._delay > 0.0 else BRAKING_RATE
        braking *= rate * self._fraction_of_acceleration(rate * velocity)
        return gravity + _fraction(gravity, braking, self._settings.effort_limits) * braking, False

    def _has_states(self, now: float) -> bool:
        return self._state is not None and not self.joint_states.stale_joints(now)

    def _gains_energy(self, velocity: np.ndarray, braking: np.ndarray) -> bool:
        """Return whether there is more kinetic energy than at first, by much."""
        energy = -0.5 * float(velocity @ braking)
        if self._first_energy is None:
            self._first_energy = energy
        return energy > ENERGY_MARGIN * self._first_energy and energy > REST_ENERGY

    def _fraction_of_acceleration(self, deceleration: np.ndarray) -> float:
        limits = self._settings.braking_acceleration
        return _fraction(np.zeros_like(deceleration), deceleration, limits)

    def _gravity_and_braking(
        self, position: np.ndarray, velocity: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return g(q) and -M(q) qd, what brakes at a rate of one per second."""
        zero = np.zeros((2, len(position)))
        with np.errstate(over='ignore', invalid='ignore'):
            gravity, both = inverse_dynamics(
                self._arm.model,
                np.stack([position, position]),
                zero,
                np.stack([zero[0], -velocity]),
            )
        return gravity if self._settings.compensates_gravity else zero[0], both - gravity


def _fraction(held: np.ndarray, added: np.ndarray, limits: np.ndarray) -> float:
    """
    Return the largest number up to 1 by which what is added fits between the limits.

    One number for all joints: a vector of torques that is made shorter still brakes, one whose
    entries are clipped may push.
    """
    with np.errstate(divide='ignore', invalid='ignore'):
        room = np.where(added > 0.0, limits - held, -limits - held) / added
    return float(np.clip(np.min(room, where=added != 0.0, initial=1.0), 0.0, 1.0))
