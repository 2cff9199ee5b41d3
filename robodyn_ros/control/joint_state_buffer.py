# SPDX-License-Identifier: Apache-2.0
"""The arm's state, assembled by joint name from joint state messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.core_binding import core
from robodyn_ros.motions.possible_positions import PossiblePositions

Numbers = Sequence[float] | np.ndarray  # one for each name

# Low-pass of differenced velocities [s]: five samples at 1 kHz, a lag of 2 degrees at 1 Hz.
VELOCITY_TIME_CONSTANT = 0.005

# Shortest time over which two positions give a velocity [s].
SHORTEST_INTERVAL = 0.0005

_KNOWN = 0.8  # of the filter's weight, from which on it says what a velocity is
_BURST = 0.25  # of the mean interval of states that are not stamped
_NEWEST_INTERVAL = 0.02  # weight in it

# By how much a message may be late and come after a newer one [s]; by more where that newer one
# has only just come: another source sends what is newer, and no clock was set back.
LONGEST_DELAY, LONGEST_DELAY_OF_SOURCE = 0.05, 0.15

# A stamp older than this is of another clock, not late [s].
WRONG_CLOCK = 1.0

# A simulation that sends no state for longer is reported to stand still [s].
LONGEST_STEP = 1.0

_MOST_STRANGERS, _LONGEST_NAME = 7, 40  # named in a report
_MOST_LAYOUTS = 32  # of messages remembered; one that names joints at random must not fill memory


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Return an angle [rad] modulo whole turns, in [-pi, pi]."""
    return np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi


class ElapsedTime:
    """
    Measures the age of messages by the steady clock, or by simulated time if that is less.

    So a simulation may be paused, stepped or slow: while its time stands still, nothing of it is
    late. What is stamped by another clock does not belong to it.

    Parameters
    ----------
    simulated_time : callable, optional
        Returns what the simulation's time is [s]; not given: time is not simulated.
    """

    def __init__(self, simulated_time: Callable[[], float] | None = None) -> None:
        self._simulated_time = simulated_time

    @property
    def is_simulated(self) -> bool:
        """Whether stamps are of simulated time."""
        return self._simulated_time is not None

    @property
    def simulated(self) -> float:
        """Simulated time [s]; NaN: time is not simulated."""
        return math.nan if self._simulated_time is None else self._simulated_time()

    @property
    def lacks_clock(self) -> bool:
        """Whether time is simulated and none has come."""
        return self.simulated == 0.0

    def time(self, now: float) -> float:
        """Return the time of the arm's motion [s]: simulated, or else the given steady time."""
        return now if self._simulated_time is None else self._simulated_time()

    def since(self, received: float, stamp: float, now: float) -> float:
        """
        Return the time [s] since a message with a stamp came.

        Parameters
        ----------
        received, now : float
            Steady time [s].
        stamp : float
            By the clock of stamps [s]; NaN: it had none.
        """
        return core.since(received, stamp, now, self.simulated)


class MeasuredState(NamedTuple):
    """
    One complete state of the arm, at the start of a control cycle.

    Parameters
    ----------
    position : array, shape (n,)
        [rad] or [m], always finite.
    velocity : array, shape (n,)
        [rad/s] or [m/s]; NaN where it is not known yet.
    time : float
        What a reference is sampled with [s]: the newest stamp, or the time of receipt where
        drivers do not stamp.
    stamped : bool
        Whether the time is a stamp.
    effort : array, shape (n,), or None
        As reported, in the drives' unit; NaN where it is not known, None where none came.
    """

    position: np.ndarray
    velocity: np.ndarray
    time: float
    stamped: bool = True
    effort: np.ndarray | None = None

    @property
    def has_velocities(self) -> bool:
        """Whether all velocities are known; on arrays this short, quicker than numpy's way."""
        return all(map(isfinite, self.velocity.tolist()))


