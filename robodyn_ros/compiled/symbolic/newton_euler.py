# SPDX-License-Identifier: Apache-2.0
"""
The customised Newton-Euler recursion on regrouped parameters, for straight-line code.

Gautier and Khalil 1988, section 11, after Khalil and Kleinfinger 1987. It differs from the
recursion of ``robodyn_ros.dynamics.newton_euler`` in what it shares and in what it leaves out:

- Rotations act as two plane rotations each, by alpha and by theta, and offsets a and d along the
  axes between them.
- The matrix U = S(wd) + S(w) S(w) serves the acceleration of the next origin, the force of the
  first moment and, as the tensor is given in second moments, the moment as well.
- U z is the same for both links that share the axis z: the offset d costs one multiple of it, and
  where alpha is a multiple of pi/2 it is rotated from link to link in place of the angular
  acceleration. wx^2 + wy^2 is shared in the same way.
- Behind a link that turns about one direction, w and U z have few components before the first of
  several parallel axes: every link of such a row takes them from there, by the sum of the angles,
  and gives its moment back there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robodyn_ros.compiled.symbolic.arm import Body, PlaneRotation, Row, SymbolicArm, Vector
from robodyn_ros.compiled.symbolic.expression import Scalar
from robodyn_ros.compiled.symbolic.matrices import cross, dot, plus

Wrench = tuple[Vector, Vector]  # force and moment
_AXES: list[Vector] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@dataclass(frozen=True)
class BodyMotion:
    """
    How a link moves, in its own axes.

    Attributes
    ----------
    w, wd : 3 scalars
        Angular velocity and acceleration [rad/s, rad/s²].
    squares : 3 scalars
        Those of the components of w.
    u : (3, 3) scalars
        S(wd) + S(w) S(w), without its diagonal's sign: u[k][k] is minus that entry.
    vd : 3 scalars
        Acceleration of the frame's origin less gravity [m/s²].
    before : (w, U z) or None
        Before the first of a row of parallel axes, where they have few components.
    """

    w: Vector
    wd: Vector
    squares: Vector
    u: list[Vector]
    vd: Vector
    before: tuple[Vector, Vector] | None = None


def joint_torques(
    arm: SymbolicArm,
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    tip_force: Sequence[Scalar] = (0.0, 0.0, 0.0),
    tip_moment: Sequence[Scalar] = (0.0, 0.0, 0.0),
) -> Vector:
    """
    Return the joint torques [N m or N], rotors included.

    Parameters
    ----------
    arm : SymbolicArm
        At some q.
    qd, qdd : sequences of n scalars
        Joint velocities and accelerations; zeros fold away.
    tip_force, tip_moment : sequences of 3 scalars
        What the last link exerts on the world, about the origin of frame n, in its axes [N, N m].
    """
    motions = link_motions(arm, qd, qdd)
    torques: Vector = [0.0] * arm.n
    wrenches = no_wrenches(arm)
    wrenches[arm.n - 1] = list(tip_force), list(tip_moment)
    far: Vector = [0.0, 0.0]
    for j in range(arm.n - 1, -1, -1):
        f, n = wrenches[j]
        arm.rows[j].begin(f'joint {j + 1}: the wrench that moves all behind it')
        rotor = arm.rotor_inertia[j]
        is_alone = _turns_by_itself(arm, j)
        force, moment = inertial_wrench(arm.bodies[j], motions[j], rotor if is_alone else 0.0)
        f = [x + y for x, y in zip(force, f)]
        n = [x + y for x, y in zip(moment, n)]
        row = arm.rows[j]
        torques[j] = (f if row.prismatic else n)[2] + (0.0 if is_alone else rotor * qdd[j])
        if row.total is not None and motions[j].before is not None:
            # The moment across the axis goes to the first of the parallel axes at once.
            x, y = n[0] - row.d * f[1], n[1] + row.d * f[0]
            far = [a + b for a, b in zip(_plane(_back(row.total), x, y), far)]
            n = [row.d * f[1], -row.d * f[0], n[2]]
            add_wrench(wrenches, row.parent, carried_inward(row, f, n))
        else:
            add_wrench(wrenches, row.parent, carried_inward(row, f, n, far))
            far = [0.0, 0.0]
    for (i, j), inertia in arm.coupled_rotors.items():
        torques[i] = torques[i] + inertia * qdd[j]
        torques[j] = torques[j] + inertia * qdd[i]
    return torques


def _turns_by_itself(arm: SymbolicArm, j: int) -> bool:
    """
    Return whether nothing but joint j turns link j about its axis, or asks for its moment there.

    Its rotor turns as the link does, then: the two inertias are one. So it is at joint 1, and at
    joint 2 across it.
    """
    second = arm.rows[j]
    if second.parent < 0:
        return not second.prismatic
    first = arm.rows[second.parent]
    across = second.right_angled and second.alpha[0] == 0
    return first.parent < 0 and across and not (first.prismatic or second.prismatic)


def no_wrenches(arm: SymbolicArm) -> list[Wrench]:
    """Return no force and no moment for each link, and for the base as the last one."""
    return [([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]) for _ in range(arm.n + 1)]


def add_wrench(wrenches: list[Wrench], j: int, wrench: Wrench) -> None:
    """Add a wrench to that on link j; -1: the base."""
    f, n = wrenches[j]
    wrenches[j] = [x + y for x, y in zip(wrench[0], f)], [x + y for x, y in zip(wrench[1], n)]


def link_motions(
    arm: SymbolicArm, qd: Sequence[Scalar], qdd: Sequence[Scalar]
) -> list[BodyMotion]:
    """Return the motion of each link, base to tip."""
    zero: Vector = [0.0, 0.0, 0.0]
    base = BodyMotion(zero, zero, zero, [zero, zero, zero], arm.base_acceleration)
    motions: list[BodyMotion] = []
    for j, (row, velocity, acceleration) in enumerate(zip(arm.rows, qd, qdd)):
        row.begin(f'link {j + 1}: how it moves')
        before = base if row.parent < 0 else motions[row.parent]
        motions.append(_next_motion(row, before, velocity, acceleration))
    return motions


def _next_motion(row: Row, before: BodyMotion, qd: Scalar, qdd: Scalar) -> BodyMotion:
    u_rows = ([_signed(before.u, k, i) for i in range(3)] for k in range(3))
    vd = [x + dot(constant_step(row), u_row) for x, u_row in zip(before.vd, u_rows)]
    vd = rotated_z(row.theta, rotated_xy(row, vd))
    w = rotated_xy(row, before.w)
    column = _column_before(row, before)
    first: tuple[Vector, Vector] | None = (w, column)
    if row.total is not None and before.before is not None:
        first = before.before
        w = [*_plane(row.total, *first[0][:2]), w[2]]
        column = [*_plane(row.total, *first[1][:2]), column[2]]
    else:
        if row.prismatic or 0 not in w[:2] or not row.right_angled:
            first = None
        w, column = rotated_z(row.theta, w), rotated_z(row.theta, column)
    if not row.prismatic:
        w = [w[0], w[1], w[2] + qd]
    if row.right_angled and row.prismatic and 0 in row.theta:
        wd, squares, u = _permuted(row, before)
    elif row.right_angled:
        wd, squares, u = _shared_products(row, before, w, column, qdd)
    else:
        wd, squares, u = _own_products(row, before, w, qd, qdd)
    vd = [vd[k] + row.d * _signed(u, k, 2) for k in range(3)]
    if row.prismatic:
        twice = 2.0 * qd
        vd = [vd[0] + twice * w[1], vd[1] - twice * w[0], vd[2] + qdd]
    return BodyMotion(w, wd, squares, u, vd, first)


def _own_products(
    row: Row, before: BodyMotion, w: Vector, qd: Scalar, qdd: Scalar
) -> tuple[Vector, Vector, list[Vector]]:
    """Return wd, squares and U of a link from the angular acceleration before."""
    wd = rotated_z(row.theta, rotated_xy(row, before.wd))
    if not row.prismatic:
        wd = [wd[0] + w[1] * qd, wd[1] - w[0] * qd, wd[2] + qdd]
    squares = [x * x for x in w]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    u = [
        [squares[1] + squares[2], xy - wd[2], xz + wd[1]],
        [xy + wd[2], squares[0] + squares[2], yz - wd[0]],
        [xz - wd[1], yz + wd[0], squares[0] + squares[1]],
    ]
    return wd, squares, u


def _column_before(row: Row, before: BodyMotion) -> Vector:
    """Return U z in the frame that alpha alone has rotated: a column of U before, permuted."""
    if not row.right_angled:
        return [0.0, 0.0, 0.0]
    c, s = row.alpha
    column = [c * _signed(before.u, k, 2) - s * _signed(before.u, k, 1) for k in range(3)]
    return rotated_x(row.alpha, column)


def _shared_products(
    row: Row, before: BodyMotion, w: Vector, column: Vector, qdd: Scalar
) -> tuple[Vector, Vector, list[Vector]]:
    """Return wd, squares and U of a link from U z, where alpha is a multiple of pi/2."""
    wd_z = rotated_x(row.alpha, before.wd)[2]
    if not row.prismatic:
        wd_z = wd_z + qdd
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    wd = [yz - column[1], column[0] - xz, wd_z]
    xx, zz = w[0] * w[0], w[2] * w[2]
    yy = -column[2] - xx
    u = [
        [yy + zz, xy - wd_z, column[0]],
        [xy + wd_z, xx + zz, column[1]],
        [xz - wd[1], 2.0 * yz - column[1], -column[2]],
    ]
    return wd, [xx, yy, zz], u


def _permuted(row: Row, before: BodyMotion) -> tuple[Vector, Vector, list[Vector]]:
    """Return wd, squares and U of a link behind a prismatic joint, its axes along those before."""
    axes = [rotated_z(row.theta, rotated_x(row.alpha, e)) for e in _AXES]

    def rotated(v: Vector) -> Vector:
        return [sum((axes[i][k] * v[i] for i in range(3)), 0.0) for k in range(3)]

    rows = [rotated([_signed(before.u, i, j) for j in range(3)]) for i in range(3)]
    columns = [rotated([rows[i][k] for i in range(3)]) for k in range(3)]
    u = [[columns[k][i] if i != k else -columns[i][i] for k in range(3)] for i in range(3)]
    squares = [sum((axes[i][k] ** 2 * before.squares[i] for i in range(3)), 0.0) for k in range(3)]
    return rotated(before.wd), squares, u


def inertial_wrench(body: Body, motion: BodyMotion, axial: Scalar = 0.0) -> Wrench:
    """
    Return force and moment that move a link, about its frame's origin.

    An axial inertia is one that turns about z with the link and resists nothing else.

    With second moments E the moment is the vector of U E, as U E is the integral of the
    acceleration times the position.
    """
    (exx, exy, exz), (_, eyy, eyz), (_, _, ezz) = body.second
    u, (xx, yy, zz), vd = motion.u, motion.squares, motion.vd
    moment = [
        exy * u[2][0] + eyy * u[2][1] + eyz * (zz - yy) - exz * u[1][0] - ezz * u[1][2],
        exz * (xx - zz) + eyz * u[0][1] + ezz * u[0][2] - exx * u[2][0] - exy * u[2][1],
        exx * u[1][0]
        + exy * (yy - xx)
        + exz * u[1][2]
        - eyy * u[0][1]
        - eyz * u[0][2]
        + axial * motion.wd[2],
    ]
    if all(isinstance(x, float) and x == 0.0 for x in (exy, exz, eyz)):
        # A diagonal tensor has no other use for u[1][0] and u[0][1].
        w, wd = motion.w, motion.wd
        moment[2] = (exx + eyy + axial) * wd[2] + (exx - eyy) * (w[0] * w[1])
    x, y, z = body.first
    levers = [y * vd[2] - z * vd[1], z * vd[0] - x * vd[2], x * vd[1] - y * vd[0]]
    force = [
        body.mass * vd[k] + (x * _signed(u, k, 0) + y * _signed(u, k, 1) + z * _signed(u, k, 2))
        for k in range(3)
    ]
    return force, [a + b for a, b in zip(moment, levers)]


def carried_inward(row: Row, f: Vector, n: Vector, far: Sequence[Scalar] = (0.0, 0.0)) -> Wrench:
    """
    Return a wrench about the origin of the frame before, in its axes, from frame i.

    ``far`` (2,) is a moment that is added before theta rotates the frame.
    """
    n = [n[0] - row.d * f[1], n[1] + row.d * f[0], n[2]]
    f = rotated_back_xy(row, rotated_z(_back(row.theta), f))
    n = rotated_z(_back(row.theta), n)
    n = rotated_back_xy(row, [n[0] + far[0], n[1] + far[1], n[2]])
    return f, plus(n, cross(constant_step(row), f))


def constant_step(row: Row) -> Vector:
    """Return the way from the frame before to the axis, by b and a, in that frame."""
    c, s = row.gamma
    return [c * row.a, s * row.a, row.b]


def _signed(u: list[Vector], row: int, column: int) -> Scalar:
    return -u[row][row] if row == column else u[row][column]


def _plane(rotation: PlaneRotation, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    c, s = rotation
    return c * a + s * b, c * b - s * a


def _back(rotation: PlaneRotation) -> PlaneRotation:
    return rotation[0], -rotation[1]


def rotated_x(rotation: PlaneRotation, v: Vector) -> Vector:
    """Return the components of a vector in a frame rotated about x."""
    y, z = _plane(rotation, v[1], v[2])
    return [v[0], y, z]


def rotated_y(rotation: PlaneRotation, v: Vector) -> Vector:
    """Return the components of a vector in a frame rotated about y."""
    z, x = _plane(rotation, v[2], v[0])
    return [x, v[1], z]


def rotated_z(rotation: PlaneRotation, v: Vector) -> Vector:
    """Return the components of a vector in a frame rotated about z."""
    x, y = _plane(rotation, v[0], v[1])
    return [x, y, v[2]]


def rotated_xy(row: Row, v: Vector) -> Vector:
    """Return the components of a vector past gamma, alpha and beta of a row."""
    return rotated_y(row.beta, rotated_x(row.alpha, rotated_z(row.gamma, v)))


def rotated_back_xy(row: Row, v: Vector) -> Vector:
    """Return the components of a vector before gamma, alpha and beta of a row."""
    before_x = rotated_x(_back(row.alpha), rotated_y(_back(row.beta), v))
    return rotated_z(_back(row.gamma), before_x)
