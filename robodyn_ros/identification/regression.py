# SPDX-License-Identifier: Apache-2.0
"""
The regression of efforts: on columns that the joints have in common, and on each joint's own.

    effort_j = common_j c + own_j o_j + noise_j

What the joints have in common are bodies: base parameters, a payload. A joint's own are its
drive's terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.identification.factors import singular_values, triangular_factor
from robodyn_ros.identification.noise import autocorrelation_time
from robodyn_ros.spatial import FloatArray

# No friction, no gravity of a URDF has a shape that is known better than to this: columns that
# differ by less cannot be told from one another.
ONE_AND_THE_SAME = 0.01
# A coefficient has a part in what they have in common from this on.
_SHARED = 0.1


@dataclass(frozen=True, eq=False)
class Solution:
    """
    What explains the efforts.

    Attributes
    ----------
    common : array, shape (c,)
    own : array, shape (n, p)
    factor : array, shape (c + n p, m)
        A factor F of the covariance F Fᵀ of the common coefficients, then of each joint's own.
    residual : array, shape (K, n)
        Of the rows that have weight; zero elsewhere.
    """

    common: FloatArray
    own: FloatArray
    factor: FloatArray
    residual: FloatArray


@dataclass(frozen=True, eq=False)
class Regression:
    """
    K rows of each of n joints.

    Attributes
    ----------
    common : array, shape (K, n, c)
    own : array, shape (K, n, p)
    effort : array, shape (K, n)
    weight : array, shape (K, n)
        What a row is multiplied by; 0: it is not used.
    """

    common: FloatArray
    own: FloatArray
    effort: FloatArray
    weight: FloatArray

    def reduced(self, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
        """
        Return factor, shape (m, c + n p), and target, shape (m,), of the least squares.

        Parameters
        ----------
        noise : array, shape (n,)
            What each joint's rows are divided by: the deviation of their residuals, times the
            root of its autocorrelation time.
        """
        n, c, p = self.effort.shape[1], self.common.shape[-1], self.own.shape[-1]
        parts = []
        for j in range(n):
            mine = self.weight[:, j] > 0
            rows = np.column_stack([self.common[mine, j], self.own[mine, j], self.effort[mine, j]])
            triangle = triangular_factor(rows * (self.weight[mine, j, None] / noise[j]))
            wide = np.zeros((len(triangle), c + n * p + 1))
            wide[:, np.r_[0:c, c + j * p : c + (j + 1) * p, -1]] = triangle
            parts.append(wide)
        stacked = np.vstack(parts)
        return stacked[:, :-1], stacked[:, -1]

    def solved(
        self, noise: FloatArray, spread: FloatArray, first: FloatArray | float = 0.0
    ) -> Solution:
        """
        Return what explains the efforts best, and is near what was assumed.

        Parameters
        ----------
        noise : array, shape (n,)
            As of ``reduced``.
        spread : array, shape (c + n p,)
            How far the coefficients may be from ``first``: standard deviations.
        first : array, shape (c + n p,), or float
        """
        factor, target = self.reduced(noise)
        stacked = np.vstack([factor, np.diag(1.0 / spread)])
        right = np.concatenate([target, np.broadcast_to(first / spread, spread.shape)])
        # Columns of one size: the matrix is far from singular whatever the units are.
        size = np.linalg.norm(stacked, axis=0)
        left, singular, rest = singular_values(stacked / size)
        solution = rest.T @ ((left.T @ right) / singular) / size
        common, own = np.split(solution, [self.common.shape[-1]])
        own = own.reshape(len(noise), -1)
        return Solution(common, own, rest.T / singular / size[:, None], self.residual(common, own))

    def residual(self, common: FloatArray, own: FloatArray) -> FloatArray:
        """Return what coefficients (c,) and (n, p) leave, shape (K, n): zero without weight."""
        left = self.effort - self.common @ common - (self.own * own).sum(axis=-1)
        return np.where(self.weight > 0, left, 0.0)


def least_squares(columns: FloatArray, effort: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """
    Return coefficients (c,) of one joint's columns, their deviations, and the relative residual.

    Columns of zeros have no coefficient. What columns have in common that are one and the same to
    a hundredth, gravity on a lift and the offset of its drive for example, is shared among them,
    and their deviations are infinite.

    Parameters
    ----------
    columns : array, shape (K, c)
    effort : array, shape (K,)
    """
    size = np.linalg.norm(columns, axis=0)
    kept = np.flatnonzero(size > 1e-9 * size.max())
    scaled = columns[:, kept] / size[kept]
    # Divide and conquer, NumPy's way, may fail to converge where columns are the same.
    basis, triangle = np.linalg.qr(scaled)
    left, singular, right = singular_values(triangle)
    left = basis @ left
    known = singular > ONE_AND_THE_SAME * singular[0]
    inverse = right[known].T / singular[known]
    solution = inverse @ (left[:, known].T @ effort)
    residual = effort - scaled @ solution
    rows = np.ones((len(effort), 1), dtype=bool)
    correlation = float(autocorrelation_time([residual[:, None]], [rows])[0])
    variance = residual @ residual / max(len(effort) - len(kept), 1) * correlation
    deviation = np.sqrt(variance * (inverse**2).sum(axis=1))
    deviation[np.abs(right[~known]).max(axis=0, initial=0.0) > _SHARED] = np.inf
    coefficients, deviations = np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    coefficients[kept], deviations[kept] = solution / size[kept], deviation / size[kept]
    whole = max(float(np.linalg.norm(effort)), 1e-300)
    return coefficients, deviations, float(np.linalg.norm(residual)) / whole
