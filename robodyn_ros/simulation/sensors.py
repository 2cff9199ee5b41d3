# SPDX-License-Identifier: Apache-2.0
"""What sensors make of an arm's state: noise, and numbers in steps."""

from __future__ import annotations

import numpy as np

from robodyn_ros.errors import InvalidNumber
from robodyn_ros.spatial import FloatArray


class Sensors:
    """
    Encoders, their velocities, and efforts; zero means without fault.

    Parameters
    ----------
    position_resolution : float
        Step of the encoders [rad or m].
    velocity_noise : float
        Deviation [rad/s or m/s].
    effort_noise : array, shape (n,) or float
        Deviation [N m or N].
    seed : int

    Raises
    ------
    InvalidNumber
        One is negative or not finite.
    """

    def __init__(
        self,
        position_resolution: float = 0.0,
        velocity_noise: float = 0.0,
        effort_noise: FloatArray | float = 0.0,
        seed: int = 0,
    ) -> None:
        for name, value in (
            ('position_resolution', position_resolution),
            ('velocity_noise', velocity_noise),
            ('effort_noise', float(np.min(effort_noise))),
        ):
            if not 0 <= value < np.inf:
                raise InvalidNumber(f'parameter {name}', value, 'zero or more')
        self._resolution = position_resolution
        self._velocity_noise = velocity_noise
        self._effort_noise = effort_noise
        self._generator = np.random.default_rng(seed)

    def measured(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return position, velocity and effort (n,) as they are reported."""
        if self._resolution:
            position = self._resolution * np.round(position / self._resolution)
        if self._velocity_noise:
            velocity = velocity + self._velocity_noise * self._generator.normal(size=len(velocity))
        if np.any(self._effort_noise):
            effort = effort + self._effort_noise * self._generator.normal(size=len(effort))
        return position, velocity, effort
