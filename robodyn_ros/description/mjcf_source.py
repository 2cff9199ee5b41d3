# SPDX-License-Identifier: Apache-2.0
"""
MJCF files -> one text of what a model is made of, and the meshes that it needs, of bounded size.

MuJoCo opens no file of its own: includes and meshes are read here, from the folder of the file
that the caller names and below. What no model is made of is left out before MuJoCo would load it:
textures, height fields, sensors, keyframes, and the shapes that give no moving link a mass.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree

from robodyn_ros.description.sanitizing import MOST_ELEMENTS
from robodyn_ros.description.source import (
    LARGEST_SOURCE,
    XACRO,
    bytes_of_file,
    plain_bytes,
)
from robodyn_ros.description.xml import parsed_xml
from robodyn_ros.errors import MalformedUrdf, Phrase, UnreadableSource

LARGEST_MESHES = 16 * 2**20
"""Bytes of the meshes that masses are inferred from, together, at the most."""

MOST_PARTS = 10 * MOST_ELEMENTS
"""Elements of any kind, repeated ones included, at the most: MuJoCo's time grows by the square."""

_MOST_FACES = 200_000  # of an OBJ file: MuJoCo's own limit of an STL file
_FACE = re.compile(rb'(?:^|[\r\n])[ \t]*f\s')
_MOST_FILES = 200  # with the main one
_DEEPEST_INCLUDE = 20  # files over an included one
_DEEPEST_ELEMENT = 250  # elements around one: libxml2's own limit in one file
_MOST_DIVISIONS = 200  # parameters of a built-in mesh, states and samples of an actuator
_REPEATING = ('replicate', 'composite', 'flexcomp')
_JOINTS = ('joint', 'freejoint')
_INSIDE = ('frame', 'replicate')  # elements within a body that are no body
_SECTIONS = ('size', 'visual', 'statistic', 'custom', 'keyframe', 'sensor', 'contact')
_UNUSED = ('texture', 'material', 'skin', 'hfield', 'camera', 'light', 'lengthrange')
_FOLDERS = ('assetdir', 'meshdir', 'texturedir', 'strippath')


@dataclass
class MjcfSource:
    """An MJCF in one piece, and the files that it still names."""

    text: str
    meshes: dict[str, bytes] = field(default_factory=dict)


def mjcf_source(file: Path) -> MjcfSource:
    """
    Return an MJCF with what it includes, without what no model is made of.

    Raises
    ------
    UnreadableSource
        A file is missing, is no regular file or, with those that it names, too large.
    MalformedUrdf
        It is no MJCF, names a file outside of its folder, or MuJoCo would expand it to too much.
    """
    root = _Included(file).root
    if root.tag != 'mujoco':
        raise MalformedUrdf('root element', root.tag, "<mujoco>, as an MJCF's is")
    model = next(root.iter('model'), None)
    if model is not None:
        raise MalformedUrdf(
            f'file {str(file)!r}',
            Phrase('a <model> to attach'),
            'an MJCF in one piece, or with <include>: MjSpec.to_xml() writes one',
        )
    _check_counts(root, file)
    folder, strips = _mesh_folder(root)
    _leave_out(root)
    meshes = _meshes(root, file, folder, strips)
    for element in root.iter(etree.Element):
        if element.tag != 'mesh' and 'file' in element.attrib:
            name = f'<{element.tag}> {element.get("name", "")!r} file'
            raise MalformedUrdf(name, element.get('file'), 'none: no model is made of it')
    return MjcfSource(etree.tostring(root, encoding='unicode'), meshes)


def _inside(main: Path, folder: Path, name: str, element: str) -> Path:
    """
    Return the path of a file that an MJCF names in a folder, where it is below the main file's.

    Links are resolved: those of an installation may lead to where the main file's own leads.

    Raises
    ------
    MalformedUrdf
    """
    relative = os.path.normpath(name)
    path = folder / relative
    if not os.path.isabs(relative) and relative.split(os.sep)[0] != os.pardir and '\0' not in name:
        folders = main.parent.resolve(), main.resolve().parent
        if any(path.resolve().is_relative_to(each) for each in folders):
            return path
    raise MalformedUrdf(element, name, 'a file in the folder of the MJCF, or below it')


