# SPDX-License-Identifier: Apache-2.0
"""The efforts that an identified model predicts, and their standard deviation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline

from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.preparation import (
    Band,
    States,
    band_with_cutoff,
    even_samples,
    low_passed,
    states_of,
)
from robodyn_ros.identification.recording import Recording
from robodyn_ros.identification.rows import Rows, rows_of
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import BaseParameters
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

_LOWEST_CUTOFF = 5.0
_ROWS_PER_CUTOFF = 20


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Record):
    """
    Predicted and measured efforts of n joints at K times.

    Both are low-passed at ``cutoff``. Times are even, at the recording's own rate, from the first
    motion to the last unless asked otherwise: before and after, stiction and brakes decide what
    the drives report.

    Attributes
    ----------
    time : array, shape (K,)
        [s], the recording's.
    effort : array, shape (K, n)
        In the recording's unit.
    deviation : array, shape (K, n)
        Standard deviation of measured minus predicted effort, in the recording's unit. Where a
        joint stands it holds all that Coulomb friction may do.
    measured : array, shape (K, n)
        In the recording's unit.
    moving : array of bool, shape (K, n)
        Where a joint moves.
    cutoff : float
        [Hz]
    """

    time: FloatArray
    effort: FloatArray
    deviation: FloatArray
    measured: FloatArray
    moving: np.ndarray
    cutoff: float


@dataclass(frozen=True, eq=False, repr=False)
class DriveModel(Record):
    """
    All that the effort follows from: bodies, drive terms, and how well they are known.

    Attributes
    ----------
    model : RobotModel
        With the identified bodies and gravity.
    terms : DriveTerms
    coefficients : array, shape (n, terms.count)
    base : BaseParameters
        Of the model, without rotors and friction.
    covariance : array, shape (base.count + n terms.count + m terms.coupled_count,) * 2
        Of the base parameters' values, of the coefficients, joint by joint, and of those of the m
        coupled drives.
    residual : array, shape (n,)
        Cross-validated rms error [N m or N].
    effort_scale : array, shape (n,)
        [N m or N] for a unit of the effort.
    scale_is_assumed : bool
        Whether ``effort_scale`` comes from the URDF's masses, and is as far off as they are.
    """

    model: RobotModel
    terms: DriveTerms
    coefficients: FloatArray
    base: BaseParameters
    covariance: FloatArray
    residual: FloatArray
    effort_scale: FloatArray
    scale_is_assumed: bool = False

    def torques(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Return the torque at the rows and its standard deviation, shape (K, n) [N m or N]."""
        bodies = self.model.inertial_parameters
        torque = rows.rigid_torque(self.model, bodies) if self.terms.load else None
        drive = rows.drive(self.terms, torque)
        effort = rows.inertial @ bodies.ravel() + (drive * self.coefficients).sum(axis=-1)
        effort = effort + rows.coupled_torque(self.model, self.terms.presliding)
        variance = self.residual**2 + self._variance(rows, drive)
        variance = variance + np.where(rows.moving, 0.0, self._stiction(rows) ** 2)
        return effort, np.sqrt(variance)

    def _variance(self, rows: Rows, drive: FloatArray) -> FloatArray:
        """Return what the parameters' covariance makes of a row, shape (K, n)."""
        count = self.terms.count
        result = np.empty(rows.effort.shape)
        coupled = rows.coupled(self.terms, self.model.coupling)
        end = self.base.count + self.model.n * count
        for joint in range(self.model.n):
            bodies = rows.inertial[:, joint, self.base.columns]
            columns = np.hstack([bodies, drive[:, joint], coupled[:, joint]])
            start = self.base.count + joint * count
            chosen = np.r_[0 : self.base.count, start : start + count, end : len(self.covariance)]
            covariance = self.covariance[np.ix_(chosen, chosen)]
            result[:, joint] = ((columns @ covariance) * columns).sum(axis=1)
        return np.maximum(result, 0.0)

    def _stiction(self, rows: Rows) -> FloatArray:
        """Return the deviation of a torque anywhere between plus and minus friction's."""
        names = self.terms.names
        friction = np.broadcast_to(self.coefficients[:, names.index('Fc')], rows.effort.shape)
        if self.terms.load:
            load = np.abs(rows.inertial @ self.model.inertial_parameters.ravel())
            friction = friction + self.coefficients[:, names.index('mu')] * load
        coupled = self.model.dry_friction - self.model.coulomb_friction
        return (np.maximum(friction, 0.0) + coupled) / np.sqrt(3.0)


