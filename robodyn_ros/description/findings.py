# SPDX-License-Identifier: Apache-2.0
"""What a model's checker found: physical oddities are reported, never repaired."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robodyn_ros.description.chain import Body, Chain
from robodyn_ros.description.records import Finding, Inertial, Joint

# A ratio of masses of neighbouring bodies that no arm has: 7 g beside 7 kg.
_STRANGE_MASS_RATIO = 500.0
# Relative slack for numbers that were rounded when they were printed into the file.
_ROUNDING = 1e-3
_UNIT_AXIS_TOLERANCE = 1e-4
_MOST_NAMES = 6


def chain_findings(chain: Chain) -> tuple[Finding, ...]:
    """Return all findings about the joints and bodies of a chain, base to tip."""
    findings = [*_reading_findings(chain), *chain.findings]
    reach = _reach(chain)
    for joint, body in zip(chain.joints, chain.bodies[1:], strict=True):
        findings.extend(_joint_findings(joint))
        for name in body.link_transforms:
            inertial = chain.description.links[name].inertial
            if inertial is not None:
                findings.extend(_inertial_findings(name, inertial, reach))
    masses = [_mass(chain, body) for body in chain.bodies[1:]]
    findings.extend(_mass_findings(chain, masses))
    findings.extend(_lumped_findings(chain))
    return tuple(findings)


def _reading_findings(chain: Chain) -> Iterator[Finding]:
    """Yield what was found in the text, but for links and joints that do not move."""
    moving = {name for body in chain.bodies[1:] for name in body.link_transforms}
    still = {f'link {name!r}' for name in chain.description.links if name not in moving}
    for joint in chain.description.joints.values():
        if joint.child not in moving:
            still.add(f'joint {joint.name!r}')
    turning = {f'joint {joint.name!r}' for joint in chain.joints}
    for finding in chain.description.findings:
        matters = finding.code != 'axis_missing' or finding.element in turning
        if matters and finding.element not in still:
            yield finding


def _reach(chain: Chain) -> float:
    """Return how long the arm can be at most [m], or 0.1."""
    steps = [*chain.joint_transforms[1:], chain.tip_transform]
    length = sum(float(np.linalg.norm(step[:3, 3])) for step in steps)
    strokes = [
        joint.limit.upper - joint.limit.lower
        for joint in chain.joints
        if joint.kind == 'prismatic'
    ]
    return max(0.1, length + sum(stroke for stroke in strokes if 0 < stroke < math.inf))


def _joint_findings(joint: Joint) -> Iterator[Finding]:
    element = f'joint {joint.name!r}'
    limit = joint.limit
    if not (0 < limit.effort < math.inf):
        what = 'missing' if limit.effort == math.inf else 'not positive'
        yield Finding('effort_limit', 'warning', element, limit.effort, f'effort limit is {what}')
    if limit.lower > limit.upper:
        yield Finding(
            'position_limits',
            'warning',
            element,
            (limit.lower, limit.upper),
            'limits are inverted',
        )
    elif limit.lower == limit.upper:
        yield Finding(
            'position_limits', 'warning', element, limit.lower, 'limits leave no room to move'
        )
    elif joint.kind != 'continuous' and math.isinf(limit.upper - limit.lower):
        yield Finding(
            'position_limits',
            'info',
            element,
            (limit.lower, limit.upper),
            'has no position limits',
        )
    if abs(joint.axis_length - 1.0) > _UNIT_AXIS_TOLERANCE:
        yield Finding(
            'axis_not_unit', 'info', element, joint.axis_length, 'length of the axis is not 1'
        )
    for name, value in (('damping', joint.damping), ('friction', joint.friction)):
        if value < 0:
            yield Finding('negative_friction', 'warning', element, value, f'{name} is negative')
    if joint.mimic is not None:
        yield Finding(
            'mimic_joint', 'info', element, joint.mimic.joint, 'mimics, but moves independently'
        )


def _inertial_findings(name: str, inertial: Inertial, reach: float) -> Iterator[Finding]:
    element = f'link {name!r}'
    moments = np.linalg.eigvalsh(inertial.inertia)
    smallest, middle, largest = (float(moment) for moment in moments)
    size = max(abs(smallest), abs(largest))
    if smallest < -_ROUNDING * size:
        yield Finding(
            'inertia_not_positive',
            'warning',
            element,
            (smallest, middle, largest),
            'principal moments of inertia [kg m²] must not be negative',
        )
    elif largest > (smallest + middle) * (1 + _ROUNDING):
        yield Finding(
            'triangle_inequality',
            'warning',
            element,
            (smallest, middle, largest),
            'the largest principal moment of inertia [kg m²] exceeds the sum of the other two',
        )
    distance = float(np.linalg.norm(inertial.center_of_mass))
    if distance > reach:
        yield Finding(
            'far_center_of_mass',
            'warning',
            element,
            distance,
            f'its centre of mass [m] is further away than the arm is long ({reach:.3g} m)',
        )
    if inertial.mass > 0 and size > inertial.mass * reach * reach:
        yield Finding(
            'large_inertia',
            'warning',
            element,
            size,
            f'moment of inertia [kg m²] too large for {inertial.mass:g} kg within {reach:.3g} m',
        )
    if (inertial.mass > 0) != (size > 0):
        yield Finding(
            'half_inertial',
            'warning' if size > 0 else 'info',
            element,
            inertial.mass,
            'has a mass [kg] without inertia, or inertia without mass',
        )
    if inertial.mass == 1.0 and distance == 0.0 and np.array_equal(inertial.inertia, np.eye(3)):
        yield Finding(
            'placeholder_inertial',
            'warning',
            element,
            inertial.mass,
            '1 kg with unit inertia looks like a placeholder, such as urdfpy and urchin invent',
        )


def _mass(chain: Chain, body: Body) -> float:
    inertials = (chain.description.links[name].inertial for name in body.link_transforms)
    return sum(inertial.mass for inertial in inertials if inertial is not None)


def _mass_findings(chain: Chain, masses: list[float]) -> Iterator[Finding]:
    for joint, mass in zip(chain.joints, masses, strict=True):
        if mass == 0:
            yield Finding(
                'no_mass', 'warning', f'link {joint.child!r}', mass, 'moves but has no mass [kg]'
            )
    for i in range(len(masses) - 1):
        pair = sorted((masses[i + k], chain.joints[i + k].child) for k in (0, 1))
        (light, light_name), (heavy, heavy_name) = pair
        if 0 < light * _STRANGE_MASS_RATIO < heavy:
            yield Finding(
                'mass_ratio',
                'warning',
                f'link {light_name!r}',
                light,
                f'mass [kg] beside {heavy:g} kg of its neighbour {heavy_name!r}',
            )


def _lumped_findings(chain: Chain) -> Iterator[Finding]:
    for joint, body in zip(chain.joints, chain.bodies[1:], strict=True):
        lumped = {}
        for name in body.link_transforms:
            inertial = chain.description.links[name].inertial
            if name != joint.child and inertial is not None and inertial.mass > 0:
                lumped[name] = inertial.mass
        if lumped:
            names = [repr(name) for name in list(lumped)[:_MOST_NAMES]]
            if len(lumped) > _MOST_NAMES:
                names.append(f'and {len(lumped) - _MOST_NAMES} more')
            yield Finding(
                'lumped_mass',
                'info',
                f'link {joint.child!r}',
                sum(lumped.values()),
                f'mass [kg] lumped into it from {", ".join(names)}',
            )
