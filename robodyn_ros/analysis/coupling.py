# SPDX-License-Identifier: Apache-2.0
"""
How tightly joints are coupled (Tourassis and Neuman 1985, section 3.5).

    k_ij = |d_ij| / sqrt(d_ii d_jj) = loading factor x kinematic factor                (32), (33)

lies between 0 and 1. The loading factor (34) is the square root of the mass that joint j moves by
the mass that joint i < j moves; the kinematic factor (35) comes from the axes and the
distribution of mass about them. Rotor inertia, which (34) does not know, is left out.

Against the print, the kinematic factor is bounded by 1 only for a prismatic joint i. For a
revolute one the bound is 1 / loading factor: mass near axis i lowers the loading factor, but
hardly K_ii.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.analysis.inertial_characteristics import inertial_characteristics
from robodyn_ros.analysis.joint_space import Extreme, Function, JointSpace, Limits
from robodyn_ros.analysis.quantities import quotient, symbol
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dynamics.coriolis import outer_sums
from robodyn_ros.dynamics.mass_matrix import composite_mass_matrix
from robodyn_ros.model import RobotModel, checked_model, model_states
from robodyn_ros.record import Record, Rows
from robodyn_ros.spatial import FloatArray, cross, pseudo_inertia

_SAMPLE = 4096


@dataclass(frozen=True, eq=False, repr=False)
class Coupling(Record):
    """
    The coupling of two joints over the joint space.

    Attributes
    ----------
    symbol : str
    joints : (str, str)
        The inner one first.
    loading_factor : float
        Constant.
    mean : float
        Of k_ij.
    largest : Extreme
        Of k_ij, and where.
    mean_kinematic_factor, largest_kinematic_factor : float
        k_ij by the loading factor.
    """

    symbol: str
    joints: tuple[str, str]
    loading_factor: float
    mean: float
    largest: Extreme
    mean_kinematic_factor: float
    largest_kinematic_factor: float

    _row_header = ('coupling', 'of', 'with', 'mean', 'largest', 'loading factor')

    def _row(self) -> list[str]:
        numbers = (self.mean, self.largest.value, self.loading_factor)
        return [self.symbol, *self.joints, *(f'{x:.3f}' for x in numbers)]


def coupling_over_joint_space(model: RobotModel, limits: Limits | None = None) -> Rows[Coupling]:
    """
    Return the coupling of every two joints i < j over the joint limits.

    Parameters
    ----------
    model : RobotModel
    limits : mapping of joint name to (lower, upper), optional
        See ``JointSpace.of``, which also says what is raised.

    Notes
    -----
    Means are over evenly scattered positions; the largest value is found by global optimisation.
    """
    joint_space = JointSpace.of(model, limits)
    structure = inertial_characteristics(model)
    means = coefficients_of_coupling(model, joint_space.sample(_SAMPLE)).mean(axis=0)
    loading = loading_factors(model)
    result = []
    for i, j in combinations(range(model.n), 2):
        coefficients = [structure[symbol('d', *pair)] for pair in ((i, i), (j, j), (i, j))]
        names = {name for x in coefficients for name in x.joints}
        joints = [k for k, name in enumerate(model.joint_names) if name in names]
        largest = Extreme(0.0, tuple(map(float, joint_space.center)))
        if coefficients[2].nonzero:
            square = joint_space.largest(_squared_coupling(model, i, j), joints)
            largest = Extreme(math.sqrt(square.value), square.position)
        mean, factor = float(means[i, j]), float(loading[i, j])
        kinematic = [x / factor if factor > 0 else 0.0 for x in (mean, largest.value)]
        pair = (model.joint_names[i], model.joint_names[j])
        result.append(Coupling(symbol('k', i, j), pair, factor, mean, largest, *kinematic))
    return Rows(result)


def coefficients_of_coupling(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return k_ij (n, n), or (N, n, n) for N positions q (N, n) [rad or m], by (32).

    The diagonal is 1, or 0 for a joint that moves no inertia.
    """
    (q,) = model_states(model, q=q)
    return np.abs(_signed_coupling(model, q))


def loading_factors(model: RobotModel) -> FloatArray:
    """Return the loading factors (n, n) of all pairs of joints, (34), symmetric."""
    mass = _outer_mass(checked_model(model))
    lighter, heavier = (f(mass[:, None], mass) for f in (np.minimum, np.maximum))
    return np.sqrt(quotient(lighter, heavier))


def kinematic_factors(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return the kinematic factors (n, n) or (N, n, n), by (35), symmetric.

    Parameters
    ----------
    model : RobotModel
    q : array-like, shape (n,) or (N, n)
        Joint positions [rad or m].

    Notes
    -----
    Computed from axes, centres of mass and projected radii of gyration of the links beyond each
    joint, (18)-(23), apart from the mass matrix. Of one joint with itself it is 1.
    """
    (q,) = model_states(model, q=q)
    frames = frame_transforms(model.dh, q)
    z, origin = frames[..., :3, 2], frames[..., :3, 3]
    own = frames @ pseudo_inertia(model.inertial_parameters) @ np.swapaxes(frames, -1, -2)
    body = outer_sums(model, own)
    mass = _outer_mass(model)

    # All of joints i (rows) and j (columns), for the links beyond j: right for i <= j.
    zi, zj = z[..., :, None, :], z[..., None, :, :]
    oi, oj = origin[..., :, None, :], origin[..., None, :, :]
    moment, m = body[..., None, :, :3, 3], mass[:, None]
    from_i, from_j = (quotient(moment - m * o, m) for o in (oi, oj))
    cosine = (zi * zj).sum(axis=-1)
    of_slides = np.abs(cosine)
    slide_then_turn = np.abs((cross(zi, zj) * from_j).sum(axis=-1))
    turn_then_slide = np.abs((cross(zj, zi) * from_i).sum(axis=-1))
    second = (
        body[..., None, :, :3, :3]
        - moment[..., :, None] * oj[..., None, :]
        - oi[..., :, None] * (moment - m * oj)[..., None, :]
    )
    spread = np.trace(second, axis1=-2, axis2=-1)
    projected = cosine * spread - (zj[..., None, :] @ second @ zi[..., :, None])[..., 0, 0]
    of_turns = np.abs(quotient(projected, mass))

    radius = np.sqrt(np.diagonal(of_turns, axis1=-2, axis2=-1))
    ri, rj = radius[..., :, None], radius[..., None, :]
    si, sj = model.dh.prismatic[:, None], model.dh.prismatic
    factor = np.where(
        si,
        np.where(sj, of_slides, quotient(slide_then_turn, rj)),
        np.where(sj, quotient(turn_then_slide, ri), quotient(of_turns, ri * rj)),
    )
    # Joints of two branches have no link beyond both of them.
    upper = np.where(model.dh.carries.T, factor, 0.0)
    return upper + np.swapaxes(np.triu(upper, 1), -1, -2)


def _squared_coupling(model: RobotModel, i: int, j: int) -> Function:
    return lambda q: _signed_coupling(model, q)[:, i, j] ** 2


def _signed_coupling(model: RobotModel, q: NDArray) -> NDArray:
    inertia = composite_mass_matrix(model, q)
    root = np.sqrt(np.diagonal(inertia, axis1=-2, axis2=-1))
    return quotient(inertia, root[..., :, None] * root[..., None, :])


def _outer_mass(model: RobotModel) -> FloatArray:
    """Return the masses (n,) [kg] that the joints move."""
    return model.inertial_parameters[:, 9] @ model.dh.carries
