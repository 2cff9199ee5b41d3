# SPDX-License-Identifier: Apache-2.0
"""
Generalized d'Alembert equations (Fu, Gonzalez and Lee 1987, section 3.4), with prismatic joints.

    D_ij  = Dtran_ij + Drot_ij                                       (3.4-25)
    h_i   = htran_i + hrot_i                                         (3.4-26), (3.4-27)
    c_i   = - g . sum over links s of m_s dv_s/dqd_i                 (3.4-28)

The translational parts come from the motion of the centres of mass, r_s, with
dv_s/dqd_i = z_i x (r_s - p_i) for a revolute joint i <= s, (3.4-7), and z_i for a prismatic one;
the rotational parts from the rotation of the links about them, in link axes, with
dw_s/dqd_i = z_i for a revolute joint and zero for a prismatic one. In modified DH joint i acts
about z_i through p_i, and the vector between origins p_(i-1) and p_i stands still in link i - 1,
but for the displacement of a prismatic joint along z_i, which adds 2 w_(i-1) x z_i qd_i to
(3.4-11).

Corrected against the print: (3.4-21), (3.4-22) have minus the gradient of the potential energy,
where c_i is the gradient; the sum (3.4-23) and (3.4-28) have it right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dh.table import DHTable
from robodyn_ros.dynamics.centers_of_mass import centers_of_mass
from robodyn_ros.kinematics import tip_wrench_torque
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import cross, matrix_times


def joint_torques(
    model: RobotModel,
    q: NDArray,
    qd: NDArray,
    qdd: NDArray,
    tip_wrench: NDArray | None = None,
) -> NDArray:
    """
    Return the joint torques (..., n) [N m or N], without rotor inertia, by (3.4-24).

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
    Of order n^3.
    """
    geometry = _Geometry(model, q)
    inertia = geometry.translational_inertia() + geometry.rotational_inertia()
    coriolis = geometry.translational_coriolis_torque(qd) + geometry.rotational_coriolis_torque(qd)
    wrench = tip_wrench_torque(model, q, tip_wrench)
    return (inertia @ qdd[..., None])[..., 0] + coriolis + geometry.gravity_torque() + wrench


def inertia_matrices(model: RobotModel, q: NDArray) -> tuple[NDArray, NDArray]:
    """Return Dtran and Drot (..., n, n), (3.4-25), at joint positions q (..., n) [rad or m]."""
    geometry = _Geometry(model, q)
    return geometry.translational_inertia(), geometry.rotational_inertia()


def coriolis_torques(model: RobotModel, q: NDArray, qd: NDArray) -> tuple[NDArray, NDArray]:
    """
    Return the Coriolis and centrifugal torques htran and hrot (..., n) [N m or N].

    These are (3.4-26) and (3.4-27).

    Parameters
    ----------
    model : RobotModel
    q, qd : array, shape (..., n)
        Positions and velocities [rad or m, and per s].
    """
    geometry = _Geometry(model, q)
    return geometry.translational_coriolis_torque(qd), geometry.rotational_coriolis_torque(qd)


class _Geometry:
    """
    Axes, origins and centres of mass at one configuration, in the base link's axes.

    ``reach`` (..., n, n, 3) holds dv_s/dqd_i and ``spin`` (..., n, n, 3) dw_s/dqd_i in the axes
    of link s, at [s, i], both zero for i > s.
    """

    def __init__(self, model: RobotModel, q: NDArray) -> None:
        self.model = model
        self.mass, rho, self.inertia = centers_of_mass(model)
        frames = frame_transforms(model.dh, q)
        self.rotation, self.origin = frames[..., :3, :3], frames[..., :3, 3]
        self.to_center = matrix_times(self.rotation, rho)
        self.z = frames[..., :3, 2]
        prismatic = model.dh.prismatic[:, None]
        carried = model.dh.carries[..., None]
        z = self.z[..., None, :, :]
        center = self.origin + self.to_center
        lever = center[..., :, None, :] - self.origin[..., None, :, :]
        self.reach = np.where(carried, np.where(prismatic, z, cross(z, lever)), 0.0)
        self.spin = np.where(carried & ~prismatic, z @ self.rotation, 0.0)

    def translational_inertia(self) -> NDArray:
        """Return Dtran (..., n, n): sum of m_s (dv_s/dqd_i . dv_s/dqd_j), (3.4-25)."""
        return _sum_of_products(self.reach, self.mass[:, None, None] * self.reach)

    def rotational_inertia(self) -> NDArray:
        """Return Drot (..., n, n): sum of (sR0 z_i)T I_s (sR0 z_j), (3.4-25)."""
        return _sum_of_products(self.spin, self.spin @ self.inertia)

    def translational_coriolis_torque(self, qd: NDArray) -> NDArray:
        """Return htran (..., n): sum of m_s vd_s . dv_s/dqd_i without qdd, (3.4-26), (3.4-11)."""
        dh = self.model.dh
        rotating = np.where(dh.prismatic, 0.0, qd)[..., None] * self.z
        sliding = np.where(dh.prismatic, qd, 0.0)[..., None] * self.z
        w = _sums_outward(dh, rotating)
        w_before = w - rotating
        wd = _sums_outward(dh, cross(w_before, rotating))
        # Of the origins: the link before carries the vector to p_i, which a prismatic joint moves.
        later = np.flatnonzero(dh.parents >= 0)
        before = dh.parents[later]
        to_next = self.origin[..., later, :] - self.origin[..., before, :]
        a = 2.0 * cross(w_before, sliding)
        a[..., later, :] += cross(wd[..., before, :], to_next) + _twice(w[..., before, :], to_next)
        vd = _sums_outward(dh, a) + cross(wd, self.to_center) + _twice(w, self.to_center)
        return _sum_of_projections(self.reach, self.mass[:, None] * vd)

    def rotational_coriolis_torque(self, qd: NDArray) -> NDArray:
        """Return hrot (..., n), (3.4-27), a sum over links s in their own axes."""
        rotating = qd[..., None, :, None] * self.spin
        w = rotating.sum(axis=-2)
        outer = w[..., None, :] - np.cumsum(rotating, axis=-2)
        first = matrix_times(self.inertia, cross(rotating, outer).sum(axis=-2))
        # The second term, (z_i x w_s)T I_s w_s, is z_i . (w_s x I_s w_s).
        second = cross(w, matrix_times(self.inertia, w))
        return _sum_of_projections(self.spin, first + second)

    def gravity_torque(self) -> NDArray:
        """Return c (..., n), (3.4-28)."""
        return -(self.mass[:, None, None] * self.reach).sum(axis=-3) @ self.model.gravity


def _sums_outward(dh: DHTable, x: NDArray) -> NDArray:
    """Return the sums of x (..., n, 3) over the joints that move each link."""
    result = x.copy()
    for i, parent in enumerate(dh.parents.tolist()):
        if parent >= 0:
            result[..., i, :] += result[..., parent, :]
    return result


def _sum_of_products(a: NDArray, b: NDArray) -> NDArray:
    """Return the sum over links s and coordinates x of a[s, i, x] b[s, j, x], (..., i, j)."""
    columns_a, columns_b = (
        np.swapaxes(x, -1, -2).reshape(*x.shape[:-3], 3 * x.shape[-3], x.shape[-2]) for x in (a, b)
    )
    return np.swapaxes(columns_a, -1, -2) @ columns_b


def _sum_of_projections(a: NDArray, vectors: NDArray) -> NDArray:
    """Return the sum over links s of a[s, i] . vectors[s], (..., i)."""
    return (a * vectors[..., None, :]).sum(axis=(-3, -1))


def _twice(w: NDArray, r: NDArray) -> NDArray:
    return cross(w, cross(w, r))
