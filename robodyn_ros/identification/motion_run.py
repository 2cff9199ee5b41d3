# SPDX-License-Identifier: Apache-2.0
"""A run of a motion: the approach to its start, reduced or full speed, and monitoring."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import float_array
from robodyn_ros.dynamics import inverse_dynamics, smooth_friction_torque
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, Phrase
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.motions.point_to_point import PointToPoint, known_effort_limits
from robodyn_ros.spatial import FloatArray

TOLERATED_PART = 0.4
"""Of a joint's effort limit, by which the URDF's prediction may be off without a stop."""

TOLERATED_OF_MOTION = 1.0
"""The same of the largest effort that the motion needs, where there is no effort limit."""

APPROACH_SPEED = (0.2, 0.05)
"""Largest velocity of the approach to the start [rad/s], [m/s]."""

DIRECTION_WIDTH = 0.05
"""Velocity over which the direction of Coulomb friction turns [rad/s or m/s]."""

_TIME_CONSTANT = 0.05  # of the low-pass on the difference that is watched [s]
_QUINTIC_SPEED = 15 / 8


def slowed(motion: MotionSamples, speed: float) -> MotionSamples:
    """
    Return a motion at a part of its speed, from time zero on.

    Raises
    ------
    InvalidArgument
        The speed is not above zero and at most one.
    """
    if not 0 < speed <= 1:
        raise InvalidArgument('speed', speed, 'above 0, at most 1')
    time = (motion.time - motion.time[0]) / speed
    return MotionSamples(time, motion.q, speed * motion.qd, speed**2 * motion.qdd)


def approach(model: RobotModel, here: FloatArray, start: FloatArray) -> PointToPoint:
    """Return a slow motion in a straight line of joint space, from where an arm is to a start."""
    speed = np.array(APPROACH_SPEED)[model.dh.prismatic.astype(int)]
    known = model.velocity_limits > 0
    speed = np.where(known, np.minimum(speed, 0.25 * model.velocity_limits), speed)
    duration = float((_QUINTIC_SPEED * np.abs(start - here) / speed).max())
    return PointToPoint(here, start, max(duration, 1.0))


def state_at(motion: MotionSamples, time: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return q, qd, qdd (n,) of a motion at a time, linear between samples; at rest outside."""
    if not motion.time[0] <= time <= motion.time[-1]:
        end = motion.q[0] if time < motion.time[0] else motion.q[-1]
        return end, np.zeros_like(end), np.zeros_like(end)
    k = int(np.clip(np.searchsorted(motion.time, time), 1, len(motion.time) - 1))
    part = (time - motion.time[k - 1]) / (motion.time[k] - motion.time[k - 1])
    q, qd, qdd = (
        (1 - part) * table[k - 1] + part * table[k] for table in (motion.q, motion.qd, motion.qdd)
    )
    return q, qd, qdd


class MotionWatch:
    """
    Tells when an arm does not do what a motion asks for, or its drives not what the model says.

    Efforts are compared with those of the model at the measured state and the motion's own
    acceleration, both low-passed at 3 Hz.

    Parameters
    ----------
    model : RobotModel
    effort_tolerance : array-like, shape (n,) or float, optional
        [N m or N]; where not given, 40 % of the effort limits, or as much as ``motion`` needs.
    position_tolerance : float
        Between motion and arm [rad or m].
    effort_scale : array-like, shape (n,) or float
        Torque for a unit of the measured effort.
    motion : MotionSamples
        The fastest that will be watched.

    Raises
    ------
    InvalidArgument
    """

    def __init__(
        self,
        model: RobotModel,
        motion: MotionSamples,
        *,
        effort_tolerance: ArrayLike | None = None,
        position_tolerance: float = 0.2,
        effort_scale: ArrayLike = 1.0,
    ) -> None:
        if not 0 < position_tolerance < np.inf:
            raise InvalidArgument('position_tolerance', position_tolerance, 'a positive number')
        self._model = model
        self._position_tolerance = position_tolerance
        self._scale = _per_joint('effort_scale', effort_scale, model.n)
        if effort_tolerance is None:
            needed = np.abs(self._expected(motion.q, motion.qd, motion.qdd)).max(axis=0)
            limits = known_effort_limits(model)
            self.effort_tolerance = np.where(
                np.isfinite(limits), TOLERATED_PART * limits, TOLERATED_OF_MOTION * needed + 1e-3
            )
        else:
            self.effort_tolerance = _per_joint('effort_tolerance', effort_tolerance, model.n)
            if not (self.effort_tolerance > 0).all():
                raise InvalidArgument('effort_tolerance', effort_tolerance, 'positive numbers')
        self._difference = np.zeros(model.n)
        self._last: float | None = None

    def problem(
        self,
        time: float,
        asked: tuple[FloatArray, FloatArray, FloatArray],
        q: FloatArray,
        qd: FloatArray,
        effort: FloatArray,
    ) -> str:
        """
        Return what is wrong, as text; empty: nothing.

        Parameters
        ----------
        time : float
            Stamp of what was measured [s].
        asked : tuple of arrays, shape (n,)
            q, qd, qdd of the motion then.
        q, qd, effort : array, shape (n,)
            As measured.

        Raises
        ------
        InsufficientRecording
            The efforts are not finite numbers.
        """
        if not np.isfinite(effort).all():
            raise InsufficientRecording(
                'joint states', effort.tolist(), 'an effort of every joint'
            )
        names = self._model.joint_names
        away = np.abs(q - asked[0])
        worst = int(away.argmax())
        if away[worst] > self._position_tolerance:
            return (
                f'joint {names[worst]!r} is {away[worst]:.3g} from where the motion is; allowed: '
                f'{self._position_tolerance:.3g}'
            )
        difference = effort * self._scale - self._expected(q, qd, asked[2])
        step = 0.0 if self._last is None else max(time - self._last, 0.0)
        self._last = time
        self._difference += (difference - self._difference) * -np.expm1(-step / _TIME_CONSTANT)
        excess = np.abs(self._difference) / self.effort_tolerance
        worst = int(excess.argmax())
        if excess[worst] > 1:
            return (
                f'effort of joint {names[worst]!r} is {self._difference[worst]:.3g} from its '
                f'prediction; allowed: {self.effort_tolerance[worst]:.3g}'
            )
        return ''

    def _expected(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        rigid = inverse_dynamics(self._model, q, qd, qdd)
        return rigid + smooth_friction_torque(self._model, DIRECTION_WIDTH, qd, rigid)


def _per_joint(name: str, values: ArrayLike, n: int) -> FloatArray:
    array = np.atleast_1d(float_array(name, values))
    if array.shape not in ((1,), (n,)):
        raise InvalidArgument(name, Phrase(f'shape {array.shape}'), f'one number, or {n}')
    if not np.isfinite(array).all():
        raise InvalidArgument(name, array.tolist(), 'finite numbers')
    return np.broadcast_to(array, (n,)).copy()
