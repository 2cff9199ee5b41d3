# SPDX-License-Identifier: Apache-2.0
"""
URDF text -> records, safely: the text may come from a topic.

The text is parsed by lxml without entities, document types or network, and bounded in size. What
is left of it, links, inertials and joints with checked numbers, is read by ``urdf_parser_py``.
"""

from __future__ import annotations

import importlib.util
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
from robodyn_ros.errors import InvalidNumber, MalformedUrdf, MalformedXml, UnreadableSource
from robodyn_ros.spatial import rotation_from_rpy, transform

LARGEST_SOURCE = 16 * 2**20
"""Bytes of XML that are read at the most."""

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
    Return the links and joints of a URDF.

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
    kept = sanitized_urdf(source)
    try:
        robot = URDF.from_xml_string(etree.tostring(kept))
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
    root = _parsed(_source_bytes(source))
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


# --- text to elements --------------------------------------------------------------------------


def _source_bytes(source: str | Path) -> bytes:
    if isinstance(source, str) and source.lstrip().lstrip('\ufeff').lstrip().startswith('<'):
        text = source.lstrip().lstrip('\ufeff').lstrip()
        # The str is Unicode whatever encoding its declaration names.
        text = re.sub(
            r'^(<\?xml[^>]*?)\s+encoding\s*=\s*("[^"]*"|\'[^\']*\')', r'\1', text, count=1
        )
        try:
            content = text.encode('utf-8')
        except UnicodeEncodeError as error:
            raise MalformedXml('XML text', str(error), 'text without surrogates') from error
        return _bounded(content, 'XML text')
    if not isinstance(source, (str, Path)):
        raise UnreadableSource('source', type(source).__name__, 'a path or XML text')
    path = Path(source)
    try:
        if not path.is_file():
            raise UnreadableSource('source', str(source), 'the path of a file, or XML text')
        if path.suffix == '.xacro':
            return _bounded(_expanded_xacro(path), f'file {str(path)!r}')
        with path.open('rb') as file:
            return _bounded(file.read(LARGEST_SOURCE + 1), f'file {str(path)!r}')
    except (OSError, ValueError) as error:
        raise UnreadableSource('source', str(source), f'a readable file ({error})') from error


def _bounded(content: bytes, element: str) -> bytes:
    if len(content) > LARGEST_SOURCE:
        raise UnreadableSource(
            element, f'over {LARGEST_SOURCE} bytes', f'at most {LARGEST_SOURCE}'
        )
    return content


def _expanded_xacro(path: Path) -> bytes:
    """Expand a xacro file, which may evaluate expressions: only for files the caller names."""
    if importlib.util.find_spec('xacro') is None:
        raise UnreadableSource(
            'source', str(path), 'a URDF; for .xacro files, install the xacro package'
        )
    import xacro

    try:
        return xacro.process_file(str(path)).toxml(encoding='utf-8')
    except Exception as error:  # xacro evaluates the file's own expressions: anything can come
        raise MalformedXml(f'file {str(path)!r}', str(error), 'a file xacro expands') from error


def _parsed(content: bytes) -> Any:
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise MalformedXml('XML', str(error), 'well-formed XML without entities') from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise MalformedXml('XML', 'a <!DOCTYPE ...> declaration', 'XML without a document type')
    return root


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
