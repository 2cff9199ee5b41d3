# SPDX-License-Identifier: Apache-2.0
"""
The XML of a URDF -> what a model needs of it, checked and completed.

Everything else is dropped; a name that neither URDF nor one of its usual extensions knows becomes
a finding. What robot_state_publisher reads is read: a malformed part that cannot matter becomes a
finding, and so does what may hide a part of the robot.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from lxml import etree

from robodyn_ros.description.records import (
    JOINT_KINDS,
    MOVABLE_KINDS,
    Finding,
    note,
    warning,
)
from robodyn_ros.description.xml import parsed_xml
from robodyn_ros.errors import MalformedUrdf, NoChain, Phrase, shown

MOST_ELEMENTS = 2000
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
_REQUIRED_CHILDREN = {'inertial': (), 'link': (), 'joint': ('parent', 'child')}
# What ROS's reader takes as zero where it is missing; and whether torques then lack something.
_MISSING_OF_INERTIAL: dict[str, tuple[Callable[..., Finding], dict[str, str]]] = {
    'mass': (warning, {'value': '0'}),
    'inertia': (note, dict.fromkeys(_KEPT_ATTRIBUTES['inertia'], '0')),
}
# Beyond a full turn an angle is probably in degrees [rad].
_LARGEST_ANGLE = 6.5
# What URDF knows, beside what is kept.
_KNOWN_CHILDREN: dict[str, tuple[str, ...]] = {
    'robot': ('link', 'joint', 'material', 'transmission', 'gazebo'),
    'inertial': _KEPT_CHILDREN['inertial'],
    'link': ('inertial', 'visual', 'collision'),
    'joint': (*_KEPT_CHILDREN['joint'], 'calibration', 'safety_controller'),
    'visual': ('origin', 'geometry', 'material'),
    'collision': ('origin', 'geometry', 'material'),
    'geometry': ('box', 'cylinder', 'sphere', 'capsule', 'mesh'),
    'material': ('color', 'texture'),
}
_READ = {'link', 'joint', *(child for known in _KEPT_CHILDREN.values() for child in known)}
# What simulators, drivers and planners have added to it, in public descriptions of robots.
_EXTENSIONS = frozenset(
    'anchor cable chain collision_checking collision_filter_group contact controller_gains drake '
    'force_element frame gazebo gravity isaac joint_properties kinematic loop_joint mujoco plugin '
    'resource ros2_control self_collide self_collision_checking self_filter sensor surface traits '
    'verbose'.split()
)
_ALIKE = 0.7  # of two names, by difflib, from which one may be meant by the other
_LONGEST_NAME = 40  # characters of a name that may be meant for another, or is reported
_MOST_UNKNOWN = 10  # unknown names that are reported of one element
# What a joint that does not move has no use for.
_OF_MOVING_JOINTS = ('axis', 'limit', 'dynamics', 'mimic')


def sanitized(content: bytes) -> tuple[Any, tuple[Finding, ...]]:
    """
    Return the ``<robot>`` element with links, inertials and joints only, and findings.

    Raises
    ------
    MalformedUrdf
        Not well-formed, with entities, or with a reference to another document.
        A link or joint is not as the URDF specification demands.
    NoChain
        Nothing is left but macros.
    """
    root, xml_findings = parsed_xml(content)
    if _tag(root) != 'robot':
        raise MalformedUrdf('root element', root.tag, 'robot')
    findings = list(xml_findings)
    kept = etree.Element('robot', name=root.get('name') or 'robot')
    macros: Counter[str] = Counter()
    for element in root:
        if _tag(element) in ('link', 'joint'):
            if len(kept) == MOST_ELEMENTS:
                raise MalformedUrdf(
                    'robot',
                    Phrase(f'more than {MOST_ELEMENTS} links and joints'),
                    'at most that many',
                )
            kept.append(_kept_part(element, findings))
        elif _is_xacro(element):
            macros[_tag(element)] += 1
    findings.extend(_unknown('robot', 'robot', [root]))
    for tag, count in macros.items():
        findings.append(_xacro_finding('robot', tag, count))
    if macros and kept.find('joint') is None:
        raise NoChain(
            'robot',
            Phrase(f'<{next(iter(macros))}> and no <joint>'),
            'a URDF whose xacro macros are expanded',
        )
    return kept, tuple(findings)


def _tag(element: Any) -> str:
    """Return an element's name as the file has it, whatever namespace that is in."""
    if not isinstance(element.tag, str):
        return ''
    local = etree.QName(element).localname
    return f'{element.prefix}:{local}' if element.prefix else local


