# SPDX-License-Identifier: Apache-2.0
"""Which joint carries which link: bases, tips and the paths between them."""

from __future__ import annotations

from robodyn_ros.description.records import Joint, RobotDescription
from robodyn_ros.errors import (
    AmbiguousChain,
    DisconnectedChain,
    MalformedUrdf,
    NoSuchLink,
)

_MOST_CANDIDATES = 20


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
        """Return the base link: the one that is named, else the only root."""
        if base_link is not None:
            self._check_link('base_link', base_link)
            return base_link
        if len(self.roots) > 1:
            raise AmbiguousChain('base_link', 'not given', f'one of {listed(self.roots)}')
        return self.roots[0]

    def tip(self, tip_link: str) -> str:
        """Return the tip link that is named."""
        self._check_link('tip_link', tip_link)
        return tip_link

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
                raise DisconnectedChain(
                    'chain',
                    f'no path of joints from {base!r} to {tip!r}',
                    f'a tip below the base: {listed(self.below(base)[1:])}',
                )
            joints.append(joint)
            link = joint.parent
        return joints[::-1]

    def _check_link(self, element: str, name: str) -> None:
        if not isinstance(name, str) or name not in self.child_joints:
            raise NoSuchLink(element, name, f'one of {listed(list(self.child_joints))}')


def listed(names: list[str], quote: bool = True) -> str:
    """Return names for an error message, not more of them than one can read."""
    shown = [repr(name) if quote else name for name in names[:_MOST_CANDIDATES]]
    if len(names) > _MOST_CANDIDATES:
        shown.append(f'and {len(names) - _MOST_CANDIDATES} more')
    return ', '.join(shown) or 'none'
