# SPDX-License-Identifier: Apache-2.0
"""
Recursive Newton-Euler inverse dynamics in link coordinates.

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
    tip_wrench : array, shape (6,) or (..., 6), optional
        Force [N] and moment [N m] that the tip exerts on the world, about the tip link's origin,
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
    still = np.zeros_like(origin[..., 0, :])
    w = _outward(rotation, revolute_axes * qd, still)
    wd = _outward(rotation, revolute_axes * qdd + cross(w, revolute_axes * qd), still)
    u = skew(wd) + skew(w) @ skew(w)
    base_acceleration = still - dh.base_transform[:3, :3].T @ model.gravity
    u_before = np.concatenate([np.zeros_like(u[..., :1, :, :]), u[..., :-1, :, :]], axis=-3)
    swung = _row_times_matrix(matrix_times(u_before, origin), rotation)
    sliding = prismatic_axes * qdd + 2.0 * cross(w, prismatic_axes * qd)
    vd = _outward(rotation, swung + sliding, base_acceleration)

    # Newton and Euler: force and moment that each link takes, about its frame's origin.
    parameters = model.inertial_parameters
    mass, first_moment = parameters[:, 9:], parameters[:, 6:9]
    inertia = inertia_tensor(parameters)
    force = mass * vd + matrix_times(u, first_moment)
    moment = (
        matrix_times(inertia, wd) + cross(w, matrix_times(inertia, w)) + cross(first_moment, vd)
    )

    # Inward: force and moment that link i - 1 exerts on link i, about the origin of frame i.
    tip_force, tip_moment = _wrench_on_last_frame(model, q, tip_wrench)
    f = _inward(rotation, force, tip_force)
    levers = cross(origin[..., 1:, :], matrix_times(rotation, f)[..., 1:, :])
    moment[..., :-1, :] += levers
    n = _inward(rotation, moment, tip_moment)
    return np.where(dh.prismatic, f[..., 2], n[..., 2])


def _wrench_on_last_frame(
    model: RobotModel, q: NDArray, tip_wrench: NDArray | None
) -> tuple[NDArray | float, NDArray | float]:
    """Return the tip's force and moment about the origin of frame n, in its axes."""
    if tip_wrench is None:
        return 0.0, 0.0
    last_rotation = frame_transforms(model.dh, q)[..., -1, :3, :3]
    force = _row_times_matrix(tip_wrench[..., :3], last_rotation)
    moment = _row_times_matrix(tip_wrench[..., 3:], last_rotation)
    return force, moment + cross(model.dh.tip_transform[:3, 3], force)


def _outward(rotation: NDArray, increments: NDArray, at_base: NDArray) -> NDArray:
    """Return x_i = R_iT x_(i-1) + increment_i for i = 1 to n, (..., n, 3)."""
    result = np.empty_like(increments)
    x = at_base
    for i in range(increments.shape[-2]):
        x = _row_times_matrix(x, rotation[..., i, :, :]) + increments[..., i, :]
        result[..., i, :] = x
    return result


def _inward(rotation: NDArray, increments: NDArray, at_tip: NDArray | float) -> NDArray:
    """Return x_i = R_(i+1) x_(i+1) + increment_i for i = n to 1, (..., n, 3)."""
    result = np.empty_like(increments)
    last = increments.shape[-2] - 1
    x = increments[..., last, :] + at_tip
    result[..., last, :] = x
    for i in range(last - 1, -1, -1):
        x = matrix_times(rotation[..., i + 1, :, :], x) + increments[..., i, :]
        result[..., i, :] = x
    return result


def _row_times_matrix(vector: NDArray, matrix: NDArray) -> NDArray:
    return (vector[..., None, :] @ matrix)[..., 0, :]
