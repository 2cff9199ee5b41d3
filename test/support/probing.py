# SPDX-License-Identifier: Apache-2.0
"""
D, h and c out of Newton-Euler alone (Fu, Gonzalez and Lee 1987, problem 3.11).

The recursion is a function of q, qd and qdd that returns D qdd + h + c. Asked the right questions
it gives each part: at rest it returns c; a unit acceleration of joint k without velocity or
gravity returns column k of D; and a velocity without acceleration or gravity returns h, whose
coefficients follow from the velocities e_k and e_k + e_m.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import robodyn_ros as rd
from robodyn_ros.dynamics import lagrange_euler, lagrangian_coefficients
from robodyn_ros.dynamics.newton_euler import joint_torques
from robodyn_ros.model import RobotModel


def probed_inertia(model: RobotModel, q: NDArray) -> NDArray:
    """Return D (..., n, n) at q (..., n) by n calls of Newton-Euler, in one batch."""
    at, units = _batch(q, np.eye(model.n))
    columns = joint_torques(model.with_gravity((0, 0, 0)), at, np.zeros_like(at), units)
    return np.swapaxes(columns, -1, -2)


def probed_velocity_coefficients(model: RobotModel, q: NDArray) -> NDArray:
    """
    Return h_ikm (..., n, n, n), symmetric in k and m: h_i = sum of h_ikm qd_k qd_m.

    As h is quadratic in qd, 2 h_ikm = h_i(e_k + e_m) - h_i(e_k) - h_i(e_m): n (n + 1) / 2 calls.
    """
    n = model.n
    k, m = np.triu_indices(n)
    at, velocities = _batch(q, np.eye(n)[k] + np.eye(n)[m])
    still = np.zeros_like(at)
    pairs = np.swapaxes(
        joint_torques(model.with_gravity((0, 0, 0)), at, velocities, still), -1, -2
    )
    # The velocity 2 e_k gives 4 h_ikk.
    alone = pairs[..., k == m] / 4
    coefficients = np.empty((*q.shape, n, n), dtype=pairs.dtype)
    half = (pairs - alone[..., k] - alone[..., m]) / 2
    coefficients[..., k, m] = coefficients[..., m, k] = half
    return coefficients


def probed_gravity(model: RobotModel, q: NDArray) -> NDArray:
    """Return c (..., n) at q (..., n): what holds the arm still."""
    still = np.zeros_like(q)
    return joint_torques(model, q, still, still)


def coefficients_by(road: str, model: RobotModel, q: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return D (..., n, n), h (..., n, n, n) and c (..., n) by one of five roads."""
    if road == 'lagrange_euler':
        return lagrange_euler.shortened_coefficients(model, q)
    if road == 'lagrange_euler, complete':
        return lagrange_euler.complete_coefficients(model, q)
    inertia, velocity, gravity = {
        'lagrangian_coefficients': (
            lagrangian_coefficients.inertial_coefficients,
            lagrangian_coefficients.christoffel_symbols,
            lagrangian_coefficients.gravitational_coefficients,
        ),
        'newton_euler': (probed_inertia, probed_velocity_coefficients, probed_gravity),
        'public': (rd.mass_matrix, rd.christoffel_symbols, rd.gravity_torque),
    }[road]
    return inertia(model, q), velocity(model, q), gravity(model, q)


def _batch(q: NDArray, probes: NDArray) -> tuple[NDArray, NDArray]:
    """Return q and the probes (p, n) as arrays (..., p, n)."""
    shape = (*q.shape[:-1], *probes.shape)
    return np.broadcast_to(q[..., None, :], shape), np.broadcast_to(probes, shape)
