# SPDX-License-Identifier: Apache-2.0
"""Other topics of the graph with the publisher or subscriber that a node lacks."""

from __future__ import annotations

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy

_MOST_LISTED = 3


def publishing(node: Node, kind: str) -> list[str]:
    """Return the topics of a type, as ``sensor_msgs/msg/JointState``, that others publish."""
    return [
        topic
        for topic in _topics(node, kind)
        if _others(node, node.get_publishers_info_by_topic(topic))
    ]


def subscribing(node: Node, kind: str) -> list[str]:
    """Return the topics of a type that others subscribe to."""
    return [
        topic
        for topic in _topics(node, kind)
        if _others(node, node.get_subscriptions_info_by_topic(topic))
    ]


def publishers(node: Node, topic: str) -> list[str]:
    """Return the full names of the other nodes that publish on a topic."""
    return _others(node, node.get_publishers_info_by_topic(topic))


def volatile_publishers(node: Node, topic: str) -> list[str]:
    """Return the other nodes whose messages on a topic a transient local subscriber never gets."""
    ends = node.get_publishers_info_by_topic(topic)
    is_volatile = DurabilityPolicy.VOLATILE
    return _others(node, [end for end in ends if end.qos_profile.durability == is_volatile])


def listed(names: list[str]) -> str:
    """Return the first few names as text."""
    return ', '.join(names[:_MOST_LISTED]) + (', …' if len(names) > _MOST_LISTED else '')


def _topics(node: Node, kind: str) -> list[str]:
    return sorted(topic for topic, kinds in node.get_topic_names_and_types() if kind in kinds)


def _others(node: Node, ends: list) -> list[str]:
    """Return the full names of the nodes at some ends; neither this one nor a hidden one."""
    names = {
        f'{end.node_namespace.rstrip("/")}/{end.node_name}'
        for end in ends
        if not end.node_name.startswith('_')
    }
    return sorted(names - {node.get_fully_qualified_name()})
