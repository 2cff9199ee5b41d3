# SPDX-License-Identifier: Apache-2.0
"""
The rows of the regression: each parameter's contribution to each joint's torque.

Everything here went through the same filter as the efforts, and is in N m (or N). Beside the
links' and the drives' columns there are those of a tilt of the base, and of a payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.interpolate import interp1d

from robodyn_ros.description.records import Finding, warning
from robodyn_ros.dynamics import gravity_torque, inverse_dynamics
from robodyn_ros.errors import NoSuchName
from robodyn_ros.identification.drive_terms import (
    DriveTerms,
    coupled_columns,
    drive_columns,
    presliding_state,
)
from robodyn_ros.identification.preparation import (
    Band,
    EvenSamples,
    States,
    even_samples,
    motion_band,
    states_of,
)
from robodyn_ros.identification.recording import STANDSTILL, Recording
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import regressor
from robodyn_ros.spatial import FloatArray, moved_parameters, rotation_about

# So many periods of the cut-off a filter's end effects last.
LEAST_ROWS = 20  # fewer tell nothing of a joint or of a recording
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
        Rows to train with: moving, not clipped, and away from the recording's ends.
    """

    states: States
    inertial: FloatArray
    effort: FloatArray
    moving: np.ndarray
    used: np.ndarray
    _known: dict[DriveTerms, FloatArray] = field(default_factory=dict, repr=False)
    _turned: dict[tuple[float, bytes], FloatArray] = field(default_factory=dict, repr=False)

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

    def coupled(self, terms: DriveTerms, coupling: FloatArray) -> FloatArray:
        """Return the columns of coupled drives (m, n), shape (K, n, m terms.coupled_count)."""
        if not len(coupling):
            return np.zeros((*self.effort.shape, 0))
        states = self.states
        turned = self.presliding(terms.presliding, coupling) if terms.presliding else None
        return states.rows(coupled_columns(terms, coupling, states.qd, states.qdd, turned))

    def coupled_torque(self, model: RobotModel, presliding: float = 0.0) -> FloatArray:
        """Return the torque of a model's coupled drives, shape (K, n) [N m or N]."""
        columns = self.coupled(DriveTerms(presliding, curve=True), model.coupling)
        return (
            columns
            @ np.column_stack([model.coupled_rotor_inertia, model.coupled_friction]).ravel()
        )

    def presliding(self, displacement: float, coupling: FloatArray | None = None) -> FloatArray:
        """
        Return the state of presliding of joints, or of coupled drives, at all states.

        It is that of the velocities as they were measured: those that were filtered overshoot
        where a joint stops, by more than the displacement that friction turns over.
        """
        key = (displacement, b'' if coupling is None else coupling.tobytes())
        if key not in self._turned:
            even, states = self.states.even, self.states
            velocity = states.qd if even.velocity is None else even.velocity
            if coupling is not None:
                velocity = velocity @ coupling.T
            if even.velocity is None:
                z = presliding_state(velocity, states.step, displacement)
            else:
                measured = presliding_state(velocity, 1.0 / even.rate, displacement)
                z = np.asarray(interp1d(even.time, measured, axis=0)(states.time), dtype=float)
            self._turned[key] = z
        return self._turned[key]


def rigid_torque(model: RobotModel, parameters: FloatArray, states: States) -> FloatArray:
    """Return the torque of bodies with these parameters (n, 10) at all states, shape (K, n)."""
    bodies = model.with_inertial_parameters(parameters).with_rotor_inertia(np.zeros(model.n))
    bodies = replace(bodies, coupled_rotor_inertia=np.zeros(len(model.coupling)))
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
    used = moving & inside[:, None] & ~states.row_clipped
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
    Return the two unit vectors, shape (2, 3), about which a tilt of the base shows in the torques.

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


def tilted(model: RobotModel, tilt: FloatArray) -> RobotModel:
    """Return the model with its base turned by ``tilt`` (2,) [rad] about ``tilt_axes``."""
    turn = tilt @ tilt_axes(model.gravity)
    angle = float(np.linalg.norm(turn))
    if angle == 0.0:
        return model
    return model.with_gravity(rotation_about(turn / angle, -angle) @ model.gravity)


# --- a payload at the tip link -------------------------------------------------------------------


def payload_columns(model: RobotModel, rows: Rows) -> FloatArray:
    """
    Return what a payload's ten inertial parameters add to each torque, shape (K, n, 10).

    Parameters
    ----------
    model : RobotModel
    rows : Rows
        The parameters are about the tip link's origin, along its axes.

    Raises
    ------
    NoSuchName
        The tip link does not move.
    """
    body, matrix = payload_matrix(model)
    return rows.inertial[..., 10 * body : 10 * body + 10] @ matrix


def with_payload_parameters(model: RobotModel, parameters: FloatArray) -> FloatArray:
    """Return the bodies' parameters (n, 10) with a payload's ten, about the tip link, added."""
    body, matrix = payload_matrix(model)
    bodies = model.inertial_parameters.copy()
    bodies[body] += matrix @ parameters
    return bodies


def payload_matrix(model: RobotModel) -> tuple[int, FloatArray]:
    """
    Return the body that the tip link is part of, and a payload's parameters in its: (10, 10).

    Raises
    ------
    NoSuchName
        The tip link does not move.
    """
    body, placed = model.link_frames[model.tip_link]
    if body < 0:
        raise NoSuchName('tip link', model.tip_link, 'one that a joint moves')
    return body, np.stack([moved_parameters(column, placed) for column in np.eye(10)], axis=1)


# --- recordings made ready to estimate with ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainingData:
    """
    Recordings of the model's joints, as even samples, and the band they share.

    Attributes
    ----------
    recordings : tuple of Recording
        Of the model's joints, in its order.
    stretches : tuple of EvenSamples
        What they were cut into.
    recording_of_rows : tuple of int
        Which recording each stretch is of.
    band : Band
    silent : array of bool, shape (n,)
        Joints whose effort is always zero.
    """

    recordings: tuple[Recording, ...]
    stretches: tuple[EvenSamples, ...]
    recording_of_rows: tuple[int, ...]
    band: Band
    silent: np.ndarray

    @classmethod
    def of(cls, model: RobotModel, recordings: Sequence[Recording]) -> TrainingData:
        """
        Return what recordings hold of a model's joints.

        Raises
        ------
        NoSuchName, InsufficientRecording
        """
        mine = tuple(each.of_joints(model.joint_names) for each in recordings)
        cut = [even_samples(each) for each in mine]
        stretches = tuple(stretch for each in cut for stretch in each)
        numbers = tuple(k for k, each in enumerate(cut) for _ in each)
        silent = np.array(
            [not any(each.effort[:, j].any() for each in mine) for j in range(model.n)]
        )
        return cls(mine, stretches, numbers, motion_band(stretches), silent)

    def rows(self, model: RobotModel, scale: FloatArray) -> list[Rows]:
        """Return the rows of all stretches, with torques for a unit of effort, shape (n,)."""
        return [
            rows_of(model, states_of(each, self.band), scale, self.silent)
            for each in self.stretches
        ]

    def silent_findings(self, model: RobotModel) -> list[Finding]:
        """Return which joints say nothing."""
        return [
            warning(
                'zero_effort',
                f'joint {name!r}',
                0.0,
                f'the effort of joint {name!r} is always zero',
            )
            for name, silent in zip(model.joint_names, self.silent, strict=True)
            if silent
        ]
