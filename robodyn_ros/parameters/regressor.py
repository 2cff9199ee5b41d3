# SPDX-License-Identifier: Apache-2.0
"""
The torque regressor: joint torques as a matrix times the inertial parameters, and their names.

Gamma = H X (Gautier and Khalil 1988, eq. 12), with X the ten parameters of every link one after
the other (eq. 4), from the Newton-Euler equations of each link about its frame's origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.model import RobotModel, model_states
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray, cross, inertia_tensor, skew

EXCITATION_SEED = 1988

# Tensors (6, 3, 3) that the six elements XX to ZZ multiply.
_TENSOR_BASIS = inertia_tensor(np.eye(10)[:6])
_PARAMETER_NAMES = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'mX', 'mY', 'mZ', 'm')
_UNITS = ('kg m²',) * 6 + ('kg m',) * 3 + ('kg',)
_JOINT_UNITS = {
    'Ia': ('kg m²', 'kg'),
    'Fv': ('N m s/rad', 'N s/m'),
    'Fc': ('N m', 'N'),
}


def regressor(
    model: RobotModel,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    rotor_inertia: bool = False,
    friction: bool = False,
) -> NDArray:
    """
    Return H(q, qd, qdd), which times the inertial parameters is the joint torque.

    ``H @ model.inertial_parameters.ravel()`` is ``inverse_dynamics(model, q, qd, qdd)`` without
    rotor inertia (Gautier and Khalil 1988, eq. 12).

    Parameters
    ----------
    model : RobotModel
        Its geometry and gravity; its inertial parameters are not used.
    q, qd, qdd : array-like, shape (n,) or (N, n)
        Joint positions, velocities and accelerations [rad or m, and per s, s²].
    rotor_inertia : bool
        Append a column for each joint's rotor inertia, reflected to the joint.
    friction : bool
        Append, after those, a column for each joint's viscous and then one for each joint's
        Coulomb friction coefficient.

    Returns
    -------
    array, shape (n, 10 n) or (N, n, 10 n); n columns more for rotors, 2 n more for friction
        Link by link XX XY XZ YY YZ ZZ mX mY mZ m, about the DH frames;
        ``StandardParameters`` names the columns.

    Raises
    ------
    InvalidArgument, NonFiniteValue

    Notes
    -----
    A link's columns are its body wrench's, projected on the axes of the joints that carry it:
    O(n2) numbers, in array operations over all samples and links at once.
    """
    q, qd, qdd = model_states(model, q=q, qd=qd, qdd=qdd)
    columns = [_link_columns(model, q, qd, qdd)]
    diagonal = np.eye(model.n)
    if rotor_inertia:
        columns.append(qdd[..., None] * diagonal)
    if friction:
        columns += [qd[..., None] * diagonal, np.sign(qd)[..., None] * diagonal]
    return np.concatenate(columns, axis=-1)


def excitation(
    model: RobotModel, samples: int = 60, seed: int = EXCITATION_SEED
) -> tuple[NDArray, NDArray, NDArray]:
    """Return seeded random q, qd, qdd (samples, n): all angles, lengths within a metre."""
    generator = np.random.default_rng(seed)
    reach = np.where(model.dh.prismatic, 1.0, np.pi)
    shape = (samples, model.n)
    return (
        generator.uniform(-reach, reach, shape),
        generator.uniform(-2.0, 2.0, shape),
        generator.uniform(-5.0, 5.0, shape),
    )


def _link_columns(model: RobotModel, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
    frames = frame_transforms(model.dh, q)
    rotation, origin = frames[..., :3, :3], frames[..., :3, 3]
    w, wd, vd = _link_motions(model, frames, qd, qdd)
    into_link = np.swapaxes(rotation, -1, -2)
    w, wd, vd = (_matrix_times(into_link, x) for x in (w, wd, vd))

    # Force = u mS + m vd and moment = J wd + w x J w + mS x vd of link i, in its own axes.
    swing = skew(w)
    body = np.zeros((*q.shape, 6, 10))
    body[..., :3, 6:9] = skew(wd) + swing @ swing
    body[..., :3, 9] = vd
    body[..., 3:, :6] = _tensor_times(wd) + swing @ _tensor_times(w)
    body[..., 3:, 6:9] = -skew(vd)

    # Axis of joint j in the axes of link i, about the origin of frame i, [..., i, j, :].
    z = np.swapaxes(rotation, -1, -2)[..., None, :, 2, :]
    lever = origin[..., :, None, :] - origin[..., None, :, :]
    prismatic = model.dh.prismatic[:, None]
    axes = np.concatenate(
        [
            np.where(prismatic, z, cross(z, lever)) @ rotation,
            np.where(prismatic, 0.0, z) @ rotation,
        ],
        axis=-1,
    )
    axes *= model.dh.carries[..., None]
    blocks = np.swapaxes(axes @ body, -3, -2)
    return blocks.reshape(*q.shape, 10 * model.n)


def _link_motions(
    model: RobotModel, frames: NDArray, qd: NDArray, qdd: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """
    Return w, wd of each link and the acceleration of its origin, (..., n, 3), in base link axes.

    Gravity enters as an acceleration -g of the base.
    """
    z, origin = frames[..., :3, 2], frames[..., :3, 3]
    prismatic = model.dh.prismatic[:, None]
    rate, growth = z * qd[..., None], z * qdd[..., None]
    spin = np.where(prismatic, 0.0, rate)
    carries = model.dh.carries
    w: NDArray = carries @ spin
    w_before = w - spin
    spin_growth = np.where(prismatic, 0.0, growth) + cross(w_before, spin)
    wd = carries @ spin_growth
    step = origin - origin[..., model.parents, :]  # of first joints, before which nothing turns
    swung = cross(wd - spin_growth, step) + cross(w_before, cross(w_before, step))
    sliding = np.where(prismatic, growth + 2.0 * cross(w_before, rate), 0.0)
    return w, wd, carries @ (swung + sliding) - model.gravity


def _tensor_times(w: NDArray) -> NDArray:
    """Return the matrix (..., 3, 6) that times XX XY XZ YY YZ ZZ is J w."""
    return np.swapaxes(np.tensordot(w, _TENSOR_BASIS, axes=(-1, 2)), -1, -2)


def _matrix_times(matrix: NDArray, vector: NDArray) -> NDArray:
    return (matrix @ vector[..., None])[..., 0]


# --- the parameters that its columns multiply ----------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class StandardParameters(Record):
    """
    Ten parameters a link; on request rotor inertia Ia, viscous Fv and Coulomb friction Fc.

    Order: XX XY XZ YY YZ ZZ mX mY mZ m of link 1, of link 2 and so on (Gautier and Khalil 1988,
    eqs. 3 and 4), then Ia of all joints, then Fv and then Fc of all joints.

    Attributes
    ----------
    model : RobotModel
    rotor_inertia, friction : bool
    """

    model: RobotModel
    rotor_inertia: bool = False
    friction: bool = False

    @property
    def count(self) -> int:
        """Number of parameters."""
        return len(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """XX1 ... m1 XX2 ... mn, Ia1 ... Ian, Fv1 ... Fvn, Fc1 ... Fcn."""
        joints = range(1, self.model.n + 1)
        of_links = [f'{name}{j}' for j in joints for name in _PARAMETER_NAMES]
        return (*of_links, *(f'{name}{j}' for name in self._of_joints for j in joints))

    @cached_property
    def values(self) -> FloatArray:
        """The model's values (count,), in the parameters' units."""
        parts = [self.model.inertial_parameters.ravel()]
        if self.rotor_inertia:
            parts.append(self.model.rotor_inertia)
        if self.friction:
            parts += [self.model.viscous_friction, self.model.coulomb_friction]
        return np.concatenate(parts)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The parameters' units."""
        of_joints = (
            _JOINT_UNITS[name][int(prismatic)]
            for name in self._of_joints
            for prismatic in self.model.dh.prismatic
        )
        return (*_UNITS * self.model.n, *of_joints)

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The links that the parameters belong to: those that joints 1 to n carry."""
        moved = [''] * self.model.n
        for link, (body, _) in self.model.link_frames.items():
            if body >= 0 and not moved[body]:
                moved[body] = link  # the joint's child comes before what is fixed to it
        return tuple(moved[self.joint_of(k)] for k in range(self.count))

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> NDArray:
        """Return the regressor (..., n, count) whose columns these parameters multiply."""
        return regressor(
            self.model, q, qd, qdd, rotor_inertia=self.rotor_inertia, friction=self.friction
        )

    def joint_of(self, column: int) -> int:
        """Return the index, from 0, of the joint that carries a parameter."""
        n = self.model.n
        return column // 10 if column < 10 * n else (column - 10 * n) % n

    @property
    def _of_joints(self) -> list[str]:
        return ['Ia'] * self.rotor_inertia + ['Fv', 'Fc'] * self.friction
