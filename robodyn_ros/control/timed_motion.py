# SPDX-License-Identifier: Apache-2.0
"""
A motion through knots in time: its torque against limits, and the time scale that keeps them.

Between two knots each joint moves along the cubic that their positions and velocities give, as the
ROS 2 joint trajectory controller has it. So what is checked here is what is sent.
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
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.dynamics.friction import drive_velocity, friction_of
from robodyn_ros.errors import InvalidArgument, Overload
from robodyn_ros.model import RobotModel, force_unit, position_unit
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.motions.possible_positions import PossiblePositions
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

_PLACES = np.linspace(0.0, 1.0, 9)  # between two knots, at which limits are checked
_LARGEST_SCALE = 1e3  # a motion that is this much slower is as good as standing still
_SCALINGS = 60  # halvings of the scale's range
LIMITS = ('effort', 'velocity', 'acceleration')
"""What can keep a motion from being faster."""

ROUNDING = 1e-9  # a limit is kept up to this part of it


class Binding(NamedTuple):
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
    """

    effort: FloatArray
    velocity: FloatArray
    acceleration: FloatArray

    def scaled(self, part: float) -> TimingLimits:
        """Return a part of the limits."""
        return TimingLimits(part * self.effort, part * self.velocity, part * self.acceleration)

    @classmethod
    def of(
        cls,
        model: RobotModel,
        effort: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        margin: float = 0.0,
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
        accelerations = positive_limits('acceleration_limits', acceleration, model.n)
        if accelerations is None:
            accelerations = np.full(model.n, np.inf)
        return cls((1.0 - margin) * efforts, velocities, accelerations)


def _limits(name: str, values: ArrayLike, n: int) -> FloatArray:
    """Return limits (n,), infinite where none is given: zero or infinite."""
    array = np.array(values, dtype=float)
    finite = checked_per_joint(name, np.where(np.isposinf(array), 0.0, array), n)
    if (finite < 0.0).any():
        raise InvalidArgument(f'argument {name}', finite.tolist(), 'each zero or more')
    return np.where(finite > 0.0, finite, np.inf)


def positive_limits(name: str, values: ArrayLike | None, n: int) -> FloatArray | None:
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
    binding : tuple of Binding
        What limits the speed, in the order of time.
    smoothing_cost : float
        By how much jerk limits made it longer [s].
    rms_effort : array, shape (n,)
        Root mean square of the effort [N m or N].
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray
    progress: FloatArray
    binding: tuple[Binding, ...] = ()
    smoothing_cost: float = 0.0
    rms_effort: FloatArray = None  # type: ignore[assignment]

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(self.time[-1])

    def at(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """
        Return position, velocity and acceleration (M, n); outside of the motion those at its ends.

        Parameters
        ----------
        time : array, shape (M,)
            [s]
        """
        return Cubics(self.time, self.position, self.velocity).at(time)


@dataclass(frozen=True, eq=False)
class Cubics:
    """
    A motion of cubics through N knots.

    Parameters
    ----------
    time : array, shape (N,)
        [s]
    position, velocity : array, shape (N, n)
        [rad or m], [rad/s or m/s]
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray

    @property
    def duration(self) -> float:
        """From the first knot to the last [s]."""
        return float(self.time[-1] - self.time[0])

    def states(
        self, places: FloatArray = _PLACES, segment: slice | np.ndarray = slice(None)
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return q, qd, qdd, (N - 1, P, n), at places (P,) from 0 to 1 between knots."""
        step = np.diff(self.time)[segment][:, None, None]
        q, v = self.position, self.velocity
        corners = np.stack(
            [
                q[:-1][segment],
                q[1:][segment],
                v[:-1][segment] * step[:, 0],
                v[1:][segment] * step[:, 0],
            ],
            axis=1,
        )
        value, first, second = _AT_PLACES if places is _PLACES else _hermite(places)
        return value @ corners, first @ corners / step, second @ corners / step**2

    def at(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return q, qd, qdd (M, n) at times (M,) [s]; outside of the motion those at its ends."""
        time = np.clip(time, self.time[0], self.time[-1])
        k = np.clip(np.searchsorted(self.time, time, side='right') - 1, 0, len(self.time) - 2)
        step = np.diff(self.time)[k]
        s = (time - self.time[k]) / step
        q, v = self.position, self.velocity
        corners = np.stack(
            [q[k], q[k + 1], v[k] * step[:, None], v[k + 1] * step[:, None]], axis=1
        )
        value, first, second = (part[:, None] @ corners for part in _hermite(s))
        return value[:, 0], first[:, 0] / step[:, None], second[:, 0] / step[:, None] ** 2

    def slower(self, scale: float) -> Cubics:
        """Return the motion in so many times its time, 1 or more."""
        begin = self.time[0]
        return Cubics(begin + scale * (self.time - begin), self.position, self.velocity / scale)


def _hermite(s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what value and derivatives at s (P,) are of q0, q1, v0 h and v1 h, (P, 4) each."""
    one, zero = np.ones_like(s), np.zeros_like(s)
    powers = np.stack([one, s, s**2, s**3], axis=1)
    first = np.stack([zero, one, 2.0 * s, 3.0 * s**2], axis=1)
    second = np.stack([zero, zero, 2.0 * one, 6.0 * s], axis=1)
    return powers @ _HERMITE, first @ _HERMITE, second @ _HERMITE


_HERMITE = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [-3, 3, -2, -1], [2, -2, 1, 1]], dtype=float)
_AT_PLACES = _hermite(_PLACES)


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


def largest_between(table: FloatArray) -> FloatArray:
    """Return the largest size, (N, n), of values (N, P, n) at places."""
    return reduce(np.maximum, list(np.abs(table).swapaxes(0, 1)))


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


def rms_of(cubics: Cubics, torques: FloatArray) -> FloatArray:
    """Return the root mean square over time, (n,), of torques (N - 1, P, n) at even places."""
    weights = np.ones(torques.shape[1])
    weights[[0, -1]] = 0.5
    means = np.einsum('p,kpi->ki', weights / weights.sum(), torques**2)
    steps = np.diff(cubics.time)
    return np.sqrt(steps @ means / steps.sum())


class _SlowedTorque:
    """
    The torque of a motion in any multiple of its time, without further inverse dynamics.

    With time times k the inertial and Coriolis torque is divided by k², gravity stays, and
    friction is that of velocities divided by k.

    Parameters
    ----------
    torque : ReferenceTorque
        Of the arm with what it carries.
    cubics : Cubics
    """

    def __init__(self, torque: ReferenceTorque, cubics: Cubics) -> None:
        q, qd, qdd = cubics.states()
        self._shape, n = q.shape, q.shape[-1]
        q, self._qd, qdd = (part.reshape(-1, n) for part in (q, qd, qdd))
        zero = np.zeros_like(q)
        self._torque = torque
        self._resting = torque.inverse_dynamics(q, zero, zero)
        self._moving = torque.inverse_dynamics(q, self._qd, qdd) - self._resting

    def rigid(self, scale: float) -> FloatArray:
        """Return the rigid body's torque (N - 1, P, n) at so many times the time [N m or N]."""
        return (self._resting + self._moving / scale**2).reshape(self._shape)

    def speed(self, scale: float) -> FloatArray:
        """Return the velocities of the same shape [rad/s or m/s]."""
        return self._qd.reshape(self._shape) / scale

    def check_at_rest(self, limits: FloatArray, where: Callable[[int], str]) -> None:
        """
        Check the torque that holds the arm on the way; ``where`` tells the place of an interval.

        Raises
        ------
        Overload
        """
        check_resting(self._resting.reshape(self._shape), limits, self._torque.model, where)


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
    resting: FloatArray, limits: FloatArray, model: RobotModel, where: Callable[[int], str]
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
        f'joint {model.joint_names[j]!r} torque at rest {where(int(k))}',
        float(resting[k, place, j]),
        f'at most {limits[j]:.6g} {unit}, what its effort limit leaves',
        unit=unit,
    )


