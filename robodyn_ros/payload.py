# SPDX-License-Identifier: Apache-2.0
"""A body that an arm carries."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array, checked_type
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray, inertial_parameters


@dataclass(frozen=True, eq=False, repr=False)
class Payload(Record):
    """
    A body fixed to a link.

    Parameters
    ----------
    mass : float
        [kg], zero or more.
    center_of_mass : array-like, shape (3,)
        [m], in the frame of ``link``.
    inertia : array-like, shape (3, 3)
        [kg m²], about the centre of mass, along the axes of ``link``; zero where not given.
    link : str, optional
        The link that carries it; the tip link where not given.

    Raises
    ------
    NonFiniteValue, InvalidArgument
        A shape is wrong; negative mass, inertia without mass, or an inertia that no body has.
    """

    mass: float
    center_of_mass: ArrayLike = (0.0, 0.0, 0.0)
    inertia: ArrayLike = field(default_factory=lambda: np.zeros((3, 3)))
    link: str | None = None

    def __post_init__(self) -> None:
        mass = float(checked_array('payload.mass', self.mass, ()))
        inertia = checked_array('payload.inertia', self.inertia, (3, 3))
        _check_plausible(mass, inertia)
        object.__setattr__(self, 'mass', mass)
        object.__setattr__(self, 'inertia', inertia)
        center = checked_array('payload.center_of_mass', self.center_of_mass, (3,))
        object.__setattr__(self, 'center_of_mass', center)
        if self.link is not None:
            checked_type('payload.link', self.link, str, "a link's name")
        super().__post_init__()


def payload_parameters(payload: Payload) -> FloatArray:
    """Return XX XY XZ YY YZ ZZ mX mY mZ m (10,) about the origin of the payload's link."""
    return inertial_parameters(payload.mass, payload.center_of_mass, payload.inertia)


def _check_plausible(mass: float, inertia: FloatArray) -> None:
    if mass < 0:
        raise InvalidArgument('payload mass', mass, 'zero or more', unit='kg')
    size = float(np.abs(inertia).max())
    if size > 0 and mass == 0:
        raise InvalidArgument('payload inertia', inertia.tolist(), 'zero, as its mass is zero')
    if np.abs(inertia - inertia.T).max() > 1e-9 * size:
        raise InvalidArgument('payload inertia', inertia.tolist(), 'a symmetric matrix')
    smallest, middle, largest = np.linalg.eigvalsh(inertia)
    if smallest < -1e-9 * size or largest > (smallest + middle) * (1 + 1e-6) + 1e-12 * size:
        raise InvalidArgument(
            'payload inertia',
            inertia.tolist(),
            'principal moments of which none is negative or exceeds the sum of the other two',
        )
