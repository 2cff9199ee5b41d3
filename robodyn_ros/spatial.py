# SPDX-License-Identifier: Apache-2.0
"""
Rotations, transforms and inertias in other frames; independent of the robot.

A transform ``T`` (4, 4) takes the coordinates of a point in its own frame to those in its parent
frame. The ten inertial parameters of a body about the origin of a frame are, in this order,
``XX XY XZ YY YZ ZZ mX mY mZ m``: the elements of the inertia tensor [kg m²], the first moments
[kg m] and the mass [kg] (Gautier and Khalil 1988, eq. 3).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

_TENSOR_ROWS = np.array([0, 0, 0, 1, 1, 2])
_TENSOR_COLUMNS = np.array([0, 1, 2, 1, 2, 2])

# Numbers smaller than this have fewer digits, so that a quotient of two of them is inaccurate.
_FEWER_DIGITS = float(np.finfo(float).tiny)


def cross(a: NDArray, b: NDArray) -> NDArray:
    """Return the vector product a x b over the last axis, (..., 3), broadcasting."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def matrix_times(matrix: NDArray, vector: NDArray) -> NDArray:
    """Return the products (..., m) of matrices (..., m, n) and vectors (..., n), broadcasting."""
    return (matrix @ vector[..., None])[..., 0]


def skew(v: NDArray) -> NDArray:
    """Return the matrix S(v) (..., 3, 3) with S(v) u = v x u."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    zero = np.zeros_like(x)
    entries = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1)
    return entries.reshape(*v.shape[:-1], 3, 3)


def rotation_x(angle: float) -> FloatArray:
    """Return the rotation (3, 3) by ``angle`` [rad] about x."""
    c, s = _cosine_and_sine(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(angle: float) -> FloatArray:
    """Return the rotation (3, 3) by ``angle`` [rad] about y."""
    c, s = _cosine_and_sine(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rotation_z(angle: float) -> FloatArray:
    """Return the rotation (3, 3) by ``angle`` [rad] about z."""
    c, s = _cosine_and_sine(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _cosine_and_sine(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exactly 0 and +-1 at the floats nearest to multiples of pi/2."""
    quarters = round(angle / (math.pi / 2))
    if abs(quarters) < 1000 and angle == quarters * (math.pi / 2):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    return math.cos(angle), math.sin(angle)


def rotation_from_rpy(rpy: ArrayLike) -> FloatArray:
    """Return Rz(yaw) Ry(pitch) Rx(roll) (3, 3) for URDF's roll, pitch, yaw [rad]."""
    roll, pitch, yaw = np.asarray(rpy, dtype=float)
    return rotation_z(yaw) @ rotation_y(pitch) @ rotation_x(roll)


def rpy_from_rotation(rotation: ArrayLike) -> FloatArray:
    """
    Return URDF's roll, pitch, yaw (3,) [rad] of a rotation (3, 3).

    Each angle is taken from what the ones before it leave: accurate at a pitch of +-pi/2, too,
    where roll and yaw are one, and any yaw has its roll.
    """
    r = np.asarray(rotation, dtype=float)
    yaw = math.atan2(r[1, 0], r[0, 0])
    turned = rotation_z(yaw).T @ r
    pitch = math.atan2(-turned[2, 0], turned[0, 0])
    return np.array([math.atan2(-turned[1, 2], turned[1, 1]), pitch, yaw])


def rotation_about(axis: ArrayLike, angle: float) -> FloatArray:
    """Return the rotation (3, 3) by ``angle`` [rad] about the unit vector ``axis`` (3,)."""
    k = skew(np.asarray(axis, dtype=float))
    c, s = _cosine_and_sine(angle)
    return np.eye(3) + s * k + (1.0 - c) * (k @ k)


def rotation_z_onto(direction: ArrayLike) -> FloatArray:
    """Return the smallest rotation (3, 3) that takes z to the unit vector ``direction`` (3,)."""
    x, y, z = np.asarray(direction, dtype=float)
    sine = math.hypot(x, y)
    if sine == 0.0:
        return np.eye(3) if z > 0 else np.diag([1.0, -1.0, -1.0])
    # Rodrigues' formula about z x direction / sine; 1 - cos = sine^2 / (1 + cos), which keeps its
    # digits near z, and its mirror image near -z.
    kx, ky = -y / sine, x / sine
    if sine < _FEWER_DIGITS:
        length = math.hypot(kx, ky)
        kx, ky = kx / length, ky / length
    versine = sine * sine / (1.0 + z) if z > 0 else 1.0 - z
    return np.array(
        [
            [z + kx * kx * versine, kx * ky * versine, x],
            [kx * ky * versine, z + ky * ky * versine, y],
            [-x, -y, z],
        ]
    )


