# SPDX-License-Identifier: Apache-2.0
"""Joint states out of a ROS bag, of ROS 1 or 2, read by rosbags: no ROS is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.source import bytes_of_file
from robodyn_ros.description.yaml import check_yaml
from robodyn_ros.errors import MalformedMotion, RobodynError, UnreadableSource
from robodyn_ros.motions.bounded_bag import bounded
from robodyn_ros.motions.motion_samples import MotionSamples

BAG_SUFFIXES = ('.bag', '.db3', '.mcap')
_TYPE = 'sensor_msgs/msg/JointState'
_NANOSECOND = 1e-9
_LARGEST_METADATA = 2**24  # bytes


def motion_of_bag(path: Path, joint_names: Sequence[str], topic: str | None) -> MotionSamples:
    """
    Return the motion of some joints; the first sample is at time zero.

    Drivers may publish a joint state in parts: a sample is taken whenever all joints have been
    heard since the last one. Velocities are the drivers', if all messages have them.

    Parameters
    ----------
    path : Path
        A folder of ROS 2, or a file of either.
    joint_names : sequence of str
    topic : str or None
        None: the only one with joint states.

    Raises
    ------
    UnreadableSource, MalformedMotion
    """
    with opened_bag(path) as reader:
        samples = list(_samples(reader, joint_names, topic))
    if not samples:
        joints = ', '.join(map(repr, joint_names))
        raise MalformedMotion('bag', 'no complete joint state', f'messages that name {joints}')
    stamps, positions, velocities = zip(*samples, strict=True)
    time = np.array([(stamp - stamps[0]) * _NANOSECOND for stamp in stamps])
    later = np.concatenate([[True], np.diff(np.maximum.accumulate(time)) > 0])
    qd = np.array(velocities, dtype=float)[later]
    return MotionSamples.from_samples(
        time[later], np.array(positions)[later], qd if np.isfinite(qd).all() else None
    )


@dataclass(frozen=True)
class OpenedBag:
    """
    What is read of a bag.

    The definitions of messages that it brings are not: a joint state is the same in every bag, and
    a definition of a hundred characters can occupy rosbags' parser for ever.

    Parameters
    ----------
    connections : sequence of rosbags' Connection
    messages : callable
        (connections) to tuples of connection, time of receipt [ns] and serialised message.
    deserialize : callable
        (serialised message, type) to the message.
    """

    connections: Sequence[Any]
    messages: Callable[..., Iterator[tuple[Any, int, bytes]]]
    deserialize: Callable[[bytes, str], Any]


@contextmanager
def opened_bag(path: Path) -> Iterator[OpenedBag]:
    """
    Give a bag, open.

    Raises
    ------
    UnreadableSource
        No bag, a damaged one, one whose metadata no YAML of ROS is, one that expands to more than
        is in proportion to its size, or rosbags is not installed.
    """
    try:
        from rosbags import rosbag1, rosbag2
        from rosbags.typesys import Stores, get_typestore

        if (metadata := path / 'metadata.yaml').is_file():
            check_yaml(bytes_of_file(metadata, _LARGEST_METADATA, 'metadata of the bag'))
        is_of_ros1 = path.suffix == '.bag'
        types = get_typestore(Stores.ROS1_NOETIC if is_of_ros1 else Stores.LATEST)
        deserialize = types.deserialize_ros1 if is_of_ros1 else types.deserialize_cdr
        with bounded(path), (rosbag1 if is_of_ros1 else rosbag2).Reader(path) as reader:
            yield OpenedBag(reader.connections, reader.messages, deserialize)
    except RobodynError:
        raise
    except ImportError as error:  # not installed, or older than what it is bounded by
        remedy = f"pip install 'rosbags>=0.11.9' ({error})"
        raise UnreadableSource('bag', str(path), remedy) from error
    except Exception as error:  # a damaged file makes anything of itself, MemoryError included
        words = f'{type(error).__name__}: {error}'.removesuffix(': ')
        raise UnreadableSource('bag', str(path), f'a whole ROS bag ({words})') from error


def _samples(
    reader: OpenedBag, joint_names: Sequence[str], topic: str | None
) -> Iterator[tuple[int, list[float], list[float]]]:
    """Yield stamp [ns], positions and velocities, NaN where there are none."""
    offered = sorted({x.topic for x in reader.connections if x.msgtype == _TYPE})
    if topic is None and len(offered) > 1:
        raise MalformedMotion('bag', offered, 'one topic of joint states: name it')
    if topic is not None and topic not in offered:
        raise MalformedMotion('topic', topic, f'one with joint states: {offered}')
    connections = [
        x for x in reader.connections if x.topic in offered and topic in (None, x.topic)
    ]
    heard: dict[str, tuple[float, float]] = {}
    for connection, received, raw in reader.messages(connections=connections):
        message = reader.deserialize(raw, connection.msgtype)
        velocities = message.velocity if len(message.velocity) else [np.nan] * len(message.name)
        for name, q, qd in zip(message.name, message.position, velocities):
            if name in joint_names and np.isfinite(q):
                heard[name] = float(q), float(qd)
        if len(heard) == len(joint_names):
            stamp = message.header.stamp
            state = [heard[name] for name in joint_names]
            heard = {}
            time = stamp.sec * 1_000_000_000 + stamp.nanosec or received
            yield time, [q for q, _ in state], [qd for _, qd in state]
