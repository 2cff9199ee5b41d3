# SPDX-License-Identifier: Apache-2.0
"""What is odd about the joints of a chain, and about the ways between them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robodyn_ros.description.chain import Chain
from robodyn_ros.description.inertial_findings import WeighedFinding
from robodyn_ros.description.records import Finding, Joint, Level

_UNIT_AXIS_TOLERANCE = 1e-4
# Beyond these no arm goes: they stand for no limit, or are in another unit.
_LARGEST_EFFORT = 1e5
_LARGEST_VELOCITY = 1e3
_MOST_TURNS = 10.0
_LONGEST_SLIDE = 100.0
_LONGEST_STEP = 20.0


def joint_findings(joint: Joint) -> Iterator[WeighedFinding]:
    """Yield what is odd about one joint; none of it changes the torque, but negative friction."""
    element = f'joint {joint.name!r}'
    for code, level, value, message in _of_limits(joint):
        yield 0.0, Finding(code, level, element, value, f'{element} {message}')
    length = joint.axis_length
    if abs(length - 1.0) > _UNIT_AXIS_TOLERANCE:
        message = f'{element} has an axis of length {length:g}, not 1'
        yield 0.0, Finding('axis_not_unit', 'info', element, length, message)
    for name, value in (('damping', joint.damping), ('friction', joint.friction)):
        if value < 0:
            message = f'{element} has a negative {name}, {value:g}'
            yield -value, Finding('negative_friction', 'warning', element, value, message)
    if joint.mimic is not None:
        message = f'{element} mimics {joint.mimic.joint!r}, but moves independently'
        yield 0.0, Finding('mimic_joint', 'info', element, joint.mimic.joint, message)


_Found = tuple[str, Level, float | tuple[float, float], str]


def _of_limits(joint: Joint) -> Iterator[_Found]:
    limit = joint.limit
    if not (0 < limit.effort < math.inf):
        has_none = limit.effort == math.inf
        what = 'no effort limit' if has_none else f'an effort limit of {limit.effort:g}'
        yield 'effort_limit', 'warning', limit.effort, f'has {what}'
    elif limit.effort > _LARGEST_EFFORT:
        message = f'has an effort limit of {limit.effort:g}, which limits nothing'
        yield 'effort_limit', 'warning', limit.effort, message
    if _LARGEST_VELOCITY < limit.velocity < math.inf:
        message = f'has a velocity limit of {limit.velocity:g}, which limits nothing'
        yield 'velocity_limit', 'info', limit.velocity, message
    both = (limit.lower, limit.upper)
    range_ = f'{limit.lower:g} to {limit.upper:g}'
    furthest = max(map(abs, both))
    if limit.lower > limit.upper:
        yield 'position_limits', 'warning', both, f'has inverted position limits, {range_}'
    elif limit.lower == limit.upper:
        message = f'has no room to move: both position limits are {limit.lower:g}'
        yield 'position_limits', 'warning', limit.lower, message
    elif joint.kind != 'continuous' and math.isinf(furthest):
        yield 'position_limits', 'info', both, 'has no position limits'
    elif joint.kind == 'revolute' and furthest > 2 * math.pi * _MOST_TURNS:
        message = f'has position limits of {range_} rad; or are they degrees?'
        yield 'position_limits', 'info', both, message
    elif joint.kind == 'prismatic' and furthest > _LONGEST_SLIDE:
        message = f'has position limits of {range_} m; or are they millimetres?'
        yield 'position_limits', 'info', both, message


def step_findings(chain: Chain, weight: float) -> Iterator[WeighedFinding]:
    """Yield the ways from joint to joint that are longer than an arm's."""
    for joint, step in zip(chain.joints[1:], chain.joint_transforms[1:], strict=True):
        length = float(np.linalg.norm(step[:3, 3]))
        if length > _LONGEST_STEP:
            yield (
                weight,
                Finding(
                    'long_link',
                    'warning',
                    f'joint {joint.name!r}',
                    length,
                    f'joint {joint.name!r} is {length:g} m away from the joint before it; or is '
                    'that in millimetres?',
                ),
            )
    length = float(np.linalg.norm(chain.tip_transform[:3, 3]))
    if length > _LONGEST_STEP:
        element = f'link {chain.tip_link!r}'
        message = f'{element} is {length:g} m away from the last joint; or is that in millimetres?'
        yield weight, Finding('long_link', 'warning', element, length, message)
