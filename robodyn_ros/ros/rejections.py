# SPDX-License-Identifier: Apache-2.0
"""What becomes of a rejected trajectory on /diagnostics: a topic has no other answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

PERIOD = 0.1  # between diagnostics that rejected trajectories cause, at least [s]


@dataclass
class Rejections:
    """
    The last trajectory that was rejected.

    Parameters
    ----------
    reason : str
        Empty: none was.
    stamp : float
        Of its header [s], by which its sender knows it; 0: it has none, or could not be read.
    """

    reason: str = ''
    stamp: float = 0.0

    def note(self, error: Exception, stamp: float) -> None:
        """Remember one."""
        self.reason, self.stamp = str(error), stamp

    @property
    def facts(self) -> dict[str, object]:
        """What diagnostics tell."""
        return {'last_rejection': self.reason, 'last_rejection_stamp': f'{self.stamp:.9f}'}


class AtOnce:
    """Whether diagnostics may be published out of turn, for a sender who waits for an answer."""

    def __init__(self) -> None:
        self._last = -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether they are at a steady time [s], which is then the last one."""
        if now - self._last < PERIOD:
            return False
        self._last = now
        return True