class _Included:
    """The tree of a file, each ``<include>`` replaced by what is in the other file."""

    def __init__(self, file: Path) -> None:
        self._main, self._size = file, 0
        self._seen = {file.resolve()}
        self.root = self._parsed(file)
        self._expand(self.root, file, 1)

    def _parsed(self, file: Path) -> Any:
        content = plain_bytes(file)
        self._size += len(content)
        if self._size > LARGEST_SOURCE:
            raise UnreadableSource(
                f'file {str(self._main)!r} and what it includes',
                Phrase(f'over {LARGEST_SOURCE} bytes'),
                f'at most {LARGEST_SOURCE}',
            )
        return parsed_xml(content)[0]

    def _expand(self, root: Any, file: Path, depth: int) -> None:
        for element in list(root.iter('include')):
            name = element.get('file', '')
            if len(self._seen) >= _MOST_FILES or depth > _DEEPEST_INCLUDE:
                raise MalformedUrdf(
                    f'file {str(file)!r} include',
                    name,
                    f'at most {_MOST_FILES} files, {_DEEPEST_INCLUDE} of them within one another',
                )
            # Relative to the main file; older versions of MuJoCo: to the one that includes it.
            paths = [
                _inside(self._main, folder, name, f'file {str(file)!r} include')
                for folder in (self._main.parent, file.parent)
            ]
            included = next((path for path in paths if path.exists()), paths[0])
            if XACRO in (included.suffix, included.resolve().suffix):
                raise MalformedUrdf(
                    f'file {str(file)!r} include', name, f'an MJCF: a {XACRO} is code, and not run'
                )
            if included.resolve() in self._seen:
                raise MalformedUrdf(f'file {str(file)!r} include', name, 'each file once')
            self._seen.add(included.resolve())
            part = self._parsed(included)
            self._expand(part, included, depth + 1)
            parent = element.getparent()
            if parent is None:
                raise MalformedUrdf('root element', root.tag, "<mujoco>, as an MJCF's is")
            for child in list(part):
                element.addprevious(child)
            parent.remove(element)


# --- what no model is made of --------------------------------------------------------------------


def _leave_out(root: Any) -> None:
    for element in [each for name in _SECTIONS for each in root.findall(name)]:
        root.remove(element)
    for element in list(root.iter(*_UNUSED)):
        element.getparent().remove(element)
    for element in root.iter(etree.Element):
        element.attrib.pop('material', None)
    # Else MuJoCo would simulate each muscle to its ends.
    compiler = etree.Element('compiler')
    etree.SubElement(compiler, 'lengthrange', mode='none')
    root.insert(0, compiler)
    for geom in list(root.iter('geom')):
        if 'hfield' in geom.attrib or geom.get('type') == 'hfield':
            geom.getparent().remove(geom)
    _leave_shapes_out(root)
    used = {geom.get('mesh', '') for geom in root.iter('geom')}
    for mesh in list(root.iter('mesh')):
        if mesh.getparent().tag == 'asset' and _mesh_name(mesh) not in used:
            mesh.getparent().remove(mesh)


def _leave_shapes_out(root: Any) -> None:
    """Remove the shapes that give no moving body a mass."""
    is_inferred = any(each.get('inertiafromgeom') == 'true' for each in root.iter('compiler'))
    wrapped = {each.get('geom') for each in root.iter('geom') if 'geom' in each.attrib}
    weighs = _Weighs(root)
    # A total mass is shared out to what stands still, too.
    is_shared = any('settotalmass' in each.attrib for each in root.iter('compiler'))
    for geom in list(root.iter('geom')):
        owner = next(each for each in geom.iterancestors() if each.tag not in _INSIDE)
        if owner.tag not in ('body', 'worldbody') or geom.get('name', '') in wrapped:
            continue
        given = owner.find('inertial') is not None and not is_inferred
        stands = owner.tag == 'worldbody' or not (is_shared or _moves(owner))
        if given or stands or not weighs.of(geom):
            geom.getparent().remove(geom)


def _moves(body: Any) -> bool:
    """Return whether a joint moves a body."""
    return any(
        each.tag == 'body' and any(part.tag in _JOINTS for part in _own_parts(each))
        for each in (body, *body.iterancestors())
    )


def _own_parts(body: Any) -> Iterator[Any]:
    for part in body.iterchildren(etree.Element):
        yield from _own_parts(part) if part.tag in _INSIDE else (part,)


class _Weighs:
    """Whether a shape can have a mass, by its own attributes and those of its class."""

    def __init__(self, root: Any) -> None:
        self._of_class: dict[str, dict[str, str]] = {}
        self._groups: list[float] = []
        for compiler in root.iter('compiler'):
            if 'inertiagrouprange' in compiler.attrib:
                self._groups = [
                    _number(word) for word in compiler.get('inertiagrouprange').split()
                ]
        for first, top in enumerate(root.findall('default')):
            self._add(top, self._of_class.get('main', {}), 'main' if not first else '')

    def _add(self, default: Any, inherited: dict[str, str], also: str = '') -> None:
        own = dict(inherited)
        for geom in default.findall('geom'):
            own.update(geom.attrib)
        self._of_class[default.get('class', 'main')] = own
        if also:
            self._of_class[also] = own
        for each in default.findall('default'):
            self._add(each, own)

    def of(self, geom: Any) -> bool:
        """Return whether a shape can have one."""
        classes = (each.get('childclass') for each in geom.iterancestors())
        name = geom.get('class') or next(filter(None, classes), 'main')
        told = {**self._of_class.get(name, {}), **geom.attrib}
        group = _number(told.get('group', '0'))
        if self._groups and (group < self._groups[0] or group > self._groups[-1]):
            return False
        return _number(told.get('mass', told.get('density', '1'))) != 0.0


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:  # MuJoCo refuses it
        return math.nan


