# SPDX-License-Identifier: Apache-2.0
"""
Feedforward efforts: a joint trajectory with the model's torque in the ``effort`` of its points.

The ROS 2 joint trajectory controller adds the effort of its points to its PID where it commands
effort alone. It interpolates that effort linearly between two points which both have one;
positions it interpolates by cubics where both points have velocities, by quintics where both have
accelerations too, and linearly otherwise. It holds the last point, with its effort.

So that its feedforward is the model's torque all the way,

- points are inserted on the path where a straight line between the torques would err by more than
  a bound. They have the fields of their segment: the path stays what it is;
- where the acceleration jumps, as between cubics, at the start and at the end, the torque changes
  over one period of the controller, from a point to a second one that far after it;
- waypoints with positions only, between which velocities would jump, get velocities and
  accelerations as in ``planning``;
- joints that the trajectory does not name come to rest where they are and are held.

Before that, a trajectory may be timed anew, as fast as the drives allow (``retimed_trajectory``).
For servos that take positions alone, the same torque becomes an offset of the positions
(``servo_offset``).

``with_feedforward_efforts`` does it for one trajectory; ``TrajectoryFeedforward`` is what the node
``feedforward`` runs: an arm, its load, where it is, and what was sent last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.control.control_stack import configured_arm, continuous_joints, speed_limits
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.effort_knots import EffortKnots, PathTorque, effort_knots
from robodyn_ros.control.joint_state_buffer import ElapsedTime, JointStateBuffer, MeasuredState
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.control.model_torque import ReferenceTorque, RigidBodyTorque
from robodyn_ros.control.planning import PositionStream, joint_columns
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.retimed_trajectory import Retiming, slowed_trajectory
from robodyn_ros.control.sent_reference import SentReference
from robodyn_ros.control.servo_offset import ServoOffset
from robodyn_ros.control.settings import ControlSettings, arm_settings, in_chain_order
from robodyn_ros.control.timed_motion import TimingLimits
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.control.units import drive_units
from robodyn_ros.control.waypoints import Waypoints, whole_turns
from robodyn_ros.errors import Phrase, RejectedTrajectory
from robodyn_ros.model import Payload, RobotModel
from robodyn_ros.motions.possible_positions import PossiblePositions
from robodyn_ros.ros_parameters import parameters_of

_DEFAULTS = {p.name: p.default for p in parameters_of('feedforward')}

# Default bound of the error, as a fraction of the effort limits. The gains of the controller make
# up for it, and those of the light joints of a wrist are low.
ERROR_FRACTION: float = _DEFAULTS['error_fraction']

# That of most arms that take torques [s].
CONTROLLER_PERIOD: float = _DEFAULTS['controller_period']

# A trajectory that leads no further from where it begins has no time of its own [rad] or [m].
_NO_WAY = 1e-6


@dataclass(frozen=True, eq=False)
class FeedforwardSettings:
    """
    The limits and periods that efforts are computed for; arrays have shape (n,), in chain order.

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
    def of(cls, effort_limits: np.ndarray) -> FeedforwardSettings:
        """Return the defaults for an arm with these effort limits."""
        return cls(effort_limits, ERROR_FRACTION * effort_limits, np.ones_like(effort_limits))


