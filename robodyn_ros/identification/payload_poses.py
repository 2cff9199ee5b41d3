# SPDX-License-Identifier: Apache-2.0
"""Where an arm should stand to feel what it carries."""

from __future__ import annotations

import numpy as np

from robodyn_ros.identification.carried_body import carried_matrix
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import regressor
from robodyn_ros.spatial import FloatArray

_CANDIDATES = 300
_COUNT = 3
_SEED = 0
# A continuous joint turns anywhere; a sliding one without limits this far [m].
_TURN, _STROKE = np.pi, 0.5
_MARGIN = 0.1


def poses_to_add(
    model: RobotModel, covariance: FloatArray, deviation: FloatArray, count: int = _COUNT
) -> FloatArray:
    """
    Return different poses, shape (count, n), that narrow mass and first moment down, in turn.

    Parameters
    ----------
    model : RobotModel
    covariance : array, shape (4, 4)
        Of first moment and mass as they are known.
    deviation : array, shape (n,)
        Of a joint's torque at rest [N m or N].
    count : int

    Notes
    -----
    Greedy, by the determinant of the covariance, among seeded poses a tenth within the limits.
    """
    low, high = model.position_limits.T
    reach = np.where(model.dh.prismatic, _STROKE, _TURN)
    low, high = np.where(np.isfinite(low), low, -reach), np.where(np.isfinite(high), high, reach)
    margin = _MARGIN * (high - low)
    generator = np.random.default_rng(_SEED)
    q = generator.uniform(low + margin, high - margin, (_CANDIDATES, model.n))
    still = np.zeros_like(q)
    body, matrix = carried_matrix(model)
    columns = regressor(model, q, still, still)[..., 10 * body : 10 * body + 10] @ matrix
    weighed = columns[..., 6:] / deviation[:, None]
    size = np.sqrt(np.diagonal(covariance))
    weighed = weighed * size
    information = np.linalg.pinv(covariance / np.outer(size, size))
    chosen: list[int] = []
    for _ in range(count):
        gains = np.linalg.slogdet(information + np.swapaxes(weighed, 1, 2) @ weighed)[1]
        gains[chosen] = -np.inf
        best = int(gains.argmax())
        chosen.append(best)
        information = information + weighed[best].T @ weighed[best]
    return q[chosen]