class JointStateBuffer:
    """
    The newest position and velocity of every joint, and when they came.

    Parameters
    ----------
    joint_names : sequence of str, length n
        In chain order.
    timeout : float
        Age of its last sample from which a joint is stale [s].
    continuous : array of bool, shape (n,)
        Joints whose position may jump by whole turns.
    possible : PossiblePositions, optional
        Those of the arm; not given: all are.
    elapsed : ElapsedTime, optional
        Measures how long ago a state came; not given: by the steady clock.
    velocity_limits : array, shape (n,), optional
        [rad/s] or [m/s]; a position much further away than they allow gives no velocity.

    Notes
    -----
    A position that is not finite counts as that joint missing from the message. A message with a
    position that is impossible is in other units, and nothing of it is used. A velocity that
    is missing or not finite is replaced by the filtered difference of positions; it is unknown
    until samples of about two of the filter's time constants exist, again after a gap longer than
    the timeout, and where the position changed while the stamp did not. A message stamped before
    the joint's last one, by less than ``LONGEST_DELAY``, is late and ignored, by less than
    ``LONGEST_DELAY_OF_SOURCE`` for the time of ``LONGEST_DELAY``; by more, or with that last one
    stale, the clock was set back.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        timeout: float,
        continuous: np.ndarray | None = None,
        possible: PossiblePositions | None = None,
        elapsed: ElapsedTime | None = None,
        velocity_limits: np.ndarray | None = None,
    ) -> None:
        self.elapsed = elapsed or ElapsedTime()
        self.joint_names = tuple(joint_names)
        self.timeout = timeout
        n = len(self.joint_names)
        self._continuous = np.zeros(n, dtype=bool) if continuous is None else continuous
        self._velocity_limits = np.full(n, np.inf) if velocity_limits is None else velocity_limits
        unlimited = np.full((n, 2), [-np.inf, np.inf]), np.zeros(n, dtype=bool)
        self._possible = possible or PossiblePositions(self.joint_names, *unlimited)
        self._index = {name: i for i, name in enumerate(self.joint_names)}
        self._whole = np.arange(n)  # marks the layout of a message that is just ours
        self._layouts: dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]] = {}
        self.forget()

    def forget(self) -> None:
        """Discard all samples."""
        n = len(self.joint_names)
        self._position = np.full(n, np.nan)
        self._velocity = np.full(n, np.nan)
        self._effort: np.ndarray | None = None  # once there is any
        self._received = np.full(n, -np.inf)
        self._sampled = np.full(n, -np.inf)
        self._stamped = np.zeros(n, dtype=bool)
        self._refreshed = np.zeros(n, dtype=bool)
        # Of joints without velocities: the sample that the next difference is from, when the last
        # one came, the filter's sum and its weight.
        self._base, self._based = np.full(n, np.nan), np.full(n, -np.inf)
        self._differenced_at = np.full(n, np.nan)
        self._total, self._weight = np.zeros(n), np.zeros(n)
        self._mean_interval = 0.0  # of states that are not stamped [s]
        self._newest = -np.inf  # of the samples
        self._oldest = -np.inf  # of the receipts
        self._whole_state: MeasuredState | None = None  # from the last message alone
        self._strangers: tuple[str, ...] = ()  # in the last message that named none of ours
        self._not_finite: dict[int, float] = {}  # the newest position, where it is not
        self._impossible: dict[int, float] = {}  # the same, in messages that are in other units
        self._stamp_age = 0.0  # of the last message, when it came

    def receive(
        self,
        names: Sequence[str],
        position: Numbers,
        velocity: Numbers,
        *,
        received: float,
        stamp: float = 0.0,
        age: float = 0.0,
        effort: Numbers = (),
    ) -> str | None:
        """
        Take one message, and return what is wrong with it, or None.

        Parameters
        ----------
        names, position, velocity
            As in sensor_msgs/JointState; other joints than the arm's are ignored.
        received : float
            When it came, by the steady clock [s].
        stamp : float
            When the driver says it was measured [s]; 0: it does not say.
        age : float
            How old the stamp was when it came [s]; it counts toward staleness.
        effort
            As in sensor_msgs/JointState; of another length than the names, it is ignored.
        """
        if len(position) != len(names):
            # Messages of other joints, of a gripper, share the topic: their faults are not ours.
            if names and not self.knows_any(names):
                return None
            return f'{len(names)} names but {len(position)} positions'
        if len(velocity) not in (0, len(names)):
            if not self.knows_any(names):
                return None
            return f'{len(names)} names but {len(velocity)} velocities'
        layout = self._layout(names)
        if layout is None:
            return 'a joint is named twice'
        source, target = layout
        if len(source) == 0:
            self._strangers = tuple(names[:_MOST_STRANGERS])
            return None
        self._stamp_age = age
        time = stamp if stamp > 0.0 else received
        if source is self._whole and self._take_in_whole(
            position, velocity, effort, received - max(age, 0.0), time, stamp > 0.0
        ):
            return None
        positions = np.asarray(position, dtype=float)[source]
        if self._is_in_other_units(target.tolist(), positions.tolist()):
            return None
        velocities = (
            np.asarray(velocity, dtype=float)[source]
            if len(velocity)
            else np.full(len(source), np.nan)
        )
        efforts = np.asarray(effort, dtype=float)[source] if len(effort) == len(names) else None
        usable = np.isfinite(positions)
        if self._not_finite or not usable.all():
            for joint, is_usable, value in zip(target.tolist(), usable, positions.tolist()):
                self._not_finite.pop(joint, None)
                if not is_usable:
                    self._not_finite[joint] = value
        if time < self._newest:
            usable &= ~self._is_late(target, time, stamp > 0.0, received)
        if not usable.all():
            positions, velocities = positions[usable], velocities[usable]
            target = target[usable]
            efforts = None if efforts is None else efforts[usable]
        self._take_in(target, positions, velocities, time, stamp > 0.0)
        self._take_in_effort(target, efforts)
        self._received[target] = received - max(age, 0.0)
        self._oldest = float(self._received.min())
        self._refreshed[target] = True
        return None

    @property
    def is_complete(self) -> bool:
        """Whether every joint was refreshed since the last ``take``."""
        return self._whole_state is not None or bool(self._refreshed.all())

    def take(self) -> MeasuredState:
        """Return the complete state, and start to collect the next one."""
        self._refreshed.fill(False)
        if self._whole_state is not None:
            state, self._whole_state = self._whole_state, None
            return state
        stamped = bool(self._stamped.any())
        times = self._sampled[self._stamped] if stamped else self._sampled
        time = float(times.max())
        return MeasuredState(self._position, self._velocity, time, stamped, self._effort)

    @property
    def has_begun(self) -> bool:
        """Whether a sample of any joint has come."""
        return bool(np.isfinite(self._received).any())

    def stale_joints(self, now: float) -> tuple[str, ...]:
        """Return the joints whose last sample is older than the timeout, by ``elapsed``."""
        if now - self._oldest <= self.timeout:
            return ()
        stamps = np.where(self._stamped, self._sampled, np.nan).tolist()
        return tuple(
            name
            for name, received, stamp in zip(self.joint_names, self._received.tolist(), stamps)
            if self.elapsed.since(received, stamp, now) > self.timeout
        )

    def standstill(self, now: float) -> float:
        """Return for how long a simulation has stood still [s]; 0: not, or not for long."""
        age = self.age(now)
        is_long = LONGEST_STEP < age < np.inf and self.elapsed.is_simulated
        return age if is_long and not self.stale_joints(now) else 0.0

    def knows_any(self, names: Sequence[str]) -> bool:
        """Return whether one of the names is a joint of the arm."""
        return any(name in self._index for name in names)

    def trouble(self) -> str:
        """Return what is wrong with the joint states that come, as text; empty: nothing."""
        bad = [
            f'position of {self.joint_names[i]} is {position}'
            for i, position in sorted(self._not_finite.items())
        ]
        if impossible := self._possible.remark(dict(sorted(self._impossible.items()))):
            bad.append(impossible)
        if bad:
            return ', '.join(bad)
        if self._strangers and not self.has_begun:
            # From a topic into the log, which a terminal may show: as text with no escapes.
            names = ', '.join(repr(name[:_LONGEST_NAME])[1:-1] for name in self._strangers)
            return f'joint states name {names}; none is on the chain'
        return self.old_stamp()

    def old_stamp(self) -> str:
        """Return how old the stamp of the last message was, as text; empty: not too old."""
        if self._stamp_age <= self.timeout:
            return ''
        if self._stamp_age > WRONG_CLOCK:
            return (
                f'joint states have stamps of another clock ({self._stamp_age:.0f} s behind this '
                "node's): set use_sim_time as their source does"
            )
        words = f'joint states are stamped {self._stamp_age:.3f} s ago; allowed: state_timeout = '
        return f'{words}{self.timeout:g}'

    @property
    def received(self) -> float:
        """When the oldest joint's sample came, by the steady clock [s]."""
        return self._oldest

    @property
    def stamp_age(self) -> float:
        """How old the stamp of the last message was when it came [s]; 0: it had none."""
        return self._stamp_age

    def age(self, now: float) -> float:
        """Return how old the oldest joint's sample is [s]; infinite if one never came."""
        return now - self._oldest

    def _layout(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return which entries of such a message go to which joints; None if one comes twice."""
        key = tuple(names)
        layout = self._layouts.get(key)
        if layout is None:
            pairs = [(i, self._index[name]) for i, name in enumerate(key) if name in self._index]
            source = np.array([i for i, _ in pairs], dtype=int)
            target = np.array([j for _, j in pairs], dtype=int)
            if len(set(target.tolist())) < len(target):
                return None
            if key == self.joint_names:
                source = self._whole
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[key] = (source, target)
        return layout

    def _is_in_other_units(self, joints: list[int], positions: list[float]) -> bool:
        """Return whether a message holds an impossible position, and remember which."""
        question = self._possible.question
        is_impossible = False
        for joint, position in zip(joints, positions):
            self._impossible.pop(joint, None)
            if question(joint, position):
                self._impossible[joint] = position
                is_impossible = True
        return is_impossible

    def _is_late(
        self, target: np.ndarray, time: float, stamped: bool, received: float
    ) -> np.ndarray:
        behind = self._sampled[target] - time
        since = received - self._received[target]
        is_late = (behind < min(LONGEST_DELAY, self.timeout)) & (since <= self.timeout)
        is_overtaken = (behind < LONGEST_DELAY_OF_SOURCE) & (since <= LONGEST_DELAY)
        return (self._stamped[target] == stamped) & (behind > 0.0) & (is_late | is_overtaken)

    def _take_in_whole(
        self,
        position: Numbers,
        velocity: Numbers,
        effort: Numbers,
        received: float,
        time: float,
        stamped: bool,
    ) -> bool:
        """Take a message of all joints in order, if it needs no further checks."""
        if len(velocity) == 0 or time < self._newest:
            return False
        possible = self._possible
        found = core.valid_state(position, velocity, effort, possible.lowest, possible.highest)
        if found is None:
            return False
        # New arrays: those of the message before are in use.
        self._position, self._velocity, self._effort = found
        self._whole_state = MeasuredState(
            self._position, self._velocity, time, stamped, self._effort
        )
        self._received.fill(received)
        self._oldest = received
        self._sampled.fill(time)
        self._stamped.fill(stamped)
        self._refreshed.fill(True)
        self._newest = time
        if self._not_finite:
            self._not_finite.clear()
        if self._impossible:
            self._impossible.clear()
        return True

    def _take_in(
        self,
        target: np.ndarray,
        positions: np.ndarray,
        velocities: np.ndarray,
        time: float,
        stamped: bool,
    ) -> None:
        differenced = ~np.isfinite(velocities)
        if differenced.any():
            joints = target[differenced]
            velocities = velocities.copy()
            velocities[differenced] = self._differenced(
                joints, positions[differenced], time, stamped
            )
        # Copies: the arrays may be in use, in the state of a message that was whole.
        self._whole_state = None
        self._position, self._velocity = self._position.copy(), self._velocity.copy()
        self._position[target] = positions
        self._velocity[target] = velocities
        self._sampled[target] = time
        self._newest = max(self._newest, time)
        self._stamped[target] = stamped

    def _take_in_effort(self, target: np.ndarray, efforts: np.ndarray | None) -> None:
        if self._effort is None and efforts is None:
            return
        before = np.full(len(self._index), np.nan) if self._effort is None else self._effort
        self._effort = before.copy()
        self._effort[target] = np.nan if efforts is None else efforts

    def _differenced(
        self, joints: np.ndarray, positions: np.ndarray, time: float, stamped: bool
    ) -> np.ndarray:
        """Return filtered velocities; NaN until the samples suffice for a difference."""
        last, known = self._sampled[joints], self._velocity[joints]
        since = time - last
        way = self._way(joints, positions - self._position[joints])
        comparable = (
            (self._stamped[joints] == stamped) & (since >= 0.0) & (since <= self.timeout)
        ) & ~((since == 0.0) & (way != 0.0))
        # Where another sample came between, one with a velocity, this begins with that.
        begins = last != self._differenced_at[joints]
        base = np.where(begins, self._position[joints], self._base[joints])
        based = np.where(begins, last, self._based[joints])
        total = np.where(begins, np.nan_to_num(known), self._total[joints])
        weight = np.where(begins, np.isfinite(known), self._weight[joints])
        elapsed = time - based
        way = self._way(joints, positions - base)
        with np.errstate(invalid='ignore'):  # no limit, and no time
            farthest = core.PLAUSIBLE_SPEED_RATIO * self._velocity_limits[joints] * elapsed
        possible = np.abs(way) <= farthest + core.PLAUSIBLE_STEP
        # Times of receipt are not times of measurement: what comes in a burst was held up.
        is_burst = np.full(len(joints), not stamped) & (since < _BURST * self._mean_interval)
        is_due = comparable & (elapsed >= SHORTEST_INTERVAL) & possible & ~is_burst
        with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
            gain = np.where(is_due, -np.expm1(-elapsed / VELOCITY_TIME_CONSTANT), 0.0)
            total = total + gain * (np.where(is_due, way / elapsed, 0.0) - total)
        weight = weight + gain * (1.0 - weight)
        total, weight = np.where(comparable, (total, weight), 0.0)
        moves = is_due | is_burst | ~comparable
        self._base[joints] = np.where(moves, positions, base)
        self._based[joints] = np.where(moves, time, based)
        self._total[joints], self._weight[joints] = total, weight
        self._differenced_at[joints] = time
        if not stamped and comparable.any():
            interval = float(since[comparable].min())
            mean = self._mean_interval
            self._mean_interval = mean + _NEWEST_INTERVAL * (interval - mean) if mean else interval
        is_known = weight >= _KNOWN
        return np.where(is_known, total / np.where(is_known, weight, 1.0), np.nan)

    def _way(self, joints: np.ndarray, displacement: np.ndarray) -> np.ndarray:
        return np.where(self._continuous[joints], wrapped(displacement), displacement)
