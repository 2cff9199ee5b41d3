# SPDX-License-Identifier: Apache-2.0
"""The last seconds of motion with its efforts, in memory that two processes share."""

from __future__ import annotations

import mmap
import zlib
from typing import NamedTuple

import numpy as np

_SIZE = 1 << 24  # of the memory [bytes]: 87 s of seven joints at 1 kHz
_CHECKSUM = 8  # bytes of a row, 4 of them used
_RATE = 250.0  # that quicker samples are averaged to [Hz]: what is estimated lies under 10 Hz


class Motion(NamedTuple):
    """
    Samples of n joints at K times.

    Parameters
    ----------
    time : array, shape (K,)
        Of the joint states, increasing [s].
    received : float
        When the last one came, by the steady clock [s].
    position, velocity, effort : array, shape (K, n)
        [rad or m], that per second, the drives' unit; NaN where it is not known.
    """

    time: np.ndarray
    received: float
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class MotionHistory:
    """
    A ring of samples: one process writes them, another reads; make it before they part by a fork.

    Notes
    -----
    A row is written with the CRC-32 of its bytes, as a ``StateSnapshot`` is, and for the same
    reason; one that the reader meets half written, or that was written for an arm with other
    joints, is left out. Pages that no sample has come to cost nothing.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._n = 0
        self._row = np.empty(0)
        self._next = 0  # row to be written

    def begin(self, n: int) -> None:
        """Write samples of an arm with n joints from now on."""
        self._n, self._row, self._next = n, np.empty(2 + 3 * n), 0

    def write(
        self,
        time: float,
        received: float,
        position: np.ndarray,
        velocity: np.ndarray,
        effort: np.ndarray,
    ) -> None:
        """Write a sample: float64 arrays of shape (n,), its own and its steady time [s]."""
        row, n = self._row, self._n
        row[0], row[1] = time, received
        row[2 : 2 + n], row[2 + n : 2 + 2 * n], row[2 + 2 * n :] = position, velocity, effort
        body = row.tobytes()
        stride = _CHECKSUM + len(body)
        if stride > _SIZE:
            return
        start = self._next * stride
        self._memory[start : start + stride] = (
            zlib.crc32(body).to_bytes(_CHECKSUM, 'little') + body
        )
        self._next = (self._next + 1) % (_SIZE // stride)

    def read(self, n: int, duration: float, since: float = 0.0) -> Motion | None:
        """
        Return the last samples; None where there are none.

        Parameters
        ----------
        n : int
            Joints of the arm.
        duration : float
            That they may be older than the newest one, by the time of the joint states [s].
        since : float
            Steady time after which they came [s].
        """
        rows = self._rows(n)
        rows = rows[rows[:, 1] > since]
        if not len(rows):
            return None
        rows = rows[np.argsort(rows[:, 1], kind='stable')]
        newest = rows[-1]
        age = newest[0] - rows[:, 0]
        rows = _averaged(rows[(age >= 0.0) & (age <= duration)])
        position, velocity, effort = np.split(rows[:, 2:], 3, axis=1)
        return Motion(rows[:, 0], float(newest[1]), position, velocity, effort)

    def _rows(self, n: int) -> np.ndarray:
        """Return all whole rows, in the order of the memory, shape (K, 2 + 3 n)."""
        stride = _CHECKSUM + 8 * (2 + 3 * n)
        count = _SIZE // stride
        content = self._memory[: count * stride]
        table = np.frombuffer(content, dtype=np.float64).reshape(count, stride // 8)
        # The steady time is positive where anything was written.
        written = np.flatnonzero(table[:, 2] > 0.0).tolist()
        whole = [
            k
            for k in written
            if int.from_bytes(content[k * stride : k * stride + _CHECKSUM], 'little')
            == zlib.crc32(memoryview(content)[k * stride + _CHECKSUM : (k + 1) * stride])
        ]
        return table[whole, 1:]


def _averaged(rows: np.ndarray) -> np.ndarray:
    """Return means of successive rows where they are more than ``_RATE`` a second."""
    span = rows[-1, 0] - rows[0, 0]
    width = int((len(rows) - 1) / (span * _RATE)) if span > 0.0 else 1
    if width < 2:
        return rows
    kept = len(rows) // width * width
    return rows[len(rows) - kept :].reshape(-1, width, rows.shape[1]).mean(axis=1)
