# SPDX-License-Identifier: Apache-2.0
"""URDF and MJCF of an identified model: its bodies distributed over the links, its friction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.linalg import eigh

from robodyn_ros.description.chain import Chain
from robodyn_ros.description.mjcf import is_mjcf
from robodyn_ros.description.records import Inertial, Link, RobotDescription
from robodyn_ros.description.rewriting import JointDynamics, rewritten_urdf
from robodyn_ros.description.source import bytes_of_source
from robodyn_ros.description.writing import mjcf_of_description, urdf_of_description
from robodyn_ros.errors import ModelMismatch, Phrase
from robodyn_ros.identification.prior import made_positive
from robodyn_ros.kinematics import kinematics_digest
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.spatial import (
    FloatArray,
    inertia_tensor,
    inertial_parameters,
    inverse_transform,
    parameters_of_pseudo_inertia,
    pseudo_inertia,
)

# What hangs on a link keeps its inertia as long as the link keeps this fraction of its own along
# every direction; else what hangs on it is scaled down until it does.
_LEAST_REMAINDER = 0.2
_ROUNDING = 1e-14  # square of a radius of gyration [m²]: of a point mass, either sign may come out


def identified_urdf(identified: RobotModel, source: str | Path) -> bytes:
    """
    Return a URDF with the bodies and friction of an identified model.

    Of a URDF, everything else stays as it is; of an MJCF, see ``urdf_of_description``. Neither has
    drives that turn with several joints: a joint has the friction of one that moves alone.

    A body is what moves with a joint: the joint's child link, and what is fixed to it. The links
    that are fixed to it keep their inertia, scaled down together where the body would not be left
    with enough and raised where no body has it, and the child link gets the rest, so that every
    link is one that can exist.

    Parameters
    ----------
    identified : RobotModel
    source : str or Path
        The URDF or MJCF that it was identified with: a path, or a URDF's text.

    Raises
    ------
    UnreadableSource, MalformedUrdf
        The source is no sound URDF or MJCF.
    ModelMismatch
        It is another robot's.
    NoBackend
        It is an MJCF, and MuJoCo cannot be imported.
    """
    chain = _chain_of(identified, source)
    inertials = _inertials(identified, chain)
    identified = replace(
        identified,
        viscous_friction=identified.viscous_friction
        + identified.coupled_friction[:, 0] @ identified.coupling**2,
        coulomb_friction=identified.dry_friction,
    )
    if is_mjcf(source):
        return urdf_of_description(_identified(identified, chain, inertials)).encode()
    columns = (identified.joint_names, identified.viscous_friction, identified.coulomb_friction)
    dynamics = {
        name: JointDynamics(float(damping), float(friction))
        for name, damping, friction in zip(*columns, strict=True)
    }
    return rewritten_urdf(bytes_of_source(source), inertials, dynamics)


def identified_mjcf(identified: RobotModel, source: str | Path) -> bytes:
    """
    Return an MJCF with the bodies, friction and rotor inertia of an identified model.

    Bodies are distributed over the links as in ``identified_urdf``; rotor inertia is armature.
    Coupled drives are tendons. What MJCF has no place for is not in it (offset, curve, load
    friction), nor are shapes: see ``mjcf_of_description``.

    Parameters
    ----------
    identified : RobotModel
    source : str or Path
        The URDF or MJCF that it was identified with: a path, or a URDF's text.

    Raises
    ------
    UnreadableSource, MalformedUrdf, ModelMismatch
        As ``identified_urdf``.
    UnsupportedJoint, InvalidArgument
        The robot has what MJCF has not: see ``mjcf_of_description``.
    NoBackend
        The source is an MJCF, and MuJoCo cannot be imported.
    """
    chain = _chain_of(identified, source)
    described = _identified(identified, chain, _inertials(identified, chain))
    coupled = (
        identified.joint_names,
        identified.coupling,
        identified.coupled_rotor_inertia,
        identified.coupled_friction,
    )
    return mjcf_of_description(described, coupled).encode()


def _chain_of(identified: RobotModel, source: str | Path) -> Chain:
    """Return the chain that a model was identified with; ModelMismatch if it is another one."""
    read = Chain.from_mjcf if is_mjcf(source) else Chain.from_urdf
    chain = read(
        source,
        base_link=identified.base_link,
        tip_link=identified.tip_links,
        mimic='independent',
    )
    check_kinematics(kinematics_digest(identified), identified, RobotModel.from_chain(chain))
    return chain


def _inertials(identified: RobotModel, chain: Chain) -> dict[str, Inertial]:
    """Return the inertials of all links that change."""
    inertials: dict[str, Inertial] = {}
    for joint, body, parameters in zip(
        chain.joints, chain.bodies[1:], identified.inertial_parameters, strict=True
    ):
        frames = {name: identified.link_frames[name][1] for name in body.link_transforms}
        inertials |= _spread(pseudo_inertia(parameters), joint.child, frames, chain)
    return inertials


def _identified(
    identified: RobotModel, chain: Chain, inertials: dict[str, Inertial]
) -> RobotDescription:
    """Return the chain's robot with other inertials, and the drives that were identified."""
    robot = chain.description
    joints = dict(robot.joints)
    columns = (
        identified.viscous_friction,
        identified.coulomb_friction,
        identified.rotor_inertia,
    )
    for name, *values in zip(identified.joint_names, *columns, strict=True):
        damping, friction, rotor = map(float, values)
        joints[name] = replace(
            joints[name], damping=damping, friction=friction, rotor_inertia=rotor
        )
    links = dict(robot.links) | {name: Link(name, given) for name, given in inertials.items()}
    return replace(robot, links=links, joints=joints)


