# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians out of the modified DH table."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.model import RobotModel, model_states
from robodyn_ros.spatial import cross

# Geometry that differs by less [m or rad] is the same.
_DECIMALS = 8


def forward_kinematics(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return the pose of the tip link in the base link's frame.

    Parameters
    ----------
    model : RobotModel
    q : array-like, shape (n,) or (N, n)
        Joint positions [rad or m].

    Returns
    -------
    array, shape (4, 4) or (N, 4, 4)

    Raises
    ------
    WrongShape, NonFiniteValue
    """
    (q,) = model_states(model, q=q)
    return frame_transforms(model.dh, q)[..., -1, :, :] @ model.dh.tip_transform


def jacobian(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return the Jacobian of the tip: (v, w) = J(q) qd.

    Rows 0 to 2 give the velocity of the tip link's origin [m/s], rows 3 to 5 its angular velocity
    [rad/s], both in the base link's axes.

    Parameters
    ----------
    model : RobotModel
    q : array-like, shape (n,) or (N, n)
        Joint positions [rad or m].

    Returns
    -------
    array, shape (6, n) or (N, 6, n)

    Raises
    ------
    WrongShape, NonFiniteValue
    """
    (q,) = model_states(model, q=q)
    return tip_jacobian(model, q)


def tip_jacobian(model: RobotModel, q: NDArray) -> NDArray:
    """Return ``jacobian`` (..., 6, n) for q (..., n), unchecked."""
    frames = frame_transforms(model.dh, q)
    tip = (frames[..., -1, :, :] @ model.dh.tip_transform)[..., :3, 3]
    z = frames[..., :3, 2]
    prismatic = model.dh.prismatic[:, None]
    linear = np.where(prismatic, z, cross(z, tip[..., None, :] - frames[..., :3, 3]))
    angular = np.where(prismatic, 0.0, z)
    return np.swapaxes(np.concatenate([linear, angular], axis=-1), -1, -2)


def tip_wrench_torque(
    model: RobotModel, q: NDArray, tip_wrench: NDArray | None
) -> NDArray | float:
    """Return J(q)T w (..., n), what a wrench w (..., 6) of the tip on the world takes."""
    if tip_wrench is None:
        return 0.0
    return (tip_wrench[..., None, :] @ tip_jacobian(model, q))[..., 0, :]


def kinematics_digest(model: RobotModel) -> str:
    """Return a digest of joint names and DH table: not of bodies, limits or gravity."""
    digest = hashlib.sha256(repr((model.joint_names, model.base_link, model.tip_link)).encode())
    dh = model.dh
    for array in (dh.alpha, dh.a, dh.beta, dh.d, dh.theta, dh.base_transform, dh.tip_transform):
        # Rounding makes a zero of either sign; adding zero makes them one.
        digest.update((np.round(array, _DECIMALS) + 0.0).tobytes())
    digest.update(np.asarray(dh.prismatic, dtype=bool).tobytes())
    return digest.hexdigest()
