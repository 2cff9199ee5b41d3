# SPDX-License-Identifier: Apache-2.0
"""
What is odd about a chain: impossible bodies, axes beside their links; findings, never repairs.

Warnings come first, and of each level what costs most torque: each finding is weighed by the
torque [N m] that is in doubt with it, roughly, for an arm under gravity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robodyn_ros.description.chain import Body, Chain
from robodyn_ros.description.records import Finding, Inertial, Joint, Level, note, warning
from robodyn_ros.spatial import FloatArray

MASSES = "masses in the URDF, the maker's or those that robodyn identify finds in recordings"
"""What an arm without masses needs."""

# The torque [N m] that is in doubt with a finding, roughly, and the finding.
_WeighedFinding = tuple[float, Finding]
# What findings are weighed with [m/s²], whatever the model's.
_GRAVITY = 9.81
_MOST_NAMES = 6
_UNIT_AXIS_TOLERANCE = 1e-4
# Beyond these no arm goes: they stand for no limit, or are in another unit.
_LARGEST_EFFORT = 1e5
_LARGEST_VELOCITY = 1e3
_MOST_TURNS = 10.0
_LONGEST_SLIDE = 100.0
_LONGEST_STEP = 20.0
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
_LEAST_PART = 0.1
# Without a size, a wheel or a table that turns may be so large [m].
_LARGE = 0.5
# Relative slack for numbers that were rounded when they were printed into the file.
_ROUNDING = 1e-3


def chain_findings(chain: Chain) -> tuple[Finding, ...]:
    """Return all findings about the joints and bodies of a chain, what costs most torque first."""
    reach = _reach(chain)
    weight = _GRAVITY * reach * sum(_body_masses(chain))
    found: list[_WeighedFinding] = [
        *_reading_findings(chain, weight),
        *((0.0, finding) for finding in chain.findings),
        *(each for joint in chain.joints for each in _joint_findings(joint)),
        *_step_findings(chain, weight),
        *_mass_findings(chain, reach),
        *_lumped_findings(chain, reach),
    ]
    found.sort(key=lambda each: (each[1].level != 'warning', -each[0]))
    return tuple(finding for _, finding in found)


def _reading_findings(chain: Chain, weight: float) -> Iterator[_WeighedFinding]:
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
    lengths = [0.0 if parent < 0 else length for parent, length in _steps(chain)]
    for i, joint in enumerate(chain.joints):
        stroke = joint.limit.upper - joint.limit.lower
        if joint.kind == 'prismatic' and 0 < stroke < math.inf:
            lengths[i] += stroke
    return max(0.1, max(_sums_to_tips(chain, lengths)))


def _steps(chain: Chain) -> list[tuple[int, float]]:
    """Return the body before each joint and then each tip, and how far that one is from it [m]."""
    steps = [*chain.joint_transforms, *chain.tip_transforms]
    lengths = [float(np.linalg.norm(step[:3, 3])) for step in steps]
    return list(zip([*chain.parents, *chain.tips], lengths, strict=True))


def _sums_to_tips(chain: Chain, values: list[float]) -> list[float]:
    """Return the sums of values from the base to each tip, by joint and then by tip."""
    sums = [0.0]
    for parent, value in zip([*chain.parents, *chain.tips], values, strict=True):
        sums.append(sums[parent + 1] + value)
    return sums[len(chain.joints) + 1 :]


def _lumped_findings(chain: Chain, reach: float) -> Iterator[_WeighedFinding]:
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
            yield _GRAVITY * reach * mass, note('lumped_mass', element, mass, message)


# --- joints, and the ways between them -----------------------------------------------------------


def _joint_findings(joint: Joint) -> Iterator[_WeighedFinding]:
    """Yield what is odd about one joint; none of it changes the torque, but negative friction."""
    element = f'joint {joint.name!r}'
    for code, level, value, message in _of_limits(joint):
        yield 0.0, Finding(code, level, element, value, f'{element} {message}')
    length = joint.axis_length
    if abs(length - 1.0) > _UNIT_AXIS_TOLERANCE:
        message = f'{element} has an axis of length {length:g}, not 1'
        yield 0.0, note('axis_not_unit', element, length, message)
    for name, value in (('damping', joint.damping), ('friction', joint.friction)):
        if value < 0:
            message = f'{element} has a negative {name}, {value:g}'
            yield -value, warning('negative_friction', element, value, message)
    if joint.mimic is not None:
        message = f'{element} mimics {joint.mimic.joint!r}, but moves independently'
        yield 0.0, note('mimic_joint', element, joint.mimic.joint, message)


_Found = tuple[str, Level, float | tuple[float, float], str]


def _of_limits(joint: Joint) -> Iterator[_Found]:
    limit = joint.limit
    force, way = ('N', 'm') if joint.kind == 'prismatic' else ('N m', 'rad')
    if not (0 < limit.effort < math.inf):
        has_none = limit.effort == math.inf
        what = 'no effort limit' if has_none else f'an effort limit of {limit.effort:g} {force}'
        yield 'effort_limit', 'warning', limit.effort, f'has {what}'
    elif limit.effort > _LARGEST_EFFORT:
        message = f'has an effort limit of {limit.effort:g} {force}, which limits nothing'
        yield 'effort_limit', 'warning', limit.effort, message
    if _LARGEST_VELOCITY < limit.velocity < math.inf:
        message = f'has a velocity limit of {limit.velocity:g} {way}/s, which limits nothing'
        yield 'velocity_limit', 'info', limit.velocity, message
    both = (limit.lower, limit.upper)
    range_ = f'{limit.lower:g} to {limit.upper:g} {way}'
    furthest = max(map(abs, both))
    if limit.lower > limit.upper:
        yield 'position_limits', 'warning', both, f'has inverted position limits, {range_}'
    elif limit.lower == limit.upper:
        message = f'has no room to move: both position limits are {limit.lower:g} {way}'
        yield 'position_limits', 'warning', limit.lower, message
    elif joint.kind != 'continuous' and math.isinf(furthest):
        yield 'position_limits', 'info', both, 'has no position limits'
    elif joint.kind == 'revolute' and furthest > 2 * math.pi * _MOST_TURNS:
        message = f'has position limits of {range_}; or are they degrees?'
        yield 'position_limits', 'info', both, message
    elif joint.kind == 'prismatic' and furthest > _LONGEST_SLIDE:
        message = f'has position limits of {range_}; or are they millimetres?'
        yield 'position_limits', 'info', both, message


def _step_findings(chain: Chain, weight: float) -> Iterator[_WeighedFinding]:
    """Yield the ways from joint to joint that are longer than an arm's."""
    joints = [(f'joint {joint.name!r}', 'the joint before it') for joint in chain.joints]
    tips = [(f'link {tip!r}', 'the last joint') for tip in chain.tip_links]
    for (element, before), (parent, length) in zip(joints + tips, _steps(chain), strict=True):
        if parent >= 0 and length > _LONGEST_STEP:
            message = f'{element} is {length:g} m away from {before}; or is that in millimetres?'
            yield weight, warning('long_link', element, length, message)


