# SPDX-License-Identifier: Apache-2.0
"""Mass matrix and its factors, regressor, pose and Jacobian on symbolic scalars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.compiled.symbolic.arm import (
    Body,
    Matrix,
    PlaneRotation,
    Row,
    SymbolicArm,
    Vector,
    moving,
)
from robodyn_ros.compiled.symbolic.expression import Scalar
from robodyn_ros.compiled.symbolic.matrices import (
    cross,
    dot,
    plus,
    rotated_back_pair,
    rotated_back_symmetric,
)
from robodyn_ros.compiled.symbolic.newton_euler import (
    BodyMotion,
    carried_inward,
    constant_step,
    rotated_xy,
    rotated_z,
)
from robodyn_ros.spatial import FloatArray


def mass_matrix(arm: SymbolicArm) -> Matrix:
    """
    Return M (n, n) by composite bodies (Walker and Orin 1982, method 3), with rotors.

    The wrench that a unit acceleration of joint k needs is carried inward to every joint before.
    """
    n = arm.n
    result: Matrix = [[0.0] * n for _ in range(n)]
    for k, composite in composites(arm):
        arm.rows[k].begin(f'column {k + 1} of M: the body behind joint {k + 1}')
        force, moment = unit_wrench(arm.rows[k], composite)
        for i in arm.moving(k):
            result[i][k] = result[k][i] = (force if arm.rows[i].prismatic else moment)[2]
            force, moment = carried_inward(arm.rows[i], force, moment)
        result[k][k] = result[k][k] + arm.rotor_inertia[k]
    for (i, k), rotor in arm.coupled_rotors.items():
        result[i][k] = result[k][i] = result[i][k] + rotor
    return result


def mass_matrix_from_base(arm: SymbolicArm) -> Matrix:
    """
    Return M (n, n) as ``mass_matrix`` does, with wrenches and axes in one frame.

    That takes more operations for each joint, and fewer for each pair of joints.
    """
    n = arm.n
    result: Matrix = [[0.0] * n for _ in range(n)]
    placed = frames(arm.rows, np.eye(4))
    axes = [[r[2] for r in rotation] for rotation, _ in placed]
    levers = [cross(origin, axis) for (_, origin), axis in zip(placed, axes)]
    for k, composite in composites(arm):
        arm.rows[k].begin(f'column {k + 1} of M: the body behind joint {k + 1}')
        rotation, origin = placed[k]
        force, moment = (
            [dot(r, x) for r in rotation] for x in unit_wrench(arm.rows[k], composite)
        )
        moment = plus(moment, cross(origin, force))
        for i in arm.moving(k):
            along = dot(force, axes[i] if arm.rows[i].prismatic else levers[i])
            if not arm.rows[i].prismatic:
                along = along + dot(moment, axes[i])
            result[i][k] = result[k][i] = along
        result[k][k] = result[k][k] + arm.rotor_inertia[k]
    for (i, k), rotor in arm.coupled_rotors.items():
        result[i][k] = result[k][i] = result[i][k] + rotor
    return result


def composites(arm: SymbolicArm) -> Iterator[tuple[int, Body]]:
    """Yield each joint, from the last one, and all that it moves as one body."""
    bodies = list(arm.bodies)
    for k in range(arm.n - 1, -1, -1):
        yield k, bodies[k]
        if (parent := arm.rows[k].parent) >= 0:
            moved = body_carried_inward(arm.rows[k], bodies[k])
            bodies[parent] = together(bodies[parent], moved)


def unit_wrench(row: Row, body: Body) -> tuple[Vector, Vector]:
    """Return force and moment, about the frame's origin, of a unit acceleration of its joint."""
    (exx, _, exz), (_, eyy, eyz), _ = body.second
    x, y, _ = body.first
    if row.prismatic:
        return [0.0, 0.0, body.mass], [y, -x, 0.0]
    return [-y, x, 0.0], [-exz, -eyz, exx + eyy]


