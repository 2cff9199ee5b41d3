# SPDX-License-Identifier: Apache-2.0
"""Joint friction, viscous and Coulomb, as the URDF's <dynamics> gives it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.arguments import checked_states
from robodyn_ros.model import RobotModel


def friction_torque(model: RobotModel, qd: ArrayLike) -> NDArray:
    """
    Return the torque that overcomes friction: viscous * qd + coulomb * sign(qd).

    Parameters
    ----------
    model : RobotModel
    qd : array-like, shape (n,) or (N, n)
        Joint velocities [rad/s or m/s].

    Returns
    -------
    array of the shape of qd [N m or N]
        To be added to the rigid body's torque; zero where the joint stands still.

    Raises
    ------
    WrongShape, NonFiniteValue
    """
    (qd,) = checked_states(model.n, qd=qd)
    return model.viscous_friction * qd + model.coulomb_friction * np.sign(qd)