# --- masses and inertias -------------------------------------------------------------------------


def _mass_findings(chain: Chain, reach: float) -> Iterator[_WeighedFinding]:
    """Yield what is odd about the links of an arm that can reach so far [m]."""
    masses = _body_masses(chain)
    total = sum(masses)
    arm = chain.ends
    if total == 0:
        message = f'no link from {arm} that moves has a mass: every torque is 0; needed: {MASSES}'
        yield np.inf, warning('no_masses', arm, 0.0, message)
    elif total < _LIGHTEST_ARM * reach and reach < _LONGEST_ARM:
        message = (
            f'all that moves from {arm} has {total:g} kg, too little for {reach:.3g} m: '
            'placeholders?'
        )
        yield np.inf, warning('light_arm', arm, total, message)
    for body in chain.bodies[1:]:
        for name in body.link_transforms:
            inertial = chain.description.links[name].inertial
            if inertial is not None:
                yield from _link_findings(name, inertial, reach)
    if total > 0:
        yield from _equal_bodies(chain, reach)
        yield from _strange_masses(chain, masses, reach)
        yield from _large_inertias(chain)


def _body_masses(chain: Chain) -> list[float]:
    """Return the mass [kg] of each body that moves."""
    return [_mass(chain, body) for body in chain.bodies[1:]]


def _mass(chain: Chain, body: Body) -> float:
    inertials = (chain.description.links[name].inertial for name in body.link_transforms)
    return sum(inertial.mass for inertial in inertials if inertial is not None)


def _equal_bodies(chain: Chain, reach: float) -> Iterator[_WeighedFinding]:
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
        arm = chain.ends
        message = (
            f'all {len(inertials)} links from {arm} have {mass:g} kg and one inertia: '
            'placeholders?'
        )
        yield _GRAVITY * mass * len(inertials) * reach, warning('equal_masses', arm, mass, message)


def _strange_masses(chain: Chain, masses: list[float], reach: float) -> Iterator[_WeighedFinding]:
    for i, (joint, mass) in enumerate(zip(chain.joints, masses, strict=True)):
        element = f'link {joint.child!r}'
        if mass == 0 and chain.description.links[joint.child].within_body:
            continue
        if mass == 0:
            cost = _GRAVITY * reach * sum(masses) / len(masses)
            message = f'{element} moves but has no mass'
            yield cost, warning('no_mass', element, mass, message)
            continue
        before = [] if chain.parents[i] < 0 else [chain.parents[i]]
        neighbours = [(masses[k], chain.joints[k].child) for k in before + chain.children(i)]
        heavy, neighbour = max(neighbours, default=(0.0, ''))
        if mass * _STRANGE_MASS_RATIO < heavy:
            message = f'{element} has {mass:g} kg, beside {heavy:g} kg of link {neighbour!r}'
            cost = _GRAVITY * reach * heavy / 10
            yield cost, warning('mass_ratio', element, mass, message)


