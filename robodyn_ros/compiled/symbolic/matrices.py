# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and vectors of scalars, and matrices in rotated axes."""

from __future__ import annotations

from robodyn_ros.compiled.symbolic.arm import Matrix, PlaneRotation, Vector
from robodyn_ros.compiled.symbolic.expression import Scalar


def dot(a: Vector, b: Vector) -> Scalar:
    """Return the scalar product of vectors (3,)."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """Return the vector product of vectors (3,)."""
    return [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]


def plus(a: Vector, b: Vector) -> Vector:
    """Return the sum of two vectors."""
    return [x + y for x, y in zip(a, b)]


def minus_product(a: Matrix, b: Matrix) -> Matrix:
    """Return minus the product of two matrices."""
    columns = list(zip(*b))
    return [[-sum((x * y for x, y in zip(row, column)), 0.0) for column in columns] for row in a]


def rotated_back_pair(rotation: PlaneRotation, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """Return the components of a vector of the plane before a rotation."""
    c, s = rotation
    return c * a - s * b, s * a + c * b


def rotated_back_symmetric(matrix: Matrix, i: int, k: int, rotation: PlaneRotation) -> Matrix:
    """Return a symmetric matrix (3, 3) in the axes before a rotation in the plane of i and k."""
    c, s = rotation
    result = [list(row) for row in matrix]
    other = 3 - i - k
    if c == 0:
        result[i][i], result[k][k] = result[k][k], result[i][i]
        result[i][k] = result[k][i] = -result[i][k]
    elif s != 0:
        # Eii - s w, Ekk + s w, c w - Eik for w = s (Eii - Ekk) + 2 c Eik.
        ii, kk, ik = result[i][i], result[k][k], result[i][k]
        w = s * (ii - kk) + c * (2.0 * ik)
        result[i][i], result[k][k] = ii - s * w, kk + s * w
        result[i][k] = result[k][i] = c * w - ik
    a, b = rotated_back_pair(rotation, result[i][other], result[k][other])
    result[i][other] = result[other][i] = a
    result[k][other] = result[other][k] = b
    return result


def rotated_back(matrix: Matrix, i: int, k: int, rotation: PlaneRotation) -> Matrix:
    """Return a matrix (3, 3) in the axes before a rotation in the plane of axes i and k."""
    c, s = rotation
    result = [list(row) for row in matrix]
    other = 3 - i - k
    ii, ik, ki, kk = matrix[i][i], matrix[i][k], matrix[k][i], matrix[k][k]
    if c == 0:
        result[i][i], result[k][k], result[i][k], result[k][i] = kk, ii, -ki, -ik
    elif s != 0:
        w = s * (ii - kk) + c * (ik + ki)
        result[i][i], result[k][k] = ii - s * w, kk + s * w
        result[i][k], result[k][i] = c * w - ki, c * w - ik
    result[i][other], result[k][other] = rotated_back_pair(
        rotation, matrix[i][other], matrix[k][other]
    )
    result[other][i], result[other][k] = rotated_back_pair(
        rotation, matrix[other][i], matrix[other][k]
    )
    return result
