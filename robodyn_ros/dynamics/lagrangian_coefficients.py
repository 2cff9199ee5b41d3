# SPDX-License-Identifier: Apache-2.0
"""
Coefficients of the Lagrangian model, one by one in closed form (Tourassis and Neuman 1985).

    sum_j d_ij qdd_j + sum_j sum_m qd_j c_jm(i) qd_m + G_i = F_i                          (11)

For i <= j let (n, o, a, p) be the transform of frame j to frame i, and m, mx, my, Izz, Iyz, Ixz
the mass, first moments and products (integral of y z dm) of links j to n as one body in frame j.
With sigma = 1 for a prismatic joint and 0 for a revolute one, and ' = 1 - sigma, (A-10) reads

    d_ij = sigma_i  sigma_j  m a_z
         + sigma_i  sigma_j' (o_z mx - n_z my)
         + sigma_i' sigma_j  [(n_z my - o_z mx) + m (p_x a_y - a_x p_y)]
         + sigma_i' sigma_j' [a_z Izz - o_z Iyz - n_z Ixz
                              + (n_x p_y - n_y p_x) my - (o_x p_y - o_y p_x) mx].

It is linear in the body's six numbers, and in six numbers of the transform. The symbols c_jm(i)
are half sums of its derivatives, (36) and (37); only n (n - 1) + n (n - 1) (n - 2) / 3 of them are
worked out, the others follow from c_jm(i) = c_mj(i) and from

    c_ji(i) = 0             for j <= i       non-interacting            (38)
    c_jm(i) = - c_ji(m)     for j <= i, m    reflective coupling        (39)

In modified DH joint i acts about z_i, where standard DH has z_(i-1): frame i here is the paper's
frame i - 1. Corrected against the print: gravity's sign in (10), (13), (40), (B-3), (B-4); d_ij
for d_ii in (12); z_j x z_i in (A-4); a product for the second + of (A-10)'s last line; x_i, y_i
in (B-2) are those of the centre of mass of links i to n.
"""

from __future__ import annotations

from functools import cache, cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms, joint_operators, relative_transforms
from robodyn_ros.dynamics.centers_of_mass import outer_pseudo_inertias
from robodyn_ros.kinematics import tip_wrench_torque
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import matrix_times, pseudo_inertia


def joint_torques(
    model: RobotModel,
    q: NDArray,
    qd: NDArray,
    qdd: NDArray,
    tip_wrench: NDArray | None = None,
) -> NDArray:
    """
    Return the joint torques (..., n) [N m or N], without rotor inertia, by (11).

    Parameters
    ----------
    model : RobotModel
    q, qd, qdd : array, shape (..., n)
        Positions, velocities, accelerations [rad or m, and per s, s²].
    tip_wrench : array, shape (6 k,) or (..., 6 k), optional
        Force [N] and moment [N m] that each tip exerts on the world, about the tip link's origin,
        in base link axes.

    Notes
    -----
    Of order n^3.
    """
    chain = _Chain(model, q)
    symbols = chain.christoffel_symbols()
    velocity = matrix_times(matrix_times(symbols, qd[..., None, :]), qd)
    inertia = matrix_times(chain.inertial_coefficients(), qdd)
    wrench = tip_wrench_torque(model, q, tip_wrench)
    return inertia + velocity + chain.gravitational_coefficients() + wrench


def inertial_coefficients(model: RobotModel, q: NDArray) -> NDArray:
    """Return d_ij (..., n, n), (A-10), at joint positions q (..., n) [rad or m]."""
    return _Chain(model, q).inertial_coefficients()


def christoffel_symbols(model: RobotModel, q: NDArray) -> NDArray:
    """Return c_jm(i) (..., n, n, n) at [i, j, m], (36)-(39), at q (..., n) [rad or m]."""
    return _Chain(model, q).christoffel_symbols()


def gravitational_coefficients(model: RobotModel, q: NDArray) -> NDArray:
    """Return G_i (..., n) [N m or N], (B-3) with the sign reversed, at q (..., n) [rad or m]."""
    return _Chain(model, q).gravitational_coefficients()


