# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics: M(q) qdd = tau - C(q, qd) qd - g(q)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.errors import SingularMassMatrix


def accelerations(mass_matrix: NDArray, net_torque: NDArray) -> NDArray:
    """
    Return the accelerations (..., n) that ``net_torque`` (..., n) causes.

    Raises
    ------
    SingularMassMatrix
        M (..., n, n) is not positive definite: some link that a joint moves has no inertia.
    """
    try:
        np.linalg.cholesky(mass_matrix)
    except np.linalg.LinAlgError as error:
        raise SingularMassMatrix(
            'mass matrix',
            np.diagonal(mass_matrix, axis1=-2, axis2=-1).tolist(),
            'positive definite: inertia about every joint (see the findings)',
        ) from error
    return np.linalg.solve(mass_matrix, net_torque[..., None])[..., 0]
