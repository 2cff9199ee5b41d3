# SPDX-License-Identifier: Apache-2.0
"""The torques that need no law: while states are stale, and on the way to the stop command."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.safety_settings import Action, SafetySettings


class Fallback:
    """
    What to do while there are no valid states, and what to leave behind at the end.

    Attributes
    ----------
    stale_since : float or None
        Steady time since which states are stale [s]; None: they are not.
    cause : str
        Why there are no valid states, as it was when they became stale.
    is_stop_command_sent : bool
        Whether the torque that ``on_stop`` asks for was sent.
    """

    def __init__(self) -> None:
        self.stale_since: float | None = None
        self.cause = ''
        self.is_stop_command_sent = False
        self._held: np.ndarray | None = None  # gravity where the arm should be
        self._braking: Reference | None = None  # that nobody measures, by the steady clock
        self._stop_torque: np.ndarray | None = None

    def begin(
        self, cause: str, gravity: np.ndarray, now: float, braking: Reference | None = None
    ) -> None:
        """
        Note that states are stale since now; gravity is that of where the arm should be.

        Parameters
        ----------
        cause : str
        gravity : array, shape (n,)
            [N m] or [N]
        now : float
            Steady time [s].
        braking : Reference, optional
            That brings the arm to rest, by the steady clock; None: it does not move, or only
            feedback could.
        """
        self.stale_since, self.cause = now, cause
        self._held, self._braking = gravity, braking

    def change_gravity(self, gravity: np.ndarray) -> None:
        """Take another model's gravity at the last valid state, where it is still held."""
        if self._held is not None:
            self._held = gravity

    def end(self) -> None:
        """Note that states are valid again."""
        self.stale_since = None

    def stale_torque(self, settings: SafetySettings, now: float) -> np.ndarray | None:
        """Return what stale states ask for, shape (n,) [N m] or [N]; None: silence."""
        if self.stale_since is not None and now - self.stale_since >= settings.stale_hold_time:
            self._held = None  # for good, whatever the hold time becomes
        return _torque(settings.on_stale_state, settings, self._held)

    def braked(self, settings: SafetySettings, now: float) -> ReferenceState | None:
        """Return where a brake that nobody measures has led by now; None: none is under way."""
        if self._braking is None or settings.on_stale_state != 'hold_gravity':
            return None
        return None if self._braking.is_finished(now) else self._braking.sample(now)

    def stop_torque(self, settings: SafetySettings, gravity: np.ndarray) -> np.ndarray | None:
        """Return where the stop command leads, decided at the first call; None: silence."""
        if self._stop_torque is None:
            self._stop_torque = _torque(settings.on_stop, settings, gravity)
        return self._stop_torque

    def action(self, settings: SafetySettings) -> str:
        """Return the action under way: one of ``ACTIONS``, or none."""
        if self.stale_since is None:
            return 'none'
        action = settings.on_stale_state
        return 'silent' if action == 'hold_gravity' and self._held is None else action


def _torque(
    action: Action, settings: SafetySettings, gravity: np.ndarray | None
) -> np.ndarray | None:
    if action == 'zero':
        return np.zeros_like(settings.effort_limits)
    if action == 'silent' or gravity is None or not np.isfinite(gravity).all():
        return None
    return gravity
