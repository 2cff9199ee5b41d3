# SPDX-License-Identifier: Apache-2.0
"""What the dynamics node tells about itself on /diagnostics."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from robodyn_ros.control.torque_path import Command
from robodyn_ros.ros.assembly import Assembly


@dataclass
class CycleCounts:
    """
    What has happened since the node was configured, and since the last report.

    Parameters
    ----------
    cycles, missed_cycles : int
        Control cycles, and times that joint states failed to come in time.
    effort_limited, rate_limited : int
        Cycles in which that limit changed a torque.
    malformed : int
        Joint states that could not be read.
    last_malformed, last_rejection : str
        Why the last joint state, the last trajectory was refused; empty: none was.
    """

    cycles: int = 0
    missed_cycles: int = 0
    effort_limited: int = 0
    rate_limited: int = 0
    malformed: int = 0
    last_malformed: str = ''
    last_rejection: str = ''
    _recent: int = 0
    _since: float = field(default_factory=time.monotonic)
    _cycle_times: list[float] = field(default_factory=list)

    def count(self, command: Command, cycle_time: float) -> None:
        """Count one control cycle that took a time [s]."""
        self.cycles += 1
        self._recent += 1
        self.effort_limited += bool(command.effort_limited.any())
        self.rate_limited += bool(command.rate_limited.any())
        self._cycle_times.append(cycle_time)

    def recent(self, now: float) -> tuple[float, float, float]:
        """Return rate [1/s], mean and longest cycle time [s] since this was last asked."""
        elapsed = now - self._since
        times = self._cycle_times or [0.0]
        rate = self._recent / elapsed if elapsed > 0.0 else 0.0
        self._recent, self._since, self._cycle_times = 0, now, []
        return rate, float(np.mean(times)), max(times)


def status(
    name: str,
    lifecycle: str,
    assembly: Assembly | None,
    counts: CycleCounts | None,
    now: float,
) -> DiagnosticStatus:
    """
    Return the status of the node at a steady time [s].

    ERROR while joint states are stale; WARN while active and waiting, disabled or refusing
    torques; OK otherwise.
    """
    message = DiagnosticStatus(name=f'{name}: torque', hardware_id=name)
    message.level, message.message = _verdict(lifecycle, assembly, now)
    facts: dict[str, object] = {'lifecycle': lifecycle}
    if assembly is not None and counts is not None:
        path = assembly.path
        rate, mean, longest = counts.recent(now)
        facts.update({
            'mode': path.law.mode,
            'enabled': path.is_enabled,
            'reference': path.reference_status,
            'last_rejection': counts.last_rejection,
            'state_age_s': f'{assembly.joint_states.age(now):.4f}',
            'stale_joints': ' '.join(assembly.joint_states.stale_joints(now)),
            'rate_hz': f'{rate:.1f}',
            'cycle_time_mean_us': f'{1e6 * mean:.0f}',
            'cycle_time_max_us': f'{1e6 * longest:.0f}',
            'cycles': counts.cycles,
            'missed_cycles': counts.missed_cycles,
            'effort_limited_cycles': counts.effort_limited,
            'rate_limited_cycles': counts.rate_limited,
            'refused_torques': path.refused_torques,
            'malformed_joint_states': counts.malformed,
            'last_malformed': counts.last_malformed,
        })
    message.values = [KeyValue(key=key, value=str(value)) for key, value in facts.items()]
    return message


def _verdict(lifecycle: str, assembly: Assembly | None, now: float) -> tuple[bytes, str]:
    if assembly is None or lifecycle != 'active':
        return DiagnosticStatus.OK, f'{lifecycle}, commanding nothing'
    path = assembly.path
    stale = ', '.join(assembly.joint_states.stale_joints(now))
    if not path.is_enabled:
        return DiagnosticStatus.WARN, 'disabled, commanding nothing'
    if path.state is None:
        return DiagnosticStatus.WARN, f'waiting for the state of {stale or "every joint"}'
    if path.is_stale:
        cause = f'no fresh state of {stale}' if stale else 'no finite torque'
        return DiagnosticStatus.ERROR, f'{cause}: {path.settings.on_stale_state}'
    if path.reference_status == 'none':
        return DiagnosticStatus.OK, 'compensating gravity'
    return DiagnosticStatus.OK, f'{path.law.mode}, {path.reference_status}'
