# SPDX-License-Identifier: Apache-2.0
"""When external torques are a contact, at which joint it shows, and on which link it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.errors import InvalidNumber, WrongShape
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

STANDSTILL = 0.02
"""A slower joint stands: stiction decides what its drive has to do [rad/s] or [m/s]."""

REVERSAL_TIME = 0.3
"""So long after it stood, or turned round, a joint's friction is not what it will be [s]."""

RELEASE = 0.7
"""A contact is over when every torque is under this fraction of its threshold."""

ACCUSTOMING_TIME, ACCUSTOMING_TIME_IN_CONTACT = 1.0, 5.0
"""
Time constants with which a standing joint's torque is taken for stiction [s]: drives wind up
against it slowly, and a push leaves some of it behind.
"""

_ROUNDING = 1e-6  # of differences of stamps [s]

SUSPICION = 0.5
"""A joint beyond this fraction of its threshold says that a contact lies on its link or beyond."""


@dataclass(frozen=True, eq=False, repr=False)
class ContactThresholds(ArrayRecord):
    """
    The external torques that an arm shows without any contact, and no more than these.

    Attributes
    ----------
    moving : array, shape (n,)
        Of a joint that moves [N m] or [N].
    standing : array, shape (n,)
        Of one that stands, or stood or turned round within ``REVERSAL_TIME`` [N m] or [N].

    Raises
    ------
    WrongShape
        The two are not of one shape.
    InvalidNumber
        A threshold that is not positive.
    """

    moving: FloatArray
    standing: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.moving) != 1 or np.shape(self.moving) != np.shape(self.standing):
            shapes = f'{np.shape(self.moving)} and {np.shape(self.standing)}'
            raise WrongShape('contact thresholds', shapes, 'one of each for each joint')
        for name, values in (('moving', self.moving), ('standing', self.standing)):
            if not ((values > 0.0) & np.isfinite(values)).all():
                raise InvalidNumber(
                    f'contact thresholds, {name}', values.tolist(), 'positive numbers [N m] or [N]'
                )


class Contact(NamedTuple):
    """
    A contact, at its begin or its end.

    Parameters
    ----------
    is_over : bool
        Whether it has just ended.
    joint : str
        The joint that showed it first, or most clearly.
    link : str
        The link that the contact is likely on: that of the outermost joint that shows it. It may
        lie on a link beyond, where its force has no lever about the joints in between.
    torque, threshold : float
        The external torque of that joint, and what it exceeds [N m] or [N].
    began, time : float
        When the torque exceeded its threshold first, and when this was said [s].
    """

    is_over: bool
    joint: str
    link: str
    torque: float
    threshold: float
    began: float
    time: float

    def __str__(self) -> str:
        what = 'contact is over' if self.is_over else 'contact'
        return (
            f'{what}: {abs(self.torque):.3g} of {self.threshold:.3g} N m or N at joint '
            f'{self.joint!r}, likely on link {self.link!r}'
        )


class StandingJoints:
    """
    Says which joints stand, or have stood or turned round of late.

    Parameters
    ----------
    n : int
        Joints.
    state : array, shape (2 n,), optional
        Where it is kept when each stood last, and the last velocities.
    """

    def __init__(self, n: int, state: FloatArray | None = None) -> None:
        kept = _numbers(np.empty(2 * n) if state is None else state)
        self._stood, self._velocity = kept[:n], kept[n:]
        for i in range(n):
            self._stood[i], self._velocity[i] = -inf, 0.0

    def at(self, velocity: Sequence[float], time: float) -> list[bool]:
        """Return it for the next sample, joint by joint; times do not go back."""
        stood, before = self._stood, self._velocity
        for i, each in enumerate(velocity):
            if each * before[i] <= 0.0 or -STANDSTILL < each < STANDSTILL:
                stood[i] = time
            before[i] = each
        latest = time - REVERSAL_TIME - _ROUNDING
        return [each >= latest for each in stood]


