# SPDX-License-Identifier: Apache-2.0
"""
Joint axes -> DH table, exactly; modified (Khalil and Kleinfinger; Craig) and standard.

Row i of the modified table takes frame i - 1 to frame i:

    Rot(x, alpha) Trans(x, a) Rot(y, beta) Rot(z, theta) Trans(z, d)

Frame i moves with joint i, z_i points along its axis, and the joint variable is added to theta
(revolute) or d (prismatic) with the sign +1. In a tree frame i - 1 is that of the body before, and
the row of a second child of it begins with Rot(z, gamma) Trans(z, b), as x of that frame points to
the first child's axis (Khalil and Kleinfinger 1986). The angle beta (Hayati and Mirmirani 1985) is
zero, save where two axes are nearly parallel or their common normal lies far away: there the
normal would ruin the conditioning of everything that is computed from the table.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.dh.table import DHTable, constant_transform
from robodyn_ros.spatial import (
    FloatArray,
    inverse_transform,
    rotation_z,
    rotation_z_onto,
    transform,
)

_PARALLEL_SINE = 1e-12
_NEARLY_PARALLEL_SINE = 0.05
_CLEAN_UP = 1e-12
# A foot of the common normal may lie so many arm lengths from its joint's origin; further, and
# beta takes over. As a foot is never further than |distance| / sine, this keeps beta away from
# axes at more than about 42 degrees.
_FARTHEST_FOOT = 1.5
_SHORTEST_ARM = 0.1
# theta within this of +-pi/2 counts as pi/2 when the direction of a common normal is chosen.
_TIE = 1e-9


def dh_table(
    joint_frames: ArrayLike,
    axes: ArrayLike,
    prismatic: ArrayLike,
    tip_frame: ArrayLike,
    parents: ArrayLike = (),
    tips: ArrayLike = (),
) -> DHTable:
    """
    Return the modified DH table of a chain or a tree of joint axes.

    Parameters
    ----------
    joint_frames : array-like, shape (n, 4, 4)
        Frame of each joint at position zero, in the base link's frame: a point of its axis, and
        the directions that x of the first and of a lone frame are taken from.
    axes : array-like, shape (n, 3)
        Unit vector along each axis, in its joint frame.
    prismatic : array-like, shape (n,) of bool
    tip_frame : array-like, shape (4, 4) or (k, 4, 4)
        The tip link's frame, or each one's, at position zero, in the base link's frame.
    parents : array-like, shape (n,) of int, optional
        The joint before each one, -1: the base; depth first. Those of a chain where not given.
    tips : array-like, shape (k,) of int, optional
        The joint that moves each tip link; the last one where not given.

    Notes
    -----
    The table starts with a zero row: frame 0 is frame 1 at position zero. Each branch ends with
    theta = d = 0. A common normal may point either way; it is taken so that |theta| <= pi/2, so
    that position zero looks like zero. Each row is composed from the frame that the rows before,
    as rounded, give; the tip transform closes the chain.
    """
    frames = np.asarray(joint_frames, dtype=float)
    axes_in_joints = np.asarray(axes, dtype=float)
    directions = np.einsum('nij,nj->ni', frames[:, :3, :3], axes_in_joints)
    origins = frames[:, :3, 3]
    is_prismatic = np.array(prismatic, dtype=bool)
    n = len(frames)
    alpha, a, beta, theta, d, gamma, b = np.zeros((7, n))
    rows = (alpha, a, beta, theta, d)
    tree = DHTable(
        *rows,
        is_prismatic,
        np.eye(4),
        np.asarray(tip_frame, dtype=float),
        parents=np.array(parents, dtype=int),
        tips=np.array(tips, dtype=int),
    )
    # What is before a second child of the base is frame 0, which is frame 1 at position zero.
    before = np.maximum(tree.parents, 0)
    steps = np.linalg.norm(origins - origins[before], axis=1)
    arm_length = max(_SHORTEST_ARM, float((tree.carries @ steps).max()))
    base = transform(frames[0, :3, :3] @ rotation_z_onto(axes_in_joints[0]), origins[0])
    placed = np.zeros((n, 4, 4))
    for branch in tree.branches:
        first, last = branch[0], branch[-1]
        # `frame` has its z on axis i; rotated by theta_i and displaced by d_i it becomes frame i.
        frame = base
        if first > 0:
            k = before[first]
            frame = base if tree.parents[first] < 0 else placed[k]
            gamma[first], b[first], alpha[first], a[first], beta[first] = _row_to_next_axis(
                frame, origins[k], origins[first], directions[first], arm_length
            )
            frame = (
                frame
                @ transform(rotation_z(gamma[first]), (0, 0, b[first]))
                @ constant_transform(alpha[first], a[first], beta[first])
            )
        for i in branch[:-1]:
            theta[i], d[i], alpha[i + 1], a[i + 1], beta[i + 1] = _row_to_next_axis(
                frame, origins[i], origins[i + 1], directions[i + 1], arm_length
            )
            frame = (
                frame
                @ transform(rotation_z(theta[i]), (0, 0, d[i]))
                @ constant_transform(alpha[i + 1], a[i + 1], beta[i + 1])
            )
        _give_offsets_to_prismatic_neighbours(branch, alpha, beta, d, is_prismatic)
        if first == 0:
            base = base @ transform(rotation_z(theta[0]), (0, 0, d[0]))
            theta[0] = d[0] = 0.0
        theta[last] = d[last] = 0.0
        for i in branch:
            frame = base if tree.parents[i] < 0 else placed[tree.parents[i]]
            frame = frame @ transform(rotation_z(gamma[i]), (0, 0, b[i]))
            frame = frame @ constant_transform(alpha[i], a[i], beta[i])
            placed[i] = frame @ transform(rotation_z(theta[i]), (0, 0, d[i]))
    tip_transforms = inverse_transform(placed[tree.tips]) @ tree.tip_transforms
    return DHTable(
        *rows,
        is_prismatic,
        base,
        tip_transforms if len(tree.tips) > 1 else tip_transforms[0],
        parents=tree.parents,
        gamma=gamma,
        b=b,
        tips=tree.tips,
    )


def _row_to_next_axis(
    frame: FloatArray,
    origin: FloatArray,
    next_origin: FloatArray,
    next_direction: FloatArray,
    arm_length: float,
) -> tuple[float, float, float, float, float]:
    """
    Return theta_i, d_i, alpha_(i+1), a_(i+1), beta_(i+1) that lead from axis i to axis i + 1.

    ``frame`` (4, 4) has its z on axis i; ``origin`` and ``next_origin`` are the origins of the two
    joints, all in the base link's frame.
    """
    # In `frame`: direction and a point of axis i + 1, and where along z joint i's origin lies.
    u = frame[:3, :3].T @ next_direction
    w = frame[:3, :3].T @ (next_origin - frame[:3, 3])
    own_z = float(frame[:3, 2] @ (origin - frame[:3, 3]))
    sine = math.hypot(u[0], u[1])
    if sine < _PARALLEL_SINE:
        return _parallel_row(u, w, 0.0 if abs(own_z) <= arm_length else own_z)
    # Feet of the common normal: on axis i, and on axis i + 1 from the next joint's origin.
    next_foot = -float(w[:2] @ u[:2]) / sine**2
    foot = float(w[2] + next_foot * u[2])
    farthest = _FARTHEST_FOOT * arm_length
    if sine >= _NEARLY_PARALLEL_SINE and max(abs(foot - own_z), abs(next_foot)) <= farthest:
        return _common_normal_row(u, w, foot)
    stays_near = max(abs(own_z), abs(w[2] / u[2])) <= arm_length
    return _beta_row(u, w, 0.0 if stays_near else own_z)


def _parallel_row(
    u: FloatArray, w: FloatArray, d: float
) -> tuple[float, float, float, float, float]:
    theta, a, _ = _normal(math.atan2(w[1], w[0]), math.hypot(w[0], w[1]))
    return theta if a else 0.0, _clean_length(d), 0.0 if u[2] > 0 else math.pi, a, 0.0


def _common_normal_row(
    u: FloatArray, w: FloatArray, foot: float
) -> tuple[float, float, float, float, float]:
    """Return the row whose x lies along z x u."""
    sine = math.hypot(u[0], u[1])
    theta, a, turned_round = _normal(math.atan2(u[0], -u[1]), (w[1] * u[0] - w[0] * u[1]) / sine)
    alpha = math.atan2(-sine if turned_round else sine, u[2])
    return theta, _clean_length(foot), _clean_angle(alpha), a, 0.0


def _beta_row(u: FloatArray, w: FloatArray, d: float) -> tuple[float, float, float, float, float]:
    """Return the row whose x points to P, where axis i + 1 meets the plane at d across z."""
    along = (d - w[2]) / u[2]
    px, py = float(w[0] + along * u[0]), float(w[1] + along * u[1])
    a = _clean_length(math.hypot(px, py))
    if a == 0.0:
        return _common_normal_row(u, np.zeros(3), d)
    theta = _clean_angle(math.atan2(py, px))
    ux, uy, uz = rotation_z(theta).T @ u
    alpha = _clean_angle(math.atan2(-uy, uz))
    beta = _clean_angle(math.atan2(ux, math.hypot(uy, uz)))
    return theta, _clean_length(d), alpha, a, beta


def _normal(theta: float, a: float) -> tuple[float, float, bool]:
    """Return theta and a of a common normal, turned round if that brings theta near zero."""
    theta, a = _clean_angle(theta), _clean_length(a)
    if abs(abs(theta) - math.pi / 2) < _TIE:
        flipped = a < 0
    else:
        flipped = abs(theta) > math.pi / 2
    if not flipped:
        return theta, a, False
    return _clean_angle(theta - math.copysign(math.pi, theta)), 0.0 - a, True


def _clean_angle(angle: float) -> float:
    """Return the multiple of pi/2 that the angle is within rounding of, else the angle."""
    nearest = round(angle / (math.pi / 2)) * (math.pi / 2)
    return nearest if abs(angle - nearest) < _CLEAN_UP else angle


def _clean_length(length: float) -> float:
    return 0.0 if abs(length) < _CLEAN_UP else length


def _give_offsets_to_prismatic_neighbours(
    branch: range,
    alpha: FloatArray,
    beta: FloatArray,
    d: FloatArray,
    prismatic: NDArray[np.bool_],
) -> None:
    """Move d of a revolute joint into that of a prismatic one whose axis is parallel to it."""
    for i in branch[1:]:
        if beta[i] != 0.0 or alpha[i] not in (0.0, math.pi) or prismatic[i - 1] == prismatic[i]:
            continue
        revolute, sliding = (i, i - 1) if prismatic[i - 1] else (i - 1, i)
        d[sliding] += math.cos(alpha[i]) * d[revolute]
        d[revolute] = 0.0
