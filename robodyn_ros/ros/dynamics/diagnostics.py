# SPDX-License-Identifier: Apache-2.0
"""
What the dynamics node tells about itself on /diagnostics.

Two statuses: ``torque``, what is commanded and how well, and ``model``, what it is computed from.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from robodyn_ros.control.command import Command
from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.control.load import gravity_text
from robodyn_ros.model import RobotModel

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
ERROR, STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE

PERCENTILES = (50, 90, 99, 100)  # of the cycle times; the last is the longest
MOST_FINDINGS = 20  # that are shown one by one
_HASH_LENGTH = 12


@dataclass(frozen=True)
class Recent:
    """
    The cycles since the last report.

    Parameters
    ----------
    rate : float
        [1/s]
    cycle_times : array, shape (4,)
        The ``PERCENTILES`` of the time from a joint state to its command [s].
    saturated, beyond : array of int
        Indices of the joints that an effort limit held back, and of those beyond a position limit.
    """

    rate: float
    cycle_times: np.ndarray
    saturated: np.ndarray
    beyond: np.ndarray


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
    _since: float = field(default_factory=time.monotonic)
    _cycle_times: list[float] = field(default_factory=list)
    _saturated: np.ndarray | None = None
    _beyond: np.ndarray | None = None

    def count(self, command: Command, cycle_time: float) -> None:
        """Count one control cycle that took a time [s]."""
        self.cycles += 1
        self._cycle_times.append(cycle_time)
        if command.effort_limited.any():
            self.effort_limited += 1
            before = False if self._saturated is None else self._saturated
            self._saturated = command.effort_limited | before
        if command.position_limited.any():
            before = False if self._beyond is None else self._beyond
            self._beyond = command.position_limited | before
        self.rate_limited += bool(command.rate_limited.any())

    def recent(self, now: float) -> Recent:
        """Return what happened since this was last asked."""
        times = self._cycle_times
        elapsed = now - self._since
        saturated, beyond = (
            np.empty(0, int) if joints is None else np.flatnonzero(joints)
            for joints in (self._saturated, self._beyond)
        )
        self._since, self._cycle_times, self._saturated, self._beyond = now, [], None, None
        return Recent(
            len(times) / elapsed if elapsed > 0.0 else 0.0,
            np.percentile(times or [0.0], PERCENTILES),
            saturated,
            beyond,
        )


def statuses(
    name: str,
    lifecycle: str,
    stack: ControlStack | None,
    counts: CycleCounts | None,
    are_services_lost: bool,
    now: float,
) -> list[DiagnosticStatus]:
    """
    Return the node's statuses at a steady time [s].

    - torque: ERROR while a state that came before is stale, or no torque is finite; STALE while
      no joint state has come at all, and when none has come for so long that nothing is commanded
      any more; WARN while waiting for some joints, disabled, or held back by an effort limit.
    - model: WARN where the checker warns of the robot, where compiled torques were asked for and
      do not work, or where the services have ended.
    """
    return [
        _torque_status(name, lifecycle, stack, counts, now),
        _model_status(name, stack, are_services_lost),
    ]


def fingerprint(model: RobotModel) -> str:
    """Return a hash of all numbers that the torques depend on, payloads and gravity included."""
    digest = hashlib.sha256()
    dh = model.dh
    for array in (
        dh.alpha,
        dh.a,
        dh.beta,
        dh.d,
        dh.theta,
        dh.prismatic,
        dh.base_transform,
        dh.tip_transform,
        model.inertial_parameters,
        model.rotor_inertia,
        model.viscous_friction,
        model.coulomb_friction,
        model.effort_offset,
        model.friction_curve,
        model.load_friction,
        model.gravity,
    ):
        digest.update(np.ascontiguousarray(array, dtype='<f8').tobytes())
    return digest.hexdigest()[:_HASH_LENGTH]


def _torque_status(
    name: str,
    lifecycle: str,
    stack: ControlStack | None,
    counts: CycleCounts | None,
    now: float,
) -> DiagnosticStatus:
    if stack is None or counts is None:
        return _status(
            f'{name}: torque',
            name,
            OK,
            f'{lifecycle}, commanding nothing',
            {'lifecycle': lifecycle},
        )
    pipeline, recent = stack.pipeline, counts.recent(now)
    saturated, beyond = (
        ' '.join(stack.arm.joint_names[i] for i in joints)
        for joints in (recent.saturated, recent.beyond)
    )
    level, message = _torque_verdict(lifecycle, stack, saturated, beyond, now)
    median, ninety, ninety_nine, longest = (f'{1e6 * time:.0f}' for time in recent.cycle_times)
    return _status(
        f'{name}: torque',
        name,
        level,
        message,
        {
            'lifecycle': lifecycle,
            'mode': pipeline.law.mode,
            'enabled': pipeline.is_enabled,
            'reference': pipeline.reference_status,
            'last_rejection': counts.last_rejection,
            'fallback': pipeline.fallback,
            'state_age_s': f'{stack.joint_states.age(now):.4f}',
            'stale_joints': ' '.join(stack.joint_states.stale_joints(now)),
            'rate_hz': f'{recent.rate:.1f}',
            'cycle_time_p50_us': median,
            'cycle_time_p90_us': ninety,
            'cycle_time_p99_us': ninety_nine,
            'cycle_time_max_us': longest,
            'cycles': counts.cycles,
            'missed_cycles': counts.missed_cycles,
            'last_fault': pipeline.last_fault,
            'following_errors': pipeline.following_errors,
            'implausible_states': pipeline.implausible_states,
            'saturated_joints': saturated,
            'joints_beyond_position_limits': beyond,
            'effort_limited_cycles': counts.effort_limited,
            'rate_limited_cycles': counts.rate_limited,
            'refused_torques': pipeline.refused_torques,
            'malformed_joint_states': counts.malformed,
            'last_malformed': counts.last_malformed,
        },
    )


def _torque_verdict(
    lifecycle: str, stack: ControlStack, saturated: str, beyond: str, now: float
) -> tuple[bytes, str]:
    pipeline, joint_states = stack.pipeline, stack.joint_states
    if lifecycle != 'active':
        return OK, f'{lifecycle}, commanding nothing'
    if not pipeline.is_enabled:
        return WARN, 'disabled, commanding nothing'
    stale = joint_states.stale_joints(now)
    if pipeline.state is None and pipeline.last_fault:
        return ERROR, f'commanding nothing: {pipeline.last_fault}'
    if pipeline.state is None:
        if not joint_states.has_begun:
            return STALE, 'no joint state has come yet'
        return WARN, f'waiting for the state of {", ".join(stale) or "every joint"}'
    if pipeline.is_stale:
        fallback = pipeline.fallback
        cause = f'no fresh state of {", ".join(stale)}' if stale else 'no finite torque'
        is_over = joint_states.age(now) > (
            pipeline.settings.state_timeout + pipeline.settings.stale_hold_time
        )
        return STALE if fallback == 'silent' and is_over else ERROR, f'{cause}: {fallback}'
    if pipeline.last_fault:
        return ERROR, pipeline.last_fault
    if saturated:
        return WARN, f'effort limit reached: {saturated}'
    if beyond:
        return WARN, f'beyond a position limit: {beyond}'
    if pipeline.reference_status == 'none':
        if not pipeline.law.terms.gravity:
            return OK, 'commanding nothing until there is a reference: terms.gravity is false'
        return OK, 'compensating gravity'
    return OK, f'{pipeline.law.mode}, {pipeline.reference_status}'


def _model_status(
    name: str, stack: ControlStack | None, are_services_lost: bool
) -> DiagnosticStatus:
    facts: dict[str, object] = {'services': 'ended' if are_services_lost else 'answering'}
    warnings: list[str] = []
    summary = 'no robot'
    if stack is not None:
        model, load = stack.model, stack.load
        findings = model.findings
        warnings = [str(finding) for finding in findings if finding.level == 'warning']
        moving_mass = float(model.inertial_parameters[:, 9].sum())
        summary = f'{model.n} joints, {moving_mass:.3f} kg, {load}'
        facts.update(
            {
                'model_hash': fingerprint(model),
                'moving_mass_kg': f'{moving_mass:.6g}',
                'payload_mass_kg': f'{load.payload_mass:.6g}',
                'payload': load,
                'gravity': gravity_text(model.gravity),
                'base_link': model.base_link,
                'tip_link': model.tip_link,
                'algorithm': stack.torque.algorithm,
                'algorithm_notes': '; '.join(stack.torque.notes),
                'findings': len(findings),
            }
        )
        facts.update(
            {
                f'finding_{i}': f'{finding.level}: {finding}'
                for i, finding in enumerate(findings[:MOST_FINDINGS], start=1)
            }
        )
        if stack.torque.is_fallback:
            notes = '; '.join(stack.torque.notes)
            warnings.append(f'torques by {stack.torque.algorithm}: {notes}')
    if are_services_lost:
        warnings.insert(0, 'the services have ended: restart the node')
    level = WARN if warnings else OK
    return _status(f'{name}: model', name, level, '; '.join(warnings) or summary, facts)


def _status(
    name: str, hardware_id: str, level: bytes, message: str, facts: dict[str, object]
) -> DiagnosticStatus:
    values = [KeyValue(key=key, value=str(value)) for key, value in facts.items()]
    return DiagnosticStatus(
        name=name, hardware_id=hardware_id, level=level, message=message, values=values
    )
