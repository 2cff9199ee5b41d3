# SPDX-License-Identifier: Apache-2.0
"""
The links of a description -> the chain from base to tip, or the tree to several tips.

Only the joints on the way to a tip move. Every other movable joint below the base link is locked,
and its subtree belongs, with the fixed links, to the body that carries it. Where no tip is given,
it is the end of the only arm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from robodyn_ros.arguments import checked_sequence, checked_type
from robodyn_ros.description.mjcf import InferredInertia, description_of_mjcf
from robodyn_ros.description.records import Finding, Joint, Level, RobotDescription, note, warning
from robodyn_ros.description.urdf import description_of_urdf, description_of_urdf_text
from robodyn_ros.errors import (
    InvalidArgument,
    MalformedUrdf,
    NoChain,
    NoSuchName,
    Phrase,
    UnsupportedJoint,
)
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray, rotation_about, transform

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Where nothing else is given: down the z axis of the root link [m/s²]."""

_UPRIGHT = 1e-9  # closer to it, gravity is that, to the last digit

MimicChoice = Literal['error', 'independent']
MIMIC_CHOICES: tuple[MimicChoice, ...] = get_args(MimicChoice)
# One link of a chain, several of a tree; None: the end of the only arm.
TipLinks = str | Sequence[str] | None
_MOST_CANDIDATES = 20
_MOST_JOINTS = 4

# What robots' makers and ROS call the end of an arm, the best first.
_CONVENTIONAL = tuple(
    re.compile(rf'(?:.*[_/-])?{name}(?:[_-](?:link|frame))?', re.IGNORECASE)
    for name in ('tool0', 'tcp', 'tool', 'ee', 'end_effector', 'flange')
)


