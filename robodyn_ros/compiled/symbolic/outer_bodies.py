# SPDX-License-Identifier: Apache-2.0
"""The links beyond a joint as one body, with the moments of its points' velocities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from robodyn_ros.compiled.symbolic.arm import Body, Matrix, PlaneRotation, Row, SymbolicArm, Vector
from robodyn_ros.compiled.symbolic.expression import Scalar
from robodyn_ros.compiled.symbolic.matrices import cross, rotated_back, rotated_back_pair
from robodyn_ros.compiled.symbolic.newton_euler import Motion
from robodyn_ros.compiled.symbolic.rigid_body import body_carried_inward, shifted, together


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
        columns = [cross(w, list(column)) for column in zip(*body.second)]
        return cls([list(row) for row in zip(*columns)], cross(w, body.first))

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

    def rotated_back(self, i: int, k: int, rotation: PlaneRotation) -> VelocityMoments:
        """Return those in the axes before a rotation in the plane of axes i and k."""
        first = list(self.first)
        first[i], first[k] = rotated_back_pair(rotation, first[i], first[k])
        return VelocityMoments(rotated_back(self.second, i, k, rotation), first)


@dataclass(frozen=True)
class OuterBody:
    """
    Links j to n as one body, about the origin of frame j.

    Attributes
    ----------
    body : Body
    moments : VelocityMoments
    """

    body: Body
    moments: VelocityMoments


def outer_bodies(
    arm: SymbolicArm, motions: Sequence[Motion], qd: Sequence[Scalar]
) -> Iterator[OuterBody]:
    """Give links j to n as one body, for j from n to 1, each computed when it is asked for."""
    last: OuterBody | None = None
    for j in range(arm.n - 1, -1, -1):
        arm.rows[j].begin(f'the body behind joint {j + 1} and its velocities')
        body, w = arm.bodies[j], motions[j].w
        moments = VelocityMoments.of_rotation(body, w)
        if last is not None:
            row = arm.rows[j + 1]
            moved = _moments_carried_inward(row, last, motions[j + 1].w, w, qd[j + 1])
            moments = moments.plus(moved)
            body = together(body, body_carried_inward(row, last.body))
        last = OuterBody(body, moments)
        yield last


def _moments_carried_inward(
    row: Row, outer: OuterBody, w: Vector, w_before: Vector, qd: Scalar
) -> VelocityMoments:
    """Return moments about the origin of frame i - 1, in its axes, from frame i."""
    body, moments = shifted(outer.body, 2, row.d), outer.moments
    moments = moments.shifted(body, 2, row.d, along_d(row, w, qd))
    moments = moments.rotated_back(0, 1, row.theta)
    moments = moments.rotated_back(2, 0, row.beta)
    moments = moments.rotated_back(1, 2, row.alpha)
    return moments.shifted(body_carried_inward(row, outer.body), 0, row.a, along_a(row, w_before))


def along_d(row: Row, w: Vector, qd: Scalar) -> Vector:
    """Return the velocity of the origin of frame i from the foot of its axis, in frame i."""
    return [row.d * w[1], -(row.d * w[0]), qd if row.prismatic else 0.0]


def along_a(row: Row, w_before: Vector) -> Vector:
    """Return the velocity of that foot from the origin of frame i - 1, in frame i - 1."""
    return [0.0, row.a * w_before[2], -(row.a * w_before[1])]
