# SPDX-License-Identifier: Apache-2.0
"""
A joint trajectory with the model's torque in the ``effort`` of its points.

The ROS 2 joint trajectory controller adds the effort of its points to its PID where it commands
effort alone. It interpolates that effort linearly between two points which both have one;
positions it interpolates by cubics where both points have velocities, by quintics where both have
accelerations too, and linearly otherwise. It holds the last point, with its effort.

So that its feedforward is the model's torque all the way,

- points are inserted on the path where a straight line between the torques would err by more than
  a bound. They have the fields of their segment: the path stays what it is;
- where the acceleration jumps, as between cubics, at the start and at the end, the torque changes
  over one period of the controller, from a point to a second one that far behind it;
- waypoints with positions only, between which velocities would jump, get velocities and
  accelerations as in ``planning``;
- joints that the trajectory does not name come to rest where they are and are held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.control.effort_pieces import Pieces, refined
from robodyn_ros.control.path_torque import PathTorque
from robodyn_ros.control.planning import completed_waypoints, joint_columns
from robodyn_ros.control.reference import Reference, ReferenceState, joined
from robodyn_ros.control.reference_torque import ReferenceTorque
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.ros_parameters import parameters_of

_DEFAULTS = {p.name: p.default for p in parameters_of('feedforward')}

ERROR_FRACTION: float = _DEFAULTS['error_fraction']
"""
The bound of the error where none is given, as a fraction of the effort limits.

