# SPDX-License-Identifier: Apache-2.0
"""Which robot an identification belongs to: a digest of its kinematics."""

from __future__ import annotations

import hashlib

import numpy as np

from robodyn_ros.errors import OtherKinematics
from robodyn_ros.model import RobotModel

# Geometry that differs by less [m or rad] is the same.
_DECIMALS = 8


def kinematics_digest(model: RobotModel) -> str:
    """Return a digest of joint names and DH table: not of bodies, limits or gravity."""
    digest = hashlib.sha256(repr((model.joint_names, model.base_link, model.tip_link)).encode())
    dh = model.dh
    for array in (dh.alpha, dh.a, dh.beta, dh.d, dh.theta, dh.base_transform, dh.tip_transform):
        # Rounding makes a zero of either sign; adding zero makes them one.
        digest.update((np.round(array, _DECIMALS) + 0.0).tobytes())
    digest.update(np.asarray(dh.prismatic, dtype=bool).tobytes())
    return digest.hexdigest()


def check_kinematics(digest: str, identified: RobotModel, model: RobotModel) -> None:
    """
    Refuse a model with other kinematics than those of an identification.

    Raises
    ------
    OtherKinematics
    """
    if identified.joint_names != model.joint_names:
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
