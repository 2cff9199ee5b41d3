# SPDX-License-Identifier: Apache-2.0
"""
Which coefficients of the dynamic model an arm has (Tourassis and Neuman 1985).

The independent coefficients are d_ii, d_ij for i < j, c_jj(i) for i != j, two c_jm(i) for each
three joints (the others follow by (38), (39)), and G_i: Table 2. Those that vanish at all
configurations, by the geometry of the axes and of the masses, do not count: Table 3.

Whether a coefficient vanishes is decided at seeded configurations, where one that does not vanish
everywhere is zero with probability zero. Every coefficient is weighed against the most that
Cauchy and Schwarz allow it there, with m_i the mass of links i to n and g the gravity:

    |d_ij| <= sqrt(d_ii d_jj)                         the coefficient of coupling, (32)
    |c_jm(i)| <= sqrt(d_ii d_mm)        for j <= m, and zero if joint j is prismatic
    |G_i| <= |g| sqrt(m_i d_ii)

Such a fraction is a pure number from 0 to 1: a coefficient counts if it exceeds the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.analysis.quantities import inertia_unit, quotient, symbol
from robodyn_ros.arguments import checked_number
from robodyn_ros.dynamics.lagrangian_coefficients import (
    christoffel_symbols,
    gravitational_coefficients,
    inertial_coefficients,
)
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.model import RobotModel, checked_model, force_unit
from robodyn_ros.record import Record, Table
from robodyn_ros.spatial import pseudo_inertia

Kind = Literal['self-inertial', 'mutual inertial', 'centrifugal', 'Coriolis', 'gravitational']
KINDS: tuple[Kind, ...] = get_args(Kind)
CARTESIAN_SPARSITY = 4 / 17
_CONFIGURATIONS = 24
_SEED = 11
# A self-inertial coefficient under this fraction of the second moments that it is computed from is
# rounding: no link beyond the joint has any inertia about it.
_NO_INERTIA = 1e-13


@dataclass(frozen=True, eq=False, repr=False)
class Coefficient(Record):
    """
    An independent coefficient of the dynamic model.

    Attributes
    ----------
    symbol : str
        d_ij, c_jm(i) or G_i, with joints numbered from 1.
    kind : {'self-inertial', 'mutual inertial', 'centrifugal', 'Coriolis', 'gravitational'}
    unit : str
    fraction : float
        The largest fraction, 0 to 1, of what it could be.
    nonzero : bool
    joints : tuple of str
        Those it depends on; none if it is constant.
    """

    symbol: str
    kind: Kind
    unit: str
    fraction: float
    nonzero: bool
    joints: tuple[str, ...]

    @property
    def constant(self) -> bool:
        """Whether it is the same, and not zero, at all configurations."""
        return self.nonzero and not self.joints


@dataclass(frozen=True, eq=False, repr=False)
class Count(Record):
    """How many independent coefficients of a kind there are, are not zero, and are constant."""

    kind: Kind
    independent: int
    nonzero: int
    constant: int


@dataclass(frozen=True, eq=False, repr=False)
class InertialCharacteristics(Record):
    """
    The coefficients of an arm; made by ``inertial_characteristics``.

    Attributes
    ----------
    joint_names : tuple of str
    tolerance : float
        Fractions up to it count as zero.
    coefficients : tuple of Coefficient
        All independent ones.
    counts : tuple of Count
        One for each kind, as in Tables 2 and 3.
    sparsity : float
        Nonzero by independent coefficients.
    degree_of_anthropomorphism : float
        Revolute joints by joints, N_R / N.
    empirical_sparsity : float
        4/17 [1 + (N_R / N)^2]^2, what the arms of Table 3 obey; their 0.235 is 4/17.
    largest_zero_fraction, smallest_fraction : float
        On either side of the tolerance: far apart, the structure is certain.
    """

    joint_names: tuple[str, ...]
    tolerance: float
    coefficients: tuple[Coefficient, ...]
    counts: tuple[Count, ...]
    sparsity: float
    degree_of_anthropomorphism: float
    empirical_sparsity: float
    largest_zero_fraction: float
    smallest_fraction: float

    @property
    def total(self) -> int:
        """Number of nonzero independent coefficients."""
        return sum(count.nonzero for count in self.counts)

    def __getitem__(self, symbol: str) -> Coefficient:
        for each in self.coefficients:
            if each.symbol == symbol:
                return each
        known = ', '.join(each.symbol for each in self.coefficients)
        raise InvalidArgument('coefficient', symbol, known)

    def __str__(self) -> str:
        lines = [f'{a:16}{b:>12}{c:>9}{d:>10}'.rstrip() for a, b, c, d in self._rows()]
        return '\n'.join([*lines, self._summary()])

    def _tables(self) -> Iterable[Table]:
        header, *rows = self._rows()
        return [Table(header, rows, self._summary())]

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        yield 'coefficients', 'independent', 'nonzero', 'constant'
        for c in self.counts:
            yield c.kind, str(c.independent), str(c.nonzero), str(c.constant)
        independent = sum(count.independent for count in self.counts)
        yield 'total', str(independent), str(self.total), ''

    def _summary(self) -> str:
        return (
            f'sparsity {self.sparsity:.3f} (empirical formula {self.empirical_sparsity:.3f}), '
            f'degree of anthropomorphism {self.degree_of_anthropomorphism:.3g}'
        )


def inertial_characteristics(
    model: RobotModel, *, tolerance: float = 1e-9
) -> InertialCharacteristics:
    """
    Return the structure of an arm's dynamic model.

    Parameters
    ----------
    model : RobotModel
        Rotor inertia is left out: it would only add a constant to d_ii.
    tolerance : float
        Fractions up to it count as zero. The default leaves room for rounding only: axes that a
        description calls perpendicular by writing 1.5708 are not, by 4e-6; at 1e-4 they are.
    """
    n = checked_model(model).n
    tolerance = checked_number('tolerance', tolerance)
    generator = np.random.default_rng(_SEED)
    at = generator.uniform(-1, 1, (_CONFIGURATIONS, n)) * np.where(model.dh.prismatic, 1.0, np.pi)
    # Slab 0 holds the configurations, slab k + 1 the same with joint k elsewhere.
    q = np.repeat(at[None], n + 1, axis=0)
    joints = np.arange(n)
    q[joints + 1, :, joints] += generator.uniform(0.5, 2.5, (n, _CONFIGURATIONS))
    fractions = _Fractions(model, q)
    names = np.array(model.joint_names)
    coefficients = []
    for name, kind, unit, values in fractions.independent():
        fraction = float(np.abs(values[0]).max())
        moved = np.abs(values[1:] - values[0]).max(axis=-1) > tolerance
        nonzero = fraction > tolerance
        depends = tuple(map(str, names[moved])) if nonzero else ()
        coefficients.append(Coefficient(name, kind, unit, fraction, nonzero, depends))
    counts = tuple(_count(kind, coefficients) for kind in KINDS)
    found = [x.fraction for x in coefficients if x.nonzero]
    anthropomorphism = float((~model.dh.prismatic).mean())
    return InertialCharacteristics(
        joint_names=model.joint_names,
        tolerance=tolerance,
        coefficients=tuple(coefficients),
        counts=counts,
        sparsity=len(found) / len(coefficients),
        degree_of_anthropomorphism=anthropomorphism,
        empirical_sparsity=CARTESIAN_SPARSITY * (1 + anthropomorphism**2) ** 2,
        largest_zero_fraction=max(
            (x.fraction for x in coefficients if not x.nonzero), default=0.0
        ),
        smallest_fraction=min(found, default=1.0),
    )


class _Fractions:
    """The coefficients at q (k, N, n) as fractions of what Cauchy and Schwarz allow."""

    def __init__(self, model: RobotModel, q: NDArray) -> None:
        self.prismatic = model.dh.prismatic
        d = inertial_coefficients(model, q)
        mass = model.inertial_parameters[:, 9] @ model.dh.carries
        inertia = np.diagonal(d, axis1=-2, axis2=-1).max(axis=(0, 1))
        inertia = np.where(inertia > _NO_INERTIA * _second_moment(model), inertia, 0.0)
        # The largest at all configurations, so that one that does depend on them is seen to.
        root = np.sqrt(inertia)
        pull = np.linalg.norm(model.gravity) * np.sqrt(np.maximum(mass, 0.0)) * root
        self.d = quotient(d, np.outer(root, root))
        self.g = quotient(gravitational_coefficients(model, q), pull)
        self.c = christoffel_symbols(model, q)
        self.root = root

    def independent(self) -> Iterator[tuple[str, Kind, str, NDArray]]:
        """Yield symbol, kind, unit and fractions (k, N) of every independent coefficient."""
        n = len(self.prismatic)
        for i in range(n):
            yield symbol('d', i, i), KINDS[0], self._unit(i, i), self.d[..., i, i]
        for i, j in combinations(range(n), 2):
            yield symbol('d', i, j), KINDS[1], self._unit(i, j), self.d[..., i, j]
        for i in range(n):
            for j in range(n):
                if i != j:
                    yield self._christoffel(KINDS[2], i, j, j)
        for a, b, c in combinations(range(n), 3):
            yield self._christoffel(KINDS[3], a, b, c)
            yield self._christoffel(KINDS[3], b, a, c)
        for i in range(n):
            yield symbol('G', i), KINDS[4], force_unit(self.prismatic[i]), self.g[..., i]

    def _christoffel(self, kind: Kind, i: int, j: int, m: int) -> tuple[str, Kind, str, NDArray]:
        fraction = quotient(self.c[..., i, j, m], self.root[i] * self.root[max(j, m)])
        return symbol('c', j, m, of=i), kind, self._unit(i, j, m), fraction

    def _unit(self, *joints: int) -> str:
        return inertia_unit(self.prismatic[list(joints)])


def _second_moment(model: RobotModel) -> float:
    """Return the size of what inertias are sums of [kg m², or kg]: mass and squared lengths."""
    second = np.trace(pseudo_inertia(model.inertial_parameters)[:, :3, :3], axis1=1, axis2=2)
    reach = 1.0 + float(np.abs(model.dh.a).sum() + np.abs(model.dh.d).sum())
    return float(second.sum() + model.inertial_parameters[:, 9].sum() * reach**2)


def _count(kind: Kind, coefficients: list[Coefficient]) -> Count:
    found = [x for x in coefficients if x.kind == kind]
    return Count(kind, len(found), sum(x.nonzero for x in found), sum(x.constant for x in found))