@dataclass(frozen=True, eq=False)
class FeedforwardTrajectory:
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
        What the given trajectory left open and how it was completed, as text.
    """

    trajectory: Trajectory
    inserted: int
    largest_error: np.ndarray
    largest_torque: np.ndarray
    notes: tuple[str, ...]


def with_feedforward_efforts(
    trajectory: Trajectory,
    torque: ReferenceTorque,
    settings: FeedforwardSettings,
    *,
    beginning: ReferenceState | None = None,
    begin: float = 0.0,
) -> FeedforwardTrajectory:
    """
    Return a trajectory with the model's torque in the effort of its points.

    Parameters
    ----------
    trajectory : Trajectory
        Without effort.
    torque : ReferenceTorque
        The model's.
    settings : FeedforwardSettings
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
    trajectory, left_out = _of_model(trajectory, model)
    columns = joint_columns(trajectory, model.joint_names, all_named=beginning is None)
    held = np.setdiff1d(np.arange(model.n), columns)
    if trajectory.efforts.any():
        raise RejectedTrajectory(
            'trajectory effort', Phrase('given'), 'none, or zeros: it is what the model fills in'
        )
    possible = PossiblePositions.of(model)
    possible.check('trajectory point', trajectory.positions, columns, RejectedTrajectory)
    if beginning is None:
        begin = float(trajectory.times[0])
        position = np.empty(model.n)
        position[columns] = trajectory.positions[0]
        beginning = ReferenceState.at_rest(position)
    waypoints, notes = _waypoints(trajectory, columns, torque, settings, beginning, begin)
    notes = left_out + notes
    if len(held):
        notes += ('held: ' + ', '.join(model.joint_names[i] for i in held),)
    path = PathTorque(waypoints, torque)
    path.check(settings.effort_limits)
    knots = effort_knots(path, settings.error_bound, settings.period, MOST_POINTS)
    knots.check(path, settings.effort_limits)
    if knots.excess > 1.0:
        error = ', '.join(f'{x:.3g}' for x in knots.largest_error)
        notes += (f'the effort between {MOST_POINTS} points is off by up to {error}',)
    filled = _trajectory(trajectory, path, knots, np.concatenate([columns, held]), settings)
    return FeedforwardTrajectory(
        filled,
        len(filled.times) - len(trajectory.times),
        knots.largest_error,
        knots.largest_torque,
        notes,
    )


def _of_model(trajectory: Trajectory, model: RobotModel) -> tuple[Trajectory, tuple[str, ...]]:
    """Return a trajectory of the model's joints, and a note of those that move nothing of it."""
    kept = trajectory.without(model.unmodelled_joints)
    left_out = [name for name in trajectory.joint_names if name not in kept.joint_names]
    return kept, (f'left out: {", ".join(left_out)}',) if left_out else ()


def _waypoints(
    trajectory: Trajectory,
    columns: np.ndarray,
    torque: ReferenceTorque,
    settings: FeedforwardSettings,
    beginning: ReferenceState,
    begin: float,
) -> tuple[Waypoints, tuple[str, ...]]:
    """Return waypoints of all joints; accelerations are NaN where cubics are meant."""
    model, times = torque.model, trajectory.times
    beginning = _at_this_turn(trajectory, columns, model, beginning)
    is_begun = times[0] > begin + 0.5 * settings.period
    points = Waypoints.completed(
        trajectory,
        columns,
        times,
        Reference.stopping(beginning, begin, settings.settle_time, model.position_limits),
        beginning.position[columns] if is_begun else trajectory.positions[0],
        begin if is_begun else float(times[0]),
    ).as_messages()
    notes: tuple[str, ...] = ()
    bare = int(np.isnan(trajectory.velocities).all(axis=1).sum())
    if bare:
        notes += (
            f'{bare} of {len(times)} waypoints have positions only: given velocities that do not '
            'jump, and no acceleration',
        )
    if is_begun:
        is_cubic = np.isnan(points.states.acceleration[0]).any()
        bend = np.full(model.n, np.nan) if is_cubic else beginning.acceleration
        points = points.after(begin, replace(beginning, acceleration=bend))
        notes += (f'begins with a point at {begin:.6g} s, where the arm is',)
    if len(points.time) > MOST_POINTS:
        raise RejectedTrajectory(
            'trajectory points',
            len(points.time),
            f'at most {MOST_POINTS}, with the one at the beginning; send them in parts',
        )
    return points, notes


def _at_this_turn(
    trajectory: Trajectory,
    columns: np.ndarray,
    model: RobotModel,
    beginning: ReferenceState,
) -> ReferenceState:
    """Return where the arm is, continuous joints less than half a turn from the first waypoint."""
    position = beginning.position.copy()
    continuous = continuous_joints(model)[columns]
    position[columns] += whole_turns(position[columns], trajectory.positions[0], continuous)
    return replace(beginning, position=position)


