# SPDX-License-Identifier: Apache-2.0
"""
Messages of which all but the numbers is serialised once.

rclpy takes four times as long to publish a message as it does to publish its bytes.
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

from robodyn_ros.ros import cdr
from robodyn_ros.spatial import FloatArray

_STAMP = struct.Struct('=iI')  # of a header, its first field
_STAMP_END = cdr.ENCODING + _STAMP.size


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
        self._encoding, self._names = whole[: cdr.ENCODING], whole[_STAMP_END:]

    def message(self, stamp: Time, effort: FloatArray) -> bytes:
        """Return it with a stamp and efforts, shape (n,), contiguous [N m] or [N]."""
        stamped = _STAMP.pack(stamp.sec, stamp.nanosec)
        return self._encoding + stamped + self._names + effort.tobytes()
