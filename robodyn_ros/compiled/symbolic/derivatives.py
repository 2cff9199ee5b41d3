# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of the dynamics, and the Coriolis matrix, for straight-line code.

A recursion like those of Carpentier and Mansard 2018 and of Singh, Russell and Wensing 2022, in
link coordinates and for first and second moments. With links j >= m as one body, r a point of it
from the origin o_m of frame m, z the axis of joint m, and

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    rotated_back,
    rotated_back_pair,
)
from robodyn_ros.compiled.symbolic.newton_euler import (
    BodyMotion,
    Wrench,
    add_wrench,
    carried_inward,
    constant_step,
    inertial_wrench,
    link_motions,
    no_wrenches,
    rotated_back_xy,
    rotated_z,
)
from robodyn_ros.compiled.symbolic.rigid_body import (
    body_carried_inward,
    shifted,
    together,
    unit_wrench,
)


@dataclass(frozen=True)
class _VelocityMoments:
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
    def of_rotation(cls, body: Body, w: Vector) -> _VelocityMoments:
        """Return those of a body that turns about the point with w."""
        columns = [cross(w, list(column)) for column in zip(*body.second)]
        return cls([list(row) for row in zip(*columns)], cross(w, body.first))

    def plus(self, other: _VelocityMoments) -> _VelocityMoments:
        """Return those of two bodies together."""
        return _VelocityMoments(
            [[x + y for x, y in zip(*rows)] for rows in zip(self.second, other.second)],
            [x + y for x, y in zip(self.first, other.first)],
        )

    def shifted(self, body: Body, way: Vector, u: Vector) -> _VelocityMoments:
        """
        Return those about a point at ``-way``, which moves with -u.

        ``body`` is the same body about the new point.
        """
        second = [
            [x + way[k] * p + u[i] * body.first[k] for k, x in enumerate(self.second[i])]
            for i, p in enumerate(self.first)
        ]
        return _VelocityMoments(second, [p + body.mass * x for p, x in zip(self.first, u)])

    def rotated_back(self, i: int, k: int, rotation: PlaneRotation) -> _VelocityMoments:
        """Return those in the axes before a rotation in the plane of axes i and k."""
        first = list(self.first)
        first[i], first[k] = rotated_back_pair(rotation, first[i], first[k])
        return _VelocityMoments(rotated_back(self.second, i, k, rotation), first)


@dataclass(frozen=True)
class _OuterBody:
    """
    Links j to n as one body, about the origin of frame j.

    Attributes
    ----------
    body : Body
    moments : _VelocityMoments
    """

    body: Body
    moments: _VelocityMoments


def _outer_bodies(
    arm: SymbolicArm, motions: Sequence[BodyMotion], qd: Sequence[Scalar]
) -> Iterator[_OuterBody]:
    """Give all that joint j moves as one body, for j from n to 1, each when it is asked for."""
    outer: dict[int, _OuterBody] = {}
    for j in range(arm.n - 1, -1, -1):
        arm.rows[j].begin(f'the body behind joint {j + 1} and its velocities')
        body, w = arm.bodies[j], motions[j].w
        moments = _VelocityMoments.of_rotation(body, w)
        for k, row in enumerate(arm.rows):
            if row.parent == j:
                moved = _moments_carried_inward(row, outer[k], motions[k].w, w, qd[k])
                moments = moments.plus(moved)
                body = together(body, body_carried_inward(row, outer[k].body))
        outer[j] = _OuterBody(body, moments)
        yield outer[j]


def _moments_carried_inward(
    row: Row, outer: _OuterBody, w: Vector, w_before: Vector, qd: Scalar
) -> _VelocityMoments:
    """Return moments about the origin of the frame before, in its axes, from frame i."""
    body, moments = shifted(outer.body, 2, row.d), outer.moments
    moments = moments.shifted(body, [0.0, 0.0, row.d], _along_d(row, w, qd))
    moments = moments.rotated_back(0, 1, row.theta)
    moments = moments.rotated_back(2, 0, row.beta)
    moments = moments.rotated_back(1, 2, row.alpha)
    moments = moments.rotated_back(0, 1, row.gamma)
    along_a = cross(w_before, constant_step(row))
    return moments.shifted(body_carried_inward(row, outer.body), constant_step(row), along_a)


def _along_d(row: Row, w: Vector, qd: Scalar) -> Vector:
    """Return the velocity of the origin of frame i from the foot of its axis, in frame i."""
    return [row.d * w[1], -(row.d * w[0]), qd if row.prismatic else 0.0]


