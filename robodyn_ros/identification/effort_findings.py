# SPDX-License-Identifier: Apache-2.0
"""What an examination of efforts says: of each joint, of all together, and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.description.records import Finding
from robodyn_ros.spatial import FloatArray

Unit = Literal['torque', 'scaled', 'undecided']
Part = Literal['included', 'removed', 'none', 'undecided']

# A delay is worth a word where it is longer than this [s], and so many deviations.
_LATE, _CERTAIN = 0.002, 5.0


@dataclass(frozen=True, eq=False, repr=False)
class JointEffort(ArrayRecord):
    """
    What the effort of one joint is.

    Attributes
    ----------
    joint : str
    unit : 'torque', 'scaled' or 'undecided'
        'torque' where the factor lies between a third and three: URDFs are no better.
    factor, factor_deviation : float
        Torque for a unit of effort [N m or N], as far as the model's masses are right; negative
        where the sign is wrong; NaN where undecided. The deviation is that of the regression.
    gravity : 'included', 'removed', 'none' or 'undecided'
        'none': gravity does not act on the joint.
    friction : 'included', 'removed' or 'undecided'
        'removed': compensated by the drive, or the sensor stands behind the gear.
    offset, offset_deviation : float
        In the recorded unit.
    rigid_share : float
        Rms of the rigid body's torque over that of the effort, as far as it was seen.
    friction_share : float
    residual : float
        Rms of what is unexplained, relative.
    delay, delay_deviation : float
        Of this joint's effort behind the motion [s]; NaN where undecided.
    """

    joint: str
    unit: Unit
    factor: float
    factor_deviation: float
    gravity: Part
    friction: Part
    offset: float
    offset_deviation: float
    rigid_share: float
    friction_share: float
    residual: float
    delay: float = float('nan')
    delay_deviation: float = float('nan')

    @property
    def is_inverted(self) -> bool:
        """Whether its sign is wrong."""
        return self.factor < 0


@dataclass(frozen=True, eq=False, repr=False)
class EffortFindings(ArrayRecord):
    """
    What the efforts of an arm are.

    Attributes
    ----------
    joints : tuple of n JointEffort
    delay, delay_deviation : float
        By which all efforts are stamped after the motion [s]: advisory, nothing compensates it.
    findings : tuple of Finding
        The same in words, and what the data cannot decide.
    """

    joints: tuple[JointEffort, ...]
    delay: float
    delay_deviation: float
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        units = ', '.join(f'{each.joint}: {each.unit}' for each in self.joints)
        return f'EffortFindings({units}; {1e3 * self.delay:.3g} ms late)'

    @property
    def effort_scale(self) -> FloatArray:
        """
        Torque for a unit of effort, array, shape (n,), for ``identify(effort_scale=...)``.

        One where the effort is a torque, with the sign that it has. Where all joints that tell are
        scaled, those that are undecided get the geometric mean; where all are inverted, the sign.
        """
        decided = [each for each in self.joints if each.unit != 'undecided']
        scales = [
            np.copysign(abs(each.factor) if each.unit == 'scaled' else 1.0, each.factor)
            for each in decided
        ]
        other = 1.0
        if decided and all(each.unit == 'scaled' for each in decided):
            other = float(np.exp(np.mean(np.log(np.abs(scales)))))
        if decided and all(each.is_inverted for each in decided):
            other = -other
        told = iter(scales)
        return np.array(
            [other if each.unit == 'undecided' else next(told) for each in self.joints]
        )


def undecided(joint: str) -> JointEffort:
    """Return that nothing is known of a joint's effort."""
    nan = float('nan')
    return JointEffort(
        joint, 'undecided', nan, nan, 'undecided', 'undecided', nan, nan, nan, nan, nan
    )


def findings_of_joint(joint: JointEffort) -> list[Finding]:
    """Return in words what a joint's effort is."""
    element = f'effort of joint {joint.joint!r}'
    result = []

    def add(code: str, level: Literal['info', 'warning'], value: float, message: str) -> None:
        sentence = f'{element} {message}'
        result.append(Finding(code, level, element, float(f'{value:.4g}'), sentence))

    if joint.unit == 'undecided':
        add(
            'effort_undecided',
            'info',
            joint.rigid_share,
            'has an undecided unit'
            if math.isnan(joint.rigid_share)
            else "has an undecided unit: the rigid body's torque is only "
            f'{joint.rigid_share:.0%} of it',
        )
    if joint.unit == 'scaled':
        add(
            'effort_scaled',
            'warning',
            joint.factor,
            f'is no torque: {joint.factor:.4g} +- {joint.factor_deviation:.2g} N m or N make a '
            "unit, if the model's masses are right"
            + ('; rotors weigh here and are not in a URDF' if joint.gravity == 'none' else ''),
        )
    if joint.is_inverted:
        add(
            'effort_inverted',
            'warning',
            joint.factor,
            f'has the wrong sign: the torque is {joint.factor:.4g} times it',
        )
    if joint.gravity == 'removed':
        add(
            'gravity_removed',
            'warning',
            joint.rigid_share,
            "has no gravity in it: did the drive remove it? The rigid body's torque is "
            f'{joint.rigid_share:.0%} of it',
        )
    if joint.friction == 'removed':
        add(
            'friction_removed',
            'info',
            joint.friction_share,
            f'has hardly any friction in it, {joint.friction_share:.1%}: compensated, or measured '
            'behind the gear',
        )
    if abs(joint.delay) > max(5 * _LATE, 2 * _CERTAIN * joint.delay_deviation):
        add(
            'joint_delay',
            'info',
            joint.delay,
            f'is stamped {joint.delay:.3g} s after the motion, unlike the others',
        )
    return result


def findings_of_delay(delay: float, deviation: float) -> list[Finding]:
    """Return in words that all efforts are late."""
    if not abs(delay) > max(_LATE, _CERTAIN * deviation):
        return []
    return [
        Finding(
            'delay',
            'info',
            'effort',
            float(f'{delay:.3g}'),
            f'the effort of all joints is stamped {delay:.3g} s after the motion',
        )
    ]
