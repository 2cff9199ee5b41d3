# SPDX-License-Identifier: Apache-2.0
"""The order of the commands, which parameters with a value for each joint are in, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import NoSuchJoint, WrongShape
from robodyn_ros.model import RobotModel


def command_order(model: RobotModel, joints: Sequence[str]) -> np.ndarray:
    """
    Return the chain's index of each of the joints, shape (n,); none named: chain order.

    Raises
    ------
    NoSuchJoint
        The joints are no permutation of the chain's.
    """
    if not joints:
        return np.arange(model.n)
    if sorted(joints) != sorted(model.joint_names):
        raise NoSuchJoint(
            'parameter joints', list(joints), 'each of these once: ' + ', '.join(model.joint_names)
        )
    return np.array([model.joint_names.index(name) for name in joints])


def each_joint(model: RobotModel, settings: ControlSettings, name: str) -> np.ndarray:
    """
    Return a parameter in chain order, shape (n,): one value for all, or one for each joint.

    Raises
    ------
    WrongShape
        There are neither one nor n values.
    """
    given = np.array(getattr(settings, name), dtype=float)
    if len(given) not in (1, model.n):
        raise WrongShape(
            f'parameter {name}', f'{len(given)} values', f'1 or {model.n}, one for each joint'
        )
    values = np.empty(model.n)
    values[command_order(model, settings.joints)] = given
    return values