def _is_xacro(element: Any) -> bool:
    return isinstance(element.tag, str) and (
        element.prefix == 'xacro' or 'xacro' in (etree.QName(element).namespace or '')
    )


def _xacro_finding(where: str, tag: str, count: int = 1) -> Finding:
    times = f', {count} times' if count > 1 else ''
    message = f'{where}: <{tag}>{times} was not expanded, which may hide links, joints or masses'
    return warning('xacro_element', where, f'<{tag}>{times}', message)


# --- what is kept of the elements ----------------------------------------------------------------


def _kept_part(element: Any, findings: list[Finding]) -> Any:
    """Return a link or joint with only the elements and attributes that a model needs."""
    tag = _tag(element)
    where = f'{tag} {_name(element, tag)!r}'
    kept = etree.Element(tag, name=element.get('name'))
    kind = element.get('type')
    if tag == 'joint':
        if kind not in JOINT_KINDS:
            raise MalformedUrdf(f'{where} type', kind, ', '.join(JOINT_KINDS))
        kept.set('type', kind)
    findings.extend(_unknown(where, tag, [element]))
    unused = _OF_MOVING_JOINTS if kind not in MOVABLE_KINDS else ()
    _keep_children(element, kept, where, findings, unused=unused)
    if tag == 'joint':
        if kind in MOVABLE_KINDS and kept.find('axis') is None:
            message = f'{where} has no <axis>: the default, 1 0 0, holds'
            findings.append(note('axis_missing', where, '1 0 0', message))
        _name_infinite_limits(kept)
    return kept


def _keep_children(
    element: Any,
    kept: Any,
    where: str,
    findings: list[Finding],
    unused: tuple[str, ...] = (),
) -> None:
    tag = _tag(element)
    found: dict[str, list[Any]] = {}
    for child in element:
        name = _tag(child)
        found.setdefault(name, []).append(child)
        if _is_xacro(child):
            findings.append(_xacro_finding(where, name))
    for name in _KEPT_CHILDREN[tag]:
        if name not in found:
            if name in _REQUIRED_CHILDREN[tag]:
                raise MalformedUrdf(where, Phrase(f'no <{name}>'), f'one <{name}>')
            if tag == 'inertial' and name in _MISSING_OF_INERTIAL:
                finding, zeros = _MISSING_OF_INERTIAL[name]
                etree.SubElement(kept, name, zeros)
                message = f'{where} has an <inertial> without <{name}>: 0'
                findings.append(finding('incomplete_inertial', where, 0.0, message))
            continue
        first, *others = found[name]
        if others:
            findings.append(_repeated(where, name, first, others))
        if name in unused:
            findings.extend(_faults_of_unused(first, where))
            continue
        child = etree.SubElement(kept, name)
        if name in _KEPT_CHILDREN:
            _keep_children(first, child, where, findings)
        else:
            _keep_attributes(first, child, where)
            rpy = [abs(float(word)) for word in (child.get('rpy') or '').split()]
            if rpy and _LARGEST_ANGLE < max(rpy) < math.inf:
                value = child.get('rpy', '')
                angles = ' '.join(f'{float(word):g}' for word in value.split())
                message = (
                    f'{where} has an <origin> with rpy {angles} rad, more than a turn; or is that '
                    'in degrees?'
                )
                findings.append(warning('large_angle', where, value, message))


