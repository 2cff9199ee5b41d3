# SPDX-License-Identifier: Apache-2.0
"""The standard parameters of an arm, in the order of the regressor's columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters.regressor import regressor
from robodyn_ros.spatial import FloatArray

PARAMETER_NAMES = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'mX', 'mY', 'mZ', 'm')
_UNITS = ('kg m²',) * 6 + ('kg m',) * 3 + ('kg',)
_JOINT_UNITS = {
    'Ia': ('kg m²', 'kg'),
    'Fv': ('N m s/rad', 'N s/m'),
    'Fc': ('N m', 'N'),
}


@dataclass(frozen=True, eq=False, repr=False)
class StandardParameters(ArrayRecord):
    """
    Ten parameters a link; on request rotor inertia Ia, viscous Fv and Coulomb friction Fc.

    Order: XX XY XZ YY YZ ZZ mX mY mZ m of link 1, of link 2 and so on (Gautier and Khalil 1988,
    eqs. 3 and 4), then Ia of all joints, then Fv and then Fc of all joints.

    Attributes
    ----------
    model : RobotModel
    rotor_inertia, friction : bool
    """

    model: RobotModel
    rotor_inertia: bool = False
    friction: bool = False

    @property
    def count(self) -> int:
        """Number of parameters."""
        return len(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """XX1 ... m1 XX2 ... mn, Ia1 ... Ian, Fv1 ... Fvn, Fc1 ... Fcn."""
        joints = range(1, self.model.n + 1)
        of_links = [f'{name}{j}' for j in joints for name in PARAMETER_NAMES]
        return (*of_links, *(f'{name}{j}' for name in self._of_joints for j in joints))

    @cached_property
    def values(self) -> FloatArray:
        """The model's values (count,), in the parameters' units."""
        parts = [self.model.inertial_parameters.ravel()]
        if self.rotor_inertia:
            parts.append(self.model.rotor_inertia)
        if self.friction:
            parts += [self.model.viscous_friction, self.model.coulomb_friction]
        return np.concatenate(parts)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The parameters' units."""
        of_joints = (
            _JOINT_UNITS[name][int(prismatic)]
            for name in self._of_joints
            for prismatic in self.model.dh.prismatic
        )
        return (*_UNITS * self.model.n, *of_joints)

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The links that the parameters belong to: those that joints 1 to n carry."""
        moved = [''] * self.model.n
        for link, (body, _) in self.model.link_frames.items():
            if body >= 0 and not moved[body]:
                moved[body] = link  # the joint's child comes before what is fixed to it
        return tuple(moved[self.joint_of(k)] for k in range(self.count))

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> NDArray:
        """Return the regressor (..., n, count) whose columns these parameters multiply."""
        return regressor(
            self.model, q, qd, qdd, rotor_inertia=self.rotor_inertia, friction=self.friction
        )

    def joint_of(self, column: int) -> int:
        """Return the index, from 0, of the joint that carries a parameter."""
        n = self.model.n
        return column // 10 if column < 10 * n else (column - 10 * n) % n

    @property
    def _of_joints(self) -> list[str]:
        return ['Ia'] * self.rotor_inertia + ['Fv', 'Fc'] * self.friction


def regrouped_name(name: str) -> str:
    """Return the paper's name of a parameter that others are regrouped into: XXR2 for XX2."""
    letters = name.rstrip('0123456789')
    return f'{letters}R{name[len(letters) :]}'
