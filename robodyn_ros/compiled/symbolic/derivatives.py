# SPDX-License-Identifier: Apache-2.0
"""
The Coriolis matrix, half the derivative of the torques by velocities, for straight-line code.

A recursion like those of Carpentier and Mansard 2018 and of Singh, Russell and Wensing 2022, in
link coordinates and for first and second moments. With links j >= m as one body, r
a point of it from the origin o_m of frame m, z the axis of joint m, and

    zd = w x z,   zdd = wd x z + w x (w x z),   a = acceleration of o_m less gravity,

a revolute joint m changes the acceleration of that point as its position and its rate change by

    zdd x r + 2 zd x rd + z x (rdd - a)   and   2 (zd x r + z x rd),

a prismatic one by zdd and 2 zd. Summed over the masses this takes, beside what the mass matrix
and the torques take, the body's moments of velocity

    K = integral of rd rT dm,   p = integral of rd dm,

in which r and rd count from o_m, and so no velocity of an origin occurs. A wrench that joint m's
change makes is carried inward to the joints before it. What the joints before m change in joint
m's torque is read from two wrenches that are carried inward, too: that of joint m's unit
acceleration, and a moment that gathers K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robodyn_ros.compiled.symbolic.arm import Body, Matrix, Row, SymbolicArm, Vector
from robodyn_ros.compiled.symbolic.expression import Scalar
from robodyn_ros.compiled.symbolic.newton_euler import (
    Motion,
    carried_inward,
    link_motions,
    rotated_back_xy,
    rotated_z,
)
from robodyn_ros.compiled.symbolic.rigid_body import (
    body_carried_inward,
    dot,
    shifted,
    together,
    unit_wrench,
)

Wrench = tuple[Vector, Vector]


@dataclass(frozen=True)
class VelocityMoments:
    """
    Moments of the velocities of a body's points, about a point and relative to its velocity.

    Attributes
    ----------
    second : (3, 3) scalars
        K, the integral of rd rT dm [kg m²/s].
    first : 3 scalars
        p, the integral of rd dm [kg m/s].
    """

    second: Matrix
    first: Vector

    @classmethod
    def of_rotation(cls, body: Body, w: Vector) -> VelocityMoments:
        """Return those of a body that turns about the point with w."""
        columns = [_cross(w, list(column)) for column in zip(*body.second)]
        return cls([list(row) for row in zip(*columns)], _cross(w, body.first))

    def plus(self, other: VelocityMoments) -> VelocityMoments:
        """Return those of two bodies together."""
        return VelocityMoments(
            [[x + y for x, y in zip(*rows)] for rows in zip(self.second, other.second)],
            [x + y for x, y in zip(self.first, other.first)],
        )

    def shifted(self, body: Body, axis: int, distance: Scalar, u: Vector) -> VelocityMoments:
        """
        Return those about a point ``-distance`` along an axis, which moves with -u.

        ``body`` is the same body about the new point.
        """
        second = [list(row) for row in self.second]
        for i in range(3):
            second[i][axis] = second[i][axis] + distance * self.first[i]
            for k in range(3):
                second[i][k] = second[i][k] + u[i] * body.first[k]
        return VelocityMoments(second, [p + body.mass * x for p, x in zip(self.first, u)])

    def rotated_back(self, i: int, k: int, rotation: tuple[Scalar, Scalar]) -> VelocityMoments:
        """Return those in the axes before a rotation in the plane of axes i and k."""
        c, s = rotation
        second, first = [list(row) for row in self.second], list(self.first)
        other = 3 - i - k
        if c == 0:
            second[i][i], second[k][k] = second[k][k], second[i][i]
            second[i][k], second[k][i] = -second[k][i], -second[i][k]
        elif s != 0:
            w = s * (second[i][i] - second[k][k]) + c * (second[i][k] + second[k][i])
            second[i][i], second[k][k] = second[i][i] - s * w, second[k][k] + s * w
            second[i][k], second[k][i] = c * w - second[k][i], c * w - second[i][k]
        a, b = second[i][other], second[k][other]
        second[i][other], second[k][other] = c * a - s * b, s * a + c * b
        a, b = second[other][i], second[other][k]
        second[other][i], second[other][k] = c * a - s * b, s * a + c * b
        first[i], first[k] = c * first[i] - s * first[k], s * first[i] + c * first[k]
        return VelocityMoments(second, first)


@dataclass(frozen=True)
class _Outer:
    """
    Links j to n as one body, about the origin of frame j.

    Attributes
    ----------
    body : Body
    moments : VelocityMoments
    """

    body: Body
    moments: VelocityMoments


def coriolis_matrix(arm: SymbolicArm, qd: Sequence[Scalar]) -> Matrix:
    """
    Return C(q, qd) (n, n) of the Christoffel symbols: 2 C is the derivative of tau by qd.

    Parameters
    ----------
    arm : SymbolicArm
    qd : sequence of n scalars
    """
    motions = link_motions(arm, qd, [0.0] * arm.n)
    outer = _outer_bodies(arm, motions, qd)
    result: Matrix = [[0.0] * arm.n for _ in range(arm.n)]
    for m in range(arm.n - 1, -1, -1):
        arm.rows[m].begin(f'row and column {m + 1} of C')
        wrench = _wrench_of_rate(arm.rows[m], outer[m], motions[m])
        for i, along in _carried_to_joints(arm.rows, m, wrench):
            result[i][m] = along
        for i, (f, n), gathered in _functional(arm, motions, qd, outer[m], m):
            zd = _axis_rate(motions[i])
            result[m][i] = dot(f, zd) if arm.rows[i].prismatic else dot(n, zd) + gathered[2]
    return result


def _outer_bodies(
    arm: SymbolicArm, motions: Sequence[Motion], qd: Sequence[Scalar]
) -> list[_Outer]:
    """Return links j to n as one body, for every j."""
    result: list[_Outer] = []
    for j in range(arm.n - 1, -1, -1):
        arm.rows[j].begin(f'the body behind joint {j + 1} and its velocities')
        body, w = arm.bodies[j], motions[j].w
        moments = VelocityMoments.of_rotation(body, w)
        if result:
            row, last = arm.rows[j + 1], result[-1]
            moments = moments.plus(
                _moments_carried_inward(row, last, motions[j + 1].w, w, qd[j + 1])
            )
            body = together(body, body_carried_inward(row, last.body))
        result.append(_Outer(body, moments))
    return result[::-1]


def _moments_carried_inward(
    row: Row, outer: _Outer, w: Vector, w_before: Vector, qd: Scalar
) -> VelocityMoments:
    """Return moments about the origin of frame i - 1, in its axes, from frame i."""
    body, moments = shifted(outer.body, 2, row.d), outer.moments
    moments = moments.shifted(body, 2, row.d, _along_d(row, w, qd))
    moments = moments.rotated_back(0, 1, row.theta)
    moments = moments.rotated_back(2, 0, row.beta)
    moments = moments.rotated_back(1, 2, row.alpha)
    return moments.shifted(body_carried_inward(row, outer.body), 0, row.a, _along_a(row, w_before))


def _along_d(row: Row, w: Vector, qd: Scalar) -> Vector:
    """Return the velocity of the origin of frame i from the foot of its axis, in frame i."""
    return [row.d * w[1], -(row.d * w[0]), qd if row.prismatic else 0.0]


def _along_a(row: Row, w_before: Vector) -> Vector:
    """Return the velocity of that foot from the origin of frame i - 1, in frame i - 1."""
    return [0.0, row.a * w_before[2], -(row.a * w_before[1])]


def _axis_rate(motion: Motion) -> Vector:
    """Return zd."""
    return [motion.w[1], -motion.w[0], 0.0]


def _wrench_of_rate(row: Row, outer: _Outer, motion: Motion) -> Wrench:
    """Return half the wrench, about o_m, that a unit rate of joint m adds."""
    zd, body = _axis_rate(motion), outer.body
    if row.prismatic:
        return [body.mass * x for x in zd], _cross(body.first, zd)
    k, (px, py, _) = outer.moments.second, outer.moments.first
    force, moment = _rotated_body_wrench(body, zd)
    return (
        [force[0] - py, force[1] + px, force[2]],
        [moment[0] - k[0][2], moment[1] - k[1][2], moment[2] + k[0][0] + k[1][1]],
    )


def _rotated_body_wrench(body: Body, angular: Vector) -> Wrench:
    """Return the wrench of a body with this angular acceleration."""
    (exx, exy, exz), (_, eyy, eyz), (_, _, ezz) = body.second
    x, y, z = angular
    return _cross(angular, body.first), [
        x * (eyy + ezz) - y * exy - z * exz,
        y * (exx + ezz) - x * exy - z * eyz,
        z * (exx + eyy) - x * exz - y * eyz,
    ]


def _carried_to_joints(rows: Sequence[Row], m: int, wrench: Wrench) -> list[tuple[int, Scalar]]:
    """Return what joints m to 1 feel of a wrench about o_m."""
    result = []
    for i in range(m, -1, -1):
        force, moment = wrench
        result.append((i, (force if rows[i].prismatic else moment)[2]))
        wrench = carried_inward(rows[i], force, moment)
    return result


def _functional(
    arm: SymbolicArm, motions: Sequence[Motion], qd: Sequence[Scalar], outer: _Outer, m: int
) -> list[tuple[int, Wrench, Vector]]:
    """
    Return what turns the motion of frames i < m into joint m's torque, in those frames.

    The wrench of joint m's unit acceleration, and the moment that a rate of an axis does work on.
    """
    rows, k, p = arm.rows, outer.moments.second, outer.moments.first
    force, moment = unit_wrench(rows[m], outer.body)
    gathered: Vector = (
        [p[1], -p[0], 0.0] if rows[m].prismatic else [-k[2][0], -k[2][1], k[0][0] + k[1][1]]
    )
    result: list[tuple[int, Wrench, Vector]] = []
    for i in range(m - 1, -1, -1):
        row = rows[i + 1]
        gathered = _plus(gathered, _cross(_along_d(row, motions[i + 1].w, qd[i + 1]), force))
        gathered = rotated_back_xy(row, rotated_z((row.theta[0], -row.theta[1]), gathered))
        force, moment = carried_inward(row, force, moment)
        gathered = _plus(gathered, _cross(_along_a(row, motions[i].w), force))
        result.append((i, (force, moment), gathered))
    return result


def _cross(a: Vector, b: Vector) -> Vector:
    return [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]


def _plus(a: Vector, b: Vector) -> Vector:
    return [x + y for x, y in zip(a, b)]
