# SPDX-License-Identifier: Apache-2.0
"""A change of law as a ramp, so that the torque does not jump."""

from __future__ import annotations

import numpy as np


class Ramp:
    """
    The way from one torque to what the law wants: tau_0 + s (tau_law - tau_0), s rising 0 to 1.

    Parameters
    ----------
    is_due : bool
        Whether a ramp is to begin with the next cycle.
    """

    def __init__(self) -> None:
        self.is_due = False
        self._origin: np.ndarray | None = None
        self._elapsed = 0.0
        self._duration = 0.0

    def begin(self, origin: np.ndarray, duration: float) -> None:
        """Begin at a torque, shape (n,) [N m] or [N]; a ramp under way is forgotten."""
        self.is_due = False
        self._origin = origin
        self._elapsed = 0.0
        self._duration = duration

    def skip(self) -> None:
        """Be at the end of a ramp: what the law wants is commanded from now on."""
        self.is_due = False
        self._origin = None

    def advance(self, elapsed: float) -> None:
        """Let time pass [s]."""
        self._elapsed += elapsed
        if self._elapsed >= self._duration:
            self._origin = None

    def torque(self, wanted: np.ndarray, ahead: float) -> np.ndarray:
        """Return the torque on the way to the wanted one, shape (n,), a time ahead [s]."""
        elapsed = self._elapsed + ahead
        if self._origin is None or elapsed >= self._duration:
            return wanted
        return self._origin + elapsed / self._duration * (wanted - self._origin)
