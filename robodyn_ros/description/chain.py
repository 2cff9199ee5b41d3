# SPDX-License-Identifier: Apache-2.0
"""
A description -> the serial chain from base link to tip link, with what hangs on it lumped in.

Only the joints on the chain move. Every other movable joint below the base link is locked, and
its subtree belongs, with the fixed links, to the body that carries it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from robodyn_ros.arguments import checked_type
from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.description.link_tree import LinkTree
from robodyn_ros.description.locked_positions import LockedPositions, check_axis
from robodyn_ros.description.records import Finding, Joint, RobotDescription
from robodyn_ros.description.tips import tip_not_given
from robodyn_ros.description.urdf import description_of_urdf, description_of_urdf_text
from robodyn_ros.errors import NoMovableJoint, UnknownOption, UnsupportedJoint
from robodyn_ros.spatial import FloatArray

MimicChoice = Literal['error', 'independent']
MIMIC_CHOICES: tuple[MimicChoice, ...] = get_args(MimicChoice)


@dataclass(frozen=True, eq=False, repr=False)
class Body(ArrayRecord):
    """
    A part of the arm that moves as one: the links between two joints of the chain.

    ``link_transforms`` holds, for each of its links, the transform (4, 4) from the link's frame to
    that of the body's first link: the base link, or the child link of the body's joint.
    """

    link_transforms: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class Chain(ArrayRecord):
    """
    The movable joints from base to tip and the bodies between them; knows its description.

    Attributes
    ----------
    description : RobotDescription
        The whole robot that the chain is a part of.
    base_link, tip_link : str
    joints : tuple of n Joint
    bodies : tuple of n + 1 Body
        The first one stands still with the base link; body i moves with joint i.
    joint_transforms : array, shape (n, 4, 4)
        At position zero, the frame of joint i (its child link's) in that of body i - 1.
    tip_transform : array, shape (4, 4)
        The tip link's frame in that of the last body.
    findings : tuple of Finding
        About the tip that was chosen and the joints that are held.
    """

    description: RobotDescription
    base_link: str
    tip_link: str
    joints: tuple[Joint, ...]
    bodies: tuple[Body, ...]
    joint_transforms: FloatArray
    tip_transform: FloatArray
    findings: tuple[Finding, ...]

    @classmethod
    def from_urdf(
        cls,
        source: str | Path,
        *,
        base_link: str | None = None,
        tip_link: str | None = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
    ) -> Chain:
        """
        Return the chain of a URDF; see ``description_of_urdf`` and ``serial_chain``.

        For a file that the caller names; what a topic carries goes to ``from_urdf_text``.
        """
        return serial_chain(
            description_of_urdf(source),
            base_link=base_link,
            tip_link=tip_link,
            locked_positions=locked_positions,
            mimic=mimic,
        )

    @classmethod
    def from_urdf_text(
        cls,
        text: str,
        *,
        base_link: str | None = None,
        tip_link: str | None = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
    ) -> Chain:
        """Return the chain of a URDF given as text, which opens no file; as ``from_urdf``."""
        return serial_chain(
            description_of_urdf_text(text),
            base_link=base_link,
            tip_link=tip_link,
            locked_positions=locked_positions,
            mimic=mimic,
        )

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints that move, base to tip."""
        return tuple(joint.name for joint in self.joints)


def checked_chain(chain: Chain) -> Chain:
    """
    Return the argument ``chain``.

    Raises
    ------
    WrongType
        It is none: a model or a path in its place.
    """
    return checked_type('chain', chain, Chain, "a Chain, as Chain.from_urdf('arm.urdf')")


def serial_chain(
    description: RobotDescription,
    *,
    base_link: str | None = None,
    tip_link: str | None = None,
    locked_positions: Mapping[str, float] | None = None,
    mimic: MimicChoice = 'error',
) -> Chain:
    """
    Return the chain from ``base_link`` to ``tip_link``.

    Parameters
    ----------
    description : RobotDescription
    base_link, tip_link : str, optional
        Without a base, the root link; without a tip, the end of the only arm: of several links
        that move with the same joints one with a conventional name, else that of the longest
        fixed path.
    locked_positions : mapping of joint name to position [rad or m], optional
        For movable joints off the chain; zero where not given.
    mimic : 'error' or 'independent'
        Whether a mimic joint on the chain is refused, or moves as any other joint.

    Raises
    ------
    NoSuchLink, NoSuchJoint, AmbiguousChain, DisconnectedChain, NoMovableJoint
    NotLockable, InvalidNumber
        A locked position that its joint cannot take.
    UnknownOption
        No such choice of ``mimic``.
    UnsupportedJoint
        A floating or planar joint on the chain, or a mimic joint unless ``'independent'``.
    InvalidAxis
        A joint on the chain, or one that is locked away from zero, has a zero axis.
    MalformedUrdf
        A link with two parent joints, or joints that close a loop.
    """
    if mimic not in MIMIC_CHOICES:
        raise UnknownOption('argument mimic', mimic, ', '.join(map(repr, MIMIC_CHOICES)))
    tree = LinkTree(description)
    base = tree.base(base_link)
    if tip_link is None:
        tip, tip_findings = tip_not_given(tree, base)
    else:
        tip, tip_findings = tree.tip(tip_link), ()
    path = tree.path(base, tip)
    joints = tuple(joint for joint in path if joint.kind != 'fixed')
    for joint in joints:
        _check_supported(joint, mimic)
    if not joints:
        raise NoMovableJoint(
            'chain', f'{base!r} to {tip!r}', 'at least one revolute, continuous or prismatic joint'
        )
    positions = LockedPositions(description, joints, locked_positions or {})
    chain_children = {joint.child for joint in joints}
    findings: list[Finding] = [*tip_findings]
    # What is locked on the base link never moves, and is no finding.
    bodies = (
        Body(_link_transforms(tree, base, chain_children, positions, findings=[])),
        *(
            Body(_link_transforms(tree, joint.child, chain_children, positions, findings))
            for joint in joints
        ),
    )
    return Chain(
        description=description,
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


def _check_supported(joint: Joint, mimic: MimicChoice) -> None:
    element = f'joint {joint.name!r} on the chain'
    if not joint.movable:
        raise UnsupportedJoint(element, joint.kind, 'revolute, continuous, prismatic or fixed')
    check_axis(joint)
    if joint.mimic is not None and mimic == 'error':
        raise UnsupportedJoint(
            element,
            f'mimics {joint.mimic.joint!r}',
            'no mimic joint',
            choice=('mimic', 'independent'),
        )


def _link_transforms(
    tree: LinkTree,
    first: str,
    chain_children: set[str],
    positions: LockedPositions,
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