def _spread(
    whole: FloatArray, first: str, frames: dict[str, FloatArray], chain: Chain
) -> dict[str, Inertial]:
    """
    Return the inertials that make up a body, those that change.

    Parameters
    ----------
    whole : array, shape (4, 4)
        Pseudo-inertia of the body about its DH frame.
    first : str
        The link that the joint carries.
    frames : mapping of link name to array, shape (4, 4)
        From the frame of each link of the body to the DH frame.
    chain : Chain
    """
    hung, mended = {}, set()
    for name, frame in frames.items():
        inertial = chain.description.links[name].inertial
        if name != first and inertial is not None and inertial.mass > 0:
            parameters = inertial_parameters(
                inertial.mass, inertial.center_of_mass, inertial.inertia
            )
            own = pseudo_inertia(parameters)
            positive, smallest, _ = made_positive(own)
            if smallest <= _ROUNDING:
                own = positive
                mended.add(name)
            hung[name] = frame @ own @ frame.T
    together = sum(hung.values(), np.zeros((4, 4)))
    scale = 1.0
    if hung:
        # The largest factor that leaves the first link something along every direction.
        largest = float(eigh(together, whole, eigvals_only=True)[-1])
        scale = min(1.0, (1.0 - _LEAST_REMAINDER) / max(largest, 1e-300))
    result = {first: _inertial(whole - scale * together, frames[first])}
    for name, pseudo in hung.items():
        if scale < 1.0 or name in mended:
            result[name] = _inertial(scale * pseudo, frames[name])
    return result


def _inertial(pseudo: FloatArray, frame: FloatArray) -> Inertial:
    """Return the inertial, in a link's frame, of a pseudo-inertia about a DH frame."""
    to_link = inverse_transform(frame)
    parameters = parameters_of_pseudo_inertia(to_link @ pseudo @ to_link.T)
    mass = float(parameters[9])
    center = parameters[6:9] / mass
    about_center = inertia_tensor(parameters) - mass * (
        center @ center * np.eye(3) - np.outer(center, center)
    )
    return Inertial(mass, center, about_center)


def check_kinematics(digest: str, identified: RobotModel, model: RobotModel) -> None:
    """
    Refuse a model with other kinematics than those of an identification.

    Raises
    ------
    ModelMismatch
    """
    if identified.joint_names != checked_model(model).joint_names:
        names = ', '.join(map(repr, identified.joint_names))
        raise ModelMismatch('joints of the robot', model.joint_names, f'those identified: {names}')
    if kinematics_digest(model) != digest:
        raise ModelMismatch(
            f'kinematics from {model.ends}',
            Phrase('not those of the robot that was identified'),
            f'its DH table, from {identified.ends}',
        )
