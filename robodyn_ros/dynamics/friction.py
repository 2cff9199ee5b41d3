# SPDX-License-Identifier: Apache-2.0
"""Joint friction: the URDF's <dynamics>, and the terms of an identification."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.model import RobotModel, model_states

# At these the two parts of a friction curve have three quarters of their size [rad/s or m/s].
CURVE_VELOCITIES = (0.1, 0.4)


def drive_velocity(model: RobotModel, qd: NDArray) -> NDArray:
    """Return the velocities of the joints' own drives, then of the coupled ones (..., n + m)."""
    if not len(model.coupling):
        return qd
    return np.concatenate([qd, qd @ model.coupling.T], axis=-1)


def friction_torque(
    model: RobotModel, qd: ArrayLike, *, rigid_torque: ArrayLike | None = None
) -> NDArray:
    """
    Return the torque that overcomes friction: viscous * qd + coulomb * sign(qd), and more.

    An identified model has a curve, curve_1 tanh(qd / 0.1) + curve_2 tanh(qd / 0.4), an offset
    while the joint moves, ``offset * |sign(qd)|``, and friction that grows with the rigid body's
    torque, ``load * |rigid_torque| * sign(qd)``. Coupled drives have viscous and Coulomb friction
    and a curve at their own velocity, ``coupling @ qd``, and load joints by ``coupling.T``.

    Parameters
    ----------
    model : RobotModel
    qd : array-like, shape (n,) or (N, n)
        Joint velocities [rad/s or m/s].
    rigid_torque : array-like of the shape of qd, optional
        Of the inverse dynamics [N m or N]; friction that grows with it is left out where it is
        not given.

    Returns
    -------
    array of the shape of qd [N m or N]
        To be added to the rigid body's torque; zero where the joint stands still.

    Raises
    ------
    InvalidArgument, NonFiniteValue
    """
    if rigid_torque is None:
        (qd,) = model_states(model, qd=qd)
        return friction_of(model, qd, np.sign(drive_velocity(model, qd)))
    qd, rigid = model_states(model, qd=qd, rigid_torque=rigid_torque)
    return friction_of(model, qd, np.sign(drive_velocity(model, qd)), rigid)


def smooth_friction_torque(
    model: RobotModel,
    width: float,
    qd: NDArray,
    rigid_torque: NDArray | None = None,
) -> NDArray:
    """
    Return the friction torque with tanh(qd / width) for sign(qd), to be commanded.

    The sign would jump by twice the Coulomb friction wherever a motion turns round; the tangent
    has the slope coulomb / width there, and everything is zero at rest.

    Parameters
    ----------
    model : RobotModel
    width : float
        At this velocity three quarters of the Coulomb friction act, at three times this all but
        half a percent [rad/s or m/s].
    qd : array, shape (n,) or (N, n)
        Joint velocities [rad/s or m/s]; not checked.
    rigid_torque : array of the shape of qd, optional
        Of the inverse dynamics [N m or N].
    """
    return friction_of(model, qd, np.tanh(drive_velocity(model, qd) / width), rigid_torque)


def friction_of(
    model: RobotModel, qd: NDArray, direction: NDArray, rigid_torque: NDArray | None = None
) -> NDArray:
    """
    Return the friction torque under directions of motion from -1 to 1, of the shape of qd.

    Parameters
    ----------
    model : RobotModel
    qd : array, shape (..., n)
    direction : array, shape (..., n + m)
        Of the drives, as ``drive_velocity`` orders them.
    rigid_torque : array of the shape of qd, optional
    """
    coupled_direction, direction = direction[..., model.n :], direction[..., : model.n]
    torque = model.viscous_friction * qd + model.coulomb_friction * direction
    if not model.has_identified_friction:  # one look: this is called in every control cycle
        return torque
    if model.friction_curve.any():
        for factor, velocity in zip(model.friction_curve.T, CURVE_VELOCITIES, strict=True):
            torque = torque + factor * np.tanh(qd / velocity)
    if model.effort_offset.any():
        torque = torque + model.effort_offset * np.abs(direction)
    if rigid_torque is not None and model.load_friction.any():
        torque = torque + model.load_friction * np.abs(rigid_torque) * direction
    if model.coupled_friction.any():
        rate = qd @ model.coupling.T
        viscous, coulomb, *curve = model.coupled_friction.T
        coupled = viscous * rate + coulomb * coupled_direction
        for factor, velocity in zip(curve, CURVE_VELOCITIES, strict=True):
            coupled = coupled + factor * np.tanh(rate / velocity)
        torque = torque + coupled @ model.coupling
    return torque
