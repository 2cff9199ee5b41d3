# SPDX-License-Identifier: Apache-2.0
"""A motion as the trajectory message that an arm is sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_ros.control.trajectory import MOST_POINTS
from robodyn_ros.motions import MotionSamples
from robodyn_ros.ros.conversions import floats
from robodyn_ros.spatial import FloatArray

POINT_RATE = 50.0  # most points of a trajectory a second


def trajectory_message(
    joint_names: Sequence[str], motion: MotionSamples, start: float, lead: float
) -> JointTrajectory:
    """
    Return the message of a motion that begins at a stamp [s], of ``MOST_POINTS`` at most.

    So long before [s] the way to its first point begins: an arm is never quite there.
    """
    count = len(motion.time)
    wanted = int(min(MOST_POINTS, np.ceil(motion.time[-1] * POINT_RATE) + 1, count))
    chosen = np.unique(np.linspace(0, count - 1, max(wanted, 2)).round().astype(int))
    message = JointTrajectory(
        joint_names=list(joint_names),
        points=[
            JointTrajectoryPoint(
                positions=floats(motion.q[k]),
                velocities=floats(motion.qd[k]),
                accelerations=floats(motion.qdd[k]),
                time_from_start=_duration(lead + float(motion.time[k])),
            )
            for k in chosen
        ],
    )
    message.header.stamp = Time(**_parts_of(start - lead))
    return message


def resting_message(
    joint_names: Sequence[str], position: FloatArray, duration: float
) -> JointTrajectory:
    """Return the message that asks for rest at a position (n,) after a time [s], from now on."""
    rest = JointTrajectoryPoint(
        positions=floats(position),
        velocities=floats(np.zeros_like(position)),
        time_from_start=_duration(duration),
    )
    return JointTrajectory(joint_names=list(joint_names), points=[rest])


def _duration(value: float) -> Duration:
    return Duration(**_parts_of(value))


def _parts_of(value: float) -> dict[str, int]:
    sec, nanosec = divmod(round(value * 1e9), 10**9)
    return {'sec': sec, 'nanosec': nanosec}
