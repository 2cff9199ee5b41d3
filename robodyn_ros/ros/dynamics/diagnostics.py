# SPDX-License-Identifier: Apache-2.0
"""
The dynamics node's statuses on /diagnostics: torques, model and processes.

``torque`` is what is commanded, and how well; ``model`` what the torques are computed from, and
whether the services answer; ``processes`` whether the watchdog runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.load import gravity_text
from robodyn_ros.model import RobotModel
from robodyn_ros.ros import conversions
from robodyn_ros.ros.child_process import priority_of
from robodyn_ros.ros.dynamics.control_cycle import ControlCycle, Recent
from robodyn_ros.ros.joint_states import NO_CLOCK
from robodyn_ros.ros.services.service_process import Status
from robodyn_ros.ros.watchdog import WatchdogProcess

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
ERROR, STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE

_REFUSED_FRACTION = 0.1  # of the states; more of them without a command are worth a warning
_MOST_FINDINGS = 20  # that are shown one by one
_HASH_LENGTH = 12
_LATE = 1.0  # that a watchdog is too late by is a warning [s]

# --- torque --------------------------------------------------------------------------------------


def torque_status(
    name: str,
    lifecycle: str,
    refusal: str,
    cycle: ControlCycle | None,
    now: float,
    *,
    awaited: str = '',
    notes: Sequence[str] = (),
) -> DiagnosticStatus:
    """
    Return the status ``torque`` of a node at a steady time [s].

    - ERROR while a transition was refused, a state that came before is stale, no torque is finite,
      a reference was dropped for a fault, or another node commands, too.
    - STALE while no joint state has come at all, and when none has come for long, and nothing
      is commanded any more.
    - WARN while waiting for the robot, for activation or some joints, disabled, held back by an
      effort or position limit, while a simulation stands still, many states are refused, joint
      states come too seldom for the timeout, for gravity compensation or for the stiffness that
      was asked for, a joint's velocities are not those of its positions, this process was paused,
      another node could command, the commands have no subscriber, and with every note.

    Parameters
    ----------
    name, lifecycle : str
        Of the node, and its state.
    refusal : str
        Why the last transition was refused; empty: it was not.
    cycle : ControlCycle or None
        What runs, from configure to clean-up.
    now : float
        Steady time [s].
    awaited : str, optional
        What a node that does not command waits for.
    notes : sequence of str, optional
        What is worth a warning besides.
    """
    if cycle is None:
        level, message = _noted(_idle_verdict(lifecycle, refusal, awaited), notes)
        return conversions.diagnostic_status(
            f'{name}: torque', name, level, message, {'lifecycle': lifecycle}
        )
    stack, counts = cycle.stack, cycle.counts
    pipeline = stack.pipeline
    recent = counts.recent(now, pipeline.refused_torques + pipeline.implausible_states)
    if lifecycle != 'active':
        level, message = _idle_verdict(lifecycle, refusal, awaited)
    else:
        level, message = _verdict(cycle, recent, now)
    level, message = _noted((level, message), notes)
    median, ninety, ninety_nine, longest = (f'{1e6 * time:.0f}' for time in recent.cycle_times)
    facts = {
        'lifecycle': lifecycle,
        'mode': pipeline.settings.mode,
        'enabled': pipeline.is_enabled,
        'reference': pipeline.reference_status,
        **counts.rejections.facts,
        'dropped_references': pipeline.dropped_references,
        'last_drop': pipeline.last_drop,
        'fallback': pipeline.fallback,
        'stamp_age_s': f'{stack.joint_states.stamp_age:.4f}',
        'state_age_s': f'{stack.joint_states.age(now):.4f}',
        'stale_joints': ' '.join(stack.joint_states.stale_joints(now)),
        'rate_hz': f'{recent.rate:.1f}',
        'cycle_time_p50_us': median,
        'cycle_time_p90_us': ninety,
        'cycle_time_p99_us': ninety_nine,
        'cycle_time_max_us': longest,
        'cycles': counts.cycles,
        'missed_cycles': counts.missed_cycles,
        'late_watchdogs': counts.late_watchdogs,
        'watchdog_lateness_ms': f'{1e3 * recent.lateness:.1f}',
        'last_fault': pipeline.last_fault,
        'following_errors': pipeline.following_errors,
        'implausible_states': pipeline.implausible_states,
        'wrong_velocities': '; '.join(pipeline.wrong_velocities),
        'saturated_joints': _names(stack, recent.saturated),
        'joints_beyond_position_limits': _names(stack, recent.beyond),
        'effort_limited_cycles': counts.effort_limited,
        'rate_limited_cycles': counts.rate_limited,
        'refused_torques': pipeline.refused_torques,
        'malformed_joint_states': counts.malformed,
        'last_malformed': counts.last_malformed,
        'other_commanders': ' '.join(cycle.others.names),
        'commands_of_others': cycle.others.count,
        'command_subscribers': cycle.subscribers,
        **cycle.contacts.facts,
        **cycle.tip.facts,
    }
    return conversions.diagnostic_status(f'{name}: torque', name, level, message, facts)


def _idle_verdict(lifecycle: str, refusal: str, awaited: str = '') -> tuple[bytes, str]:
    idle = f'{lifecycle}, commanding nothing'
    if refusal:
        return ERROR, f'{idle}: {refusal}'
    return (WARN, f'{idle}: waiting for {awaited}') if awaited else (OK, idle)


def _noted(verdict: tuple[bytes, str], notes: Sequence[str]) -> tuple[bytes, str]:
    """Return a verdict with notes, unless it is more severe than they are."""
    level, message = verdict
    if not notes or level not in (OK, WARN):
        return verdict
    return WARN, '; '.join([message, *notes])


def _verdict(cycle: ControlCycle, recent: Recent, now: float) -> tuple[bytes, str]:
    """Return level and message of an active node: the most severe condition first."""
    pipeline = cycle.stack.pipeline
    if not pipeline.is_enabled:
        return WARN, 'disabled, commanding nothing: call ~/enable'
    if contradiction := cycle.contradiction:
        action = pipeline.fallback if pipeline.is_stale else 'commanding nothing'
        return ERROR, f'{contradiction}: {action}'
    if pipeline.state is None:
        return _waiting_verdict(cycle, now)
    if pipeline.is_stale:
        return _stale_verdict(cycle, recent, now)
    if pipeline.last_fault and not pipeline.is_fault_of_former_mode:
        return ERROR, pipeline.last_fault
    if cycle.others.recent:
        return ERROR, f'{cycle.others.text}: the arm gets the torques of both'
    warning = _warning(cycle, recent, now)
    if warning:
        return WARN, warning
    if pipeline.reference_status == 'none':
        if not pipeline.settings.terms_gravity:
            return OK, 'commanding nothing until there is a reference: terms.gravity is false'
        return OK, 'compensating gravity'
    waits = f' for {pipeline.begins_in:.3g} s' if pipeline.reference_status == 'waiting' else ''
    return OK, f'{pipeline.settings.mode}, {pipeline.reference_status}{waits}'


def _waiting_verdict(cycle: ControlCycle, now: float) -> tuple[bytes, str]:
    joint_states, fault = cycle.stack.joint_states, cycle.stack.pipeline.last_fault
    if fault:
        return ERROR, f'commanding nothing: {fault}'
    trouble = joint_states.trouble()
    if trouble:
        return ERROR, f'commanding nothing: {trouble}'
    if not joint_states.has_begun:
        return STALE, cycle.no_joint_state
    stale = joint_states.stale_joints(now)
    return WARN, f'waiting for the state of {", ".join(stale) or "every joint"}'


def _stale_verdict(cycle: ControlCycle, recent: Recent, now: float) -> tuple[bytes, str]:
    pipeline, joint_states = cycle.stack.pipeline, cycle.stack.joint_states
    settings = pipeline.settings
    cause = pipeline.stale_cause
    is_stale = bool(joint_states.stale_joints(now))
    if is_stale and (trouble := joint_states.trouble()):
        cause += f' ({trouble})'
    elif is_stale and recent.gaps:
        cause += f' ({_too_slow(cycle.stack, recent)})'
    is_over = joint_states.age(now) > settings.state_timeout + settings.stale_hold_time
    is_silent = pipeline.fallback == 'silent' and is_over
    return STALE if is_silent else ERROR, f'{cause}: {pipeline.fallback}'


def _warning(cycle: ControlCycle, recent: Recent, now: float) -> str:
    """Return the warning while the arm is commanded; empty: none."""
    stack = cycle.stack
    if stack.joint_states.elapsed.lacks_clock:
        return NO_CLOCK
    if stack.pipeline.is_fault_of_former_mode and stack.pipeline.last_fault:
        return f'before the change of the mode: {stack.pipeline.last_fault}'
    if wait := cycle.long_wait:
        return wait
    if standstill := stack.joint_states.standstill(now):
        return f'the simulation stands still for {standstill:.0f} s: its motion will go on with it'
    timeout = stack.pipeline.settings.state_timeout
    if len(recent.gaps) > 1:
        return _too_slow(stack, recent)
    if (rate := _slow_gravity(stack)) is not None:
        return (
            f'joint states come at {rate:.3g} Hz: gravity compensation needs '
            f'{core.GRAVITY_RATE:g} Hz where friction does not help'
        )
    if wrong := stack.pipeline.wrong_velocities:
        return f'{"; ".join(wrong)}: taken from positions instead'
    states = recent.cycles + recent.refused
    if recent.refused > 1 and recent.refused > _REFUSED_FRACTION * states:
        return f'{recent.refused} of {states} joint states refused: not finite or implausible'
    if stack.pipeline.is_stiffness_limited:
        return (
            'stiffness limited by the rates of joint states and torques: '
            f'{stack.pipeline.least_stiffness:.0%} of one mode is left'
        )
    if waits := stack.pipeline.stiffening:
        return f'springs become stiffer with the energy that they get: {waits}'
    if recent.lateness > timeout:
        return f'this process stood still for {recent.lateness:.2f} s'
    if len(recent.saturated):
        return f'effort limit reached: {_names(stack, recent.saturated)}'
    if len(recent.beyond):
        return f'beyond a position limit: {_names(stack, recent.beyond)}'
    if stack.monitor.contact is not None:
        return str(stack.monitor.contact)
    if cycle.others.text:
        return cycle.others.text
    if cycle.subscribers == 0:
        return cycle.no_subscriber
    return ''


def _slow_gravity(stack: ControlStack) -> float | None:
    """Return the rate of the states [Hz], where gravity is compensated alone and it is low."""
    pipeline = stack.pipeline
    is_alone = pipeline.reference_status == 'none' and pipeline.settings.terms_gravity
    return pipeline.slow_rate if is_alone else None


def _too_slow(stack: ControlStack, recent: Recent) -> str:
    needed, timeout = stack.pipeline.needed_rate, stack.pipeline.settings.state_timeout
    of_gains = f', {needed}' if needed else ''
    return (
        f'joint states came {max(recent.gaps):.3g} s apart; allowed: state_timeout = {timeout:g}; '
        f'gravity compensation needs {core.GRAVITY_RATE:g} Hz{of_gains}'
    )


def _names(stack: ControlStack, joints: np.ndarray) -> str:
    return ' '.join(stack.arm.joint_names[i] for i in joints)


# --- model ---------------------------------------------------------------------------------------


def _fingerprint(model: RobotModel) -> str:
    """Return a hash of all numbers that the torques depend on, payloads and gravity included."""
    digest = hashlib.sha256()
    dh = model.dh
    branches = () if dh.is_chain else (dh.parents, dh.gamma, dh.b)
    for array in (
        *branches,
        dh.alpha,
        dh.a,
        dh.beta,
        dh.d,
        dh.theta,
        dh.prismatic,
        dh.base_transform,
        dh.tip_transforms,
        model.inertial_parameters,
        model.rotor_inertia,
        model.viscous_friction,
        model.coulomb_friction,
        model.effort_offset,
        model.friction_curve,
        model.load_friction,
        model.coupling,
        model.coupled_rotor_inertia,
        model.coupled_friction,
        model.gravity,
    ):
        digest.update(np.ascontiguousarray(array, dtype='<f8').tobytes())
    return digest.hexdigest()[:_HASH_LENGTH]


def model_status(name: str, stack: ControlStack | None, services: Status) -> DiagnosticStatus:
    """
    Return the status ``model`` of a node.

    WARN where the checker warns of the robot, where gravity is multiplied, where compiled torques
    were asked for and do not work, or where the services do not answer.
    """
    facts: dict[str, object] = {'services': services}
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
                'model_hash': _fingerprint(model),
                'moving_mass_kg': f'{moving_mass:.6g}',
                'payload_mass_kg': f'{load.payload_mass:.6g}',
                'payload': load,
                'gravity': gravity_text(model.gravity),
                'base_link': model.base_link,
                'tip_link': model.tip_link,
                'drive_units': '; '.join(stack.units.notes) or 'N m, N',
                'algorithm': stack.torque.algorithm,
                'algorithm_notes': '; '.join(stack.torque.notes),
                'findings': len(findings),
            }
        )
        facts.update(
            {
                f'finding_{i}': f'{finding.level}: {finding}'
                for i, finding in enumerate(findings[:_MOST_FINDINGS], start=1)
            }
        )
        if factors := _gravity_factors(stack):
            warnings.append(factors)
        if stack.torque.is_fallback:
            notes = '; '.join(stack.torque.notes)
            warnings.append(f'torques by {stack.torque.algorithm}: {notes}')
    if services == 'ended':
        warnings.insert(0, 'the services have ended: restart the node')
    elif services == 'hung':
        warnings.insert(0, 'the services do not answer: restart the node if they stay so')
    level = WARN if warnings else OK
    return conversions.diagnostic_status(
        f'{name}: model', name, level, '; '.join(warnings) or summary, facts
    )


def _gravity_factors(stack: ControlStack) -> str:
    """Return which joints' gravity is multiplied, and what that hides; empty: none."""
    factors = stack.pipeline.settings.terms_gravity_factor
    given = [
        f'{name} {factor:g}'
        for name, factor in zip(stack.arm.joint_names, factors)
        if factor != 1.0
    ]
    if not given:
        return ''
    return (
        f'terms.gravity_factor hides wrong masses ({", ".join(given)}): where they are right, the '
        "arm sags below 1 and rises above; external torques, motion and payloads keep the model's "
        'masses: robodyn identify finds them'
    )


# --- processes -----------------------------------------------------------------------------------


def process_status(name: str, watchdog: WatchdogProcess, now: float) -> DiagnosticStatus:
    """
    Return the status ``processes`` of a node.

    WARN where the watchdog has ended, or checks the node more than a second too late: then it
    would not send the stop command, or not in time. ``now`` is steady time [s].
    """
    lateness = watchdog.lateness(now)
    state, warning = 'watching', ''
    if watchdog.has_ended:
        state, warning = 'ended', 'the watchdog has ended: restart the node'
    elif lateness > _LATE:
        state, warning = 'late', f'the watchdog is {lateness:.1f} s late'
    facts = {
        'watchdog': state,
        'watchdog_process_lateness_ms': f'{1e3 * lateness:.1f}',
        'watchdog_takeovers': watchdog.takeovers,
        'priority': priority_of(0),
        'watchdog_priority': watchdog.priority,
    }
    return conversions.diagnostic_status(
        f'{name}: processes',
        name,
        WARN if warning else OK,
        warning or 'watched',
        facts,
    )
