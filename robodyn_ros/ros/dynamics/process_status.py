# SPDX-License-Identifier: Apache-2.0
"""What the dynamics node tells on /diagnostics about the processes beside its own."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus

from robodyn_ros.ros import conversions
from robodyn_ros.ros.log_writer import LogWriter
from robodyn_ros.ros.watchdog.watchdog_process import WatchdogProcess


def process_status(name: str, watchdog: WatchdogProcess, log: LogWriter) -> DiagnosticStatus:
    """
    Return the status ``processes`` of a node.

    WARN where the watchdog has ended: nobody would send the stop command in the node's place.
    """
    is_watched = not watchdog.has_ended
    facts = {
        'watchdog': 'watching' if is_watched else 'ended',
        'watchdog_takeovers': watchdog.takeovers,
        'dropped_log_lines': log.dropped,
    }
    return conversions.diagnostic_status(
        f'{name}: processes',
        name,
        DiagnosticStatus.OK if is_watched else DiagnosticStatus.WARN,
        'watched' if is_watched else 'the watchdog has ended: restart the node',
        facts,
    )
