# SPDX-License-Identifier: Apache-2.0
"""
URDF -> records: links, inertials and joints with checked numbers.

A file that the caller names is read by ``description_of_urdf``; what came over a topic goes to
``description_of_urdf_text``, which opens nothing. Objects of urdfpy and urchin are read by
``description_of_urdfpy``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from robodyn_ros.description.records import (
    JOINT_KINDS,
    MOVABLE_KINDS,
    Joint,
    JointLimit,
    Link,
    Mimic,
    RobotDescription,
    checked_number,
    checked_numbers,
    inertial,
    robot_description,
    unit_axis,
)
from robodyn_ros.description.sanitizing import sanitized
from robodyn_ros.description.source import (
    XACRO,
    bytes_of_source,
    bytes_of_text,
    is_xml_text,
    user_path,
)
from robodyn_ros.errors import MalformedUrdf, Phrase, in_file
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
    MalformedUrdf
        Not well-formed, with entities, or with a reference to another document.
        A link or joint is not as the URDF specification demands.
    """
    content = bytes_of_source(source)
    if isinstance(source, str) and is_xml_text(source):
        return _description(content)
    with in_file(Path(source)):
        return _description(content)


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
    MalformedUrdf
        It does not begin with ``<``; else as ``description_of_urdf``.
        A link or joint is not as the URDF specification demands.
    """
    return _description(bytes_of_text(text))


def _description(content: bytes) -> RobotDescription:
    kept, findings = sanitized(content)
    return robot_description(
        map(_link_record, kept.findall('link')),
        map(_joint_record, kept.findall('joint')),
        findings,
        kept.get('name'),
    )


def urdf_text(path: Path) -> str:
    """
    Return what robot_description carries: a URDF file as it is, a xacro with its macros expanded.

    Raises
    ------
    UnreadableSource, MalformedUrdf
        As ``description_of_urdf``; but a file that is no xacro is not looked into, and is UTF-8.
    """
    path = user_path(path)
    if path.suffix == XACRO:
        return etree.tostring(sanitized(bytes_of_source(path))[0], encoding='unicode')
    try:
        return bytes_of_source(path).decode('utf-8')
    except UnicodeDecodeError as error:
        raise MalformedUrdf(f'file {str(path)!r}', Phrase(str(error)), 'UTF-8') from error


# --- elements to records -----------------------------------------------------------------------


def _link_record(link: Any) -> Link:
    name, given = link.get('name'), link.find('inertial')
    if given is None:
        return Link(name)
    element = f'link {name!r}'
    xyz, rpy = _origin(given, f'{element} inertial origin')
    mass = _numbers(given.find('mass'), 'value')['value']
    i = _numbers(given.find('inertia'), 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    tensor = [
        [i['ixx'], i['ixy'], i['ixz']],
        [i['ixy'], i['iyy'], i['iyz']],
        [i['ixz'], i['iyz'], i['izz']],
    ]
    return Link(name, inertial(element, mass, rotation_from_rpy(rpy), xyz, tensor))


def _joint_record(joint: Any) -> Joint:
    name, kind = joint.get('name'), joint.get('type')
    element = f'joint {name!r}'
    xyz, rpy = _origin(joint, f'{element} origin')
    axis, length = unit_axis(f'{element} axis', (1.0, 0.0, 0.0))
    direction = _vector(joint.find('axis'), 'xyz', (1.0, 0.0, 0.0))
    if any(direction):
        axis, length = unit_axis(f'{element} axis', direction)
    else:
        length = 0.0  # the chain refuses it, where the joint would move about it
    limit, mimic = joint.find('limit'), joint.find('mimic')
    return Joint(
        name=name,
        kind=kind,
        parent=joint.find('parent').get('link'),
        child=joint.find('child').get('link'),
        origin=transform(rotation_from_rpy(rpy), xyz),
        axis=axis,
        axis_length=length,
        limit=_joint_limit(element, kind, None if limit is None else _numbers(limit, *_LIMITS)),
        mimic=None
        if mimic is None
        else _joint_mimic(element, mimic.get('joint'), _numbers(mimic, 'multiplier', 'offset')),
        **_joint_friction(element, _numbers(joint.find('dynamics'), 'damping', 'friction')),
    )


def _numbers(element: Any, *names: str) -> dict[str, float]:
    """Return those of an element's attributes that it has, each a number."""
    given = {} if element is None else element.attrib
    return {name: float(given[name]) for name in names if name in given}


