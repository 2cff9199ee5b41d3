# SPDX-License-Identifier: Apache-2.0
"""
Pieces of a serialised message, for what rclpy would take too long to make objects of.

Alignment counts from behind the ``ENCODING`` bytes that a message begins with: what is read here
is without them. Offsets may lie behind the end; what is unpacked there raises ``struct.error``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from robodyn_ros.spatial import FloatArray

LITTLE_ENDIAN = b'\0\1'
"""How a message begins on nearly every machine; others are left to rclpy."""

ENCODING = 4  # bytes of a message that say how it is encoded

INTEGER, TIME = struct.Struct('<I'), struct.Struct('<iI')


def aligned(at: int, size: int = INTEGER.size) -> int:
    """Return the next offset that is a multiple of a size."""
    return -(-at // size) * size


def integer(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that is next, and where it ends."""
    at = aligned(at)
    return INTEGER.unpack_from(data, at)[0], at + INTEGER.size


def text(data: bytes, at: int) -> tuple[str, int]:
    """Return the text that is next, and where it ends."""
    size, at = integer(data, at)
    return data[at : at + max(size - 1, 0)].decode('utf-8', 'replace'), at + size


def texts(data: bytes, at: int, count: int) -> tuple[tuple[str, ...], int]:
    """Return the next count texts, and where they end."""
    found = []
    for _ in range(count):
        value, at = text(data, at)
        found.append(value)
    return tuple(found), at


def numbers(data: bytes, at: int) -> tuple[int, int, int]:
    """Return how many float64 are next, where the first one stands, and where they end."""
    count, at = integer(data, at)
    first = aligned(at, 8) if count else at
    return count, first, first + 8 * count


# --- written: all but the numbers once -----------------------------------------------------------

_STAMP = struct.Struct('=iI')  # of a header, its first field
_STAMP_END = ENCODING + _STAMP.size


def head(message: Any, field: str, n: int) -> bytes:
    """Return a serialised message up to the n numbers of its last field; padding may follow."""
    numbers = np.linspace(math.e, math.pi, n)
    setattr(message, field, numbers.tolist())
    return serialize_message(message).partition(numbers.tobytes())[0]


class SerializedEfforts:
    """
    A JointState of names and efforts.

    Parameters
    ----------
    joint_names : sequence of str
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        whole = head(JointState(name=list(joint_names)), 'effort', len(joint_names))
        self._encoding, self._names = whole[:ENCODING], whole[_STAMP_END:]

    def message(self, stamp: Time, effort: FloatArray) -> bytes:
        """Return it with a stamp and efforts, shape (n,), contiguous [N m] or [N]."""
        stamped = _STAMP.pack(stamp.sec, stamp.nanosec)
        return self._encoding + stamped + self._names + effort.tobytes()
