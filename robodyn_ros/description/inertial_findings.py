# SPDX-License-Identifier: Apache-2.0
"""What is odd about the masses and inertias of a chain's links."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robodyn_ros.description.chain import Body, Chain
from robodyn_ros.description.records import Finding, Inertial
from robodyn_ros.spatial import FloatArray

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
# A radius of gyration beyond so many times the link's size is no body's. Mass within a ball has at
# most the ball's radius; housings, counterweights and wide bases reach further than joints do. In
# 389 public URDFs the largest that a link's own meshes allow is 1.45 times its size.
_ROOM = 2.0
# Where axes meet, joints tell less than the housings: a link counts as this part of the arm.
_PART_OF_ARM = 0.1
# Unless a link's frames reach this part of the radius of gyration they tell nothing of its size.
_TELLING_PART = 0.1
# Without a size, a wheel or a table that turns may be so large [m].
_LARGE = 0.5
# Relative slack for numbers that were rounded when they were printed into the file.
_ROUNDING = 1e-3


def mass_findings(chain: Chain, reach: float) -> Iterator[WeighedFinding]:
    """Yield what is odd about the links of an arm that can reach so far [m]."""
    masses = body_masses(chain)
    total = sum(masses)
    arm = f'{chain.base_link!r} to {chain.tip_link!r}'
    if total == 0:
        yield (
            np.inf,
            Finding(
                'no_masses',
                'warning',
                arm,
                0.0,
                f'no link from {arm} that moves has a mass: every torque is 0',
            ),
        )
    elif total < _LIGHTEST_ARM * reach and reach < _LONGEST_ARM:
        yield (
            np.inf,
            Finding(
                'light_arm',
                'warning',
                arm,
                total,
                f'all that moves from {arm} has {total:g} kg, too little for {reach:.3g} m: '
                'placeholders?',
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
        yield from _large_inertias(chain)


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
        arm = f'{chain.base_link!r} to {chain.tip_link!r}'
        yield (
            GRAVITY * mass * len(inertials) * reach,
            Finding(
                'equal_masses',
                'warning',
                arm,
                mass,
                f'all {len(inertials)} links from {arm} have {mass:g} kg and one inertia: '
                'placeholders?',
            ),
        )


def _strange_masses(chain: Chain, masses: list[float], reach: float) -> Iterator[WeighedFinding]:
    for i, (joint, mass) in enumerate(zip(chain.joints, masses, strict=True)):
        element = f'link {joint.child!r}'
        if mass == 0:
            cost = GRAVITY * reach * sum(masses) / len(masses)
            message = f'{element} moves but has no mass'
            yield cost, Finding('no_mass', 'warning', element, mass, message)
            continue
        heavy, neighbour = (
            max((masses[k], chain.joints[k].child) for k in (i - 1, i + 1) if 0 <= k < len(masses))
            if len(masses) > 1
            else (0.0, '')
        )
        if mass * _STRANGE_MASS_RATIO < heavy:
            message = f'{element} has {mass:g} kg, beside {heavy:g} kg of link {neighbour!r}'
            cost = GRAVITY * reach * heavy / 10
            yield cost, Finding('mass_ratio', 'warning', element, mass, message)


def _link_findings(name: str, inertial: Inertial, reach: float) -> Iterator[WeighedFinding]:
    element = f'link {name!r}'
    moments = np.linalg.eigvalsh(inertial.inertia)
    smallest, middle, largest = (float(moment) for moment in moments)
    size = max(abs(smallest), abs(largest))
    shown = f'{smallest:g}, {middle:g} and {largest:g} kg m²'
    if smallest < -_ROUNDING * size:
        yield (
            size,
            Finding(
                'inertia_not_positive',
                'warning',
                element,
                (smallest, middle, largest),
                f'{element} has the principal moments of inertia {shown}; none may be negative',
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
                f'{element} has the principal moments of inertia {shown}; the largest exceeds '
                'the sum of the other two',
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
                f'{element} has its centre of mass {distance:g} m away, further than the arm is '
                f'long ({reach:.3g} m)',
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
                f'{element} has {inertial.mass:g} kg but no inertia'
                if size == 0
                else f'{element} has an inertia but no mass',
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
                f'{element} has 1 kg and unit inertia: a placeholder, such as urdfpy and urchin '
                'invent?',
            ),
        )


# --- radii of gyration beside what hangs between a link's neighbours -----------------------------


def _large_inertias(chain: Chain) -> Iterator[WeighedFinding]:
    """
    Yield the links whose mass lies further from its centre, on average, than a link is long.

    What is lumped on the chain, and a link whose size nothing tells, must fit into the arm.
    """
    told = _told_sizes(chain)
    arm = float(np.linalg.norm(chain.joint_transforms[0][:3, 3])) + sum(
        size for size in told if size < math.inf
    )
    accelerated = _Accelerated(chain)
    for i, (joint, body) in enumerate(zip(chain.joints, chain.bodies[1:], strict=True)):
        for name in body.link_transforms:
            inertial = chain.description.links[name].inertial
            if inertial is None or inertial.mass <= 0:
                continue
            radius = _radius_of_gyration(inertial)
            if name == joint.child and len(told) > 1 and told[i] >= _TELLING_PART * radius:
                size, room = max(told[i], _PART_OF_ARM * arm), _ROOM
            else:
                size, room = max(arm, _LARGE), 1.0
            if radius > room * size:
                excess = 1.0 - (size / radius) ** 2
                yield _large_inertia(name, radius, size, accelerated.of(i, name, excess))


def _large_inertia(
    name: str, radius: float, size: float, cost: tuple[str, float, float] | None
) -> WeighedFinding:
    element = f'link {name!r}'
    message = (
        f'{element} has a radius of gyration of {radius:.3g} m but a size of {size:.3g} m: a '
        'wrong tensor?'
    )
    if cost is None:
        return 0.0, Finding('large_inertia', 'warning', element, radius, message)
    joint, excess, whole = cost
    message += (
        f' Of the {whole:.3g} N m that 1 rad/s² of joint {joint!r} takes, {excess:.3g} N m are '
        'too much'
    )
    return excess, Finding('large_inertia', 'warning', element, radius, message)


def _radius_of_gyration(inertial: Inertial) -> float:
    """
    Return the largest radius of gyration [m] about the centre of mass.

    No principal moment of a body exceeds the sum of the other two. One that does, as where a
    drive's inertia was added about the joint's axis, is another finding and counts as that sum.
    """
    smallest, middle, largest = np.linalg.eigvalsh(inertial.inertia).tolist()
    return math.sqrt(max(0.0, min(largest, smallest + middle)) / inertial.mass)


def _told_sizes(chain: Chain) -> list[float]:
    """
    Return what the frames of each body that moves tell of its size [m]; infinite: unknown.

    They reach from joint to joint, with what is lumped on it and the strokes of its slides. A
    joint lies anywhere along its axis: where along it the neighbours have their frames counts,
    too. The last link has no joint at its end: it is as long, at least, as the way to its joint.
    """
    steps = [*chain.joint_transforms, chain.tip_transform]
    sizes = [_extent(chain, i, steps) for i in range(len(chain.joints))]
    sizes[-1] = max(sizes[-1], float(np.linalg.norm(steps[-2][:3, 3])))
    return sizes


def _extent(chain: Chain, i: int, steps: list[FloatArray]) -> float:
    """Return the largest distance [m] between two points of a body that the URDF names."""
    joint, body = chain.joints[i], chain.bodies[i + 1]
    before, after = steps[i], steps[i + 1]
    points = [
        np.zeros(3),
        after[:3, 3],
        -joint.axis * (joint.axis @ before[:3, :3].T @ before[:3, 3]),
    ]
    for name, placed in body.link_transforms.items():
        inertial = chain.description.links[name].inertial
        points.append(placed[:3, 3])
        if inertial is not None and inertial.mass > 0:
            points.append(placed[:3, :3] @ inertial.center_of_mass + placed[:3, 3])
    slides = [joint]
    if i + 1 < len(chain.joints):
        following = chain.joints[i + 1]
        slides.append(following)
        along = following.axis * (following.axis @ steps[i + 2][:3, 3])
        points.append(after[:3, :3] @ along + after[:3, 3])
    stroke = 0.0
    for slide in slides:
        if slide.kind == 'prismatic':
            lower, upper = slide.limit.lower, slide.limit.upper
            stroke += max(upper - lower, abs(lower), abs(upper)) or math.inf
    spread = np.array(points)
    return float(np.linalg.norm(spread[:, None] - spread[None], axis=-1).max()) + stroke


@dataclass(frozen=True)
class _Accelerated:
    """What an arm's joints accelerate at position zero."""

    chain: Chain

    @cached_property
    def _poses(self) -> FloatArray:
        poses = [np.eye(4)]
        for step in self.chain.joint_transforms:
            poses.append(poses[-1] @ step)
        return np.array(poses[1:])

    def _about(self, j: int, i: int, name: str) -> tuple[float, float]:
        """Return the inertia of a link of body i about axis j [kg m²]: its own, and all of it."""
        inertial = self.chain.description.links[name].inertial
        if inertial is None:
            return 0.0, 0.0
        placed = self._poses[i] @ self.chain.bodies[i + 1].link_transforms[name]
        axis = self._poses[j][:3, :3] @ self.chain.joints[j].axis
        center = placed[:3, :3] @ inertial.center_of_mass + placed[:3, 3]
        local = placed[:3, :3].T @ axis
        own = float(local @ inertial.inertia @ local)
        arm = np.cross(axis, center - self._poses[j][:3, 3])
        return own, own + inertial.mass * float(arm @ arm)

    def of(self, i: int, name: str, share: float) -> tuple[str, float, float] | None:
        """
        Return the joint that feels this share of a link's own inertia most, and the torques.

        These are what the share takes at 1 rad/s² of it alone, and what all takes that it moves
        [N m]. None where no joint before the link turns it.
        """
        found = []
        for j in range(i + 1):
            if self.chain.joints[j].kind == 'prismatic':
                continue
            whole = sum(
                self._about(j, k, each)[1]
                for k in range(j, len(self.chain.joints))
                for each in self.chain.bodies[k + 1].link_transforms
            )
            if whole > 0:
                part = share * self._about(j, i, name)[0]
                found.append((part / whole, self.chain.joints[j].name, part, whole))
        return max(found)[1:] if found else None
