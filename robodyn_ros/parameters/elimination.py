# SPDX-License-Identifier: Apache-2.0
"""
Which parameters of each link can be eliminated, in closed form, from the table's constants.

A body fixed to link j that changes neither energy when joint j moves may as well be fixed to link
j - 1, and only such a body may: with joint j held, link j is one body with link j - 1, which in a
tree is the one before it. So link by link, from n to 1, the parameters that disappear are as many
as there are such bodies (Gautier and Khalil 1988, eqs. 13-15 and Theorem 2). With the recursions
(17), (19), body X is one when X times each of

    the f_j that the joint's own rate brings,   the derivative of lambda_j DE_(j-1) and
                                                lambda_j DU_(j-1) by q_j

vanishes at every configuration. Far enough from the base, where DE_(j-1) takes every direction,
these are the bodies of Theorems 5 and 6. Nearer to the base (step a, step c) there are more; the
directions that DE, DU and the twists can take there are propagated as subspaces, without samples:
over one joint's whole motion, a vector spans with its images under the joint's generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.table import DHTable
from robodyn_ros.parameters.energy import energy_form, joint_axis, moved_twist, recursion_matrix
from robodyn_ros.spatial import FloatArray, rotation_z, transform

# What is kept first, where there is a choice; the last element is the joint's rotor inertia. For
# a revolute joint this eliminates YY, mZ, m and for a prismatic one the tensor, as the paper does.
_KEPT_FIRST = {
    False: ('ZZ', 'mX', 'mY', 'XY', 'XZ', 'YZ', 'XX', 'YY', 'mZ', 'm', 'Ia'),
    True: ('m', 'mX', 'mY', 'mZ', 'ZZ', 'XX', 'YY', 'XY', 'XZ', 'YZ', 'Ia'),
}
_ORDER = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'mX', 'mY', 'mZ', 'm', 'Ia')
_LENGTH_POWERS = np.array([2, 2, 2, 2, 2, 2, 1, 1, 1, 0])
# A preferred parameter is skipped where keeping it would need factors larger than this.
_LARGEST_FACTOR = 10.0


@dataclass(frozen=True, eq=False)
class Elimination:
    """
    What one link gives up.

    Attributes
    ----------
    eliminated : tuple of int
        Indices into XX XY XZ YY YZ ZZ mX mY mZ m and, where asked for, the rotor inertia (10).
    bodies : array (len(eliminated), 10 or 11)
        For each of them, the body with that parameter 1 and the other eliminated ones 0 that may
        be taken off link j and, its rotor inertia left out, be put on link j - 1.
    general : bool
        The link is far enough from the base for Theorems 5 and 6 to say all.
    """

    eliminated: tuple[int, ...]
    bodies: FloatArray
    general: bool


def eliminations(
    dh: DHTable, gravity: FloatArray, *, tolerance: float, rotor_inertia: bool = False
) -> list[Elimination]:
    """
    Return, for the links 1 to n, what each gives up to the one before.

    Parameters
    ----------
    dh : DHTable
        Modified.
    gravity : array, shape (3,) [m/s²]
        In the base link's axes; only its direction matters, and whether there is any.
    tolerance : float
        A direction that reaches less than this, with lengths in units of the largest one in the
        table, counts as not reached.
    rotor_inertia : bool
        Each link has its joint's rotor inertia as an eleventh parameter.
    """
    lengths = np.concatenate([dh.a, dh.b, dh.d[~dh.prismatic]])
    unit = float(np.abs(lengths).max()) or 1.0
    in_frame_0 = dh.base_transform[:3, :3].T @ gravity
    strength = float(np.linalg.norm(gravity))
    twists = np.zeros((0, 6))
    forms = np.zeros((0, 10))
    if strength > 0:
        forms = np.concatenate([np.zeros(6), -in_frame_0 / strength, [0.0]])[None]
    result = []
    links = [(twists, forms)] * (dh.n + 1)  # the last one, of index -1, is the base
    for j, (parent, prismatic) in enumerate(zip(dh.parents, dh.prismatic, strict=True)):
        twists, forms = links[j] = links[parent]
        if len(forms) == 10:
            result.append(_general_elimination(bool(prismatic), rotor_inertia))
            continue
        motion = _joint_motion(bool(prismatic))
        step = link_transform(dh, j, unit)
        # Everything that link j does while joint j stands at any position.
        twists = _orbit(moved_twist(step, twists), motion.twist_orbit, tolerance)
        forms = _orbit(forms @ recursion_matrix(step).T, motion.form_orbit, tolerance)
        own = energy_form(motion.axis, motion.axis)[None]
        coupled = energy_form(motion.axis, twists)
        constraints = np.concatenate([own, coupled, forms @ motion.form_slope.T])
        if rotor_inertia:
            constraints = np.column_stack([constraints, np.arange(len(constraints)) == 0])
        result.append(_elimination(constraints, bool(prismatic), unit, tolerance))
        # And with the joint's rate.
        twists = _spanning(np.concatenate([twists, motion.axis[None]]), tolerance)
        forms = _spanning(np.concatenate([forms, own, coupled]), tolerance)
        links[j] = twists, forms
    return result


def link_transform(dh: DHTable, j: int, unit: float = 1.0) -> FloatArray:
    """Return frame j in the one before, with joint j where theta (or d, if prismatic) is zero."""
    fixed = transform(dh.constant_rotations[j], dh.constant_steps[j] / unit)
    if dh.prismatic[j]:
        return fixed @ transform(rotation_z(dh.theta[j]))
    return fixed @ transform(translation=(0.0, 0.0, dh.d[j] / unit))


def _general_elimination(prismatic: bool, rotor_inertia: bool) -> Elimination:
    """Return what Theorem 5 or 6 says: YY, mZ, m with YY taken off XX, or the whole tensor."""
    eliminated = (0, 1, 2, 3, 4, 5) if prismatic else (3, 8, 9)
    bodies = np.eye(10 + rotor_inertia)[list(eliminated)]
    if not prismatic:
        bodies[0, 0] = 1.0
    return Elimination(eliminated, bodies, True)


def _elimination(
    constraints: NDArray, prismatic: bool, unit: float, tolerance: float
) -> Elimination:
    width = constraints.shape[1]
    order = [_ORDER.index(name) for name in _KEPT_FIRST[prismatic] if _ORDER.index(name) < width]
    rows, kept = _echelon(constraints, tolerance, order)
    rows = np.linalg.solve(rows[:, kept], rows) if kept else rows
    eliminated = tuple(k for k in range(width) if k not in kept)
    bodies = np.zeros((len(eliminated), width))
    bodies[range(len(eliminated)), eliminated] = 1.0
    bodies[:, kept] = -rows[:, eliminated].T
    powers = np.append(_LENGTH_POWERS, 0 if prismatic else 2)[:width]
    bodies *= unit ** (powers - powers[list(eliminated), None]).astype(float)
    return Elimination(eliminated, bodies, False)


def _echelon(rows: NDArray, tolerance: float, order: Sequence[int]) -> tuple[NDArray, list[int]]:
    """
    Return independent rows that span what ``rows`` span, and the column each one leads in.

    The first column in ``order`` that is not small against the largest entry left leads next. Rows
    keep their size, zeros stay exact zeros, and what is left below ``tolerance`` is dropped.
    """
    rest = rows[np.abs(rows).max(axis=1) > tolerance]
    leading: list[int] = []
    for rank in range(min(rest.shape)):
        size = np.abs(rest[rank:]).max(axis=0, initial=0.0)
        if size.max() <= tolerance:
            break
        column = next(k for k in order if size[k] * _LARGEST_FACTOR >= size.max())
        row = rank + int(np.abs(rest[rank:, column]).argmax())
        rest[[rank, row]] = rest[[row, rank]]
        below = rest[rank + 1 :]
        below -= (below[:, column] / rest[rank, column])[:, None] * rest[rank]
        below[:, column] = 0.0
        leading.append(column)
    return rest[: len(leading)], leading


def _spanning(rows: NDArray, tolerance: float) -> NDArray:
    return _echelon(rows, tolerance, range(rows.shape[1]))[0]


def _orbit(rows: NDArray, parts: NDArray, tolerance: float) -> NDArray:
    """Return rows that span what the given ones become over all positions of a joint."""
    return _spanning(np.concatenate(list(rows @ parts)), tolerance)


@dataclass(frozen=True, eq=False)
class _JointMotion:
    """
    What a joint does to twists and energy forms of its link, at whatever position.

    ``axis`` (6,) is its unit twist and ``form_slope`` (10, 10) the derivative G of lambda_j by
    q_j at zero: lambda_j = exp(q G) lambda_j(0). The orbits (k, m, m) map a row vector to k
    vectors that span with what exp(q G) makes of it.
    """

    axis: FloatArray
    twist_orbit: FloatArray
    form_orbit: FloatArray
    form_slope: FloatArray


@cache
def _joint_motion(prismatic: bool) -> _JointMotion:
    form_slope = _slope(recursion_matrix, prismatic)
    twist_slope = _slope(lambda t: moved_twist(t, np.eye(6)).T, prismatic)
    return _JointMotion(
        joint_axis(prismatic),
        _orbit_parts(twist_slope, prismatic),
        _orbit_parts(form_slope, prismatic),
        form_slope,
    )


def _slope(matrix_of: Callable[[NDArray], NDArray], prismatic: bool) -> FloatArray:
    """
    Return the derivative by q_j, at zero, of a matrix that is quadratic in joint j's transform.

    The central difference of a quadratic function is exact.
    """
    step = np.zeros((4, 4))
    if prismatic:
        step[2, 3] = 1.0
    else:
        step[0, 1], step[1, 0] = -1.0, 1.0
    return (matrix_of(np.eye(4) + step) - matrix_of(np.eye(4) - step)) / 2


def _orbit_parts(slope: NDArray, prismatic: bool) -> FloatArray:
    """
    Return the matrices (k, m, m) that take a row vector to its orbit's spanning vectors.

    A translation's orbit is a polynomial of degree 2. A rotation's splits into its harmonics 0, 1
    and 2, projected apart so that no small one is lost in a large one by cancellation.
    """
    g = slope.T
    square = g @ g
    one = np.eye(len(g))
    if prismatic:
        return np.stack([one, g, square])
    first = square @ (square + 4 * one) / -3
    second = square @ (square + one) / 12
    return np.stack([one - first - second, first, first @ g, second, second @ g / 2])
