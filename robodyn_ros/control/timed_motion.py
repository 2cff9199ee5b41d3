# SPDX-License-Identifier: Apache-2.0
"""
A motion in time: its limits between its knots, and the time scale that keeps them.

Between two knots each joint moves along the polynomial that their states give, as the ROS 2 joint
trajectory controller has it. So what is checked here is what is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_number, checked_per_joint
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.polynomials import PLACES
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.dynamics.friction import drive_velocity, friction_of
from robodyn_ros.errors import InvalidArgument, Overload
from robodyn_ros.model import RobotModel, force_unit, position_unit
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.motions.possible_positions import PossiblePositions
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

_LARGEST_SCALE = 1e3  # a motion that is this much slower is as good as standing still
_WITHIN = 1e-6  # of a limit, that a slowed motion leaves
LIMITS = ('effort', 'velocity', 'acceleration')
"""What can keep a motion from being faster."""

ROUNDING = 1e-9  # a limit is kept up to this part of it


class ActiveLimit(NamedTuple):
    """
    What keeps a motion from being faster, for a while.

    Parameters
    ----------
    begin, end : float
        [s]
    joint : str
    limit : str
        One of ``LIMITS``.
    """

    begin: float
    end: float
    joint: str
    limit: str


@dataclass(frozen=True, eq=False)
class TimingLimits:
    """
    Limits of a motion, (n,) each; infinite where there is none.

    Parameters
    ----------
    effort : array
        Largest torque, without the margin [N m or N].
    velocity, acceleration : array
        [rad/s or m/s], [rad/s² or m/s²]
    jerk : array, optional
        [rad/s³ or m/s³]; None: there are none.
    rms : array, optional
        Of the torque's root mean square over the motion [N m or N]; None: there are none.
    """

    effort: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray | None = None
    rms: FloatArray | None = None

    def scaled(self, part: float) -> TimingLimits:
        """Return a part of the limits of effort, velocity and acceleration."""
        return replace(
            self,
            effort=part * self.effort,
            velocity=part * self.velocity,
            acceleration=part * self.acceleration,
        )

    @classmethod
    def of(
        cls,
        model: RobotModel,
        effort: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        margin: float = 0.0,
        jerk: ArrayLike | None = None,
        rms: ArrayLike | None = None,
    ) -> TimingLimits:
        """
        Return the limits of a model, where no others are given; a margin is a part of the efforts.

        Raises
        ------
        InvalidArgument, NonFiniteValue, WrongType
        """
        if not 0.0 <= checked_number('effort_margin', margin) < 1.0:
            raise InvalidArgument('argument effort_margin', margin, '0 to less than 1')
        efforts = known_effort_limits(model)
        if effort is not None:
            efforts = _limits('effort_limits', effort, model.n)
        velocities = _limits('velocity_limits', model.velocity_limits, model.n)
        if velocity is not None:
            velocities = _limits('velocity_limits', velocity, model.n)
        accelerations, jerks, rms_efforts = (
            _positive(f'{name}_limits', values, model.n)
            for name, values in (
                ('acceleration', acceleration),
                ('jerk', jerk),
                ('rms_effort', rms),
            )
        )
        if accelerations is None:
            accelerations = np.full(model.n, np.inf)
        return cls((1.0 - margin) * efforts, velocities, accelerations, jerks, rms_efforts)


def _limits(name: str, values: ArrayLike, n: int) -> FloatArray:
    """Return limits (n,), infinite where none is given: zero or infinite."""
    array = np.array(values, dtype=float)
    finite = checked_per_joint(name, np.where(np.isposinf(array), 0.0, array), n)
    if (finite < 0.0).any():
        raise InvalidArgument(f'argument {name}', finite.tolist(), 'each zero or more')
    return np.where(finite > 0.0, finite, np.inf)


def _positive(name: str, values: ArrayLike | None, n: int) -> FloatArray | None:
    """
    Return limits (n,), each more than zero; None: there are none.

    Raises
    ------
    InvalidArgument, NonFiniteValue
    """
    if values is None:
        return None
    limits = checked_per_joint(name, values, n)
    if (limits <= 0.0).any():
        raise InvalidArgument(f'argument {name}', limits.tolist(), 'each more than zero')
    return limits


@dataclass(frozen=True, eq=False, repr=False)
class TimedMotion(Record):
    """
    A path with its timing: what ``retime`` returns.

    Between two samples each joint moves along the cubic through both positions with both
    velocities; limits are kept there, too. Where the acceleration jumps, acceleration and effort
    of a sample are those that begin there.

    Attributes
    ----------
    joint_names : tuple of n str
    time : array, shape (N,)
        [s], from zero.
    position, velocity, acceleration, effort : array, shape (N, n)
        [rad or m, and per s, s²], [N m or N]; effort is that of the model with friction.
    progress : array, shape (N,)
        Part of the path that is done, 0 to 1.
    active_limits : tuple of ActiveLimit
        What limits the speed, in the order of time.
    smoothing_cost : float
        By how much jerk limits made it longer [s].
    rms_effort : array, shape (n,)
        Root mean square of the effort [N m or N].
    slowed : str
        What made the whole motion slower, and how much; empty: nothing did.
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray
    progress: FloatArray
    active_limits: tuple[ActiveLimit, ...] = ()
    smoothing_cost: float = 0.0
    rms_effort: FloatArray = None  # type: ignore[assignment]
    slowed: str = ''

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(self.time[-1])

    @property
    def waypoints(self) -> Waypoints:
        """The samples, between which it moves along cubics."""
        return Waypoints(self.time, self.position, self.velocity)

    def at(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """
        Return position, velocity and acceleration (M, n); outside of the motion those at its ends.

        Parameters
        ----------
        time : array, shape (M,)
            [s]
        """
        return self.waypoints.polynomials.at(time)


def torque_of(
    torque: ReferenceTorque, states: tuple[FloatArray, FloatArray, FloatArray]
) -> FloatArray:
    """Return the torque (N, P, n) at states of the same shape [N m or N]."""
    rigid = rigid_torque(torque, *states)
    return rigid + friction_between(torque, rigid, states[1])


def rigid_torque(
    torque: ReferenceTorque, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    """Return the rigid body's torque (N, P, n) at states of the same shape, in one call."""
    rows = (part.reshape(-1, q.shape[-1]) for part in (q, qd, qdd))
    return torque.inverse_dynamics(*rows).reshape(q.shape)


def friction_between(torque: ReferenceTorque, rigid: FloatArray, qd: FloatArray) -> FloatArray:
    """Return the friction torque (N, P, n) under a rigid body's torque and velocities."""
    if not torque.terms.friction:
        return np.zeros_like(rigid)
    return smooth_friction_torque(torque.model, torque.friction_velocity, qd, rigid)


def range_between(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest, (N, n) each, of values (N, P, n) at places."""
    places = list(table.swapaxes(0, 1))  # place by place: a reduction along them is slow
    return reduce(np.minimum, places), reduce(np.maximum, places)


def effort_range(
    torque: ReferenceTorque, rigid: FloatArray, qd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """
    Return the lowest and the highest torque, (N, n) each, of places (N, P, n) between knots.

    Where a drive turns round between two places, friction beside the turn has either direction.

    Parameters
    ----------
    torque : ReferenceTorque
    rigid : array, shape (N, P, n)
        The rigid body's torque [N m or N].
    qd : array, shape (N, P, n)
        [rad/s or m/s]
    """
    torques = rigid + friction_between(torque, rigid, qd)
    lowest, highest = range_between(torques)
    if not torque.terms.friction:
        return lowest, highest
    velocity = drive_velocity(torque.model, qd)
    slowest, fastest = range_between(velocity)
    turning = np.flatnonzero((slowest * fastest < 0.0).any(axis=1))
    row, place, drive = np.nonzero(velocity[turning, 1:] * velocity[turning, :-1] < 0.0)
    k = turning[row]
    own = np.flatnonzero(drive < torque.model.n)
    for beside in (place, place + 1):
        there, at_turn = rigid[k, beside], qd[k, beside]
        at_turn[own, drive[own]] = 0.0
        direction = np.tanh(velocity[k, beside] / torque.friction_velocity)
        for way in (-1.0, 1.0):
            direction[np.arange(len(drive)), drive] = way
            turned = there + friction_of(torque.model, at_turn, direction, there)
            np.minimum.at(lowest, k, turned)
            np.maximum.at(highest, k, turned)
    return lowest, highest


def rms_of(motion: Waypoints, torques: FloatArray) -> FloatArray:
    """Return the root mean square over time, (n,), of torques (N - 1, P, n) at even places."""
    weights = np.ones(torques.shape[1])
    weights[[0, -1]] = 0.5
    means = np.einsum('p,kpi->ki', weights / weights.sum(), torques**2)
    steps = np.diff(motion.time)
    return np.sqrt(steps @ means / steps.sum())


def check_positions(model: RobotModel, q: FloatArray, where: Callable[[int], str]) -> None:
    """
    Check positions (N, P, n) against the model's limits.

    Raises
    ------
    InvalidArgument
        Naming joint, place and position.
    """
    lower, upper = model.position_limits.T
    excess = np.maximum(lower - q, q - upper)
    if (excess > ROUNDING).any():
        k, place, j = (int(i) for i in np.unravel_index(int(excess.argmax()), excess.shape))
        reached = float(q[k, place, j])
        raise InvalidArgument(
            f'joint {model.joint_names[j]!r} position {where(k)}',
            reached,
            PossiblePositions.of(model).within_limits(j, reached),
            unit=position_unit(model.dh.prismatic[j]),
        )


def check_resting(
    resting: FloatArray,
    limits: FloatArray,
    model: RobotModel,
    where: Callable[[int], str],
    what: str = 'torque at rest',
) -> None:
    """
    Check torques at rest (N, P, n) against limits (n,).

    Raises
    ------
    Overload
        Naming joint, place, torque and limit.
    """
    excess = np.abs(resting) / limits
    if excess.max(initial=0.0) <= 1.0:
        return
    k, place, j = np.unravel_index(int(excess.argmax()), excess.shape)
    unit = force_unit(model.dh.prismatic[j])
    raise Overload(
        f'joint {model.joint_names[j]!r} {what} {where(int(k))}',
        float(resting[k, place, j]),
        f'at most {limits[j]:.6g} {unit}, what its effort limit leaves',
        unit=unit,
    )


class Course:
    """
    A motion in any multiple of its time: how much of its limits it uses between its knots.

    With time times k the inertial and Coriolis torque is divided by k², gravity stays, and
    friction is that of velocities divided by k. Velocities, accelerations and jerks are exact;
    torque is computed at places.

    Parameters
    ----------
    torque : ReferenceTorque
        Of the arm with what it carries.
    motion : Waypoints
    limits : TimingLimits
    """

    def __init__(self, torque: ReferenceTorque, motion: Waypoints, limits: TimingLimits) -> None:
        self._torque, self._motion, self._limits = torque, motion, limits
        polynomials = motion.polynomials
        q, self._qd, qdd = polynomials.between(motion.places)
        zero = np.zeros_like(q)
        self._resting = rigid_torque(torque, q, zero, zero)
        self._moving = rigid_torque(torque, q, self._qd, qdd) - self._resting
        self._shares = {
            'velocity': polynomials.largest(1) / limits.velocity,
            'acceleration': polynomials.largest(2) / limits.acceleration,
        }
        if limits.jerk is not None:
            self._shares['jerk'] = polynomials.largest(3) / limits.jerk

    def _torques(self, scale: float) -> tuple[FloatArray, FloatArray]:
        """Return the rigid body's torque and the velocities (N - 1, P, n) at a time scale."""
        return self._resting + self._moving / scale**2, self._qd / scale

    def shares(self, scale: float = 1.0) -> dict[str, FloatArray]:
        """Return the largest part of each limit that is used between knots, (N - 1, n) each."""
        lowest, highest = effort_range(self._torque, *self._torques(scale))
        moving = {
            name: share / scale**order
            for order, (name, share) in enumerate(self._shares.items(), 1)
        }
        return {'effort': np.maximum(-lowest, highest) / self._limits.effort, **moving}

    def rms(self, scale: float = 1.0) -> FloatArray:
        """Return the root mean square of the torque over time, (n,) [N m or N]."""
        rigid, qd = self._torques(scale)
        return rms_of(self._motion, rigid + friction_between(self._torque, rigid, qd))

    def scale(self) -> float:
        """
        Return the smallest time scale, 1 or more, at which the motion keeps its limits.

        Raises
        ------
        Overload
            The torque at rest on the way is beyond a limit, or its root mean square is.
        """
        model, time, rms_limits = self._torque.model, self._motion.time, self._limits.rms
        check_resting(
            self._resting,
            self._limits.effort,
            model,
            lambda k: f'at {time[k] - time[0]:.3f} s of the motion',
        )

        def excess(scale: float) -> float:
            worst = max(float(share.max(initial=0.0)) for share in self.shares(scale).values())
            if rms_limits is not None:
                worst = max(worst, float((self.rms(scale) / rms_limits).max()))
            return worst - 1.0 - ROUNDING

        if excess(1.0) <= 0.0:
            return 1.0
        low, high = 1.0, 1.0
        while excess(high) > 0.0:
            low, high = high, 1.5 * high
            if high > _LARGEST_SCALE:
                least = self.rms(high)
                limits = self._limits.effort if rms_limits is None else rms_limits
                j = int(np.argmax(least / limits))
                unit = force_unit(model.dh.prismatic[j])
                raise Overload(
                    f'joint {model.joint_names[j]!r} root mean square of the torque at rest',
                    float(least[j]),
                    f'at most {limits[j]:.6g} {unit}',
                    unit=unit,
                )
        from scipy.optimize import brentq  # a third of a second

        # The root of what is a little less than the limit, so that rounding keeps within it.
        if excess(high) + _WITHIN > 0.0:
            return high
        return float(brentq(lambda each: excess(each) + _WITHIN, low, high, rtol=1e-7))

    def reason(self) -> str:
        """Return which limit is passed by most, and by how much, as text."""
        shares = self.shares()
        if self._limits.rms is not None:
            shares['rms effort'] = (self.rms() / self._limits.rms)[None]
        kind = max(shares, key=lambda name: float(shares[name].max()))
        k, j = np.unravel_index(int(shares[kind].argmax()), shares[kind].shape)
        name = self._torque.model.joint_names[j]
        when = '' if len(shares[kind]) == 1 else f' at {self._motion.time[k]:.3f} s'
        return f'{kind} of joint {name!r} would be {shares[kind][k, j]:.4g} of its limit{when}'


def active_limits(
    motion: Waypoints,
    names: tuple[str, ...],
    shares: dict[str, FloatArray],
    share: float = 0.98,
) -> tuple[ActiveLimit, ...]:
    """
    Return which joint and which limit bind when, from the share of each limit that is used.

    Parameters
    ----------
    motion : Waypoints
    names : tuple of n str
    shares : mapping of the limit's name to an array (N - 1, n)
        The largest between two knots.
    share : float
        From this on a limit binds.
    """
    kinds = list(shares)
    table = np.stack([shares[kind] for kind in kinds], axis=1)  # (N - 1, kinds, n)
    flat = table.reshape(len(table), -1)
    worst = flat.argmax(axis=1)
    worst[flat.max(axis=1) < share] = -1
    begins = np.flatnonzero(np.concatenate([[True], np.diff(worst) != 0]))
    ends = np.append(begins[1:], len(worst))
    result = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        if worst[begin] >= 0:
            kind, joint = divmod(int(worst[begin]), len(names))
            span = float(motion.time[begin]), float(motion.time[end])
            result.append(ActiveLimit(*span, names[joint], kinds[kind]))
    return tuple(result)


def with_fewer_knots(
    motion: Waypoints,
    torque: ReferenceTorque,
    limits: TimingLimits,
    bound: FloatArray,
    tolerance: float,
) -> np.ndarray:
    """
    Return which knots are needed, as indices: without the others the motion is the same.

    Parameters
    ----------
    motion : Waypoints
    torque : ReferenceTorque
    limits : TimingLimits
        Which the result keeps as the motion does, and the position limits.
    bound : array, shape (n,)
        By so much the torque may change [N m or N].
    tolerance : float
        By so much the positions may [rad or m].
    """
    kept = np.arange(len(motion.time))
    blocked = np.zeros(len(kept), bool)
    while True:
        # Every second knot of a run that may be dropped, so that no two neighbours are.
        candidates = kept[1:-1][~blocked[kept[1:-1]]]
        if not len(candidates):
            return kept
        order = np.flatnonzero(np.isin(kept, candidates))
        alone = np.concatenate([[True], np.diff(order) > 1])
        run = np.cumsum(alone)
        first = np.flatnonzero(alone)
        chosen = order[(np.arange(len(order)) - first[run - 1]) % 2 == 0]
        before, after = kept[chosen - 1], kept[chosen + 1]
        is_same = _is_same(motion, before, after, torque, limits, bound, tolerance)
        blocked[kept[chosen[~is_same]]] = True
        kept = np.delete(kept, chosen[is_same])


def _is_same(
    motion: Waypoints,
    before: np.ndarray,
    after: np.ndarray,
    torque: ReferenceTorque,
    limits: TimingLimits,
    bound: FloatArray,
    tolerance: float,
) -> np.ndarray:
    """Return whether between knots (P,) one polynomial has path, torque and limits, (P,)."""
    wide = motion.spans(before, after)
    states = wide.between()
    torques = torque_of(torque, states)
    times = motion.time[before][:, None] + np.outer(wide.steps, PLACES[1:-1])
    q, qd, qdd = motion.polynomials.at(times.ravel())
    inner = torques[:, 1:-1]
    near = (np.abs(inner - torque.at(q, qd, qdd).reshape(inner.shape)) <= bound) & (
        # The torque of a light joint hardly depends on where it moves.
        np.abs(states[0][:, 1:-1] - q.reshape(inner.shape)) <= tolerance
    )
    allowed = 1.0 + ROUNDING
    lower, upper = torque.model.position_limits.T
    lowest, highest = wide.extremes(0)
    is_within = (
        (np.abs(torques) <= limits.effort * allowed).all(axis=1)
        & (wide.largest(1) <= limits.velocity * allowed)
        & (wide.largest(2) <= limits.acceleration * allowed)
        & (lowest >= lower - ROUNDING)
        & (highest <= upper + ROUNDING)
    )
    if limits.jerk is not None:
        is_within &= wide.largest(3) <= limits.jerk * allowed
    return near.all(axis=(1, 2)) & is_within.all(axis=1)
