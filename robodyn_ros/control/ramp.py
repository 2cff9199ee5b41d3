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

    def begin(self, origin: np.ndarray) -> None:
        """Begin at a torque, shape (n,) [N m] or [N]; a ramp under way is forgotten."""
        self.is_due = False
        self._origin = origin
        self._elapsed = 0.0

    def advance(self, elapsed: float) -> None:
        """Let time pass [s]."""
        self._elapsed += elapsed

    def torque(self, wanted: np.ndarray, duration: float) -> np.ndarray:
        """Return the torque between the origin and the wanted one, shape (n,), for now."""
        if self._origin is None or self._elapsed >= duration:
            self._origin = None
            return wanted
        return self._origin + self._elapsed / duration * (wanted - self._origin)
