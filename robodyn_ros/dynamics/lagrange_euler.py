# SPDX-License-Identifier: Apache-2.0
"""
Lagrange-Euler dynamics in 4 x 4 matrices (Bejczy 1974; Fu, Gonzalez and Lee 1987, section 3.2).

With 0A_i the transform of frame i to the base and J_i the pseudo-inertia of link i,

    U_ij  = d 0A_i / dq_j          = 0A_j Q_j jA_i,               j <= i        (3.2-11)
    U_ijk = d2 0A_i / dq_j dq_k    = 0A_j Q_j jA_k Q_k kA_i,      j <= k <= i   (3.2-13)
    D_ik  = sum over links j of Tr(U_jk J_j U_jiT)                              (3.2-31)
    h_ikm = sum over links j of Tr(U_jkm J_j U_jiT)                             (3.2-33)
    c_i   = - sum over links j of g . U_ji r_j m_j                              (3.2-34)

In modified DH joint j acts about z_j, so that Q_j stands behind 0A_j; in the papers' standard DH
it stands in front of the last transform of it. Appendix D of Bejczy 1974 omits the transforms
that lead up to the lowest index of a coefficient. The same partition of the matrices, its
P = B J BT, takes the sum over links inside the trace: with P_t that of links t to n as one, in
frame t, only the term of the highest index is left, and n^4 traces become n^3.

Corrected against the print: off-diagonals of (3.2-18), (3.2-19) and of Bejczy's (10) are minus
those of the tensor defined there; U_ji in (3.2-24), (3.2-34) is not transposed; Bejczy's (12)-(17)
list each Coriolis pair once where his (1) sums both orders, and his (31), (33), (48), (50), (52),
(54), (C.1)-(C.4) are minus the holding torque of his (1), (26), which is c.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms, joint_operators, relative_transforms
from robodyn_ros.dynamics.centers_of_mass import outer_pseudo_inertias
from robodyn_ros.kinematics import tip_wrench_torque
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import matrix_times, pseudo_inertia

Coefficients = tuple[NDArray, NDArray, NDArray]


def joint_torques(
    model: RobotModel,
    q: NDArray,
    qd: NDArray,
    qdd: NDArray,
    tip_wrench: NDArray | None = None,
    *,
    leading_transforms: bool = False,
) -> NDArray:
    """
    Return the joint torques (..., n) [N m or N], without rotor inertia, by (3.2-25).

    Parameters
    ----------
    model : RobotModel
    q, qd, qdd : array, shape (..., n)
        Positions, velocities, accelerations [rad or m, and per s, s²].
    tip_wrench : array, shape (6 k,) or (..., 6 k), optional
        Force [N] and moment [N m] that each tip exerts on the world, about the tip link's origin,
        in base link axes.
    leading_transforms : bool
        Whether to carry the transforms along that Appendix D of Bejczy 1974 omits.

    Notes
    -----
    Of order n^3; with the leading transforms n^4.
    """
    coefficients = complete_coefficients if leading_transforms else shortened_coefficients
    inertia, coriolis, gravity = coefficients(model, q)
    h = matrix_times(matrix_times(coriolis, qd[..., None, :]), qd)
    return matrix_times(inertia, qdd) + h + gravity + tip_wrench_torque(model, q, tip_wrench)


def shortened_coefficients(model: RobotModel, q: NDArray) -> Coefficients:
    """
    Return D (..., n, n), h (..., n, n, n) and c (..., n) by Appendix D of Bejczy 1974.

    Parameters
    ----------
    model : RobotModel
    q : array, shape (..., n)
        Joint positions [rad or m].

    Notes
    -----
    h_ikm is symmetric in k and m: h_i = sum over k and m of h_ikm qd_k qd_m.
    """
    n = model.n
    step = joint_operators(model.dh)
    to_frame = relative_transforms(model.dh, q)
    own = pseudo_inertia(model.inertial_parameters)
    bodies = outer_pseudo_inertias(to_frame, own)
    gravity = frame_transforms(model.dh, q)[..., :3, :3].swapaxes(-1, -2) @ model.gravity

    inertia = np.zeros((*q.shape, n), dtype=to_frame.dtype)
    coriolis = np.zeros((*q.shape, n, n), dtype=to_frame.dtype)
    for s in range(n):
        # All coefficients whose lowest index is s, in frame s: u[i, t] is U_ti without 0A_s.
        u = to_frame[..., s, s:, None, :, :] @ step[s:, None] @ to_frame[..., s:, s:, :, :]
        body = bodies[..., s:, :, :]
        first = u[..., 0, :, :, :]
        seen = first @ body
        inertia[..., s, s:] = inertia[..., s:, s] = (_diagonal(u) * seen).sum(axis=(-2, -1))

        # i = s lowest: Tr(U_mkm P_m U_msT) for k <= m, where U_mkm = u[k, m] Q_m.
        projected = seen @ _transposed(step[s:])
        coriolis[..., s, s:, s:] = _symmetric(_paired_traces(u, projected))
        # k = s lowest: Tr(Q_s u[m, t] P_t U_tiT), t = max(i, m): first t = m, then t = i.
        highest = _diagonal(u) @ body
        inner = _paired_traces(u, step[s] @ highest)
        outer = _paired_traces(u, step[s].T @ highest)
        pair = np.triu(inner) + np.swapaxes(np.triu(outer, 1), -1, -2)
        coriolis[..., s:, s, s:] = pair
        coriolis[..., s:, s:, s] = pair
    moved = (step @ bodies)[..., :3, 3]
    return inertia, coriolis, -(gravity * moved).sum(axis=-1)


def complete_coefficients(model: RobotModel, q: NDArray) -> Coefficients:
    """
    Return D, h and c as ``shortened_coefficients`` does, by (3.2-31), (3.2-33) and (3.2-34).

    Every matrix leads down to the base, and every coefficient is a sum over links.
    """
    n = model.n
    step = joint_operators(model.dh)
    frames = frame_transforms(model.dh, q)
    to_frame = relative_transforms(model.dh, q)
    own = pseudo_inertia(model.inertial_parameters)
    inertia = np.zeros((*q.shape, n), dtype=frames.dtype)
    coriolis = np.zeros((*q.shape, n, n), dtype=frames.dtype)
    gravity = np.zeros(q.shape, dtype=frames.dtype)
    for j in range(n):
        # Joints 0 to j move link j; u[i] is U_ji, second[k, m] is U_jkm for k <= m.
        up_to = slice(0, j + 1)
        last = step[up_to] @ to_frame[..., up_to, j, :, :]
        u = frames[..., up_to, :, :] @ last
        before = frames[..., up_to, None, :, :] @ step[up_to, None]
        second = before @ to_frame[..., up_to, up_to, :, :] @ last[..., None, :, :, :]
        weighed = u @ own[j]
        inertia[..., up_to, up_to] += _traces(weighed, u)
        square = _traces(second.reshape(*q.shape[:-1], (j + 1) ** 2, 4, 4), weighed)
        square = square.reshape(*q.shape[:-1], j + 1, j + 1, j + 1)
        coriolis[..., up_to, up_to, up_to] += _symmetric(np.moveaxis(square, -1, -3))
        gravity[..., up_to] -= weighed[..., :3, 3] @ model.gravity
    return inertia, coriolis, gravity


def _traces(a: NDArray, b: NDArray) -> NDArray:
    """Return Tr(a_i b_jT) (..., i, j) for matrices a (..., i, 4, 4) and b (..., j, 4, 4)."""
    flat_a = a.reshape(*a.shape[:-2], 16)
    flat_b = b.reshape(*b.shape[:-2], 16)
    return flat_a @ np.swapaxes(flat_b, -1, -2)


def _paired_traces(a: NDArray, b: NDArray) -> NDArray:
    """Return Tr(a_ij b_jT) (..., i, j) for matrices a (..., i, j, 4, 4) and b (..., j, 4, 4)."""
    return np.einsum('...ijkl,...jkl->...ij', a, b)


def _symmetric(upper: NDArray) -> NDArray:
    """Return the symmetric matrices (..., m, m) with these on and above the diagonal."""
    return np.triu(upper) + np.swapaxes(np.triu(upper, 1), -1, -2)


def _diagonal(pairs: NDArray) -> NDArray:
    """Return pairs[t, t] (..., m, 4, 4) out of pairs (..., m, m, 4, 4)."""
    index = np.arange(pairs.shape[-3])
    return pairs[..., index, index, :, :]


def _transposed(matrices: NDArray) -> NDArray:
    return np.swapaxes(matrices, -1, -2)
