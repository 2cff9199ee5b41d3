# SPDX-License-Identifier: Apache-2.0
"""Where the joints off the chain are held."""

from __future__ import annotations

import math
from collections.abc import Mapping

from robodyn_ros.arguments import checked_type
from robodyn_ros.description.link_tree import listed
from robodyn_ros.description.records import Finding, Joint, Level, RobotDescription
from robodyn_ros.errors import InvalidAxis, InvalidNumber, NoSuchJoint, NotLockable
from robodyn_ros.spatial import FloatArray, rotation_about, transform


def check_axis(joint: Joint) -> None:
    """Raise InvalidAxis where a joint that has to move gives no direction."""
    if joint.axis_length == 0:
        raise InvalidAxis(f'joint {joint.name!r} axis', [0.0, 0.0, 0.0], 'one that is not zero')


class LockedPositions:
    """
    Where each joint off the chain is held; says so in findings.

    Parameters
    ----------
    description : RobotDescription
    chain_joints : tuple of Joint
        Those that move.
    given : mapping of joint name to position [rad or m]
        Zero for the others; mimic joints follow their leader.

    Raises
    ------
    NoSuchJoint
        A position of a joint that does not exist.
    NotLockable
        A position of a joint that is on the chain, or that has no single position.
    InvalidNumber
        A position that is not finite.
    InvalidAxis
        Of a joint that is held away from zero, its axis is zero.
    """

    def __init__(
        self,
        description: RobotDescription,
        chain_joints: tuple[Joint, ...],
        given: Mapping[str, float],
    ) -> None:
        self._joints = description.joints
        self._on_chain = {joint.name for joint in chain_joints}
        checked_type('locked_positions', given, Mapping, "a mapping, as {'finger_joint': 0.02}")
        self._given = {name: self._checked(name, value) for name, value in given.items()}

    def _checked(self, name: str, value: float) -> float:
        if name not in self._joints:
            raise NoSuchJoint('locked_positions', name, f'one of {listed(list(self._joints))}')
        element = f'locked position of joint {name!r}'
        if name in self._on_chain:
            raise NotLockable(element, value, 'a joint off the chain: this one moves')
        if not self._joints[name].movable:
            kind = self._joints[name].kind
            raise NotLockable(element, value, f'a joint with one position: this one is {kind}')
        if not math.isfinite(value):
            raise InvalidNumber(element, value, 'a finite number [rad or m]')
        return float(value)

    def transform(self, joint: Joint, findings: list[Finding]) -> FloatArray:
        """Return the child link's frame in the parent link's, for a joint that does not move."""
        if joint.kind == 'fixed':
            return joint.origin
        position, level, how = self._position(joint)
        if position != 0:
            check_axis(joint)
        findings.append(
            Finding(
                'locked_joint',
                level,
                f'joint {joint.name!r}',
                position,
                f'joint {joint.name!r}, off the chain, {how}',
            )
        )
        if joint.kind == 'prismatic':
            return joint.origin @ transform(translation=joint.axis * position)
        return joint.origin @ transform(rotation_about(joint.axis, position))

    def _position(self, joint: Joint) -> tuple[float, Level, str]:
        """Return position, level of the finding and how it is held; mimics follow their leader."""
        if not joint.movable:
            return 0.0, 'warning', f'is {joint.kind} and held at 0'
        multiplier, offset, why = 1.0, 0.0, ''
        seen: set[str] = set()
        while joint.name not in self._given and joint.mimic is not None:
            leader = self._joints.get(joint.mimic.joint)
            offset += multiplier * joint.mimic.offset
            multiplier *= joint.mimic.multiplier
            if leader is None or leader.name in seen:
                return (
                    offset,
                    'warning',
                    f'is held at {offset:g}: it mimics {joint.mimic.joint!r}, which does not '
                    'exist and counts as 0',
                )
            seen.add(leader.name)
            joint, why = leader, f', as it mimics {leader.name!r}'
        if joint.name in self._on_chain:
            return (
                offset,
                'warning',
                f'is held at {offset:g}: it mimics {joint.name!r}, which moves and counts as 0',
            )
        position = multiplier * self._given.get(joint.name, 0.0) + offset
        return position, 'info', f'is held at {position:g}{why}'
