# SPDX-License-Identifier: Apache-2.0
"""
A trajectory message read from its bytes, so that long trajectories cost no control cycle.

rclpy makes a Python object of every waypoint and every number, and no cycle runs in that time.
Here what waypoints of the same layout have in common is read once, and their numbers are taken out
of the message in one piece.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.errors import MalformedData, Phrase, RejectedTrajectory
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows
from robodyn_ros.ros import cdr
from robodyn_ros.ros.conversions import seconds
from robodyn_ros.ros.rclpy_workarounds import message_of

MOST_JOINTS = 1000
LONGEST_NAMES = 100_000
"""Of all joints of a message together [bytes]."""

_PERIOD = 0.1  # between diagnostics that rejected trajectories cause, at least [s]
_MOST_AT_ONCE = 256  # points that are looked at for having the same layout


class TrajectoryMessage(NamedTuple):
    """A trajectory_msgs/JointTrajectory: the stamp of its header [s], and what it holds."""

    stamp: float
    rows: TrajectoryRows

    @classmethod
    def from_bytes(cls, message: bytes, joints: int) -> TrajectoryMessage:
        """
        Return the content of a serialised message for an arm with a number of joints.

        Raises
        ------
        RejectedTrajectory
            A message of more bytes than ``largest_size``, of more than ``MOST_POINTS`` points or
            ``MOST_JOINTS`` joints, or bytes that are no such message.
        """
        if len(message) > (largest := largest_size(joints)):
            raise RejectedTrajectory(
                'trajectory message',
                Phrase(f'{len(message)} bytes'),
                f'at most {largest}, for {MOST_POINTS} points of {joints} joints',
            )
        try:
            if message[:2] == cdr.LITTLE_ENDIAN:
                return _read(message[cdr.ENCODING :])
            return cls.from_message(message_of(message, JointTrajectory))
        except (struct.error, MalformedData) as error:
            raise RejectedTrajectory(
                'trajectory message',
                Phrase(f'{len(message)} bytes'),
                'a trajectory_msgs/JointTrajectory',
            ) from error

    @classmethod
    def from_message(cls, message: JointTrajectory) -> TrajectoryMessage:
        """Return the content of a message that rclpy has deserialised."""
        points = message.points
        fields = (
            [getattr(point, name) for point in points] for name in TrajectoryRows._fields[2:]
        )
        times = [seconds(point.time_from_start) for point in points]
        rows = TrajectoryRows(tuple(message.joint_names), times, *fields)
        return cls(seconds(message.header.stamp), rows)

    def trajectory(self, start: float | None) -> Trajectory:
        """
        Return the checked waypoints.

        Parameters
        ----------
        start : float or None
            The message's start on the reference's clock [s]; None: on arrival.

        Raises
        ------
        RejectedTrajectory
            What is malformed.
        """
        return Trajectory.from_points(*self.rows, start=start)


def largest_size(joints: int) -> int:
    """Return the size of the largest message that is read [bytes], by the number of joints."""
    return LONGEST_NAMES + MOST_POINTS * (4 * 8 * (joints + 1) + cdr.TIME.size)


def _read(data: bytes) -> TrajectoryMessage:
    """Return a message in plain CDR, little-endian."""
    whole, nanoseconds = cdr.TIME.unpack_from(data)
    _, at = cdr.text(data, cdr.TIME.size)  # the frame
    count, at = cdr.integer(data, at)
    if count > MOST_JOINTS:
        raise RejectedTrajectory('trajectory joint_names', count, f'at most {MOST_JOINTS}')
    names, at = cdr.texts(data, at, count)
    count, at = cdr.integer(data, at)
    if count > MOST_POINTS:
        raise RejectedTrajectory(
            'trajectory points', count, f'at most {MOST_POINTS}; send them in parts'
        )
    times: list[float] = []
    fields: list[list[Sequence[float]]] = [[], [], [], []]
    while len(times) < count:
        at = _read_points(data, at, count - len(times), times, fields)
    stamp = whole + 1e-9 * nanoseconds
    return TrajectoryMessage(stamp, TrajectoryRows(names, times, *fields))


def _read_points(
    data: bytes, begin: int, most: int, times: list[float], fields: list[list[Sequence[float]]]
) -> int:
    """Take the next point and those after it with the same layout; return where they end."""
    layout, at = [], begin  # of each field: where its length stands, and its numbers, and how many
    for _ in fields:
        length, first, end = cdr.numbers(data, at)
        layout.append((cdr.aligned(at), first, length))
        at = end
    time = cdr.aligned(at)
    size = time + cdr.TIME.size - begin
    cdr.TIME.unpack_from(data, time)  # the point is there in full
    count = 1
    if size % 8 == 0:
        count = min(most, _MOST_AT_ONCE, (len(data) - begin) // size)
    points = np.frombuffer(data, np.uint8, count * size, begin).reshape(count, size)

    def column(start: int, length: int, kind: str) -> np.ndarray:
        part = points[:, start - begin : start - begin + length * np.dtype(kind).itemsize]
        return np.ascontiguousarray(part).view(kind)

    is_alike = np.ones(count, dtype=bool)
    for place, _, length in layout:
        is_alike &= column(place, 1, '<u4')[:, 0] == length
    if not is_alike.all():
        count = int(np.argmin(is_alike))
        points = points[:count]
    for (_, first, length), rows in zip(layout, fields, strict=True):
        rows.extend(column(first, length, '<f8') if length else [()] * count)
    seconds, nanoseconds = column(time, 1, '<i4')[:, 0], column(time + 4, 1, '<u4')[:, 0]
    times.extend((seconds + 1e-9 * nanoseconds).tolist())
    return begin + count * size


# --- what becomes of a rejected one, which a topic does not answer -------------------------------


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
        """Store a rejection."""
        self.reason, self.stamp = str(error), stamp

    @property
    def facts(self) -> dict[str, object]:
        """The facts for diagnostics."""
        stamp = f'{self.stamp:.9f}' if self.stamp else ''
        return {'last_rejection': self.reason, 'last_rejection_stamp': stamp}


class RateLimiter:
    """Limits diagnostics published at once, for a sender who waits for an answer."""

    def __init__(self) -> None:
        self._last = -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether they are at a steady time [s], which is then the last one."""
        if now - self._last < _PERIOD:
            return False
        self._last = now
        return True
