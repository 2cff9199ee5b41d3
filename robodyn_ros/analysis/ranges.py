# SPDX-License-Identifier: Apache-2.0
"""
How far inertia and gravity load vary at each joint (Bejczy 1974, Tables 1 and 2).

Bejczy picked the arm's positions by physical reasoning. Here the extremes are searched for over
the joint limits; his minimum of D_22, 3.59 kg m², keeps a term that vanishes there: it is 3.56.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.analysis.inertial_characteristics import inertial_characteristics
from robodyn_ros.analysis.joint_space import Extreme, JointSpace, Limits
from robodyn_ros.analysis.quantities import inertia_unit, symbol
from robodyn_ros.dynamics.lagrangian_coefficients import gravitational_coefficients
from robodyn_ros.dynamics.mass_matrix import composite_mass_matrix
from robodyn_ros.model import Payload, RobotModel, force_unit, position_unit
from robodyn_ros.record import Record, Table


@dataclass(frozen=True, eq=False, repr=False)
class Range(Record):
    """
    A quantity's extremes over the joint space.

    Attributes
    ----------
    symbol, joint, unit : str
        The joint on which it acts.
    depends_on : tuple of str
        Joints.
    smallest, largest : Extreme
    """

    symbol: str
    joint: str
    unit: str
    depends_on: tuple[str, ...]
    smallest: Extreme
    largest: Extreme

    @property
    def peak(self) -> Extreme:
        """The extreme of larger magnitude, as it is signed."""
        below = -self.smallest.value > self.largest.value
        return self.smallest if below else self.largest

    @property
    def relative(self) -> float | None:
        """Largest by smallest, of a quantity that is positive; else None."""
        return self.largest.value / self.smallest.value if self.smallest.value > 0 else None

    _row_header = ('quantity', 'joint', 'smallest', 'largest', 'unit')

    def _row(self) -> list[str]:
        extremes = (f'{each.value:.4g}' for each in (self.smallest, self.largest))
        return [self.symbol, self.joint, *extremes, self.unit]

    def __str__(self) -> str:
        return (
            f'{self.symbol} at {self.joint}: {self.smallest.value:.4g} to '
            f'{self.largest.value:.4g} {self.unit}'
        )


@dataclass(frozen=True, eq=False, repr=False)
class Ranges(Record):
    """
    The ranges of D_ii, rotor inertia included, and of G_i; made by ``ranges``.

    Attributes
    ----------
    joint_names, position_units : tuple of str
    limits : tuple of (lower, upper)
        [rad or m], where was searched.
    inertia, gravity : tuple of Range
        Of each joint, without the payload.
    loaded_inertia, loaded_gravity : tuple of Range or None
        With the payload, where one was given.
    """

    joint_names: tuple[str, ...]
    position_units: tuple[str, ...]
    limits: tuple[tuple[float, float], ...]
    inertia: tuple[Range, ...]
    gravity: tuple[Range, ...]
    loaded_inertia: tuple[Range, ...] | None = None
    loaded_gravity: tuple[Range, ...] | None = None

    def _parts(self) -> Iterable[tuple[str, tuple[Range, ...]]]:
        yield '', (*self.inertia, *self.gravity)
        if self.loaded_inertia or self.loaded_gravity:
            yield 'with the payload', (*(self.loaded_inertia or ()), *(self.loaded_gravity or ()))

    def _tables(self) -> Iterable[Table]:
        for caption, found in self._parts():
            yield Table(Range._row_header, [each._row() for each in found], caption)

    def __str__(self) -> str:
        lines = (line for title, found in self._parts() for line in (title, *map(str, found)))
        return '\n'.join(filter(None, lines))


def ranges(
    model: RobotModel, *, payload: Payload | None = None, limits: Limits | None = None
) -> Ranges:
    """
    Return the extremes of D_ii and G_i over the joint limits, and where they occur.

    Parameters
    ----------
    model : RobotModel
    payload : Payload, optional
        To search again with it.
    limits : mapping of joint name to (lower, upper), optional
        See ``JointSpace.of``, which also says what is raised.

    Raises
    ------
    InvalidArgument, NonFiniteValue, NoSuchName
        Of the payload, the joints or the number of samples.
    """
    joint_space = JointSpace.of(model, limits)
    carrying = None if payload is None else model.with_payload(payload)
    inertia, gravity = _ranges_of(model, joint_space)
    loaded = None if carrying is None else _ranges_of(carrying, joint_space)
    return Ranges(
        joint_names=model.joint_names,
        position_units=tuple(position_unit(x) for x in model.dh.prismatic),
        limits=tuple((float(a), float(b)) for a, b in zip(joint_space.lower, joint_space.upper)),
        inertia=inertia,
        gravity=gravity,
        loaded_inertia=loaded and loaded[0],
        loaded_gravity=loaded and loaded[1],
    )


def _ranges_of(
    model: RobotModel, joint_space: JointSpace
) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    structure = inertial_characteristics(model)
    prismatic = model.dh.prismatic

    def found(letter: str, i: int, unit: str, function: Callable[[NDArray], NDArray]) -> Range:
        indices = (i, i) if letter == 'd' else (i,)
        depends_on = structure[symbol(letter, *indices)].joints
        joints = [k for k, name in enumerate(model.joint_names) if name in depends_on]
        extremes = joint_space.extremes(function, joints)
        name = symbol(letter.upper(), *indices)
        return Range(name, model.joint_names[i], unit, depends_on, *extremes)

    def self_inertia(i: int) -> Callable[[NDArray], NDArray]:
        return lambda q: composite_mass_matrix(model, q)[:, i, i] + model.rotor_matrix[i, i]

    def gravity_load(i: int) -> Callable[[NDArray], NDArray]:
        if not structure[symbol('G', i)].nonzero:
            return lambda q: np.zeros(len(q))
        return lambda q: gravitational_coefficients(model, q)[:, i]

    joints = range(model.n)
    return (
        tuple(found('d', i, inertia_unit(prismatic[[i, i]]), self_inertia(i)) for i in joints),
        tuple(found('G', i, force_unit(prismatic[i]), gravity_load(i)) for i in joints),
    )
