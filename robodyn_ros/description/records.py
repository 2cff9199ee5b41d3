# SPDX-License-Identifier: Apache-2.0
"""A robot description as plain records: links, inertials and joints, checked one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.errors import MalformedUrdf, Phrase
from robodyn_ros.record import Record, quantity
from robodyn_ros.spatial import FloatArray

Level = Literal['warning', 'info']
"""``'warning'`` where torques are likely wrong, ``'info'`` where it is only good to know."""

MOVABLE_KINDS = ('revolute', 'continuous', 'prismatic')
JOINT_KINDS = (*MOVABLE_KINDS, 'fixed', 'floating', 'planar')

LARGEST_NUMBER = 1e12
"""No length, mass or inertia of a robot is larger; products of such numbers stay finite."""


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Record):
    """
    One thing that a user should know about the robot's description.

    Attributes
    ----------
    code : str
        What kind of finding, for programs: ``'no_mass'``.
    level : 'warning' or 'info'
        ``'warning'`` where torques are likely wrong, ``'info'`` where it is only good to know.
    element : str
        What it is about: a link, a joint, a recording.
    value
        The value found there.
    message : str
        The finding as a sentence, which names the element and has the value where it belongs.
    """

    code: str
    level: Level
    element: str
    value: Any
    message: str

    _row_header = ('level', 'finding')

    @property
    def line(self) -> str:
        """The finding as a command prints it: ``'Warning: ...'`` or ``'Note: ...'``."""
        return f'{"Warning" if self.level == "warning" else "Note"}: {self}'

    def _row(self) -> tuple[str, str]:
        return self.level, str(self)

    def __str__(self) -> str:
        return self.message


def differs_from_zero(value: float, deviation: float) -> bool:
    """
    Return whether a value is more than two of its standard deviations from zero.

    No text states one that is not as a fact: ``stated``.
    """
    return bool(abs(value) > 2.0 * deviation)


def stated(value: float, unit: str, deviation: float) -> str:
    """Return a value with its deviation as a sentence has it, or that it may be zero."""
    if math.isnan(deviation) or differs_from_zero(value, deviation):
        return quantity(value, unit, deviation)
    return f'not distinguishable from zero, with a deviation of {deviation:.2g} {unit}'


def warning(code: str, element: str, value: Any, message: str) -> Finding:
    """Return a finding for which torques are likely wrong."""
    return Finding(code, 'warning', element, value, message)


def note(code: str, element: str, value: Any, message: str) -> Finding:
    """Return a finding that is only good to know."""
    return Finding(code, 'info', element, value, message)


@dataclass(frozen=True, eq=False, repr=False)
class Inertial(Record):
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg m²] about it, in link axes."""

    mass: float
    center_of_mass: FloatArray
    inertia: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Link(Record):
    """
    A link; ``inertial`` is None where the description gives none: it then has no mass.

    ``within_body``: it stands between two joints of one body of an MJCF, and never has a mass.
    """

    name: str
    inertial: Inertial | None = None
    within_body: bool = False

    @property
    def has_mass(self) -> bool:
        """Whether anything has to be done to move it."""
        inertial = self.inertial
        return inertial is not None and bool(inertial.mass or np.any(inertial.inertia))


