# SPDX-License-Identifier: Apache-2.0
"""Waypoints of all joints in time: trajectories completed, and the motion between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robodyn_ros.control.polynomials import PLACES, Polynomials
from robodyn_ros.control.reference import Reference, ReferenceState, joined
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.spatial import FloatArray

FIRST_STEP_TIME = 0.01
"""Within it the first step of a reference is checked [s]: the rate limit's longest step."""

_MOST_APART = 1 / 1600  # of the motion, where knots are few


@dataclass(frozen=True, eq=False)
class Waypoints:
    """
    Where n joints are at N times; between them they move along polynomials.

    Parameters
    ----------
    time : array, shape (N,)
        [s]
    position, velocity : array, shape (N, n)
        [rad or m], [rad/s or m/s]
    acceleration : array, shape (N, n), optional
        [rad/s² or m/s²]; not given, or NaN: cubics.
    effort : array, shape (N, n), optional
        Feedforward torque that is asked for [N m or N]; not given: none.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray | None = None
    effort: FloatArray | None = None

    @classmethod
    def completed(
        cls,
        trajectory: Trajectory,
        columns: np.ndarray,
        times: FloatArray,
        others: Reference,
        come_from: FloatArray,
        start: float,
    ) -> Waypoints:
        """
        Return a trajectory's waypoints, of all joints, with what it leaves open.

        A waypoint with positions alone gets the weighted harmonic mean of the slopes beside it,
        zero where the direction turns and at the end, and acceleration zero. Accelerations are NaN
        where a joint's cubics are meant.

        Parameters
        ----------
        trajectory : Trajectory
        columns : array of int, shape (m,)
            Which of all n joints its joints are.
        times : array, shape (N,)
            Of its waypoints [s].
        others : Reference
            What the other joints do, which come to rest.
        come_from : array, shape (m,)
            Where its joints are at the start.
        start : float
            [s]
        """
        parts = (np.tile(part, (len(times), 1)) for part in vars(others.end_state).values())
        position, velocity, acceleration, effort = parts
        for i in np.flatnonzero(times < others.knots[-1]):
            state = others.sample(max(float(times[i]), start))
            position[i], velocity[i] = state.position, state.velocity
            acceleration[i] = state.acceleration
        velocities, accelerations = trajectory.velocities.copy(), trajectory.accelerations.copy()
        bare = np.isnan(velocities).all(axis=1)
        if bare.any():
            # A first waypoint in the past, or at once, still needs a slope to come from.
            first = min(start, times[0] - FIRST_STEP_TIME)
            steps = np.diff(np.concatenate([[first], times]))[:, None]
            with np.errstate(over='ignore', divide='ignore', invalid='ignore'):
                slopes = np.diff(np.vstack([come_from, trajectory.positions]), axis=0) / steps
                velocities[bare] = _harmonic_slopes(steps, slopes)[bare]
            accelerations[bare] = 0.0
        position[:, columns], velocity[:, columns] = trajectory.positions, velocities
        acceleration[:, columns], effort[:, columns] = accelerations, trajectory.efforts
        return cls(times, position, velocity, acceleration, effort)

    @property
    def states(self) -> ReferenceState:
        """Their states; accelerations are NaN where there are none, efforts zero."""
        bend, effort = self.acceleration, self.effort
        return ReferenceState(
            self.position,
            self.velocity,
            np.full_like(self.position, np.nan) if bend is None else bend,
            np.zeros_like(self.position) if effort is None else effort,
        )

    def after(self, time: float, state: ReferenceState) -> Waypoints:
        """Return them after another one, a state (n,) at a time [s]."""
        parts = vars(joined(state, self.states)).values()
        return Waypoints(np.concatenate([[time], self.time]), *parts)

    def as_messages(self) -> Waypoints:
        """Return them as messages have them: with all accelerations of a point, or none."""
        states = self.states
        bare = np.isnan(states.acceleration).any(axis=1, keepdims=True)
        return replace(self, acceleration=np.where(bare, np.nan, states.acceleration))

    @property
    def duration(self) -> float:
        """From the first to the last [s]."""
        return float(self.time[-1] - self.time[0])

    @cached_property
    def polynomials(self) -> Polynomials:
        """The motion between them."""
        return Polynomials.interpolating(
            self.time, self.position, self.velocity, self.acceleration
        )

    @property
    def places(self) -> FloatArray:
        """Places between two of them that are dense enough for torque, (P,) from 0 to 1."""
        count = max(len(PLACES), int(np.ceil(1.0 / (_MOST_APART * (len(self.time) - 1)))) + 1)
        return PLACES if count == len(PLACES) else np.linspace(0.0, 1.0, count)

    def slower(self, scale: float) -> Waypoints:
        """Return the motion in so many times its time, 1 or more."""
        if scale == 1.0:
            return self
        begin, bend = self.time[0], self.acceleration
        return Waypoints(
            begin + scale * (self.time - begin),
            self.position,
            self.velocity / scale,
            None if bend is None else bend / scale**2,
        )

    def rows(self, kept: np.ndarray) -> Waypoints:
        """Return some of them, by their indices (K,) or as a mask (N,)."""
        bend, effort = self.acceleration, self.effort
        return Waypoints(
            self.time[kept],
            self.position[kept],
            self.velocity[kept],
            None if bend is None else bend[kept],
            None if effort is None else effort[kept],
        )

    def spans(self, before: np.ndarray, after: np.ndarray) -> Polynomials:
        """Return the polynomials from waypoints to other ones, (P,) each: P segments in a row."""
        wide = self.rows(np.stack([before, after], axis=1).ravel()).polynomials
        return Polynomials(
            np.concatenate([[0.0], np.cumsum(wide.steps[::2])]), wide.coefficients[::2]
        )


def whole_turns(position: FloatArray, goal: FloatArray, continuous: np.ndarray) -> FloatArray:
    """
    Return the turns [rad] from a position (m,) to within half a turn of a goal.

    Parameters
    ----------
    position, goal : array, shape (m,)
        [rad or m]
    continuous : array of bool, shape (m,)
        Joints that turn without end, for which whole turns mean nothing.
    """
    return 2.0 * np.pi * np.round((goal - position) / (2.0 * np.pi)) * continuous


def _harmonic_slopes(steps: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return slopes at waypoints (Fritsch and Butland 1984): no overshoot between them."""
    before, after = slopes[:-1], slopes[1:]
    weight_before = 2.0 * steps[1:] + steps[:-1]
    weight_after = steps[1:] + 2.0 * steps[:-1]
    through = np.zeros_like(slopes)
    turning = before * after <= 0.0
    mean = (weight_before + weight_after) / (weight_before / before + weight_after / after)
    through[:-1] = np.where(turning, 0.0, mean)
    return through
