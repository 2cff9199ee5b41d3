# SPDX-License-Identifier: Apache-2.0
"""An effort that somebody else has added to the torque: scaled, limited, faded when it is old."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from os.path import commonprefix

import numpy as np

from robodyn_ros.spatial import FloatArray

_MOST_LAYOUTS = 8  # of messages remembered


class AddedEffort:
    """
    The newest effort of each joint, and when it came.

    Parameters
    ----------
    joint_names : sequence of n str
        In chain order.
    scale : array, shape (n,)
        What an effort is multiplied by.
    limit : array, shape (n,)
        Largest effort that is added [N m] or [N].
    timeout : float
        An older effort fades, and is gone when it is twice as old [s].

    Attributes
    ----------
    refused : int
        Messages that could not be used.
    """

    def __init__(
        self, joint_names: Sequence[str], scale: FloatArray, limit: FloatArray, timeout: float
    ) -> None:
        self.scale, self.limit, self.timeout = scale, limit, timeout
        self.refused = 0
        self._joint_names = tuple(joint_names)
        self._columns: dict[tuple[str, ...], list[int] | str] = {}  # of names that came before
        self._effort = np.zeros(len(self._joint_names))
        self._received = -np.inf

    def receive(
        self, names: Sequence[str], effort: Sequence[float] | np.ndarray, now: float
    ) -> str:
        """
        Take in one message, and return why it cannot be used; empty: it can.

        Parameters
        ----------
        names, effort
            As in sensor_msgs/JointState. Joints that are not named get nothing added. All joints
            of an arm of the same kind may have another prefix than ours.
        now : float
            When it came, by the steady clock [s].
        """
        columns = self._known_columns(names)
        if isinstance(columns, str):
            fault = columns
        elif len(effort) != len(names):
            fault = f'{len(names)} names but {len(effort)} efforts'
        elif not all(map(isfinite, effort)):
            fault = 'efforts that are not finite'
        else:
            given = np.zeros(len(self._joint_names))
            given[columns] = effort
            with np.errstate(over='ignore'):
                scaled = self.scale * given
            self._effort = np.minimum(np.maximum(scaled, -self.limit), self.limit)
            self._received = now
            return ''
        return self.refuse(fault)

    def refuse(self, fault: str) -> str:
        """Count a message that cannot be used, and return why."""
        self.refused += 1
        return fault

    def at(self, now: float) -> FloatArray | None:
        """Return what is added at a steady time [s], shape (n,) [N m] or [N]; None: nothing."""
        age = now - self._received
        if age >= 2.0 * self.timeout:
            return None
        if age <= self.timeout:
            return self._effort
        return (2.0 - age / self.timeout) * self._effort

    def _known_columns(self, names: Sequence[str]) -> list[int] | str:
        """Return which joints the names are, or why they are none."""
        if len(names) > len(self._joint_names):
            return f'{len(names)} names; allowed: at most {len(self._joint_names)}'
        key = tuple(names)
        if key not in self._columns:
            if len(self._columns) >= _MOST_LAYOUTS:
                self._columns.clear()
            self._columns[key] = self._matched(key)
        return self._columns[key]

    def _matched(self, names: tuple[str, ...]) -> list[int] | str:
        if len(set(names)) < len(names):
            return 'a joint is named twice'
        ours = self._joint_names
        if not set(names) <= set(ours) and len(names) == len(ours):
            ours, names = _without_prefix(ours), _without_prefix(names)
        strangers = [name for name in names if name not in ours]
        if strangers:
            return f'joint {strangers[0][:40]!r}; allowed: {", ".join(self._joint_names)}'
        return [ours.index(name) for name in names]


def _without_prefix(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without what all of them begin with."""
    length = len(commonprefix(names))
    return tuple(name[length:] for name in names)
