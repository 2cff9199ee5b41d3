# SPDX-License-Identifier: Apache-2.0
"""A joint trajectory of a user or a planner: its own numbers, times and names checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.errors import Phrase, RejectedTrajectory, later_than

# Reading and planning them takes 10 ms, a period of the watchdog; no cycle runs meanwhile.
MOST_POINTS = 1_000


@dataclass(frozen=True, eq=False)
class Trajectory:
    """
    Waypoints of some joints; build it with ``Trajectory.from_points``, which checks it.

    Parameters
    ----------
    joint_names : tuple of str, length m
        The joints that move.
    times : array, shape (k,)
        Time of each waypoint after the start [s], strictly increasing.
    positions, velocities, accelerations : array, shape (k, m)
        [rad], [rad/s], [rad/s²] or the same in metres; NaN in the rows of waypoints that give
        none.
    efforts : array, shape (k, m)
        Feedforward torque [N m] or force [N], zero where none is given.
    start : float or None
        Start on the clock that the reference is sampled with [s]; None: on arrival.
    """

    joint_names: tuple[str, ...]
    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray
    efforts: np.ndarray
    start: float | None = None

    @classmethod
    def from_points(
        cls,
        joint_names: Sequence[str],
        times: Sequence[float],
        positions: Sequence[Sequence[float]],
        velocities: Sequence[Sequence[float]],
        accelerations: Sequence[Sequence[float]],
        efforts: Sequence[Sequence[float]],
        *,
        start: float | None = None,
    ) -> Trajectory:
        """
        Return the checked trajectory; every argument has one entry per waypoint.

        An empty velocity, acceleration or effort of a waypoint means that it gives none.

        Raises
        ------
        RejectedTrajectory
            A joint named twice, no joints, no waypoints or more than ``MOST_POINTS``, a row of the
            wrong length, a value that is not finite, an acceleration without velocity, times that
            do not increase.
        """
        names = tuple(joint_names)
        if not names:
            raise RejectedTrajectory('trajectory joint_names', names, 'at least one joint')
        if len(set(names)) < len(names):
            ((twice, _),) = Counter(names).most_common(1)
            raise RejectedTrajectory('trajectory joint_names', twice, 'each joint once')
        if len(times) == 0:
            raise RejectedTrajectory('trajectory points', 0, 'at least one point')
        if len(times) > MOST_POINTS:
            raise RejectedTrajectory(
                'trajectory points', len(times), f'at most {MOST_POINTS}; send them in parts'
            )
        trajectory = cls(
            names,
            _checked_times(times),
            _rows('positions', positions, len(names), optional=False),
            _rows('velocities', velocities, len(names)),
            _rows('accelerations', accelerations, len(names)),
            np.nan_to_num(_rows('effort', efforts, len(names))),
            start,
        )
        lost = np.isnan(trajectory.velocities) & np.isfinite(trajectory.accelerations)
        if lost.any():
            raise RejectedTrajectory(
                f'trajectory points[{int(np.argmax(lost.any(axis=1)))}]',
                Phrase('accelerations without velocities'),
                'velocities wherever there are accelerations',
            )
        return trajectory

    def without(self, names: Collection[str]) -> Trajectory:
        """
        Return the trajectory of the other joints.

        Raises
        ------
        RejectedTrajectory
            There is none.
        """
        left = [k for k, name in enumerate(self.joint_names) if name not in names]
        if len(left) == len(self.joint_names):
            return self
        if not left:
            allowed = 'at least one joint of the model: these move nothing of it'
            raise RejectedTrajectory('trajectory joint_names', self.joint_names, allowed)
        parts = ('positions', 'velocities', 'accelerations', 'efforts')
        kept = {part: getattr(self, part)[:, left] for part in parts}
        return replace(self, joint_names=tuple(self.joint_names[k] for k in left), **kept)


def _checked_times(given: Sequence[float]) -> np.ndarray:
    times = np.asarray(given, dtype=float)
    if not np.isfinite(times).all() or times[0] < 0.0:
        raise RejectedTrajectory(
            'trajectory time_from_start', times.tolist(), 'finite times, none negative'
        )
    late = np.diff(times) <= 0.0
    if late.any():
        at = int(np.argmax(late)) + 1
        raise RejectedTrajectory(
            f'trajectory points[{at}] time_from_start',
            float(times[at]),
            later_than('point', float(times[at - 1] - times[at])),
            unit='s',
        )
    return times


def _rows(
    field: str, rows: Sequence[Sequence[float]], length: int, optional: bool = True
) -> np.ndarray:
    """Return the rows as an array, NaN where an optional row is empty."""
    table = np.full((len(rows), length), np.nan)
    given = []
    for i, row in enumerate(rows):
        if len(row) == length:
            given.append(i)
        elif len(row) > 0 or not optional:
            raise RejectedTrajectory(
                f'trajectory points[{i}].{field}',
                Phrase(f'{len(row)} values'),
                f'{length}, one for each joint' + (', or none' if optional else ''),
            )
    if given:
        table[given] = np.array([rows[i] for i in given], dtype=float)
    bad = ~np.isfinite(table).all(axis=1)
    for i in given:
        if bad[i]:
            raise RejectedTrajectory(
                f'trajectory points[{i}].{field}', list(rows[i]), 'finite numbers'
            )
    return table