def _unknown(where: str, tag: str, elements: list[Any]) -> Iterator[Finding]:
    """Yield which children URDF does not know, of elements of one kind and of those in them."""
    children: dict[str, list[Any]] = {}
    for child in (child for element in elements for child in element):
        children.setdefault(_tag(child), []).append(child)
    reported = 0
    for name, group in children.items():
        if name in _KNOWN_CHILDREN[tag]:
            if name in _KNOWN_CHILDREN and name not in (
                'link',
                'joint',
            ):  # each by itself
                yield from _unknown(where, name, group)
        elif not name or ':' in name or name in _EXTENSIONS or _is_xacro(group[0]):
            continue
        elif reported < _MOST_UNKNOWN:
            reported += 1
            yield _unknown_finding(where, tag, name[:_LONGEST_NAME], len(group))


def _unknown_finding(where: str, tag: str, name: str, count: int) -> Finding:
    """Return a finding about an element that is dropped; a warning where a model may lack it."""
    inside = '' if tag == where.partition(' ')[0] else f' in <{tag}>'
    times = f', {count} times' if count > 1 else ''
    message = f'{where} has an element <{name}>{times}{inside}, which is ignored'
    parents = [parent for parent, known in _KNOWN_CHILDREN.items() if name in known]
    meant = get_close_matches(name.lower(), _KNOWN_CHILDREN[tag], n=1, cutoff=_ALIKE)
    if parents:
        message += f': it belongs into {" or ".join(f"<{parent}>" for parent in parents)}'
        meant = [name]
    elif meant:
        message += f': is <{meant[0]}> meant?'
    is_read = tag in ('robot', *_KEPT_CHILDREN) and meant and meant[0] in _READ
    return (warning if is_read else note)('unknown_element', where, f'<{name}>', message)


def _repeated(where: str, name: str, first: Any, others: list[Any]) -> Finding:
    same = all(_content(other) == _content(first) for other in others)
    which = 'all the same' if same else 'the first is taken, the others differ'
    count = 1 + len(others)
    message = f'{where} has {count} times <{name}>: {which}'
    return (note if same else warning)('repeated_element', where, count, message)


def _content(element: Any) -> Any:
    return _tag(element), dict(element.attrib), [_content(child) for child in element]


def _faults_of_unused(element: Any, where: str) -> list[Finding]:
    """Return what is wrong with an element that this kind of joint has no use for."""
    try:
        _keep_attributes(element, etree.Element(_tag(element)), where)
    except MalformedUrdf as error:
        message = f'{error.element}: {shown(error.value)}, which is ignored'
        return [note('ignored_element', where, error.value, message)]
    return []


def _keep_attributes(element: Any, kept: Any, where: str) -> None:
    tag = _tag(element)
    for attribute, count in _KEPT_ATTRIBUTES[tag].items():
        value = element.get(attribute)
        label = f'{where} <{tag}> {attribute}'
        if value is None:
            if attribute not in _OPTIONAL_ATTRIBUTES.get(tag, ()):
                raise MalformedUrdf(label, Phrase('missing'), 'the attribute')
            continue
        if count is not None:
            words = value.split()
            if len(words) != count or not all(_NUMBER.fullmatch(word) for word in words):
                raise MalformedUrdf(label, value, f'{count} number{"s" * (count > 1)}')
            value = ' '.join(words)
        kept.set(attribute, value)


def _name(element: Any, tag: str) -> str:
    name = element.get('name')
    if not name:
        raise MalformedUrdf(f'<{tag}> in line {element.sourceline}', name, 'a name')
    return name


def _name_infinite_limits(joint: Any) -> None:
    """Say 'inf' where an effort or velocity limit is not given: ROS's readers demand both."""
    for limit in joint.findall('limit'):
        for attribute in ('effort', 'velocity'):
            if limit.get(attribute) is None:
                limit.set(attribute, 'inf')