def prediction_states(
    recording: Recording, cutoff: float, *, standing: bool = False
) -> tuple[tuple[States, ...], Band]:
    """Return the states that efforts are predicted from, and their band: 5 Hz at least."""
    stretches = even_samples(recording, standing=standing)
    band = band_with_cutoff(max(cutoff, _LOWEST_CUTOFF), stretches, _ROWS_PER_CUTOFF)
    return tuple(states_of(stretch, band) for stretch in stretches), band


def prediction(
    drive_model: DriveModel, recording: Recording, cutoff: float, *, standing: bool = False
) -> Prediction:
    """
    Return what the drives are expected to report, beside what they did.

    Parameters
    ----------
    drive_model : DriveModel
    recording : Recording
        Of the model's joints, in their order.
    cutoff : float
        That the model was trained with [Hz].
    standing : bool
        Whether what comes before the first motion and after the last is predicted, too.
    """
    states, band = prediction_states(recording, cutoff, standing=standing)
    scale = drive_model.effort_scale
    parts = []
    for each in states:
        rows = rows_of(drive_model.model, each, scale)
        effort, deviation = drive_model.torques(rows)
        stretch = each.even
        parts.append(
            (
                stretch.time,
                _at(stretch.time, rows.time, effort) / scale,
                np.abs(_linear(stretch.time, rows.time, deviation) / scale),
                low_passed(stretch.effort, band.cutoff, stretch.rate),
                _linear(stretch.time, rows.time, rows.moving.astype(float)) > 0.5,
            )
        )
    time, effort, deviation, measured, moving = (
        np.concatenate(group) for group in zip(*parts, strict=True)
    )
    return Prediction(time, effort, deviation, measured, moving, band.cutoff)


def effort_before(
    drive_model: DriveModel, urdf: RobotModel, recording: Recording, cutoff: float
) -> FloatArray:
    """Return what a URDF's bodies alone take, at the times and in the unit of ``prediction``."""
    nothing = np.zeros_like(drive_model.coefficients)
    bodies = replace(
        drive_model.model,
        inertial_parameters=urdf.inertial_parameters,
        gravity=urdf.gravity,
        coupled_rotor_inertia=np.zeros(0),
        coupled_friction=np.zeros((0, 4)),
    )
    plain = replace(drive_model, model=bodies, coefficients=nothing)
    return prediction(plain, recording, cutoff).effort


def _at(time: FloatArray, known: FloatArray, values: FloatArray) -> FloatArray:
    return CubicSpline(known, values)(np.clip(time, known[0], known[-1]))


def _linear(time: FloatArray, known: FloatArray, values: FloatArray) -> FloatArray:
    return np.stack([np.interp(time, known, column) for column in values.T], axis=1)


def base_parameter_deviation(drive_model: DriveModel, base: BaseParameters) -> FloatArray:
    """
    Return the standard deviations of base parameters, shape (base.count,).

    Parameters
    ----------
    drive_model : DriveModel
        Knows the covariance of the bodies' base parameters and the drives' coefficients.
    base : BaseParameters
        Of the same arm, in which rotors may be regrouped with bodies.
    """
    n, terms = drive_model.model.n, drive_model.terms
    known = drive_model.base.count
    standard = np.zeros((len(drive_model.covariance), base.standard.count))
    standard[:known, : 10 * n] = drive_model.base.regrouping
    names = ('Ia', 'Fv', 'Fc')
    extra = (base.standard.count - 10 * n) // n
    kept = names[:extra] if base.standard.rotor_inertia else names[1 : 1 + extra]
    for k, name in enumerate(kept):
        for joint in range(n):
            row = known + joint * terms.count + terms.names.index(name)
            standard[row, 10 * n + k * n + joint] = 1.0
    # Both describe the same torques: one is a combination of the other.
    combination = np.linalg.lstsq(standard.T, base.regrouping.T, rcond=1e-9)[0].T
    variance = ((combination @ drive_model.covariance) * combination).sum(axis=1)
    return np.sqrt(np.maximum(variance, 0.0))
