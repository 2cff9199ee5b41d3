# SPDX-License-Identifier: Apache-2.0
"""
A chain of the URDF's records -> MuJoCo's model: physics that owes nothing to our DH conversion.

One body for each joint that moves, placed by the URDF's joint origins, with the inertia of all
links that move with it, summed about their common centre of mass. There is no geometry, and no
name of the URDF is in the XML. MuJoCo is optional: ``pip install mujoco``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import ArrayLike

from robodyn_ros.description.chain import Body, Chain
from robodyn_ros.description.records import Inertial, Joint
from robodyn_ros.errors import CannotSimulate, MujocoMissing
from robodyn_ros.payload import Payload
from robodyn_ros.spatial import FloatArray

_UNBOUNDED = 1e9  # MuJoCo's ranges are finite [rad or m]
_COMPILER = {
    'angle': 'radian',
    'autolimits': 'false',
    'inertiafromgeom': 'false',
    # Every mass and inertia stays as it is.
    'balanceinertia': 'false',
    'boundmass': '0',
    'boundinertia': '0',
}


def compiled_chain(chain: Chain) -> Any:
    """
    Return MuJoCo's model of a chain.

    Raises
    ------
    MujocoMissing
        MuJoCo cannot be imported.
    CannotSimulate
        MuJoCo refuses a body of the chain.
    """
    mujoco = imported_mujoco()
    if all(lumped_inertial(chain, body) is None for body in chain.bodies[1:]):
        raise CannotSimulate('chain', 'no link that moves has a mass', 'a URDF with masses')
    try:
        return mujoco.MjModel.from_xml_string(mjcf(chain))
    except ValueError as error:
        raise CannotSimulate(
            'chain',
            _in_links(str(error), chain),
            'a mass and an inertia that a body can have for each part that moves: '
            '`robodyn check` lists what is odd, and the URDF is where to put it right',
        ) from error


def imported_mujoco() -> Any:
    """Return the module; MujocoMissing where it cannot be imported."""
    try:
        import mujoco
    except ImportError as error:
        raise MujocoMissing('mujoco', str(error), 'pip install mujoco') from error
    return mujoco


def mjcf(chain: Chain) -> str:
    """
    Return a chain in MuJoCo's XML: ``body0`` with ``joint0`` inside the world, and so on.

    A joint whose limits leave no room to move, which the checker tells, has no stops.
    """
    root = etree.Element('mujoco', model='arm')
    etree.SubElement(root, 'compiler', _COMPILER)
    element = etree.SubElement(root, 'worldbody')
    for i, joint in enumerate(chain.joints):
        placed = chain.joint_transforms[i]
        element = etree.SubElement(
            element,
            'body',
            name=f'body{i}',
            pos=_numbers(placed[:3, 3]),
            xyaxes=_numbers(placed[:3, :2].T),
        )
        lumped = lumped_inertial(chain, chain.bodies[i + 1])
        if lumped is not None:
            _add_inertial(element, lumped)
        _add_joint(element, f'joint{i}', joint)
    return etree.tostring(root, encoding='unicode')


def lumped_inertial(chain: Chain, body: Body, payloads: Sequence[Payload] = ()) -> Inertial | None:
    """
    Return the inertial of all links of a body, in the frame of its first; None: no mass at all.

    Payloads on its links, whose link is named, are part of it. The centre of mass is the masses'
    mean; each part adds R I RT + m (dT d 1 - d dT), where d leads from there to its own centre of
    mass (the parallel axis theorem).
    """
    parts: list[tuple[float, FloatArray, FloatArray]] = []
    for name, placed in body.link_transforms.items():
        carried = [payload for payload in payloads if payload.link == name]
        for inertial in (chain.description.links[name].inertial, *carried):
            if inertial is None:
                continue
            rotation = placed[:3, :3]
            center = rotation @ np.asarray(inertial.center_of_mass) + placed[:3, 3]
            tensor = rotation @ np.asarray(inertial.inertia) @ rotation.T
            parts.append((inertial.mass, center, tensor))
    mass = sum(mass for mass, _, _ in parts)
    if mass == 0.0 and not any(tensor.any() for _, _, tensor in parts):
        return None
    center = sum((m * c for m, c, _ in parts), np.zeros(3)) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for m, c, tensor in parts:
        d = c - center
        inertia += tensor + m * (d @ d * np.eye(3) - np.outer(d, d))
    return Inertial(mass, center, inertia)


def _add_inertial(body: Any, inertial: Inertial) -> None:
    xx, xy, xz, yy, yz, zz = inertial.inertia[np.triu_indices(3)]
    etree.SubElement(
        body,
        'inertial',
        mass=repr(float(inertial.mass)),
        pos=_numbers(inertial.center_of_mass),
        fullinertia=_numbers([xx, yy, zz, xy, xz, yz]),
    )


def _add_joint(body: Any, name: str, joint: Joint) -> None:
    added = etree.SubElement(
        body,
        'joint',
        name=name,
        type='slide' if joint.kind == 'prismatic' else 'hinge',
        axis=_numbers(joint.axis),
        damping=repr(joint.damping),
        frictionloss=repr(joint.friction),
        limited='false',
    )
    lower, upper = joint.limit.lower, joint.limit.upper
    if lower < upper and np.isfinite([lower, upper]).any():
        added.set('limited', 'true')
        added.set('range', _numbers(np.clip([lower, upper], -_UNBOUNDED, _UNBOUNDED)))


def _numbers(values: ArrayLike) -> str:
    return ' '.join(repr(float(value)) for value in np.ravel(values))


def _in_links(message: str, chain: Chain) -> str:
    """Return what MuJoCo said in one line, about a link of the URDF."""
    said, _, where = ' '.join(message.split()).partition(' Element name ')
    body = re.search(r'\bbody(\d+)\b', where)
    said = said.removeprefix('Error: ').partition('; use ')[0]
    return said if body is None else f'link {chain.joints[int(body[1])].child!r}: {said}'
