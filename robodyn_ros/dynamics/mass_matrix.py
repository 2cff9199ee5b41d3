# SPDX-License-Identifier: Apache-2.0
"""Mass matrix by composite rigid bodies (Walker and Orin 1982, method 3), in link coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import step_transforms
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import cross, inertia_tensor, parameters_of_pseudo_inertia, pseudo_inertia


def composite_mass_matrix(model: RobotModel, q: NDArray) -> NDArray:
    """
    Return M(q) (..., n, n) [kg m², kg m, kg], without rotor inertia.

    Column k holds the joint torques that a unit acceleration of joint k alone needs at rest,
    without gravity: all links beyond joint k then move as one body. Joints of two branches need
    nothing of one another.

    Parameters
    ----------
    model : RobotModel
    q : array, shape (..., n)
        Joint positions [rad or m].
    """
    dh = model.dh
    steps = step_transforms(dh, q)
    parameters = _composite_parameters(model, steps)
    mass, first_moment = parameters[..., 9:], parameters[..., 6:9]
    prismatic = dh.prismatic[:, None]
    z = np.array([0.0, 0.0, 1.0])

    # Row k: force and moment on the composite body beyond joint k, about the origin of frame k.
    force = np.where(prismatic, mass * z, cross(z, first_moment))
    moment = np.where(prismatic, cross(first_moment, z), inertia_tensor(parameters)[..., 2])
    result = np.zeros((*q.shape, dh.n), dtype=force.dtype)
    for i, end in reversed(list(enumerate(dh.ends.tolist()))):
        # The rows beyond joint i have arrived in frame i: it takes their part along its axis.
        beyond = slice(i, end)
        along_axis = (force if dh.prismatic[i] else moment)[..., beyond, 2]
        result[..., i, beyond] = result[..., beyond, i] = along_axis
        inward = np.swapaxes(steps[..., i, :3, :3], -1, -2)
        lever = steps[..., i, None, :3, 3]
        force[..., beyond, :] = force[..., beyond, :] @ inward
        moment[..., beyond, :] = moment[..., beyond, :] @ inward + cross(
            lever, force[..., beyond, :]
        )
    return result


def _composite_parameters(model: RobotModel, steps: NDArray) -> NDArray:
    """Return the inertial parameters (..., n, 10) of all beyond joint i as one, about frame i."""
    composite = np.empty_like(steps)
    composite[...] = pseudo_inertia(model.inertial_parameters)
    for i, parent in reversed(list(enumerate(model.parents.tolist()))):
        step = steps[..., i, :, :]
        if parent >= 0:
            moved = step @ composite[..., i, :, :] @ np.swapaxes(step, -1, -2)
            composite[..., parent, :, :] += moved
    return parameters_of_pseudo_inertia(composite)
