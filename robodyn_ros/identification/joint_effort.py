# SPDX-License-Identifier: Apache-2.0
"""What one joint's effort is made of: gravity, the rest of the rigid body's torque, friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.identification.noise import autocorrelation_time
from robodyn_ros.spatial import FloatArray

# Columns of a joint's regression.
GRAVITY, INERTIAL, VISCOUS, COULOMB, OFFSET = range(5)
LEAST_ROWS = 20
# A part of the rigid body's torque tells where it makes up so much of the effort, is so many
# deviations from zero, and leaves so little of the effort unexplained.
_TELLING, _CERTAIN, _SURE = 0.35, 2.5, 0.45
# The rest of the rigid body's torque need not be so large to be seen.
_SEEN = 0.015
# Gravity weaker than this beside the rest of the torque cannot be told from it.
_LEAST_GRAVITY = 0.2
# URDFs are wrong, rotors are heavy, but not by more than this.
LARGEST_FACTOR = 3.0
# Gravity is missing where it is so much weaker than the rest of the rigid body's torque.
_MISSING = 0.45
# So much of the URDF's gravity may be left where another one was removed.
_LARGEST_REMAINDER = 0.5


@dataclass(frozen=True, eq=False)
class JointRegression:
    """
    A joint's effort as a combination of what may be in it.

    Attributes
    ----------
    parts : array, shape (K, 5)
        Gravity and the rest of the rigid body's torque, velocity, its direction, and one.
    effort : array, shape (K,)
        In the recorded unit.
    coefficients, deviation : array, shape (5,)
    rigid, rigid_deviation : float
        Of gravity and the rest under one coefficient.
    residual : float
        Relative to the effort's rms.
    """

    parts: FloatArray
    effort: FloatArray
    coefficients: FloatArray
    deviation: FloatArray
    rigid: float
    rigid_deviation: float
    residual: float

    @classmethod
    def of(cls, parts: FloatArray, effort: FloatArray) -> JointRegression:
        """Return the regression by least squares; what is zero throughout has no coefficient."""
        coefficients, deviation, residual = _least_squares(parts, effort)
        together = np.column_stack([parts[:, GRAVITY] + parts[:, INERTIAL], parts[:, VISCOUS:]])
        rigid, rigid_deviation, _ = _least_squares(together, effort)
        return cls(
            parts,
            effort,
            coefficients,
            deviation,
            float(rigid[0]),
            float(rigid_deviation[0]),
            residual,
        )

    def share(self, *columns: int) -> float:
        """Return the rms of some parts together over the effort's."""
        together = self.parts[:, list(columns)] @ self.coefficients[list(columns)]
        return float(np.linalg.norm(together) / np.linalg.norm(self.effort))

    @property
    def has_gravity(self) -> bool:
        """Whether the model has gravity act on the joint."""
        gravity, rest = np.linalg.norm(self.parts[:, [GRAVITY, INERTIAL]], axis=0)
        return bool(gravity > _LEAST_GRAVITY * rest)

    def is_certain(self, column: int) -> bool:
        """Whether a part is many deviations from zero."""
        return bool(abs(self.coefficients[column]) > _CERTAIN * self.deviation[column])

    @property
    def tells(self) -> bool:
        """Whether the rigid body's torque explains enough of the effort to scale it."""
        if self.residual > _SURE:
            return False
        if self.has_gravity:
            return self.share(GRAVITY) > _TELLING and self.is_certain(GRAVITY)
        share = abs(self.rigid) * np.linalg.norm(self.parts[:, [GRAVITY, INERTIAL]].sum(axis=1))
        return bool(
            share > _TELLING * np.linalg.norm(self.effort)
            and abs(self.rigid) > _CERTAIN * self.rigid_deviation
        )

    @property
    def sees_the_rest(self) -> bool:
        """Whether the rigid body's torque beside gravity is seen."""
        return self.is_certain(INERTIAL) and self.share(INERTIAL) > _SEEN

    @property
    def misses_gravity(self) -> bool:
        """
        Whether gravity is missing from an effort that is a torque.

        What the URDF's gravity differs from the one that was removed remains, of either sign.
        """
        gravity, rest = self.coefficients[[GRAVITY, INERTIAL]]
        if not self.has_gravity or abs(gravity) > _LARGEST_REMAINDER:
            return False
        if self.sees_the_rest and rest < 0:
            return False
        if self.sees_the_rest:
            return bool(rest > 1.0 / LARGEST_FACTOR and gravity < _MISSING * rest)
        if abs(gravity) > 1.0 / LARGEST_FACTOR:
            return False
        expected = np.linalg.norm(self.parts[:, GRAVITY]) / np.linalg.norm(self.effort)
        return bool(expected > _TELLING and (gravity < 0 or self.share(GRAVITY) < _TELLING))

    @property
    def unit_per_torque(self) -> float:
        """Recorded units for a torque [1 / (N m) or 1 / N]."""
        return float(self.coefficients[GRAVITY]) if self.has_gravity else self.rigid

    @property
    def unit_deviation(self) -> float:
        """The standard deviation of ``unit_per_torque``."""
        return float(self.deviation[GRAVITY]) if self.has_gravity else self.rigid_deviation


def _least_squares(
    columns: FloatArray, effort: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return coefficients, their deviations, and the relative residual."""
    size = np.linalg.norm(columns, axis=0)
    kept = np.flatnonzero(size > 1e-9 * size.max())
    scaled = columns[:, kept] / size[kept]
    left, singular, right = np.linalg.svd(scaled, full_matrices=False)
    solution = right.T @ ((left.T @ effort) / singular)
    residual = effort - scaled @ solution
    rows = np.ones((len(effort), 1), dtype=bool)
    correlation = float(autocorrelation_time([residual[:, None]], [rows])[0])
    variance = residual @ residual / max(len(effort) - len(kept), 1) * correlation
    deviation = np.sqrt(variance * ((right.T / singular) ** 2).sum(axis=1))
    coefficients, deviations = np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    coefficients[kept], deviations[kept] = solution / size[kept], deviation / size[kept]
    whole = max(float(np.linalg.norm(effort)), 1e-300)
    return coefficients, deviations, float(np.linalg.norm(residual)) / whole
