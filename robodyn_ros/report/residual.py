# SPDX-License-Identifier: Apache-2.0
"""
Difference of a model from its URDF: the same pose and torque from the URDF's own frames.

Nothing here reads the DH table. Poses are products of the URDF's joint origins and rotations
about its axes; torques are Newton's and Euler's equations of every single link about its mass
centre, in base link axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.description.chain import Chain
from robodyn_ros.dynamics import inverse_dynamics
from robodyn_ros.kinematics import forward_kinematics
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray, rotation_about, transform

_SEED = 1


@dataclass(frozen=True)
class Residual:
    """
    The worst differences over some seeded states.

    ``position`` [m] and ``angle`` [rad] are of the tip's pose; ``torque`` is relative to the
    largest torque of the state, or to 1 N m (or N) where that is smaller.
    """

    states: int
    position: float
    angle: float
    torque: float


def conversion_residual(chain: Chain, model: RobotModel, states: int = 100) -> Residual:
    """Return how far a model's poses and torques are from those of the chain it came from."""
    generator = np.random.default_rng(_SEED)
    reach = np.where(model.dh.prismatic, 1.0, np.pi)
    q = generator.uniform(-1, 1, (states, model.n)) * reach
    qd = generator.uniform(-2, 2, (states, model.n))
    qdd = generator.uniform(-5, 5, (states, model.n))
    poses = [forward_kinematics(model, q, tip) for tip in chain.tip_links]
    # Rotors are no part of the conversion, whether the description or the caller gave them.
    torques = inverse_dynamics(model.with_rotor_inertia(np.zeros(model.n)), q, qd, qdd)
    position = angle = torque = 0.0
    for k in range(states):
        frames = _link_frames(chain, q[k])
        for of_tip, i, placed in zip(poses, chain.tips, chain.tip_transforms):
            pose = frames[i + 1] @ placed
            position = max(position, float(np.linalg.norm(of_tip[k, :3, 3] - pose[:3, 3])))
            chord = float(np.linalg.norm(of_tip[k, :3, :3] - pose[:3, :3]))
            angle = max(angle, 2 * np.arcsin(min(1.0, chord / np.sqrt(8))))
        expected = _torques(chain, model.gravity, frames, qd[k], qdd[k])
        scale = max(1.0, float(np.abs(expected).max()))
        torque = max(torque, float(np.abs(torques[k] - expected).max()) / scale)
    return Residual(states, position, float(angle), torque)


def _link_frames(chain: Chain, q: NDArray) -> list[FloatArray]:
    """Return the frame (4, 4) of the base link and of each joint's child link."""
    frames = [np.eye(4)]
    for joint, parent, step, position in zip(
        chain.joints, chain.parents, chain.joint_transforms, q, strict=True
    ):
        if joint.kind == 'prismatic':
            motion = transform(translation=joint.axis * position)
        else:
            motion = transform(rotation_about(joint.axis, position))
        frames.append(frames[parent + 1] @ step @ motion)
    return frames


def _torques(
    chain: Chain,
    gravity: FloatArray,
    frames: list[FloatArray],
    qd: NDArray,
    qdd: NDArray,
) -> FloatArray:
    torques = np.zeros(len(chain.joints))
    axes, origins = [], []
    motions = [(np.zeros(3), np.zeros(3), -gravity)]
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents)):
        frame, before = frames[i + 1], frames[parent + 1]
        w, wd, a = motions[parent + 1]
        axis, origin = frame[:3, :3] @ joint.axis, frame[:3, 3]
        axes.append(axis)
        origins.append(origin)
        arm = origin - before[:3, 3]
        a = a + np.cross(wd, arm) + np.cross(w, np.cross(w, arm))
        if joint.kind == 'prismatic':
            a = a + axis * qdd[i] + 2 * np.cross(w, axis * qd[i])
        else:
            wd = wd + axis * qdd[i] + np.cross(w, axis * qd[i])
            w = w + axis * qd[i]
        motions.append((w, wd, a))
        for name, placed in chain.bodies[i + 1].link_transforms.items():
            inertial = chain.description.links[name].inertial
            if inertial is None:
                continue
            pose = frame @ placed
            center = pose[:3, :3] @ inertial.center_of_mass + pose[:3, 3]
            inertia = pose[:3, :3] @ inertial.inertia @ pose[:3, :3].T
            lever = center - origin
            force = inertial.mass * (a + np.cross(wd, lever) + np.cross(w, np.cross(w, lever)))
            moment = inertia @ wd + np.cross(w, inertia @ w)
            for k in chain.moving(i):
                if chain.joints[k].kind == 'prismatic':
                    torques[k] += axes[k] @ force
                else:
                    torques[k] += axes[k] @ (moment + np.cross(center - origins[k], force))
    return torques
