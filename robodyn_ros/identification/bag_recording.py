# SPDX-License-Identifier: Apache-2.0
"""The samples of a recording in a ROS bag, read by rosbags: no ROS is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.errors import MalformedRecording, NoSuchJoint
from robodyn_ros.identification.csv_recording import Samples
from robodyn_ros.motions.bag import OpenedBag, opened_bag

_TYPE = 'sensor_msgs/msg/JointState'
_NANOSECOND = 1e-9
# How many messages of a topic are looked at for the names of its joints.
_MESSAGES_FOR_NAMES = 50


def samples_of_bag(path: Path, joint_names: Sequence[str], topic: str | None) -> Samples:
    """
    Return time from the first sample on, position, velocity (or None) and effort of some joints.

    A driver may publish a joint state in parts: a sample is taken whenever all joints have been
    heard since the last one. What a message lacks is NaN.

    Raises
    ------
    UnreadableSource, NoSuchJoint, NoEffort, MalformedRecording
        As ``Recording.from_bag`` says.
    """
    with opened_bag(path) as reader:
        chosen = _connections(reader, joint_names, topic)
        samples = list(_samples(reader, chosen, joint_names))
    if not samples:
        joints = ', '.join(map(repr, joint_names))
        raise MalformedRecording('bag', 'no complete joint state', f'messages that name {joints}')
    stamps = np.array([stamp for stamp, _ in samples])
    states = np.array([state for _, state in samples], dtype=float)
    position, velocity, effort = np.moveaxis(states, 2, 0)
    return (stamps - stamps.min()) * _NANOSECOND, position, velocity, effort


def _connections(reader: OpenedBag, joint_names: Sequence[str], topic: str | None) -> list[Any]:
    """Return the connections of the one topic that names all joints."""
    offered: dict[str, list[Any]] = {}
    for connection in reader.connections:
        if connection.msgtype == _TYPE:
            offered.setdefault(connection.topic, []).append(connection)
    if topic is not None and topic not in offered:
        raise MalformedRecording('topic', topic, f'one with joint states: {sorted(offered)}')
    topics = sorted(offered) if topic is None else [topic]
    named = {each: _names(reader, offered[each]) for each in topics}
    complete = [each for each in topics if named[each] >= set(joint_names)]
    if not complete:
        missing = [name for name in joint_names if not any(name in x for x in named.values())]
        known = ', '.join(map(repr, sorted(set().union(*named.values()))))
        raise NoSuchJoint('bag', f'no joint {(missing or joint_names)[0]!r}', f'it has {known}')
    if len(complete) > 1:
        raise MalformedRecording(
            'bag', complete, 'one topic with the joint states of this arm: name it'
        )
    return offered[complete[0]]


def _names(reader: OpenedBag, connections: list[Any]) -> set[str]:
    names: set[str] = set()
    for k, (connection, _, raw) in enumerate(reader.messages(connections=connections)):
        names.update(reader.deserialize(raw, connection.msgtype).name)
        if k >= _MESSAGES_FOR_NAMES:
            break
    return names


def _samples(
    reader: OpenedBag, connections: list[Any], joint_names: Sequence[str]
) -> Iterator[tuple[int, list[tuple[float, float, float]]]]:
    """Yield stamp [ns], and position, velocity and effort of each joint."""
    heard: dict[str, tuple[float, float, float]] = {}
    for connection, received, raw in reader.messages(connections=connections):
        message = reader.deserialize(raw, connection.msgtype)
        size = len(message.name)
        for name, *state in zip(
            message.name,
            message.position,
            message.velocity if len(message.velocity) == size else [np.nan] * size,
            message.effort if len(message.effort) == size else [np.nan] * size,
        ):
            if name in joint_names and np.isfinite(state[0]):
                heard[name] = (float(state[0]), float(state[1]), float(state[2]))
        if len(heard) == len(joint_names):
            stamp = message.header.stamp
            time = stamp.sec * 1_000_000_000 + stamp.nanosec or received
            yield time, [heard[name] for name in joint_names]
            heard = {}
