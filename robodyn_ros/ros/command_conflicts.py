# SPDX-License-Identifier: Apache-2.0
"""Command conflicts: other publishers on a command topic, and whether they command."""

from __future__ import annotations

import math
import re
import time
from collections import deque

from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from robodyn_ros.ros.qos import SENSOR
from robodyn_ros.ros.rclpy_workarounds import waiting_messages

WATCHDOG_LABEL = 'joints, by the watchdog'
"""Of the layout of a watchdog's commands: it yields the topic to other nodes that command."""

NEWCOMER_TIME = 5.0
"""That a process that has just started may take to discover a publisher [s]."""

STEADY_COMMANDS = 5
"""As many commands of others between two checks are a conflict."""

_WATCHDOG = re.compile(r'_.+_watchdog')
_LABEL_END = 64  # of a serialised command that begins with its label [bytes]
_MOST_OWN = 64  # of a node's own commands remembered: more than may wait in a queue
_PAUSE = 0.005  # between looks at what waits [s]


def watchdog_name(node_name: str) -> str:
    """Return the name of the node that a dynamics node's watchdog is."""
    return f'_{node_name}_watchdog'


class CommandListener:
    """
    Receives the commands of others: neither a watchdog's nor those passed to ``sent``.

    Parameters
    ----------
    node : Node
        The node that subscribes.
    topic : str
        Of the commands, resolved.

    Attributes
    ----------
    last : float
        When a command was last heard, by the steady clock [s].

    Notes
    -----
    Messages are compared as bytes, and not deserialised. A node that listens to its own topic
    takes in its own commands, too.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self.last = -math.inf
        self._count = 0
        self._node = node
        self._own: deque[bytes] = deque(maxlen=_MOST_OWN)
        self._subscription = node.create_subscription(
            Float64MultiArray, topic, self._on_command, SENSOR, raw=True
        )

    def sent(self, data: bytes) -> None:
        """Remember a command of the node's own, to ignore its echo; call it before publishing."""
        self._own.append(data)

    def taken(self) -> int:
        """Return how many were heard since this was last asked."""
        count, self._count = self._count, 0
        return count

    def wait_for_command(self, since: float, until: float) -> bool:
        """Return whether one came after a steady time [s]; wait for it until another [s]."""
        while True:
            self._take()
            if self.last >= since or time.monotonic() >= until:
                return self.last >= since
            time.sleep(_PAUSE)

    def destroy(self) -> None:
        """Listen no more."""
        self._node.destroy_subscription(self._subscription)

    def _take(self) -> None:
        """Take what waits, where no executor does it."""
        for message in waiting_messages(self._subscription, Float64MultiArray):
            self._on_command(message)

    def _on_command(self, message: bytes) -> None:
        if WATCHDOG_LABEL.encode() in message[:_LABEL_END]:
            return
        if self._own:
            data = message[-len(self._own[-1]) :]
            if data in self._own:
                # Once: at rest another node of this kind commands just the same.
                self._own.remove(data)
                return
        self._count += 1
        self.last = time.monotonic()


class CommandConflictMonitor:
    """
    Watches a dynamics node's command topic for anybody else.

    Listening costs a node that commands a part of its cycle: it is done before that, for
    ``NEWCOMER_TIME`` after it began, and then only while somebody else has a publisher on the
    topic.

    Parameters
    ----------
    node : Node
        Has one publisher on the topic.
    topic : str
        Of the commands, resolved.

    Attributes
    ----------
    topic : str
        Of the commands.
    names : list of str
        Nodes with a publisher on the topic, when it was last looked; a node that was killed is
        seen for some 20 s.
    count, recent : int
        Commands of others in all, and between the last two looks.
    listener : CommandListener or None
        To be called with the node's own commands.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self.names: list[str] = []
        self.count = self.recent = 0
        self.listener: CommandListener | None = None
        self._node = node
        self.topic = topic
        self._since = -math.inf  # when listening began [s]
        self._began: float | None = None  # to command [s]
        self._listen()

    def heard_before_activation(self, duration: float) -> str:
        """Return which other nodes commanded within a time [s], as text; empty: none did."""
        listener = self._listen()
        begin = max(self._since, time.monotonic() - duration)
        return self._commander() if listener.wait_for_command(begin, begin + duration) else ''

    def heard_recently(self, duration: float) -> str:
        """Return which others commanded within the last time [s], as text, without waiting."""
        now = time.monotonic()
        return self._commander() if self._listen().wait_for_command(now - duration, now) else ''

    def begin_commanding(self) -> None:
        """Note that the node commands from now on."""
        self._began = time.monotonic()
        self._take_count()  # earlier commands do not show that their node continues

    def end_commanding(self) -> None:
        """Listen until the node commands again."""
        self._began = None
        self._listen()

    def look(self) -> None:
        """Update the other publishers, and the count of their commands since the last update."""
        self.names = self._others()
        self.recent = self._take_count()
        if self.names or self._began is None or self._is_newcomer:
            self._listen()
        else:
            self.destroy()

    @property
    def came_first(self) -> bool:
        """Whether others commanded steadily, as of the last look, when the node had just begun."""
        return self._is_newcomer and self.recent >= STEADY_COMMANDS

    @property
    def text(self) -> str:
        """Nodes that command, or could, as of the last update; empty: none."""
        if self.recent:
            return f'{self._who} commands on {self.topic}, too'
        return f'{self._who} has a publisher on {self.topic}, too' if self.names else ''

    def _commander(self) -> str:
        self.names = self._others()
        return f'{self._who} commands on {self.topic}'

    @property
    def _is_newcomer(self) -> bool:
        return self._began is not None and time.monotonic() - self._began < NEWCOMER_TIME

    @property
    def _who(self) -> str:
        return ', '.join(self.names) or 'somebody'

    def destroy(self) -> None:
        """Listen no more."""
        if self.listener is not None:
            self.listener.destroy()
            self.listener = None

    def _take_count(self) -> int:
        """Return how many were heard since the last time, and count them."""
        count = 0 if self.listener is None else self.listener.taken()
        self.count += count
        return count

    def _listen(self) -> CommandListener:
        if self.listener is None:
            self.listener, self._since = CommandListener(self._node, self.topic), time.monotonic()
        return self.listener

    def _others(self) -> list[str]:
        """Return the names of the nodes that publish, but for watchdogs and one of this name."""
        found = [
            f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'
            for publisher in self._node.get_publishers_info_by_topic(self.topic)
            if _WATCHDOG.fullmatch(publisher.node_name) is None
        ]
        if (own := self._node.get_fully_qualified_name()) in found:
            found.remove(own)
        return sorted(found)
