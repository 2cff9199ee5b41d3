# SPDX-License-Identifier: Apache-2.0
"""The last station of every torque: effort clip, rate limit, effort clip."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LONGEST_RATE_STEP = 0.01
"""However long nothing was sent, the rate limit allows no more than this time's step [s]."""

_SHORTEST = 1e-9  # stands for two commands in one instant; keeps "no limit" times it infinite [s]


class LimitedTorque(NamedTuple):
    """
    A torque after the limits, and what they did; every array has shape (n,).

    Parameters
    ----------
    torque : array
        [N m] or [N].
    effort_limited, rate_limited : array of bool
        Joints whose torque that limit changed.
    """

    torque: np.ndarray
    effort_limited: np.ndarray
    rate_limited: np.ndarray


def limited_torque(
    torque: np.ndarray,
    effort_limits: np.ndarray,
    rate_limits: np.ndarray,
    last: np.ndarray | None,
    elapsed: float,
) -> LimitedTorque:
    """
    Return the torque to send, some time after another one.

    Parameters
    ----------
    torque : array, shape (n,)
        Finite [N m] or [N].
    effort_limits, rate_limits : array, shape (n,)
        [N m] or [N], and that per second.
    last : array, shape (n,), or None
        What was sent last; None: nothing that the torque would have to continue.
    elapsed : float
        Since then [s].

    Notes
    -----
    Effort limits that were lowered take force at the pace of the rate limit: a torque beyond
    them may only shrink, and shrinks as fast as that allows.
    """
    clipped = _between(torque, -effort_limits, effort_limits)
    allowed = clipped
    if last is not None:
        step = rate_limits * min(max(elapsed, _SHORTEST), LONGEST_RATE_STEP)
        allowed = _between(clipped, last - step, last + step)
        effort_limits = np.maximum(effort_limits, np.abs(last))
    sent = _between(allowed, -effort_limits, effort_limits)
    return LimitedTorque(sent, clipped != torque, allowed != clipped)


class TorqueLimiter:
    """
    Limits torques, and remembers the last one as sent.

    Parameters
    ----------
    compute : callable
        ``limited_torque``, or what computes the same.

    Attributes
    ----------
    last_torque : array, shape (n,), or None
        What was sent last [N m] or [N]; None: nothing that a torque would have to continue.
    last_sent : float
        When, by the steady clock [s].
    """

    def __init__(self, compute: Callable[..., tuple[np.ndarray, ...]] = limited_torque) -> None:
        self._compute = compute
        self.last_torque: np.ndarray | None = None
        self.last_sent = -np.inf

    def forget(self) -> None:
        """Begin a new stream of commands, which continues nothing."""
        self.last_torque = None

    def limited(
        self,
        torque: np.ndarray,
        effort_limits: np.ndarray,
        rate_limits: np.ndarray,
        now: float,
    ) -> LimitedTorque:
        """
        Return the torque to send at a steady time [s]; see ``limited_torque``.

        Parameters
        ----------
        torque, effort_limits, rate_limits : array, shape (n,)
            [N m] or [N], and the last one that per second.
        """
        elapsed = now - self.last_sent
        found = LimitedTorque(
            *self._compute(torque, effort_limits, rate_limits, self.last_torque, elapsed)
        )
        self.last_torque, self.last_sent = found.torque, now
        return found


def _between(torque: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Clip, in a third of the time of numpy.clip on arrays as short as these."""
    return np.minimum(np.maximum(torque, lowest), highest)
