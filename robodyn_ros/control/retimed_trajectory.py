# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories timed anew along their own paths, and slowed to what the drives can carry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from robodyn_ros.control.joint_path import Corners, JointPath, checked_waypoints
from robodyn_ros.control.law import Terms
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.planning import joint_columns
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.retiming import GRID_POINTS, retimed_path, retimed_points
from robodyn_ros.control.timed_motion import (
    Course,
    TimedMotion,
    TimingLimits,
    with_fewer_knots,
)
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.errors import InvalidArgument, NoSolution, Overload, Phrase, RejectedTrajectory
from robodyn_ros.spatial import FloatArray

KNOT_FRACTION = 1e-3
"""By this part of its effort limit a joint's torque may change where points are left out."""

PATH_TOLERANCE = 1e-4
"""By so much its position may [rad or m]."""

_HEADROOM = 1e-3  # of the time of a slowed trajectory: it is checked at other places, too
_LEAST_EFFORT = 1e-6  # of the arm's largest: that of a joint that needs none is rounding
_ROUNDING = 1e-6  # of its time, by which a motion that moves at an end may have to be slower
_COARSEST = 10.0  # the same, where no more points may be sent than would be needed
_CLOSEST = 1e-3  # of the bound, for points that keep limits between them
_SLOWEST = 1e-6  # slower an end is at rest [rad/s] or [m/s]


@dataclass(frozen=True, eq=False)
class RetimedTrajectory:
    """
    A trajectory timed anew.

    Parameters
    ----------
    trajectory : Trajectory
        Of positions and velocities, of the given joints in their order; without effort.
    motion : TimedMotion
        The same before points were left out, of all joints in chain order.
    given : Waypoints
        The motion that was given, of all joints.
    """

    trajectory: Trajectory
    motion: TimedMotion
    given: Waypoints


@dataclass(frozen=True, eq=False)
class Retiming:
    """
    How trajectories are timed anew.

    Parameters
    ----------
    limits : TimingLimits
    corners : str
        As in ``retime``; trajectories with velocities have a path, which only ``'goal'`` ignores.
    tolerance : float
        Of corners that are blended [rad or m].
    grid_points : int
    """

    limits: TimingLimits
    corners: Corners = 'spline'
    tolerance: float = 0.0
    grid_points: int = GRID_POINTS

    def of(
        self,
        trajectory: Trajectory,
        torque: ReferenceTorque,
        *,
        beginning: ReferenceState | None = None,
        begin: float = 0.0,
    ) -> RetimedTrajectory:
        """
        Return a trajectory timed anew along its path.

        Parameters
        ----------
        trajectory : Trajectory
            Joints that it does not name stay where the beginning has them.
        torque : ReferenceTorque
            Of the arm with what it carries; all of its terms count.
        beginning : ReferenceState, optional
            Where the arm is, in chain order, when the motion begins: where the first waypoint is
            later, the path begins there.
        begin : float
            When it is there, on the clock of the waypoints [s].

        Raises
        ------
        RejectedTrajectory
            A joint that the arm does not have, or that is not named although no beginning says
            where it is; what ``retime`` refuses.

        Notes
        -----
        The path of waypoints with velocities is that of the polynomials between them; without, it
        is as ``corners`` says. Effort in the trajectory is ignored.
        """
        torque = replace(torque, terms=Terms())
        trajectory = trajectory.without(torque.model.unmodelled_joints)
        try:
            reference, ends, times = _motion(trajectory, torque, beginning, begin)
            options: dict[str, Any] = {'ends': ends, 'grid_points': self.grid_points}
            if self.corners != 'goal' and np.isfinite(trajectory.velocities).all():
                path = JointPath.along(reference, times)
                motion = retimed_path(path, torque, self.limits, **options)
            else:
                points = np.vstack([reference.coefficients[:, 0], reference.end_state.position])
                if self.corners == 'goal':
                    points = points[[0, -1]]
                moves = np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-6
                kept = np.concatenate([[True], moves])
                if kept.sum() < 2:
                    raise InvalidArgument('trajectory', Phrase('no motion'), 'one that moves')
                points = checked_waypoints(points[kept], torque.model.n)
                motion = retimed_points(
                    points, torque, self.limits, self.corners, self.tolerance, **options
                )
        except (InvalidArgument, NoSolution, Overload) as error:
            raise RejectedTrajectory(
                error.element, error.value, error.allowed, unit=error.unit
            ) from error
        given = _sampled(reference, times)
        return RetimedTrajectory(
            self._trajectory(trajectory, motion, torque, max(begin, float(times[0]))),
            motion,
            given,
        )

    def _trajectory(
        self, given: Trajectory, motion: TimedMotion, torque: ReferenceTorque, begin: float
    ) -> Trajectory:
        """
        Return the motion with as few points as it needs to keep its limits between them.

        Raises
        ------
        NoSolution
            No points do, and it moves at an end: it cannot be slower.
        """
        whole = _in_nanoseconds(replace(motion.waypoints, time=begin + motion.time))
        reduced = partial(with_fewer_knots, whole, torque, self.limits)
        bound, allowed = knot_bound(motion, self.limits), 1.0
        while True:
            kept = reduced(allowed * bound, min(allowed, _COARSEST) * PATH_TOLERANCE)
            if len(kept) <= MOST_POINTS or allowed * KNOT_FRACTION > 1.0:
                break
            allowed = 2.0 * allowed
        fewer = whole.rows(kept)
        limits = replace(self.limits, rms=None)  # which the whole motion keeps
        scale = Course(torque, fewer, limits).scale()
        while scale > 1.0 and allowed > _CLOSEST and len(kept) < min(len(whole.time), MOST_POINTS):
            allowed = 0.25 * allowed
            closer = reduced(allowed * bound, min(allowed, _COARSEST) * PATH_TOLERANCE)
            if len(closer) > MOST_POINTS:
                break
            kept, fewer = closer, whole.rows(closer)
            scale = Course(torque, fewer, limits).scale()
        is_moving = bool(fewer.velocity[[0, -1]].any())
        if scale > (1.0 + _ROUNDING if is_moving else 1.0):
            if is_moving:
                raise NoSolution(
                    'trajectory points',
                    Phrase(f'{len(kept)} points need {scale:.4g} times the time'),
                    'a start and an end at rest, which can be slower',
                )
            fewer = _in_nanoseconds(fewer.slower((1.0 + _HEADROOM) * scale))
        columns = joint_columns(given, motion.joint_names)
        return _of_waypoints(given, fewer, columns)


