# SPDX-License-Identifier: Apache-2.0
"""
Energies as matrices times the inertial parameters, link by link (Gautier and Khalil 1988, 7-1).

For the link parameters X_j of eq. (3), kinetic energy E = DE_j . X_j and potential energy
U = DU_j . X_j, with

    DE_j = lambda_j DE_(j-1) + f_j,    DU_j = lambda_j DU_(j-1)        (17), (19), appendix

lambda_j is the transpose of the matrix that moves a body's parameters from frame j to frame j - 1:
with joint j at rest, link j is one body with link j - 1, which in a tree is the one before it.
Against the print: f_j takes qd_j where the appendix has q_j. The table's Hayati angle is in
lambda_j like the other constants.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.dh.frames import step_transforms
from robodyn_ros.model import RobotModel, model_states
from robodyn_ros.spatial import cross, moved_parameters


def energy_regressor(model: RobotModel, q: ArrayLike, qd: ArrayLike) -> tuple[NDArray, NDArray]:
    """
    Return DE and DU: the energies of the links as linear forms in their inertial parameters.

    ``DE @ model.inertial_parameters.ravel()`` is the kinetic energy without rotors [J], ``DU @``
    the same the potential energy [J], zero for a mass at the base link's origin (Gautier and
    Khalil 1988, eqs. 10, 11, 17 and 19).

    Parameters
    ----------
    model : RobotModel
    q, qd : array-like, shape (n,) or (N, n)
        Joint positions and velocities [rad or m, and per s].

    Returns
    -------
    DE, DU : array, shape (10 n,) or (N, 10 n)

    Raises
    ------
    InvalidArgument, NonFiniteValue
    """
    q, qd = model_states(model, q=q, qd=qd)
    steps = step_transforms(model.dh, q)
    kinetic = np.zeros((*q.shape, 10))
    potential = np.zeros((*q.shape, 10))
    in_base_link = np.concatenate([np.zeros(6), -model.gravity, [0.0]])
    du_base = recursion_matrix(model.dh.base_transform) @ in_base_link
    base = np.zeros((*q.shape[:-1], 10)), du_base, np.zeros((*q.shape[:-1], 6))
    links = [base] * (model.n + 1)  # the last one, of index -1, is the base
    for j, parent in enumerate(model.parents.tolist()):
        de, du, twist = links[parent]
        step, rate = steps[..., j, :, :], qd[..., j, None]
        axis = joint_axis(bool(model.dh.prismatic[j]))
        lambda_j = recursion_matrix(step)
        swung = moved_twist(step, twist)
        f_j = rate * energy_form(axis, swung) + rate**2 * energy_form(axis, axis) / 2
        de = (lambda_j @ de[..., None])[..., 0] + f_j
        du = (lambda_j @ du[..., None])[..., 0]
        twist = swung + axis * rate
        kinetic[..., j, :], potential[..., j, :] = de, du
        links[j] = de, du, twist
    shape = (*q.shape[:-1], 10 * model.n)
    return kinetic.reshape(shape), potential.reshape(shape)


def recursion_matrix(t: NDArray) -> NDArray:
    """
    Return lambda (..., 10, 10) for transforms (..., 4, 4) that place a frame in the one before.

    Row i holds what the i-th parameter of a body counts for among its parameters about the frame
    before (the appendix's DJ1, DS1, DM1 and the transposed transform).
    """
    return moved_parameters(np.eye(10), t[..., None, :, :])


def moved_twist(t: NDArray, twist: NDArray) -> NDArray:
    """
    Return the twist (w, v) (..., 6) of a body about the frame that ``t`` places, in its axes.

    ``twist`` is its twist about the frame before, in that one's axes: eqs. (7) and (8) without
    the joint's own rate.
    """
    w, v = twist[..., None, :3], twist[..., None, 3:]
    rotation = t[..., :3, :3]
    swung = v + cross(w, t[..., None, :3, 3])
    return np.concatenate([w @ rotation, swung @ rotation], axis=-1)[..., 0, :]


def joint_axis(prismatic: bool) -> NDArray:
    """Return the twist (6,) of frame j for a unit rate of joint j."""
    return np.eye(6)[5 if prismatic else 2]


def energy_form(one: NDArray, other: NDArray) -> NDArray:
    """
    Return the bilinear form (..., 10) whose half at (twist, twist) is DE, from twists (..., 6).

    Half of it gives the appendix's DE_1 to DE_10, as eq. (6) has them: w w in the tensor's
    elements, v x w in the first moment's, v . v in the mass.
    """
    w, v = one[..., :3], one[..., 3:]
    x, u = other[..., :3], other[..., 3:]
    product = w[..., :, None] * x[..., None, :]
    product = product + np.swapaxes(product, -1, -2)
    tensor = np.stack(
        [
            product[..., 0, 0] / 2,
            product[..., 0, 1],
            product[..., 0, 2],
            product[..., 1, 1] / 2,
            product[..., 1, 2],
            product[..., 2, 2] / 2,
        ],
        axis=-1,
    )
    first_moment = cross(v, x) + cross(u, w)
    return np.concatenate([tensor, first_moment, (v * u).sum(axis=-1, keepdims=True)], axis=-1)
