# SPDX-License-Identifier: Apache-2.0
"""Motions in files, the same for all commands and nodes: CSV, ROS bags, trajectories in YAML."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from robodyn_ros.control.planning import joint_columns
from robodyn_ros.control.reference import Reference
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.errors import MalformedData, Phrase, RejectedTrajectory, in_file
from robodyn_ros.model import RobotModel
from robodyn_ros.motions import MotionSamples, read_motion
from robodyn_ros.motions.possible_positions import PossiblePositions
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows, trajectory_of_yaml

_STEP = 5e-3  # between samples of a trajectory, at most, unless there are too many [s]
_MOST_SAMPLES = 20_000


def is_trajectory_file(path: Path) -> bool:
    """Return whether a file is taken for a trajectory in YAML, by its ending."""
    return path.suffix.lower() in ('.yaml', '.yml')


def trajectory_of_file(path: Path) -> Trajectory:
    """
    Return the trajectory in a YAML file.

    Raises
    ------
    UnreadableSource, MalformedData, RejectedTrajectory
        No such file; no trajectory, or one without times; its own numbers are wrong.
    """
    rows = _rows_of_file(path)
    with in_file(path):
        if _is_untimed(rows):
            raise MalformedData(
                'trajectory time_from_start',
                Phrase('no time from point to point'),
                'times that increase; robodyn retime gives them to a path without times',
            )
        return Trajectory.from_points(*rows)


def samples_of_file(path: Path, model: RobotModel, *, topic: str | None = None) -> MotionSamples:
    """
    Return the motion of an arm in a file.

    Parameters
    ----------
    path : Path
    model : RobotModel
    topic : str, optional
        Of a bag; where not given, the only one with joint states.

    Raises
    ------
    UnreadableSource, MalformedData, RejectedTrajectory
        What ``read_motion`` and ``trajectory_of_file`` refuse; joints that the arm does not have,
        or that are not named.

    Notes
    -----
    Between the points of a trajectory the arm moves as the dynamics node has it.
    """
    if not is_trajectory_file(path):
        return read_motion(path, model, topic=topic)
    trajectory = trajectory_of_file(path)
    with in_file(path):
        return _samples(trajectory.without(model.unmodelled_joints), model)


def path_of_file(
    path: Path,
    model: RobotModel,
    *,
    topic: str | None = None,
    cutoff: float | None = None,
    has_waypoints: bool = False,
) -> tuple[Trajectory, bool]:
    """
    Return the motion in a file for its path alone, from rest to rest, and whether it has times.

    Of samples there are no more than a trajectory holds. Where a trajectory has no times it gets
    some, and its velocities, which are per time, are left out.

    Parameters
    ----------
    path : Path
    model : RobotModel
    topic : str, optional
        Of a bag; where not given, the only one with joint states.
    cutoff : float, optional
        Low-pass of a measured motion [Hz].
    has_waypoints : bool
        Whether samples are waypoints alone, without velocities.

    Raises
    ------
    UnreadableSource, MalformedData, RejectedTrajectory, InvalidArgument
    """
    if is_trajectory_file(path):
        rows = _rows_of_file(path)
        is_timed = not _is_untimed(rows)
        if not is_timed:
            nothing: list[tuple[float, ...]] = [()] * len(rows.times)
            times = [float(k) for k in range(len(rows.times))]
            rows = TrajectoryRows(
                rows.joint_names, times, rows.positions, nothing, nothing, nothing
            )
        with in_file(path):
            return Trajectory.from_points(*rows), is_timed
    samples = read_motion(path, model, topic=topic)
    if cutoff is not None:
        samples = samples.low_passed(cutoff)
    # Measured velocities are not quite those of the positions, and at rest have any direction.
    samples = MotionSamples.from_samples(samples.time, samples.q)
    chosen = samples.chosen(MOST_POINTS)
    q, velocity = samples.q[chosen], samples.qd[chosen]
    velocity[[0, -1]] = 0.0
    if has_waypoints:
        velocity[:] = np.nan
    time = samples.time[chosen] - samples.time[0]
    nan = np.full_like(q, np.nan)
    return Trajectory(model.joint_names, time, q, velocity, nan, 0.0 * q), True


def _rows_of_file(path: Path) -> TrajectoryRows:
    """Return the rows of a trajectory without points that repeat the one before, time and all."""
    rows = trajectory_of_yaml(path)
    points = list(zip(*rows[1:], strict=True))
    kept = [point for k, point in enumerate(points) if k == 0 or point != points[k - 1]]
    return TrajectoryRows(rows.joint_names, *(zip(*kept, strict=True) if kept else rows[1:]))


def _is_untimed(rows: TrajectoryRows) -> bool:
    """Return whether points share their times with those before; none is earlier."""
    steps = np.diff(rows.times)
    return bool(len(steps) and (steps >= 0.0).all() and (steps == 0.0).any())


def _samples(trajectory: Trajectory, model: RobotModel) -> MotionSamples:
    """Return a trajectory of all joints at times close to one another."""
    columns = joint_columns(trajectory, model.joint_names, all_named=True)
    possible = PossiblePositions.of(model)
    possible.check('trajectory point', trajectory.positions, columns, RejectedTrajectory)
    times, begin = trajectory.times, trajectory.positions[0]
    others = Reference.hold(np.zeros(model.n), 0.0)  # there are none
    waypoints = Waypoints.completed(trajectory, columns, times, others, begin, float(times[0]))
    if len(times) == 1:
        return MotionSamples.from_samples(times, waypoints.position)
    longest = max(_STEP, waypoints.duration / _MOST_SAMPLES)
    parts = [
        np.linspace(first, last, int(np.ceil((last - first) / longest)), endpoint=False)
        for first, last in pairwise(times)
    ]
    time = np.concatenate([*parts, times[-1:]])
    with np.errstate(over='ignore', invalid='ignore'):
        states = waypoints.polynomials.at(time)
    if not all(np.isfinite(part).all() for part in states):
        raise RejectedTrajectory(
            'trajectory',
            Phrase('numbers too large to interpolate'),
            'values an arm can follow',
        )
    return MotionSamples.from_samples(time, *states)
