# SPDX-License-Identifier: Apache-2.0
"""Which link a chain ends at where nobody says so, and which ones it could end at."""

from __future__ import annotations

import re

import numpy as np

from robodyn_ros.description.link_tree import LinkTree
from robodyn_ros.description.records import Finding, Joint
from robodyn_ros.errors import AmbiguousChain, NoMovableJoint

_MOST_CANDIDATES = 20
_MOST_JOINTS = 4

# What robots' makers and ROS call the end of an arm, the best first.
_CONVENTIONAL = tuple(
    re.compile(rf'(?:.*[_/-])?{name}(?:[_-](?:link|frame))?', re.IGNORECASE)
    for name in ('tool0', 'tcp', 'tool', 'ee', 'end_effector', 'flange')
)


def tip_not_given(tree: LinkTree, base: str) -> tuple[str, tuple[Finding, ...]]:
    """
    Return the link at the end of the only arm below a base, and a finding where it was chosen.

    Links at the ends of paths that move with the same joints differ by fixed joints alone: of them
    one with a conventional name is taken, else the one of the longest fixed path.

    Raises
    ------
    NoMovableJoint
        No joint moves below the base.
    AmbiguousChain
        There is more than one arm: the message has a line for each.
    """
    links_of_joints = _links_by_the_joints_they_move_with(tree, base)
    ends = {
        joints: leaves
        for joints, links in links_of_joints.items()
        if (leaves := [name for name in links if not tree.child_joints[name]])
    }
    if not ends:
        raise NoMovableJoint('robot', f'no joint moves below {base!r}', 'at least one')
    if len(ends) > 1:
        raise AmbiguousChain('tip_link', 'not given', _candidates(tree, links_of_joints, ends))
    ((_, leaves),) = ends.items()
    tip = _best(tree, leaves)
    if len(leaves) == 1:
        return tip, ()
    others = tuple(name for name in leaves if name != tip)[:_MOST_CANDIDATES]
    message = (
        f'link {tip!r} is taken as the tip; {", ".join(map(repr, others))} '
        f'{"moves" if len(others) == 1 else "move"} with the same joints'
    )
    return tip, (Finding('chosen_tip', 'info', f'link {tip!r}', others, message),)


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
