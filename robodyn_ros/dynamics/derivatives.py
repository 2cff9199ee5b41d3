# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of the rigid body's dynamics by positions, velocities and torques.

In base coordinates let V_i be the motion of joint i as a 4 x 4 matrix, W_j that of link j, P_j
its pseudo-inertia, as in ``robodyn_ros.dynamics.coriolis``. With A_j = dW_j/dt + W_j W_j + G, in
which G has minus gravity for its last column, the joint torques are

    tau_i = sum over links j >= i of Tr(A_j P_j V_iT).

A position q_m moves all that lies beyond joint m: it changes A_j by

    V''_m + 2 V'_m W_j + V_m (A_j - G) - A_j V_m,       ' = d/dt,

P_j by V_m P_j + P_j V_mT, and V_i for i > m by V_m V_i - V_i V_m. So d tau_i / d q_m is

    sum over j >= m of Tr((D_m P_j + 2 V'_m W_j P_j + V_m A_j P_j + A_j P_j V_mT) V_iT)   i <= m,
    sum over j >= i of Tr((D_m P_j + 2 V'_m W_j P_j) V_iT)                                i > m,

with D_m = V''_m - V_m G. The velocities' torque is a quadratic form of Christoffel symbols:
d tau / d qd = 2 C(q, qd). Carpentier and Mansard (2018, Analytical derivatives of rigid body
dynamics algorithms, Robotics: Science and Systems) and Singh, Russell and Wensing (2022,
Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra, IEEE
Robotics and Automation Letters 7) give the same in spatial vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.dynamics.coriolis import BaseMotions, of_links, outer_sums, split_traces
from robodyn_ros.dynamics.rigid_body import forward_dynamics, mass_matrix
from robodyn_ros.model import RobotModel, model_states


def inverse_dynamics_derivatives(
    model: RobotModel, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
) -> tuple[NDArray, NDArray]:
    """
    Return the derivatives of the inverse dynamics by positions and by velocities.

    Parameters
    ----------
    model : RobotModel
    q, qd, qdd : array-like, shape (n,) or (N, n)
        Joint positions, velocities and accelerations [rad or m, and per s, s²].

    Returns
    -------
    dtau_dq, dtau_dqd : array, shape (n, n) or (N, n, n)
        ``dtau_dq[i, m]`` is that of joint i's torque by joint m's position, without friction.
        The derivative by accelerations is the mass matrix; that by velocities twice the Coriolis
        matrix.

    Raises
    ------
    InvalidArgument, NonFiniteValue

    Notes
    -----
    Of order n², in array operations over all samples and joints at once.

    References
    ----------
    Carpentier and Mansard 2018, Singh, Russell and Wensing 2022; see the module.
    """
    q, qd, qdd = model_states(model, q=q, qd=qd, qdd=qdd)
    return _torque_derivatives(model, q, qd, qdd)


def forward_dynamics_derivatives(
    model: RobotModel, q: ArrayLike, qd: ArrayLike, tau: ArrayLike
) -> tuple[NDArray, NDArray, NDArray]:
    """
    Return the derivatives of the forward dynamics by positions, velocities and torques.

    Parameters
    ----------
    model : RobotModel
    q, qd, tau : array-like, shape (n,) or (N, n)
        Joint positions, velocities and torques [rad or m, per s, N m or N].

    Returns
    -------
    dqdd_dq, dqdd_dqd, dqdd_dtau : array, shape (n, n) or (N, n, n)
        Without friction. The last is the inverse of the mass matrix.

    Raises
    ------
    InvalidArgument, NonFiniteValue
    NoSolution
        Some link that a joint moves has no inertia.

    Notes
    -----
    As M(q) qdd + C(q, qd) qd + g(q) - tau stays zero, they are minus the inverse of M times the
    derivatives of the inverse dynamics at the acceleration that tau causes.

    References
    ----------
    Carpentier and Mansard 2018, section IV; see the module.
    """
    q, qd, tau = model_states(model, q=q, qd=qd, tau=tau)
    qdd = forward_dynamics(model, q, qd, tau)
    inverse = np.linalg.inv(mass_matrix(model, q))
    inverse = (inverse + np.swapaxes(inverse, -1, -2)) / 2
    by_position, by_velocity = _torque_derivatives(model, q, qd, qdd)
    return -inverse @ by_position, -inverse @ by_velocity, inverse


def linearization(
    model: RobotModel, q: ArrayLike, qd: ArrayLike, tau: ArrayLike
) -> tuple[NDArray, NDArray]:
    """
    Return A and B of the linear motion about a state: d(dx)/dt = A dx + B dtau, x = (q, qd).

    Parameters
    ----------
    model : RobotModel
    q, qd, tau : array-like, shape (n,) or (N, n)
        Joint positions, velocities and torques [rad or m, per s, N m or N].

    Returns
    -------
    A : array, shape (2 n, 2 n) or (N, 2 n, 2 n)
    B : array, shape (2 n, n) or (N, 2 n, n)
        Of the rigid body, without friction: viscous friction, if it counts, adds ``-B *
        model.viscous_friction`` to the last n columns of A.

    Raises
    ------
    InvalidArgument, NonFiniteValue, NoSolution

    Notes
    -----
    ``forward_dynamics_derivatives`` below the rows that say that qd is the rate of q. About a
    state of rest, tau = g(q), the motion stays near it while dx is small; elsewhere A and B vary
    along the motion.
    """
    by_position, by_velocity, by_torque = forward_dynamics_derivatives(model, q, qd, tau)
    n = model.n
    a = np.zeros((*by_position.shape[:-2], 2 * n, 2 * n))
    b = np.zeros((*by_position.shape[:-2], 2 * n, n))
    a[..., :n, n:] = np.eye(n)
    a[..., n:, :n] = by_position
    a[..., n:, n:] = by_velocity
    b[..., n:, :] = by_torque
    return a, b


def _torque_derivatives(
    model: RobotModel, q: NDArray, qd: NDArray, qdd: NDArray
) -> tuple[NDArray, NDArray]:
    """Return d tau / d q and d tau / d qd (..., n, n)."""
    motions = BaseMotions.of(model, q, qd)
    v, w, v_rate, own = motions.v, motions.w, motions.v_rate, motions.own
    w_rate = of_links(model, qdd[..., None, None] * v + qd[..., None, None] * v_rate)
    v_rate_2 = w_rate @ v - v @ w_rate + w @ v_rate - v_rate @ w
    field = np.zeros((4, 4))
    field[:3, 3] = -model.gravity

    # Of links t to n as one body: pseudo-inertia, and its products with velocity, acceleration.
    accelerated = (w_rate + w @ w + field) @ own
    body, velocity, force = (outer_sums(model, x) for x in (own, w @ own, accelerated))
    change = v_rate_2 - v @ field
    turned = v @ force
    turned = turned + force @ np.swapaxes(v, -1, -2)
    by_position = split_traces(model, v, change, body, 2.0 * v_rate, velocity, turned)
    by_velocity = split_traces(model, v, 2.0 * v_rate, body, 2.0 * v, velocity)
    return by_position, by_velocity
