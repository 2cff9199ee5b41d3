# SPDX-License-Identifier: Apache-2.0
"""
URDF -> records: links, inertials and joints with checked numbers.

A file that the caller names is read by ``description_of_urdf``; what came over a topic goes to
``description_of_urdf_text``, which opens nothing. ``urdf_parser_py`` reads what ``sanitized``
leaves of either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lxml import etree
from urdf_parser_py.urdf import URDF

from robodyn_ros.description.records import (
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
from robodyn_ros.description.sanitizing import sanitized
from robodyn_ros.description.source import bytes_of_source, bytes_of_text, user_path
from robodyn_ros.errors import MalformedUrdf, MalformedXml
from robodyn_ros.spatial import rotation_from_rpy, transform


def description_of_urdf(source: str | Path) -> RobotDescription:
    """
    Return the links and joints of a URDF that the caller names; never for what a topic carries.

    Parameters
    ----------
    source : str or Path
        A path to a URDF (or, where the ``xacro`` package is installed, to a ``.xacro`` file), or
        XML text: a str whose first character after white space or a byte order mark is ``<``.

    Raises
    ------
    UnreadableSource
        No such file, not a regular file, or larger than ``LARGEST_SOURCE`` bytes.
    MalformedXml
        Not well-formed, with entities, or with a reference to another document.
    MalformedUrdf, InvalidNumber, InvalidAxis
        A link or joint is not as the URDF specification demands.
    """
    return _description(bytes_of_source(source))


def description_of_urdf_text(text: str) -> RobotDescription:
    """
    Return the links and joints of a URDF that is given as text; opens no file whatever it says.

    Parameters
    ----------
    text : str
        XML: its first character after white space or a byte order mark is ``<``.

    Raises
    ------
    UnreadableSource
        Larger than ``LARGEST_SOURCE`` bytes, or no str.
    MalformedXml
        It does not begin with ``<``; else as ``description_of_urdf``.
    MalformedUrdf, InvalidNumber, InvalidAxis
        A link or joint is not as the URDF specification demands.
    """
    return _description(bytes_of_text(text))


def _description(content: bytes) -> RobotDescription:
    kept, findings = sanitized(content)
    try:
        robot = URDF.from_xml_string(etree.tostring(kept))
    except Exception as error:  # the library raises bare Exception, AssertionError, ValueError
        raise MalformedUrdf('robot', str(error), 'a URDF that urdf_parser_py reads') from error
    return robot_description(
        (_link_record(link) for link in robot.links),
        (_joint_record(joint) for joint in robot.joints),
        findings,
        kept.get('name'),
    )


def urdf_text(path: Path) -> str:
    """
    Return what robot_description carries: a URDF file as it is, a xacro with its macros expanded.

    Raises
    ------
    UnreadableSource, MalformedXml
        As ``description_of_urdf``; but a file that is no xacro is not looked into, and is UTF-8.
    """
    path = user_path(path)
    if path.suffix == '.xacro':
        return etree.tostring(sanitized_urdf(path), encoding='unicode')
    try:
        return bytes_of_source(path).decode('utf-8')
    except UnicodeDecodeError as error:
        raise MalformedXml(f'file {str(path)!r}', str(error), 'UTF-8') from error


def sanitized_urdf(source: str | Path) -> Any:
    """
    Return the ``<robot>`` element with links, inertials and joints only, their text checked.

    Arguments and errors are those of ``description_of_urdf``.
    """
    return sanitized(bytes_of_source(source))[0]


# --- elements to records -----------------------------------------------------------------------


def _link_record(link: Any) -> Link:
    given = link.inertial
    if given is None:
        return Link(link.name)
    element = f'link {link.name!r}'
    xyz, rpy = _origin(given.origin, f'{element} inertial origin')
    return Link(
        link.name,
        inertial(element, given.mass, rotation_from_rpy(rpy), xyz, given.inertia.to_matrix()),
    )


def _joint_record(joint: Any) -> Joint:
    element = f'joint {joint.name!r}'
    xyz, rpy = _origin(joint.origin, f'{element} origin')
    axis, length = unit_axis(f'{element} axis', (1.0, 0.0, 0.0))
    if joint.type in MOVABLE_KINDS and joint.axis is not None:
        if any(joint.axis):
            axis, length = unit_axis(f'{element} axis', joint.axis)
        else:
            length = 0.0  # the chain refuses it, where the joint would move about it
    return Joint(
        name=joint.name,
        kind=joint.type,
        parent=joint.parent,
        child=joint.child,
        origin=transform(rotation_from_rpy(rpy), xyz),
        axis=axis,
        axis_length=length,
        limit=joint_limit(element, joint.type, joint.limit),
        mimic=joint_mimic(element, joint.mimic),
        **joint_friction(element, joint.dynamics),
    )


def _origin(origin: Any, element: str) -> tuple[Any, Any]:
    if origin is None:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    return (
        checked_numbers(f'{element} xyz', origin.xyz),
        checked_numbers(f'{element} rpy', origin.rpy),
    )
