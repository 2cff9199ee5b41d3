# SPDX-License-Identifier: Apache-2.0
"""What the dynamics node tells on /diagnostics about what its torques are computed from."""

from __future__ import annotations

import hashlib

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.control.load import gravity_text
from robodyn_ros.model import RobotModel
from robodyn_ros.ros import conversions
from robodyn_ros.ros.services.service_process import Status

MOST_FINDINGS = 20  # that are shown one by one
_HASH_LENGTH = 12


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


def model_status(name: str, stack: ControlStack | None, services: Status) -> DiagnosticStatus:
    """
    Return the status ``model`` of a node.

    WARN where the checker warns of the robot, where compiled torques were asked for and do not
    work, or where the services do not answer.
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
                'model_hash': fingerprint(model),
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
                for i, finding in enumerate(findings[:MOST_FINDINGS], start=1)
            }
        )
        if stack.torque.is_fallback:
            notes = '; '.join(stack.torque.notes)
            warnings.append(f'torques by {stack.torque.algorithm}: {notes}')
    if services == 'ended':
        warnings.insert(0, 'the services have ended: restart the node')
    elif services == 'hung':
        warnings.insert(0, 'the services do not answer: restart the node if they stay so')
    level = DiagnosticStatus.WARN if warnings else DiagnosticStatus.OK
    return conversions.diagnostic_status(
        f'{name}: model', name, level, '; '.join(warnings) or summary, facts
    )
