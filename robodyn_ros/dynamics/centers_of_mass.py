# SPDX-License-Identifier: Apache-2.0
"""Mass, centre of mass and central inertia of each link, for formulations written in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.errors import InvalidArgument, shown
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import inertia_tensor, skew


def centers_of_mass(model: RobotModel) -> tuple[NDArray, NDArray, NDArray]:
    """
    Return masses (n,) [kg], centres of mass (n, 3) [m] and inertias (n, 3, 3) [kg m²] about them.

    All in the axes of each link's DH frame; that of a link with no mass is at the origin.

    Raises
    ------
    InvalidArgument
        A link has first moments but no mass, as regrouped parameters may.
    """
    parameters = model.inertial_parameters
    mass, first_moments = parameters[:, 9], parameters[:, 6:9]
    massless = mass == 0
    for name, first_moment, no_mass in zip(
        model.joint_names, first_moments, massless, strict=True
    ):
        if no_mass and first_moment.any():
            raise InvalidArgument(
                f'mass of the link that joint {name!r} moves',
                0.0,
                f'not zero where the first moments {shown(first_moment)} are not: there is no '
                "centre of mass, which 'newton_euler', for one, does without",
            )
    center = first_moments / np.where(massless, 1.0, mass)[:, None]
    to_center = skew(center)
    return mass, center, inertia_tensor(parameters) + mass[:, None, None] * to_center @ to_center


def outer_pseudo_inertias(to_frame: NDArray, own: NDArray) -> NDArray:
    """
    Return the pseudo-inertia of links j to n as one body, in frame j, (..., n, 4, 4).

    Parameters
    ----------
    to_frame : array, shape (..., n, n, 4, 4)
        Frame j in frame i at [i, j], as ``relative_transforms`` gives it.
    own : array, shape (n, 4, 4)
        Of each link, in its own frame.
    """
    return (to_frame @ own @ np.swapaxes(to_frame, -1, -2)).sum(axis=-3)
