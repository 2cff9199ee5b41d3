# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians from the modified DH table."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.model import RobotModel, frame_of_link, model_states
from robodyn_ros.spatial import cross

# Geometry that differs by less [m or rad] is the same.
_DECIMALS = 8


def forward_kinematics(model: RobotModel, q: ArrayLike, link: str | None = None) -> NDArray:
    """
    Return the pose of a link in the base link's frame.

    Parameters
    ----------
    model : RobotModel
    q : array-like, shape (n,) or (N, n)
        Joint positions [rad or m].
    link : str, optional
        Any of ``model.link_frames``: of the chain, fixed to it, as a sensor's frame, or behind a
        joint off the chain, where that is held; the only tip link where not given.

    Returns
    -------
    array, shape (4, 4) or (N, 4, 4)

    Raises
    ------
    WrongType, InvalidArgument, NonFiniteValue
    NoSuchName
        The message lists those that there are. A tree has no link that is meant where none is
        given: InvalidArgument.
    """
    (q,) = model_states(model, q=q)
    body, placed = _frame_of(model, link)
    if body < 0:
        return np.broadcast_to(placed, (*q.shape[:-1], 4, 4)).copy()
    return frame_transforms(model.dh, q)[..., body, :, :] @ placed


def jacobian(model: RobotModel, q: ArrayLike, link: str | None = None) -> NDArray:
    """
    Return the Jacobian of a link: (v, w) = J(q) qd.

    Rows 0 to 2 give the velocity of the link's origin [m/s], rows 3 to 5 its angular velocity
    [rad/s], both in the base link's axes. The columns of joints that do not move it are zero.

    Parameters
    ----------
    model : RobotModel
    q : array-like, shape (n,) or (N, n)
        Joint positions [rad or m].
    link : str, optional
        As in ``forward_kinematics``; the only tip link where not given.

    Returns
    -------
    array, shape (6, n) or (N, 6, n)

    Raises
    ------
    WrongType, InvalidArgument, NonFiniteValue
    NoSuchName
        The message lists those that there are.
    """
    (q,) = model_states(model, q=q)
    return _jacobian(model, q, *_frame_of(model, link))


def tip_jacobian(model: RobotModel, q: NDArray, link: str | None = None) -> NDArray:
    """Return ``jacobian`` (..., 6, n) of the tip, or a tip, for q (..., n), unchecked."""
    return _jacobian(model, q, *_frame_of(model, link))


def _frame_of(model: RobotModel, link: str | None) -> tuple[int, NDArray]:
    """Return the joint that moves a link, and the link's frame in that joint's DH frame."""
    link = model.tip_link if link is None else link
    if link in model.tip_links:
        tip = model.tip_links.index(link)
        return int(model.dh.tips[tip]), model.dh.tip_transforms[tip]
    return frame_of_link(model, 'argument link', link)


def _jacobian(model: RobotModel, q: NDArray, body: int, placed: NDArray) -> NDArray:
    """Return the Jacobian (..., 6, n) of what is fixed to DH frame ``body``, at ``placed``."""
    result = np.zeros((*q.shape[:-1], model.n, 6), dtype=q.dtype)
    if body >= 0:
        frames = frame_transforms(model.dh, q)
        origin = (frames[..., body, :, :] @ placed)[..., :3, 3]
        z = np.where(model.dh.carries[body, :, None], frames[..., :3, 2], 0.0)
        prismatic = model.dh.prismatic[:, None]
        turned = cross(z, origin[..., None, :] - frames[..., :3, 3])
        result[..., :3] = np.where(prismatic, z, turned)
        result[..., 3:] = np.where(prismatic, 0.0, z)
    return np.swapaxes(result, -1, -2)


def tip_wrench_torque(
    model: RobotModel, q: NDArray, tip_wrench: NDArray | None
) -> NDArray | float:
    """Return J(q)T w (..., n), what wrenches (..., 6 k) of the tips on the world take."""
    if tip_wrench is None:
        return 0.0
    rows = np.concatenate([tip_jacobian(model, q, tip) for tip in model.tip_links], axis=-2)
    return (tip_wrench[..., None, :] @ rows)[..., 0, :]


def reach(model: RobotModel) -> float:
    """Return how far a tip can be from the base link's origin at most [m]; maybe infinite."""
    dh = model.dh
    travel = np.where(dh.prismatic, np.abs(model.position_limits).max(axis=1), 0.0)
    rows = np.abs(dh.a) + np.abs(dh.b) + np.abs(dh.d) + travel
    tips = np.linalg.norm(dh.tip_transforms[:, :3, 3], axis=1)
    to_tips = [rows[moving].sum() for moving in dh.carries[dh.tips]]
    return float(np.linalg.norm(dh.base_transform[:3, 3]) + (to_tips + tips).max())


def kinematics_digest(model: RobotModel) -> str:
    """Return a digest of joint names and DH table: not of bodies, limits or gravity."""
    dh = model.dh
    tip_link = model.tip_link if dh.is_chain else model.tip_links
    digest = hashlib.sha256(repr((model.joint_names, model.base_link, tip_link)).encode())
    branches = () if dh.is_chain else (dh.gamma, dh.b, dh.parents, dh.tips)
    rows = (dh.alpha, dh.a, dh.beta, dh.d, dh.theta, dh.base_transform, dh.tip_transform)
    for array in (*rows, *branches):
        # Rounding makes a zero of either sign; adding zero makes them one.
        digest.update((np.round(array, _DECIMALS) + 0.0).tobytes())
    digest.update(np.asarray(dh.prismatic, dtype=bool).tobytes())
    return digest.hexdigest()