@dataclass(frozen=True)
class Mimic:
    """Position = multiplier * position of ``joint`` + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class JointLimit:
    """Limits in SI units; infinite where the description gives none."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Record):
    """
    A joint: ``origin`` (4, 4) places the child link's frame in the parent's at position zero.

    ``axis`` (3,) is a unit vector in the child link's frame; ``axis_length`` is the length that
    the description gave it: zero where there is no direction, and the joint cannot move.
    ``rotor_inertia`` is reflected to the joint [kg m² or kg], which a URDF does not have.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: FloatArray
    axis: FloatArray
    axis_length: float = 1.0
    limit: JointLimit = field(default_factory=JointLimit)
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None
    rotor_inertia: float = 0.0

    @property
    def movable(self) -> bool:
        """Whether it is revolute, continuous or prismatic."""
        return self.kind in MOVABLE_KINDS


@dataclass(frozen=True, eq=False, repr=False)
class RobotDescription(Record):
    """
    Links by name and joints by name, in the description's order.

    ``findings`` are about the text that it was read from; ``name`` is the robot's.
    """

    links: Mapping[str, Link]
    joints: Mapping[str, Joint]
    findings: tuple[Finding, ...] = ()
    name: str = ''


def robot_description(
    links: Iterable[Link],
    joints: Iterable[Joint],
    findings: tuple[Finding, ...] = (),
    name: str = '',
) -> RobotDescription:
    """
    Return a description out of checked records.

    Raises
    ------
    MalformedUrdf
        No link, a name given twice, or a joint whose parent or child does not exist.
    """
    links_by_name: dict[str, Link] = {}
    for link in links:
        if link.name in links_by_name:
            raise MalformedUrdf('link name', link.name, 'each link name once')
        links_by_name[link.name] = link
    if not links_by_name:
        raise MalformedUrdf('robot', Phrase('no <link>'), 'at least one <link>')
    joints_by_name: dict[str, Joint] = {}
    for joint in joints:
        if joint.name in joints_by_name:
            raise MalformedUrdf('joint name', joint.name, 'each joint name once')
        for end, link_name in (('parent', joint.parent), ('child', joint.child)):
            if link_name not in links_by_name:
                element = f'joint {joint.name!r} {end}'
                raise MalformedUrdf(element, link_name, 'the name of a <link>')
        joints_by_name[joint.name] = joint
    return RobotDescription(links_by_name, joints_by_name, findings, name)


def inertial(
    element: str, mass: float, rotation: ArrayLike, center: ArrayLike, inertia: ArrayLike
) -> Inertial:
    """
    Return a checked inertial out of one whose inertia is along its own frame's axes.

    Parameters
    ----------
    element : str
        The link, for error messages.
    mass : float
        [kg]
    rotation : array-like, shape (3, 3)
        Inertial frame to link frame.
    center : array-like, shape (3,)
        Centre of mass [m], in the link's frame.
    inertia : array-like, shape (3, 3)
        [kg m²], about the centre of mass, along the inertial frame's axes.

    Raises
    ------
    MalformedUrdf
        A mass that is negative, or any number that is not finite or absurdly large.
    """
    mass = checked_number(f'{element} mass', mass)
    if mass < 0:
        raise MalformedUrdf(f'{element} mass', mass, 'zero or more', unit='kg')
    r = np.asarray(rotation, dtype=float)
    tensor = checked_numbers(f'{element} inertia', inertia)
    tensor_in_link = r @ tensor @ r.T
    return Inertial(
        mass,
        checked_numbers(f'{element} centre of mass', center),
        (tensor_in_link + tensor_in_link.T) / 2,
    )


def unit_axis(element: str, axis: ArrayLike) -> tuple[FloatArray, float]:
    """
    Return the unit vector along ``axis`` (3,), and the length that it had.

    Raises
    ------
    MalformedUrdf
        It is zero or not finite.
    """
    vector = np.asarray(axis, dtype=float)
    largest = np.max(np.abs(vector)) if vector.shape == (3,) else math.nan
    if not (math.isfinite(largest) and largest > 0):
        raise MalformedUrdf(element, vector.tolist(), 'three finite numbers, not all zero')
    scaled = vector / largest
    length = math.sqrt(scaled @ scaled)
    return scaled / length, float(largest * length)


def checked_number(element: str, value: float) -> float:
    """Return the value as a float; MalformedUrdf if it is not finite or absurdly large."""
    number = float(value)
    if not abs(number) <= LARGEST_NUMBER:
        raise MalformedUrdf(element, number, f'a finite number, at most {LARGEST_NUMBER:g}')
    return number


def checked_numbers(element: str, values: ArrayLike) -> FloatArray:
    """Return the values as an array; MalformedUrdf if one is not finite or absurdly large."""
    array = np.array(values, dtype=float)
    for number in array.flat:
        checked_number(element, number)
    return array
