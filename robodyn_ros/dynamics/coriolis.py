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

In a tree k <= j reads: joint k moves link j; what joints of two branches share is nothing.

As dP_j/dt = W_j P_j + P_j W_jT, it follows that dM/dt = C + CT: dM/dt - 2 C is skew-symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms, joint_operators
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import inverse_transform, pseudo_inertia


@dataclass(frozen=True)
class BaseMotions:
    """
    Motions as 4 x 4 matrices in base coordinates, (..., n, 4, 4) each.

    Attributes
    ----------
    v, v_rate : array
        V_i of the joints, and their rates.
    w : array
        W_j of the links.
    own : array
        The pseudo-inertia of each link.
    """

    v: NDArray
    v_rate: NDArray
    w: NDArray
    own: NDArray

    @classmethod
    def of(cls, model: RobotModel, q: NDArray, qd: NDArray) -> BaseMotions:
        """Return those of a model at positions and velocities (..., n)."""
        frames = frame_transforms(model.dh, q)
        v = frames @ joint_operators(model.dh) @ inverse_transform(frames)
        w = of_links(model, qd[..., None, None] * v)
        own = frames @ pseudo_inertia(model.inertial_parameters) @ np.swapaxes(frames, -1, -2)
        return cls(v, w @ v - v @ w, w, own)


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
    motions = BaseMotions.of(model, q, qd)
    body, velocity = (outer_sums(model, x) for x in (motions.own, motions.w @ motions.own))
    return split_traces(model, motions.v, motions.v_rate, body, motions.v, velocity)


def of_links(model: RobotModel, x: NDArray) -> NDArray:
    """Return the sums of x (..., n, 4, 4) over the joints that move each link."""
    return (model.dh.carries @ _flat(x)).reshape(x.shape)


def outer_sums(model: RobotModel, x: NDArray) -> NDArray:
    """Return the sums of x (..., n, 4, 4) over the links that each joint moves."""
    return (model.dh.carries.T @ _flat(x)).reshape(x.shape)


def split_traces(
    model: RobotModel,
    v: NDArray,
    a: NDArray,
    body: NDArray,
    b: NDArray,
    velocity: NDArray,
    turned: NDArray | float = 0.0,
) -> NDArray:
    """
    Return Tr((a_m body_t + b_m velocity_t) V_iT) at [i, m], t = max(i, m).

    For i <= m ``turned`` of m is added to the sum in brackets. All are (..., n, 4, 4).
    """
    carries = model.dh.carries
    on_and_above = _traces(v, a @ body + b @ velocity + turned)
    below = _traces(v @ body, a) + _traces(v @ np.swapaxes(velocity, -1, -2), b)
    return np.where(carries.T, on_and_above, np.where(carries, below, 0.0))


def _traces(a: NDArray, b: NDArray) -> NDArray:
    """Return Tr(b_m a_iT) (..., i, m) for matrices a (..., i, 4, 4) and b (..., m, 4, 4)."""
    return _flat(a) @ np.swapaxes(_flat(b), -1, -2)


def _flat(matrices: NDArray) -> NDArray:
    return matrices.reshape(*matrices.shape[:-2], 16)