class _Chain:
    """
    Transforms and outer bodies at one configuration, steps 1 and 2 of Appendix A.

    ``to_frame`` (..., n, n, 4, 4) holds frame j in frame i at [i, j] and ``bodies`` (..., n, 4, 4)
    the pseudo-inertias of links j to n in frame j, (A-12); ``lines`` (..., n, n, 6) and ``sums``
    (..., n, 6) the numbers of each that (A-10) is linear in.
    """

    def __init__(self, model: RobotModel, q: NDArray) -> None:
        self.model, self.q = model, q
        self.to_frame = relative_transforms(model.dh, q)
        own = pseudo_inertia(model.inertial_parameters)
        self.bodies = outer_pseudo_inertias(self.to_frame, own)
        self.lines = _line(self.to_frame)
        self.sums = _sums(self.bodies)

    def inertial_coefficients(self) -> NDArray:
        """Return d_ij (..., n, n), step 3 of Appendix A."""
        i, j = np.triu_indices(self.model.n)
        coefficients = np.empty(self.to_frame.shape[:-2], dtype=self.to_frame.dtype)
        coefficients[..., i, j] = coefficients[..., j, i] = self._inertial_coefficient(
            i, j, self.lines[..., i, j, :], self.sums[..., j, :]
        )
        return coefficients

    def christoffel_symbols(self) -> NDArray:
        """Return c_jm(i) (..., n, n, n) at [i, j, m], out of the derivatives of d_ij."""
        n = self.model.n
        symbols = np.zeros((*self.q.shape, n, n), dtype=self.to_frame.dtype)

        # Two joints a < b. c_ab(b) is zero by (38).
        a, b = _increasing(n, 2)
        symbols[..., a, b, b] = self._derivative_between(a, b, b)  # (36), i < j
        centrifugal = -self._derivative_beyond(a, a, b) / 2  # (36), i > j
        symbols[..., b, a, a] = centrifugal
        symbols[..., a, a, b] = symbols[..., a, b, a] = -centrifugal  # (39)

        # Three joints a < b < c.
        a, b, c = _increasing(n, 3)
        between, beyond = self._derivative_between(a, b, c), self._derivative_beyond(a, b, c)
        inner = (between + beyond) / 2  # (37), last line
        symbols[..., a, b, c] = symbols[..., a, c, b] = inner
        outer = (between - beyond) / 2  # (37), first line
        symbols[..., c, a, b] = symbols[..., c, b, a] = outer
        symbols[..., b, a, c] = symbols[..., b, c, a] = -outer  # (39)
        return symbols

    def gravitational_coefficients(self) -> NDArray:
        """Return G_i (..., n), (B-3)."""
        frames = frame_transforms(self.model.dh, self.q)[..., :3, :3]
        g = np.swapaxes(frames, -1, -2) @ self.model.gravity
        mass, mx, my = (self.sums[..., k] for k in range(3))
        moment = mx * g[..., 1] - my * g[..., 0]
        return -np.where(self.model.dh.prismatic, mass * g[..., 2], moment)

    def _derivative_between(self, i: NDArray, m: NDArray, j: NDArray) -> NDArray:
        """Return the derivatives of d_ij with respect to q_m, i < m <= j: the transform's."""
        transform = self.to_frame[..., i, j, :, :]
        change = self.to_frame[..., i, m, :, :] @ self._carried[..., m, j, :, :]
        # The moments are products of two elements: their change is a sum of two.
        moments = _moments(change, transform) + _moments(transform, change)
        line = np.concatenate([change[..., 2, :3], moments], axis=-1)
        return self._inertial_coefficient(i, j, line, self.sums[..., j, :])

    def _derivative_beyond(self, i: NDArray, j: NDArray, m: NDArray) -> NDArray:
        """Return the derivatives of d_ij with respect to q_m, i <= j < m: the outer body's."""
        body = self._changes_of_sums[..., j, m, :]
        return self._inertial_coefficient(i, j, self.lines[..., i, j, :], body)

    @cached_property
    def _carried(self) -> NDArray:
        """Q_m times frame j in frame m, (..., m, j, 4, 4)."""
        return joint_operators(self.model.dh)[:, None] @ self.to_frame

    @cached_property
    def _changes_of_sums(self) -> NDArray:
        """Derivatives of ``sums`` j with respect to q_m, m > j, (..., j, m, 6)."""
        rate = joint_operators(self.model.dh) @ self.bodies
        change = self.to_frame @ (rate + np.swapaxes(rate, -1, -2))[..., None, :, :, :]
        return _sums(change @ np.swapaxes(self.to_frame, -1, -2))

    def _inertial_coefficient(
        self, i: NDArray, j: NDArray, line: NDArray, body: NDArray
    ) -> NDArray:
        """Return (A-10) for pairs of joints i <= j out of the numbers of transform and body."""
        prismatic = self.model.dh.prismatic
        n_z, o_z, a_z, about_n, about_o, about_a = np.moveaxis(line, -1, 0)
        mass, mx, my, izz, iyz, ixz = np.moveaxis(body, -1, 0)
        across = o_z * mx - n_z * my
        of_prismatic = np.where(prismatic[j], mass * a_z, across)
        of_revolute = np.where(
            prismatic[j],
            -across - mass * about_a,
            a_z * izz - o_z * iyz - n_z * ixz + about_n * my - about_o * mx,
        )
        return np.where(prismatic[i], of_prismatic, of_revolute)


def _line(transform: NDArray) -> NDArray:
    """Return n_z, o_z, a_z, n_x p_y - n_y p_x, the same of o and of a, (..., 6)."""
    return np.concatenate([transform[..., 2, :3], _moments(transform, transform)], axis=-1)


def _moments(axes: NDArray, origin: NDArray) -> NDArray:
    """Return n_x p_y - n_y p_x, the same of o and of a, (..., 3), p being that of ``origin``."""
    return axes[..., 0, :3] * origin[..., 1, 3:] - axes[..., 1, :3] * origin[..., 0, 3:]


def _sums(body: NDArray) -> NDArray:
    """Return m, mx, my, Izz, Iyz, Ixz (..., 6) out of pseudo-inertias (..., 4, 4)."""
    xx, yy = body[..., 0, 0], body[..., 1, 1]
    numbers = [body[..., 3, 3], body[..., 0, 3], body[..., 1, 3], xx + yy]
    return np.stack([*numbers, body[..., 1, 2], body[..., 0, 2]], axis=-1)


@cache
def _increasing(n: int, count: int) -> NDArray:
    """Return all increasing tuples of ``count`` joints, (count, number of tuples)."""
    return np.array(list(combinations(range(n), count)), dtype=int).reshape(-1, count).T
