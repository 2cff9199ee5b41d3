# SPDX-License-Identifier: Apache-2.0
"""A URDF with other inertials and friction; everything else stays the same, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np

from robodyn_ros.description.records import Inertial
from robodyn_ros.description.xml import parsed_xml
from robodyn_ros.errors import MalformedUrdf, Phrase


@dataclass(frozen=True)
class JointDynamics:
    """
    What a joint's ``<dynamics>`` says.

    Attributes
    ----------
    damping : float
        Viscous friction [N m s/rad or N s/m].
    friction : float
        Coulomb friction [N m or N].
    """

    damping: float
    friction: float


@dataclass
class _Place:
    """Bytes of an element: where it starts, where its start tag ends, and where it ends."""

    start: int
    content: int
    end: int
    attributes: dict[str, str]

    @property
    def is_empty(self) -> bool:
        """Whether its start tag is all there is of it."""
        return self.content == self.end


def rewritten_urdf(
    content: bytes,
    inertials: Mapping[str, Inertial],
    dynamics: Mapping[str, JointDynamics],
) -> bytes:
    """
    Return the URDF with other ``<inertial>`` and ``<dynamics>`` elements.

    Only these elements change; where a link or joint has none it gets one, on a line of its own.
    Further attributes of ``<dynamics>`` stay.

    Parameters
    ----------
    content : bytes
        The URDF.
    inertials : mapping of link name to Inertial
    dynamics : mapping of joint name to JointDynamics

    Raises
    ------
    MalformedUrdf
        Not well-formed, in an encoding that is no superset of ASCII, or with a document type.
    """
    parsed_xml(content)
    places = _places(content)
    edits: list[tuple[int, int, bytes]] = []
    for name, inertial in inertials.items():
        edits += _edit(content, places, ('link', name, 'inertial'), _inertial_text(inertial))
    for name, joint in dynamics.items():
        key = ('joint', name, 'dynamics')
        old = places.get(key)
        attributes = dict(old.attributes) if old else {}
        attributes.update(damping=_number(joint.damping), friction=_number(joint.friction))
        fields = ' '.join(f'{field}={quoteattr(value)}' for field, value in attributes.items())
        edits += _edit(content, places, key, [f'<dynamics {fields}/>'])
    result = content
    for start, end, text in sorted(edits, reverse=True):
        result = result[:start] + text + result[end:]
    return result


_Key = tuple[str, str, str]


def _places(content: bytes) -> dict[_Key, _Place]:
    """Return where the links, the joints and their elements of interest are, by kind and name."""
    places: dict[_Key, _Place] = {}
    path: list[tuple[str, str]] = []
    entered: list[_Place | None] = []
    parser = expat.ParserCreate()
    lead = len(content) - len(content.lstrip(b' \t\r\n'))  # before an XML declaration: an error

    def started(tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(':')[2]
        key: _Key | None = None
        if len(path) == 1 and tag in ('link', 'joint'):
            key = (tag, attributes.get('name', ''), '')
        elif len(path) == 2 and (path[1][0], tag) in _WANTED:
            key = (*path[1], tag)
        place = None
        if key is not None and key not in places:
            start = lead + parser.CurrentByteIndex
            after = _after(content, start)
            place = places[key] = _Place(start, after, after, dict(attributes))
        path.append((tag, attributes.get('name', '')))
        entered.append(place)

    def ended(_: str) -> None:
        path.pop()
        place = entered.pop()
        if place is not None and content[place.content - 2 : place.content] != b'/>':
            place.end = _after(content, lead + parser.CurrentByteIndex)

    parser.StartElementHandler = started
    parser.EndElementHandler = ended
    try:
        parser.Parse(content[lead:], True)
    except expat.ExpatError as error:
        raise MalformedUrdf('XML', Phrase(str(error)), 'well-formed XML') from error
    return places


_WANTED = {('link', 'inertial'), ('joint', 'dynamics')}
_TAG = re.compile(rb'<(?:"[^"]*"|\'[^\']*\'|[^>"\'])*>')


def _after(content: bytes, start: int) -> int:
    """Return where the tag that begins at ``start`` ends; a > may stand in a quoted value."""
    match = _TAG.match(content, start)
    if match is None:
        raise MalformedUrdf(
            'XML', Phrase(f'no tag at byte {start}'), 'an encoding that contains ASCII'
        )
    return match.end()


def _edit(
    content: bytes, places: dict[_Key, _Place], key: _Key, lines: list[str]
) -> list[tuple[int, int, bytes]]:
    old = places.get(key)
    if old is not None:
        indent = _indentation(content, old.start)
        return [(old.start, old.end, _joined(lines, indent))]
    parent = places.get((key[0], key[1], ''))
    if parent is None:
        return []
    indent = _indentation(content, parent.start) + b'  '
    element = b'\n' + indent + _joined(lines, indent)
    if not parent.is_empty:
        return [(parent.content, parent.content, element)]
    # <link name="a"/> becomes <link name="a">...</link>.
    slash = content.rindex(b'/', parent.start, parent.end)
    outer = _indentation(content, parent.start)
    text = b'>' + element + b'\n' + outer + f'</{key[0]}>'.encode()
    return [(slash, parent.end, text)]


def _indentation(content: bytes, start: int) -> bytes:
    line = content[content.rfind(b'\n', 0, start) + 1 : start]
    return line if not line.strip() else b''


def _joined(lines: list[str], indent: bytes) -> bytes:
    return (b'\n' + indent).join(line.encode('ascii', 'xmlcharrefreplace') for line in lines)


def _inertial_text(inertial: Inertial) -> list[str]:
    center = ' '.join(map(_number, np.asarray(inertial.center_of_mass, dtype=float)))
    tensor = np.asarray(inertial.inertia, dtype=float)
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    elements = zip(names, ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)), strict=True)
    fields = ' '.join(f'{name}="{_number(tensor[at])}"' for name, at in elements)
    return [
        '<inertial>',
        f'  <origin xyz="{center}" rpy="0 0 0"/>',
        f'  <mass value="{_number(inertial.mass)}"/>',
        f'  <inertia {fields}/>',
        '</inertial>',
    ]


def _number(value: float) -> str:
    return repr(float(value))