def _trajectory(
    given: Trajectory,
    path: PathTorque,
    knots: EffortKnots,
    columns: np.ndarray,
    settings: FeedforwardSettings,
) -> Trajectory:
    """Return the points at the knots, with joints in another order."""
    states = path.motion.states(knots.segment, knots.begin[:, None])
    q, qd, qdd = (part[:, 0] for part in states)
    is_waypoint, points = knots.begin == 0.0, path.points.states
    waypoint = knots.segment[is_waypoint]
    q[is_waypoint], qd[is_waypoint] = points.position[waypoint], points.velocity[waypoint]
    qdd[is_waypoint] = points.acceleration[waypoint]
    qdd[~is_waypoint & path.is_cubic[knots.segment]] = np.nan
    last = points.row(-1)
    times = np.append(path.times_of(knots.segment, knots.begin), path.times[-1])
    q, qd = np.vstack([q, last.position]), np.vstack([qd, last.velocity])
    qdd = np.vstack([qdd, last.acceleration])
    effort = np.vstack([knots.effort, knots.last_effort])
    if knots.settles:
        times = np.append(times, times[-1] + settings.period)
        q, qd = np.vstack([q, q[-1]]), np.vstack([qd, qd[-1]])
        qdd = np.vstack([qdd, 0.0 * qdd[-1]])
        effort = np.vstack([effort, path.rest_effort])
    names = tuple(path.torque.model.joint_names[i] for i in columns)
    efforts = (effort * settings.command_scale)[:, columns]
    return Trajectory(
        names, times, q[:, columns], qd[:, columns], qdd[:, columns], efforts, given.start
    )


