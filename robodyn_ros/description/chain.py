# SPDX-License-Identifier: Apache-2.0
"""
Records -> the serial chain from base link to tip link, with what hangs on it lumped in.

Only the joints on the chain move. Every other movable joint below the base link is locked, and
its subtree belongs, with the fixed links, to the body that carries it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robodyn_ros.description.records import Finding, Joint, RobotDescription
from robodyn_ros.errors import (
    AmbiguousChain,
    DisconnectedChain,
    InvalidNumber,
    MalformedUrdf,
    NoMovableJoint,
    NoSuchJoint,
    NoSuchLink,
    UnknownOption,
    UnsupportedJoint,
)
from robodyn_ros.spatial import FloatArray, rotation_about, transform

MIMIC_CHOICES = ('error', 'independent')
_MOST_CANDIDATES = 20


@dataclass(frozen=True, eq=False)
class Body:
    """
    A part of the arm that moves as one: the links between two joints of the chain.

    ``link_transforms`` holds, for each of its links, the transform (4, 4) from the link's frame to
    that of the body's first link: the base link, or the child link of the body's joint.
    """

    link_transforms: dict[str, FloatArray]


@dataclass(frozen=True, eq=False)
class Chain:
    """
    The movable joints from base to tip and the bodies between them.

    Attributes
    ----------
    joints : tuple of n Joint
    bodies : tuple of n + 1 Body
        The first one stands still with the base link; body i moves with joint i.
    joint_transforms : array, shape (n, 4, 4)
        At position zero, the frame of joint i (its child link's) in that of body i - 1.
    tip_transform : array, shape (4, 4)
        The tip link's frame in that of the last body.
    """

    base_link: str
    tip_link: str
    joints: tuple[Joint, ...]
    bodies: tuple[Body, ...]
    joint_transforms: FloatArray
    tip_transform: FloatArray
    findings: tuple[Finding, ...]


def serial_chain(
    robot: RobotDescription,
    *,
    base_link: str | None = None,
    tip_link: str | None = None,
    locked_positions: Mapping[str, float] | None = None,
    mimic: str = 'error',
) -> Chain:
    """
    Return the chain from ``base_link`` to ``tip_link``.

    Parameters
    ----------
    robot : RobotDescription
    base_link, tip_link : str, optional
        Without a base, the root link; without a tip, the only link that ends a path of joints
        with at least one that moves.
    locked_positions : mapping of joint name to position [rad or m], optional
        For movable joints off the chain; zero where not given.
    mimic : 'error' or 'independent'
        Whether a mimic joint on the chain is refused, or moves as any other joint.

    Raises
    ------
    NoSuchLink, NoSuchJoint, AmbiguousChain, DisconnectedChain, NoMovableJoint
    UnsupportedJoint
        A floating or planar joint on the chain, or a mimic joint unless ``'independent'``.
    MalformedUrdf
        A link with two parent joints, or joints that close a loop.
    """
    if mimic not in MIMIC_CHOICES:
        raise UnknownOption('argument mimic', mimic, ', '.join(map(repr, MIMIC_CHOICES)))
    tree = _Tree(robot)
    base = tree.base(base_link)
    tip = tree.tip(base, tip_link)
    path = tree.path(base, tip)
    joints = tuple(joint for joint in path if joint.kind != 'fixed')
    for joint in joints:
        _check_supported(joint, mimic)
    if not joints:
        raise NoMovableJoint(
            'chain', f'{base!r} to {tip!r}', 'at least one revolute, continuous or prismatic joint'
        )
    positions = _LockedPositions(robot, joints, locked_positions or {})
    chain_children = {joint.child for joint in joints}
    findings: list[Finding] = []
    # What is locked on the base link never moves, and is no finding.
    bodies = (
        Body(_link_transforms(tree, base, chain_children, positions, findings=[])),
        *(
            Body(_link_transforms(tree, joint.child, chain_children, positions, findings))
            for joint in joints
        ),
    )
    return Chain(
        base_link=base,
        tip_link=tip,
        joints=joints,
        bodies=bodies,
        joint_transforms=np.array(
            [
                body.link_transforms[joint.parent] @ joint.origin
                for body, joint in zip(bodies, joints, strict=False)
            ]
        ),
        tip_transform=bodies[-1].link_transforms[tip],
        findings=tuple(findings),
    )


def _check_supported(joint: Joint, mimic: str) -> None:
    element = f'joint {joint.name!r} on the chain'
    if not joint.movable:
        raise UnsupportedJoint(element, joint.kind, 'revolute, continuous, prismatic or fixed')
    if joint.mimic is not None and mimic == 'error':
        raise UnsupportedJoint(
            element, f'mimics {joint.mimic.joint!r}', "no mimic joint, unless mimic='independent'"
        )


class _Tree:
    """The links as a forest: each link's parent joint and child joints."""

    def __init__(self, robot: RobotDescription) -> None:
        self.parent_joint: dict[str, Joint] = {}
        self.child_joints: dict[str, list[Joint]] = {name: [] for name in robot.links}
        for joint in robot.joints.values():
            other = self.parent_joint.get(joint.child)
            if other is not None:
                raise MalformedUrdf(
                    f'link {joint.child!r}',
                    f'child of the joints {other.name!r} and {joint.name!r}',
                    'one parent joint',
                )
            self.parent_joint[joint.child] = joint
            self.child_joints[joint.parent].append(joint)
        self.roots = [name for name in robot.links if name not in self.parent_joint]
        reached = sum(len(self.below(root)) for root in self.roots)
        if reached != len(robot.links):
            raise MalformedUrdf(
                'joints',
                f'{len(robot.links) - reached} links that no root link leads to',
                'a tree without loops',
            )

    def below(self, link: str) -> list[str]:
        """Return the link and all links that joints lead to from it, parents first."""
        links = [link]
        for name in links:
            links.extend(joint.child for joint in self.child_joints[name])
        return links

    def base(self, base_link: str | None) -> str:
        if base_link is not None:
            self._check_link('base_link', base_link)
            return base_link
        if len(self.roots) > 1:
            raise AmbiguousChain('base_link', 'not given', f'one of {_listed(self.roots)}')
        return self.roots[0]

    def tip(self, base: str, tip_link: str | None) -> str:
        if tip_link is not None:
            self._check_link('tip_link', tip_link)
            return tip_link
        movable_joints = {base: 0}
        leaves = []
        for name in self.below(base):
            for joint in self.child_joints[name]:
                movable_joints[joint.child] = movable_joints[name] + (joint.kind != 'fixed')
            if not self.child_joints[name] and movable_joints[name]:
                leaves.append(name)
        if not leaves:
            raise NoMovableJoint('robot', f'no joint moves below {base!r}', 'at least one')
        if len(leaves) > 1:
            described = [
                f'{leaf!r} ({movable_joints[leaf]} joint{"s" * (movable_joints[leaf] > 1)})'
                for leaf in leaves
            ]
            raise AmbiguousChain(
                'tip_link',
                'not given',
                f'one of {_listed(described, quote=False)}, or a link before them',
            )
        return leaves[0]

    def path(self, base: str, tip: str) -> list[Joint]:
        joints = []
        link = tip
        while link != base:
            joint = self.parent_joint.get(link)
            if joint is None:
                raise DisconnectedChain(
                    'chain',
                    f'no path of joints from {base!r} to {tip!r}',
                    f'a tip below the base: {_listed(self.below(base)[1:])}',
                )
            joints.append(joint)
            link = joint.parent
        return joints[::-1]

    def _check_link(self, element: str, name: str) -> None:
        if name not in self.child_joints:
            raise NoSuchLink(element, name, f'one of {_listed(list(self.child_joints))}')


def _listed(names: list[str], quote: bool = True) -> str:
    shown = [repr(name) if quote else name for name in names[:_MOST_CANDIDATES]]
    if len(names) > _MOST_CANDIDATES:
        shown.append(f'and {len(names) - _MOST_CANDIDATES} more')
    return ', '.join(shown) or 'none'


class _LockedPositions:
    """Where each joint off the chain is held; says so in findings."""

    def __init__(
        self,
        robot: RobotDescription,
        chain_joints: tuple[Joint, ...],
        given: Mapping[str, float],
    ) -> None:
        self._joints = robot.joints
        self._on_chain = {joint.name for joint in chain_joints}
        self._given = {name: self._checked(name, value) for name, value in given.items()}

    def _checked(self, name: str, value: float) -> float:
        if name not in self._joints:
            raise NoSuchJoint('locked_positions', name, f'one of {_listed(list(self._joints))}')
        element = f'locked position of joint {name!r}'
        if name in self._on_chain:
            raise UnknownOption(element, value, 'a joint off the chain: this one moves')
        if not self._joints[name].movable:
            kind = self._joints[name].kind
            raise UnknownOption(element, value, f'a joint with one position: this one is {kind}')
        if not math.isfinite(value):
            raise InvalidNumber(element, value, 'a finite number [rad or m]')
        return float(value)

    def transform(self, joint: Joint, findings: list[Finding]) -> FloatArray:
        """Return the child link's frame in the parent link's, for a joint that does not move."""
        if joint.kind == 'fixed':
            return joint.origin
        position, level, how = self._position(joint)
        findings.append(
            Finding(
                'locked_joint', level, f'joint {joint.name!r}', position, f'off the chain: {how}'
            )
        )
        if joint.kind == 'prismatic':
            return joint.origin @ transform(translation=joint.axis * position)
        return joint.origin @ transform(rotation_about(joint.axis, position))

    def _position(self, joint: Joint) -> tuple[float, str, str]:
        """Return position, level of the finding and how it is held; mimics follow their leader."""
        if not joint.movable:
            return 0.0, 'warning', f'{joint.kind}, locked at zero'
        multiplier, offset, how = 1.0, 0.0, 'locked'
        seen: set[str] = set()
        while joint.name not in self._given and joint.mimic is not None:
            leader = self._joints.get(joint.mimic.joint)
            offset += multiplier * joint.mimic.offset
            multiplier *= joint.mimic.multiplier
            if leader is None or leader.name in seen:
                return (
                    offset,
                    'warning',
                    f'mimics {joint.mimic.joint!r}, taken as at zero: no such leader',
                )
            seen.add(leader.name)
            joint, how = leader, f'locked, as it mimics {leader.name!r}'
        if joint.name in self._on_chain:
            return (
                offset,
                'warning',
                f'mimics {joint.name!r}, which moves: locked as if that were at zero',
            )
        return multiplier * self._given.get(joint.name, 0.0) + offset, 'info', how


def _link_transforms(
    tree: _Tree,
    first: str,
    chain_children: set[str],
    positions: _LockedPositions,
    findings: list[Finding],
) -> dict[str, FloatArray]:
    """Place every link that moves with ``first``, up to the next joints of the chain."""
    transforms = {first: np.eye(4)}
    pending = [first]
    for name in pending:
        for joint in tree.child_joints[name]:
            if joint.child not in chain_children:
                transforms[joint.child] = transforms[name] @ positions.transform(joint, findings)
                pending.append(joint.child)
    return transforms
