# SPDX-License-Identifier: Apache-2.0
"""Rows of an arm that is known and carries what is not: its motion, and the poses it stands in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.identification.carried_body import carried_columns, with_carried
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.effort_unit import given_effort_scale
from robodyn_ros.identification.even_samples import even_samples
from robodyn_ros.identification.factors import triangular_factor
from robodyn_ros.identification.identification import Identification
from robodyn_ros.identification.noise import autocorrelation_time, rms
from robodyn_ros.identification.preparation import band_with_cutoff, states_of
from robodyn_ros.identification.recording import Recording
from robodyn_ros.identification.rows import Rows, rows_of
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.spatial import FloatArray

_CUTOFF = 5.0
# Friction of the day against that of the model: relative to each term, and of the rms torque.
_FRICTION, _OFFSET = 0.2, 0.01
_LEAST_FRICTION = 1e-3
_FLOOR = 0.003
# Standing so long [s] makes a pose.
_LEAST_STAND = 0.3
_FV, _FC, _ONE = 1, 2, 3


@dataclass(frozen=True, eq=False)
class KnownArm:
    """
    An arm, its drives, and the unit of its efforts.

    Attributes
    ----------
    model : RobotModel
    terms : DriveTerms
    coefficients : array, shape (n, terms.count)
    effort_scale : array, shape (n,)
    """

    model: RobotModel
    terms: DriveTerms
    coefficients: FloatArray
    effort_scale: FloatArray

    @classmethod
    def of(cls, given: RobotModel | Identification, effort_scale: ArrayLike | None) -> KnownArm:
        """Return what an identification, or a model alone, says."""
        if isinstance(given, Identification):
            drive = given.drive_model
            model, terms, scale = given.model, drive.terms, drive.effort_scale
            coefficients = drive.coefficients
        else:
            model, terms = checked_model(given), DriveTerms(curve=True, load=True)
            scale = np.ones(model.n)
            coefficients = np.column_stack(
                [
                    model.rotor_inertia,
                    model.viscous_friction,
                    model.coulomb_friction,
                    model.effort_offset,
                    model.friction_curve,
                    model.load_friction,
                ]
            )
        if effort_scale is not None:
            scale = given_effort_scale(model, effort_scale)
        return cls(model, terms, coefficients, scale)

    @property
    def stiction(self) -> FloatArray:
        """Deviation of a torque anywhere between plus and minus Coulomb friction, shape (n,)."""
        return np.maximum(self.coefficients[:, _FC], 0.0) / np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class LoadedRows:
    """
    What the load has to explain.

    Attributes
    ----------
    arm : KnownArm
    rows : tuple of Rows
    carried : tuple of array, shape (K, n, 10)
        Columns of the load's parameters.
    poses : tuple of (number of rows, first row, last row)
        Stretches in which the whole arm stands.
    size : array, shape (n,)
        Rms of the torques.
    """

    arm: KnownArm
    rows: tuple[Rows, ...]
    carried: tuple[FloatArray, ...]
    poses: tuple[tuple[int, int, int], ...]
    size: FloatArray

    @classmethod
    def of(cls, arm: KnownArm, recordings: Sequence[Recording]) -> LoadedRows:
        """
        Return the rows of recordings of the arm's joints.

        Raises
        ------
        TooShortRecording
        """
        stretches = [each for r in recordings for each in even_samples(r, standing=True)]
        band = band_with_cutoff(_CUTOFF, stretches)
        bare = arm.model.with_rotor_inertia(np.zeros(arm.model.n))
        rows = tuple(rows_of(bare, states_of(each, band), arm.effort_scale) for each in stretches)
        poses = tuple(
            (k, first, last)
            for k, each in enumerate(rows)
            for first, last in _standing(each, int(np.ceil(_LEAST_STAND * band.row_rate)))
        )
        effort = np.concatenate([each.effort for each in rows])
        return cls(
            arm,
            rows,
            tuple(carried_columns(arm.model, each) for each in rows),
            poses,
            rms(effort, np.ones(effort.shape, dtype=bool)),
        )

    @property
    def tells(self) -> bool:
        """Whether there is any motion or pose."""
        return bool(self.poses) or any(each.used.any() for each in self.rows)

    @property
    def friction_deviation(self) -> FloatArray:
        """How far viscous and Coulomb friction and offset may be off, shape (3 n,)."""
        least = _LEAST_FRICTION * np.maximum(self.size, 1e-6)
        friction = np.abs(self.arm.coefficients[:, [_FV, _FC]])
        return np.column_stack(
            [np.maximum(_FRICTION * friction, least[:, None]), _OFFSET * self.size + least]
        ).ravel()

    def regression(
        self, parameters: FloatArray, noise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """
        Return factor and target of the load's ten parameters and the friction's corrections.

        Parameters
        ----------
        parameters : array, shape (10,)
            Of the load, as far as friction that grows with load needs it.
        noise : array, shape (n,)
            Deviation of the residuals times the root of their autocorrelation time.
        """
        n = self.arm.model.n
        rest, drive = self._rest(parameters)
        factors, targets = [], []
        for j in range(n):
            wide: list[FloatArray] = []
            right: list[FloatArray] = []
            for each, carried, left, columns in zip(
                self.rows, self.carried, rest, drive, strict=True
            ):
                mine = each.used[:, j]
                own = np.zeros((int(mine.sum()), 10 + 3 * n))
                own[:, :10] = carried[mine, j]
                own[:, 10 + 3 * j : 13 + 3 * j] = columns[mine, j][:, [_FV, _FC, _ONE]]
                wide.append(own / noise[j])
                right.append(left[mine, j] / noise[j])
            for k, first, last in self.poses:
                own = np.zeros((1, 10 + 3 * n))
                own[0, :10] = self.carried[k][first:last, j].mean(axis=0)
                own[0, 12 + 3 * j] = 1.0
                size = float(np.hypot(noise[j], self.arm.stiction[j]))
                wide.append(own / size)
                right.append(self._pose_rest(k)[first:last, j].mean(keepdims=True) / size)
            triangle = triangular_factor(np.column_stack([np.vstack(wide), np.concatenate(right)]))
            factors.append(triangle[:, :-1])
            targets.append(triangle[:, -1])
        return np.vstack(factors), np.concatenate(targets)

    def noise(self, parameters: FloatArray, friction: FloatArray) -> FloatArray:
        """Return the noise (n,) that a load and friction's corrections (3 n,) leave."""
        residuals = self._residuals(parameters, friction)
        used = [each.used for each in self.rows]
        size = rms(np.concatenate(residuals), np.concatenate(used))
        size = np.maximum(size, _FLOOR * np.maximum(self.size, 1e-9))
        return size * np.sqrt(autocorrelation_time(residuals, used))

    def relative_residual(self, parameters: FloatArray, friction: FloatArray) -> float:
        """Return the rms of what is left over that of the torque, of moving rows."""
        used = np.concatenate([each.used for each in self.rows])
        left = np.concatenate(self._residuals(parameters, friction))[used]
        whole = np.concatenate([each.effort for each in self.rows])[used]
        return float(np.linalg.norm(left)) / max(float(np.linalg.norm(whole)), 1e-12)

    def _rest(self, parameters: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return what the arm without the load does not explain, and the drives' columns."""
        arm = self.arm
        bodies = with_carried(arm.model, parameters)
        rest, columns = [], []
        for each in self.rows:
            torque = each.rigid_torque(arm.model, bodies) if arm.terms.load else None
            drive = each.drive(arm.terms, torque)
            rigid = each.inertial @ arm.model.inertial_parameters.ravel()
            rest.append(each.effort - rigid - (drive * arm.coefficients).sum(axis=-1))
            columns.append(drive)
        return rest, columns

    def _pose_rest(self, k: int) -> FloatArray:
        """Return what gravity and offset do not explain of a stretch, shape (K, n)."""
        rigid = self.rows[k].inertial @ self.arm.model.inertial_parameters.ravel()
        return self.rows[k].effort - rigid - self.arm.coefficients[:, _ONE]

    def _residuals(self, parameters: FloatArray, friction: FloatArray) -> list[FloatArray]:
        corrections = friction.reshape(self.arm.model.n, 3)
        rest, drive = self._rest(parameters)
        return [
            np.where(
                each.used,
                left
                - carried @ parameters
                - (columns[..., [_FV, _FC, _ONE]] * corrections).sum(axis=-1),
                0.0,
            )
            for each, carried, left, columns in zip(
                self.rows, self.carried, rest, drive, strict=True
            )
        ]


def _standing(rows: Rows, least: int) -> list[tuple[int, int]]:
    """Return the stretches of rows, first and behind the last, in which no joint moves."""
    still = np.concatenate([[False], ~rows.moving.any(axis=1), [False]])
    edges = np.flatnonzero(np.diff(still.astype(int)))
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist())
    return [(first, last) for first, last in pairs if last - first >= least]