class ContactDetector:
    """
    Tells contacts from what an arm shows without any.

    Parameters
    ----------
    thresholds : ContactThresholds
    joint_names : sequence of n str
    links : sequence of n str
        The link that each joint moves.
    dwell : float
        How long a torque is beyond its threshold before it is a contact, and how long all are
        well below before it is over [s].

    Notes
    -----
    Of a joint that stands the change counts: what lasts is stiction, or a contact that nothing
    tells from it. So a lasting contact with a standing arm is over after some seconds.

    Attributes
    ----------
    contact : Contact or None
        The one that lasts.
    count : int
        How many there were.
    state : array, shape (4 n + 2,)
        When each joint stood last and its velocity before, what its torque is taken for while it
        stands, since when it is beyond its threshold; the time, and since when no joint is: all
        that lasts from sample to sample beside ``contact``. ``CompiledContactStep`` writes to it.
    """

    def __init__(
        self,
        thresholds: ContactThresholds,
        joint_names: Sequence[str],
        links: Sequence[str],
        dwell: float = 0.02,
    ) -> None:
        self.thresholds = thresholds
        self._thresholds = thresholds.moving.tolist(), thresholds.standing.tolist()
        self.dwell = dwell
        self.count = 0
        self._joint_names, self._links = tuple(joint_names), tuple(links)
        n = len(self._joint_names)
        self.state = np.empty(4 * n + 2)
        kept = _numbers(self.state)
        self._stiction, self._since, self._times = kept[2 * n : 3 * n], kept[3 * n : -2], kept[-2:]
        self.reset()

    def reset(self) -> None:
        """Begin anew, with no contact, every joint taken to have just stood."""
        n = len(self._joint_names)
        self.contact: Contact | None = None
        self._joints = StandingJoints(n, self.state[: 2 * n])
        self.state[2 * n : 3 * n] = 0.0
        self.state[3 * n :] = inf
        self._time = -inf

    @property
    def _time(self) -> float:
        return self._times[0]

    @_time.setter
    def _time(self, time: float) -> None:
        self._times[0] = time

    @property
    def _free_since(self) -> float:
        return self._times[1]

    @_free_since.setter
    def _free_since(self, time: float) -> None:
        self._times[1] = time

    def update(self, velocity: FloatArray, torque: FloatArray, time: float) -> Contact | None:
        """
        Take in a sample, and return a contact that begins or ends with it, or None.

        Parameters
        ----------
        velocity, torque : array, shape (n,)
            [rad/s], [N m] or [m/s], [N]; the torque is the observer's.
        time : float
            Of the sample [s]; where it goes back, everything begins anew.
        """
        if time < self._time:
            self.reset()
        velocities, torques = velocity.tolist(), torque.tolist()
        changes = self._changes(velocities, torques, time)
        self._time = time
        standing = self._joints.at(velocities, time)
        thresholds = [self._thresholds[stands][i] for i, stands in enumerate(standing)]
        ratios = [abs(change) / limit for change, limit in zip(changes, thresholds)]
        latest = time - self.dwell + _ROUNDING
        clearest = -1
        for i, ratio in enumerate(ratios):
            if not ratio > 1.0:
                self._since[i] = inf
                continue
            self._since[i] = min(self._since[i], time)
            if self._since[i] <= latest and (clearest < 0 or ratio > ratios[clearest]):
                clearest = i
        if self.contact is not None:
            return self._ended(ratios, time)
        if clearest < 0:
            return None
        outermost = max(i for i, ratio in enumerate(ratios) if ratio > SUSPICION)
        self.count += 1
        self._free_since = inf
        self.contact = Contact(
            False,
            self._joint_names[clearest],
            self._links[outermost],
            torques[clearest],
            thresholds[clearest],
            self._since[clearest],
            time,
        )
        return self.contact

    def _changes(self, velocities: list[float], torques: list[float], time: float) -> list[float]:
        """Return the torques without what is taken for stiction, and get accustomed to them."""
        slowness = ACCUSTOMING_TIME if self.contact is None else ACCUSTOMING_TIME_IN_CONTACT
        followed = -expm1((self._time - time) / slowness)
        if self._time == -inf:
            followed = 0.0
        stiction = self._stiction
        changes = list(torques)
        for i, (velocity, torque) in enumerate(zip(velocities, torques)):
            if not -STANDSTILL < velocity < STANDSTILL:
                stiction[i] = 0.0
            elif isfinite(torque):
                changes[i] = torque - stiction[i]
                stiction[i] += followed * changes[i]
        return changes

    def _ended(self, ratios: list[float], time: float) -> Contact | None:
        """Return the contact that lasts if it has ended, else None."""
        if any(ratio >= RELEASE for ratio in ratios):
            self._free_since = inf
            return None
        self._free_since = min(self._free_since, time)
        if self._free_since > time - self.dwell + _ROUNDING or self.contact is None:
            return None
        over, self.contact = self.contact, None
        return over._replace(is_over=True, time=time)


def _numbers(array: FloatArray) -> Any:
    """Return an array's numbers, to be read and written one by one: quicker on so few."""
    return memoryview(array.data)


def moved_links(model: RobotModel) -> tuple[str, ...]:
    """Return the link that each joint moves, the first of those that move with it."""
    links = [''] * model.n
    for name, (body, _) in model.link_frames.items():
        if body >= 0 and not links[body]:
            links[body] = name
    return tuple(links)
