# SPDX-License-Identifier: Apache-2.0
"""Which positions an arm's joints can have at all, whoever measures or asks for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robodyn_ros.model import RobotModel, possible_range
from robodyn_ros.spatial import FloatArray

_MOST_TOLD = 3  # joints


class PossiblePositions:
    """
    The range that each joint's position is in, unless it is in another unit.

    See ``robodyn_ros.model.possible_range``.

    Parameters
    ----------
    joint_names : sequence of str, length n
    position_limits : array, shape (n, 2)
        Lower and upper [rad] or [m]; infinite where there is none.
    prismatic : array of bool, shape (n,)
    """

    def __init__(
        self, joint_names: Sequence[str], position_limits: FloatArray, prismatic: np.ndarray
    ) -> None:
        self._joint_names = tuple(joint_names)
        self._prismatic = prismatic
        self._limits = position_limits
        lowest, highest = possible_range(position_limits, prismatic).T
        self.lowest, self.highest = lowest.copy(), highest.copy()

    @classmethod
    def of(cls, model: RobotModel) -> PossiblePositions:
        """Return those of an arm."""
        return cls(model.joint_names, model.position_limits, model.dh.prismatic)

    def remark(self, positions: dict[int, float]) -> str:
        """
        Return in words which of some joints' positions are impossible; empty: none is.

        Parameters
        ----------
        positions : dict of int to float
            By the joint's index [rad] or [m].
        """
        told = {
            i: f'{self._joint_names[i]} is at {value:.4g} {"m" if self._prismatic[i] else "rad"} '
            f'(limits {self._limits[i][0]:.4g} to {self._limits[i][1]:.4g})'
            for i, value in positions.items()
            if self.question(i, value)
        }
        if not told:
            return ''
        first, more = next(iter(told)), ', …' if len(told) > _MOST_TOLD else ''
        words = ', '.join(list(told.values())[:_MOST_TOLD])
        return f'{words}{more}: {self.question(first, positions[first])}'

    def question(self, joint: int, position: float) -> str:
        """Return which unit a joint's position may be in; empty: it is a possible one."""
        if not np.isfinite(position) or self.lowest[joint] <= position <= self.highest[joint]:
            return ''
        return 'in millimetres?' if self._prismatic[joint] else 'in degrees?'
