# SPDX-License-Identifier: Apache-2.0
"""The URDF of an identified model: its bodies distributed over the links, and its friction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.linalg import eigh

from robodyn_ros.description.chain import Chain
from robodyn_ros.description.records import Inertial
from robodyn_ros.description.rewriting import JointDynamics, rewritten_urdf
from robodyn_ros.description.source import bytes_of_source
from robodyn_ros.errors import ModelMismatch
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


def identified_urdf(identified: RobotModel, source: str | Path) -> bytes:
    """
    Return a URDF with the bodies and friction of an identified model.

    A body is what moves with a joint: the joint's child link, and what is fixed to it. The links
    that are fixed to it keep their inertia, scaled down together where the body would not be left
    with enough and raised where no body has it, and the child link gets the rest, so that every
    link is one that can exist.

    Parameters
    ----------
    identified : RobotModel
    source : str or Path
        The URDF that it was identified with: a path, or XML text.

    Raises
    ------
    UnreadableSource, MalformedUrdf
        The source is no sound URDF.
    ModelMismatch
        It is another robot's.
    """
    content = bytes_of_source(source)
    chain = Chain.from_urdf(
        source,
        base_link=identified.base_link,
        tip_link=identified.tip_link,
        mimic='independent',
    )
    urdf = RobotModel.from_chain(chain)
    check_kinematics(kinematics_digest(identified), identified, urdf)
    inertials: dict[str, Inertial] = {}
    for joint, body, parameters in zip(
        chain.joints, chain.bodies[1:], identified.inertial_parameters, strict=True
    ):
        frames = {name: identified.link_frames[name][1] for name in body.link_transforms}
        inertials |= _spread(pseudo_inertia(parameters), joint.child, frames, chain)
    columns = (identified.joint_names, identified.viscous_friction, identified.coulomb_friction)
    dynamics = {
        name: JointDynamics(float(damping), float(friction))
        for name, damping, friction in zip(*columns, strict=True)
    }
    return rewritten_urdf(content, inertials, dynamics)


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
            if not (np.linalg.eigvalsh(own) > 0).all():
                own = made_positive(own)[0]
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
            f'kinematics from {model.base_link!r} to {model.tip_link!r}',
            'not those of the robot that was identified',
            f'its DH table, from {identified.base_link!r} to {identified.tip_link!r}',
        )