class TrajectoryFeedforward:
    """
    Adds feedforward efforts to trajectories of one arm, starting at its present position.

    Parameters
    ----------
    settings : ControlSettings
    description : str or None
        The URDF's text, where the settings name no file.
    error_fraction : float
        The bound of the interpolated torque's error, as a fraction of the effort limits.
    period : float
        Of the controller [s].
    elapsed : ElapsedTime, optional
        Knows whether time is simulated; not given: it is not.
    servo_gains, largest_offset : sequence of float
        The parameters of ``feedforward``: with gains the positions are offset, and there is no
        effort.
    retime : float
        Part of the effort limits in which trajectories are timed anew; 0: they keep their times.

    Attributes
    ----------
    servo : ServoOffset or None
        What offsets the positions; None: nothing does.
    joint_states : JointStateBuffer
        Fed by joint states; ``take_state`` is called after each.
    load : Load
        Payloads and gravity that apply.
    sent : SentReference
        What was sent last; ``forget`` it where the controller holds something else.

    Raises
    ------
    RobodynError
        What is wrong with the robot or the settings.
    """

    def __init__(
        self,
        settings: ControlSettings,
        description: str | None,
        error_fraction: float,
        period: float,
        elapsed: ElapsedTime | None = None,
        servo_gains: Sequence[float] = (),
        largest_offset: Sequence[float] = _DEFAULTS['largest_offset'],
        retime: float = _DEFAULTS['retime'],
    ) -> None:
        configured = configured_arm(settings, description)
        arm, scales = configured.model, configured.scales
        limits = arm_settings(arm, settings).effort_limits
        units = drive_units(arm, settings, scales, limits)
        self.arm = arm
        self.load = Load(arm.gravity)
        self.joint_states = JointStateBuffer(
            arm.joint_names,
            settings.state_timeout,
            continuous_joints(arm),
            PossiblePositions.of(arm),
            elapsed,
        )
        self.servo: ServoOffset | None = None
        if servo_gains:
            given = {'servo_gains': servo_gains, 'largest_offset': largest_offset}
            gains, offset = (in_chain_order(arm, settings, *each) for each in given.items())
            self.servo = ServoOffset(gains, arm.position_limits, offset)
        self._settings = settings
        self._feedforward = replace(
            FeedforwardSettings.of(limits),
            error_bound=error_fraction * limits,
            command_scale=units.command_scale,
            period=period,
            settle_time=settings.ramp_time,
        )
        self._retiming: Retiming | None = None
        if retime:
            self._retiming = Retiming(TimingLimits.of(arm, limits, margin=1.0 - retime))
        self._rigid_body = RigidBodyTorque.of(arm, settings.algorithm)
        self._torque = ReferenceTorque.of(arm, settings, self._rigid_body)
        self._state: MeasuredState | None = None
        self.sent = SentReference(arm)
        self._stream = PositionStream()
        self._waiting: FeedforwardTrajectory | None = None  # until the last one sent begins

    @property
    def notes(self) -> tuple[str, ...]:
        """What failed in preparing the requested algorithm."""
        return self._rigid_body.notes

    def take_state(self) -> None:
        """Take the joints' states, where all have come since the last time."""
        if self.joint_states.is_complete:
            self._state = self.joint_states.take()
            time = self.joint_states.elapsed.time(self.joint_states.received)
            self.sent.take(self._state.position, time)

    def change(self, change: Payload | GravityChange) -> Load:
        """
        Change the payload or the gravity, for the following trajectories.

        Raises
        ------
        RobodynError
            What ``Load.changed`` refuses.
        """
        self.load, model = self.load.changed(change, self.arm)
        self._rigid_body = self._rigid_body.checked(model)
        self._torque = ReferenceTorque.of(model, self._settings, self._rigid_body)
        return self.load

    def with_efforts(
        self, trajectory: Trajectory, now: float, wait: float | None = None
    ) -> FeedforwardTrajectory:
        """
        Return a trajectory with effort, which is assumed to be executed from then on.

        With ``servo`` its positions are offset in place of effort.

        Parameters
        ----------
        trajectory : Trajectory
        now : float
            Steady time [s].
        wait : float or None
            Until its start [s]; negative: it is past; None: it starts at once.

        Raises
        ------
        RejectedTrajectory
            No fresh state of every joint, and what ``with_feedforward_efforts`` refuses.

        Notes
        -----
        It continues from the last trajectory sent, while the controller is known to hold that,
        else from the measured state, and the notes say how far from it that is: what the
        controller is commanded does not jump by what the arm lags behind.
        """
        beginning, notes = self._beginning(now, max(wait or 0.0, 0.0))
        goes_on = not notes
        trajectory, left_out = _of_model(trajectory, self.arm)
        notes += left_out
        begin = max(0.0, -(wait or 0.0))  # in this order: never -0.0
        columns = joint_columns(trajectory, self.arm.joint_names)
        beginning = _at_this_turn(trajectory, columns, self.arm, beginning)
        way = np.abs(trajectory.positions - beginning.position[columns]).max()
        if self._retiming is not None and way > _NO_WAY:  # else there is nothing to time
            retimed = self._retiming.of(trajectory, self._torque, beginning=beginning, begin=begin)
            trajectory = retimed.trajectory
            took, takes = retimed.given.duration, retimed.motion.duration
            notes += (f'timed anew: {takes:.4g} s in place of {took:.4g} s',)
        else:
            self._stream.take(trajectory, self.joint_states.elapsed.time(now))
            trajectory = self._stream.approached(
                trajectory,
                begin,
                beginning.position[columns],
                speed_limits(self.arm)[columns],
                self.arm.dh.prismatic[columns],
                is_moving=bool(beginning.velocity[columns].any()),
            )
        return self._filled(trajectory, now, wait, beginning, begin, notes, goes_on)

    def _filled(
        self,
        trajectory: Trajectory,
        now: float,
        wait: float | None,
        beginning: ReferenceState,
        begin: float,
        notes: tuple[str, ...],
        goes_on: bool = True,
    ) -> FeedforwardTrajectory:
        """Return a trajectory with effort or offsets, after these notes, and remember it."""
        result = with_feedforward_efforts(
            trajectory, self._torque, self._feedforward, beginning=beginning, begin=begin
        )
        result = replace(result, notes=(*notes, *result.notes))
        time = self.joint_states.elapsed.time(now)
        reference = self._reference(result.trajectory, time + (wait or 0.0))
        self.sent.replace(reference, time, goes_on=goes_on)
        self._waiting = result if wait is not None and wait > 0.0 else None
        return result if self.servo is None else self._with_offsets(result, self.servo)

    def waiting(self, now: float) -> FeedforwardTrajectory | None:
        """
        Return the last trajectory sent under the load that now applies, if it has not begun.

        It is slowed where the drives could not carry the load in its own time; None: nothing
        waits.

        Parameters
        ----------
        now : float
            Steady time [s].

        Raises
        ------
        RejectedTrajectory
            The drives cannot carry the load along it at any speed, or what ``with_efforts``
            refuses.
        """
        waiting, sent = self._waiting, self.sent.reference
        if waiting is None or sent is None:
            return None
        times = waiting.trajectory.times
        start = sent.knots[0] - float(times[0])
        wait = start - self.joint_states.elapsed.time(now)
        if wait <= 0.0:
            self._waiting = None
            return None
        limits = self._feedforward.effort_limits
        if self._retiming is not None:
            limits = self._retiming.limits.effort
        slower, scale = slowed_trajectory(waiting.trajectory, self._torque, limits)
        notes = (f'slowed to {scale:.4g} times its time, for the load',) if scale > 1.0 else ()
        beginning = sent.sample(start + float(times[0]))
        result = self._filled(slower, now, wait, beginning, float(times[0]), notes)
        self._waiting = waiting  # a lighter load gives it its own time again
        return result

    def _with_offsets(
        self, result: FeedforwardTrajectory, servo: ServoOffset
    ) -> FeedforwardTrajectory:
        """Return the trajectory with offset positions; the notes name joints that need more."""
        names = self.arm.joint_names
        columns = joint_columns(result.trajectory, names)
        torque = result.trajectory.efforts / self._feedforward.command_scale[columns]
        wanted = np.abs(servo.wanted(result.largest_torque))
        notes = tuple(
            f'{name} needs an offset of {wanted[i]:.3g}: cut at {servo.largest_offset[i]:g}'
            for i, name in enumerate(names)
            if wanted[i] > servo.largest_offset[i]
        )
        trajectory = servo.in_trajectory(result.trajectory, columns, torque)
        return replace(result, trajectory=trajectory, notes=(*result.notes, *notes))

    def hold(self, now: float) -> FeedforwardTrajectory:
        """
        Return the trajectory that brings the arm to rest and holds it, gravity in its effort.

        It begins as in ``with_efforts``.

        Raises
        ------
        RejectedTrajectory
            No fresh state of every joint.
        """
        self._waiting = None
        (state, notes), settle_time = self._beginning(now, 0.0), self._feedforward.settle_time
        limits = self.arm.position_limits
        rest = Reference.stopping(state, 0.0, settle_time, limits).end_state.position[None]
        zero, times = np.zeros_like(rest), np.array([max(settle_time, self._feedforward.period)])
        trajectory = Trajectory(self.arm.joint_names, times, rest, zero, zero, zero)
        return self._filled(trajectory, now, None, state, 0.0, notes, not notes)

    def _beginning(self, now: float, ahead: float) -> tuple[ReferenceState, tuple[str, ...]]:
        """
        Return where a motion begins after a time [s], in chain order.

        The notes say why that is not where the controller was sent last.
        """
        if self._state is None or self.joint_states.stale_joints(now):
            stale = ', '.join(self.joint_states.stale_joints(now)) or 'every joint'
            allowed = f'one within {self.joint_states.timeout:g} s'
            if trouble := self.joint_states.trouble():
                allowed += f'; {trouble}'
            raise RejectedTrajectory('joint states', Phrase(f'none of {stale}'), allowed)
        position, velocity = self._state.position, self._state.velocity
        notes: tuple[str, ...] = ()
        if self.sent.reference is not None:
            doubt = self.sent.doubt()
            if not doubt:
                time = self.joint_states.elapsed.time(now)
                return self.sent.reference.sample(time + ahead), ()
            off = self.sent.deviation_text()
            notes = (f'begins off what the controller was sent last: {off}, since {doubt}',)
        if (np.abs(velocity) < core.REST_SPEED).all() or not self._state.has_velocities:
            return ReferenceState.at_rest(position), notes
        zero = np.zeros_like(position)
        measured = ReferenceState(position.copy(), velocity.copy(), zero, zero)
        stopping = Reference.stopping(
            measured, 0.0, self._feedforward.settle_time, self.arm.position_limits
        )
        return stopping.sample(ahead), notes

    def _reference(self, trajectory: Trajectory, start: float) -> Reference:
        columns = [trajectory.joint_names.index(name) for name in self.arm.joint_names]
        points = ReferenceState(
            *(
                part[:, columns]
                for part in (
                    trajectory.positions,
                    trajectory.velocities,
                    trajectory.accelerations,
                    trajectory.efforts,
                )
            )
        )
        return Reference.through((start + trajectory.times).tolist(), points, 0.0)
