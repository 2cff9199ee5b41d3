# SPDX-License-Identifier: Apache-2.0
"""What the command pipeline hands to those who send it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robodyn_ros.control.computed_torque import TorqueParts
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.reference import ReferenceState


class Command(NamedTuple):
    """
    One torque to send, and where it comes from.

    Parameters
    ----------
    torque : array, shape (n,)
        [N m] or [N], finite and within the limits.
    effort_limited, rate_limited : array of bool, shape (n,)
        Joints whose torque that limit changed.
    position_limited : array of bool, shape (n,)
        Joints beyond a position limit, where the guard acts.
    parts : TorqueParts or None
        What the law added up; None when there was no control cycle.
    state : MeasuredState
        The joint state behind it.
    reference : ReferenceState or None
        What was followed.
    """

    torque: np.ndarray
    effort_limited: np.ndarray
    rate_limited: np.ndarray
    position_limited: np.ndarray
    parts: TorqueParts | None
    state: MeasuredState
    reference: ReferenceState | None
