# SPDX-License-Identifier: Apache-2.0
"""The message of a trajectory that was filled with effort."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.ros.conversions import floats

_NANOSECONDS = 1_000_000_000


def filled_message(given: JointTrajectory, filled: Trajectory) -> JointTrajectory:
    """Return a filled trajectory under the header of the message that it was made from."""
    message = JointTrajectory(header=given.header, joint_names=list(filled.joint_names))
    has_acceleration = np.isfinite(filled.accelerations).all(axis=1)
    message.points = [
        JointTrajectoryPoint(
            positions=floats(filled.positions[k]),
            velocities=floats(filled.velocities[k]),
            accelerations=floats(filled.accelerations[k]) if has_acceleration[k] else [],
            effort=floats(filled.efforts[k]),
            time_from_start=_duration(time),
        )
        for k, time in enumerate(filled.times.tolist())
    ]
    return message


def given_indices(given: np.ndarray, filled: np.ndarray) -> list[int]:
    """Return for each filled point which given one is next, by their times [s]."""
    # A point that was given may be a rounding error from where it was.
    after = np.searchsorted(given, filled - 0.5e-9)
    return np.minimum(after, len(given) - 1).tolist()


def _duration(time: float) -> Duration:
    seconds, nanoseconds = divmod(round(time * _NANOSECONDS), _NANOSECONDS)
    return Duration(sec=seconds, nanosec=nanoseconds)
