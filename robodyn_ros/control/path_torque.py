# SPDX-License-Identifier: Apache-2.0
"""The torque along the path between the waypoints of a trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.reference_torque import ReferenceTorque
from robodyn_ros.errors import RejectedTrajectory

PARTS = 8
"""Of a piece of the path, at whose ends the torque is looked at."""

GRID = np.linspace(0.0, 1.0, PARTS + 1)


@dataclass(frozen=True, eq=False)
class PathTorque:
    """
    The path between K waypoints of all n joints, and the torque along it; made by ``through``.

    Parameters
    ----------
    times : array, shape (K,)
        [s]
    points : ReferenceState
        The waypoints; accelerations are NaN where cubics are meant.
    coefficients : array, shape (K - 1, 6, n)
        Of the segments, as in ``Reference``.
    torque : ReferenceTorque
    """

    times: np.ndarray
    points: ReferenceState
    coefficients: np.ndarray
    torque: ReferenceTorque

    @classmethod
    def through(
        cls, times: np.ndarray, points: ReferenceState, torque: ReferenceTorque
    ) -> PathTorque:
        """Return the path through some waypoints."""
        coefficients = Reference.through(times.tolist(), points, 0.0).coefficients
        return cls(times, points, coefficients, torque)

    @property
    def is_cubic(self) -> np.ndarray:
        """Which segments are, shape (K - 1,)."""
        bare = np.isnan(self.points.acceleration).any(axis=1)
        return bare[:-1] | bare[1:]

    @property
    def rest_effort(self) -> np.ndarray:
        """The torque that holds the end, shape (n,) [N m] or [N]."""
        zero = np.zeros((1, self.torque.model.n))
        return self.torque.at(self.points.position[-1:], zero, zero)[0]

    def times_of(self, segment: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return the times of places in segments, shape (P,) like each argument [s]."""
        return self.times[segment] + s * np.diff(self.times)[segment]

    def states(
        self, segment: np.ndarray, s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd and qdd, each (P, m, n), at m places of each of P segments, (P, m)."""
        duration = np.diff(self.times)[segment][:, None, None]
        order = np.arange(6)
        powers = s[..., None] ** order
        first = order * s[..., None] ** np.maximum(order - 1, 0)
        second = order * (order - 1) * s[..., None] ** np.maximum(order - 2, 0)
        polynomials = self.coefficients[segment]
        return (
            powers @ polynomials,
            first @ polynomials / duration,
            second @ polynomials / duration**2,
        )

    def at(self, segment: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return the torque, shape (P, m, n), at m places of each of P segments, (P, m)."""
        states = self.states(segment, s)
        shape = states[0].shape
        rows = [part.reshape(-1, shape[-1]) for part in states]
        return self.torque.at(*rows).reshape(shape)

    def check(self, effort_limits: np.ndarray) -> None:
        """
        Check the numbers of the waypoints, and the torque at the end and here and there.

        Raises
        ------
        RejectedTrajectory
        """
        segment = np.arange(len(self.times) - 1)
        grid = np.tile(GRID, (len(segment), 1))
        with np.errstate(over='ignore', invalid='ignore'):
            is_finite = np.isfinite(self.coefficients).all() and all(
                np.isfinite(part).all() for part in self.states(segment, grid)
            )
            if not is_finite:
                raise RejectedTrajectory(
                    'trajectory', 'numbers too large to interpolate', 'values an arm can follow'
                )
            torques = self.at(segment, grid)
        self.check_torques(segment, grid, torques, effort_limits)
        end = self.rest_effort[None, None]
        self.check_torques(np.zeros(1, int), np.zeros((1, 1)), end, effort_limits, at_end=True)

    def check_torques(
        self,
        segment: np.ndarray,
        s: np.ndarray,
        torques: np.ndarray,
        effort_limits: np.ndarray,
        *,
        at_end: bool = False,
    ) -> None:
        """
        Check torques (P, m, n) at m places of each of P segments, (P, m), or at the end.

        Raises
        ------
        RejectedTrajectory
        """
        size = np.where(np.isnan(torques), np.inf, np.abs(torques))
        is_beyond = size > effort_limits
        if not is_beyond.any():
            return
        excess = np.where(is_beyond, size / effort_limits, 0.0)
        piece, place, joint = np.unravel_index(int(np.argmax(excess)), excess.shape)
        time = self.times[-1]
        if not at_end:
            time = self.times_of(segment[piece : piece + 1], s[piece, place : place + 1])[0]
        raise RejectedTrajectory(
            f'trajectory joint {self.torque.model.joint_names[joint]!r} torque at {time:.3f} s',
            float(torques[piece, place, joint]),
            f'at most its effort limit, {effort_limits[joint]:g}',
        )
