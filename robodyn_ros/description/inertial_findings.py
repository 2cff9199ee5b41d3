# SPDX-License-Identifier: Apache-2.0
"""What is odd about the masses and inertias of a chain's links."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robodyn_ros.description.chain import Body, Chain
from robodyn_ros.description.records import Finding, Inertial

GRAVITY = 9.81
"""What findings are weighed with [m/s²], whatever the model's."""

WeighedFinding = tuple[float, Finding]
"""The torque [N m] that is in doubt with a finding, roughly, and the finding."""

# A ratio of masses of neighbouring bodies that no arm has: 7 g beside 7 kg.
_STRANGE_MASS_RATIO = 500.0
# An arm weighs at least so much for its length [kg/m].
_LIGHTEST_ARM = 0.2
# Longer than this an arm's lengths are in doubt, not its masses [m].
_LONGEST_ARM = 20.0
# So many bodies with the same mass and the same inertia are no coincidence.
_FEWEST_EQUAL = 3
# Relative slack for numbers that were rounded when they were printed into the file.
_ROUNDING = 1e-3


def mass_findings(chain: Chain, reach: float) -> Iterator[WeighedFinding]:
    """Yield what is odd about the links of an arm that can reach so far [m]."""
    masses = body_masses(chain)
    total = sum(masses)
    if total == 0:
        yield (
            np.inf,
            Finding(
                'no_masses',
                'warning',
                f'{chain.base_link!r} to {chain.tip_link!r}',
                0.0,
                'no link that moves has a mass [kg]: every torque is 0',
            ),
        )
    elif total < _LIGHTEST_ARM * reach and reach < _LONGEST_ARM:
        yield (
            np.inf,
            Finding(
                'light_arm',
                'warning',
                f'{chain.base_link!r} to {chain.tip_link!r}',
                total,
                f'mass [kg] of all that moves: too little for {reach:.3g} m; placeholders?',
            ),
        )
    for body in chain.bodies[1:]:
        for name in body.link_transforms:
            inertial = chain.description.links[name].inertial
            if inertial is not None:
                yield from _link_findings(name, inertial, reach)
    if total > 0:
        yield from _equal_bodies(chain, reach)
        yield from _strange_masses(chain, masses, reach)


def body_masses(chain: Chain) -> list[float]:
    """Return the mass [kg] of each body that moves."""
    return [_mass(chain, body) for body in chain.bodies[1:]]


def _mass(chain: Chain, body: Body) -> float:
    inertials = (chain.description.links[name].inertial for name in body.link_transforms)
    return sum(inertial.mass for inertial in inertials if inertial is not None)


def _equal_bodies(chain: Chain, reach: float) -> Iterator[WeighedFinding]:
    """Yield a finding where all links that have a mass have the same, and the same inertia."""
    inertials = [
        inertial
        for joint in chain.joints
        if (inertial := chain.description.links[joint.child].inertial) is not None
        and inertial.mass > 0
    ]
    kinds = {
        (each.mass, *np.linalg.eigvalsh(each.inertia).round(12).tolist()) for each in inertials
    }
    if len(kinds) == 1 and len(inertials) >= _FEWEST_EQUAL:
        mass = inertials[0].mass
        yield (
            GRAVITY * mass * len(inertials) * reach,
            Finding(
                'equal_masses',
                'warning',
                f'{chain.base_link!r} to {chain.tip_link!r}',
                mass,
                f'mass [kg] of all {len(inertials)} links, with one inertia; placeholders?',
            ),
        )


def _strange_masses(chain: Chain, masses: list[float], reach: float) -> Iterator[WeighedFinding]:
    for i, (joint, mass) in enumerate(zip(chain.joints, masses, strict=True)):
        element = f'link {joint.child!r}'
        if mass == 0:
            cost = GRAVITY * reach * sum(masses) / len(masses)
            yield cost, Finding('no_mass', 'warning', element, mass, 'moves but has no mass [kg]')
            continue
        heavy, neighbour = (
            max((masses[k], chain.joints[k].child) for k in (i - 1, i + 1) if 0 <= k < len(masses))
            if len(masses) > 1
            else (0.0, '')
        )
        if mass * _STRANGE_MASS_RATIO < heavy:
            message = f'mass [kg] beside {heavy:g} kg of its neighbour {neighbour!r}'
            cost = GRAVITY * reach * heavy / 10
            yield cost, Finding('mass_ratio', 'warning', element, mass, message)


def _link_findings(name: str, inertial: Inertial, reach: float) -> Iterator[WeighedFinding]:
    element = f'link {name!r}'
    moments = np.linalg.eigvalsh(inertial.inertia)
    smallest, middle, largest = (float(moment) for moment in moments)
    size = max(abs(smallest), abs(largest))
    if smallest < -_ROUNDING * size:
        yield (
            size,
            Finding(
                'inertia_not_positive',
                'warning',
                element,
                (smallest, middle, largest),
                'principal moments of inertia [kg m²] must not be negative',
            ),
        )
    elif largest > (smallest + middle) * (1 + _ROUNDING):
        yield (
            size,
            Finding(
                'triangle_inequality',
                'warning',
                element,
                (smallest, middle, largest),
                'the largest principal moment of inertia [kg m²] exceeds the sum of the other two',
            ),
        )
    distance = float(np.linalg.norm(inertial.center_of_mass))
    if distance > reach:
        yield (
            GRAVITY * inertial.mass * distance,
            Finding(
                'far_center_of_mass',
                'warning',
                element,
                distance,
                f'its centre of mass [m] is further away than the arm is long ({reach:.3g} m)',
            ),
        )
    if inertial.mass > 0 and size > inertial.mass * reach * reach:
        yield (
            size,
            Finding(
                'large_inertia',
                'warning',
                element,
                size,
                f'moment of inertia [kg m²] too large for {inertial.mass:g} kg in {reach:.3g} m',
            ),
        )
    if (inertial.mass > 0) != (size > 0):
        yield (
            size,
            Finding(
                'half_inertial',
                'warning' if size > 0 else 'info',
                element,
                inertial.mass,
                'mass [kg] without inertia' if size == 0 else 'inertia without mass [kg]',
            ),
        )
    if inertial.mass == 1.0 and distance == 0.0 and np.array_equal(inertial.inertia, np.eye(3)):
        yield (
            GRAVITY * inertial.mass * reach,
            Finding(
                'placeholder_inertial',
                'warning',
                element,
                inertial.mass,
                '1 kg with unit inertia: a placeholder, such as urdfpy and urchin invent?',
            ),
        )