def _link_findings(name: str, inertial: Inertial, reach: float) -> Iterator[_WeighedFinding]:
    element = f'link {name!r}'
    moments = np.linalg.eigvalsh(inertial.inertia)
    smallest, middle, largest = (float(moment) for moment in moments)
    size = max(abs(smallest), abs(largest))
    shown = f'{smallest:g}, {middle:g} and {largest:g} kg m²'
    if smallest < -_ROUNDING * size:
        message = f'{element} has the principal moments of inertia {shown}; none may be negative'
        yield size, warning('inertia_not_positive', element, (smallest, middle, largest), message)
    elif largest > (smallest + middle) * (1 + _ROUNDING):
        message = (
            f'{element} has the principal moments of inertia {shown}; the largest exceeds '
            'the sum of the other two'
        )
        yield size, warning('triangle_inequality', element, (smallest, middle, largest), message)
    weight, distance = _GRAVITY * inertial.mass, float(np.linalg.norm(inertial.center_of_mass))
    if distance > reach:
        message = (
            f'{element} has its centre of mass {distance:g} m away, further than the arm is '
            f'long ({reach:.3g} m)'
        )
        yield weight * distance, warning('far_center_of_mass', element, distance, message)
    if (inertial.mass > 0) != (size > 0):
        finding = warning if size > 0 else note
        has = 'an inertia but no mass' if size > 0 else f'{inertial.mass:g} kg but no inertia'
        yield size, finding('half_inertial', element, inertial.mass, f'{element} has {has}')
    if inertial.mass == 1.0 and distance == 0.0 and np.array_equal(inertial.inertia, np.eye(3)):
        message = (
            f'{element} has 1 kg and unit inertia: a placeholder, such as urdfpy and urchin '
            'invent?'
        )
        yield weight * reach, warning('placeholder_inertial', element, inertial.mass, message)


# --- radii of gyration beside what hangs between a link's neighbours -----------------------------


def _large_inertias(chain: Chain) -> Iterator[_WeighedFinding]:
    """
    Yield the links whose mass lies further from its centre, on average, than a link is long.

    What is lumped on the chain, and a link whose size nothing tells, must fit into the arm.
    """
    sizes = [_named_size(chain, i) for i in range(len(chain.joints))]
    known = [size if size < math.inf else 0.0 for size in sizes]
    for i in chain.children(-1):
        known[i] += float(np.linalg.norm(chain.joint_transforms[i][:3, 3]))
    arm = max(_sums_to_tips(chain, known + [0.0] * len(chain.tips)))
    accelerated = _Accelerated(chain)
    for i, (joint, body) in enumerate(zip(chain.joints, chain.bodies[1:], strict=True)):
        for name in body.link_transforms:
            inertial = chain.description.links[name].inertial
            if inertial is None or inertial.mass <= 0:
                continue
            radius = _radius_of_gyration(inertial)
            if name == joint.child and len(sizes) > 1 and sizes[i] >= _LEAST_PART * radius:
                size, room = max(sizes[i], _PART_OF_ARM * arm), _ROOM
            else:
                size, room = max(arm, _LARGE), 1.0
            if radius > room * size:
                excess = 1.0 - (size / radius) ** 2
                yield _large_inertia(name, radius, size, accelerated.of(i, name, excess))


def _large_inertia(
    name: str, radius: float, size: float, cost: tuple[str, float, float] | None
) -> _WeighedFinding:
    element = f'link {name!r}'
    message = (
        f'{element} has a radius of gyration of {radius:.3g} m but a size of {size:.3g} m: a '
        'wrong tensor?'
    )
    if cost is None:
        return 0.0, warning('large_inertia', element, radius, message)
    joint, excess, whole = cost
    message += (
        f' Of the {whole:.3g} N m that 1 rad/s² of joint {joint!r} takes, {excess:.3g} N m are '
        'too much'
    )
    return excess, warning('large_inertia', element, radius, message)


def _radius_of_gyration(inertial: Inertial) -> float:
    """
    Return the largest radius of gyration [m] about the centre of mass.

    No principal moment of a body exceeds the sum of the other two. One that does, as where a
    drive's inertia was added about the joint's axis, is another finding and counts as that sum.
    """
    smallest, middle, largest = np.linalg.eigvalsh(inertial.inertia).tolist()
    return math.sqrt(max(0.0, min(largest, smallest + middle)) / inertial.mass)


