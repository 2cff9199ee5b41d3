# SPDX-License-Identifier: Apache-2.0
"""The torque that a law asks for, up to the soft joint limits."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.compiled_step import CompiledStep
from robodyn_ros.control.computed_torque import ControlLaw, TorqueParts
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.reference_follower import ReferenceFollower
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.soft_joint_limit import soft_limited
from robodyn_ros.errors import NonFiniteValue
from robodyn_ros.spatial import FloatArray


class EvaluatedTorque(NamedTuple):
    """
    A torque before the effort and the rate limit; every array has shape (n,).

    Parameters
    ----------
    torque : array
        Finite [N m] or [N].
    parts : TorqueParts
        What the law added up.
    penetration : array or None
        Of the position limits; None where the whole arm is inside.
    """

    torque: np.ndarray
    parts: TorqueParts
    penetration: np.ndarray | None


def evaluated_torque(
    law: ControlLaw,
    follower: ReferenceFollower,
    state: MeasuredState,
    reference: ReferenceState | None,
    elapsed: float,
    settings: SafetySettings,
    limits: ReferenceLimits,
    compiled: CompiledStep | None = None,
    added: FloatArray | None = None,
) -> EvaluatedTorque | None:
    """
    Return the torque of a law at a state, or None where it is not finite.

    Parameters
    ----------
    law : ControlLaw
    follower : ReferenceFollower
        Knows what is left of a reference that fades.
    state : MeasuredState
    reference : ReferenceState or None
        What is to be followed at its time.
    elapsed : float
        Since the last valid cycle [s].
    settings : SafetySettings
    limits : ReferenceLimits
    compiled : CompiledStep, optional
        Computes what does not fade, and to which nothing is added.
    added : array, shape (n,), optional
        Added to the law's effort [N m] or [N].
    """
    try:
        with np.errstate(over='ignore', invalid='ignore'):
            if compiled is not None and not follower.is_fading and added is None:
                found = compiled.evaluated(
                    law, state, reference, settings.effort_limits, limits.position_limits
                )
                return None if found is None else EvaluatedTorque(*found)
            parts = follower.faded(
                law.torque(state.position, state.velocity, reference),
                law,
                state,
                elapsed,
                settings.ramp_time,
            )
            if added is not None:
                parts = parts._replace(effort=parts.effort + added)
            torque, penetration = soft_limited(
                parts.total, law, state, settings.effort_limits, limits.position_limits
            )
    except NonFiniteValue:  # an overflow on the way to the model
        return None
    # On arrays this short, quicker than numpy's way.
    is_finite = all(map(isfinite, torque.tolist()))
    return EvaluatedTorque(torque, parts, penetration) if is_finite else None
