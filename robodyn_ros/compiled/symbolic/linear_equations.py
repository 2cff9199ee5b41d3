# SPDX-License-Identifier: Apache-2.0
"""The mass matrix as M = L D LT: accelerations, and its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robodyn_ros.compiled.symbolic.arm import Matrix, Vector
from robodyn_ros.compiled.symbolic.expression import Scalar


@dataclass(frozen=True)
class Factors:
    """
    M = L D LT, for a symmetric M (n, n).

    Attributes
    ----------
    lower : (n, n) scalars
        L below its diagonal of ones.
    pivots, inverses : n scalars
        D and its inverse. M is positive definite where all pivots are positive.
    """

    lower: Matrix
    pivots: Vector
    inverses: Vector

    @classmethod
    def of(cls, mass: Matrix) -> Factors:
        """Return the factors of a mass matrix."""
        n = len(mass)
        lower: Matrix = [[0.0] * n for _ in range(n)]
        scaled: Matrix = [[0.0] * n for _ in range(n)]
        pivots: Vector = []
        inverses: Vector = []
        for i in range(n):
            for k in range(i):
                scaled[i][k] = _less(mass[i][k], scaled[i][:k], lower[k])
                lower[i][k] = scaled[i][k] * inverses[k]
            pivots.append(_less(mass[i][i], scaled[i][:i], lower[i]))
            inverses.append(0.0 if pivots[i] == 0.0 else 1.0 / pivots[i])
        return cls(lower, pivots, inverses)

    def solution(self, right: Vector) -> Vector:
        """Return x (n,) of M x = right."""
        lower, n = self.lower, len(right)
        x = list(right)
        for i in range(n):
            x[i] = _less(x[i], lower[i][:i], x)
        x = [a * b for a, b in zip(x, self.inverses)]
        for i in range(n - 1, -1, -1):
            x[i] = _less(x[i], [lower[k][i] for k in range(i + 1, n)], x[i + 1 :])
        return x

    def inverse(self) -> Matrix:
        """Return the inverse of M (n, n)."""
        n = len(self.pivots)
        result: Matrix = [[0.0] * n for _ in range(n)]
        # Row i of LT X = D^-1 L^-1, from the last to the first; it is known above the diagonal.
        for i in range(n - 1, -1, -1):
            column = [self.lower[k][i] for k in range(i + 1, n)]
            for j in range(n - 1, i - 1, -1):
                own = self.inverses[i] if i == j else 0.0
                result[i][j] = _less(own, column, [result[k][j] for k in range(i + 1, n)])
                result[j][i] = result[i][j]
        return result


def _less(value: Scalar, a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """Return a value less the sum of products."""
    for x, y in zip(a, b):
        value = value - x * y
    return value
