# SPDX-License-Identifier: Apache-2.0
"""
The torques that the outside exerts on an arm, by its generalised momentum.

With the momentum p = M(q) qd and the torque tau of the drives the outside's torque is

    tau_ext = dp/dt - C(q, qd)T qd + g(q) + friction - tau,

and the observer of De Luca and Mattone returns its low-pass, K / (s + K) tau_ext, joint by joint.
Here the balance is that of one step between two samples, by the midpoint rule. In it
dp/dt = M dqd/dt + dM/dt qd and C(q, qd)T qd = dM/dt qd - C(q, qd) qd, so that dM/dt cancels: what
is left is the inverse dynamics at the middle of the step, under the step's change of velocity.
One call of the inverse dynamics that the control law has anyway gives it.

The low-pass is solved exactly over a step of whatever length, so that nothing depends on the rate
but how well a midpoint stands for the step; forward Euler, the usual choice, has a steady state
that is as right, but overshoots from K dt = 1 on and diverges from 2 on. An acceleration is never
formed but inside the low-pass, where noise of the velocity has the finite gain K M.

A. De Luca and R. Mattone, "Sensorless robot collision detection and hybrid force/motion control",
ICRA 2005, eqs. 8 to 10; A. De Luca et al., "Collision detection and safe reaction with the
DLR-III lightweight manipulator arm", IROS 2006.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np

from robodyn_ros.control.computed_torque import InverseDynamics
from robodyn_ros.errors import InvalidNumber, NonFiniteValue
from robodyn_ros.spatial import FloatArray

Friction = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""(velocity, direction of motion from -1 to 1, rigid body's torque), (n,) each, to torques."""

USUAL_GAIN = 30.0
"""95 % of a step within a tenth of a second [1/s]."""

REST_VELOCITY = 0.002
"""A slower joint rests: its velocity is noise [rad/s] or [m/s]."""


class MomentumObserver:
    """
    Estimates external torques from one sample to the next.

    Parameters
    ----------
    inverse_dynamics : callable
        (q, qd, qdd), each of shape (N, n), to rigid-body torques of shape (N, n).
    friction : callable
        As ``Friction``: what the drives do beside the rigid body's torque.
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

    Attributes
    ----------
    state : array, shape (4 n + 1,)
        Velocity and effort of the last sample, the direction of motion, the estimate, the time:
        all that an estimate follows from beside the sample. ``CompiledContactStep`` writes to it.
    passed_over : int
        Samples with a number that is not finite, which count as samples that never came.

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
        self.longest = longest
        self.passed_over = 0
        self._inverse_dynamics = inverse_dynamics
        self._friction = friction
        self.is_held = is_held
        self.friction_slope = 1.0 / friction_velocity
        self.presliding = presliding
        self._step, self._followed = np.nan, np.zeros_like(gain)  # 1 - exp(-K step), of the last
        self.state = np.empty(4 * len(gain) + 1)
        rows = self.state[:-1].reshape(4, -1)
        self._velocity, self._effort, self._turned, self._torque = rows
        self.reset()

    @property
    def torque(self) -> FloatArray:
        """
        The estimate, shape (n,) [N m] or [N]: what the outside adds to the drives' torques.

        It begins at zero after every reset.
        """
        return self._torque.copy()

    def reset(self) -> None:
        """Forget everything, as if no sample had come."""
        self.state[:-1] = 0.0
        self.state[-1] = np.nan

    def change_model(self, inverse_dynamics: InverseDynamics, friction: Friction) -> None:
        """Begin anew with another model; what was estimated with the old one is worth nothing."""
        self._inverse_dynamics, self._friction = inverse_dynamics, friction
        self.reset()

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
        step = time - self.state.item(-1)
        if not 0.0 <= step <= self.longest:
            self.reset()
            if np.isfinite([*position, *velocity, *torque, time]).all():
                self._keep(velocity, torque, time)
            else:
                self.passed_over += 1
            return None
        if step == 0.0:
            return self.torque
        external, turned = self._external_torque(position, velocity, torque, step)
        if not isfinite(np.dot(external, external)):
            self.passed_over += 1
            return None
        if step != self._step:
            self._step, self._followed = step, -np.expm1(-step * self.gain)
        self._torque += self._followed * (external - self._torque)
        self._turned[:] = turned
        self._keep(velocity, torque, time)
        return self.torque

    def _keep(self, velocity: FloatArray, torque: FloatArray, time: float) -> None:
        self._velocity[:], self._effort[:], self.state[-1] = velocity, torque, time

    def _external_torque(
        self, position: FloatArray, velocity: FloatArray, torque: FloatArray, step: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean external torque of a step, and the direction of motion at its end."""
        half = 0.5 * (velocity + self._velocity)
        with np.errstate(over='ignore', invalid='ignore'):
            # Half a step back from here, not the mean of two: positions may jump by whole turns.
            middle = position - (0.5 * step) * half
            change = (velocity - self._velocity) * (1.0 / step)
            try:
                rigid = self._inverse_dynamics(middle[None], half[None], change[None])[0]
            except NonFiniteValue:
                return np.full_like(half, np.nan), self._turned
            direction = (
                np.tanh(self.friction_slope * half)
                if not self.presliding
                else self._after(half, step)
            )
            driven = torque if self.is_held else 0.5 * (torque + self._effort)
            return rigid + self._friction(half, direction, rigid) - driven, direction

    def _after(self, velocity: FloatArray, step: float) -> FloatArray:
        """Return the state of presliding after a step: it turns over a displacement."""
        moved = np.where(np.abs(velocity) > REST_VELOCITY, velocity, 0.0) * step
        sign = np.sign(moved)
        kept = np.exp(-np.abs(moved) / self.presliding)
        return np.where(moved == 0.0, self._turned, sign + kept * (self._turned - sign))