@dataclass(frozen=True)
class _AxisMotion:
    """
    How the axis of a joint changes, in the joint's frame.

    Attributes
    ----------
    rate, twice_rate, second_rate : 3 scalars
        zd, 2 zd and zdd.
    against : 3 scalars
        -z x a, for the acceleration a of the frame's origin less gravity.
    """

    rate: Vector
    twice_rate: Vector
    second_rate: Vector
    against: Vector

    @classmethod
    def of(cls, motion: BodyMotion) -> _AxisMotion:
        x, y, _ = motion.w
        u, vd = motion.u, motion.vd
        return cls(
            [y, -x, 0.0], [2.0 * y, -(2.0 * x), 0.0], [u[0][2], u[1][2], -u[2][2]],
            [vd[1], -vd[0], 0.0],
        )  # fmt: skip


def coriolis_matrix(arm: SymbolicArm, qd: Sequence[Scalar]) -> Matrix:
    """
    Return C(q, qd) (n, n) of the Christoffel symbols: 2 C is the derivative of tau by qd.

    Parameters
    ----------
    arm : SymbolicArm
    qd : sequence of n scalars
    """
    motions = link_motions(arm, qd, [0.0] * arm.n)
    axes = [_AxisMotion.of(motion) for motion in motions]
    result: Matrix = [[0.0] * arm.n for _ in range(arm.n)]
    for m, outer in zip(range(arm.n - 1, -1, -1), _outer_bodies(arm, motions, qd)):
        arm.rows[m].begin(f'row and column {m + 1} of C')
        for i, along in _torques_of_wrench(
            arm.rows, m, _wrench_of_velocity(arm.rows[m], outer, axes[m])
        ):
            result[i][m] = along
        for read in _torque_maps(arm, motions, qd, outer, m):
            result[m][read.i] = read.velocity(axes[read.i])
    return result


def christoffel_symbols(arm: SymbolicArm) -> list[Matrix]:
    """
    Return G (n, n, n), with C_im = sum over k of G_imk qd_k.

    Unit rates of joint k make column k of each C_im; those of i, m <= k are enough, as
    G_imk = G_ikm, and G_imk = -G_kmi for m <= i, k (Tourassis and Neuman 1985, (38), (39)).
    """
    n = arm.n
    result: list[Matrix] = [[[0.0] * n for _ in range(n)] for _ in range(n)]
    for c in range(n):
        matrix = coriolis_matrix(arm, [1.0 if k == c else 0.0 for k in range(n)])
        for a in range(c):
            result[a][c][c] = matrix[a][c]
            result[a][a][c] = result[a][c][a] = matrix[a][a]
            result[c][a][a] = -matrix[a][a]
            for b in range(a + 1, c):
                result[a][b][c] = result[a][c][b] = matrix[a][b]
                result[b][a][c] = result[b][c][a] = matrix[b][a]
                result[c][a][b] = result[c][b][a] = -matrix[b][a]
    return result


def torque_derivatives(
    arm: SymbolicArm, qd: Sequence[Scalar], qdd: Sequence[Scalar]
) -> tuple[Matrix, Matrix]:
    """
    Return d tau / d q (n, n) and half of d tau / d qd, which is C (n, n).

    Parameters
    ----------
    arm : SymbolicArm
    qd, qdd : sequences of n scalars
    """
    n = arm.n
    motions = link_motions(arm, qd, qdd)
    axes = [_AxisMotion.of(motion) for motion in motions]
    by_position: Matrix = [[0.0] * n for _ in range(n)]
    coriolis: Matrix = [[0.0] * n for _ in range(n)]
    wrenches = no_wrenches(arm)
    # All of a joint at once: what is computed is used soon.
    for m, outer in zip(range(n - 1, -1, -1), _outer_bodies(arm, motions, qd)):
        row = arm.rows[m]
        row.begin(f'derivatives by the motion and of the torque of joint {m + 1}')
        add_wrench(wrenches, m, inertial_wrench(arm.bodies[m], motions[m]))
        inward = wrenches[m]
        by_step = _torques_of_wrench(arm.rows, m, _wrench_of_position(row, outer, axes[m], inward))
        by_rate = _torques_of_wrench(arm.rows, m, _wrench_of_velocity(row, outer, axes[m]))
        for (i, step), (_, rate) in zip(by_step, by_rate):
            by_position[i][m], coriolis[i][m] = step, rate
        for read in _torque_maps(arm, motions, qd, outer, m):
            by_position[m][read.i] = read.position(axes[read.i])
            coriolis[m][read.i] = read.velocity(axes[read.i])
        add_wrench(wrenches, row.parent, carried_inward(row, *inward))
    return by_position, coriolis


