# SPDX-License-Identifier: Apache-2.0
"""
From a joint trajectory to a reference without jumps, within limits, or why it is refused.

What is accepted is what the ROS 2 joint trajectory controller accepts: waypoints with positions,
and optionally velocities, accelerations and efforts. Between waypoints the reference is

- **quintic** where both ends have accelerations,
- **cubic** where they have velocities but no accelerations,
- **quintic through completed waypoints** where they have positions only. The joint trajectory
  controller interpolates those linearly, which makes the velocity jump, and with it the torque.
  Here a waypoint without velocity gets the weighted harmonic mean of the slopes beside it (zero
  where the direction turns and at the end) and acceleration zero.

A stream of such trajectories, each of which replaces one that is still followed, would begin each
with the acceleration of the last and would have to stop within its period. It is approached along
straight lines that end at rest only where no further one comes: ``PositionStream``.

The first segment starts from the reference state of that instant, or from the measured state when
nothing is followed yet, so that a replacement in motion does not jump. Joints that a trajectory
does not name come to rest where they are and hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.control.core_binding import core
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.settings import ArmSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.control.waypoints import FIRST_STEP_TIME, Waypoints, whole_turns
from robodyn_ros.errors import Phrase, RejectedTrajectory
from robodyn_ros.model import position_unit
from robodyn_ros.motions.possible_positions import PossiblePositions

# Planners keep velocity limits at waypoints; between them a polynomial may be this much faster.
SPEED_TOLERANCE = 1.1

# What is due later than this many periods of its stream is a motion of its own.
MOST_PERIODS = 6.0

# What the refusal of a point adds that may belong to a stream, and when that is due at most [s].
STREAM_REMEDY = (
    '; a stream of positions is followed from 10 Hz to 1 kHz, due 0.5 to 5 periods ahead: outside '
    'of that send velocities, too'
)
LATEST_OF_STREAM = 0.5

_TURN = 0.2  # from whole turns, that a step to the next point may differ to be called such [rad]
_MOST_TURNS = 3  # of such a step; larger numbers come near whole turns by chance
_ROUNDING = 1e-9  # a polynomial that ends on a limit may leave it by rounding [rad] or [m]


@dataclass(frozen=True, eq=False)
class ReferenceLimits:
    """
    Limits of a reference that an arm has.

    Parameters
    ----------
    joint_names : tuple of str, length n
        All joints of the arm, in chain order.
    position_limits : array, shape (n, 2)
        Lower and upper [rad] or [m]; infinite where there is none.
    velocity_limits : array, shape (n,)
        Largest speed [rad/s] or [m/s]; infinite where there is none.
    continuous : array of bool, shape (n,)
        Joints that turn without end, for which whole turns mean nothing.
    possible : PossiblePositions
        What is outside of them is in other units.
    reach : float
        Farthest that the tip can be from the base link's origin [m]; infinite: not known.
    unmodelled_joints : tuple of str
        Others that a trajectory may name: they move nothing of the arm, and are left out.
    """

    joint_names: tuple[str, ...]
    position_limits: np.ndarray
    velocity_limits: np.ndarray
    continuous: np.ndarray
    possible: PossiblePositions
    reach: float = np.inf
    unmodelled_joints: tuple[str, ...] = ()


class PositionStream:
    """
    What is known of the stream that trajectories with positions alone belong to.

    ``core/reference.hpp`` says how long the reference takes to the newest position.

    Attributes
    ----------
    asked : array, shape (m,), or None
        The last position that was followed; None: the stream begins.
    """

    def __init__(self) -> None:
        self.asked: np.ndarray | None = None
        self._asked_at = self._taken_at = 0.0  # when that and the last trajectory came [s]
        self._stream = core.PositionStream()
        self._joint_names: tuple[str, ...] = ()

    def take(self, trajectory: Trajectory, now: float) -> None:
        """Record that a trajectory came at a time [s]."""
        self._taken_at = now
        is_bare = bool(np.isnan(trajectory.velocities).all())
        is_other = trajectory.joint_names != self._joint_names
        # One with velocities continues a stream, but does not begin one.
        if is_other or not (is_bare or self._stream.is_stream):
            self._stream = core.PositionStream()
            self._joint_names = trajectory.joint_names if is_bare else ()
        if is_bare or self._stream.is_stream:
            self._stream.take(now)
        if not self._stream.is_stream:
            self.asked = None

    def followed(self, trajectory: Trajectory) -> None:
        """Record that the trajectory taken last is followed."""
        self.asked, self._asked_at = trajectory.positions[-1], self._taken_at

    def continues(self, trajectory: Trajectory) -> bool:
        """Return whether a trajectory belongs to the stream of those that came before it."""
        return self._stream.is_stream and trajectory.joint_names == self._joint_names

    def approached(
        self,
        trajectory: Trajectory,
        begin: float,
        position: np.ndarray,
        speeds: np.ndarray,
        slides: np.ndarray,
        *,
        is_moving: bool,
        largest_step: float = np.inf,
    ) -> Trajectory:
        """
        Return what is followed in place of the trajectory taken last.

        Parameters
        ----------
        trajectory : Trajectory
        begin : float
            When its motion begins, on the clock of its waypoints [s].
        position : array, shape (m,)
            Where its joints are then.
        speeds : array, shape (m,)
            Their largest [rad/s] or [m/s].
        slides : array of bool, shape (m,)
            Which are prismatic.
        is_moving : bool
            Whether a reference is in motion then.
        largest_step : float
            Between two positions that are due at once, or that cannot be reached within half of
            these speeds when they are due [rad] or [m].

        Raises
        ------
        RejectedTrajectory
            A step that is larger.

        Notes
        -----
        Waypoints with positions alone are left out where they come before a replacing motion may
        pass them. The last one becomes the end of a straight line, and the way to rest. A single
        point with velocities counts as one without, where the stream lags behind it. A single
        point that is due at once may begin a stream: a motion is not stopped for it.
        """
        stream, times = self._stream, trajectory.times - begin
        last = trajectory.positions[-1]
        is_near = bool(times[-1] <= MOST_PERIODS * stream.period)
        is_bare = bool(np.isnan(trajectory.velocities).all())
        is_beginning = is_moving and is_bare and len(times) == 1 and times[0] <= stream.period
        if not (self.continues(trajectory) or is_beginning):
            return trajectory
        if is_bare:
            rows = np.flatnonzero(times[:-1] >= stream.moving)
            if len(rows) or not is_near:
                return _of_rows(trajectory, [*rows, -1])
        distance = float((np.abs(last - position) / speeds).max())
        ahead = max(float(times[-1]), 0.0)
        horizon = stream.horizon(ahead, distance)
        is_late = len(times) == 1 and horizon > ahead
        if not (is_near and (is_bare or is_late)):
            return trajectory
        is_far = horizon > stream.horizon(ahead, 0.0)
        if is_far or ahead <= FIRST_STEP_TIME:
            step = np.abs(last - (position if self.asked is None else self.asked))
            _check_step(trajectory, step, slides, largest_step)
            if ahead == 0.0 and self.asked is not None:
                asked = step / max(self._taken_at - self._asked_at, FIRST_STEP_TIME)
                allowed = SPEED_TOLERANCE * speeds
                _check_speeds(trajectory, trajectory.joint_names, slides, asked, allowed, speeds)
        zero = np.zeros_like(position)
        motion = core.approach(
            np.stack([position, zero, zero, zero]),
            np.stack([last, zero, zero, trajectory.efforts[-1]]),
            begin,
            horizon,
            stream.stopping,
        )
        knots = motion.knots[1:]
        states = np.stack([motion.sample(time) for time in knots], axis=1)
        return Trajectory(
            trajectory.joint_names,
            np.array(knots),
            positions=states[0],
            velocities=states[1],
            accelerations=states[2],
            efforts=states[3],
            start=trajectory.start,
        )


def _held(trajectory: Trajectory, time: float) -> Trajectory:
    """Return a trajectory that ends at rest and holds its end until a time [s]."""
    held = _of_rows(trajectory, [*range(len(trajectory.times)), -1])
    held.times[-1] = time
    return held


def _of_rows(trajectory: Trajectory, rows: Sequence[int]) -> Trajectory:
    """Return a trajectory of some of its waypoints."""
    parts = ('times', 'positions', 'velocities', 'accelerations', 'efforts')
    return replace(trajectory, **{part: getattr(trajectory, part)[rows] for part in parts})


def planned_reference(
    trajectory: Trajectory,
    now: float,
    measured: ReferenceState,
    current: Reference | None,
    limits: ReferenceLimits,
    settings: ArmSettings,
    stream: PositionStream | None = None,
) -> Reference:
    """
    Return the reference that follows a trajectory from the present one without jumps.

    Parameters
    ----------
    trajectory : Trajectory
        What to follow. With a start in the future the present reference goes on until then;
        waypoints in the past are left out.
    now : float
        Time on the clock that references are sampled with [s].
    measured : ReferenceState
        Where the arm is; where the reference starts if there is no current one.
    current : Reference or None
        What is followed now.
    limits : ReferenceLimits
        What the reference must respect.
    settings : ArmSettings
        The largest step of a joint within ``FIRST_STEP_TIME`` of the start; the ramp time, in
        which a joint that must stop comes to rest.

    Raises
    ------
    RejectedTrajectory
        An unknown joint, an end in the past, a first step that is too large, a position outside
        the limits, a speed beyond the velocity limits, numbers too large to interpolate.

    Notes
    -----
    A single point at time zero is a setpoint: it becomes the reference at once. A last point
    that is not at rest is left and reached again within the ramp time, at rest, so that a
    stream of setpoints that stops ends as any trajectory does. The first waypoint of a
    continuous joint is reached by the shorter way round, as with the joint trajectory controller.
    """
    trajectory = trajectory.without(limits.unmodelled_joints)
    columns = joint_columns(trajectory, limits.joint_names)
    start = now if trajectory.start is None else max(now, trajectory.start)
    offset = start if trajectory.start is None else trajectory.start
    if start > now:
        before = (
            current.followed_at(now)
            if current
            else Reference.stopping(measured, now, settings.ramp_time, limits.position_limits)
        )
        beginning = before.sample(start)
    else:
        before = None
        beginning = current.sample(now) if current else measured
    given = trajectory = _at_this_turn(trajectory, columns, beginning, limits)
    stream = PositionStream() if stream is None else stream
    stream.take(given, now)
    _check_turns(given, columns, offset + given.times, beginning, start, limits)
    trajectory = stream.approached(
        given,
        start - offset,
        beginning.position[columns],
        limits.velocity_limits[columns],
        limits.possible.prismatic[columns],
        is_moving=current is not None and bool(beginning.velocity[columns].any()),
        largest_step=settings.max_reference_step,
    )
    # Joints that a stream does not name come to rest once, not anew with each of its messages.
    others = current if current is not None and stream.continues(given) else None
    if others is None:
        others = Reference.stopping(beginning, start, settings.ramp_time, limits.position_limits)
    is_partial = len(columns) < len(limits.joint_names)
    if is_partial and trajectory is not given and others.knots[-1] > offset + trajectory.times[-1]:
        trajectory = _held(trajectory, others.knots[-1] - offset)
    times = offset + trajectory.times

    ahead = times > start
    points = Waypoints.completed(
        trajectory, columns, times, others, beginning.position[columns], start
    )
    if ahead.any():
        points = points.rows(ahead).after(start, beginning)
        reference = Reference.through(
            points.time.tolist(), points.states, settings.ramp_time, before
        )
    elif trajectory.start is None and len(times) == 1:
        still = ReferenceState(*(np.nan_to_num(part) for part in vars(points.states).values()))
        reference = Reference.through([start], still, settings.ramp_time, before)
    else:
        raise RejectedTrajectory(
            'trajectory',
            Phrase(f'it ended {start - times[-1]:.3f} s ago'),
            'an end in the future: a later header stamp or time_from_start',
        )
    lower = np.minimum(beginning.position, measured.position)
    upper = np.maximum(beginning.position, measured.position)
    _check_path(reference, lower, upper, limits)
    largest = settings.max_reference_step
    _check_first_step(trajectory, columns, times, beginning, reference, limits, largest)
    _check_speed(given, reference, beginning, current, limits)
    stream.followed(given)
    return reference


def joint_columns(
    trajectory: Trajectory, joint_names: tuple[str, ...], *, all_named: bool = False
) -> np.ndarray:
    """
    Return the index of each joint of a trajectory among all joints of the arm.

    Raises
    ------
    RejectedTrajectory
        The arm has no such joint, or has others where all have to be named.
    """
    for name in trajectory.joint_names:
        if name not in joint_names:
            raise RejectedTrajectory(
                'trajectory joint_names', name, 'one of ' + ', '.join(joint_names)
            )
    missing = [name for name in joint_names if name not in trajectory.joint_names]
    if all_named and missing:
        raise RejectedTrajectory(
            'trajectory joint_names',
            Phrase(f'without {", ".join(missing)}'),
            'every joint of the arm, where its state is not known',
        )
    return np.array([joint_names.index(name) for name in trajectory.joint_names])


def _at_this_turn(
    trajectory: Trajectory,
    columns: np.ndarray,
    beginning: ReferenceState,
    limits: ReferenceLimits,
) -> Trajectory:
    """Return the trajectory, with continuous joints starting the shorter way round."""
    first, position = trajectory.positions[0], beginning.position[columns]
    turns = whole_turns(first, position, limits.continuous[columns])
    return (
        replace(trajectory, positions=trajectory.positions + turns) if turns.any() else trajectory
    )


def _check_turns(
    trajectory: Trajectory,
    columns: np.ndarray,
    times: np.ndarray,
    beginning: ReferenceState,
    start: float,
    limits: ReferenceLimits,
) -> None:
    """Name a whole turn to the next point as such, where the joint cannot turn that fast."""
    rows = np.flatnonzero(times >= start)
    points = np.vstack([beginning.position[columns], trajectory.positions[rows]])
    durations = np.diff([start, *times[rows]])[:, None]
    speeds = _allowed_speeds(beginning, limits)[columns]
    with np.errstate(over='ignore', invalid='ignore'):  # an infinite speed, in no time
        steps = np.diff(points, axis=0)
        is_too_fast = ~(np.abs(steps) <= speeds * durations * (1.0 + _ROUNDING))
        turns = np.round(steps / (2.0 * np.pi))
        is_whole = np.abs(steps - 2.0 * np.pi * turns) < _TURN
    is_turn = is_too_fast & is_whole & (turns != 0.0) & (np.abs(turns) <= _MOST_TURNS)
    for k, j in np.argwhere(is_turn & ~limits.possible.prismatic[columns]):
        if limits.possible.suspected_unit(int(columns[j]), float(points[k + 1, j])):
            continue  # another unit
        last = int(rows[k])
        between = f'points {last - 1} and {last}' if k else f'from where it is to point {last}'
        raise RejectedTrajectory(
            f'trajectory joint {trajectory.joint_names[j]!r} {between}',
            float(steps[k, j]),
            'no whole turn from one point to the next: subtract it from those after',
            unit='rad',
        )


def _check_first_step(
    trajectory: Trajectory,
    columns: np.ndarray,
    times: np.ndarray,
    beginning: ReferenceState,
    reference: Reference,
    limits: ReferenceLimits,
    largest: float,
) -> None:
    """Check the waypoints that are due at once, the last missed one, and those shortly ahead."""
    start = reference.knots[0]
    first = max(int(np.searchsorted(times, start, side='right')) - 1, 0)
    last = int(np.searchsorted(times, start + FIRST_STEP_TIME, side='right'))
    ahead = reference.sample(start + FIRST_STEP_TIME).position[columns]
    for positions in (*trajectory.positions[first:last], ahead):
        step = np.abs(positions - beginning.position[columns])
        slides = limits.possible.prismatic[columns]
        _check_step(trajectory, step, slides, largest)


def _check_step(
    trajectory: Trajectory, step: np.ndarray, slides: np.ndarray, largest: float
) -> None:
    if (step > largest).any():
        worst = int(np.argmax(step))
        raise RejectedTrajectory(
            f'trajectory joint {trajectory.joint_names[worst]!r} first step',
            float(step[worst]),
            f'at most max_reference_step = {largest:g}' + _remedy(trajectory),
            unit=position_unit(slides[worst]),
        )


def _remedy(trajectory: Trajectory) -> str:
    """Return what the refusal of a trajectory adds."""
    is_single = len(trajectory.times) == 1 and trajectory.times[0] <= LATEST_OF_STREAM
    return STREAM_REMEDY if is_single and np.isnan(trajectory.velocities).all() else ''


def _check_speed(
    trajectory: Trajectory,
    reference: Reference,
    beginning: ReferenceState,
    current: Reference | None,
    limits: ReferenceLimits,
) -> None:
    """Check the speed along the path, and that of a stream of setpoints between two of them."""
    allowed = _allowed_speeds(beginning, limits)
    speeds = np.abs(reference.start_state.velocity)
    if len(reference.knots) > 1:
        slowest, fastest = reference.polynomials.extremes(1, (-allowed, allowed))
        speeds = np.maximum(-slowest, fastest).max(axis=0)
    elif current is not None:
        elapsed = max(reference.knots[0] - current.knots[0], FIRST_STEP_TIME)
        speeds = np.abs(reference.end_state.position - beginning.position) / elapsed
    _check_speeds(
        trajectory,
        limits.joint_names,
        limits.possible.prismatic,
        speeds,
        allowed,
        limits.velocity_limits,
    )


def _allowed_speeds(beginning: ReferenceState, limits: ReferenceLimits) -> np.ndarray:
    return np.fmax(SPEED_TOLERANCE * limits.velocity_limits, np.abs(beginning.velocity))


def _check_speeds(
    trajectory: Trajectory,
    joint_names: tuple[str, ...],
    slides: np.ndarray,
    speeds: np.ndarray,
    allowed: np.ndarray,
    velocity_limits: np.ndarray,
) -> None:
    for i, name in enumerate(joint_names):
        if not speeds[i] <= allowed[i] * (1.0 + _ROUNDING):
            unit = f'{position_unit(slides[i])}/s'
            raise RejectedTrajectory(
                f'trajectory joint {name!r} speed on the way',
                float(speeds[i]),
                f'at most its velocity limit, {velocity_limits[i]:g} {unit}' + _remedy(trajectory),
                unit=unit,
            )


def _check_path(
    reference: Reference,
    lowest_start: np.ndarray,
    highest_start: np.ndarray,
    limits: ReferenceLimits,
) -> None:
    """Check the whole path, also between waypoints; an arm outside its limits may return."""
    lower = np.minimum(limits.position_limits[:, 0], lowest_start) - _ROUNDING
    upper = np.maximum(limits.position_limits[:, 1], highest_start) + _ROUNDING
    lows, highs = reference.polynomials.extremes(0, (lower, upper))
    ends = reference.start_state.position, reference.end_state.position
    lowest, highest = np.vstack([lows, *ends]).min(axis=0), np.vstack([highs, *ends]).max(axis=0)
    if not (np.isfinite(lowest).all() and np.isfinite(highest).all()):
        raise RejectedTrajectory(
            'trajectory', Phrase('numbers too large to interpolate'), 'values an arm can follow'
        )
    for i, name in enumerate(limits.joint_names):
        if lowest[i] < lower[i] or highest[i] > upper[i]:
            reached = float(lowest[i] if lowest[i] < lower[i] else highest[i])
            raise RejectedTrajectory(
                f'trajectory joint {name!r} position on the way',
                reached,
                limits.possible.within_limits(i, reached),
                unit=position_unit(limits.possible.prismatic[i]),
            )