def _vector(element: Any, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
    """Return an attribute of an element, several numbers; the default where there is none."""
    value = None if element is None else element.get(name)
    return default if value is None else tuple(map(float, value.split()))


def _origin(parent: Any, element: str) -> tuple[Any, Any]:
    origin, zero = parent.find('origin'), (0.0, 0.0, 0.0)
    return (
        checked_numbers(f'{element} xyz', _vector(origin, 'xyz', zero)),
        checked_numbers(f'{element} rpy', _vector(origin, 'rpy', zero)),
    )


_LIMITS = {'lower': 0.0, 'upper': 0.0, 'velocity': math.inf, 'effort': math.inf}


def _joint_limit(element: str, kind: str, given: Mapping[str, float | None] | None) -> JointLimit:
    """
    Return the limits of a joint by the URDF's attribute names.

    A bound that is missing is zero, as the URDF specification says, and none for a continuous
    joint; a missing velocity or effort limit is infinite.

    Raises
    ------
    MalformedUrdf
        A limit is not a number.
    """
    if given is None:
        return JointLimit()
    values = {
        name: float(_or_default(given.get(name), default)) for name, default in _LIMITS.items()
    }
    for name, value in values.items():
        if math.isnan(value):
            raise MalformedUrdf(f'{element} limit {name}', value, 'a number')
    if kind == 'continuous':
        values |= {'lower': -math.inf, 'upper': math.inf}
    return JointLimit(**values)


def _joint_mimic(element: str, joint: str, given: Mapping[str, float | None]) -> Mimic:
    """Return the mimic rule; MalformedUrdf if it holds no finite numbers."""
    return Mimic(
        joint,
        checked_number(f'{element} mimic multiplier', _or_default(given.get('multiplier'), 1.0)),
        checked_number(f'{element} mimic offset', _or_default(given.get('offset'), 0.0)),
    )


def _joint_friction(element: str, given: Mapping[str, float | None]) -> dict[str, float]:
    """Return ``damping`` and ``friction``, zero where not given."""
    return {
        name: checked_number(f'{element} {name}', _or_default(given.get(name), 0.0))
        for name in ('damping', 'friction')
    }


def _or_default(value: float | None, default: float) -> float:
    return default if value is None else value


# --- objects of urdfpy and urchin ----------------------------------------------------------------


def description_of_urdfpy(robot: Any) -> RobotDescription:
    """
    Return the records of a ``urdfpy.URDF`` or ``urchin.URDF`` object.

    Both libraries give 1 kg and a unit inertia to a link that had no ``<inertial>``; the object
    no longer shows which those are. The model's findings name the links that look like it.

    Raises
    ------
    MalformedUrdf
        The object does not look like one of urdfpy or urchin.
        As from XML text.
    """
    try:
        links = [_urdfpy_link(link) for link in robot.links]
        joints = [_urdfpy_joint(joint) for joint in robot.joints]
    except (AttributeError, TypeError, ValueError) as error:
        raise MalformedUrdf(
            'urdfpy object',
            Phrase(f'{type(robot).__name__}: {error}'),
            'an object like urdfpy.URDF',
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
    limit, mimic = joint.limit, joint.mimic
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
        limit=_joint_limit(element, kind, None if limit is None else _attributes(limit, *_LIMITS)),
        mimic=None
        if mimic is None
        else _joint_mimic(element, mimic.joint, _attributes(mimic, 'multiplier', 'offset')),
        **_joint_friction(element, _attributes(joint.dynamics, 'damping', 'friction')),
    )


def _attributes(given: Any, *names: str) -> dict[str, float | None]:
    return {name: getattr(given, name, None) for name in names}
