# SPDX-License-Identifier: Apache-2.0
"""
Minimal parameters by numbers: rank-revealing QR of the regressor over a seeded excitation.

Independent of the closed form, and what the tests hold it against. Which columns it keeps is a
matter of numbers; how many, and the space that they span, is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from robodyn_ros.model import RobotModel
from robodyn_ros.parameters.regressor import EXCITATION_SEED, excitation, regressor
from robodyn_ros.spatial import FloatArray


@dataclass(frozen=True, eq=False)
class NumericReduction:
    """
    Independent columns of a regressor.

    Attributes
    ----------
    columns : tuple of int
        Those kept, in ascending order.
    regrouping : array (count, standard_count)
        The regressor is its kept columns times this.
    singular_values : array
        Of the stacked regressor, its columns normalised, relative to the largest; columns that
        are zero up to the tolerance are left out.
    """

    columns: tuple[int, ...]
    regrouping: FloatArray
    singular_values: FloatArray

    @property
    def count(self) -> int:
        """Number of independent columns."""
        return len(self.columns)


def numeric_reduction(
    model: RobotModel,
    *,
    tolerance: float = 1e-9,
    samples: int = 60,
    seed: int = EXCITATION_SEED,
    rotor_inertia: bool = False,
    friction: bool = False,
) -> NumericReduction:
    """
    Return the independent columns of the model's regressor over seeded random states.

    Parameters
    ----------
    model : RobotModel
    tolerance : float
        Relative: columns smaller than this against the largest are dropped, before anything is
        scaled, for a column of rounding errors is independent of all others once normalised;
        then the diagonal of R decides.
    samples, seed : int
        Number of states, and where their random numbers start.
    rotor_inertia, friction : bool
        Take those columns too.
    """
    states = excitation(model, samples, seed)
    full = regressor(model, *states, rotor_inertia=rotor_inertia, friction=friction)
    return reduction(full.reshape(-1, full.shape[-1]), tolerance)


def reduction(stacked: NDArray, tolerance: float = 1e-9) -> NumericReduction:
    """Return the independent columns of a stacked regressor (rows, standard_count)."""
    size = np.linalg.norm(stacked, axis=0)
    present = np.flatnonzero(size > tolerance * size.max(initial=0.0))
    normalised = stacked[:, present] / size[present]
    triangle, order = qr(normalised, mode='r', pivoting=True)
    triangle = triangle[: len(present)]
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > tolerance * diagonal.max(initial=0.0)).sum())
    columns = present[order[:rank]]
    regrouping = np.zeros((rank, stacked.shape[1]))
    regrouping[range(rank), columns] = 1.0
    dependent = present[order[rank:]]
    regrouping[:, dependent] = (
        solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
        * size[dependent]
        / size[columns][:, None]
    )
    singular_values = np.linalg.svd(triangle, compute_uv=False)
    ascending = np.argsort(columns)
    return NumericReduction(
        tuple(int(k) for k in columns[ascending]),
        regrouping[ascending],
        singular_values / singular_values.max(initial=1e-300),
    )
