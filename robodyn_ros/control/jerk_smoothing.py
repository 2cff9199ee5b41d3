# SPDX-License-Identifier: Apache-2.0
"""
Jerk limits: the time law of a motion, averaged over a window in time.

The average of the time law over the last W seconds goes through the same places, W later: the path
stays what it is. Its acceleration is continuous, and its jerk is a change of acceleration divided
by W. What the path's own curvature adds only more time reduces; so does torque, where the average
is beyond a limit. Several windows are tried, each as much slower as it needs, and the fastest is
taken. Between two stops the average begins and ends at rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robodyn_ros.control.joint_path import JointPath
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.polynomials import Polynomials
from robodyn_ros.control.timed_motion import Course, TimingLimits
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.spatial import FloatArray

_WINDOWS = np.geomspace(0.08, 1.5, 9)  # parts of the one that the largest step would need
_FINER = 2  # knots for one of the time law: the cubics between them follow its acceleration
_STEP, _MOST_KNOTS = 4e-3, 2_000  # no further apart [s], unless so many do not suffice
_JERK_HEADROOM = 0.98


@dataclass(frozen=True, eq=False)
class TimeLaw:
    """
    How far along the path a motion is: constant path acceleration between knots, rest at the ends.

    Parameters
    ----------
    time, parameter, rate : array, shape (N,)
        At knots [s], [rad or m], and per s.
    is_stop : array of bool, shape (N,)
        Where the arm has to be at rest on the way.
    """

    time: FloatArray
    parameter: FloatArray
    rate: FloatArray
    is_stop: np.ndarray

    def pieces(self) -> list[TimeLaw]:
        """Return the parts from stop to stop, each with its time from zero."""
        last = len(self.time) - 1
        bounds = [0, *np.flatnonzero(self.is_stop[1:-1] if last else []) + 1, last]
        parts = [slice(i, j + 1) for i, j in zip(bounds[:-1], bounds[1:], strict=True)]
        return [
            TimeLaw(
                self.time[part] - self.time[part][0],
                self.parameter[part],
                self.rate[part],
                np.zeros(part.stop - part.start, bool),
            )
            for part in parts
        ]

    def at(self, time: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the integral of the parameter, and the parameter, at times (M,) [s]."""
        area, place, _ = self._areas.at(time)
        before, after = np.minimum(time, 0.0), np.maximum(time - self.time[-1], 0.0)
        outside = before * self.parameter[0] + after * self.parameter[-1]
        return area[:, 0] + outside, place[:, 0]

    @cached_property
    def _areas(self) -> Polynomials:
        """The integral of the parameter, whose derivatives are the parameter and its rate."""
        step = np.diff(self.time)
        s, v = step * self.parameter[:-1], step**2 * self.rate[:-1] / 2.0
        bend = step**2 * np.diff(self.rate) / 6.0
        begin = np.concatenate([[0.0], np.cumsum(s + v + bend)[:-1]])
        return Polynomials(self.time, np.stack([begin, s, v, bend], axis=1)[..., None])

    def averaged(self, time: FloatArray, window: float) -> tuple[FloatArray, FloatArray]:
        """Return the averaged parameter and its rate at times (M,) from 0 on."""
        now, before = self.at(time), self.at(time - window)
        place, rate = ((a - b) / window for a, b in zip(now, before, strict=True))
        return np.clip(place, self.parameter[0], self.parameter[-1]), rate


def smoothed(
    path: JointPath, law: TimeLaw, torque: ReferenceTorque, limits: TimingLimits
) -> tuple[Waypoints, FloatArray]:
    """
    Return the motion with jerk limits, and the path's parameter at its knots.

    Parameters
    ----------
    path : JointPath
    law : TimeLaw
        Of the fastest motion without jerk limits, from rest to rest.
    torque : ReferenceTorque
    limits : TimingLimits
        With jerk; the result keeps all but the root mean square.

    Raises
    ------
    Overload
        The torque at rest on the path is beyond a limit.
    """
    assert limits.jerk is not None
    jerk_limits = _JERK_HEADROOM * limits.jerk
    limits = replace(limits, jerk=jerk_limits, rms=None)
    pieces = law.pieces()
    needed = max(_needed_window(path, piece, jerk_limits) for piece in pieces)
    best: tuple[Waypoints, FloatArray] | None = None
    for window in needed * _WINDOWS:
        motion, place = _averaged(path, pieces, float(window))
        scale = float((motion.polynomials.largest(3) / jerk_limits).max()) ** (1 / 3)
        if best is not None and scale * motion.duration >= best[0].duration:
            continue
        motion = motion.slower(Course(torque, motion, limits).scale())
        if best is None or motion.duration < best[0].duration:
            best = motion, place
    assert best is not None  # there are windows
    return best


def _needed_window(path: JointPath, piece: TimeLaw, jerk_limits: FloatArray) -> float:
    """Return the window in which the largest step of the path's acceleration keeps the limits."""
    bend = np.diff(piece.rate) / np.diff(piece.time)
    steps = np.abs(np.diff(np.concatenate([[0.0], bend, [0.0]])))
    slope = _states(path, piece.parameter)[1]
    return float((steps[:, None] * np.abs(slope) / jerk_limits).max())


def _averaged(
    path: JointPath, pieces: list[TimeLaw], window: float
) -> tuple[Waypoints, FloatArray]:
    """Return the averaged motion and the parameter at its knots."""
    begin = 0.0
    parts: list[tuple[FloatArray, ...]] = []
    for piece in pieces:
        duration = piece.time[-1] + window
        wanted = np.clip(duration / _STEP, _FINER * (len(piece.time) - 1), _MOST_KNOTS)
        time = np.linspace(0.0, duration, int(wanted) + 1)
        place, rate = piece.averaged(time, window)
        q, slope = _states(path, place)
        qd = slope * rate[:, None]
        new = slice(1 if parts else 0, None)
        parts.append((begin + time[new], q[new], qd[new], place[new]))
        begin += duration
    time, position, velocity, at = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Waypoints(time, position, velocity), at


def _states(path: JointPath, parameter: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return q and its derivative, (M, n), at parameters that do not fall."""
    # A piece's last place is the end of its segment, not the beginning of the next.
    inner = path.knots[1:-1]
    middle = 0.5 * (parameter[0] + parameter[-1])
    left = np.searchsorted(inner, parameter, side='left')
    right = np.searchsorted(inner, parameter, side='right')
    segment = np.where(parameter > middle, left, right)
    t = (parameter - path.knots[segment]) / np.diff(path.knots)[segment]
    q, slope, _ = path.states(segment, t[:, None])
    return q[:, 0], slope[:, 0]
