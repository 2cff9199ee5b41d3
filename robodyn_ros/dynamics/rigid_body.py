# SPDX-License-Identifier: Apache-2.0
"""
Rigid-body dynamics of a model: M(q) qdd + C(q, qd) qd + g(q) = tau.

Rotor inertia, where the model has any, stands on the diagonal of M. It is added here, once, to
what the formulations return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.arguments import checked_wrench
from robodyn_ros.dynamics import (
    generalized_dalembert,
    kane,
    lagrange_euler,
    lagrangian_coefficients,
    newton_euler,
)
from robodyn_ros.dynamics.coriolis import christoffel_coriolis_matrix
from robodyn_ros.dynamics.mass_matrix import composite_mass_matrix
from robodyn_ros.errors import InvalidArgument, NoSolution, NoSuchName, Phrase
from robodyn_ros.model import RobotModel, model_states

Method = Literal[
    'newton_euler', 'kane', 'lagrange_euler', 'generalized_dalembert', 'lagrangian_coefficients'
]
# The formulations by name; all take (model, q, qd, qdd, tip_wrench) and know no rotors.
METHODS: dict[Method, Callable[..., NDArray]] = {
    'newton_euler': newton_euler.joint_torques,
    'kane': kane.joint_torques,
    'lagrange_euler': lagrange_euler.joint_torques,
    'generalized_dalembert': generalized_dalembert.joint_torques,
    'lagrangian_coefficients': lagrangian_coefficients.joint_torques,
}


def inverse_dynamics(
    model: RobotModel,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    method: Method = 'newton_euler',
    tip_wrench: ArrayLike | Mapping[str, ArrayLike] | None = None,
) -> NDArray:
    """
    Return the joint torques that cause given accelerations.

    Parameters
    ----------
    model : RobotModel
    q, qd, qdd : array-like, shape (n,) or (N, n)
        Joint positions, velocities and accelerations [rad or m, and per s, s²].
    method : str
        The formulation, one of ``METHODS``.
    tip_wrench : array-like, shape (6,) or (N, 6), or a mapping of tip link to such, optional
        Force [N] and moment [N m] that the tip exerts on the world at the tip link's origin, in
        base link axes; of a tree by the tips' names, or of all k as (6 k,) or (N, 6 k).

    Returns
    -------
    array of the shape of q [N m or N]
        Without friction; see ``friction_torque``.

    Raises
    ------
    NoSuchName
        A wrench of a link that is no tip.
    NonFiniteValue, InvalidArgument
        An array or the method; or a link has first moments but no mass, and the formulation
        is written in centres of mass (``'kane'``, ``'generalized_dalembert'``).
    """
    q, qd, qdd = model_states(model, q=q, qd=qd, qdd=qdd)
    if method not in METHODS:
        raise InvalidArgument('argument method', method, ', '.join(map(repr, METHODS)))
    wrenches = None if tip_wrench is None else _tip_wrenches(model, tip_wrench, q)
    torque = METHODS[method](model, q, qd, qdd, wrenches) + model.rotor_inertia * qdd
    if model.coupled_rotor_inertia.any():
        rotors = (qdd @ model.coupling.T) * model.coupled_rotor_inertia
        torque = torque + rotors @ model.coupling
    return torque


def _tip_wrenches(
    model: RobotModel, tip_wrench: ArrayLike | Mapping[str, ArrayLike], q: NDArray
) -> NDArray:
    """Return the wrenches (6 k,) or (N, 6 k) of the tips; zero where one is not named."""
    tips = model.tip_links
    if not isinstance(tip_wrench, Mapping):
        return checked_wrench('tip_wrench', tip_wrench, q, 6 * len(tips))
    wrenches = np.zeros((*q.shape[:-1], 6 * len(tips)))
    for tip, given in tip_wrench.items():
        if tip not in tips:
            raise NoSuchName('argument tip_wrench', tip, f'one of {", ".join(map(repr, tips))}')
        first = 6 * tips.index(tip)
        wrenches[..., first : first + 6] = checked_wrench(f'tip_wrench[{tip!r}]', given, q)
    return wrenches


def gravity_torque(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return g(q), the torques that hold the arm still against gravity.

    Parameters
    ----------
    model : RobotModel
    q : array-like, shape (n,) or (N, n)
        Joint positions [rad or m].

    Returns
    -------
    array of the shape of q [N m or N]

    Raises
    ------
    InvalidArgument, NonFiniteValue
    """
    (q,) = model_states(model, q=q)
    still = np.zeros_like(q)
    return newton_euler.joint_torques(model, q, still, still)


