# SPDX-License-Identifier: Apache-2.0
"""Efforts from which a driver has taken its own gravity, with that gravity added again."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.identification.effort_examination import given_effort_scale
from robodyn_ros.identification.recording import Recording, checked_recordings
from robodyn_ros.model import RobotModel, checked_model


def with_driver_gravity(
    recording: Recording, model: RobotModel, effort_scale: ArrayLike = 1.0
) -> Recording:
    """
    Return a recording with the gravity that a driver took from its efforts added to them.

    Before anything else is done with it: its efforts then are all that the drives made.

    Parameters
    ----------
    recording : Recording
    model : RobotModel
        That the driver takes gravity from: the URDF's, ``with_payload`` of what the driver was
        told that the arm carries, whether or not it did.
    effort_scale : array-like, shape (n,), or float
        Torque [N m or N] for a unit of the recorded effort.

    Raises
    ------
    NoSuchName
        A joint of the model is not recorded.
    WrongType, NonFiniteValue, InvalidArgument
    """
    scale = given_effort_scale(checked_model(model), effort_scale)
    (mine,) = checked_recordings('recording', recording)
    mine = mine.of_joints(model.joint_names)
    return replace(mine, effort=mine.effort + gravity_torque(model, mine.position) / scale)