def together(a: Body, b: Body) -> Body:
    """Return two bodies as one."""
    return Body(
        [[x + y for x, y in zip(*rows)] for rows in zip(a.second, b.second)],
        [x + y for x, y in zip(a.first, b.first)],
        a.mass + b.mass,
    )


def body_carried_inward(row: Row, body: Body) -> Body:
    """Return a body about the origin of the frame before, in its axes, from frame i."""
    body = shifted(body, 2, row.d)
    body = _rotated_back(body, 0, 1, row.theta)
    body = _rotated_back(body, 2, 0, row.beta)
    body = shifted(body, 0, row.a)
    body = shifted(_rotated_back(body, 1, 2, row.alpha), 2, row.b)
    return _rotated_back(body, 0, 1, row.gamma)


def shifted(body: Body, axis: int, distance: Scalar) -> Body:
    """Return a body about a point that lies ``-distance`` along an axis."""
    second, first = [list(row) for row in body.second], list(body.first)
    moved = distance * body.mass
    for k in range(3):
        if k != axis:
            second[k][axis] = second[axis][k] = second[axis][k] + distance * first[k]
    second[axis][axis] = second[axis][axis] + distance * (2.0 * first[axis] + moved)
    first[axis] = first[axis] + moved
    return Body(second, first, body.mass)


def _rotated_back(body: Body, i: int, k: int, rotation: PlaneRotation) -> Body:
    """Return a body in the axes before a rotation in the plane of axes i and k."""
    second = rotated_back_symmetric(body.second, i, k, rotation)
    first = list(body.first)
    first[i], first[k] = rotated_back_pair(rotation, first[i], first[k])
    return Body(second, first, body.mass)


def regressor_columns(
    arm: SymbolicArm, motions: Sequence[BodyMotion], columns: Sequence[tuple[int, int]]
) -> list[Vector]:
    """
    Return columns of the regressor, each n joint torques.

    Column (j, k) holds the torques that parameter k of link j, in the order ``XX XY XZ YY YZ ZZ mX
    mY mZ m``, causes with a value of one. Joint i takes the wrench on the link through the link's
    velocity for a unit velocity of joint i alone.
    """
    result = []
    for j, k in columns:
        force, moment = _unit_wrench(motions[j], k)
        column: Vector = [0.0] * arm.n
        for i, (velocity, w) in _partial_velocities(arm, j).items():
            column[i] = dot(velocity, force) + dot(w, moment)
        result.append(column)
    return result


def _partial_velocities(arm: SymbolicArm, j: int) -> dict[int, tuple[Vector, Vector]]:
    """Return velocities v, w of link j, in its axes, for unit velocities of the joints before."""
    result = {}
    z: Vector = [0.0, 0.0, 1.0]
    zero: Vector = [0.0, 0.0, 0.0]
    path = arm.moving(j)[::-1]
    for k, i in enumerate(path):
        v, w = (z, zero) if arm.rows[i].prismatic else (zero, z)
        for row in (arm.rows[m] for m in path[k + 1 :]):
            v = plus(v, cross(w, constant_step(row)))
            v, w = (rotated_z(row.theta, rotated_xy(row, x)) for x in (v, w))
            v = [v[0] + row.d * w[1], v[1] - row.d * w[0], v[2]]
        result[i] = v, w
    return result


def _unit_wrench(motion: BodyMotion, k: int) -> tuple[Vector, Vector]:
    """Return force and moment that parameter k of a link takes with a value of one."""
    zero: Vector = [0.0, 0.0, 0.0]
    u, (xx, yy, zz) = motion.u, motion.squares
    w, wd, vd = motion.w, motion.wd, motion.vd
    if k == 9:
        return vd, zero
    if k >= 6:
        axis = k - 6
        first, second = (axis + 1) % 3, (axis + 2) % 3
        moment: Vector = [0.0, 0.0, 0.0]
        moment[first], moment[second] = -vd[second], vd[first]
        return [-u[i][i] if i == axis else u[i][axis] for i in range(3)], moment
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return zero, [
        [wd[0], xz, -xy],
        [-u[2][0], u[2][1], xx - yy],
        [u[1][0], zz - xx, -u[1][2]],
        [-yz, wd[1], xy],
        [yy - zz, -u[0][1], u[0][2]],
        [yz, -xz, wd[2]],
    ][k]


