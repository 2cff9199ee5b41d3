# SPDX-License-Identifier: Apache-2.0
"""The robot's description from its topic, read when it is needed."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from std_msgs.msg import String

from robodyn_ros.description.source import LARGEST_SOURCE
from robodyn_ros.errors import MalformedData, Phrase, RobodynError, UnreadableSource
from robodyn_ros.ros import graph
from robodyn_ros.ros.parameter_overrides import in_parameters
from robodyn_ros.ros.qos import LATCHED
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


def take_description(
    node: Node, take: Callable[[str], None], refuse: Callable[[str], None] | None = None
) -> None:
    """
    Have a node take the first robot of the topic ``robot_description`` that it can.

    Parameters
    ----------
    node : Node
    take : callable
        Takes the URDF's text; raises RobodynError where it cannot.
    refuse : callable, optional
        Takes why it could not; not given: the log does.
    """
    topic, is_taken = DescriptionTopic(), False

    def receive(content: bytes) -> None:
        nonlocal is_taken
        if not topic.receive(content):
            return
        if is_taken:
            node.get_logger().warning('robot_description was replaced: ignored')
            return
        try:
            take(topic.text() or '')
            is_taken = True
        except RobodynError as error:
            (refuse or node.get_logger().error)(f'robot_description: {in_parameters(error)}')

    node.create_subscription(String, 'robot_description', receive, LATCHED, raw=True)
    node.get_logger().info('waiting for the topic robot_description')


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
