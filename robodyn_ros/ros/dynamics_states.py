# SPDX-License-Identifier: Apache-2.0
"""What a node reports of a cycle, from its bytes: rclpy makes twenty Python objects of each."""

from __future__ import annotations

import struct
from typing import NamedTuple

from rclpy.serialization import serialize_message

from robodyn_interfaces.msg import DynamicsState
from robodyn_ros.errors import MalformedData, Phrase
from robodyn_ros.ros import cdr
from robodyn_ros.ros.rclpy_workarounds import message_of

_FIELDS = list(DynamicsState.get_fields_and_field_types().items())[2:]  # after header and names


class ReportedState(NamedTuple):
    """
    What a robodyn_interfaces/DynamicsState says, as far as it is shown.

    Parameters
    ----------
    names : tuple of str
        Of the joints.
    numbers : mapping of a field's name to bytes
        Of those of float64 for each joint: as many as the sender chose, little-endian.
    in_contact : bool
    mode : str
    """

    names: tuple[str, ...]
    numbers: dict[str, bytes]
    in_contact: bool
    mode: str


class DynamicsStateReader:
    """Reads the states of one node, and remembers how they begin."""

    def __init__(self) -> None:
        self._head = b''
        self._names: tuple[str, ...] = ()

    def read(self, message: bytes) -> ReportedState:
        """
        Return what a serialised message says.

        Raises
        ------
        MalformedData
            Bytes that are no such message.
        """
        try:
            if message[:2] != cdr.LITTLE_ENDIAN:
                message = serialize_message(message_of(message, DynamicsState))
            return self._read(message[cdr.ENCODING :])
        except (struct.error, IndexError) as error:
            raise MalformedData(
                'message', Phrase(f'{len(message)} bytes'), 'a robodyn_interfaces/DynamicsState'
            ) from error

    def _read(self, data: bytes) -> ReportedState:
        at = self._after_names(data)
        numbers, words, flags = {}, {}, {}
        for name, kind in _FIELDS:
            if kind == 'sequence<double>':
                _, first, at = cdr.numbers(data, at)
                numbers[name] = data[first:at]
            elif kind == 'sequence<boolean>':
                count, at = cdr.integer(data, at)
                at += count
            elif kind == 'boolean':
                flags[name] = bool(data[at])
                at += 1
            elif kind == 'string':
                words[name], at = cdr.text(data, at)
            elif kind == 'double':
                at = cdr.aligned(at, 8) + 8
        if at > len(data):
            raise struct.error('the message ends too soon')
        return ReportedState(self._names, numbers, flags['in_contact'], words['mode'])

    def _after_names(self, data: bytes) -> int:
        """Return where the joints' names end, once they are known."""
        start = cdr.TIME.size
        if self._head and data.startswith(self._head, start):
            return start + len(self._head)
        _, at = cdr.text(data, start)
        count, at = cdr.integer(data, at)
        names, at = cdr.texts(data, at, count)
        if at > len(data):
            raise struct.error('the message ends too soon')
        self._head, self._names = data[start:at], names
        return at
