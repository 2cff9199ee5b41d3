# SPDX-License-Identifier: Apache-2.0
"""
The rows of the regression: what each parameter contributes to each joint's torque, and when.

Everything here went through the same filter as the efforts, and is in N m (or N).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.interpolate import interp1d

from robodyn_ros.dynamics import gravity_torque, inverse_dynamics
from robodyn_ros.identification.drive_terms import DriveTerms, drive_columns, presliding_state
from robodyn_ros.identification.even_samples import STANDSTILL
from robodyn_ros.identification.preparation import States
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import regressor
from robodyn_ros.spatial import FloatArray

# So many periods of the cut-off a filter's end effects last.
_END_PERIODS = 0.5


@dataclass(frozen=True, eq=False)
class Rows:
    """
    K rows of each of n joints.

    Attributes
    ----------
    states : States
        What they were made of.
    inertial : array, shape (K, n, 10 n)
        Columns of the links' ten parameters.
    effort : array, shape (K, n)
        Measured [N m or N].
    moving : array of bool, shape (K, n)
        Where a joint moves fast enough for friction to have its direction.
    used : array of bool, shape (K, n)
        Rows to train with: moving, and away from the recording's ends.
    """

    states: States
    inertial: FloatArray
    effort: FloatArray
    moving: np.ndarray
    used: np.ndarray
    _known: dict[DriveTerms, FloatArray] = field(default_factory=dict, repr=False)
    _turned: dict[float, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def time(self) -> FloatArray:
        """Of the rows [s]."""
        return self.states.row_time

    @property
    def velocity(self) -> FloatArray:
        """Of the joints at the rows, array, shape (K, n) [rad/s or m/s]."""
        return self.states.row_velocity

    def rigid_torque(self, model: RobotModel, parameters: FloatArray) -> FloatArray:
        """Return the rigid body's torque at all states, shape (states, n), unfiltered [N m]."""
        return rigid_torque(model, parameters, self.states)

    def drive(self, terms: DriveTerms, torque: FloatArray | None = None) -> FloatArray:
        """
        Return the columns of the drive's terms, shape (K, n, terms.count).

        Parameters
        ----------
        terms : DriveTerms
        torque : array, shape (states, n)
            Of the rigid body at all states [N m or N], where friction grows with load.
        """
        states = self.states
        turned = self.presliding(terms.presliding) if terms.presliding else None
        if terms.load:
            return states.rows(drive_columns(terms, states.qd, states.qdd, turned, torque))
        if terms not in self._known:
            columns = drive_columns(terms, states.qd, states.qdd, turned)
            self._known[terms] = states.rows(columns)
        return self._known[terms]

    def presliding(self, displacement: float) -> FloatArray:
        """
        Return the state of presliding at all states, shape (states, n).

        It is that of the velocities as they were measured: those that were filtered overshoot
        where a joint stops, by more than the displacement that friction turns over.
        """
        if displacement not in self._turned:
            even, states = self.states.even, self.states
            if even.velocity is None:
                z = presliding_state(states.qd, states.step, displacement)
            else:
                measured = presliding_state(even.velocity, 1.0 / even.rate, displacement)
                z = np.asarray(interp1d(even.time, measured, axis=0)(states.time), dtype=float)
            self._turned[displacement] = z
        return self._turned[displacement]


def rigid_torque(model: RobotModel, parameters: FloatArray, states: States) -> FloatArray:
    """Return the torque of bodies with these parameters (n, 10) at all states, shape (K, n)."""
    bodies = model.with_inertial_parameters(parameters).with_rotor_inertia(np.zeros(model.n))
    return inverse_dynamics(bodies, states.q, states.qd, states.qdd)


def rows_of(
    model: RobotModel,
    states: States,
    effort_scale: FloatArray,
    silent: np.ndarray | None = None,
) -> Rows:
    """
    Return the rows of a prepared stretch.

    Parameters
    ----------
    model : RobotModel
        Its geometry and gravity.
    states : States
    effort_scale : array, shape (n,)
        [N m or N] for a unit of the recorded effort.
    silent : array of bool, shape (n,), optional
        Joints whose effort says nothing.
    """
    moving = np.abs(states.row_velocity) >= STANDSTILL
    inside = np.zeros(len(moving), dtype=bool)
    ends = int(np.ceil(_END_PERIODS * states.band.row_rate / states.band.cutoff))
    inside[ends : len(moving) - ends] = True
    used = moving & inside[:, None]
    if silent is not None:
        used[:, silent] = False
    return Rows(
        states=states,
        inertial=states.rows(regressor(model, states.q, states.qd, states.qdd)),
        effort=states.effort * effort_scale,
        moving=moving,
        used=used,
    )


def gravity_columns(model: RobotModel, parameters: FloatArray, states: States) -> FloatArray:
    """
    Return what a small tilt of the base adds to each joint's torque, shape (K, n, 2) [N m/rad].

    The base is turned about the two axes that ``tilt_axes`` names; by linearity in gravity the
    columns are gravity torques themselves.
    """
    bodies = model.with_inertial_parameters(parameters)
    columns = []
    for axis in tilt_axes(model.gravity):
        turned = bodies.with_gravity(-np.cross(axis, model.gravity))
        columns.append(gravity_torque(turned, states.q))
    return states.rows(np.stack(columns, axis=-1))


def tilt_axes(gravity: FloatArray) -> FloatArray:
    """
    Return the two unit vectors, shape (2, 3), about which a tilt of the base can be felt.

    They are perpendicular to gravity: x and y of the base link where gravity points along its z.
    """
    size = float(np.linalg.norm(gravity))
    if size == 0.0:
        return np.zeros((2, 3))
    down = gravity / size
    first = np.eye(3)[np.abs(down).argmin()]
    first = first - (first @ down) * down
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(-down, first)])
