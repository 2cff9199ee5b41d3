# SPDX-License-Identifier: Apache-2.0
"""The robot's description from its topic, read when it is needed."""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import String

from robodyn_ros.description.source import LARGEST_SOURCE
from robodyn_ros.errors import MalformedData, Phrase, UnreadableSource
from robodyn_ros.ros import graph
from robodyn_ros.ros.rclpy_workarounds import message_of

LARGEST_MESSAGE = LARGEST_SOURCE + 64
"""Bytes of a message whose text may be read: what encodes it comes on top."""


def late_description(node: Node) -> str:
    """Return who publishes the description so that a later subscriber never gets it, as text."""
    topic = node.resolve_topic_name('robot_description')
    if not (names := graph.volatile_publishers(node, topic)):
        return ''
    return (
        f'; {", ".join(names)} publishes {topic} with durability volatile, which is not received; '
        'allowed: transient local'
    )


class DescriptionTopic:
    """
    Keeps the last message of ``robot_description`` as bytes.

    Nothing is converted while the node commands: a text of 16 MB would take 0.1 s, in which no
    cycle runs.
    """

    def __init__(self) -> None:
        self._content: bytes | None = None
        self._size = 0

    def receive(self, content: bytes) -> bool:
        """Store a message, where it is not too large, and return whether its content is new."""
        is_new = len(content) != self._size or content != self._content
        self._size = len(content)
        self._content = content if self._size <= LARGEST_MESSAGE else None
        return is_new

    def text(self) -> str | None:
        """
        Return the description; None: nothing has come.

        Raises
        ------
        UnreadableSource
            The message was too large, or no string.
        """
        if self._size > LARGEST_MESSAGE:
            raise UnreadableSource(
                'topic robot_description',
                Phrase(f'{self._size} bytes'),
                f'at most {LARGEST_MESSAGE}',
            )
        if self._content is None:
            return None
        try:
            return message_of(self._content, String).data
        except MalformedData as error:
            raise UnreadableSource(
                'topic robot_description', Phrase(f'{self._size} bytes'), 'a std_msgs/String'
            ) from error
