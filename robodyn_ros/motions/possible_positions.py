# SPDX-License-Identifier: Apache-2.0
"""Which positions joints can have; what is beyond them is in degrees or millimetres."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robodyn_ros.errors import MalformedData, Phrase, RobodynError, shown
from robodyn_ros.model import RobotModel, position_unit, possible_range
from robodyn_ros.motions.stamps import velocity_ratios
from robodyn_ros.spatial import FloatArray

_MOST_TOLD = 3  # joints
OTHER_UNITS = 'in degrees?', 'in millimetres?'  # of revolute and of prismatic joints
UNIT_RATIOS = (50.0, 65.0), (800.0, 1250.0)  # of numbers in them to those in radians, metres


def velocity_error(ratio: float, zero: float = 0.2) -> str:
    """
    Return what is wrong with a joint's velocity, as text.

    Parameters
    ----------
    ratio : float
        To that of its positions; infinite: they do not change.
    zero : float
        Below which it is zero.
    """
    low, high = UNIT_RATIOS[0]
    if -1.5 < ratio < -0.6:
        return 'has the wrong sign'
    if abs(ratio) < zero:
        return 'is zero while it moves'
    if low < ratio < high:
        return 'is in degrees'
    if np.isfinite(ratio):
        return f'is {ratio:.2g} times the change of its position'
    return 'is not zero while it stands still'


class PossiblePositions:
    """
    The range of each joint's position; beyond it the position is in another unit.

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
        self.prismatic = prismatic
        self._limits = position_limits
        lowest, highest = possible_range(position_limits, prismatic).T
        self.lowest, self.highest = lowest.copy(), highest.copy()

    @classmethod
    def of(cls, model: RobotModel) -> PossiblePositions:
        """Return those of an arm."""
        return cls(model.joint_names, model.position_limits, model.dh.prismatic)

    def describe_impossible(self, positions: dict[int, float]) -> str:
        """
        Return as text which of some joints' positions are impossible; empty: none is.

        Parameters
        ----------
        positions : dict of int to float
            By the joint's index [rad] or [m].
        """
        told = {
            i: f'{self._joint_names[i]} is at {value:.4g} {position_unit(self.prismatic[i])} '
            f'(limits {self._limits[i][0]:.4g} to {self._limits[i][1]:.4g})'
            for i, value in positions.items()
            if self.suspected_unit(i, value)
        }
        if not told:
            return ''
        first, more = next(iter(told)), ', …' if len(told) > _MOST_TOLD else ''
        words = ', '.join(list(told.values())[:_MOST_TOLD])
        return f'{words}{more}: {self.suspected_unit(first, positions[first])}'

    def suspected_unit(self, joint: int, position: float) -> str:
        """Return which unit a joint's position may be in; empty: it is a possible one."""
        if not np.isfinite(position) or self.lowest[joint] <= position <= self.highest[joint]:
            return ''
        return OTHER_UNITS[bool(self.prismatic[joint])]

    def within_limits(self, joint: int, position: float) -> str:
        """Return what a position that is beyond the limits of its joint should be, as text."""
        question = self.suspected_unit(joint, position)
        limits = shown(self._limits[joint], position_unit(self.prismatic[joint]))
        return f'within the position limits {limits}' + (f'; {question}' if question else '')

    def check(
        self,
        what: str,
        positions: FloatArray,
        columns: np.ndarray | None = None,
        error: type[RobodynError] = MalformedData,
    ) -> None:
        """
        Refuse positions in another unit.

        Parameters
        ----------
        what : str
            A row of them, for the message.
        positions : array, shape (N, m)
            Of these joints.
        columns : array of int, shape (m,), optional
            Which joints; not given: all.
        error : class
            What to raise.
        """
        joints = np.arange(len(self.lowest)) if columns is None else columns
        beyond = (positions < self.lowest[joints]) | (positions > self.highest[joints])
        if beyond.any():
            row, column = (int(k) for k in np.argwhere(beyond)[0])
            joint, position = int(joints[column]), float(positions[row, column])
            raise error(
                f'{what} {row + 1}, position of joint {self._joint_names[joint]!r}',
                position,
                self.within_limits(joint, position),
                unit=position_unit(self.prismatic[joint]),
            )

    def check_velocities(
        self, time: FloatArray, positions: FloatArray, velocities: FloatArray
    ) -> None:
        """
        Refuse velocities (N, n) in degrees or millimetres beside positions that are not.

        Raises
        ------
        MalformedData
        """
        if len(time) < 2:
            return
        ratio = velocity_ratios(time, positions, velocities)
        for joint, slides in enumerate(self.prismatic):
            low, high = UNIT_RATIOS[bool(slides)]
            if low < ratio[joint] < high:
                raise MalformedData(
                    f'velocity of joint {self._joint_names[joint]!r}',
                    Phrase(f'{ratio[joint]:.3g} times the change of its position'),
                    f'that in {position_unit(slides)}/s; {OTHER_UNITS[bool(slides)]}',
                )
