# SPDX-License-Identifier: Apache-2.0
"""A motion as the YAML of a trajectory_msgs/JointTrajectory, written without ROS."""

from __future__ import annotations

import json
from collections.abc import Sequence

from robodyn_ros.motions.motion_samples import MotionSamples

_NANOSECONDS = 1_000_000_000


def trajectory_as_yaml(joint_names: Sequence[str], motion: MotionSamples) -> str:
    """
    Return a motion as YAML text with the fields of the message; one line for each point.

    ``ros2 topic pub --once TOPIC trajectory_msgs/msg/JointTrajectory --yaml-file FILE`` sends it.

    Parameters
    ----------
    joint_names : sequence of n str
    motion : MotionSamples
        Its times count from the first.
    """
    # JSON is YAML, whatever a name holds, and its numbers read back bit by bit.
    lines = [f'joint_names: {json.dumps(list(joint_names))}', 'points:']
    for k, time in enumerate((motion.time - motion.time[0]).tolist()):
        sec, nanosec = divmod(round(time * _NANOSECONDS), _NANOSECONDS)
        point = {
            'positions': motion.q[k].tolist(),
            'velocities': motion.qd[k].tolist(),
            'accelerations': motion.qdd[k].tolist(),
            'time_from_start': {'sec': sec, 'nanosec': nanosec},
        }
        lines.append(f'- {json.dumps(point)}')
    return '\n'.join(lines) + '\n'