def transform(rotation: ArrayLike | None = None, translation: ArrayLike = (0, 0, 0)) -> FloatArray:
    """Return the transform (4, 4) of a rotation (3, 3) and a translation (3,) [m]."""
    result = np.eye(4)
    if rotation is not None:
        result[:3, :3] = rotation
    result[:3, 3] = translation
    return result


def inverse_transform(t: NDArray) -> NDArray:
    """Return the inverse of rigid transforms (..., 4, 4)."""
    result = np.zeros_like(t)
    inverse_rotation = np.swapaxes(t[..., :3, :3], -1, -2)
    result[..., :3, :3] = inverse_rotation
    result[..., :3, 3] = -(inverse_rotation @ t[..., :3, 3:])[..., 0]
    result[..., 3, 3] = 1.0
    return result


def inertial_parameters(
    mass: float, center_of_mass: ArrayLike, inertia_about_center: ArrayLike
) -> FloatArray:
    """
    Return the ten parameters (10,) about the frame's origin from those about the centre of mass.

    Parameters
    ----------
    mass : float
        [kg]
    center_of_mass : array-like, shape (3,)
        [m], in the frame.
    inertia_about_center : array-like, shape (3, 3)
        [kg m²], about the centre of mass, along the frame's axes.
    """
    c = np.asarray(center_of_mass, dtype=float)
    about_origin = np.asarray(inertia_about_center, dtype=float) + mass * (
        np.dot(c, c) * np.eye(3) - np.outer(c, c)
    )
    return np.concatenate([about_origin[_TENSOR_ROWS, _TENSOR_COLUMNS], mass * c, [mass]])


def principal_axes(inertia: FloatArray) -> tuple[FloatArray, FloatArray]:
    """
    Return the principal moments (3,), smallest first, and a rotation (3, 3) to their axes.

    What a slender rod or a plate has but for rounding, it has: a moment of zero, and two moments
    whose sum is the third.
    """
    moments, axes = np.linalg.eigh(inertia)
    rounding = 8.0 * float(np.finfo(float).eps) * np.abs(moments).max()
    moments[np.abs(moments) <= rounding] = 0.0
    if 0.0 < moments[2] - (moments[0] + moments[1]) <= rounding:
        moments[2] = moments[0] + moments[1]
    axes[:, 0] *= np.linalg.det(axes)  # a rotation, and no reflection
    return moments, axes


def inertia_tensor(parameters: NDArray) -> NDArray:
    """Return the inertia tensor (..., 3, 3) [kg m²] about the origin, of parameters (..., 10)."""
    tensor = np.empty((*parameters.shape[:-1], 3, 3), dtype=parameters.dtype)
    tensor[..., _TENSOR_ROWS, _TENSOR_COLUMNS] = parameters[..., :6]
    tensor[..., _TENSOR_COLUMNS, _TENSOR_ROWS] = parameters[..., :6]
    return tensor


def pseudo_inertia(parameters: NDArray) -> NDArray:
    """
    Return the pseudo-inertia matrix (..., 4, 4): the integral of x xT dm, x = (x, y, z, 1).

    It moves between frames as T P TT, and is positive semidefinite for every real body
    (Bejczy 1974, eq. 10; Fu, Gonzalez and Lee 1987, eqs. 3.2-17, 3.2-18). Both print the elements
    of the inertia tensor off its diagonal with a plus; by their own definitions it is a minus.
    """
    tensor = inertia_tensor(parameters)
    result = np.empty((*parameters.shape[:-1], 4, 4), dtype=parameters.dtype)
    half_trace = (tensor[..., 0, 0] + tensor[..., 1, 1] + tensor[..., 2, 2]) / 2
    result[..., :3, :3] = half_trace[..., None, None] * np.eye(3) - tensor
    result[..., :3, 3] = result[..., 3, :3] = parameters[..., 6:9]
    result[..., 3, 3] = parameters[..., 9]
    return result


def parameters_of_pseudo_inertia(pseudo: NDArray) -> NDArray:
    """Return the ten parameters (..., 10) out of pseudo-inertia matrices (..., 4, 4)."""
    second_moments = pseudo[..., :3, :3]
    trace = np.trace(second_moments, axis1=-2, axis2=-1)
    tensor = trace[..., None, None] * np.eye(3) - second_moments
    return np.concatenate(
        [
            tensor[..., _TENSOR_ROWS, _TENSOR_COLUMNS],
            pseudo[..., :3, 3],
            pseudo[..., 3:, 3],
        ],
        axis=-1,
    )


def moved_parameters(parameters: NDArray, t: NDArray) -> NDArray:
    """
    Return inertial parameters (..., 10) about the parent frame of ``t`` from those in its own.

    Parameters
    ----------
    parameters : array, shape (..., 10)
        About the origin of the frame that ``t`` places.
    t : array, shape (..., 4, 4)
        Places that frame in its parent.
    """
    moved = t @ pseudo_inertia(parameters) @ np.swapaxes(t, -1, -2)
    return parameters_of_pseudo_inertia(moved)
