# SPDX-License-Identifier: Apache-2.0
"""
Rows compressed joint by joint: triangular factors, from which regressions are assembled.

A joint's rows of the links' columns, drive columns and further columns become the triangle of
their QR factors, with the effort as last column. A triangle of some columns is a factor of any
choice of them, so that candidates and blocks of cross-validation are combined, weighted and
compared without touching a row again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from robodyn_ros.spatial import FloatArray

# Directions of the regression that are so much weaker than the strongest tell nothing.
_NEGLIGIBLE = 1e-6
_LEAST_SPARE = 10


@dataclass(frozen=True, eq=False)
class JointFactor:
    """
    The compressed rows of one joint.

    Attributes
    ----------
    triangle : array, shape (m, columns + 1)
        Its last column is the effort's.
    count : int
        How many rows it stands for.
    """

    triangle: FloatArray
    count: int

    @classmethod
    def of(cls, columns: FloatArray, effort: FloatArray) -> JointFactor:
        """Return the factor of rows, shape (K, columns), and their efforts, shape (K,)."""
        return cls(triangular_factor(np.column_stack([columns, effort])), len(effort))

    @classmethod
    def joined(cls, factors: Sequence[JointFactor]) -> JointFactor:
        """Return the factor of the rows of several factors."""
        stacked = np.vstack([factor.triangle for factor in factors])
        return cls(triangular_factor(stacked), sum(factor.count for factor in factors))

    def of_columns(self, columns: FloatArray) -> JointFactor:
        """Return the factor with a choice of its columns, by their numbers."""
        chosen = np.append(columns, self.triangle.shape[1] - 1)
        return JointFactor(self.triangle[:, chosen], self.count)

    @property
    def free_deviation(self) -> float:
        """Deviation that least squares by itself leaves; NaN where it leaves no rows to tell."""
        if not self.count:
            return float('nan')
        columns, effort = self.triangle[:, :-1], self.triangle[:, -1]
        left, singular, _ = singular_values(columns)
        known = left[:, singular > _NEGLIGIBLE * singular[0]]
        spare = self.count - known.shape[1]
        if spare < _LEAST_SPARE:
            return float('nan')
        residual = effort - known @ (known.T @ effort)
        return float(np.sqrt(residual @ residual / spare))

    def squared_residual(self, x: FloatArray) -> float:
        """Return the sum of squared residuals of its rows under parameters (columns,)."""
        residual = self.triangle[:, :-1] @ x - self.triangle[:, -1]
        return float(residual @ residual)


def singular_values(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the thin singular value decomposition U, s, V^T."""
    # By the QR iteration: LAPACK's default, divide and conquer, gives up on some finite matrices
    # whose columns depend on one another.
    return scipy.linalg.svd(matrix, full_matrices=False, lapack_driver='gesvd')


def triangular_factor(rows: FloatArray) -> FloatArray:
    """Return R of the QR factors of rows, shape (min(rows, columns), columns)."""
    return np.asarray(np.linalg.qr(rows, mode='r'), dtype=float)


@dataclass(frozen=True)
class Layout:
    """
    Where a joint's columns stand among the parameters of the whole regression.

    The parameters are ten of each link, ``terms`` of each joint, and ``common`` ones. A joint's
    own columns are those of the links behind it, its terms, and the common ones.

    Attributes
    ----------
    n, terms, common : int
    """

    n: int
    terms: int
    common: int

    @property
    def size(self) -> int:
        """Number of parameters."""
        return 10 * self.n + self.n * self.terms + self.common

    def columns(self, joint: int) -> FloatArray:
        """Return which parameters a joint's columns belong to."""
        drive = 10 * self.n + joint * self.terms
        return np.r_[
            10 * joint : 10 * self.n,
            drive : drive + self.terms,
            self.size - self.common : self.size,
        ]

    def assembled(
        self, factors: Sequence[JointFactor], deviation: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return factor and target of the regression, each joint's rows divided by a deviation."""
        rows = []
        for joint, factor in enumerate(factors):
            wide = np.zeros((len(factor.triangle), self.size + 1))
            wide[:, self.columns(joint)] = factor.triangle[:, :-1]
            wide[:, -1] = factor.triangle[:, -1]
            rows.append(wide / deviation[joint])
        stacked = np.vstack(rows)
        return stacked[:, :-1], stacked[:, -1]


def joint_factors(
    inertial: FloatArray,
    drive: FloatArray,
    common: FloatArray,
    effort: FloatArray,
    weight: FloatArray,
) -> list[JointFactor]:
    """
    Return the factor of each joint's rows that have weight.

    Parameters
    ----------
    inertial : array, shape (K, n, 10 n)
    drive : array, shape (K, n, terms)
    common : array, shape (K, n, columns)
    effort, weight : array, shape (K, n)
        Rows are multiplied by their weight.
    """
    factors = []
    for joint in range(effort.shape[1]):
        chosen = weight[:, joint] > 0
        columns = np.hstack(
            [
                inertial[chosen, joint, 10 * joint :],
                drive[chosen, joint],
                common[chosen, joint],
            ]
        )
        scale = weight[chosen, joint]
        factors.append(JointFactor.of(columns * scale[:, None], effort[chosen, joint] * scale))
    return factors
