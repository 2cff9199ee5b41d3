# SPDX-License-Identifier: Apache-2.0
"""The frames of a modified DH table at joint positions: each in the one before, or in the base."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.table import DHTable


def frame_transforms(dh: DHTable, q: NDArray) -> NDArray:
    """
    Return the DH frames 1 to n in the base link's frame, (..., n, 4, 4), for q (..., n).

    ``dh`` is a modified table.
    """
    steps = step_transforms(dh, q)
    frames = np.empty_like(steps)
    placed = [dh.base_transform] * (dh.n + 1)  # the last one, of index -1, is the base
    for i, parent in enumerate(dh.parents.tolist()):
        frames[..., i, :, :] = placed[i] = placed[parent] @ steps[..., i, :, :]
    return frames


def relative_transforms(dh: DHTable, q: NDArray) -> NDArray:
    """
    Return frame j in frame i where joint i moves body j, (..., n, n, 4, 4), and zero elsewhere.

    ``dh`` is a modified table, q (..., n) the joint positions [rad or m].
    """
    steps = step_transforms(dh, q)
    frames = np.zeros((*q.shape, dh.n, 4, 4), dtype=steps.dtype)
    for j, parent in enumerate(dh.parents.tolist()):
        if parent >= 0:
            frames[..., :j, j, :, :] = frames[..., :j, parent, :, :] @ steps[..., None, j, :, :]
        frames[..., j, j, :, :] = np.eye(4)
    return frames


def joint_operators(dh: DHTable) -> NDArray:
    """
    Return Q_i (n, 4, 4): the derivative of a transform to frame i by q_i is it times Q_i.

    Fu, Gonzalez and Lee 1987, (3.2-7), (3.2-9): a quarter turn about z_i, or a step along it.
    """
    operators = np.zeros((dh.n, 4, 4))
    operators[~dh.prismatic, :2, :2] = [[0, -1], [1, 0]]
    operators[dh.prismatic, 2, 3] = 1
    return operators


def step_transforms(dh: DHTable, q: NDArray) -> NDArray:
    """
    Return frame i in the frame before it, (..., n, 4, 4), for q (..., n).

    ``dh`` is a modified table.
    """
    rotations, origins = joint_transforms(dh, q)
    steps = np.zeros((*q.shape, 4, 4), dtype=rotations.dtype)
    steps[..., :3, :3] = rotations
    steps[..., :3, 3] = origins
    steps[..., 3, 3] = 1
    return steps


def joint_transforms(dh: DHTable, q: NDArray) -> tuple[NDArray, NDArray]:
    """
    Return rotation (..., n, 3, 3) and origin (..., n, 3) [m] of frame i in the one before it.

    ``dh`` is a modified table, q (..., n) the joint positions [rad or m].
    """
    c, s = (x[..., None] for x in cosines_and_sines(dh, q))
    d = np.where(dh.prismatic, q + dh.d, dh.d)[..., None]
    x, y, z = (dh.constant_rotations[:, :, k] for k in range(3))
    rotation = np.empty((*q.shape, 3, 3), dtype=c.dtype)
    rotation[..., 0] = c * x + s * y
    rotation[..., 1] = c * y - s * x
    rotation[..., 2] = z
    return rotation, d * z + dh.constant_steps


def cosines_and_sines(dh: DHTable, q: NDArray) -> tuple[NDArray, NDArray]:
    """Return cos and sin of theta (..., n), which a prismatic joint's position does not enter."""
    # Each with its own constants: those of an array of objects are plain floats.
    turned = q + dh.theta
    return (
        np.where(dh.prismatic, np.cos(dh.theta), np.cos(turned)),
        np.where(dh.prismatic, np.sin(dh.theta), np.sin(turned)),
    )
