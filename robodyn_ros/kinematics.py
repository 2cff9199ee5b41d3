# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians out of the modified DH table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.arguments import checked_states
from robodyn_ros.dh import DHTable
from robodyn_ros.spatial import cross

if TYPE_CHECKING:
    from robodyn_ros.model import RobotModel


def forward_kinematics(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return the pose of the tip link in the base link's frame.

    Parameters
    ----------
    model : RobotModel
    q : array-like (n,) or (N, n)
        Joint positions [rad or m].

    Returns
    -------
    array (4, 4) or (N, 4, 4)

    Raises
    ------
    WrongShape, NonFiniteValue
    """
    (q,) = checked_states(model.n, q=q)
    return frame_transforms(model.dh, q)[..., -1, :, :] @ model.dh.tip_transform


def jacobian(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return the Jacobian of the tip: (v, w) = J(q) qd.

    Rows 0 to 2 give the velocity of the tip link's origin [m/s], rows 3 to 5 its angular velocity
    [rad/s], both in the base link's axes.

    Parameters
    ----------
    model : RobotModel
    q : array-like (n,) or (N, n)
        Joint positions [rad or m].

    Returns
    -------
    array (6, n) or (N, 6, n)

    Raises
    ------
    WrongShape, NonFiniteValue
    """
    (q,) = checked_states(model.n, q=q)
    frames = frame_transforms(model.dh, q)
    tip = (frames[..., -1, :, :] @ model.dh.tip_transform)[..., :3, 3]
    z = frames[..., :3, 2]
    slides = model.dh.prismatic[:, None]
    linear = np.where(slides, z, cross(z, tip[..., None, :] - frames[..., :3, 3]))
    angular = np.where(slides, 0.0, z)
    return np.swapaxes(np.concatenate([linear, angular], axis=-1), -1, -2)


def frame_transforms(dh: DHTable, q: NDArray) -> NDArray:
    """
    Return the DH frames 1 to n in the base link's frame, (..., n, 4, 4), for q (..., n).

    ``dh`` is a modified table.
    """
    rotations, origins = joint_transforms(dh, q)
    steps = np.zeros((*q.shape, 4, 4), dtype=rotations.dtype)
    steps[..., :3, :3] = rotations
    steps[..., :3, 3] = origins
    steps[..., 3, 3] = 1
    frames = np.empty_like(steps)
    frame = dh.base_transform
    for i in range(dh.n):
        frame = frame @ steps[..., i, :, :]
        frames[..., i, :, :] = frame
    return frames


def joint_transforms(dh: DHTable, q: NDArray) -> tuple[NDArray, NDArray]:
    """
    Return rotation (..., n, 3, 3) and origin (..., n, 3) [m] of frame i in frame i - 1.

    ``dh`` is a modified table, q (..., n) the joint positions [rad or m].
    """
    theta = np.where(dh.prismatic, dh.theta, q + dh.theta)
    d = np.where(dh.prismatic, q + dh.d, dh.d)[..., None]
    c, s = np.cos(theta)[..., None], np.sin(theta)[..., None]
    x, y, z = (dh.constant_rotations[:, :, k] for k in range(3))
    rotation = np.empty((*theta.shape, 3, 3), dtype=c.dtype)
    rotation[..., 0] = c * x + s * y
    rotation[..., 1] = c * y - s * x
    rotation[..., 2] = z
    origin = d * z
    origin[..., 0] += dh.a
    return rotation, origin
