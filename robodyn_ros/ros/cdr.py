# SPDX-License-Identifier: Apache-2.0
"""
Pieces of a serialised message, for what rclpy would take too long to make objects of.

Alignment counts from behind the ``ENCODING`` bytes that a message begins with: what is read here
is without them. Offsets may lie behind the end; what is unpacked there raises ``struct.error``.
"""

from __future__ import annotations

import struct

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
    """Return so many texts that are next, and where they end."""
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


def seconds(whole: int, nanoseconds: int) -> float:
    """Return a time in seconds."""
    return whole + 1e-9 * nanoseconds