def _in_nanoseconds(motion: Waypoints) -> Waypoints:
    """Return a motion with times as messages and files have them, and where it is then."""
    time = np.round(motion.time, 9)
    position, velocity, _ = motion.polynomials.at(time)
    return replace(motion, time=time, position=position, velocity=velocity)


def knot_bound(motion: TimedMotion, limits: TimingLimits) -> FloatArray:
    """Return by how much torques (n,) may change where points are left out [N m or N]."""
    largest = np.abs(motion.effort).max(axis=0)
    largest = np.maximum(largest, _LEAST_EFFORT * largest.max())
    return KNOT_FRACTION * np.where(np.isfinite(limits.effort), limits.effort, largest)


def slowed_trajectory(
    trajectory: Trajectory, torque: ReferenceTorque, effort_limits: FloatArray
) -> tuple[Trajectory, float]:
    """
    Return a trajectory as slow as the drives need to carry it, and its time scale, 1 or more.

    Parameters
    ----------
    trajectory : Trajectory
        Of all joints, with velocities. Efforts are left out.
    torque : ReferenceTorque
        Of the arm with what it carries.
    effort_limits : array, shape (n,)
        [N m or N]

    Raises
    ------
    RejectedTrajectory
        No time scale suffices.
    """
    torque = replace(torque, terms=Terms())
    reference, _, times = _motion(trajectory, torque, None, 0.0)
    none = np.full_like(effort_limits, np.inf)
    course = Course(torque, _sampled(reference, times), TimingLimits(effort_limits, none, none))
    try:
        scale = course.scale()
        if scale > 1.0:
            scale *= 1.0 + _HEADROOM
    except Overload as error:
        raise RejectedTrajectory(
            error.element, error.value, error.allowed, unit=error.unit
        ) from error
    slower = replace(
        trajectory,
        times=times[0] + scale * (times - times[0]),
        velocities=trajectory.velocities / scale,
        accelerations=trajectory.accelerations / scale**2,
        efforts=np.zeros_like(trajectory.efforts),
    )
    return slower, scale


def _of_waypoints(given: Trajectory, motion: Waypoints, columns: np.ndarray) -> Trajectory:
    position = motion.position[:, columns]
    return replace(
        given,
        times=motion.time,
        positions=position,
        velocities=motion.velocity[:, columns],
        accelerations=np.full_like(position, np.nan),
        efforts=np.zeros_like(position),
    )


def _motion(
    trajectory: Trajectory,
    torque: ReferenceTorque,
    beginning: ReferenceState | None,
    begin: float,
) -> tuple[Reference, tuple[FloatArray | None, FloatArray | None], FloatArray]:
    """Return the given motion of all joints, its velocities at the ends, its waypoints' times."""
    names = torque.model.joint_names
    columns = joint_columns(trajectory, names, all_named=beginning is None)
    times = trajectory.times
    is_begun = beginning is not None and times[0] > begin
    position = np.zeros(len(names)) if beginning is None else beginning.position
    points = Waypoints.completed(
        trajectory,
        columns,
        times,
        Reference.hold(position, 0.0),
        position[columns] if is_begun else trajectory.positions[0],
        begin if is_begun else float(times[0]),
    ).as_messages()
    if beginning is not None and is_begun:
        points = points.after(begin, beginning)
    times = points.time
    if len(times) < 2:
        raise RejectedTrajectory('trajectory points', len(times), 'at least two, for a path')
    first, last = (v if np.abs(v).max() > _SLOWEST else None for v in points.velocity[[0, -1]])
    return Reference.through(times.tolist(), points.states, 0.0), (first, last), times


def _sampled(reference: Reference, times: FloatArray) -> Waypoints:
    """Return the given motion through even places of its segments."""
    parts = max(2, -(-GRID_POINTS // (len(times) - 1)))
    fine = np.interp(np.arange(parts * (len(times) - 1) + 1) / parts, np.arange(len(times)), times)
    position, velocity, _ = reference.polynomials.at(fine)
    return Waypoints(fine, position, velocity)
