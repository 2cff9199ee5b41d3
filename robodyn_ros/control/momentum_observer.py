# SPDX-License-Identifier: Apache-2.0
"""The torques that the outside exerts on an arm; ``core/contact.hpp`` says how they are found."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.core_binding import core, core_arm
from robodyn_ros.control.law import Friction, InverseDynamics
from robodyn_ros.errors import InvalidNumber
from robodyn_ros.spatial import FloatArray


class MomentumObserver:
    """
    Estimates external torques from one sample to the next.

    Parameters
    ----------
    inverse_dynamics : InverseDynamics
    friction : Friction
        What the drives do beside the rigid body's torque.
    gain : array, shape (n,)
        K of each joint [1/s]: a step of the torque is followed to 95 % within 3 / K.
    is_held : bool
        Whether the torque of a sample is that of the whole step before it, as one's own commands
        are. Otherwise it is of the sample's instant, as measurements are, and the mean of two is
        that of the step.
    longest : float
        A step that is longer tells nothing: a pause, or a clock that was set [s].
    friction_velocity : float
        Width of the smooth sign of Coulomb friction [rad/s] or [m/s].
    presliding : float
        Displacement over which friction turns [rad] or [m]; 0: it follows the velocity's sign.

    Raises
    ------
    InvalidNumber
        A gain that is not positive.
    """

    def __init__(
        self,
        inverse_dynamics: InverseDynamics,
        friction: Friction,
        gain: FloatArray,
        *,
        is_held: bool,
        longest: float = 0.1,
        friction_velocity: float = 0.01,
        presliding: float = 0.0,
    ) -> None:
        if not ((gain > 0.0) & np.isfinite(gain)).all():
            raise InvalidNumber('observer gain', gain.tolist(), 'positive numbers [1/s]')
        self.gain = gain
        settings = core.ObserverSettings()
        settings.gain, settings.is_held, settings.longest = gain, is_held, longest
        settings.friction_velocity, settings.presliding = friction_velocity, presliding
        self._core = core.Observer(core_arm(inverse_dynamics, friction, len(gain)), settings)

    @property
    def torque(self) -> FloatArray:
        """
        The estimate, shape (n,) [N m] or [N]: what the outside adds to the drives' torques.

        It begins at zero after every reset.
        """
        return self._core.torque

    @property
    def passed_over(self) -> int:
        """Samples with a number that is not finite, which count as samples that never came."""
        return self._core.passed_over

    def change_longest(self, longest: float) -> None:
        """Let a step that is longer [s] tell nothing."""
        self._core.change_longest(longest)

    def reset(self) -> None:
        """Forget everything, as if no sample had come."""
        self._core.reset()

    def change_model(self, inverse_dynamics: InverseDynamics, friction: Friction) -> None:
        """Begin anew with another model; what was estimated with the old one is worth nothing."""
        self._core.change_arm(core_arm(inverse_dynamics, friction, len(self.gain)))

    def update(
        self, position: FloatArray, velocity: FloatArray, torque: FloatArray, time: float
    ) -> FloatArray | None:
        """
        Take in a sample and return the estimate, shape (n,); None where the sample gives none.

        Parameters
        ----------
        position, velocity : array, shape (n,)
            [rad], [rad/s] or [m], [m/s]
        torque : array, shape (n,)
            Of the drives [N m] or [N].
        time : float
            Of the sample [s].

        Notes
        -----
        The first sample gives none, nor does one that is not finite. A time that goes back, or
        that is too far ahead, is a first sample again; one that stands still changes nothing.
        """
        return self._core.update(position, velocity, torque, time)
