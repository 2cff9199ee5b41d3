# SPDX-License-Identifier: Apache-2.0
"""Joint states in ROS bags of either ROS, written by rosbags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TYPE = 'sensor_msgs/msg/JointState'


def ros2_bag(
    path: Path,
    topics: Mapping[str, Iterable[tuple]],
    storage: str = 'MCAP',
    compression: str | None = None,
    frame_id: str = '',
) -> Path:
    """Write (time, names, position, velocity, effort) of each topic; skip without rosbags."""
    rosbag2 = pytest.importorskip('rosbags.rosbag2', reason='rosbags is not installed')
    writer = rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin[storage])
    if compression is not None:
        mode = rosbag2.CompressionMode[compression]
        writer.set_compression(mode, rosbag2.CompressionFormat.ZSTD)
    _write(writer, topics, 'ROS2_JAZZY', frame_id)
    return path


def ros1_bag(
    path: Path, topics: Mapping[str, Iterable[tuple]], compression: str, frame_id: str = ''
) -> Path:
    """Write a bag of ROS 1 likewise."""
    rosbag1 = pytest.importorskip('rosbags.rosbag1', reason='rosbags is not installed')
    writer = rosbag1.Writer(path)
    writer.set_compression(writer.CompressionFormat[compression])
    _write(writer, topics, 'ROS1_NOETIC', frame_id)
    return path


def _write(
    writer: Any, topics: Mapping[str, Iterable[tuple]], distribution: str, frame_id: str
) -> None:
    from rosbags.typesys import Stores, get_typestore

    of_ros1 = distribution == 'ROS1_NOETIC'
    store = get_typestore(Stores[distribution])
    state, header, stamp = (
        store.types[name] for name in (TYPE, 'std_msgs/msg/Header', 'builtin_interfaces/msg/Time')
    )
    serialized = store.serialize_ros1 if of_ros1 else store.serialize_cdr
    with writer:
        for topic, messages in topics.items():
            connection = writer.add_connection(topic, TYPE, typestore=store)
            for k, (time, names, *arrays) in enumerate(messages):
                seconds, nanoseconds = divmod(round(1e9 * time), 10**9)
                message = state(
                    header(
                        stamp=stamp(seconds, nanoseconds),
                        frame_id=frame_id,
                        **({'seq': k} if of_ros1 else {}),
                    ),
                    list(names),
                    *(np.array(each, dtype=float) for each in arrays),
                )
                writer.write(connection, 10**9 * seconds + nanoseconds, serialized(message, TYPE))
