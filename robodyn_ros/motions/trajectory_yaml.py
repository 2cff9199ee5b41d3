# SPDX-License-Identifier: Apache-2.0
"""
The YAML of a trajectory_msgs/JointTrajectory, read and written without ROS.

It is what ``ros2 topic echo`` prints, and what ``ros2 topic pub --yaml-file`` sends. Messages that
hold one are read, too: goals of FollowJointTrajectory, and MoveIt's RobotTrajectory,
DisplayTrajectory of one part, and results.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from robodyn_ros.description.source import bytes_of_file
from robodyn_ros.description.yaml import parsed_yaml
from robodyn_ros.errors import MalformedData, Phrase, in_file
from robodyn_ros.motions.motion_samples import MotionSamples

LARGEST = 5_000_000
"""Of a file [bytes]: ten times what a thousand points of seven joints take."""

_FIELDS = ('positions', 'velocities', 'accelerations', 'effort')
# In which fields messages hold a trajectory, from the outer ones to the inner ones.
_HOLDERS = ('goal', 'result', 'planned_trajectory', 'trajectory', 'joint_trajectory')
_CUT = '...'  # in place of what ros2 topic echo leaves out
_NANOSECONDS = 1_000_000_000
_DURATION = {'sec': (-(2**31), 2**31), 'nanosec': (0, 2**32)}  # fields, and their ranges in ROS


class TrajectoryRows(NamedTuple):
    """
    What a message says, unchecked but for types; the lists have an entry for each point.

    Parameters
    ----------
    joint_names : list of str
    times : list of float
        After the start [s].
    positions, velocities, accelerations, effort : list of sequence of float
        A sequence is empty where a point gives none.
    """

    joint_names: Sequence[str]
    times: Sequence[float]
    positions: Sequence[Sequence[float]]
    velocities: Sequence[Sequence[float]]
    accelerations: Sequence[Sequence[float]]
    effort: Sequence[Sequence[float]]

    @classmethod
    def of_motion(
        cls, joint_names: Sequence[str], motion: MotionSamples, most: int | None = None
    ) -> TrajectoryRows:
        """Return a motion from time zero, without effort, with no more samples than most."""
        count = len(motion.time)
        chosen = motion.chosen(count if most is None else max(most, 2))
        times = (motion.time[chosen] - motion.time[0]).tolist()
        q, qd, qdd = (each[chosen].tolist() for each in (motion.q, motion.qd, motion.qdd))
        return cls(joint_names, times, q, qd, qdd, [()] * len(times))


def trajectory_of_yaml(path: Path) -> TrajectoryRows:
    """
    Return the only trajectory in a YAML file.

    Raises
    ------
    UnreadableSource
        There is no such file, or it is too large.
    MalformedData
        It does not hold one trajectory.
    """
    content = bytes_of_file(path, LARGEST, 'trajectory')
    with in_file(path):
        return _trajectory(content)


def _trajectory(content: bytes) -> TrajectoryRows:
    try:
        found = [part for part in parsed_yaml(content) if part is not None]
    except yaml.YAMLError as error:
        raise MalformedData('trajectory', Phrase(str(error)), 'YAML without aliases') from error
    if len(found) != 1 or not isinstance(found[0], dict):
        raise MalformedData(
            'trajectory',
            Phrase(f'{len(found)} documents'),
            'one trajectory_msgs/JointTrajectory, as of ros2 topic echo --once --full-length',
        )
    message = _held(found[0])
    try:
        names = [_text(name) for name in message['joint_names']]
        points = list(message['points'])
        if points[-1:] == [_CUT]:
            raise MalformedData(
                'trajectory points',
                Phrase(f'cut off after {len(points) - 1}'),
                'all of them: ros2 topic echo --full-length',
            )
        for point in points:
            _check_names(point, (*_FIELDS, 'time_from_start'))
        times = [_seconds(point.get('time_from_start') or {}) for point in points]
        rows = [[_numbers(point.get(field) or ()) for point in points] for field in _FIELDS]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise MalformedData(
            'trajectory',
            Phrase(f'no {error}' if isinstance(error, KeyError) else str(error)),
            'joint_names, and points with positions and time_from_start, as ROS writes them',
        ) from error
    return TrajectoryRows(names, times, *rows)


def _held(message: Any) -> Any:
    """Return the joint trajectory that a message holds, or is."""
    for name in _HOLDERS:
        message = message.get(name, message) if isinstance(message, dict) else message
        if isinstance(message, list):
            if len(message) != 1:
                raise MalformedData(
                    'trajectory', Phrase(f'{len(message)} parts'), 'one: each in a file of its own'
                )
            message = message[0]
        others = message.get('multi_dof_joint_trajectory') if isinstance(message, dict) else None
        if isinstance(others, dict) and others.get('points'):
            raise MalformedData(
                'multi_dof_joint_trajectory',
                Phrase(f'moves {others.get("joint_names")}'),
                'no points: joints of one degree of freedom alone are moved',
            )
    return message


def trajectory_as_yaml(rows: TrajectoryRows) -> str:
    """Return the text of a trajectory, one line for each point; its numbers read back exactly."""
    # JSON would do for names, but for characters that YAML takes only escaped in its own way.
    names = yaml.safe_dump(list(rows.joint_names), default_flow_style=True, width=LARGEST)
    lines = [f'joint_names: {names.strip()}', 'points:']
    for k, time in enumerate(rows.times):
        sec, nanosec = divmod(round(time * _NANOSECONDS), _NANOSECONDS)
        point: dict[str, Any] = {
            field: list(values[k])
            for field, values in zip(_FIELDS, rows[2:], strict=True)
            if len(values[k])
        }
        point['time_from_start'] = {'sec': sec, 'nanosec': nanosec}
        lines.append(f'- {json.dumps(point)}')
    return '\n'.join(lines) + '\n'


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f'a joint named {name!r}')
    return name


def _numbers(row: Sequence[object]) -> list[float]:
    return [float(value) for value in row]  # type: ignore[arg-type]


def _seconds(duration: dict[str, object]) -> float:
    """Return a duration [s]; a field of another name or type would be another motion."""
    _check_names(duration, _DURATION)
    for name, value in duration.items():
        if type(value) is not int or not _DURATION[name][0] <= value < _DURATION[name][1]:
            raise ValueError(f'time_from_start with {name} {value!r}')
    sec, nanosec = (duration.get(name, 0) for name in _DURATION)
    return sec + 1e-9 * nanosec  # type: ignore[operator]


def _check_names(message: dict[str, object], known: Collection[str]) -> None:
    for name in message.keys():
        if name not in known:
            raise ValueError(f'a field {name!r}, which is none of {", ".join(known)}')
