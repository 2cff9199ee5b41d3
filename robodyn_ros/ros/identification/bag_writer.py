# SPDX-License-Identifier: Apache-2.0
"""Messages into a bag, as they came: written by rosbags, so that closing it is ours to decide."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rclpy.serialization import serialize_message
from std_msgs.msg import String

from robodyn_ros.errors import UnreadableSource

JOINT_STATE = 'sensor_msgs/msg/JointState'
_VERSION: Final = 8  # which Humble reads, too


class BagWriter:
    """
    A bag that is being written; ``close`` completes it, and may be called again.

    It holds the joint states, and the robot's description once, as ``robot_description``.

    Parameters
    ----------
    path : Path
        A folder that is not there.
    storage : str
        ``sqlite3`` or ``mcap``.
    topic : str
        Of the joint states, for the bag.
    urdf : str
        The robot's description.
    notes : mapping of str to str
        For the bag's metadata, beside the URDF's digest.

    Raises
    ------
    UnreadableSource
        The folder is there, or cannot be made, or rosbags is not installed.
    """

    def __init__(
        self, path: Path, storage: str, topic: str, urdf: str, notes: Mapping[str, str]
    ) -> None:
        try:
            from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
            from rosbags.typesys import Stores, get_typestore
        except ImportError as error:
            raise UnreadableSource('bag', str(path), f'pip install rosbags ({error})') from error
        types = get_typestore(Stores.ROS2_JAZZY)
        plugin = StoragePlugin[storage.upper()]
        try:
            self._writer: Any = Writer(path, version=_VERSION, storage_plugin=plugin)
            self._writer.open()
        except (WriterError, OSError) as error:
            raise UnreadableSource('bag', str(path), f'a folder to be made ({error})') from error
        digest = hashlib.sha256(urdf.encode()).hexdigest()
        for key, value in {'urdf_sha256': digest, **notes}.items():
            self._writer.set_custom_data(key, value)
        self._states = self._writer.add_connection(topic, JOINT_STATE, typestore=types)
        self._description = self._writer.add_connection(
            '/robot_description', 'std_msgs/msg/String', typestore=types
        )
        self._urdf = urdf
        self.count = 0

    def write(self, content: bytes, stamp: int) -> None:
        """Write a serialised joint state that came at a time [ns]."""
        if self._writer is None:
            return
        if not self.count:
            text = serialize_message(String(data=self._urdf))
            self._writer.write(self._description, stamp, text)
        self._writer.write(self._states, stamp, content)
        self.count += 1

    def note(self, key: str, value: str) -> None:
        """Put a remark into the metadata, as long as the bag is open."""
        if self._writer is not None:
            self._writer.set_custom_data(key, value)

    def close(self) -> None:
        """Write the metadata, without which a bag is hard to read."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()
