# SPDX-License-Identifier: Apache-2.0
"""
The handover from the watchdog of a node that has gone to the next node.

Discovery may take a second: until then both would command, newton metres apart, as neither hears
the other. On one machine they find each other by the topic's name instead.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import sys
import time
from contextlib import suppress

import numpy as np
from rclpy.node import Node

TIMEOUT = 0.1  # for an answer; a watchdog looks for requests once a command [s]
_REQUEST = b'command'
_CREDENTIALS = struct.Struct('3i')  # process, user, group: see unix(7)
_MOST_REQUESTS = 10  # that are read at once
_LARGEST = 65536  # of a datagram [bytes]


class Handover:
    """
    Waits for the next node that commands on a topic.

    Parameters
    ----------
    node : Node
        The watchdog's.
    topic : str
        Of the commands, resolved.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self._socket: socket.socket | None = None
        with suppress(OSError):  # taken, or not Linux
            self._socket = _bound(_address(node, topic))

    def hand_over(self, sent: float, torque: np.ndarray) -> bool:
        """
        Answer the next node, of the same user; return whether it has asked for the commands.

        Parameters
        ----------
        sent : float
            When the last torque was sent, by the steady clock [s].
        torque : array, shape (n,)
            That torque, in chain order [N m or N].
        """
        if self._socket is None:
            return False
        with suppress(OSError):  # none waits, or it waits no more
            for _ in range(_MOST_REQUESTS):
                data, extra, _, sender = self._socket.recvmsg(
                    len(_REQUEST), socket.CMSG_SPACE(_CREDENTIALS.size)
                )
                users = [
                    _CREDENTIALS.unpack(value)[1]
                    for _, kind, value in extra
                    if kind == socket.SCM_CREDENTIALS
                ]
                if data == _REQUEST and users == [os.getuid()]:
                    self._socket.sendto(np.append(sent, torque).tobytes(), sender)
                    return True
        return False

    def close(self) -> None:
        """Wait for nobody any more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def take_over(
    node: Node, topic: str, effort_limits: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """
    Have the watchdog of a node that has gone end, where one commands on a topic.

    Parameters
    ----------
    node : Node
        The next to command.
    topic : str
        Of the commands, resolved.
    effort_limits : array, shape (n,)
        Largest torque to continue from [N m or N].

    Returns
    -------
    tuple of array and float, or None
        The last torque, shape (n,), in chain order, and when it was sent, by the steady clock
        [s]. None: no watchdog of this robot commanded on this machine.
    """
    try:
        with _bound('') as asking:
            asking.settimeout(TIMEOUT)
            asking.sendto(_REQUEST, _address(node, topic))
            answer = asking.recv(_LARGEST)
    except OSError:  # nobody waits, or not Linux
        return None
    if len(answer) != 8 * (1 + len(effort_limits)):
        return None  # of another robot
    sent, *torque = struct.unpack(f'{1 + len(effort_limits)}d', answer)
    is_valid = sent <= time.monotonic() and (np.abs(torque) <= effort_limits).all()  # not NaN
    return (np.array(torque), sent) if is_valid else None


def _address(node: Node, topic: str) -> bytes:
    """Return an address without a file, of a topic of a domain."""
    domain = node.context.get_domain_id()
    digest = hashlib.sha256(f'{os.getuid()} {domain} {topic}'.encode()).hexdigest()
    return b'\0robodyn_ros_handover_' + digest[:32].encode()


def _bound(address: bytes | str) -> socket.socket:
    """Return a socket that tells who sends; an empty address is one of the kernel's choice."""
    if sys.platform != 'linux':
        raise OSError('no abstract addresses')
    result = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        result.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        result.bind(address)
    except OSError:
        result.close()
        raise
    return result
