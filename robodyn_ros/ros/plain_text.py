# SPDX-License-Identifier: Apache-2.0
"""
What a node says, as text that a terminal shows and a log keeps as it is written.

Names of joints, links and nodes come from messages, files and other processes. An escape sequence
in one of them would command the reader's terminal, and a line break would begin a line of the log
that nobody wrote.
"""

from __future__ import annotations

import re

from robodyn_ros.errors import spelled_out
from robodyn_ros.ros.rclpy_workarounds import RcutilsLogger, count_as_the_logger

count_as_the_logger(__file__)

_LOOSE_BREAK = re.compile(r'\n(?!  )')


def plain(text: str) -> str:
    """
    Return a text with what cannot be printed spelled out, as ``repr`` does.

    A line break stays where an indented line follows it, which cannot be taken for the next entry.
    """
    return _LOOSE_BREAK.sub(r'\\n', spelled_out(text, '\n'))


class PlainLogger(RcutilsLogger):
    """A logger of plain text."""

    def log(self, message: object, severity: int, **options: object) -> bool:
        """Log a message as ``RcutilsLogger.log`` does, in plain text."""
        return super().log(plain(str(message)), severity, **options)


class PlainLoggerMixin:
    """What a node inherits from, before rclpy's class, so that its logger is a ``PlainLogger``."""

    _plain_logger: PlainLogger | None = None

    def get_logger(self) -> PlainLogger:
        """Return the logger, always the same one: it counts repetitions."""
        if self._plain_logger is None:
            self._plain_logger = PlainLogger(super().get_logger().name)  # type: ignore[misc]
        return self._plain_logger
