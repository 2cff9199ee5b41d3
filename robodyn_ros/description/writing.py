# SPDX-License-Identifier: Apache-2.0
"""
Records -> MJCF and URDF: every number with all its digits, and names as XML escapes them.

The elements of MJCF are those of the simulation, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import ArrayLike

from robodyn_ros.description.chain import LinkTree
from robodyn_ros.description.mjcf import UNBOUNDED, WORLD
from robodyn_ros.description.records import Inertial, Joint, RobotDescription
from robodyn_ros.errors import InvalidArgument, UnsupportedJoint
from robodyn_ros.spatial import (
    FloatArray,
    inverse_transform,
    principal_axes,
    rpy_from_rotation,
    transform,
)

_COMPILER = {
    'angle': 'radian',
    'autolimits': 'false',
    'inertiafromgeom': 'false',
    # Every mass and inertia stays as it is.
    'balanceinertia': 'false',
    'boundmass': '0',
    'boundinertia': '0',
}


# --- MJCF ----------------------------------------------------------------------------------------


def mjcf_of_description(
    description: RobotDescription,
    coupled_drives: tuple[Sequence[str], FloatArray, FloatArray, FloatArray] | None = None,
) -> str:
    """
    Return a description as MJCF, without shapes.

    Each link is a body under its own name; a root link ``'world'`` is MuJoCo's. A fixed joint is a
    body without a joint. A link without mass that carries one moving joint and nothing else, as
    between the axes of a universal joint, is no body: MuJoCo would refuse it, and has its joint in
    the next body. Any other link that moves without mass is written as it is; where nothing fixed
    to it has one either, MuJoCo refuses the file and names it, as no mass is invented.

    Rotor inertia is armature, Coulomb friction frictionloss; position limits that leave room are
    ranges; each joint that moves and mimics none has a motor of gear 1 within its effort limit. A
    mimic joint is an equality of two joints. Velocity limits, names of fixed joints and the mass
    of ``'world'`` are lost: MJCF has none.

    Parameters
    ----------
    description : RobotDescription
    coupled_drives : tuple, optional
        Names of joints, and what ``add_coupled_drives`` takes.

    Raises
    ------
    UnsupportedJoint
        A planar joint, or a floating one that does not begin at ``'world'``.
    InvalidArgument
        A link is called ``'world'`` and is not the only root.
    MalformedUrdf
        A link with two parent joints, or joints that close a loop.
    """
    tree = LinkTree(description)
    if WORLD in description.links and tree.roots != [WORLD]:
        raise InvalidArgument('link', WORLD, "the only root: it is MuJoCo's own link")
    root, world = empty_mjcf(description.name or 'robot')
    for link in tree.roots:
        element = world
        if link != WORLD:
            element = etree.SubElement(world, 'body', name=link)
            _add_own_inertial(element, description, link)
        for joint in tree.child_joints[link]:
            _add_link(element, tree, description, joint)
    moving = [joint for joint in description.joints.values() if joint.movable]
    _add_motors(root, moving)
    _add_equalities(root, moving)
    if coupled_drives is not None:
        add_coupled_drives(root, *coupled_drives)
    return _text(root)


def _add_link(
    parent: Any,
    tree: LinkTree,
    description: RobotDescription,
    joint: Joint,
    before: tuple[tuple[Joint, FloatArray], ...] = (),
    placed: FloatArray | None = None,
) -> None:
    """
    Add the child link of a joint to its parent's element, and all that hangs on it.

    Parameters
    ----------
    before : tuple of (Joint, array (4, 4))
        Joints of links that are no bodies, and their frames in the parent link of ``joint``.
    placed : array, shape (4, 4), optional
        That parent link in the frame of the element.
    """
    pose = joint.origin if placed is None else placed @ joint.origin
    to_child = inverse_transform(joint.origin)
    joints = (*((each, to_child @ frame) for each, frame in before), (joint, np.eye(4)))
    children = tree.child_joints[joint.child]
    inertial = description.links[joint.child].inertial
    massless = inertial is None or not (inertial.mass or inertial.inertia.any())
    if massless and joint.movable and len(children) == 1 and children[0].movable:
        _add_link(parent, tree, description, children[0], joints, pose)
        return
    element = etree.SubElement(parent, 'body', {'name': joint.child, **placement(pose)})
    _add_own_inertial(element, description, joint.child)
    for each, frame in joints:
        if each.kind == 'floating' and each.parent == WORLD:
            etree.SubElement(element, 'joint', name=each.name, type='free')
        elif each.movable:
            turned = replace(each, axis=frame[:3, :3] @ each.axis)
            add_joint(element, each.name, turned, frame[:3, 3])
        elif each.kind != 'fixed':
            allowed = "one that turns or slides, is fixed, or floats in 'world'"
            raise UnsupportedJoint(f'joint {each.name!r} in an MJCF', each.kind, allowed)
    for child in children:
        _add_link(element, tree, description, child)


def _add_own_inertial(element: Any, description: RobotDescription, link: str) -> None:
    inertial = description.links[link].inertial
    if inertial is not None:
        add_inertial(element, inertial)


def _add_motors(root: Any, moving: list[Joint]) -> None:
    motors = etree.SubElement(root, 'actuator')
    for joint in moving:
        if joint.mimic is not None:
            continue
        motor = etree.SubElement(motors, 'motor', name=joint.name, joint=joint.name, gear='1')
        effort = joint.limit.effort
        if 0 < effort < math.inf:
            motor.set('ctrllimited', 'true')
            motor.set('ctrlrange', numbers([-effort, effort]))


def _add_equalities(root: Any, moving: list[Joint]) -> None:
    names = {joint.name for joint in moving}
    equalities = etree.SubElement(root, 'equality')
    for joint in moving:
        rule = joint.mimic
        if rule is None:
            continue
        # A leader that does not exist counts as zero.
        slope, leader = 0.0, {}
        if rule.joint in names:
            slope, leader = rule.multiplier, {'joint2': rule.joint}
        line = numbers([rule.offset, slope, 0.0, 0.0, 0.0])
        attributes = {'joint1': joint.name, **leader, 'polycoef': line}
        etree.SubElement(equalities, 'joint', attributes)


def empty_mjcf(name: str) -> tuple[Any, Any]:
    """Return the root of an MJCF whose numbers are taken as they are, and its worldbody."""
    root = etree.Element('mujoco', model=name)
    etree.SubElement(root, 'compiler', _COMPILER)
    return root, etree.SubElement(root, 'worldbody')


def placement(pose: FloatArray) -> dict[str, str]:
    """Return the attributes of an element of MJCF whose frame has this pose (4, 4)."""
    return {'pos': numbers(pose[:3, 3]), 'xyaxes': numbers(pose[:3, :2].T)}


def add_inertial(body: Any, inertial: Inertial) -> None:
    """
    Add an inertial to a body of MJCF, along its principal axes.

    MuJoCo would diagonalise a full tensor itself, to a part in 1e7 or so.
    """
    moments, axes = principal_axes(inertial.inertia)
    etree.SubElement(
        body,
        'inertial',
        {
            'mass': repr(float(inertial.mass)),
            'diaginertia': numbers(moments),
            **placement(transform(axes, inertial.center_of_mass)),
        },
    )


def add_joint(body: Any, name: str, joint: Joint, anchor: ArrayLike = (0.0, 0.0, 0.0)) -> None:
    """
    Add a joint that moves to a body of MJCF, in the body's frame.

    One whose limits leave no room to move, which is a finding, has no stops.
    """
    added = etree.SubElement(
        body,
        'joint',
        name=name,
        type='slide' if joint.kind == 'prismatic' else 'hinge',
        pos=numbers(anchor),
        axis=numbers(joint.axis),
        damping=repr(float(joint.damping)),
        frictionloss=repr(float(joint.friction)),
        armature=repr(float(joint.rotor_inertia)),
        limited='false',
    )
    lower, upper = joint.limit.lower, joint.limit.upper
    if lower < upper and np.isfinite([lower, upper]).any():
        added.set('limited', 'true')
        added.set('range', numbers(np.clip([lower, upper], -UNBOUNDED, UNBOUNDED)))


def add_coupled_drives(
    root: Any,
    joint_names: Sequence[str],
    coupling: FloatArray,
    rotor_inertia: FloatArray,
    friction: FloatArray,
) -> None:
    """
    Add drives that turn with several joints, as tendons of MJCF; a friction curve has no place.

    Parameters
    ----------
    root : element of ``mujoco``
    joint_names : sequence of n str
        As the MJCF has them.
    coupling, rotor_inertia, friction : array, shape (m, n), (m,), (m, 4)
        As ``RobotModel`` has them.
    """
    if not len(coupling):
        return
    tendons = etree.SubElement(root, 'tendon')
    for gears, rotor, (viscous, coulomb, *_) in zip(coupling, rotor_inertia, friction):
        tendon = etree.SubElement(
            tendons,
            'fixed',
            damping=repr(float(viscous)),
            frictionloss=repr(float(coulomb)),
            armature=repr(float(rotor)),
        )
        for name, gear in zip(joint_names, gears):
            if gear:
                etree.SubElement(tendon, 'joint', joint=name, coef=repr(float(gear)))


def numbers(values: ArrayLike) -> str:
    """Return numbers as an attribute, each with all its digits."""
    return ' '.join(repr(float(value)) for value in np.ravel(values))


# --- URDF ----------------------------------------------------------------------------------------


def urdf_of_description(description: RobotDescription) -> str:
    """
    Return a description as a URDF, without shapes.

    Rotor inertia is lost: URDF has no place for it. So is the length of an axis that was not 1.
    URDF's readers demand the limits of a joint that turns or slides between two bounds: what has
    none gets 1e9.

    Parameters
    ----------
    description : RobotDescription
    """
    root = etree.Element('robot', name=description.name or 'robot')
    for link in description.links.values():
        element = etree.SubElement(root, 'link', name=link.name)
        if link.inertial is not None:
            _add_urdf_inertial(element, link.inertial)
    for joint in description.joints.values():
        _add_urdf_joint(root, joint)
    return _text(root)


def _add_urdf_inertial(link: Any, given: Inertial) -> None:
    element = etree.SubElement(link, 'inertial')
    etree.SubElement(element, 'origin', xyz=numbers(given.center_of_mass), rpy='0 0 0')
    etree.SubElement(element, 'mass', value=repr(float(given.mass)))
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    tensor = given.inertia[np.triu_indices(3)]
    etree.SubElement(
        element,
        'inertia',
        {name: repr(float(value)) for name, value in zip(names, tensor, strict=True)},
    )


def _add_urdf_joint(root: Any, joint: Joint) -> None:
    element = etree.SubElement(root, 'joint', name=joint.name, type=joint.kind)
    etree.SubElement(
        element,
        'origin',
        xyz=numbers(joint.origin[:3, 3]),
        rpy=numbers(rpy_from_rotation(joint.origin[:3, :3])),
    )
    etree.SubElement(element, 'parent', link=joint.parent)
    etree.SubElement(element, 'child', link=joint.child)
    if not joint.movable:
        return
    axis = joint.axis if joint.axis_length else np.zeros(3)
    etree.SubElement(element, 'axis', xyz=numbers(axis))
    limit = dict(vars(joint.limit))
    if joint.kind == 'continuous':
        del limit['lower'], limit['upper']
    if joint.kind != 'continuous' or np.isfinite(list(limit.values())).any():
        finite = {name: np.clip(value, -UNBOUNDED, UNBOUNDED) for name, value in limit.items()}
        etree.SubElement(
            element, 'limit', {name: repr(float(value)) for name, value in finite.items()}
        )
    etree.SubElement(
        element,
        'dynamics',
        damping=repr(float(joint.damping)),
        friction=repr(float(joint.friction)),
    )
    if joint.mimic is not None:
        etree.SubElement(
            element,
            'mimic',
            joint=joint.mimic.joint,
            multiplier=repr(float(joint.mimic.multiplier)),
            offset=repr(float(joint.mimic.offset)),
        )


def _text(root: Any) -> str:
    return etree.tostring(root, encoding='unicode', pretty_print=True)