def _wrench_of_velocity(row: Row, outer: _OuterBody, axis: _AxisMotion) -> Wrench:
    """Return half the wrench, about o_m, that a unit rate of joint m adds."""
    zd, body = axis.rate, outer.body
    if row.prismatic:
        return [body.mass * x for x in zd], cross(body.first, zd)
    k, (px, py, _) = outer.moments.second, outer.moments.first
    force, moment = _rotated_body_wrench(body, zd)
    return (
        [force[0] - py, force[1] + px, force[2]],
        [moment[0] - k[0][2], moment[1] - k[1][2], moment[2] + k[0][0] + k[1][1]],
    )


def _wrench_of_position(row: Row, outer: _OuterBody, axis: _AxisMotion, wrench: Wrench) -> Wrench:
    """Return what a unit step of joint m adds to the wrench (force, moment) about o_m."""
    body, zdd = outer.body, axis.second_rate
    force, moment = wrench
    if row.prismatic:
        across = cross(body.first, zdd)
        return [body.mass * x for x in zdd], [
            across[0] - force[1],
            across[1] + force[0],
            across[2],
        ]
    k, p = outer.moments.second, outer.moments.first
    x, y, _ = axis.twice_rate
    of_axis = _rotated_body_wrench(body, zdd)
    of_rate = (
        cross(axis.twice_rate, p),
        [
            x * (k[1][1] + k[2][2]) - y * k[0][1],
            y * (k[0][0] + k[2][2]) - x * k[1][0],
            -(x * k[2][0]) - y * k[2][1],
        ],
    )
    of_origin = [body.mass * a for a in axis.against], cross(body.first, axis.against)
    turned = [-force[1], force[0], 0.0], [-moment[1], moment[0], 0.0]
    return (
        [sum(parts, 0.0) for parts in zip(of_axis[0], of_rate[0], of_origin[0], turned[0])],
        [sum(parts, 0.0) for parts in zip(of_axis[1], of_rate[1], of_origin[1], turned[1])],
    )


def _rotated_body_wrench(body: Body, angular: Vector) -> Wrench:
    """Return the wrench of a body with this angular acceleration."""
    (exx, exy, exz), (_, eyy, eyz), (_, _, ezz) = body.second
    x, y, z = angular
    return cross(angular, body.first), [
        x * (eyy + ezz) - y * exy - z * exz,
        y * (exx + ezz) - x * exy - z * eyz,
        z * (exx + eyy) - x * exz - y * eyz,
    ]


def _torques_of_wrench(
    rows: Sequence[Row], m: int, wrench: Wrench
) -> Iterator[tuple[int, Scalar]]:
    """Yield the torques of the joints from m to the base due to a wrench about o_m."""
    for i in moving(rows, m):
        force, moment = wrench
        yield i, (force if rows[i].prismatic else moment)[2]
        wrench = carried_inward(rows[i], force, moment)


@dataclass(frozen=True)
class _TorqueMap:
    """
    What turns the motion of joint i's axis into joint m's torque, i < m, in frame i.

    Attributes
    ----------
    i : int
    prismatic : bool
        Of joint i.
    force, moment : 3 scalars
        Of joint m's unit acceleration.
    gathered : 3 scalars
        The moment that a rate of the axis does work on.
    """

    i: int
    prismatic: bool
    force: Vector
    moment: Vector
    gathered: Vector

    def velocity(self, axis: _AxisMotion) -> Scalar:
        """Return half the derivative by joint i's velocity."""
        if self.prismatic:
            return dot(self.force, axis.rate)
        return dot(self.moment, axis.rate) + self.gathered[2]

    def position(self, axis: _AxisMotion) -> Scalar:
        """Return the derivative by joint i's position."""
        if self.prismatic:
            return dot(self.force, axis.second_rate)
        of_axis = dot(self.moment, axis.second_rate) + dot(self.force, axis.against)
        return of_axis + dot(self.gathered, axis.twice_rate)


def _torque_maps(
    arm: SymbolicArm,
    motions: Sequence[BodyMotion],
    qd: Sequence[Scalar],
    outer: _OuterBody,
    m: int,
) -> Iterator[_TorqueMap]:
    """Yield the maps to joint m's torque of the joints before it, from the next to the first."""
    rows, k, p = arm.rows, outer.moments.second, outer.moments.first
    force, moment = unit_wrench(rows[m], outer.body)
    gathered: Vector = (
        [p[1], -p[0], 0.0] if rows[m].prismatic else [-k[2][0], -k[2][1], k[0][0] + k[1][1]]
    )
    for j, i in pairwise(arm.moving(m)):
        row = rows[j]
        gathered = plus(gathered, cross(_along_d(row, motions[j].w, qd[j]), force))
        gathered = rotated_back_xy(row, rotated_z((row.theta[0], -row.theta[1]), gathered))
        force, moment = carried_inward(row, force, moment)
        gathered = plus(gathered, cross(cross(motions[i].w, constant_step(row)), force))
        yield _TorqueMap(i, rows[i].prismatic, force, moment, gathered)
