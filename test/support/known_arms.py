# SPDX-License-Identifier: Apache-2.0
"""Arms by name: the papers' files and four public arms, and the same in Pinocchio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oracles import PinocchioArm
from paper_arms import PAPER_ARMS, URDF
from robots import public_urdf

import robodyn_ros as rd

PUBLIC_ARMS = {
    'panda': ('panda.urdf', 'panda_link0', 'panda_link8'),
    'ur5': ('ur5_robot.urdf', 'base_link', 'tool0'),
    'kinova': ('kinova.urdf', 'j2s6s200_link_base', 'j2s6s200_end_effector'),
    'tiago': ('tiago.urdf', 'base_footprint', 'arm_tool_link'),
}


def urdf_of(name: str) -> Path:
    """Return the URDF of an arm."""
    if name in PAPER_ARMS:
        return URDF / PAPER_ARMS[name].file
    return public_urdf(PUBLIC_ARMS[name][0])


def known_arm(name: str, **options: Any) -> rd.RobotModel:
    """Return the model of an arm, from its base to its tip."""
    _, base, tip = PUBLIC_ARMS.get(name, (None, None, None))
    return rd.RobotModel.from_urdf(urdf_of(name), base_link=base, tip_link=tip, **options)


def known_pair(name: str, **options: Any) -> tuple[rd.RobotModel, PinocchioArm]:
    """Return the model of an arm, and the same arm in Pinocchio."""
    arm = known_arm(name, **options)
    return arm, PinocchioArm.of(urdf_of(name), arm)