def bias_torque(model: RobotModel, q: ArrayLike, qd: ArrayLike) -> NDArray:
    """
    Return C(q, qd) qd + g(q), the torques of a motion without acceleration.

    Parameters
    ----------
    model : RobotModel
    q, qd : array-like, shape (n,) or (N, n)
        Joint positions and velocities [rad or m, and per s].

    Returns
    -------
    array of the shape of q [N m or N]
        Coriolis, centrifugal and gravity torques, without friction.

    Raises
    ------
    InvalidArgument, NonFiniteValue
    """
    q, qd = model_states(model, q=q, qd=qd)
    return newton_euler.joint_torques(model, q, qd, np.zeros_like(q))


def mass_matrix(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return M(q), symmetric, with rotor inertia: on its diagonal, and where drives are coupled.

    Parameters
    ----------
    model : RobotModel
    q : array-like, shape (n,) or (N, n)
        Joint positions [rad or m].

    Returns
    -------
    array, shape (n, n) or (N, n, n)
        [kg m²] between revolute joints, [kg m] between a revolute and a prismatic one, [kg]
        between prismatic ones.

    Raises
    ------
    InvalidArgument, NonFiniteValue
    """
    (q,) = model_states(model, q=q)
    return composite_mass_matrix(model, q) + model.rotor_matrix


def coriolis_matrix(model: RobotModel, q: ArrayLike, qd: ArrayLike) -> NDArray:
    """
    Return C(q, qd) with C qd the Coriolis and centrifugal torque and dM/dt - 2 C skew-symmetric.

    Parameters
    ----------
    model : RobotModel
    q, qd : array-like, shape (n,) or (N, n)
        Joint positions and velocities [rad or m, and per s].

    Returns
    -------
    array, shape (n, n) or (N, n, n)

    Raises
    ------
    InvalidArgument, NonFiniteValue

    Notes
    -----
    The one of ``christoffel_symbols``: C_ij = sum over k of G_ijk qd_k.
    """
    q, qd = model_states(model, q=q, qd=qd)
    return christoffel_coriolis_matrix(model, q, qd)


def christoffel_symbols(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return G_ijk(q), symmetric in j and k: tau_i = sum of G_ijk qd_j qd_k.

    G_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2.

    Parameters
    ----------
    model : RobotModel
    q : array-like, shape (n,) or (N, n)
        Joint positions [rad or m].

    Returns
    -------
    array, shape (n, n, n) or (N, n, n, n)

    Raises
    ------
    InvalidArgument, NonFiniteValue
    """
    (q,) = model_states(model, q=q)
    return lagrangian_coefficients.christoffel_symbols(model, q)


def forward_dynamics(model: RobotModel, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> NDArray:
    """
    Return the joint accelerations that given torques cause, without friction.

    Parameters
    ----------
    model : RobotModel
    q, qd, tau : array-like, shape (n,) or (N, n)
        Joint positions, velocities and torques [rad or m, per s, N m or N].

    Returns
    -------
    array of the shape of q [rad/s² or m/s²]

    Raises
    ------
    InvalidArgument, NonFiniteValue
    NoSolution
        Some link that a joint moves has no inertia.
    """
    q, qd, tau = model_states(model, q=q, qd=qd, tau=tau)
    return _accelerations(mass_matrix(model, q), tau - bias_torque(model, q, qd))


def _accelerations(mass_matrix: NDArray, net_torque: NDArray) -> NDArray:
    """Return the accelerations (..., n) that a torque (..., n) causes, for M (..., n, n)."""
    try:
        np.linalg.cholesky(mass_matrix)
    except np.linalg.LinAlgError as error:
        diagonals = np.diagonal(mass_matrix, axis1=-2, axis2=-1).reshape(-1, mass_matrix.shape[-1])
        least = diagonals.min(axis=0)
        joint = int(np.argmin(least))
        what = f'inertia about joint {joint + 1} is {least[joint]:.3g}'
        if least[joint] > 0:
            what = f'smallest eigenvalue is {np.linalg.eigvalsh(mass_matrix).min():.3g}'
        raise NoSolution(
            'mass matrix',
            Phrase(what),
            'positive definite: inertia about every joint (see the findings)',
        ) from error
    return np.linalg.solve(mass_matrix, net_torque[..., None])[..., 0]
