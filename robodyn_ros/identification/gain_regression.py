# SPDX-License-Identifier: Apache-2.0
"""Efforts in the recorded unit over gains, bodies, a load of known mass and the drives' terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.identification.carried_body import carried_columns
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.factors import triangular_factor
from robodyn_ros.identification.noise import autocorrelation_time, rms
from robodyn_ros.identification.parameters import bare_base_parameters
from robodyn_ros.identification.rows import Rows
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

_TERMS = DriveTerms(presliding=1e-4, curve=True, load=True)
# Of a gain before anything is measured, relative to the first guess: a factor of twenty.
_GAIN = 3.0
# What a load may be, about the tip link: first moment [m] and inertia [m²] for its mass.
_REACH = 0.3
# Base parameters and drive terms are held this loosely, relative to what they do to the effort.
_LOOSE = 3.0
_FINE = 0.1
_LOAD_ROUNDS = 3
# No drive is known better than to this fraction of its rms effort.
_FLOOR = 0.003


@dataclass(frozen=True, eq=False)
class GainRegression:
    """
    Rows of all joints, in the recorded unit once divided by the gains.

    Attributes
    ----------
    rigid : array, shape (K, n, b)
        Columns of the base parameters, then of the load's nine unknown ones.
    known : array, shape (K, n)
        Torque of the known mass at the tip's origin.
    first : array, shape (b,)
        The parameters to begin with.
    spread : array, shape (b,)
        How far they may be off.
    """

    rows: Sequence[Rows]
    rigid: FloatArray
    known: FloatArray
    first: FloatArray
    spread: FloatArray
    effort: FloatArray
    used: np.ndarray
    size: FloatArray
    lengths: tuple[int, ...]

    @classmethod
    def of(
        cls, model: RobotModel, rows: Sequence[Rows], is_loaded: Sequence[bool], mass: float
    ) -> GainRegression:
        """
        Return the regression of rows, some of which are with a load of a mass [kg].

        Raises
        ------
        NoSuchLink
            The tip link does not move.
        """
        base = bare_base_parameters(model)
        columns, known = [], []
        for each, loaded in zip(rows, is_loaded, strict=True):
            load = carried_columns(model, each) * float(loaded)
            columns.append(
                np.concatenate([each.inertial[..., list(base.columns)], load[..., :9]], axis=-1)
            )
            known.append(mass * load[..., 9])
        effort = np.concatenate([each.effort for each in rows])
        used = np.concatenate([each.used for each in rows])
        first = base.regrouping @ model.inertial_parameters.ravel()
        # What would give each column the size of the largest torque it can have a part in.
        typical = np.abs(base.regrouping) @ np.abs(model.inertial_parameters).ravel()
        inertia, moment = mass * _REACH**2, mass * _REACH
        size = rms(effort, used)
        return cls(
            rows,
            np.concatenate(columns),
            np.concatenate(known),
            np.concatenate([first, np.zeros(9)]),
            np.concatenate(
                [_LOOSE * np.maximum(typical, 1e-3), np.full(6, inertia), np.full(3, moment)]
            ),
            effort,
            used,
            np.maximum(size, 1e-6 * max(float(size.max()), 1e-9)),
            tuple(len(each.effort) for each in rows),
        )

    def first_moment(self, solution: FloatArray) -> FloatArray:
        """Return the load's first moment (3,) [kg m] out of a solution."""
        b = self.rigid.shape[-1]
        return solution[b - 3 : b]

    def step(
        self, gain: FloatArray, noise: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """
        Return the step of log K, the linear parameters, a factor F of the covariance F Fᵀ of log K
        (n, m), and the noise.

        Parameters
        ----------
        gain : array, shape (n,)
        noise : array, shape (n,)
            Deviation of the residuals, times the root of their autocorrelation time.
        """
        n, b = self.effort.shape[1], self.rigid.shape[-1]
        solution = np.concatenate([self.first, np.zeros(self._drive_spread().size)])
        for _ in range(_LOAD_ROUNDS):
            # The load's friction needs the torque that is being estimated.
            drive = self._drive(gain, self.rigid @ solution[:b] + self.known)
            solution, _ = self._solved(gain, noise, drive, self.known / gain)
        torque = self.rigid @ solution[:b] + self.known
        step, factor = self._solved(
            gain, noise, drive, self.known / gain, torque=torque, around=solution
        )
        residual = np.where(
            self.used,
            self.effort - torque / gain - _of_joints(drive, solution[b:].reshape(n, -1)),
            0.0,
        )
        ends = np.cumsum(self.lengths)[:-1]
        correlation = autocorrelation_time(np.split(residual, ends), np.split(self.used, ends))
        size = np.maximum(rms(residual, self.used), _FLOOR * self.size)
        return step[:n], solution, factor[:n], np.maximum(size, 1e-12) * np.sqrt(correlation)

    def _solved(
        self,
        gain: FloatArray,
        noise: FloatArray,
        drive: FloatArray,
        known: FloatArray,
        *,
        torque: FloatArray | None = None,
        around: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """
        Return the linear parameters, base, load, then the drives', and their covariance's factor.

        With ``torque`` and ``around``: the steps of log K and of these from there.
        """
        n, b, count = self.effort.shape[1], self.rigid.shape[-1], drive.shape[-1]
        gains = 0 if torque is None else n
        first = np.concatenate([np.zeros(gains), self.first, np.zeros(n * count)])
        spread = np.concatenate([np.full(gains, _GAIN), self.spread, self._drive_spread().ravel()])
        matrix, target = [], []
        for j in range(n):
            mine = self.used[:, j]
            wide = np.zeros((int(mine.sum()), gains + b + n * count))
            wide[:, gains : gains + b] = self.rigid[mine, j] / gain[j]
            own = gains + b + j * count
            wide[:, own : own + count] = drive[mine, j]
            right = self.effort[mine, j] - known[mine, j]
            if torque is not None and around is not None:
                right = right - wide[:, gains:] @ around
                wide[:, j] = -torque[mine, j] / gain[j]
            triangle = triangular_factor(np.column_stack([wide, right]) / noise[j])
            matrix.append(triangle[:, :-1])
            target.append(triangle[:, -1])
        if around is not None:
            first = first - np.concatenate([np.zeros(gains), around])
        stacked = np.vstack([*matrix, np.diag(1.0 / spread)])
        right = np.concatenate([*target, first / spread])
        scale = np.linalg.norm(stacked, axis=0)
        left, singular, rest = np.linalg.svd(stacked / scale, full_matrices=False)
        solution = rest.T @ ((left.T @ right) / singular) / scale
        return solution, rest.T / singular / scale[:, None]

    def _drive(self, gain: FloatArray, rigid: FloatArray) -> FloatArray:
        """Return the drives' columns, (K, n, terms), load in the recorded unit."""
        plain = DriveTerms(_TERMS.presliding, _TERMS.curve)
        columns = np.concatenate([each.drive(plain) for each in self.rows])
        load = np.abs(rigid / gain) * columns[..., plain.names.index('Fc')]
        return np.concatenate([columns, load[..., None]], axis=-1)

    def _drive_spread(self) -> FloatArray:
        """Return how large the drives' terms may be, (n, terms), in the recorded unit."""
        velocity = np.concatenate([each.velocity for each in self.rows])
        speed = np.maximum(rms(velocity, self.used), 1e-2)
        step = np.concatenate([each.drive(DriveTerms())[..., 0] for each in self.rows])
        acceleration = np.maximum(rms(step, self.used), 1e-2)
        size = self.size
        return np.stack(
            [
                size / acceleration,
                size / speed,
                size,
                size,
                _FINE * size,
                _FINE * size,
                np.full(len(size), _FINE),
            ],
            axis=1,
        )


def _of_joints(columns: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Return what coefficients (n, terms) of columns (K, n, terms) add up to, (K, n)."""
    return np.asarray((columns * coefficients).sum(axis=-1))
