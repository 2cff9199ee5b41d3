# SPDX-License-Identifier: Apache-2.0
"""
URDF -> records: links, inertials and joints with checked numbers.

A file that the caller names is read by ``description_of_urdf``; what came over a topic goes to
``description_of_urdf_text``, which opens nothing. What a model needs of the XML is kept, the rest
is dropped unread, and ``urdf_parser_py`` reads what is left.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lxml import etree
from urdf_parser_py.urdf import URDF

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
from robodyn_ros.description.source import bytes_of_source, bytes_of_text, parsed_xml
from robodyn_ros.errors import InvalidNumber, MalformedUrdf
from robodyn_ros.spatial import rotation_from_rpy, transform

MOST_ELEMENTS = 20_000
"""Links and joints that are read at the most."""

_NUMBER = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|inf|infinity)', re.I)

# What is kept of a description: element -> {attribute: how many numbers, or None for a name}.
_KEPT_ATTRIBUTES: dict[str, dict[str, int | None]] = {
    'origin': {'xyz': 3, 'rpy': 3},
    'mass': {'value': 1},
    'inertia': dict.fromkeys(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), 1),
    'axis': {'xyz': 3},
    'parent': {'link': None},
    'child': {'link': None},
    'limit': dict.fromkeys(('effort', 'velocity', 'lower', 'upper'), 1),
    'dynamics': dict.fromkeys(('damping', 'friction'), 1),
    'mimic': {'joint': None, 'multiplier': 1, 'offset': 1},
}
_OPTIONAL_ATTRIBUTES = {
    'origin': {'xyz', 'rpy'},
    'limit': {'effort', 'velocity', 'lower', 'upper'},
    'dynamics': {'damping', 'friction'},
    'mimic': {'multiplier', 'offset'},
}
_KEPT_CHILDREN = {
    'inertial': ('origin', 'mass', 'inertia'),
    'link': ('inertial',),
    'joint': ('origin', 'parent', 'child', 'axis', 'limit', 'dynamics', 'mimic'),
}
_REQUIRED_CHILDREN = {'inertial': ('mass', 'inertia'), 'link': (), 'joint': ('parent', 'child')}


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
        Not well-formed, or with a document type or entities.
    MalformedUrdf, InvalidNumber, InvalidAxis
        A link or joint is not as the URDF specification demands.
    """
    return _description(sanitized_urdf(source))


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
        It does not begin with ``<``, is not well-formed, or has a document type or entities.
    MalformedUrdf, InvalidNumber, InvalidAxis
        A link or joint is not as the URDF specification demands.
    """
    return _description(_sanitized(bytes_of_text(text)))


def _description(sanitized: Any) -> RobotDescription:
    try:
        robot = URDF.from_xml_string(etree.tostring(sanitized))
    except Exception as error:  # the library raises bare Exception, AssertionError, ValueError
        raise MalformedUrdf('robot', str(error), 'a URDF that urdf_parser_py reads') from error
    return robot_description(
        (_link_record(link) for link in robot.links),
        (_joint_record(joint) for joint in robot.joints),
    )


def sanitized_urdf(source: str | Path) -> Any:
    """
    Return the ``<robot>`` element with links, inertials and joints only, their text checked.

    Arguments and errors are those of ``description_of_urdf``.
    """
    return _sanitized(bytes_of_source(source))


def _sanitized(content: bytes) -> Any:
    root = parsed_xml(content)
    if root.tag != 'robot':
        raise MalformedUrdf('root element', root.tag, 'robot')
    kept = etree.Element('robot', name='robot')
    for element in root:
        if isinstance(element.tag, str) and element.tag in ('link', 'joint'):
            if len(kept) == MOST_ELEMENTS:
                raise MalformedUrdf(
                    'robot', f'more than {MOST_ELEMENTS} links and joints', 'at most that many'
                )
            kept.append(_kept_part(element))
        elif (
            isinstance(element.tag, str) and element.tag.startswith('{') and 'xacro' in element.tag
        ):
            raise MalformedUrdf('robot', element.tag, 'a URDF whose xacro macros are expanded')
    return kept


# --- what is kept of the elements ----------------------------------------------------------------


def _kept_part(element: Any) -> Any:
    """Return a link or joint with only the elements and attributes that a model needs."""
    where = f'{element.tag} {_name(element, element.tag)!r}'
    kept = etree.Element(element.tag, name=element.get('name'))
    if element.tag == 'joint':
        kind = element.get('type')
        if kind not in JOINT_KINDS:
            raise MalformedUrdf(f'{where} type', kind, ', '.join(JOINT_KINDS))
        kept.set('type', kind)
    _keep_children(element, kept, where)
    if element.tag == 'joint':
        _name_infinite_limits(kept)
    return kept


def _keep_children(element: Any, kept: Any, where: str) -> None:
    for tag in _KEPT_CHILDREN[element.tag]:
        found = element.findall(tag)
        if len(found) > 1:
            raise MalformedUrdf(where, f'{len(found)} <{tag}> elements', 'one at the most')
        if not found:
            if tag in _REQUIRED_CHILDREN[element.tag]:
                raise MalformedUrdf(where, f'no <{tag}>', f'one <{tag}>')
            continue
        child = etree.SubElement(kept, tag)
        if tag in _KEPT_CHILDREN:
            _keep_children(found[0], child, where)
        else:
            _keep_attributes(found[0], child, where)


def _keep_attributes(element: Any, kept: Any, where: str) -> None:
    for attribute, count in _KEPT_ATTRIBUTES[element.tag].items():
        value = element.get(attribute)
        label = f'{where} <{element.tag}> {attribute}'
        if value is None:
            if attribute not in _OPTIONAL_ATTRIBUTES.get(element.tag, ()):
                raise MalformedUrdf(label, 'missing', 'the attribute')
            continue
        if count is not None:
            words = value.split()
            if len(words) != count or not all(_NUMBER.fullmatch(word) for word in words):
                raise InvalidNumber(label, value, f'{count} number{"s" * (count > 1)}')
            value = ' '.join(words)
        kept.set(attribute, value)


def _name(element: Any, tag: str) -> str:
    name = element.get('name')
    if not name:
        raise MalformedUrdf(f'<{tag}> in line {element.sourceline}', name, 'a name')
    return name


def _name_infinite_limits(joint: Any) -> None:
    """Say 'inf' where an effort or velocity limit is not given: urdf_parser_py demands both."""
    for limit in joint.findall('limit'):
        for attribute in ('effort', 'velocity'):
            if limit.get(attribute) is None:
                limit.set(attribute, 'inf')


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
        axis, length = unit_axis(f'{element} axis', joint.axis)
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
