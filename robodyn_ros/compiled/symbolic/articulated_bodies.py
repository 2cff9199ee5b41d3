# SPDX-License-Identifier: Apache-2.0
"""
Forward dynamics by articulated bodies (Featherstone 1983), of order n, for straight-line code.

What a link and all behind it oppose to the link's acceleration, while the joints behind it give
way, is

    moment = A alpha + B a + n,   force = BT alpha + C a + f,

alpha and a being the link's angular acceleration and that of its origin. Both count from those of
a motion without joint accelerations, whose wrenches f and n the recursion of Newton and Euler
gives, so that velocities and gravity do not enter otherwise. With U the column of the joint's axis
and d its element there, the joint gives way by (tau - its part of the wrench - U . acceleration)
/ d; the d's are the pivots of M = LT D L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robodyn_ros.compiled.symbolic.arm import Body, Matrix, PlaneRotation, Row, SymbolicArm, Vector
from robodyn_ros.compiled.symbolic.expression import Scalar
from robodyn_ros.compiled.symbolic.matrices import (
    cross,
    dot,
    plus,
    rotated_back,
    rotated_back_symmetric,
)
from robodyn_ros.compiled.symbolic.newton_euler import (
    add_wrench,
    carried_inward,
    constant_step,
    inertial_wrench,
    link_motions,
    no_wrenches,
    rotated_xy,
    rotated_z,
)


@dataclass(frozen=True)
class ArticulatedInertia:
    """A (3, 3), B (3, 3) and C (3, 3) about a frame's origin, in its axes; A, C symmetric."""

    a: Matrix
    b: Matrix
    c: Matrix

    @classmethod
    def of(cls, body: Body) -> ArticulatedInertia:
        """Return that of a rigid body."""
        (exx, exy, exz), (_, eyy, eyz), (_, _, ezz) = body.second
        x, y, z = body.first
        m = body.mass
        return cls(
            [[eyy + ezz, -exy, -exz], [-exy, exx + ezz, -eyz], [-exz, -eyz, exx + eyy]],
            [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]],
            [[m, 0.0, 0.0], [0.0, m, 0.0], [0.0, 0.0, m]],
        )

    def plus(self, other: ArticulatedInertia) -> ArticulatedInertia:
        """Return that of two bodies that move as one."""
        pairs = ((self.a, other.a), (self.b, other.b), (self.c, other.c))
        return ArticulatedInertia(
            *([[x + y for x, y in zip(*rows)] for rows in zip(*pair)] for pair in pairs)
        )

    def column(self, prismatic: bool) -> tuple[Vector, Vector]:
        """Return moment and force of a unit acceleration of the joint along or about z."""
        if prismatic:
            return [row[2] for row in self.b], [row[2] for row in self.c]
        return [row[2] for row in self.a], list(self.b[2])

    def given_way(
        self, column: tuple[Vector, Vector], shares: tuple[Vector, Vector]
    ) -> ArticulatedInertia:
        """Return what is left where a joint gives way; ``shares`` are its column over d."""
        (un, uf), (kn, kf) = column, shares
        a, b, c = (
            [[m[i][j] - u[i] * k[j] for j in range(3)] for i in range(3)]
            for m, u, k in ((self.a, un, kn), (self.b, un, kf), (self.c, uf, kf))
        )
        return ArticulatedInertia(_symmetric(a), b, _symmetric(c))

    def free_along(self, prismatic: bool) -> ArticulatedInertia:
        """Return this with exact zeros along the joint."""
        a, b, c = ([list(row) for row in m] for m in (self.a, self.b, self.c))
        for k in range(3):
            if prismatic:
                b[k][2] = c[k][2] = c[2][k] = 0.0
            else:
                a[k][2] = a[2][k] = b[2][k] = 0.0
        return ArticulatedInertia(a, b, c)

    def carried_inward(self, row: Row) -> ArticulatedInertia:
        """Return this about the origin of the frame before, in its axes, from frame i."""
        moved = self._shifted(2, row.d)._rotated_back(0, 1, row.theta)
        moved = moved._rotated_back(2, 0, row.beta)._shifted(0, row.a)
        moved = moved._rotated_back(1, 2, row.alpha)._shifted(2, row.b)
        return moved._rotated_back(0, 1, row.gamma)

    def _shifted(self, axis: int, distance: Scalar) -> ArticulatedInertia:
        """Return this about a point that lies ``-distance`` along an axis."""
        i, j, k = (axis + 1) % 3, (axis + 2) % 3, axis
        a, b, c = [list(row) for row in self.a], [list(row) for row in self.b], self.c
        b[i] = [x - distance * y for x, y in zip(b[i], c[j])]
        b[j] = [x + distance * y for x, y in zip(b[j], c[i])]
        a[i][i] = a[i][i] - distance * (self.b[i][j] + b[i][j])
        a[j][j] = a[j][j] + distance * (self.b[j][i] + b[j][i])
        a[i][j] = a[j][i] = a[i][j] + distance * (self.b[i][i] - b[j][j])
        a[k][i] = a[i][k] = a[k][i] - distance * self.b[k][j]
        a[k][j] = a[j][k] = a[k][j] + distance * self.b[k][i]
        return ArticulatedInertia(a, b, c)

    def _rotated_back(self, i: int, k: int, rotation: PlaneRotation) -> ArticulatedInertia:
        return ArticulatedInertia(
            rotated_back_symmetric(self.a, i, k, rotation),
            rotated_back(self.b, i, k, rotation),
            rotated_back_symmetric(self.c, i, k, rotation),
        )


