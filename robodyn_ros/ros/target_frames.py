# SPDX-License-Identifier: Apache-2.0
"""Frames of targets that are neither base nor tip: from /tf, where ``tf2_ros`` is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.time import Time

from robodyn_ros.control.tip_target import RejectedTarget, TipPose
from robodyn_ros.errors import Phrase
from robodyn_ros.ros import conversions
from robodyn_ros.ros.plain_text import plain

LONGEST_AGE = 1.0
"""Of the newest transform of a frame that moves [s]."""


class TargetFrames:
    """
    Where other frames are in the base link's, when a message comes.

    Reading /tf takes time of control cycles: it begins with the first target that needs it, which
    is refused where its transform has not come yet.

    Parameters
    ----------
    node : Node
        Subscribes to /tf and /tf_static.
    base, tip : str
        Links whose frames need no transform.
    """

    def __init__(self, node: Node, base: str, tip: str) -> None:
        self._node, self._base = node, base
        self._is_relative = {'': False, tip: True, base: False}
        self._tf2: Any = None
        self._buffer: Any = None
        self._listener: Any = None

    def placed(self, frame: str) -> tuple[bool, TipPose | None]:
        """
        Return whether a frame is that of the tip's reference, and another one's pose in the base.

        Raises
        ------
        RejectedTarget
            There is no such transform, or it is stale, not finite or no rotation.
        """
        if frame in self._is_relative:
            return self._is_relative[frame], None
        if self._buffer is None:
            self._listen(frame)
        try:
            found = self._buffer.lookup_transform(self._base, frame, Time())
        except self._tf2.TransformException as error:
            raise RejectedTarget(
                'frame_id',
                frame,
                f'a frame of /tf with a transform to {self._base!r}; of what came since it '
                f'was first needed, tf2 says: {plain(str(error))[:200]}',
            ) from None
        age = conversions.seconds(self._node.get_clock().now().to_msg())
        age -= conversions.seconds(found.header.stamp)
        element = f'transform of frame_id {frame!r}'
        # A static transform has no stamp.
        if found.header.stamp != Time().to_msg() and not age <= LONGEST_AGE:
            raise RejectedTarget(element, Phrase(f'{age:.3g} s old'), f'at most {LONGEST_AGE:g} s')
        there, turn = found.transform.translation, found.transform.rotation
        xyzw = turn.x, turn.y, turn.z, turn.w
        return False, TipPose.checked((there.x, there.y, there.z), xyzw, element)

    def close(self) -> None:
        """Read /tf no longer."""
        if self._listener is not None:
            self._listener.unregister()
        self._listener = self._buffer = None

    def _listen(self, frame: str) -> None:
        try:
            import tf2_ros
        except ImportError:
            known = ', '.join(repr(name) for name in self._is_relative)
            raise RejectedTarget(
                'frame_id', frame, f'one of {known}; with tf2_ros installed, those of /tf'
            ) from None
        self._tf2, self._buffer = tf2_ros, tf2_ros.Buffer()
        self._listener = tf2_ros.TransformListener(self._buffer, self._node)


def in_base(frame: TipPose | None, pose: TipPose) -> TipPose:
    """Return a pose that is given in a frame; None: in the base link's."""
    if frame is None:
        return pose
    turn = _rotation(frame.xyzw)
    return TipPose(frame.position + turn @ pose.position, _product(frame.xyzw, pose.xyzw))


def turned(frame: TipPose | None, wrench: list[float]) -> list[float]:
    """Return a wrench at the tip, given in a frame's axes, in base axes."""
    if frame is None:
        return wrench
    turned: list[float] = (np.reshape(wrench, (2, 3)) @ _rotation(frame.xyzw).T).ravel().tolist()
    return turned


def _rotation(xyzw: np.ndarray) -> np.ndarray:
    x, y, z, w = xyzw
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])
