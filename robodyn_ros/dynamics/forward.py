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
        diagonals = np.diagonal(mass_matrix, axis1=-2, axis2=-1).reshape(-1, mass_matrix.shape[-1])
        least = diagonals.min(axis=0)
        joint = int(np.argmin(least))
        what = f'inertia about joint {joint + 1} is {least[joint]:.3g}'
        if least[joint] > 0:
            what = f'smallest eigenvalue is {np.linalg.eigvalsh(mass_matrix).min():.3g}'
        raise SingularMassMatrix(
            'mass matrix', what, 'positive definite: inertia about every joint (see the findings)'
        ) from error
    return np.linalg.solve(mass_matrix, net_torque[..., None])[..., 0]