def frames(rows: Sequence[Row], base: FloatArray) -> list[tuple[Matrix, Vector]]:
    """Return rotation (3, 3) and origin of frames 1 to n in the base link's frame."""
    first: tuple[Matrix, Vector] = base[:3, :3].tolist(), base[:3, 3].tolist()
    result: list[tuple[Matrix, Vector]] = []
    for j, row in enumerate(rows):
        row.begin(f'frame {j + 1}')
        rotation, origin = first if row.parent < 0 else result[row.parent]
        origin = [x + dot(r, constant_step(row)) for x, r in zip(origin, rotation)]
        rotation = [rotated_z(row.theta, rotated_xy(row, r)) for r in rotation]
        origin = [x + row.d * r[2] for x, r in zip(origin, rotation)]
        result.append((rotation, origin))
    return result


def tip_pose(rows: Sequence[Row], base: FloatArray, body: int, tip: FloatArray) -> Matrix:
    """Return a tip link's pose (4, 4) in the base link's frame."""
    rotation, origin = frames(rows, base)[body]
    pose: Matrix = [
        [dot(r, tip[:3, k].tolist()) + (x if k == 3 else 0.0) for k in range(4)]
        for r, x in zip(rotation, origin)
    ]
    return [*pose, [0.0, 0.0, 0.0, 1.0]]


def tip_jacobian(rows: Sequence[Row], base: FloatArray, body: int, tip: FloatArray) -> Matrix:
    """Return a tip's Jacobian (6, n), linear rows first, in the base link's axes."""
    placed = frames(rows, base)
    last_rotation, last_origin = placed[body]
    point = [x + dot(r, tip[:3, 3].tolist()) for x, r in zip(last_origin, last_rotation)]
    columns: Matrix = [[0.0] * 6 for _ in rows]
    rows[0].begin('columns of the Jacobian')
    for i in moving(rows, body)[::-1]:
        row, (rotation, origin) = rows[i], placed[i]
        z = [r[2] for r in rotation]
        arm = [a - b for a, b in zip(point, origin)]
        columns[i] = [*z, 0.0, 0.0, 0.0] if row.prismatic else [*cross(z, arm), *z]
    return [list(row) for row in zip(*columns)]


def wrench_torques(
    rows: Sequence[Row], base: FloatArray, body: int, tip: FloatArray, wrench: Sequence[Scalar]
) -> Vector:
    """
    Return the joint torques under which a tip exerts a wrench (6,) on the world.

    The wrench acts at the tip link's origin, in base link axes.
    """
    path = [rows[i] for i in moving(rows, body)]
    force, moment = _wrench_in_last_frame(path, base, tip, list(wrench[:3]), list(wrench[3:]))
    torques: Vector = [0.0] * len(rows)
    for i, row in zip(moving(rows, body), path):
        torques[i] = (force if row.prismatic else moment)[2]
        force, moment = carried_inward(row, force, moment)
    return torques


def _wrench_in_last_frame(
    path: Sequence[Row], base: FloatArray, tip: FloatArray, force: Vector, moment: Vector
) -> tuple[Vector, Vector]:
    """Return a wrench at the tip, in base link axes, about the origin of the first row's frame."""
    rotation: Matrix = base[:3, :3].T.tolist()
    f, m = ([dot(r, v) for r in rotation] for v in (force, moment))
    for row in reversed(path):
        f, m = (rotated_z(row.theta, rotated_xy(row, v)) for v in (f, m))
    x, y, z = tip[:3, 3].tolist()
    lever = [y * f[2] - z * f[1], z * f[0] - x * f[2], x * f[1] - y * f[0]]
    return f, [a + b for a, b in zip(m, lever)]


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
