# SPDX-License-Identifier: Apache-2.0
"""
Coriolis matrix C(q, qd) by its Christoffel symbols, without computing one of them.

With V_i = d0A_j/dq_i 0A_j^-1, the motion of joint i as a 4 x 4 matrix in base coordinates, and
P_j the pseudo-inertia of link j moved there, Bejczy's (1974) coefficients are, for k <= m,

    D_im  = sum over links j of Tr(V_m P_j V_iT),
    h_ikm = sum over links j of Tr(V_k V_m P_j V_iT).

Summed over the velocities, sum_k h_ikm qd_k = C_im, the products of V_k before and after V_m
gather into the motion of whole links, W_j = sum over k <= j of qd_k V_k:

    C_im = sum over links j >= max(i, m) of Tr((Vd_m P_j + V_m W_j P_j) V_iT),
    Vd_m = W_m V_m - V_m W_m.

As dP_j/dt = W_j P_j + P_j W_jT, it follows that dM/dt = C + CT: dM/dt - 2 C is skew-symmetric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms, joint_operators
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import inverse_transform, pseudo_inertia


def christoffel_coriolis_matrix(model: RobotModel, q: NDArray, qd: NDArray) -> NDArray:
    """
    Return C(q, qd) (..., n, n): C_im = sum over k of the symbols [i, m, k] times qd_k.

    Parameters
    ----------
    model : RobotModel
    q, qd : array, shape (..., n)
        Positions and velocities [rad or m, and per s].

    Notes
    -----
    Of order n^2. Rotors do not enter: their inertia is constant.
    """
    frames = frame_transforms(model.dh, q)
    v = frames @ joint_operators(model.dh) @ inverse_transform(frames)
    w = np.cumsum(qd[..., None, None] * v, axis=-3)
    vd = w @ v - v @ w

    # Of links t to n as one body: pseudo-inertia, and the part of its rate before the transpose.
    own = frames @ pseudo_inertia(model.inertial_parameters) @ np.swapaxes(frames, -1, -2)
    body, rate = (np.cumsum(x[..., ::-1, :, :], axis=-3)[..., ::-1, :, :] for x in (own, w @ own))
    on_and_above = _traces(v, vd @ body + v @ rate)
    below = _traces(v @ body, vd) + _traces(v @ np.swapaxes(rate, -1, -2), v)
    return np.triu(on_and_above) + np.tril(below, -1)


def _traces(a: NDArray, b: NDArray) -> NDArray:
    """Return Tr(b_m a_iT) (..., i, m) for matrices a (..., i, 4, 4) and b (..., m, 4, 4)."""
    flat_a, flat_b = (x.reshape(*x.shape[:-2], 16) for x in (a, b))
    return flat_a @ np.swapaxes(flat_b, -1, -2)
