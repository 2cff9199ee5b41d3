# SPDX-License-Identifier: Apache-2.0
"""Which robot an identification belongs to, by the digest of its kinematics."""

from __future__ import annotations

from robodyn_ros.errors import OtherKinematics
from robodyn_ros.kinematics import kinematics_digest
from robodyn_ros.model import RobotModel, checked_model


def check_kinematics(digest: str, identified: RobotModel, model: RobotModel) -> None:
    """
    Refuse a model with other kinematics than those of an identification.

    Raises
    ------
    OtherKinematics
    """
    if identified.joint_names != checked_model(model).joint_names:
        names = ', '.join(map(repr, identified.joint_names))
        raise OtherKinematics(
            'joints of the robot', model.joint_names, f'those identified: {names}'
        )
    if kinematics_digest(model) != digest:
        raise OtherKinematics(
            f'kinematics from {model.base_link!r} to {model.tip_link!r}',
            'not those of the robot that was identified',
            f'its DH table, from {identified.base_link!r} to {identified.tip_link!r}',
        )