def time_scale(
    torque: ReferenceTorque,
    cubics: Cubics,
    effort_limits: FloatArray,
    rms_limits: FloatArray | None = None,
) -> float:
    """
    Return the smallest time scale, 1 or more, at which a motion keeps its effort limits.

    For an arm with another payload than the one that the motion was timed for, and for limits of
    the root mean square.

    Parameters
    ----------
    torque : ReferenceTorque
        Of the arm with what it carries.
    cubics : Cubics
        The motion; what is slower begins and ends slower, too.
    effort_limits : array, shape (n,)
        Largest torque [N m or N].
    rms_limits : array, shape (n,), optional
        Of the torque's root mean square over the motion [N m or N].

    Raises
    ------
    Overload
        The torque at rest on the way is beyond a limit, or its root mean square is.
    """
    slowed = _SlowedTorque(torque, cubics)
    begin = cubics.time[0]

    def where(k: int) -> str:
        return f'at {cubics.time[k] - begin:.3f} s of the motion'

    slowed.check_at_rest(effort_limits, where)
    allowed = effort_limits * (1.0 + ROUNDING)

    def rms(rigid: FloatArray, qd: FloatArray) -> FloatArray:
        return rms_of(cubics, rigid + friction_between(torque, rigid, qd))

    def keeps(scale: float) -> bool:
        rigid, qd = slowed.rigid(scale), slowed.speed(scale)
        lowest, highest = effort_range(torque, rigid, qd)
        if (highest > allowed).any() or (lowest < -allowed).any():
            return False
        return rms_limits is None or bool((rms(rigid, qd) <= rms_limits).all())

    if keeps(1.0):
        return 1.0
    low, high = 1.0, 1.0
    while not keeps(high):
        low, high = high, 1.5 * high
        if high > _LARGEST_SCALE:
            least = rms(slowed.rigid(high), slowed.speed(high))
            limits = effort_limits if rms_limits is None else rms_limits
            j = int(np.argmax(least / limits))
            unit = force_unit(torque.model.dh.prismatic[j])
            raise Overload(
                f'joint {torque.model.joint_names[j]!r} root mean square of the torque at rest',
                float(least[j]),
                f'at most {limits[j]:.6g} {unit}',
                unit=unit,
            )
    for _ in range(_SCALINGS):
        if high - low <= 1e-6 * high:
            break
        middle = 0.5 * (low + high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def kinematic_scale(cubics: Cubics, limits: TimingLimits) -> float:
    """Return the time scale, 1 or more, at which velocity and acceleration limits are kept."""
    _, qd, qdd = cubics.states()
    speed = float((largest_between(qd) / limits.velocity).max())
    acceleration = float((largest_between(qdd) / limits.acceleration).max())
    return max(1.0, speed, acceleration**0.5)


def bindings(
    cubics: Cubics,
    names: tuple[str, ...],
    shares: dict[str, FloatArray],
    share: float = 0.98,
) -> tuple[Binding, ...]:
    """
    Return which joint and which limit bind when, from the share of each limit that is used.

    Parameters
    ----------
    cubics : Cubics
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
            span = float(cubics.time[begin]), float(cubics.time[end])
            result.append(Binding(*span, names[joint], kinds[kind]))
    return tuple(result)


def with_fewer_knots(
    cubics: Cubics, torque: ReferenceTorque, limits: FloatArray, bound: FloatArray
) -> np.ndarray:
    """
    Return which knots are needed, as indices: without the others the motion is the same.

    Parameters
    ----------
    cubics : Cubics
    torque : ReferenceTorque
    limits : array, shape (n,)
        Largest torque, which the result keeps as the motion does [N m or N].
    bound : array, shape (n,)
        By so much the torque may change [N m or N].
    """
    kept = np.arange(len(cubics.time))
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
        wide = _between(cubics, before, after)
        is_same = _is_same(cubics, wide, before, after, torque, limits, bound)
        blocked[kept[chosen[~is_same]]] = True
        kept = np.delete(kept, chosen[is_same])


def _between(cubics: Cubics, before: np.ndarray, after: np.ndarray) -> Cubics:
    """Return cubics whose every second segment, from the first on, is from a knot to another."""
    pairs = np.stack([before, after], axis=1).ravel()
    return replace(
        cubics,
        time=cubics.time[pairs],
        position=cubics.position[pairs],
        velocity=cubics.velocity[pairs],
    )


def _is_same(
    cubics: Cubics,
    wide: Cubics,
    before: np.ndarray,
    after: np.ndarray,
    torque: ReferenceTorque,
    limits: FloatArray,
    bound: FloatArray,
) -> np.ndarray:
    """Return whether the torque on each wide segment is that of the motion, (P,)."""
    count, n = len(before), cubics.position.shape[1]
    states = wide.states(segment=np.arange(0, 2 * count, 2))
    torques = torque_of(torque, states)
    inner = _PLACES[1:-1]
    times = cubics.time[before][:, None] + np.outer(
        cubics.time[after] - cubics.time[before], inner
    )
    given = torque.at(*cubics.at(times.ravel())).reshape(count, len(inner), n)
    near = (np.abs(torques[:, 1:-1] - given) <= bound).all(axis=(1, 2))
    return near & (np.abs(torques) <= limits * (1.0 + ROUNDING)).all(axis=(1, 2))
