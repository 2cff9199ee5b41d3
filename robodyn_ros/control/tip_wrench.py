# SPDX-License-Identifier: Apache-2.0
"""The force and the moment at an arm's tip that external joint torques are explained by."""

from __future__ import annotations

from dataclasses import dataclass

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.control.core_binding import core
from robodyn_ros.kinematics import forward_kinematics, tip_jacobian
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

EXPECTED_FORCE: float = core.EXPECTED_FORCE
EXPECTED_MOMENT: float = core.EXPECTED_MOMENT
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
    Least squares, damped by what a wrench is expected to be like: ``core/tip_wrench.hpp``.
    """
    found = core.tip_wrench(
        forward_kinematics(model, position),
        tip_jacobian(model, position),
        point,
        torque,
        deviation,
    )
    return TipWrench(*found)
