# SPDX-License-Identifier: Apache-2.0
"""The force and the moment at an arm's tip that external joint torques are explained by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.kinematics import forward_kinematics, tip_jacobian
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

EXPECTED_FORCE, EXPECTED_MOMENT = 100.0, 20.0
"""What a wrench is expected to be like before anything is known: deviations [N], [N m]."""


@dataclass(frozen=True, eq=False, repr=False)
class TipWrench(ArrayRecord):
    """
    What the world exerts on the arm at a point of the tip link.

    Attributes
    ----------
    wrench : array, shape (6,)
        Force [N], then the moment about the point [N m], in the tip link's axes.
    deviation : array, shape (6,)
        Standard deviations, from those of the joints' torques.
    undetermined : array, shape (k, 6)
        Unit vectors of wrenches, forces in units of ``EXPECTED_FORCE`` and moments in those of
        ``EXPECTED_MOMENT``, that hardly show in the torques at this pose: whatever acts along
        them is left out.
    """

    wrench: FloatArray
    deviation: FloatArray
    undetermined: FloatArray


def tip_wrench(
    model: RobotModel,
    position: FloatArray,
    torque: FloatArray,
    deviation: FloatArray,
    point: FloatArray,
) -> TipWrench:
    """
    Return the wrench at the tip that explains external torques best.

    Parameters
    ----------
    model : RobotModel
    position : array, shape (n,)
        [rad] or [m]
    torque : array, shape (n,)
        Of the outside on the joints [N m] or [N].
    deviation : array, shape (n,)
        Standard deviations of the torques, positive [N m] or [N].
    point : array, shape (3,)
        Where the force acts and what the moment is about, in the tip link's frame [m].

    Notes
    -----
    Least squares of J(q)T w = torque, each joint weighted by its deviation, damped by what a
    wrench is expected to be like: with A = diag(1 / deviation) JT diag(expected),
    w = expected (AT A + 1)^-1 AT (torque / deviation). The covariance is
    expected (AT A + 1)^-1 expected. A direction is undetermined where a singular value of A is
    under one: there the torques say less than the expectation did. An arm of fewer than six
    joints always has such directions, and every arm in a singular position.
    """
    expected = _EXPECTED
    jacobian = point_jacobian(model, position, point)
    scaled = jacobian.T * expected / deviation[:, None]
    _, sizes, directions = np.linalg.svd(scaled)
    sizes = np.concatenate([sizes, np.zeros(6 - len(sizes))])
    inverse = (directions.T / (1.0 + sizes**2)) @ directions
    wrench = expected * (inverse @ (scaled.T @ (torque / deviation)))
    return TipWrench(wrench, expected * np.sqrt(np.diag(inverse)), directions[sizes < 1.0])


def point_jacobian(model: RobotModel, position: FloatArray, point: FloatArray) -> FloatArray:
    """Return the Jacobian, shape (6, n), of a point of the tip link, in the tip link's axes."""
    rotation = forward_kinematics(model, position)[:3, :3]
    linear, angular = (rotation.T @ part for part in np.split(tip_jacobian(model, position), 2))
    return np.concatenate([linear + np.cross(angular.T, point).T, angular])


_EXPECTED = np.repeat([EXPECTED_FORCE, EXPECTED_MOMENT], 3)
