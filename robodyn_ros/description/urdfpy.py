# SPDX-License-Identifier: Apache-2.0
"""Objects of urdfpy and urchin -> records."""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.description.records import (
    JOINT_KINDS,
    MOVABLE_KINDS,
    Joint,
    Link,
    RobotDescription,
    checked_numbers,
    inertial,
    joint_friction,
    joint_limit,
    joint_mimic,
    robot_description,
    unit_axis,
)
from robodyn_ros.errors import MalformedUrdf
from robodyn_ros.spatial import transform


def description_of_urdfpy(robot: Any) -> RobotDescription:
    """
    Return the records of a ``urdfpy.URDF`` or ``urchin.URDF`` object.

    Both libraries give 1 kg and a unit inertia to a link that had no ``<inertial>``; the object
    no longer shows which those are. The model's findings name the links that look like it.

    Raises
    ------
    MalformedUrdf
        The object does not look like one of urdfpy or urchin.
    InvalidNumber, InvalidAxis
        As from XML text.
    """
    try:
        links = [_urdfpy_link(link) for link in robot.links]
        joints = [_urdfpy_joint(joint) for joint in robot.joints]
    except (AttributeError, TypeError, ValueError) as error:
        raise MalformedUrdf(
            'urdfpy object', f'{type(robot).__name__}: {error}', 'an object like urdfpy.URDF'
        ) from error
    return robot_description(links, joints, name=str(getattr(robot, 'name', '') or ''))


def _urdfpy_link(link: Any) -> Link:
    given = link.inertial
    if given is None:
        return Link(link.name)
    origin = np.asarray(given.origin, dtype=float)
    return Link(
        link.name,
        inertial(f'link {link.name!r}', given.mass, origin[:3, :3], origin[:3, 3], given.inertia),
    )


def _urdfpy_joint(joint: Any) -> Joint:
    element = f'joint {joint.name!r}'
    kind = joint.joint_type
    if kind not in JOINT_KINDS:
        raise MalformedUrdf(f'{element} type', kind, ', '.join(JOINT_KINDS))
    axis, length = np.array([1.0, 0.0, 0.0]), 1.0
    if kind in MOVABLE_KINDS:
        axis, length = unit_axis(f'{element} axis', joint.axis)
    return Joint(
        name=joint.name,
        kind=kind,
        parent=joint.parent,
        child=joint.child,
        origin=transform(
            joint.origin[:3, :3], checked_numbers(f'{element} origin', joint.origin[:3, 3])
        ),
        axis=axis,
        axis_length=length,
        limit=joint_limit(element, kind, joint.limit),
        mimic=joint_mimic(element, joint.mimic),
        **joint_friction(element, joint.dynamics),
    )