def _named_size(chain: Chain, i: int) -> float:
    """
    Return the size [m] of a body that moves, by the URDF's frames; infinite: unknown.

    It reaches from joint to joint, with what is lumped on it and the strokes of its slides. A
    joint lies anywhere along its axis: where along it the neighbours have their frames counts,
    too. A last link has no joint at its end: it is as long, at least, as the way to its joint.
    """
    joint, body, before = chain.joints[i], chain.bodies[i + 1], chain.joint_transforms[i]
    points = [np.zeros(3), -joint.axis * (joint.axis @ before[:3, :3].T @ before[:3, 3])]
    points += [step[:3, 3] for step in _steps_behind(chain, i)]
    for name, placed in body.link_transforms.items():
        inertial = chain.description.links[name].inertial
        points.append(placed[:3, 3])
        if inertial is not None and inertial.mass > 0:
            points.append(placed[:3, :3] @ inertial.center_of_mass + placed[:3, 3])
    slides = [joint]
    for k in chain.children(i):
        following, after = chain.joints[k], chain.joint_transforms[k]
        slides.append(following)
        for step in _steps_behind(chain, k):
            along = following.axis * (following.axis @ step[:3, 3])
            points.append(after[:3, :3] @ along + after[:3, 3])
    stroke = 0.0
    for slide in slides:
        if slide.kind == 'prismatic':
            lower, upper = slide.limit.lower, slide.limit.upper
            stroke += max(upper - lower, abs(lower), abs(upper)) or math.inf
    spread = np.array(points)
    size = float(np.linalg.norm(spread[:, None] - spread[None], axis=-1).max()) + stroke
    return size if chain.children(i) else max(size, float(np.linalg.norm(before[:3, 3])))


def _steps_behind(chain: Chain, i: int) -> list[FloatArray]:
    """Return the frames of the joints and tips that body i carries, in its own."""
    tips = [step for k, step in zip(chain.tips, chain.tip_transforms, strict=True) if k == i]
    return [chain.joint_transforms[k] for k in chain.children(i)] + tips


@dataclass(frozen=True)
class _Accelerated:
    """Inertias about an arm's joints at position zero."""

    chain: Chain

    @cached_property
    def _poses(self) -> FloatArray:
        poses = [np.eye(4)]
        for parent, step in zip(self.chain.parents, self.chain.joint_transforms, strict=True):
            poses.append(poses[parent + 1] @ step)
        return np.array(poses[1:])

    @cached_property
    def _bodies(self) -> tuple[dict[str, int], FloatArray, FloatArray, FloatArray, FloatArray]:
        """Rows by link, which body each is part of, masses, centres [m] and tensors [kg m²]."""
        rows: dict[str, int] = {}
        bodies, masses, centers, tensors = [], [], [], []
        for i, (pose, body) in enumerate(zip(self._poses, self.chain.bodies[1:], strict=True)):
            for name, transform_link_to_body in body.link_transforms.items():
                inertial = self.chain.description.links[name].inertial
                if inertial is None:
                    continue
                placed = pose @ transform_link_to_body
                rows[name] = len(rows)
                bodies.append(i)
                masses.append(inertial.mass)
                centers.append(placed[:3, :3] @ inertial.center_of_mass + placed[:3, 3])
                tensors.append(placed[:3, :3] @ inertial.inertia @ placed[:3, :3].T)
        return rows, np.array(bodies), np.array(masses), np.array(centers), np.array(tensors)

    def _about(self, j: int) -> tuple[FloatArray, float]:
        """Return each link's own inertia about axis j, and all that this joint moves [kg m²]."""
        _, bodies, masses, centers, tensors = self._bodies
        axis = self._poses[j][:3, :3] @ self.chain.joints[j].axis
        own = tensors @ axis @ axis
        arms = np.cross(axis, centers - self._poses[j][:3, 3])
        whole = own + masses * (arms * arms).sum(axis=1)
        moved = [j in self.chain.moving(i) for i in bodies]
        return own, float(whole[moved].sum())

    def of(self, i: int, name: str, share: float) -> tuple[str, float, float] | None:
        """
        Return the joint to whose inertia this share of a link's own adds most, and the torques.

        These are what the share takes at 1 rad/s² of it alone, and what all takes that it moves
        [N m]. None where no joint before the link turns it.
        """
        row = self._bodies[0][name]
        found = []
        for j in self.chain.moving(i):
            if self.chain.joints[j].kind == 'prismatic':
                continue
            own, whole = self._by_joint[j]
            if whole > 0:
                part = share * float(own[row])
                found.append((part / whole, self.chain.joints[j].name, part, whole))
        return max(found)[1:] if found else None

    @cached_property
    def _by_joint(self) -> list[tuple[FloatArray, float]]:
        return [self._about(j) for j in range(len(self.chain.joints))]