@dataclass(frozen=True, eq=False, repr=False)
class Body(Record):
    """
    A part of the arm that moves as one: the links between joints that move.

    ``link_transforms`` holds, for each of its links, the transform (4, 4) from the link's frame to
    that of the body's first link: the base link, or the child link of the body's joint.
    """

    link_transforms: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class Chain(Record):
    """
    The movable joints from base to tips and the bodies between them; knows its description.

    Attributes
    ----------
    description : RobotDescription
        The whole robot that the chain is a part of.
    base_link : str
    tip_links : tuple of k str
        One of a chain, several of a tree.
    joints : tuple of n Joint
        Base to tips, depth first, in the order of the tips.
    parents : tuple of n int
        The joint before each one; -1 at the base.
    bodies : tuple of n + 1 Body
        The first one stands still with the base link; body i + 1 moves with joint i.
    joint_transforms : array, shape (n, 4, 4)
        At position zero, the frame of joint i (its child link's) in that of the body before it.
    tips : tuple of k int
        The joint that each tip link moves with.
    tip_transforms : array, shape (k, 4, 4)
        Each tip link's frame in that of its body.
    gravity : array, shape (3,) [m/s²]
        In the base link's axes, where the root link stands upright.
    unmodelled_joints : tuple of str
        Movable joints off the chain that move nothing of the model: those of other arms, of a
        head beside the arm, of a hand without masses.
    findings : tuple of Finding
        About the tip that was chosen, the joints that are held, and those above the base link.
    """

    description: RobotDescription
    base_link: str
    tip_links: tuple[str, ...]
    joints: tuple[Joint, ...]
    parents: tuple[int, ...]
    bodies: tuple[Body, ...]
    joint_transforms: FloatArray
    tips: tuple[int, ...]
    tip_transforms: FloatArray
    gravity: FloatArray
    unmodelled_joints: tuple[str, ...]
    findings: tuple[Finding, ...]

    @classmethod
    def from_urdf(
        cls,
        source: str | Path,
        base_link: str | None = None,
        tip_link: TipLinks = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
    ) -> Chain:
        """
        Return the chain of a URDF; see ``description_of_urdf`` and ``serial_chain``.

        For a file that the caller names; what a topic carries goes to ``from_urdf_text``.
        """
        return serial_chain(
            description_of_urdf(source), base_link, tip_link, locked_positions, mimic
        )

    @classmethod
    def from_urdf_text(
        cls,
        text: str,
        base_link: str | None = None,
        tip_link: TipLinks = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
    ) -> Chain:
        """Return the chain of a URDF given as text, which opens no file; as ``from_urdf``."""
        return serial_chain(
            description_of_urdf_text(text), base_link, tip_link, locked_positions, mimic
        )

    @classmethod
    def from_mjcf(
        cls,
        path: str | Path,
        base_link: str | None = None,
        tip_link: TipLinks = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
        inferred_inertia: InferredInertia = 'finding',
    ) -> Chain:
        """Return the chain of an MJCF; see ``description_of_mjcf`` and ``serial_chain``."""
        return serial_chain(
            description_of_mjcf(path, inferred_inertia=inferred_inertia),
            base_link,
            tip_link,
            locked_positions,
            mimic,
        )

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints that move, base to tips."""
        return tuple(joint.name for joint in self.joints)

    @property
    def ends(self) -> str:
        """Base and tips, as messages name the arm."""
        return f'{self.base_link!r} to {", ".join(map(repr, self.tip_links))}'

    def children(self, i: int) -> list[int]:
        """Return the joints that body i carries; -1: the base."""
        return [k for k, parent in enumerate(self.parents) if parent == i]

    def moving(self, i: int) -> list[int]:
        """Return the joints that move body i, from it to the base."""
        joints = []
        while i >= 0:
            joints.append(i)
            i = self.parents[i]
        return joints


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
    base_link: str | None = None,
    tip_link: TipLinks = None,
    locked_positions: Mapping[str, float] | None = None,
    mimic: MimicChoice = 'error',
) -> Chain:
    """
    Return the chain from ``base_link`` to ``tip_link``, or the tree to several.

    Parameters
    ----------
    description : RobotDescription
    base_link : str, optional
        The root link where not given.
    tip_link : str or sequence of str, optional
        Where not given, the end of the only arm: of several links that move with the same joints
        one with a conventional name, else that of the longest fixed path.
    locked_positions : mapping of joint name to position [rad or m], optional
        For movable joints off the chain; zero where not given.
    mimic : 'error' or 'independent'
        Whether a mimic joint on the chain is refused, or moves as any other joint.

    Raises
    ------
    NoSuchName, NoChain
    InvalidArgument
        A locked position that its joint cannot take.
        No such choice of ``mimic``.
    UnsupportedJoint
        A floating or planar joint on the chain, or a mimic joint unless ``'independent'``.
    MalformedUrdf
        A joint on the chain, or one that is locked away from zero, has a zero axis.
        A link with two parent joints, or joints that close a loop.
    """
    if mimic not in MIMIC_CHOICES:
        raise InvalidArgument('argument mimic', mimic, ', '.join(map(repr, MIMIC_CHOICES)))
    tree = LinkTree(description)
    base = tree.base(base_link)
    if tip_link is None:
        tip, tip_findings = _tip_not_given(tree, base)
        tip_links: tuple[str, ...] = (tip,)
    else:
        tip_links, tip_findings = tree.tips(tip_link), ()
    paths = [
        [joint for joint in tree.path(base, tip) if joint.kind != 'fixed'] for tip in tip_links
    ]
    for tip, path in zip(tip_links, paths, strict=True):
        for joint in path:
            _check_supported(joint, mimic)
        if not path:
            raise NoChain(
                'chain',
                Phrase(f'no joint moves from {base!r} to {tip!r}'),
                'at least one revolute, continuous or prismatic joint',
            )
    joints, parents = _depth_first(paths)
    positions = _LockedPositions(description, joints, locked_positions or {})
    gravity, mount_findings = _mount(tree, base, positions)
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
    tips = tuple(joints.index(path[-1]) for path in paths)
    return Chain(
        description=description,
        base_link=base,
        tip_links=tip_links,
        joints=joints,
        parents=parents,
        bodies=bodies,
        joint_transforms=np.array(
            [
                bodies[parent + 1].link_transforms[joint.parent] @ joint.origin
                for parent, joint in zip(parents, joints, strict=True)
            ]
        ),
        tips=tips,
        tip_transforms=np.array(
            [bodies[i + 1].link_transforms[tip] for i, tip in zip(tips, tip_links, strict=True)]
        ),
        gravity=gravity,
        unmodelled_joints=_unmodelled_joints(tree, description, base, joints, bodies),
        findings=(*findings, *mount_findings),
    )


def _unmodelled_joints(
    tree: LinkTree,
    description: RobotDescription,
    base: str,
    joints: Sequence[Joint],
    bodies: Sequence[Body],
) -> tuple[str, ...]:
    """Return the movable joints that move no mass of the model, no tip and not the base link."""
    moving = {joint.name: joint for joint in joints}
    carried = [link for body in bodies[1:] for link in body.link_transforms]
    for link in (base, *(name for name in carried if description.links[name].has_mass)):
        joint = tree.parent_joint.get(link)
        while joint is not None and joint.name not in moving:
            moving[joint.name] = joint
            joint = tree.parent_joint.get(joint.parent)
    followers = list(moving.values())
    for joint in followers:  # what moves them moves the model, too
        leader = joint.mimic and description.joints.get(joint.mimic.joint)
        if leader and leader.name not in moving:
            moving[leader.name] = leader
            followers.append(leader)
    return tuple(
        name
        for name, joint in description.joints.items()
        if joint.kind != 'fixed' and name not in moving
    )


def _depth_first(paths: Sequence[Sequence[Joint]]) -> tuple[tuple[Joint, ...], tuple[int, ...]]:
    """Return the joints of several paths, each with all behind it, and which is before each."""
    rank: dict[str, int] = {}
    found: dict[tuple[int, ...], Joint] = {}
    for path in paths:
        way: tuple[int, ...] = ()
        for joint in path:
            way += (rank.setdefault(joint.name, len(rank)),)
            found[way] = joint
    order = sorted(found)
    parents = (order.index(way[:-1]) if len(way) > 1 else -1 for way in order)
    return tuple(found[way] for way in order), tuple(parents)


def _mount(
    tree: LinkTree, base: str, positions: _LockedPositions
) -> tuple[FloatArray, list[Finding]]:
    """
    Return gravity in the base link's axes [m/s²], and findings about the joints above that link.

    The root link stands upright. Joints that move are held as those off the chain are.
    """
    above = tree.path(tree.root_of(base), base)
    findings = []
    transform_base_to_root = np.eye(4)
    for joint in above:
        before = transform_base_to_root
        transform_base_to_root = before @ positions.transform(joint, findings=[])
        if joint.kind == 'fixed':
            continue
        up = (before @ joint.origin)[2, :3] @ joint.axis  # of its axis, in the root link's axes
        turns = joint.kind in ('revolute', 'continuous') and abs(up) < 1.0 - _UPRIGHT
        tilts = turns or joint.kind == 'floating'
        element = f'joint {joint.name!r}'
        message = (
            f'{element}, above the base link {base!r}, moves the arm: the model is that of an arm '
            'whose base stands still'
        )
        if tilts:
            message += ', under the gravity that it has with this joint where it is held'
        finding = warning if tilts else note
        findings.append(finding('moving_base', element, joint.kind, message))
    gravity = transform_base_to_root[2, :3] * STANDARD_GRAVITY[2] + 0.0  # no negative zero
    if np.abs(gravity - STANDARD_GRAVITY).max() <= _UPRIGHT:
        return np.array(STANDARD_GRAVITY), findings
    turning = [
        joint.name for joint in above if not np.allclose(joint.origin[:3, :3], np.eye(3), atol=0)
    ]
    element = f'link {base!r}'
    shown = ', '.join(f'{component:.4g}' for component in gravity)
    message = (
        f'{element} is turned against the root link by '
        f'{_listed(turning or [joint.name for joint in above])}: gravity is ({shown}) m/s² in its '
        'axes where it is not given'
    )
    findings.append(note('turned_base', element, tuple(gravity.tolist()), message))
    return gravity, findings


def _check_supported(joint: Joint, mimic: MimicChoice) -> None:
    element = f'joint {joint.name!r} on the chain'
    if not joint.movable:
        raise UnsupportedJoint(element, joint.kind, 'revolute, continuous, prismatic or fixed')
    _check_axis(joint)
    if joint.mimic is not None and mimic == 'error':
        raise UnsupportedJoint(
            element,
            Phrase(f'mimics {joint.mimic.joint!r}'),
            'no mimic joint',
            choice=('mimic', 'independent'),
        )


def _link_transforms(
    tree: LinkTree,
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


# --- which joint carries which link --------------------------------------------------------------


class LinkTree:
    """
    The links of a description as a forest: each link's parent joint and child joints.

    Raises
    ------
    MalformedUrdf
        A link with two parent joints, or joints that close a loop.
    """

    def __init__(self, robot: RobotDescription) -> None:
        self._joints = robot.joints
        self.parent_joint: dict[str, Joint] = {}
        self.child_joints: dict[str, list[Joint]] = {name: [] for name in robot.links}
        for joint in robot.joints.values():
            other = self.parent_joint.get(joint.child)
            if other is not None:
                raise MalformedUrdf(
                    f'link {joint.child!r}',
                    Phrase(f'child of the joints {other.name!r} and {joint.name!r}'),
                    'one parent joint',
                )
            self.parent_joint[joint.child] = joint
            self.child_joints[joint.parent].append(joint)
        self.roots = [name for name in robot.links if name not in self.parent_joint]
        reached = sum(len(self.below(root)) for root in self.roots)
        if reached != len(robot.links):
            raise MalformedUrdf(
                'joints',
                Phrase(f'{len(robot.links) - reached} links that no root link leads to'),
                'a tree without loops',
            )

    def below(self, link: str) -> list[str]:
        """Return the link and all links that joints lead to from it, parents first."""
        links = [link]
        for name in links:
            links.extend(joint.child for joint in self.child_joints[name])
        return links

    def base(self, base_link: str | None) -> str:
        """Return the base link: the one that is named, else the only root."""
        if base_link is not None:
            self._check_link('base_link', base_link)
            return base_link
        if len(self.roots) > 1:
            raise NoChain('base_link', Phrase('not given'), f'one of {_listed(self.roots)}')
        return self.roots[0]

    def root_of(self, link: str) -> str:
        """Return the root link that joints lead to a link from."""
        while (joint := self.parent_joint.get(link)) is not None:
            link = joint.parent
        return link

    def tips(self, tip_link: str | Sequence[str]) -> tuple[str, ...]:
        """Return the tip links that are named."""
        if isinstance(tip_link, str):
            tip_link = (tip_link,)
        names = checked_sequence('tip_link', tip_link, str, "names of links, as ['left', 'right']")
        for name in names:
            self._check_link('tip_link', name)
        if not names or len(set(names)) < len(names):
            raise InvalidArgument('argument tip_link', list(names), 'one link or more, each once')
        return names

    def joint(self, name: str) -> Joint:
        """Return the joint of that name."""
        return self._joints[name]

    def path(self, base: str, tip: str) -> list[Joint]:
        """Return the joints from base to tip, the fixed ones, too."""
        joints = []
        link = tip
        while link != base:
            joint = self.parent_joint.get(link)
            if joint is None:
                raise NoChain(
                    'chain',
                    Phrase(f'no path of joints from {base!r} to {tip!r}'),
                    f'a tip below the base: {_listed(self.below(base)[1:])}',
                )
            joints.append(joint)
            link = joint.parent
        return joints[::-1]

    def _check_link(self, element: str, name: str) -> None:
        if not isinstance(name, str) or name not in self.child_joints:
            raise NoSuchName(element, name, f'one of {_listed(list(self.child_joints))}')


def _listed(names: list[str], quote: bool = True) -> str:
    """Return names for an error message, not more of them than one can read."""
    shown = [repr(name) if quote else name for name in names[:_MOST_CANDIDATES]]
    if len(names) > _MOST_CANDIDATES:
        shown.append(f'and {len(names) - _MOST_CANDIDATES} more')
    return ', '.join(shown) or 'none'


# --- the tip, where none is given ----------------------------------------------------------------


def _tip_not_given(tree: LinkTree, base: str) -> tuple[str, tuple[Finding, ...]]:
    """
    Return the link at the end of the only arm below a base, and a finding where it was chosen.

    Links at the ends of paths that move with the same joints differ by fixed joints alone: of them
    one with a conventional name is taken, else the one of the longest fixed path.

    Raises
    ------
    NoChain
        No joint moves below the base.
        There is more than one arm: the message has a line for each.
    """
    links_of_joints = _links_by_the_joints_they_move_with(tree, base)
    ends = {
        joints: leaves
        for joints, links in links_of_joints.items()
        if (leaves := [name for name in links if not tree.child_joints[name]])
    }
    if not ends:
        raise NoChain('robot', Phrase(f'no joint moves below {base!r}'), 'at least one')
    if len(ends) > 1:
        raise NoChain('tip_link', Phrase('not given'), _candidates(tree, links_of_joints, ends))
    ((_, leaves),) = ends.items()
    tip = _best(tree, leaves)
    if len(leaves) == 1:
        return tip, ()
    others = tuple(name for name in leaves if name != tip)[:_MOST_CANDIDATES]
    message = (
        f'link {tip!r} is taken as the tip; {", ".join(map(repr, others))} '
        f'{"moves" if len(others) == 1 else "move"} with the same joints'
    )
    return tip, (note('chosen_tip', f'link {tip!r}', others, message),)


_Joints = tuple[str, ...]


def _links_by_the_joints_they_move_with(tree: LinkTree, base: str) -> dict[_Joints, list[str]]:
    """Group the links below a base that move, the nearest to it first."""
    joints_of: dict[str, _Joints] = {base: ()}
    groups: dict[_Joints, list[str]] = {}
    for name in tree.below(base):
        for joint in tree.child_joints[name]:
            moving = () if joint.kind == 'fixed' else (joint.name,)
            joints_of[joint.child] = joints_of[name] + moving
        if joints_of[name]:
            groups.setdefault(joints_of[name], []).append(name)
    return groups


def _candidates(
    tree: LinkTree, links_of_joints: dict[_Joints, list[str]], ends: dict[_Joints, list[str]]
) -> str:
    """Return the arms, a line each: to every end, and to where the ways to several ends part."""
    children: dict[_Joints, int] = {}
    for joints in links_of_joints:
        children[joints[:-1]] = children.get(joints[:-1], 0) + 1
    lines = []
    for joints, links in links_of_joints.items():
        if joints in ends:
            lines.append(f'{_best(tree, ends[joints])!r}: {_described(tree, joints)}')
        elif children.get(joints, 0) > 1:
            carrier = _carrier(tree, links)
            lines.append(f'{carrier!r}: {_described(tree, joints)}, before the ways part')
    shown = lines[:_MOST_CANDIDATES]
    if len(lines) > _MOST_CANDIDATES:
        shown.append(f'and {len(lines) - _MOST_CANDIDATES} more')
    return 'one of these links, or one before them' + ''.join(f'\n  {line}' for line in shown)


def _described(tree: LinkTree, joints: _Joints) -> str:
    count = '1 joint' if len(joints) == 1 else f'{len(joints)} joints'
    names = [repr(name) for name in joints]
    if len(names) > _MOST_JOINTS:
        names = [*names[: _MOST_JOINTS - 2], '...', *names[-2:]]
    described = f'{count}, {", ".join(names)}'
    mimic = [name for name in joints if tree.joint(name).mimic is not None]
    return f'{described}; {mimic[0]!r} mimics another' if mimic else described


def _carrier(tree: LinkTree, links: list[str]) -> str:
    """Return the link of a group that carries moving joints."""
    carriers = [
        name for name in links if any(joint.kind != 'fixed' for joint in tree.child_joints[name])
    ]
    return _best(tree, carriers)


def _best(tree: LinkTree, links: list[str]) -> str:
    """Return the link with the best name, else that of the longest fixed path, else the first."""
    return min(links, key=lambda name: (_rank(name), *(-x for x in _fixed_path(tree, name))))


def _rank(name: str) -> int:
    ranks = [k for k, pattern in enumerate(_CONVENTIONAL) if pattern.fullmatch(name)]
    return min(ranks, default=len(_CONVENTIONAL))


def _fixed_path(tree: LinkTree, link: str) -> tuple[int, float]:
    """Return how many fixed joints lead to a link from the last one that moves, and how far."""
    count, length = 0, 0.0
    joint: Joint | None = tree.parent_joint.get(link)
    while joint is not None and joint.kind == 'fixed':
        count += 1
        length += float(np.linalg.norm(joint.origin[:3, 3]))
        joint = tree.parent_joint.get(joint.parent)
    return count, length


# --- where the joints off the chain are held -----------------------------------------------------


def _check_axis(joint: Joint) -> None:
    """Raise MalformedUrdf where a joint that has to move gives no direction."""
    if joint.axis_length == 0:
        raise MalformedUrdf(f'joint {joint.name!r} axis', [0.0, 0.0, 0.0], 'one that is not zero')


class _LockedPositions:
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
    NoSuchName
        A position of a joint that does not exist.
    InvalidArgument
        A position of a joint that is on the chain or has no single position, or one that is
        not finite.
    MalformedUrdf
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
            raise NoSuchName('locked_positions', name, f'one of {_listed(list(self._joints))}')
        element = f'locked position of joint {name!r}'
        if name in self._on_chain:
            raise InvalidArgument(element, value, 'a joint off the chain: this one moves')
        if not self._joints[name].movable:
            kind = self._joints[name].kind
            raise InvalidArgument(element, value, f'a joint with one position: this one is {kind}')
        if not math.isfinite(value):
            unit = 'm' if self._joints[name].kind == 'prismatic' else 'rad'
            raise InvalidArgument(element, value, f'a finite number [{unit}]')
        return float(value)

    def transform(self, joint: Joint, findings: list[Finding]) -> FloatArray:
        """Return the child link's frame in the parent link's, for a joint that does not move."""
        if joint.kind == 'fixed':
            return joint.origin
        position, level, how = self._position(joint)
        if position != 0:
            _check_axis(joint)
        element = f'joint {joint.name!r}'
        message = f'{element}, off the chain, {how}'
        findings.append(Finding('locked_joint', level, element, position, message))
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
