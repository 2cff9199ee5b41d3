# SPDX-License-Identifier: Apache-2.0
"""
Motions of an arm's joints over time, from files.

>>> motion = read_motion('motion.csv', model)
>>> inverse_dynamics(model, motion.q, motion.qd, motion.qdd)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from robodyn_ros.arguments import checked_type
from robodyn_ros.description.source import bytes_of_file, refuse_device, user_path
from robodyn_ros.errors import UnreadableSource, in_file
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.bag import is_bag, motion_of_bag
from robodyn_ros.motions.csv_text import motion_of_csv, table_as_csv
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.motions.point_to_point import example_motion
from robodyn_ros.motions.possible_positions import PossiblePositions
from robodyn_ros.motions.stamps import check_stamps_of_motion
from robodyn_ros.motions.velocity_check import velocity_findings

LARGEST_CSV = 2**28
"""Of a file [bytes]: ten minutes of seven joints at 1 kHz; reading takes ten times as much."""

_SAMPLED = 0.1
"""Longest step of a measured motion [s]; points further apart may be poses that are at rest."""

__all__ = ['MotionSamples', 'example_motion', 'read_motion', 'table_as_csv']


def read_motion(
    path: str | Path, joints: RobotModel | Sequence[str], *, topic: str | None = None
) -> MotionSamples:
    """
    Return the motion of some joints out of a CSV file or a ROS bag.

    Parameters
    ----------
    path : str or Path
        CSV text, unless it is a folder or ends as a bag does.
    joints : RobotModel or sequence of n str
        The arm, or names in the order of the columns wanted. Of an arm it is checked that
        positions and velocities are in radians and metres.
    topic : str, optional
        Of a bag; where not given, the only one with joint states.

    Returns
    -------
    MotionSamples
        Measured velocities that are not those of the positions are derived, and ``findings`` say
        so.

    Raises
    ------
    UnreadableSource
        No such file, CSV of more than ``LARGEST_CSV``, or rosbags, which reads bags, is not
        installed.
    MalformedData
        Joints are missing, times do not increase or are not in seconds, a number is not finite, or
        a position or a velocity is in degrees or millimetres.
    """
    path = user_path(checked_type('path', path, (str, Path), 'a path'))
    if not path.exists():
        raise UnreadableSource('no such file', str(path), 'the path of a CSV file or a ROS bag')
    refuse_device(path, 'motion')
    names = joints.joint_names if isinstance(joints, RobotModel) else joints
    with in_file(path):
        if is_bag(path):
            motion = motion_of_bag(path, names, topic)
        else:
            try:
                text = bytes_of_file(path, LARGEST_CSV, 'motion').decode('utf-8-sig')
                motion = motion_of_csv(text, names)
            except (UnicodeDecodeError, MemoryError) as error:
                raise UnreadableSource(
                    'motion', str(path), f'a readable CSV file ({error})'
                ) from error
        velocity = None if 'velocities' in motion.derived else motion.qd
        check_stamps_of_motion(motion.time, motion.q, velocity)
        if isinstance(joints, RobotModel):
            possible = PossiblePositions.of(joints)
            possible.check('sample', motion.q)
            possible.check_velocities(motion.time, motion.q, motion.qd)
        return _with_velocities_of_positions(motion, names)


def _with_velocities_of_positions(motion: MotionSamples, names: Sequence[str]) -> MotionSamples:
    """Return a measured motion with derived velocities where one is wrong, and with findings."""
    is_measured = motion.derived == 'accelerations' and len(motion.time) > 1
    if not is_measured or np.median(np.diff(motion.time)) > _SAMPLED:
        return motion
    found = velocity_findings(names, motion.time, motion.q, motion.qd)
    if not found:
        return motion
    return replace(MotionSamples.from_samples(motion.time, motion.q), findings=found)
