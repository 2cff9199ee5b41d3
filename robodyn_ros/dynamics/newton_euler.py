# SPDX-License-Identifier: Apache-2.0
"""
Recursive Newton-Euler inverse dynamics in link coordinates, of chains and trees.

Luh, Walker and Paul's recursion (Fu, Gonzalez and Lee 1987, Table 3.3) for modified DH frames,
with the first moment m c and the inertia about the frame's origin, the parameters of Gautier and
Khalil 1988, eq. (3), in place of the centre of mass. Gravity enters as an acceleration -g of the
base.

Corrected against the print: (3.3-51) takes the angular acceleration of link i - 1; (3.3-46) sets
the base's acceleration to minus the gravity field; Table 3.3's moment is (3.3-57)'s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms, joint_transforms
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import cross, inertia_tensor, matrix_times, skew

# The joint before each one, -1 at the base, and the rotation (..., 3, 3) from it.
_Joints = list[tuple[int, NDArray]]


def joint_torques(
    model: RobotModel,
    q: NDArray,
    qd: NDArray,
    qdd: NDArray,
    tip_wrench: NDArray | None = None,
) -> NDArray:
    """
    Return the joint torques (..., n) [N m or N], without rotor inertia.

    Parameters
    ----------
    model : RobotModel
    q, qd, qdd : array, shape (..., n)
        Positions, velocities, accelerations [rad or m, and per s, s²].
    tip_wrench : array, shape (6 k,) or (..., 6 k), optional
        Force [N] and moment [N m] that each tip exerts on the world, about the tip link's origin,
        in base link axes.

    Notes
    -----
    Linear in n. All vectors of link i are in the axes of frame i.
    """
    dh = model.dh
    rotation, origin = joint_transforms(dh, q)
    z = np.array([0.0, 0.0, 1.0])
    revolute_axes = (~dh.prismatic)[:, None] * z
    prismatic_axes = dh.prismatic[:, None] * z
    qd, qdd = qd[..., None], qdd[..., None]

    # Outward: angular velocity and acceleration of each link, acceleration of its origin.
    joints = [(parent, rotation[..., i, :, :]) for i, parent in enumerate(dh.parents.tolist())]
    still = np.zeros_like(origin[..., 0, :])
    w = _outward(joints, revolute_axes * qd, still)
    wd = _outward(joints, revolute_axes * qdd + cross(w, revolute_axes * qd), still)
    u = skew(wd) + skew(w) @ skew(w)
    base_acceleration = still - dh.base_transform[:3, :3].T @ model.gravity
    u_before = u[..., dh.parents, :, :] * (dh.parents >= 0)[:, None, None]
    swung = _row_times_matrix(matrix_times(u_before, origin), rotation)
    sliding = prismatic_axes * qdd + 2.0 * cross(w, prismatic_axes * qd)
    vd = _outward(joints, swung + sliding, base_acceleration)

    # Newton and Euler: force and moment that each link takes, about its frame's origin.
    parameters = model.inertial_parameters
    mass, first_moment = parameters[:, 9:], parameters[:, 6:9]
    inertia = inertia_tensor(parameters)
    force = mass * vd + matrix_times(u, first_moment)
    moment = (
        matrix_times(inertia, wd) + cross(w, matrix_times(inertia, w)) + cross(first_moment, vd)
    )

    # Inward: force and moment that each link takes from the one before it, about its origin.
    _add_tip_wrenches(model, q, tip_wrench, force, moment)
    _add_inward(joints, force)
    levers = cross(origin, matrix_times(rotation, force))
    for i, (parent, _) in enumerate(joints):
        if parent >= 0:
            moment[..., parent, :] += levers[..., i, :]
    _add_inward(joints, moment)
    return np.where(dh.prismatic, force[..., 2], moment[..., 2])


def _add_tip_wrenches(
    model: RobotModel, q: NDArray, tip_wrench: NDArray | None, force: NDArray, moment: NDArray
) -> None:
    """Add each tip's force and moment to those of its body, about the origin of its frame."""
    if tip_wrench is None:
        return
    dh = model.dh
    frames = frame_transforms(dh, q)
    for k, (body, placed) in enumerate(zip(dh.tips, dh.tip_transforms, strict=True)):
        rotation = frames[..., body, :3, :3]
        tip_force = _row_times_matrix(tip_wrench[..., 6 * k : 6 * k + 3], rotation)
        tip_moment = _row_times_matrix(tip_wrench[..., 6 * k + 3 : 6 * k + 6], rotation)
        force[..., body, :] += tip_force
        moment[..., body, :] += tip_moment + cross(placed[:3, 3], tip_force)


def _outward(joints: _Joints, increments: NDArray, at_base: NDArray) -> NDArray:
    """Return x_i = R_iT x_parent + increment_i for i = 1 to n, (..., n, 3)."""
    result = np.empty_like(increments)
    links = [at_base] * (len(joints) + 1)  # the last one, of index -1, is the base
    for i, (parent, rotation) in enumerate(joints):
        x = _row_times_matrix(links[parent], rotation) + increments[..., i, :]
        links[i] = result[..., i, :] = x
    return result


def _add_inward(joints: _Joints, x: NDArray) -> None:
    """Add R_i x_i to x of the link before, for i = n to 1, x being (..., n, 3)."""
    links = [x[..., i, :] for i in range(len(joints))]  # views
    for (parent, rotation), x_i in zip(reversed(joints), reversed(links)):
        if parent >= 0:
            links[parent] += matrix_times(rotation, x_i)


def _row_times_matrix(vector: NDArray, matrix: NDArray) -> NDArray:
    return (vector[..., None, :] @ matrix)[..., 0, :]
