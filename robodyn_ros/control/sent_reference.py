# SPDX-License-Identifier: Apache-2.0
"""
Whether a controller still holds what it was sent last, by how the arm moves beside it.

A soft drive under a load that the model does not have is far from its reference and follows it all
the same. So the size of the deviation does not decide, but how it changes.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.control_stack import continuous_joints
from robodyn_ros.control.reference import Reference
from robodyn_ros.model import RobotModel

# A deviation that is no more, and a change of one, is that of any drive [rad] or [m].
LARGEST_DEVIATION = 0.01

# Further from what it was sent, no drive is taken to hold the arm [rad] or [m].
FARTHEST_HELD = 0.5

_WINDOW = 1.0  # that the arm's motion is judged by [s]
_STEP = 0.1  # over which two changes of the deviation are compared [s]
_INTERVAL = 0.01  # between two states that are remembered [s]
_LONG_WAY = 0.05  # of a reference along which an arm that follows moves [rad] or [m]
_SETTLE_TIME = 1.0  # after the end of a reference the arm rests [s]


class _Moment(NamedTuple):
    time: float
    deviation: np.ndarray


class SentReference:
    """
    What a controller was sent last, and how far from it the arm is.

    Parameters
    ----------
    arm : RobotModel

    Attributes
    ----------
    reference : Reference or None
        What was sent; None: nothing, or the controller was told otherwise since.
    is_only_command : bool
        Whether ``forget`` is called whenever the controller comes to hold something else, because
        it is activated or is sent something by others.
    """

    def __init__(self, arm: RobotModel) -> None:
        self.reference: Reference | None = None
        self.is_only_command = True
        self._arm = arm
        self._continuous = continuous_joints(arm)
        self._moments: deque[_Moment] = deque()
        self._position = np.full(arm.n, np.nan)
        self._time = self._sent_at = self._judged_from = -np.inf
        self._rested_at: np.ndarray | None = None  # the deviation when the arm came to rest
        # Whether the arm moves at all: its range, and where the reference began meanwhile.
        self._lowest = self._highest = self._origin = self._position

    def forget(self) -> None:
        """Begin anew: the controller holds something else."""
        self.reference = None
        self._moments.clear()

    def replace(self, reference: Reference, now: float, *, goes_on: bool) -> None:
        """
        Take what is sent now.

        Parameters
        ----------
        reference : Reference
        now : float
            On its clock [s].
        goes_on : bool
            Whether it begins on the reference before it.
        """
        before = self.reference
        if not goes_on:
            self._moments.clear()
        if not goes_on or before is None or self._is_long or self._has_moved:
            self._lowest = self._highest = self._position
            self._origin = reference.sample(now).position
        # Until a later start the controller ends what it executes in a way of its own.
        is_moving = now < self._judged_from or (
            before is not None and before.knots[0] <= now and not before.is_finished(now)
        )
        is_later = reference.knots[0] > now + _INTERVAL
        self._judged_from = reference.knots[0] if is_moving and is_later else -np.inf
        self.reference, self._sent_at = reference, now
        self._rested_at = None

    def take(self, position: np.ndarray, time: float) -> None:
        """Take where the arm is at a time [s]."""
        self._position, self._time = position, time
        moments = self._moments
        if self.reference is None or time < self._judged_from:
            moments.clear()
            return
        since = time - moments[-1].time if moments else np.inf
        if 0.0 <= since < _INTERVAL:
            return
        self._lowest = np.minimum(self._lowest, position)
        self._highest = np.maximum(self._highest, position)
        if moments and not 0.0 <= since <= 0.5 * _WINDOW:
            moments.clear()
        moments.append(_Moment(time, self.deviation))
        while moments[0].time < time - _WINDOW:
            moments.popleft()
        if self._rested_at is None and self.reference.is_finished(time - _SETTLE_TIME):
            self._rested_at = moments[-1].deviation

    @property
    def deviation(self) -> np.ndarray:
        """How far the arm is from the reference, shape (n,) [rad] or [m]."""
        return self._from_reference(self._position)

    def _from_reference(self, position: np.ndarray) -> np.ndarray:
        assert self.reference is not None
        way = position - self.reference.sample(self._time).position
        wrapped = np.remainder(way + np.pi, 2.0 * np.pi) - np.pi
        return np.where(self._continuous, wrapped, way)

    @property
    def _has_moved(self) -> bool:
        return bool((self._highest - self._lowest).max() > LARGEST_DEVIATION)

    @property
    def _is_long(self) -> bool:
        return bool(np.abs(self._from_reference(self._origin)).max() > _LONG_WAY)

    def doubt(self) -> str:
        """Return why the controller may not hold what was sent, as text; empty: it does."""
        size = np.abs(self.deviation)
        if size.max() <= LARGEST_DEVIATION:
            return ''
        if size.max() > FARTHEST_HELD:
            return f'that is more than {FARTHEST_HELD:g}'
        if self._time < self._judged_from:
            return 'the controller has not begun it'
        if not self.is_only_command and self._rested_at is not None:
            if np.abs(self.deviation - self._rested_at).max() > LARGEST_DEVIATION:
                return 'the arm left it at rest, and others may have commanded the controller'
        if self._is_long and not self._has_moved:
            return 'the arm stood still while it moved'
        return self._doubt_by_motion(size)

    def _doubt_by_motion(self, size: np.ndarray) -> str:
        later = [each for each in self._moments if each.time <= self._time - _STEP]
        earlier = [each for each in later if each.time <= self._time - 2.0 * _STEP]
        if not earlier:
            is_new = self._time - self._sent_at <= 3.0 * _STEP
            return '' if is_new else f'no joint states came for {2.0 * _STEP:g} s'
        before, long_before = np.abs(later[-1].deviation), np.abs(earlier[-1].deviation)
        farthest = np.max([np.abs(each.deviation) for each in later], axis=0)
        growth = np.maximum(before - long_before, 0.0) + LARGEST_DEVIATION
        is_falling = (size > farthest + LARGEST_DEVIATION) & (size - before > growth)
        if is_falling.any():
            return f'{self._names(is_falling)} moves away from it faster and faster'
        return ''

    def _names(self, which: np.ndarray) -> str:
        return ', '.join(self._arm.joint_names[i] for i in np.flatnonzero(which))

    def deviation_text(self) -> str:
        """Return how far the arm is from the reference, joint by joint where that is much."""
        prismatic, deviation = self._arm.dh.prismatic, self.deviation.tolist()
        return ', '.join(
            f'{name} by {off:.3g} {"m" if slides else "rad"}'
            for name, off, slides in zip(self._arm.joint_names, deviation, prismatic)
            if abs(off) > LARGEST_DEVIATION
        )
