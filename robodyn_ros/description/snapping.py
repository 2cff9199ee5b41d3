# SPDX-License-Identifier: Apache-2.0
"""
Angles and axes that a URDF rounded, put back: by choice only, and told with what it changes.

A URDF that writes 1.570796327 for a right angle has axes that are almost perpendicular, and is
modelled so: formulas then carry terms of 1e-10. ``snapped_chain`` reads the exact angle instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from robodyn_ros.description.chain import Chain, MimicChoice, serial_chain
from robodyn_ros.description.records import Finding, Joint, RobotDescription
from robodyn_ros.errors import InvalidNumber
from robodyn_ros.spatial import FloatArray, rotation_about, transform

LARGEST_TOLERANCE = 0.01
"""What is further off was not rounded [rad or m]."""

STATES = 200
"""States at which the displacement of the tip is looked at."""

# Sines and cosines of multiples of 30 and 45 degrees.
_NICE = np.array([0.0, 0.5, math.sqrt(0.5), math.sqrt(0.75), 1.0])
_ORTHONORMAL = 1e-12


def snapped_chain(
    description: RobotDescription,
    tolerance: float,
    *,
    base_link: str | None = None,
    tip_link: str | None = None,
    locked_positions: Mapping[str, float] | None = None,
    mimic: MimicChoice = 'error',
) -> Chain:
    """
    Return a chain as ``serial_chain`` does, with what was rounded put back.

    Entries of the rotations of joint origins and of axes that are within the tolerance of the sine
    of a multiple of 30 or 45 degrees become that; origins within it of zero become zero. A finding
    says how many joints changed, and how far the tip moves by it.

    Parameters
    ----------
    description : RobotDescription
    tolerance : float
        [rad or m]
    base_link, tip_link, locked_positions, mimic
        As in ``serial_chain``.

    Raises
    ------
    InvalidNumber
        The tolerance is not positive, or larger than ``LARGEST_TOLERANCE``.
    RobodynError
        Whatever ``serial_chain`` raises.
    """
    if not 0 < tolerance <= LARGEST_TOLERANCE:
        raise InvalidNumber('tolerance', tolerance, f'more than 0, at most {LARGEST_TOLERANCE:g}')
    joints = {name: _snapped(joint, tolerance) for name, joint in description.joints.items()}
    as_given, chain = (
        serial_chain(
            each,
            base_link=base_link,
            tip_link=tip_link,
            locked_positions=locked_positions,
            mimic=mimic,
        )
        for each in (description, replace(description, joints=joints))
    )
    changed = [
        joint.name
        for joint in description.joints.values()
        if joint.child in _links(chain) and joints[joint.name] != joint
    ]
    moved = largest_displacement(as_given, chain)
    finding = Finding(
        'snapped',
        'info',
        f'{chain.base_link!r} to {chain.tip_link!r}',
        moved,
        f'displacement [m] of the tip at most, as {len(changed)} joints are snapped within '
        f'{tolerance:g}',
    )
    return replace(chain, findings=(*chain.findings, finding))


def largest_displacement(one: Chain, other: Chain) -> float:
    """Return how far apart the tips of two chains are at the most [m], at seeded states."""
    generator = np.random.default_rng(0)
    lower = [max(joint.limit.lower, -math.pi) for joint in one.joints]
    upper = [min(joint.limit.upper, math.pi) for joint in one.joints]
    bounds = np.sort([lower, upper], axis=0)
    distances = []
    for _ in range(STATES):
        position = generator.uniform(bounds[0], bounds[1])
        distances.append(np.linalg.norm(_tip(one, position) - _tip(other, position)))
    return float(max(distances))


def _tip(chain: Chain, position: FloatArray) -> FloatArray:
    pose = np.eye(4)
    for joint, step, q in zip(chain.joints, chain.joint_transforms, position, strict=True):
        if joint.kind == 'prismatic':
            moved = transform(translation=joint.axis * q)
        else:
            moved = transform(rotation_about(joint.axis, float(q)))
        pose = pose @ step @ moved
    return (pose @ chain.tip_transform)[:3, 3]


def _links(chain: Chain) -> set[str]:
    return {name for body in chain.bodies for name in body.link_transforms}


def _snapped(joint: Joint, tolerance: float) -> Joint:
    origin = joint.origin.copy()
    origin[:3, :3] = _snapped_rotation(joint.origin[:3, :3], tolerance)
    xyz = origin[:3, 3]
    xyz[np.abs(xyz) < tolerance] = 0.0
    axis = _snapped_entries(joint.axis, tolerance)
    if abs(float(axis @ axis) - 1.0) > _ORTHONORMAL:
        axis = joint.axis
    return replace(joint, origin=origin, axis=axis)


def _snapped_rotation(rotation: FloatArray, tolerance: float) -> FloatArray:
    snapped = _snapped_entries(rotation, tolerance)
    off = np.abs(snapped @ snapped.T - np.eye(3)).max()
    return snapped if off < _ORTHONORMAL and np.linalg.det(snapped) > 0 else rotation


def _snapped_entries(values: FloatArray, tolerance: float) -> FloatArray:
    nearest = _NICE[np.abs(np.abs(values)[..., None] - _NICE).argmin(axis=-1)]
    is_near = np.abs(np.abs(values) - nearest) < tolerance
    return np.where(is_near, np.copysign(nearest, values) + 0.0, values)
