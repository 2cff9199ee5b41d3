# SPDX-License-Identifier: Apache-2.0
"""
What a model's checker found: physical oddities are reported, never repaired.

Warnings come first, and of each level what costs most torque: each finding is weighed by the
torque [N m] that is in doubt with it, roughly, for an arm under gravity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robodyn_ros.description.chain import Chain
from robodyn_ros.description.inertial_findings import WeighedFinding, body_masses, mass_findings
from robodyn_ros.description.joint_findings import joint_findings, step_findings
from robodyn_ros.description.records import Finding

_GRAVITY = 9.81
_MOST_NAMES = 6


def chain_findings(chain: Chain) -> tuple[Finding, ...]:
    """Return all findings about the joints and bodies of a chain, what costs most torque first."""
    reach = _reach(chain)
    weight = _GRAVITY * reach * sum(body_masses(chain))
    found: list[WeighedFinding] = [
        *_reading_findings(chain, weight),
        *((0.0, finding) for finding in chain.findings),
        *(each for joint in chain.joints for each in joint_findings(joint)),
        *step_findings(chain, weight),
        *mass_findings(chain, reach),
        *_lumped_findings(chain, reach),
    ]
    found.sort(key=lambda each: (each[1].level != 'warning', -each[0]))
    return tuple(finding for _, finding in found)


def _reading_findings(chain: Chain, weight: float) -> Iterator[WeighedFinding]:
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
            yield math.inf if finding.code == 'xacro_element' else weight, finding


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


def _lumped_findings(chain: Chain, reach: float) -> Iterator[WeighedFinding]:
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
            mass = sum(lumped.values())
            element = f'link {joint.child!r}'
            message = f'{element} carries {mass:g} kg of {", ".join(names)}, lumped into it'
            finding = Finding('lumped_mass', 'info', element, mass, message)
            yield _GRAVITY * reach * mass, finding
