# SPDX-License-Identifier: Apache-2.0
"""The facts that a report tells: everything is computed here, and nothing when it is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from robodyn_ros.analysis.guidelines import Guideline, design_guidelines
from robodyn_ros.analysis.inertial_characteristics import (
    InertialCharacteristics,
    inertial_characteristics,
)
from robodyn_ros.analysis.ranges import Ranges, ranges
from robodyn_ros.analysis.simplification import SimplifiedModel, simplified_model
from robodyn_ros.analysis.trajectory_split import TrajectorySplit, split_along
from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.description.chain import Chain, checked_chain
from robodyn_ros.dynamics import gravity_torque, inverse_dynamics, smooth_friction_torque
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.motions.point_to_point import example_motion
from robodyn_ros.parameters.base_parameters import BaseParameters, base_parameters
from robodyn_ros.report.joint_space_coupling import JointSpaceCoupling, joint_space_coupling
from robodyn_ros.report.measurements import CallTimes, measured_call_times
from robodyn_ros.report.position_ranges import with_single_turns
from robodyn_ros.report.ratio_maps import RatioFacts, ratio_facts
from robodyn_ros.report.residual import Residual, conversion_residual
from robodyn_ros.report.text import NOISE
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

T = TypeVar('T')

STEPS = (
    'conversion',
    'base parameters',
    'coupling',
    'ranges',
    'torques along a motion',
    'simplified model',
    'compiled code',
    'ratios',
    'translation and rotation',
)
"""What ``arm_facts`` does, one after the other."""

_EXAMPLE_SAMPLES = 241


@dataclass(frozen=True, eq=False, repr=False)
class MotionTorques(ArrayRecord):
    """
    The torque along a motion, and what it is made of: arrays (N, n) [N m or N].

    Attributes
    ----------
    motion : MotionSamples
    given : bool
        Whether the motion was given, and not made within the arm's limits.
    gravity, inertial : array, shape (N, n)
        g(q), and M(q) qdd.
    coriolis : array, shape (N, n)
        Coriolis and centrifugal torque, C(q, qd) qd.
    friction : array, shape (N, n)
        Viscous and Coulomb, with the smooth sign of the dynamics node.
    """

    motion: MotionSamples
    given: bool
    gravity: FloatArray
    inertial: FloatArray
    coriolis: FloatArray
    friction: FloatArray

    @property
    def total(self) -> FloatArray:
        """The sum of the parts."""
        return self.gravity + self.inertial + self.coriolis + self.friction


@dataclass(frozen=True, eq=False)
class ArmFacts:
    """
    What a report tells of an arm.

    A fact that cannot be found, such as extremes over the joint space where a prismatic joint has
    no limits, is None, and ``notes`` has the reason under the name of the step.
    """

    title: str
    model: RobotModel
    chain: Chain
    residual: Residual
    structure: InertialCharacteristics
    guidelines: tuple[Guideline, ...]
    base: BaseParameters
    coupling: JointSpaceCoupling | None
    ranges: Ranges | None
    torques: MotionTorques | None
    simplified: SimplifiedModel | None
    simplified_torque_error: FloatArray | None
    call_times: CallTimes
    ratios: RatioFacts | None
    split: TrajectorySplit | None
    notes: dict[str, str]
    seconds: float
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def masses(self) -> FloatArray:
        """Mass (n,) [kg] of each link that moves, with what is fixed to it."""
        return self.model.inertial_parameters[:, 9]

    def summary(self) -> dict[str, Any]:
        """Return the main numbers, for JSON."""
        findings = [finding.level for finding in self.model.findings]
        return {
            'joint_names': list(self.model.joint_names),
            'moving_mass': float(self.masses.sum()),
            'warnings': findings.count('warning'),
            'infos': findings.count('info'),
            'minimal_parameters': self.base.count,
            'standard_parameters': self.base.standard_count,
            'nonzero_coefficients': self.structure.total,
            'independent_coefficients': len(self.structure.coefficients),
            'operation_counts': {name: list(c) for name, c in self.call_times.operations.items()},
            'microseconds': self.call_times.microseconds,
            'notes': self.notes,
            'seconds': self.seconds,
        }


def arm_facts(
    chain: Chain,
    model: RobotModel,
    *,
    title: str = '',
    motion: MotionSamples | None = None,
    simplification_error: float = 0.02,
    provenance: Mapping[str, str] | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> ArmFacts:
    """
    Return the facts about an arm.

    Parameters
    ----------
    chain : Chain
    model : RobotModel
        Of that chain.
    title : str
        What the page is called; where not given, base and tip link.
    motion : MotionSamples, optional
        To show torques along; where not given, one within the arm's limits.
    simplification_error : float
        Allowed fraction, as 0.02 for 2 %; see ``simplified_model``.
    provenance : mapping of str to str, optional
        What the page says of its sources, as the file's name and digest.
    on_step : callable
        Called with each of ``STEPS`` as it begins.
    """
    checked_chain(chain)
    checked_model(model)
    began = time.perf_counter()
    notes: dict[str, str] = {}
    seen = with_single_turns(model)
    has_masses = bool(model.inertial_parameters.any())

    def attempted(step: str, fact: Callable[[], T]) -> T | None:
        on_step(step)
        if not has_masses:
            notes[step] = 'no link that moves has a mass: every torque is 0'
            return None
        try:
            return fact()
        except RobodynError as error:
            notes[step] = str(error)
            return None

    with one_thread():
        on_step(STEPS[0])
        residual = conversion_residual(chain, model)
        structure = inertial_characteristics(model)
        guidelines = design_guidelines(model, structure)
        on_step(STEPS[1])
        base = base_parameters(model)
        coupling = attempted(STEPS[2], lambda: joint_space_coupling(seen))
        extremes = attempted(STEPS[3], lambda: ranges(seen))
        torques = attempted(STEPS[4], lambda: _torques_along(model, motion))
        simplified = attempted(STEPS[5], lambda: simplified_model(seen, simplification_error))
        off = None
        if simplified is not None and torques is not None:
            off = _torque_error(model, simplified, torques.motion)
        on_step(STEPS[6])
        call_times = measured_call_times(model)
        ratios = attempted(STEPS[7], lambda: ratio_facts(seen))
        split = attempted(STEPS[8], lambda: _split_along(model, torques))
    if call_times.missing:
        notes[STEPS[6]] = call_times.missing
    return ArmFacts(
        title=title,
        model=model,
        chain=chain,
        residual=residual,
        structure=structure,
        guidelines=guidelines,
        base=base,
        coupling=coupling,
        ranges=extremes,
        torques=torques,
        simplified=simplified,
        simplified_torque_error=off,
        call_times=call_times,
        ratios=ratios,
        split=split,
        notes=notes,
        seconds=time.perf_counter() - began,
        provenance=dict(provenance or {}),
    )


def _torques_along(model: RobotModel, given: MotionSamples | None) -> MotionTorques:
    motion = given or example_motion(model, _EXAMPLE_SAMPLES)
    still = np.zeros_like(motion.q)
    gravity = gravity_torque(model, motion.q)
    rigid = inverse_dynamics(model, motion.q, motion.qd, motion.qdd)
    parts = {
        'gravity': gravity,
        'inertial': inverse_dynamics(model, motion.q, still, motion.qdd) - gravity,
        'coriolis': inverse_dynamics(model, motion.q, motion.qd, still) - gravity,
        'friction': smooth_friction_torque(
            model, ControlSettings().friction_velocity, motion.qd, rigid
        ),
    }
    rounding = NOISE * max(float(np.abs(part).max()) for part in parts.values())
    return MotionTorques(
        motion=motion,
        given=given is not None,
        **{name: np.where(np.abs(part) > rounding, part, 0.0) for name, part in parts.items()},
    )


def _split_along(model: RobotModel, torques: MotionTorques | None) -> TrajectorySplit:
    motion = torques.motion if torques else example_motion(model, _EXAMPLE_SAMPLES)
    every = slice(None, None, max(1, len(motion.time) // _EXAMPLE_SAMPLES))
    return split_along(model, motion.q[every], motion.qd[every])


def _torque_error(
    model: RobotModel, simplified: SimplifiedModel, motion: MotionSamples
) -> FloatArray:
    """Return the largest error (n,) along a motion, as a fraction of each largest torque."""
    every = slice(None, None, max(1, len(motion.time) // _EXAMPLE_SAMPLES))
    state = motion.q[every], motion.qd[every], motion.qdd[every]
    exact = inverse_dynamics(model, *state)
    error = np.abs(simplified.inverse_dynamics(*state) - exact).max(axis=0)
    peak = np.abs(exact).max(axis=0)
    return np.divide(error, peak, out=np.zeros_like(error), where=peak > NOISE * peak.max())
