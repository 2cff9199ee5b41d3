# SPDX-License-Identifier: Apache-2.0
"""The columns of a body that the tip link carries."""

from __future__ import annotations

import numpy as np

from robodyn_ros.errors import NoSuchLink
from robodyn_ros.identification.rows import Rows
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray, moved_parameters


def carried_columns(model: RobotModel, rows: Rows) -> FloatArray:
    """
    Return what ten inertial parameters at the tip link add to each torque, shape (K, n, 10).

    Parameters
    ----------
    model : RobotModel
    rows : Rows
        The parameters are about the tip link's origin, along its axes.

    Raises
    ------
    NoSuchLink
        The tip link does not move.
    """
    body, matrix = carried_matrix(model)
    return rows.inertial[..., 10 * body : 10 * body + 10] @ matrix


def with_carried(model: RobotModel, parameters: FloatArray) -> FloatArray:
    """Return the bodies' parameters (n, 10) with ten about the tip link added to them."""
    body, matrix = carried_matrix(model)
    bodies = model.inertial_parameters.copy()
    bodies[body] += matrix @ parameters
    return bodies


def carried_matrix(model: RobotModel) -> tuple[int, FloatArray]:
    """
    Return the body that the tip link is part of, and the matrix (10, 10) to its parameters.

    Raises
    ------
    NoSuchLink
        The tip link does not move.
    """
    body, placed = model.link_frames[model.tip_link]
    if body < 0:
        raise NoSuchLink('tip link', model.tip_link, 'one that a joint moves')
    return body, np.stack([moved_parameters(column, placed) for column in np.eye(10)], axis=1)