# --- sizes ---------------------------------------------------------------------------------------


def _check_counts(root: Any, file: Path) -> None:
    """Refuse what MuJoCo would expand to too much."""
    bodies = parts = 0.0
    for element, times in _repeated(root, file):
        parts += times
        if element.tag in ('body', 'joint', 'freejoint', *_REPEATING):
            bodies += times
        for name in ('actdim', 'nsample'):
            _check_divisions(element, name, element.get(name, ''))
    for count, most, what in (
        (bodies, MOST_ELEMENTS, 'bodies and joints'),
        (parts, MOST_PARTS, 'elements'),
    ):
        if count > most:
            raise MalformedUrdf(
                f'file {str(file)!r}',
                Phrase(f'{count:.0f} {what}, repeated ones included'),
                f'at most {most}',
            )


def _repeated(root: Any, file: Path) -> Iterator[tuple[Any, float]]:
    """Yield each element, and how many times it is there at the most."""
    ahead = [(root, 1.0, 0)]
    while ahead:
        element, times, depth = ahead.pop()
        if depth > _DEEPEST_ELEMENT:
            raise MalformedUrdf(
                f'file {str(file)!r}',
                Phrase(f'<{element.tag}> within {depth} elements'),
                f'at most {_DEEPEST_ELEMENT}',
            )
        times *= _count(element)
        yield element, times
        children = element.iterchildren(etree.Element, reversed=True)
        ahead += [(child, times, depth + 1) for child in children]


def _count(element: Any) -> float:
    """Return how many times an element repeats what is in it, at most; of others 1."""
    if element.tag not in _REPEATING:
        return 1.0
    counts = re.findall(r'[-+.\w]+', element.get('count', ''))
    points = len(element.get('point', '').split()) / 3
    try:
        return max(1.0, points, math.prod(abs(float(count)) for count in counts))
    except ValueError:  # MuJoCo refuses it
        return max(1.0, points)


def _check_divisions(element: Any, name: str, text: str) -> None:
    for word in text.split():
        try:
            value = abs(float(word))
        except ValueError:  # MuJoCo refuses it
            continue
        if not value <= _MOST_DIVISIONS:
            where = f'<{element.tag}> {element.get("name", "")!r} {name}'
            raise MalformedUrdf(where, word, f'at most {_MOST_DIVISIONS}')


# --- meshes --------------------------------------------------------------------------------------


def _mesh_folder(root: Any) -> tuple[str, bool]:
    """Return the folder of meshes, and whether files count by their last names; the last told."""
    told: dict[str, str] = {}
    for compiler in root.iter('compiler'):
        for name in _FOLDERS:
            if name in compiler.attrib:
                told[name] = compiler.attrib.pop(name)
    return told.get('meshdir', told.get('assetdir', '')), told.get('strippath') == 'true'


def _mesh_name(mesh: Any) -> str:
    return str(mesh.get('name') or Path(mesh.get('file', '')).stem)


def _meshes(root: Any, file: Path, folder: str, strips: bool) -> dict[str, bytes]:
    """Return the files of meshes by new names, which hold no path, and put those into the tree."""
    found: dict[str, bytes] = {}
    size = 0
    for k, mesh in enumerate(each for each in root.iter('mesh') if len(each.attrib)):
        element = f'mesh {_mesh_name(mesh)!r}'
        _check_divisions(mesh, 'params', mesh.get('params', ''))
        if mesh.find('plugin') is not None:
            raise MalformedUrdf(
                element, Phrase('made by a plugin'), "a file, or the link's <inertial>"
            )
        size += len(mesh.get('vertex', ''))
        name = mesh.get('file')
        if name:
            relative = os.path.join(folder, Path(name).name if strips else name)
            path = _inside(file, file.parent, relative, element)
            if not path.is_file():
                raise UnreadableSource(element, str(path), "a file, or the link's <inertial>")
            content = bytes_of_file(path, LARGEST_MESHES, element)
            size += len(content)
            if sum(1 for _ in _FACE.finditer(content)) > _MOST_FACES:
                raise UnreadableSource(
                    f'{element} file {str(path)!r}',
                    Phrase(f'over {_MOST_FACES} faces'),
                    f"at most {_MOST_FACES}, or the link's <inertial>",
                )
            mesh.set('name', _mesh_name(mesh))
            mesh.set('file', f'mesh{k}{path.suffix}')
            found[f'mesh{k}{path.suffix}'] = content
        if size > LARGEST_MESHES:
            raise UnreadableSource(
                f'{element} and those before it',
                Phrase(f'over {LARGEST_MESHES} bytes'),
                f'at most {LARGEST_MESHES}, or an <inertial> in each link',
            )
    return found
