# SPDX-License-Identifier: Apache-2.0
"""
The prior of a link: the URDF's pseudo-inertia, made positive definite.

The pseudo-inertia P (4, 4) of a link is positive definite exactly if some distribution of positive
mass has these ten inertial parameters (Wensing, Kim and Slotine 2018). How far P lies from the
prior P0 is measured by tr(P0⁻¹ P) - log det(P0⁻¹ P) - 4, which no change of units or of
coordinates changes (Lee, Wensing and Park 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.description.records import Finding, warning
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray, parameters_of_pseudo_inertia, pseudo_inertia

# How far the URDF's bodies are thought to be off, relative.
BODIES_DEVIATION = 0.25
# How far a load's mass may be from the tip link's origin [m].
LOAD_REACH = 0.3
# A body's smallest radius of gyration, over which its mass is spread along any direction [m]: of a
# link whose inertia is that of a body, and of one whose inertia tells nothing.
_LEAST_RADIUS = 0.02
_UNKNOWN_RADIUS = 0.08
# Of a link without mass: so much of the mean of the others' masses, or so much [kg].
_FRACTION_OF_MASS = 0.1
_MASS = 1.0
_NEGLIGIBLE_MASS = 1e-6
_NEGLIGIBLE_RADIUS = 1e-3

# Symmetric matrices (4, 4) as vectors (10,) of the same length: elements off the diagonal times
# the square root of two.
_ROWS, _COLUMNS = np.tril_indices(4)
_FACTORS = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))
BASIS = np.zeros((10, 4, 4))
BASIS[np.arange(10), _ROWS, _COLUMNS] = BASIS[np.arange(10), _COLUMNS, _ROWS] = 1.0 / np.where(
    _ROWS == _COLUMNS, 1.0, np.sqrt(2.0)
)
# From such a vector of a pseudo-inertia to the ten inertial parameters.
PARAMETERS = parameters_of_pseudo_inertia(BASIS).T


@dataclass(frozen=True, eq=False)
class Prior:
    """
    What is assumed of the links before anything is measured.

    Attributes
    ----------
    pseudo_inertia : array, shape (n, 4, 4)
        Of the links, positive definite.
    strength : float
        gamma = 1 / (4 deviation²)
    """

    pseudo_inertia: FloatArray
    strength: float

    @property
    def inertial_parameters(self) -> FloatArray:
        """Ten parameters of each link, array, shape (n, 10)."""
        return parameters_of_pseudo_inertia(self.pseudo_inertia)


def vector_of(matrix: FloatArray) -> FloatArray:
    """Return symmetric matrices (..., 4, 4) as vectors (..., 10) with the same inner product."""
    return matrix[..., _ROWS, _COLUMNS] * _FACTORS


def matrix_of(vector: FloatArray) -> FloatArray:
    """Return the symmetric matrices (..., 4, 4) of vectors (..., 10)."""
    return np.tensordot(vector, BASIS, axes=(-1, 0))


def congruence(factor: FloatArray) -> FloatArray:
    """Return the matrices (..., 10, 10) that take the vector of E to that of B E Bᵀ."""
    b = factor[..., None, :, :]
    return np.swapaxes(vector_of(b @ BASIS @ np.swapaxes(b, -1, -2)), -1, -2)


def prior_pseudo_inertia(model: RobotModel) -> tuple[FloatArray, tuple[Finding, ...]]:
    """
    Return the links' pseudo-inertias (n, 4, 4) made positive definite, and what was in the way.

    Second moments about the centre of mass are raised to those of a body with a radius of gyration
    of 2 cm, of 8 cm where the inertia is none, and a link without mass gets a tenth of the mean of
    the others': numbers to begin with, not to end with.
    """
    pseudo = pseudo_inertia(model.inertial_parameters)
    masses = pseudo[:, 3, 3]
    positive = masses[masses > _NEGLIGIBLE_MASS]
    invented = _FRACTION_OF_MASS * float(positive.mean()) if len(positive) else _MASS
    findings = []
    result = np.empty_like(pseudo)
    for i, name in enumerate(model.joint_names):
        mass = float(masses[i])
        if mass <= _NEGLIGIBLE_MASS:
            message = (
                f'the link behind joint {name!r} has no mass in the URDF; {invented:.3g} kg '
                'were assumed to begin with'
            )
            findings.append(
                warning('prior_without_mass', f'link behind joint {name!r}', mass, message)
            )
            result[i] = invented * np.diag([*3 * [_UNKNOWN_RADIUS**2], 1.0])
            continue
        result[i], smallest, possible = made_positive(pseudo[i])
        if not possible:
            message = (
                f'the link behind joint {name!r} has an inertia in the URDF that no body has; '
                'the nearest was assumed'
            )
            findings.append(
                warning('prior_without_inertia', f'link behind joint {name!r}', smallest, message)
            )
    return result, tuple(findings)


def made_positive(pseudo: FloatArray) -> tuple[FloatArray, float, bool]:
    """
    Return a pseudo-inertia (4, 4) that is positive definite, and what was wrong with the old one.

    Parameters
    ----------
    pseudo : array, shape (4, 4)
        With a mass.

    Returns
    -------
    pseudo_inertia : array, shape (4, 4)
    smallest : float
        Square of the old one's smallest radius of gyration [m²].
    possible : bool
        Whether the old one is a body's, or so nearly that rounding may have made the difference.
    """
    mass = float(pseudo[3, 3])
    center = pseudo[:3, 3] / mass
    squares, axes = np.linalg.eigh(pseudo[:3, :3] / mass - np.outer(center, center))
    unknown = squares[-1] <= _NEGLIGIBLE_RADIUS**2
    least = _UNKNOWN_RADIUS**2 if unknown else _LEAST_RADIUS**2
    spread = (axes * np.maximum(squares, least)) @ axes.T
    result = np.empty((4, 4))
    result[:3, :3] = mass * (spread + np.outer(center, center))
    result[:3, 3] = result[3, :3] = mass * center
    result[3, 3] = mass
    return result, float(squares[0]), not (squares[0] < -1e-9 or unknown)