def accelerations(
    arm: SymbolicArm, qd: Sequence[Scalar], tau: Sequence[Scalar]
) -> tuple[Vector, Vector]:
    """
    Return the accelerations (n,) that torques cause, and the pivots (n,), which are positive.

    Parameters
    ----------
    arm : SymbolicArm
    qd, tau : sequences of n scalars
    """
    n = arm.n
    motions = link_motions(arm, qd, [0.0] * n)
    shares: list[tuple[Vector, Vector]] = [([], [])] * n
    own: Vector = [0.0] * n
    pivots: Vector = [0.0] * n
    inertias, wrenches = [ArticulatedInertia.of(body) for body in arm.bodies], no_wrenches(arm)
    for i in range(n - 1, -1, -1):
        row, inertia, (f, m) = arm.rows[i], inertias[i], wrenches[i]
        row.begin(f'joint {i + 1}: what all behind it oppose')
        force, moment = inertial_wrench(arm.bodies[i], motions[i])
        f, m = plus(force, f), plus(moment, m)
        column = inertia.column(row.prismatic)
        un, uf = column
        pivots[i] = (uf if row.prismatic else un)[2] + arm.rotor_inertia[i]
        inverse = 0.0 if pivots[i] == 0.0 else 1.0 / pivots[i]
        shares[i] = [x * inverse for x in un], [x * inverse for x in uf]
        own[i] = (tau[i] - (f if row.prismatic else m)[2]) * inverse
        if row.parent < 0:
            continue
        left = inertia.given_way(column, shares[i])
        f = plus(f, [x * own[i] for x in uf])
        m = plus(m, [x * own[i] for x in un])
        if arm.rotor_inertia[i] == 0.0:
            left = left.free_along(row.prismatic)
            (f if row.prismatic else m)[2] = tau[i]
        add_wrench(wrenches, row.parent, carried_inward(row, f, m))
        inertias[row.parent] = inertias[row.parent].plus(left.carried_inward(row))
    result: Vector = []
    links = no_wrenches(arm)  # angular and linear acceleration
    for i, row in enumerate(arm.rows):
        row.begin(f'joint {i + 1}: its acceleration')
        angular, linear = links[row.parent]
        linear = plus(linear, cross(angular, constant_step(row)))
        angular, linear = (rotated_z(row.theta, rotated_xy(row, x)) for x in (angular, linear))
        linear = [linear[0] + row.d * angular[1], linear[1] - row.d * angular[0], linear[2]]
        un, uf = shares[i]
        result.append(own[i] - (dot(un, angular) + dot(uf, linear)))
        along = linear if row.prismatic else angular
        along[2] = along[2] + result[i]
        links[i] = angular, linear
    return result, pivots


def _symmetric(matrix: Matrix) -> Matrix:
    """Return a symmetric matrix out of what stands on and above the diagonal."""
    return [[matrix[min(i, j)][max(i, j)] for j in range(3)] for i in range(3)]
