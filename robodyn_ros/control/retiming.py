# SPDX-License-Identifier: Apache-2.0
"""
The fastest timing of a path within velocity, torque, acceleration and jerk limits.

Along a path q(s) the torque of the rigid body is a(s) s'' + b(s) s'² + c(s), linear in s'' and
x = s'²: three inverse dynamics of all grid points in one call each. Friction that does not depend
on speed, and that grows with load, keeps it linear. Viscous friction and the smooth sign grow with
the root of x, which is concave: in place of it stands its tangent at the last solution, which is
never less than the friction. So each solution keeps the limits that friction tightens, and the
next is no slower. What friction gives while braking, and what cubics between grid points do to the
torque, is checked on the motion as it will be executed; where it is beyond a limit, the limit is
lowered by as much for that interval. The two passes over the grid are those of TOPP-RA
(``core/path_timing.hpp``).

References
----------
Pham and Pham 2018, A New Approach to Time-Optimal Path Parameterization Based on Reachability
Analysis, IEEE Transactions on Robotics 34(3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array, checked_type
from robodyn_ros.compiled import CompiledModel
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.goal_motion import motion_to_goal
from robodyn_ros.control.jerk_smoothing import TimeLaw, smoothed
from robodyn_ros.control.joint_path import CORNERS, Corners, JointPath, checked_waypoints
from robodyn_ros.control.law import InverseDynamics, Terms
from robodyn_ros.control.model_torque import ReferenceTorque, RigidBodyTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.timed_motion import (
    ROUNDING,
    Course,
    TimedMotion,
    TimingLimits,
    active_limits,
    check_positions,
    check_resting,
    effort_range,
    rigid_torque,
    rms_of,
    torque_of,
)
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.dynamics import mass_matrix
from robodyn_ros.dynamics.friction import drive_velocity, friction_of
from robodyn_ros.errors import InvalidArgument, NoSolution, Phrase, shown
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

GRID_POINTS = 200
MOST_GRID_POINTS = 20_000
_FASTEST = 1e8  # what stands for no limit of x; the square of 10,000 rad/s
_HEADROOM = 5e-4  # relative, which solutions leave below a limit
_MARGIN_BETWEEN_SAMPLES = 3e-4  # relative, as limits are checked at some points only
_MOST_SOLUTIONS = 12
_SETTLED = 1e-4  # relative change of the time from one solution to the last
_NEARLY_SETTLED = 1e-2  # above it, friction causes what exceeds a limit
_TIGHTENED = 2  # rounds that lower limits; the later ones lower speeds
_LEAST_STEP = 0.01  # relative, by which x is lowered at least
_TIGHTER = 1.1  # ratio of the lowering to the excess over a limit
_LEAST_ROOM = 0.05  # of what gravity and friction leave of a limit, that lowering leaves
_SLOPE_STEP = 1e-4  # relative, of the difference that stands for friction's derivative by x
_SMALLEST_X = 1e-8  # of a tangent
_MASSLESS = 1e-9  # inertia that is none [kg m² or kg]
_STANDS = 1e-9  # a joint's part of the path that is rounding: it stands
_ALONG = 1e-3  # a velocity across the path, in parts of the velocity, that is none

Ends = tuple[ArrayLike | None, ArrayLike | None]
"""Velocities at start and end [rad/s or m/s]; None: at rest."""


def retime(
    model: RobotModel | CompiledModel,
    waypoints: ArrayLike,
    *,
    acceleration_limits: ArrayLike | None = None,
    jerk_limits: ArrayLike | None = None,
    effort_margin: float = 0.0,
    effort_limits: ArrayLike | None = None,
    rms_effort_limits: ArrayLike | None = None,
    velocity_limits: ArrayLike | None = None,
    start_velocity: ArrayLike | None = None,
    end_velocity: ArrayLike | None = None,
    corners: Corners = 'spline',
    tolerance: float = 0.0,
    parameters: ArrayLike | None = None,
    grid_points: int = GRID_POINTS,
) -> TimedMotion:
    """
    Return the fastest motion along a path that the drives can make.

    Parameters
    ----------
    model : RobotModel or CompiledModel
        The arm with what it carries; a compiled one makes it several times faster.
    waypoints : array-like, shape (K, n)
        Positions [rad or m] that the path passes, at most 1,000.
    acceleration_limits, jerk_limits : array-like, shape (n,) or one number, optional
        Of the joints [rad/s² or m/s²], [rad/s³ or m/s³]; not given: none.
    effort_margin : float
        Part of the effort limits that is left to a controller, 0 to less than 1.
    effort_limits : array-like, shape (n,) or one number, optional
        [N m or N]; not given: the model's. Zero or infinite: none.
    rms_effort_limits : array-like, shape (n,) or one number, optional
        Of the effort's root mean square over the motion [N m or N], for drives whose effort limit
        is a peak. Kept by making the whole motion slower.
    velocity_limits : array-like, shape (n,) or one number, optional
        [rad/s or m/s]; not given: the model's. Zero or infinite: none.
    start_velocity, end_velocity : array-like, shape (n,), optional
        Along the path, but for a goal's [rad/s or m/s]; not given: rest.
    corners : 'spline', 'stop', 'blend' or 'goal'
        The path: a cubic spline through the waypoints; straight lines with a stop at each corner;
        straight lines with corners rounded within ``tolerance``. ``'goal'``: no path, only a start
        and a goal, at any velocities, by Ruckig; it needs acceleration limits.
    tolerance : float
        Of ``'blend'``: distance from the waypoint [rad or m].
    parameters : array-like, shape (K,), optional
        Of ``'spline'``: the spline's parameter at the waypoints, increasing; not given: the
        distance along them.
    grid_points : int
        Intervals of the grid, at most 20,000; more where the path has many segments.

    Returns
    -------
    TimedMotion

    Raises
    ------
    InvalidArgument, NonFiniteValue, WrongType
        An argument; a path outside of the position limits; a joint that moves although nothing
        limits its acceleration.
    NoBackend
        Ruckig cannot be imported.
    Overload
        The torque that holds the arm somewhere on the path, or that overcomes its friction there,
        is beyond a limit, or its root mean square is: joint, place, torque and limit are named.
    NoSolution
        The start is too fast to keep to the path within limits, or the end cannot be reached at
        its velocity.

    Notes
    -----
    Linear in the number of grid points. Friction is that of ``smooth_friction_torque`` with the
    nodes' ``friction_velocity``. The result is checked between each two samples: what moves by
    exact extremes, torque at nine places or more. With jerk limits it begins and ends at rest.
    """
    arm, inverse = _arm_of(model)
    points = checked_waypoints(waypoints, arm.n)
    limits = TimingLimits.of(
        arm,
        effort_limits,
        velocity_limits,
        acceleration_limits,
        effort_margin,
        jerk_limits,
        rms_effort_limits,
    )
    given = None
    if parameters is not None:
        given = checked_array('parameters', parameters, (len(points),))
        if (np.diff(given) <= 0.0).any():
            raise InvalidArgument('argument parameters', given.tolist(), 'increasing numbers')
    torque = ReferenceTorque(
        arm, inverse, Terms(friction=_has_friction(arm)), ControlSettings().friction_velocity
    )
    ends = start_velocity, end_velocity
    return retimed_points(
        points, torque, limits, corners, tolerance, given, ends=ends, grid_points=grid_points
    )


def _arm_of(model: RobotModel | CompiledModel) -> tuple[RobotModel, InverseDynamics]:
    allowed = 'a RobotModel or a CompiledModel'
    checked_type('model', model, (RobotModel, CompiledModel), allowed)
    if isinstance(model, CompiledModel):
        return model.model, model.inverse_dynamics
    return model, RigidBodyTorque('newton_euler').under(model)


def _has_friction(model: RobotModel) -> bool:
    plain = model.viscous_friction.any() or model.coulomb_friction.any()
    return bool(plain) or model.has_identified_friction


def retimed_points(
    points: FloatArray,
    torque: ReferenceTorque,
    limits: TimingLimits,
    corners: Corners,
    tolerance: float = 0.0,
    parameters: FloatArray | None = None,
    *,
    ends: Ends = (None, None),
    grid_points: int = GRID_POINTS,
) -> TimedMotion:
    """
    Return the fastest motion through checked waypoints; arguments and errors are ``retime``'s.

    Raises
    ------
    InvalidArgument, NonFiniteValue, NoBackend, Overload, NoSolution
    """
    if corners not in CORNERS:
        raise InvalidArgument('argument corners', corners, ', '.join(map(repr, CORNERS)))
    if corners == 'goal':
        return _to_goal(points, torque, limits, tolerance, ends)
    path = JointPath.through(points, corners, tolerance, parameters)
    return retimed_path(path, torque, limits, ends=ends, grid_points=grid_points)


def _to_goal(
    points: FloatArray,
    torque: ReferenceTorque,
    limits: TimingLimits,
    tolerance: float,
    ends: Ends,
) -> TimedMotion:
    if len(points) != 2 or tolerance != 0.0:
        raise InvalidArgument(
            'argument waypoints',
            Phrase(f'{len(points)} with tolerance {tolerance:g}'),
            "a start and a goal, and no tolerance, with corners='goal'",
        )
    n = points.shape[1]
    rest = np.zeros(n)
    velocities = [
        rest if velocity is None else checked_array(name, velocity, (n,))
        for name, velocity in zip(_ENDS, ends, strict=True)
    ]
    checked = limits.scaled(1.0 - _MARGIN_BETWEEN_SAMPLES)
    motion = motion_to_goal(torque, points, np.array(velocities), checked)
    motion, slowed = _slowed(torque, motion, limits, bool(np.any(velocities)))
    way = np.concatenate(
        [[0.0], np.cumsum(np.linalg.norm(np.diff(motion.position, axis=0), axis=1))]
    )
    return _timed(torque, motion, limits, way / way[-1], slowed=slowed)


def retimed_path(
    path: JointPath,
    torque: ReferenceTorque,
    limits: TimingLimits,
    *,
    ends: Ends = (None, None),
    grid_points: int = GRID_POINTS,
) -> TimedMotion:
    """
    Return the fastest motion along a path; arguments and errors are those of ``retime``.

    Raises
    ------
    InvalidArgument, NonFiniteValue, Overload, NoSolution
    """
    if not 2 <= grid_points <= MOST_GRID_POINTS:
        raise InvalidArgument('argument grid_points', grid_points, f'2 to {MOST_GRID_POINTS}')
    grid = _Grid.of(path, torque, limits, grid_points)
    checked = limits.scaled(1.0 - _MARGIN_BETWEEN_SAMPLES)
    rates = [grid.rate(name, v, k) for name, v, k in zip(_ENDS, ends, (0, -1), strict=True)]
    is_moving = any(rates)
    if limits.jerk is not None and is_moving:
        raise InvalidArgument(
            'argument jerk_limits', Phrase('given with a velocity at an end'), 'rest at both'
        )
    x, is_within = grid.fastest(rates[0] ** 2, rates[1] ** 2)
    motion, place = grid.motion(x), grid.parameters()
    cost = 0.0
    if limits.jerk is not None:
        before = motion.duration
        motion, place = smoothed(path, grid.law(x), torque, checked)
        cost = motion.duration - before
    lower, upper = torque.model.position_limits.T
    lowest, highest = motion.polynomials.extremes(0)
    if (lowest < lower - ROUNDING).any() or (highest > upper + ROUNDING).any():
        if 2 * grid_points > MOST_GRID_POINTS:
            grid.check_positions(np.stack([lowest, highest], axis=1))
        # The path keeps them, cubics between places far apart do not.
        return retimed_path(path, torque, limits, ends=ends, grid_points=2 * grid_points)
    slowed = ''
    if limits.jerk is not None or limits.rms is not None or not is_within:
        motion, slowed = _slowed(torque, motion, checked, is_moving)
    progress = (place - path.knots[0]) / path.length
    return _timed(torque, motion, limits, progress, cost, slowed)


def _slowed(
    torque: ReferenceTorque, motion: Waypoints, limits: TimingLimits, is_moving: bool
) -> tuple[Waypoints, str]:
    """
    Return the motion as slow as its limits need it, and what slowed it, as text.

    Raises
    ------
    Overload
    NoSolution
        It moves at an end: it cannot be slower.
    """
    course = Course(torque, motion, limits)
    scale = course.scale()
    slowed = f'{scale:.4g} times the time: {course.reason()}' if scale > 1.0 else ''
    if slowed and is_moving:
        raise NoSolution(
            'argument waypoints',
            Phrase(f'needs {slowed}'),
            'a start and an end at rest, which can be slower',
        )
    return motion.slower(scale), slowed


def _timed(
    torque: ReferenceTorque,
    motion: Waypoints,
    limits: TimingLimits,
    progress: FloatArray,
    cost: float = 0.0,
    slowed: str = '',
) -> TimedMotion:
    names = torque.model.joint_names
    polynomials = motion.polynomials
    states = polynomials.between(motion.places)
    efforts, qdd = torque_of(torque, states), states[2]
    shares = {
        'effort': np.abs(efforts).max(axis=1) / limits.effort,
        'velocity': polynomials.largest(1) / limits.velocity,
        'acceleration': polynomials.largest(2) / limits.acceleration,
    }
    return TimedMotion(
        names,
        motion.time,
        motion.position,
        motion.velocity,
        np.vstack([qdd[:, 0], qdd[-1:, -1]]),
        np.vstack([efforts[:, 0], efforts[-1:, -1]]),
        progress,
        active_limits(motion, names, shares),
        cost,
        rms_of(motion, efforts),
        slowed,
    )


_ENDS = ('start_velocity', 'end_velocity')


@dataclass(frozen=True, eq=False)
class _Grid:
    """
    A path on a grid of N intervals; arrays (N, 2, n) are at both ends.

    Ends of neighbouring intervals are the same place, but for a corner.
    """

    path: JointPath
    torque: ReferenceTorque
    limits: TimingLimits
    segment: np.ndarray  # (N,)
    ends: FloatArray  # (N, 2), places in segments
    step: FloatArray  # (N,), of the parameter
    q: FloatArray
    slope: FloatArray  # dq/ds
    bend: FloatArray  # d²q/ds²
    a: FloatArray
    b: FloatArray
    c: FloatArray
    highest: FloatArray  # (N + 1,), x by the velocity limits

    @classmethod
    def of(
        cls, path: JointPath, torque: ReferenceTorque, limits: TimingLimits, points: int
    ) -> _Grid:
        """
        Return the grid of a path, position limits and torques at rest checked.

        Raises
        ------
        InvalidArgument, Overload
        """
        segment, ends = path.grid(points)
        if len(segment) > MOST_GRID_POINTS:
            raise InvalidArgument(
                'argument waypoints',
                Phrase(
                    f'a path of {len(segment)} grid points, with {int(path.is_stop.sum())} stops'
                ),
                f'at most {MOST_GRID_POINTS} points; noise of a recording makes stops',
            )
        q, slope, bend = path.states(segment, ends)
        zero = np.zeros_like(q)
        c = rigid_torque(torque, q, zero, zero)
        a = rigid_torque(torque, q, zero, slope) - c
        b = rigid_torque(torque, q, slope, bend) - c
        with np.errstate(divide='ignore'):
            allowed = ((limits.velocity / np.abs(slope)) ** 2).min(axis=2, initial=_FASTEST)
        highest = np.full(len(segment) + 1, _FASTEST)
        highest[:-1] = np.minimum(highest[:-1], allowed[:, 0])
        highest[1:] = np.minimum(highest[1:], allowed[:, 1])
        is_first = ends[:, 0] == 0.0
        highest[:-1][is_first & path.is_stop[segment]] = 0.0
        step = np.diff(path.parameter(segment[:, None], ends), axis=1)[:, 0]
        grid = cls(path, torque, limits, segment, ends, step, q, slope, bend, a, b, c, highest)
        _ = grid.left  # which checks it
        return grid

    def parameters(self) -> FloatArray:
        """The path's parameter at grid points, (N + 1,)."""
        begin = self.path.parameter(self.segment, self.ends[:, 0])
        return np.append(begin, self.path.knots[-1])

    def where(self, k: int) -> str:
        """Return where an interval is, for people."""
        parameter = float(self.path.parameter(self.segment[k], self.ends[k, 0]))
        part = (parameter - self.path.knots[0]) / self.path.length
        return f'at {part:.3f} of the path, near waypoint {self.path.nearest_waypoint(parameter)}'

    def check_positions(self, q: FloatArray) -> None:
        """Refuse positions (N, P, n) in intervals that are beyond the model's limits."""
        check_positions(self.torque.model, q, self.where)

    @cached_property
    def left(self) -> FloatArray:
        """
        What holding the arm, and beginning to move it, leave of the effort limits, (N, 2, n).

        Raises
        ------
        InvalidArgument, Overload
            Positions or torques beyond their limits.
        """
        model = self.torque.model
        self.check_positions(self.q)
        if not all(np.isfinite(part).all() for part in (self.a, self.b, self.c)):
            raise InvalidArgument(
                'argument waypoints', Phrase('the torque there is not finite'), 'others'
            )
        self._check_bounds()
        check_resting(self.c, self.limits.effort, model, self.where)
        if not self.torque.terms.friction:
            return self.limits.effort - np.abs(self.c)
        moving = [
            self.c + friction_of(model, np.zeros_like(self.c), each, self.c)
            for each in self._directions(None)
        ]
        for needed in moving:
            check_resting(needed, self.limits.effort, model, self.where, 'torque to begin to move')
        return self.limits.effort - reduce(np.maximum, map(np.abs, moving))

    def _check_bounds(self) -> None:
        """
        Refuse joints that move although nothing bounds their acceleration.

        Raises
        ------
        InvalidArgument
        """
        model, q = self.torque.model, self.q[[0, len(self.q) // 2, -1], 0]
        inertia = np.diagonal(mass_matrix(model, q), axis1=1, axis2=2).max(axis=0)
        size = np.abs(self.slope).max(axis=(0, 1))
        has_effort = np.isfinite(self.limits.effort)
        is_bound = np.isfinite(self.limits.acceleration) | (has_effort & (inertia > _MASSLESS))
        free = np.flatnonzero((size > _STANDS) & ~is_bound)
        if not len(free):
            return
        names = ', '.join(repr(model.joint_names[j]) for j in free)
        light = ', '.join(repr(model.joint_names[j]) for j in free if inertia[j] <= _MASSLESS)
        what = f'nothing bounds the acceleration of {names}'
        if light:
            what += f': the bodies that move with {light} have no mass'
        raise InvalidArgument(
            'argument model',
            Phrase(what),
            'effort limits of bodies with masses, else acceleration_limits (--acceleration-limit)',
        )

    def rate(self, name: str, velocity: ArrayLike | None, k: int) -> float:
        """
        Return the path's rate at its beginning (k 0) or end (-1) from the joints' velocities.

        Raises
        ------
        InvalidArgument, NonFiniteValue
        """
        if velocity is None:
            return 0.0
        v = checked_array(name, velocity, (self.q.shape[2],))
        slope = self.slope[k, k]
        rate = float(v @ slope / (slope @ slope))
        across = np.linalg.norm(v - rate * slope)
        if across > _ALONG * np.linalg.norm(v) or rate < 0.0:
            direction = shown(slope / np.linalg.norm(slope))
            raise InvalidArgument(f'argument {name}', v.tolist(), f'along the path: {direction}')
        return rate

    def fastest(self, begin: float, end: float) -> tuple[FloatArray, bool]:
        """
        Return x at the grid points, (N + 1,), of the fastest motion that was found.

        Where rounds did not suffice it may still be beyond a limit, as is returned, too.

        Parameters
        ----------
        begin, end : float
            x there.

        Raises
        ------
        InvalidArgument, NoSolution
        """
        has_friction = self.torque.terms.friction
        tight = np.zeros((4, *self.q[:, 0].shape))  # of efforts, accelerations: highest, lowest
        highest = self.highest * (1.0 - _HEADROOM)
        rows = self._rows(None)
        x = self._solution(rows, tight, highest, begin, end)
        best, shortest, last = x, np.inf, np.inf
        for k in range(_MOST_SOLUTIONS):
            if has_friction:
                rows = self._rows(x)
            if has_friction or k > 0:
                x = self._solution(rows, tight, highest, begin, end)
            motion = self.motion(x)
            change, last = abs(last / motion.duration - 1.0), motion.duration
            if has_friction and change > _NEARLY_SETTLED:
                continue
            excess, speed = self._excess(motion)
            is_within = bool((excess <= 0.0).all() and (speed <= 1.0).all())
            if is_within and last < shortest:
                best, shortest = x, last
            if is_within and (change <= _SETTLED or not has_friction):
                break
            # Below what the ends of the interval use: where a joint turns round they use less.
            beyond = np.maximum(excess, 0.0)
            lower = np.maximum(tight, self._unused(rows, x)) + _TIGHTER * beyond
            tight = np.where(excess > 0.0, lower, tight)
            slower = (1.0 + _TIGHTER * np.maximum(speed - 1.0, 0.0)) ** -2
            if k >= _TIGHTENED:  # between places far apart the path's bend needs it, not its rows
                left = np.stack([self.left.min(axis=1)] * 2)
                share = np.concatenate([beyond[:2] / left, beyond[2:] / self.limits.acceleration])
                most = share.max(axis=(0, 2))
                slower = slower / (1.0 + most + _LEAST_STEP * (most > 0.0))
                slowest = np.minimum(highest, x)
                ends = np.stack([slowest[:-1], slowest[1:]])
                ends = np.where(slower < 1.0, slower * ends, np.inf)
                highest[:-1] = np.minimum(highest[:-1], ends[0])
                highest[1:] = np.minimum(highest[1:], ends[1])
            else:
                highest[:-1] *= slower
                highest[1:] *= slower
        is_found = shortest < np.inf
        return (best if is_found else x), is_found

    def _unused(
        self, rows: tuple[FloatArray, FloatArray, FloatArray], x: FloatArray
    ) -> FloatArray:
        """Return what x leaves of the limits of rows at the ends of intervals, (4, N, n)."""
        u, v, w = rows
        along = (np.diff(x) / (2.0 * self.step))[:, None]
        used = [
            u[:, :, k] * along + v[:, :, k] * y[:, None] + w[:, :, k]
            for k, y in ((0, x[:-1]), (1, x[1:]))
        ]
        limits = np.stack([self.limits.effort] * 2 + [self.limits.acceleration] * 2)
        return limits[:, None] - np.maximum(*used)

    def _rows(self, x: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """
        Return rows u, v, w (4, N, 2, n): u s'' + v x + w is beneath a bound of efforts or so.

        The first two are of the torque upwards and downwards, scaled by load friction, the others
        of the acceleration. Viscous friction is its tangent at x (N + 1,); None: there is none.
        """
        a, b, c = self.a, self.b, self.c
        bend, slope = self.bend, self.slope
        if not self.torque.terms.friction:
            up = (a, b, c)
            down = (-a, -b, -c)
        else:
            directions = self._directions(x)
            rest, growth = self._viscous(x)
            model = self.torque.model
            zero = np.zeros_like(c)
            dry = [friction_of(model, zero, each) for each in directions]
            own = [each[..., : model.n] for each in directions]
            gain_up = 1.0 + model.load_friction * reduce(np.maximum, own)
            gain_down = 1.0 - model.load_friction * reduce(np.minimum, own)
            most, least = rest + reduce(np.maximum, dry), rest + reduce(np.minimum, dry)
            up = (gain_up * a, gain_up * b + growth, gain_up * c + most)
            down = (-gain_down * a, -gain_down * b - growth, -gain_down * c - least)
        zero = np.zeros_like(bend)
        u, v, w = zip(up, down, (slope, bend, zero), (-slope, -bend, zero), strict=True)
        return np.stack(u), np.stack(v), np.stack(w)

    def _directions(self, x: FloatArray | None) -> list[FloatArray]:
        """
        Return the directions, from -1 to 1, that the drives may have in intervals, (N, 2, n + m).

        They are the path's, as if the smooth sign of friction were a sharp one: what has to be
        overcome. What helps to brake is the smooth sign's at x (N + 1,); None: nothing does. Where
        a drive turns round in an interval it may have either direction at both ends.
        """
        slope = drive_velocity(self.torque.model, self.slope)
        direction = np.where(np.abs(slope) > _STANDS, np.sign(slope), 0.0)
        turns = direction[:, :1] * direction[:, 1:] < 0.0
        found = [direction, np.where(turns, -direction, direction)]
        if x is None:
            return [*found, np.zeros_like(direction)]
        rate = np.sqrt(np.stack([x[:-1], x[1:]], axis=1))[..., None]
        return [*found, np.tanh(slope * rate / self.torque.friction_velocity)]

    def _viscous(self, x: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """
        Return the tangent at x (N + 1,) of friction that grows with speed, (N, 2, n) each.

        It is what it is at rest, and its growth with x. Where it would leave no torque for the arm
        at rest it is that at a smaller x.
        """
        model = self.torque.model
        if x is None:
            return np.zeros_like(self.c), np.zeros_like(self.c)
        direction = np.zeros_like(drive_velocity(model, self.slope))

        def tangent(at: FloatArray) -> tuple[FloatArray, FloatArray]:
            friction = friction_of(model, self.slope * np.sqrt(at), direction)
            farther = friction_of(model, self.slope * np.sqrt(at * (1.0 + _SLOPE_STEP)), direction)
            growth = (farther - friction) / (_SLOPE_STEP * at)
            return friction - growth * at, growth

        at = np.maximum(np.stack([x[:-1], x[1:]], axis=1)[..., None], _SMALLEST_X)
        rest, growth = tangent(at)
        for _ in range(_MOST_SOLUTIONS):
            too_fast = (np.abs(rest) > self.left).any(axis=2, keepdims=True)
            if not too_fast.any():
                break
            at = np.where(too_fast, 0.25 * at, at)
            rest, growth = tangent(at)
        return rest, growth

    def _solution(
        self,
        rows: tuple[FloatArray, FloatArray, FloatArray],
        tight: FloatArray,
        highest: FloatArray,
        begin: float,
        end: float,
    ) -> FloatArray:
        """Return x of the fastest timing under rows whose limits are tightened, (4, N, n)."""
        u, v, w = rows
        limits = np.stack([self.limits.effort] * 2 + [self.limits.acceleration] * 2)
        used = np.isfinite(limits)
        limits = np.where(used, limits, 0.0)
        # Lowered limits never stop the arm where the limits themselves do not.
        room = limits[:, None, None] - w
        bound = np.maximum(
            room - _HEADROOM * limits[:, None, None] - tight[:, :, None],
            np.minimum(room, _LEAST_ROOM * room),
        )
        # With s'' = (y - x) / (2 step), v counts at that end of the interval where the row is.
        half = u / (2.0 * self.step[:, None, None])
        alpha, beta = -half, half.copy()
        alpha[:, :, 0] += v[:, :, 0]
        beta[:, :, 1] += v[:, :, 1]

        def of_intervals(table: FloatArray) -> FloatArray:
            by_row = table.transpose(1, 2, 0, 3)[:, :, used]
            return np.ascontiguousarray(by_row.reshape(len(by_row), -1))

        table = [of_intervals(each) for each in (alpha, beta, bound)]
        ranges, x, failed = core.fastest_timing(
            table[0], table[1], table[2], highest, begin, (end, end)
        )
        if failed < len(self.step):
            raise NoSolution(
                f'joint {self._worst(rows, failed, end, end)} {self.where(failed)}',
                Phrase(
                    'there is no speed from which the end is reached at end_velocity, '
                    f'{end**0.5:.4g} along the path'
                ),
                'a slower end',
            )
        slack = 1e-6 * (1.0 + begin)
        if not ranges[0, 0] - slack <= begin <= ranges[0, 1] + slack:
            fastest, k = float(np.sqrt(ranges[0, 1])), 0
            raise NoSolution(
                f'start_velocity: {self._worst(rows, k, begin, float(ranges[1, 1]))} '
                f'{self.where(k)}',
                Phrase(f'{begin**0.5:.4g} along the path'),
                f'at most {fastest:.4g} there, from which limits on the way can be kept',
            )
        if end > 0.0 and ranges[-1, 1] < end * (1.0 - 1e-6):
            raise NoSolution(
                'end_velocity',
                Phrase(f'{end**0.5:.4g} along the path'),
                f'at most {ranges[-1, 1] ** 0.5:.4g}, by the velocity limits',
            )
        stuck = np.flatnonzero((x[1:] <= 0.0) & (x[:-1] <= 0.0))
        if len(stuck):
            k = int(stuck[0])
            raise NoSolution(
                f'{self._worst(rows, k, 0.0, 0.0)} {self.where(k)}',
                Phrase('no torque left to move the arm'),
                'a path on which gravity leaves some',
            )
        return x

    def _worst(
        self, rows: tuple[FloatArray, FloatArray, FloatArray], k: int, x: float, y: float
    ) -> str:
        """Return which joint would need most torque in an interval, and how much."""
        u, v, w = (part[:2, k] for part in rows)
        along = (y - x) / (2.0 * self.step[k])
        needed = u * along + v * np.array([x, y])[:, None] + w
        share = needed / self.limits.effort
        sign, _, j = np.unravel_index(int(share.argmax()), share.shape)
        torque = float(needed.max(axis=1)[sign, j]) * (1 - 2 * int(sign))
        name = self.torque.model.joint_names[j]
        return f'joint {name!r} needs {torque:.4g} of {self.limits.effort[j]:.4g}'

    def _time(self, rate: FloatArray) -> FloatArray:
        """Return the time at the grid points from the path's rate there, (N + 1,) each [s]."""
        return np.concatenate([[0.0], np.cumsum(2.0 * self.step / (rate[:-1] + rate[1:]))])

    def law(self, x: FloatArray) -> TimeLaw:
        """Return the time law of x (N + 1,)."""
        rate = np.sqrt(x)
        is_first = np.append(self.ends[:, 0] == 0.0, False)
        is_stop = is_first & np.append(self.path.is_stop[self.segment], False)
        return TimeLaw(self._time(rate), self.parameters(), rate, is_stop)

    def motion(self, x: FloatArray) -> Waypoints:
        """Return the motion of x (N + 1,)."""
        rate = np.sqrt(x)
        position = np.vstack([self.q[:, 0], self.q[-1:, 1]])
        velocity = np.vstack([self.slope[:, 0], self.slope[-1:, 1]]) * rate[:, None]
        return Waypoints(self._time(rate), position, velocity)

    def _excess(self, motion: Waypoints) -> tuple[FloatArray, FloatArray]:
        """Return what is beyond limits, (4, N, n), and the share of the velocity limits, (N,)."""
        polynomials = motion.polynomials
        q, qd, qdd = polynomials.between(motion.places)
        lowest, highest = effort_range(self.torque, rigid_torque(self.torque, q, qd, qdd), qd)
        limits = self.limits.scaled(1.0 - _MARGIN_BETWEEN_SAMPLES)
        effort, acceleration = limits.effort, limits.acceleration
        slowest, fastest = polynomials.extremes(2)
        excess = np.stack(
            [highest - effort, -lowest - effort, fastest - acceleration, -slowest - acceleration]
        )
        return excess, (polynomials.largest(1) / limits.velocity).max(axis=1)