What is missing is left to the gains of the controller: low ones for the light joints of a wrist.
"""

CONTROLLER_PERIOD: float = _DEFAULTS['controller_period']
"""Of the controllers of most arms that take torques [s]."""


@dataclass(frozen=True, eq=False)
class FillingSettings:
    """
    What filling holds itself to; each array has shape (n,), in chain order.

    Parameters
    ----------
    effort_limits : array
        Largest torque that the drives may be asked for [N m] or [N].
    error_bound : array
        Largest error of the interpolated torque [N m] or [N], but for the period after a jump.
    command_scale : array
        What the controller's commands are in, per torque.
    period : float
        Of the controller [s].
    settle_time : float
        In this time joints that are not named come to rest [s].
    """

    effort_limits: np.ndarray
    error_bound: np.ndarray
    command_scale: np.ndarray
    period: float = CONTROLLER_PERIOD
    settle_time: float = 0.5

    @classmethod
    def of(cls, effort_limits: np.ndarray) -> FillingSettings:
        """Return the defaults for an arm with these effort limits."""
        return cls(effort_limits, ERROR_FRACTION * effort_limits, np.ones_like(effort_limits))


@dataclass(frozen=True, eq=False)
class FilledTrajectory:
    """
    A trajectory whose points have effort, of all joints of the arm.

    Parameters
    ----------
    trajectory : Trajectory
        The joints of the given one come first, in its order. Efforts are in the unit of the
        commands.
    inserted : int
        How many points are new.
    largest_error, largest_torque : array, shape (n,)
        Of the interpolated torque, and of the torque itself, in chain order [N m] or [N].
    notes : tuple of str
        What the given trajectory left open and how it was completed, in words.
    """

    trajectory: Trajectory
    inserted: int
    largest_error: np.ndarray
    largest_torque: np.ndarray
    notes: tuple[str, ...]


def filled_with_effort(
    trajectory: Trajectory,
    torque: ReferenceTorque,
    settings: FillingSettings,
    *,
    beginning: ReferenceState | None = None,
    begin: float = 0.0,
) -> FilledTrajectory:
    """
    Return a trajectory with the model's torque in the effort of its points.

    Parameters
    ----------
    trajectory : Trajectory
        Without effort.
    torque : ReferenceTorque
        The model's.
    settings : FillingSettings
    beginning : ReferenceState, optional
        Where the arm is when the motion begins, in chain order. Where the first waypoint is later,
        the result begins with a point of this state: the controller would begin with one of its
        own, which may have no effort.
    begin : float
        When it is there, on the clock of the waypoints [s].

    Raises
    ------
    RejectedTrajectory
        A joint that the arm does not have; effort that is given already; joints that are not named
        although no beginning says where they are; a torque beyond an effort limit; numbers too
        large to interpolate; more than ``MOST_POINTS`` with the one at the beginning.

    Notes
    -----
    Where more than ``MOST_POINTS`` would be needed they go where the error is largest, and the
    notes say what is left of it.
    """
    model = torque.model
    columns = joint_columns(trajectory, model.joint_names)
    held = np.setdiff1d(np.arange(model.n), columns)
    if trajectory.efforts.any():
        raise RejectedTrajectory(
            'trajectory effort', 'given', 'none, or zeros: it is what the model fills in'
        )
    if beginning is None:
        if len(held):
            raise RejectedTrajectory(
                'trajectory joint_names',
                f'without {", ".join(model.joint_names[i] for i in held)}',
                'every joint of the arm, where its state is not known',
            )
        begin = float(trajectory.times[0])
        position = np.empty(model.n)
        position[columns] = trajectory.positions[0]
        beginning = ReferenceState.at_rest(position)
    times, waypoints, notes = _waypoints(trajectory, columns, torque, settings, beginning, begin)
    if len(held):
        notes += ('held: ' + ', '.join(model.joint_names[i] for i in held),)
    path = PathTorque.through(times, waypoints, torque)
    path.check(settings.effort_limits)
    pieces = refined(path, settings.error_bound, settings.period, MOST_POINTS)
    pieces.check(path, settings.effort_limits)
    if pieces.excess > 1.0:
        error = ', '.join(f'{x:.3g}' for x in pieces.largest_error)
        notes += (f'the effort between {MOST_POINTS} points is off by up to {error}',)
    filled = _trajectory(trajectory, path, pieces, np.concatenate([columns, held]), settings)
    return FilledTrajectory(
        filled,
        len(filled.times) - len(trajectory.times),
        pieces.largest_error,
        pieces.largest_torque,
        notes,
    )


def _waypoints(
    trajectory: Trajectory,
    columns: np.ndarray,
    torque: ReferenceTorque,
    settings: FillingSettings,
    beginning: ReferenceState,
    begin: float,
) -> tuple[np.ndarray, ReferenceState, tuple[str, ...]]:
    """Return times and waypoints of all joints; accelerations are NaN where cubics are meant."""
    model, times = torque.model, trajectory.times
    beginning = replace(beginning, position=_at_this_turn(trajectory, columns, torque, beginning))
    is_begun = times[0] > begin + 0.5 * settings.period
    come_from = beginning.position[columns] if is_begun else trajectory.positions[0]
    velocities, accelerations = completed_waypoints(
        trajectory, times, come_from, begin if is_begun else float(times[0])
    )
    is_cubic = np.isnan(accelerations).any(axis=1)
    others = Reference.stopping(beginning, begin, settings.settle_time, model.position_limits)
    states = [others.sample(float(time)) for time in times]
    points = ReferenceState(
        *(np.array([vars(state)[field] for state in states]) for field in vars(beginning))
    )
    points.position[:, columns] = trajectory.positions
    points.velocity[:, columns] = velocities
    points.acceleration[:, columns] = accelerations
    points.acceleration[is_cubic] = np.nan
    notes: tuple[str, ...] = ()
    bare = int(np.isnan(trajectory.velocities).all(axis=1).sum())
    if bare:
        notes += (
            f'{bare} of {len(times)} waypoints have positions only: given velocities that do not '
            'jump, and no acceleration',
        )
    if is_begun:
        first = ReferenceState(*(part.copy() for part in vars(beginning).values()))
        if is_cubic[0]:
            first.acceleration[:] = np.nan
        points, times = joined(first, points), np.concatenate([[begin], times])
        notes += (f'begins with a point at {begin:.6g} s, where the arm is',)
    if len(times) > MOST_POINTS:
        raise RejectedTrajectory(
            'trajectory points',
            len(times),
            f'at most {MOST_POINTS}, with the one at the beginning',
        )
    return times, points, notes


def _at_this_turn(
    trajectory: Trajectory,
    columns: np.ndarray,
    torque: ReferenceTorque,
    beginning: ReferenceState,
) -> np.ndarray:
    """Return where the arm is, continuous joints less than half a turn from the first waypoint."""
    model, position = torque.model, beginning.position.copy()
    is_endless = ~model.dh.prismatic & np.isinf(model.position_limits).all(axis=1)
    turns = np.round((trajectory.positions[0] - position[columns]) / (2.0 * np.pi))
    position[columns] += 2.0 * np.pi * turns * is_endless[columns]
    return position


def _trajectory(
    given: Trajectory,
    path: PathTorque,
    pieces: Pieces,
    columns: np.ndarray,
    settings: FillingSettings,
) -> Trajectory:
    """Return the points at which the pieces begin, and the end, with joints in another order."""
    states = path.states(pieces.segment, pieces.begin[:, None])
    q, qd, qdd = (part[:, 0] for part in states)
    is_knot = pieces.begin == 0.0
    knots = pieces.segment[is_knot]
    q[is_knot], qd[is_knot] = path.points.position[knots], path.points.velocity[knots]
    qdd[is_knot] = path.points.acceleration[knots]
    qdd[~is_knot & path.is_cubic[pieces.segment]] = np.nan
    last = path.points.row(-1)
    times = np.append(path.times_of(pieces.segment, pieces.begin), path.times[-1])
    q, qd = np.vstack([q, last.position]), np.vstack([qd, last.velocity])
    qdd = np.vstack([qdd, last.acceleration])
    effort = np.vstack([pieces.begin_effort, pieces.last_effort])
    if pieces.settles:
        times = np.append(times, times[-1] + settings.period)
        q, qd = np.vstack([q, q[-1]]), np.vstack([qd, qd[-1]])
        qdd = np.vstack([qdd, 0.0 * qdd[-1]])
        effort = np.vstack([effort, path.rest_effort])
    names = tuple(path.torque.model.joint_names[i] for i in columns)
    efforts = (effort * settings.command_scale)[:, columns]
    return Trajectory(
        names, times, q[:, columns], qd[:, columns], qdd[:, columns], efforts, given.start
    )
