# SPDX-License-Identifier: Apache-2.0
"""
Inverse dynamics by Kane's equations (Angeles, Ma and Rojas 1989), in three stages.

tau = sum over links j of A_jT hd_j + B_jT m_j (cdd_j - g), eq. (37): the rates of momentum of each
link, about its centre of mass, seen through its partial angular velocities A_j and partial
velocities B_j, eqs. (31)-(36). The sums are gathered from the tip inwards, eqs. (44)-(49).
Rotations are never multiplied out: eqs. (54), (55) take a vector through a joint in 8
multiplications.

Corrected against the print: the frames here are those of modified DH, whose offset d_i is minus
the paper's b_i of eq. (8), so that a_i has the sign that stage 1 prints and a prismatic joint's
terms are added in stage 2; stage 2 needs + W_(i-1) (a_i - rho_(i-1)); (42), (43) sum from j = i;
(36) ends in rho_j; in (34) the second e_(i-1) is e_(i+1). Under (8) the force conjugate to b_i is
minus that of (35), (43), (45), which is the one along +z_i that is returned here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import cosines_and_sines
from robodyn_ros.dh.table import DHTable
from robodyn_ros.dynamics.centers_of_mass import centers_of_mass
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import cross, matrix_times

Components = tuple[Any, Any, Any]


def joint_torques(
    model: RobotModel,
    q: NDArray,
    qd: NDArray,
    qdd: NDArray,
    tip_wrench: NDArray | None = None,
) -> NDArray:
    """
    Return the joint torques (..., n) [N m or N], without rotor inertia.

    Parameters
    ----------
    model : RobotModel
    q, qd, qdd : array, shape (..., n)
        Positions, velocities, accelerations [rad or m, and per s, s²].
    tip_wrench : array, shape (6 k,) or (..., 6 k), optional
        Force [N] and moment [N m] that each tip exerts on the world, about the tip link's origin,
        in base link axes.

    Raises
    ------
    InvalidArgument
        A link has first moments but no mass.

    Notes
    -----
    Linear in n: 105 n - 109 multiplications and 90 n - 105 additions by the paper's count, (58)
    and (59). All vectors of link i are in the axes of frame i. The wrench on the tip is one more
    active force, where the print's v_(n+1), w_(n+1) are zero.
    """
    dh = model.dh
    mass, rho, inertia = centers_of_mass(model)
    z = np.array([0.0, 0.0, 1.0])
    revolute_axes = (~dh.prismatic)[:, None] * z
    prismatic_axes = dh.prismatic[:, None] * z
    qd, qdd = qd[..., None], qdd[..., None]

    # Stage 1: what of the rotations Q_i and the steps a_i (in frame i - 1) depends on q.
    joints = _Rotations(dh, q)
    offset = np.where(dh.prismatic, q + dh.d, dh.d)[..., None]
    a = offset * dh.constant_rotations[:, :, 2] + dh.constant_steps
    to_base = dh.base_transform[:3, :3]

    # Stage 2: angular velocities, W_i = wd_i x + w_i x w_i x, and pdd_i: the accelerations of the
    # centres of mass minus gravity.
    w = joints.outward((0.0, 0.0, 0.0), revolute_axes * qd)
    wd = joints.outward((0.0, 0.0, 0.0), revolute_axes * qdd + cross(w, revolute_axes * qd))
    swing = _swing(w, wd)
    later = np.flatnonzero(dh.parents >= 0)
    before = dh.parents[later]
    swung = np.zeros_like(w)
    swung[..., later, :] = matrix_times(swing[..., before, :, :], a[..., later, :] - rho[before])
    sliding = prismatic_axes * qdd + 2.0 * cross(w, prismatic_axes * qd)
    pdd = joints.outward(
        tuple(-to_base.T @ model.gravity), matrix_times(swing, rho) + sliding, swung
    )

    # Stage 3: u_i = m_i pdd_i, v_i = sum of u_j and w_i = sum of hd_j + s_ji x u_j, j = i to n.
    u = mass[:, None] * pdd
    hd = matrix_times(inertia, wd) + cross(w, matrix_times(inertia, w))
    moments = hd + cross(rho, u)
    _add_tip_wrenches(dh, joints, to_base, tip_wrench, u, moments)
    carried, total_force = joints.inward(u)
    levers = cross(a, carried)
    for i, parent in zip(later.tolist(), before.tolist()):
        moments[..., parent, :] += levers[..., i, :]
    _, total_moment = joints.inward(moments)
    return np.where(dh.prismatic, total_force[..., 2], total_moment[..., 2])


class _Rotations:
    """The rotations Q_i of frame i in frame i - 1 as angles, not as matrices."""

    def __init__(self, dh: DHTable, q: NDArray) -> None:
        self.parents = dh.parents.tolist()
        # Joints first: what is taken of one configuration is a plain number.
        self.cos, self.sin = (np.moveaxis(x, -1, 0) for x in cosines_and_sines(dh, q))
        self.constant = dh.plane_rotations.tolist()

    def to_parent(self, i: int, vector: Components) -> Components:
        """Return Q_i v, eqs. (54), (55); 4 multiplications more for beta and gamma each."""
        x, y, z = vector
        (ca, sa), (cb, sb), (cg, sg) = self.constant[i]
        c, s = self.cos[i], self.sin[i]
        x, u = c * x - s * y, s * x + c * y
        if sb:
            x, z = cb * x + sb * z, cb * z - sb * x
        y, z = ca * u - sa * z, sa * u + ca * z
        if sg or cg < 0.0:
            x, y = cg * x - sg * y, sg * x + cg * y
        return x, y, z

    def to_child(self, i: int, vector: Components) -> Components:
        """Return Q_iT v."""
        x, y, z = vector
        (ca, sa), (cb, sb), (cg, sg) = self.constant[i]
        c, s = self.cos[i], self.sin[i]
        if sg or cg < 0.0:
            x, y = cg * x + sg * y, cg * y - sg * x
        y, z = ca * y + sa * z, ca * z - sa * y
        if sb:
            x, z = cb * x - sb * z, sb * x + cb * z
        return c * x + s * y, c * y - s * x, z

    def outward(
        self, at_base: Components, after: NDArray, before: NDArray | None = None
    ) -> NDArray:
        """Return x_i = Q_iT (x_parent + before_i) + after_i for i = 1 to n, (..., n, 3)."""
        result = np.empty_like(after)
        stored, after = _joints_first(result), _joints_first(after)
        before = None if before is None else _joints_first(before)
        links = [at_base] * (len(self.parents) + 1)  # the last one, of index -1, is the base
        for i, parent in enumerate(self.parents):
            x = links[parent]
            x = self.to_child(i, x if before is None else _sum(x, before[i]))
            links[i] = stored[i, 0], stored[i, 1], stored[i, 2] = _sum(x, after[i])
        return result

    def inward(self, added: NDArray) -> tuple[NDArray, NDArray]:
        """Return c_i = Q_i x_i, in the frame before, and x_i = added_i + c of what i carries."""
        carried, result = np.empty_like(added), added.copy()
        stored, total = _joints_first(carried), _joints_first(result)
        for i in range(len(self.parents) - 1, -1, -1):
            parent = self.parents[i]
            c = stored[i, 0], stored[i, 1], stored[i, 2] = self.to_parent(i, tuple(total[i]))
            if parent >= 0:
                total[parent, 0], total[parent, 1], total[parent, 2] = _sum(c, total[parent])
        return carried, result


def _swing(w: NDArray, wd: NDArray) -> NDArray:
    """Return W = wd x + w x w x (..., 3, 3), eq. (53), in 6 multiplications and 9 additions."""
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    ax, ay, az = wd[..., 0], wd[..., 1], wd[..., 2]
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    entries = [-(yy + zz), xy - az, xz + ay, xy + az, -(xx + zz), yz - ax, xz - ay, yz + ax]
    return np.stack([*entries, -(xx + yy)], axis=-1).reshape(*x.shape, 3, 3)


def _add_tip_wrenches(
    dh: DHTable,
    joints: _Rotations,
    to_base: NDArray,
    tip_wrench: NDArray | None,
    forces: NDArray,
    moments: NDArray,
) -> None:
    """Add each tip's force and moment to those of its link, about the origin of its frame."""
    if tip_wrench is None:
        return
    parts = tip_wrench.reshape(*tip_wrench.shape[:-1], len(dh.tips), 2, 3) @ to_base
    for k, (body, placed) in enumerate(zip(dh.tips, dh.tip_transforms, strict=True)):
        in_frame = parts[..., k, 0, :], parts[..., k, 1, :]
        force, moment = (tuple(np.moveaxis(part, -1, 0)) for part in in_frame)
        for i in np.flatnonzero(dh.carries[body]).tolist():
            force, moment = joints.to_child(i, force), joints.to_child(i, moment)
        at_tip = np.stack(np.broadcast_arrays(*force), axis=-1)
        forces[..., body, :] += at_tip
        moments[..., body, :] += np.stack(np.broadcast_arrays(*moment), axis=-1)
        moments[..., body, :] += cross(placed[:3, 3], at_tip)


def _joints_first(vectors: NDArray) -> NDArray:
    """Return vectors (..., n, 3) as a view (n, 3, ...)."""
    return np.moveaxis(vectors, (-2, -1), (0, 1))


def _sum(x: Components, y: NDArray) -> Components:
    return x[0] + y[0], x[1] + y[1], x[2] + y[2]
