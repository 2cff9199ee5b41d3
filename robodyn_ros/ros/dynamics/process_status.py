# SPDX-License-Identifier: Apache-2.0
"""What the dynamics node tells on /diagnostics about the processes beside its own."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus

from robodyn_ros.ros import conversions
from robodyn_ros.ros.watchdog.watchdog_process import WatchdogProcess

LATE = 1.0  # that a watchdog is too late by is a warning [s]


def process_status(name: str, watchdog: WatchdogProcess, now: float) -> DiagnosticStatus:
    """
    Return the status ``processes`` of a node.

    WARN where the watchdog has ended, or looks after the node more than ``LATE`` too late: nobody
    would send the stop command in the node's place, or not in time. ``now`` is steady time [s].
    """
    lateness = watchdog.lateness(now)
    state, warning = 'watching', ''
    if watchdog.has_ended:
        state, warning = 'ended', 'the watchdog has ended: restart the node'
    elif lateness > LATE:
        state, warning = 'late', f'the watchdog is {lateness:.1f} s late'
    facts = {
        'watchdog': state,
        'watchdog_process_lateness_ms': f'{1e3 * lateness:.1f}',
        'watchdog_takeovers': watchdog.takeovers,
    }
    return conversions.diagnostic_status(
        f'{name}: processes',
        name,
        DiagnosticStatus.WARN if warning else DiagnosticStatus.OK,
        warning or 'watched',
        facts,
    )
