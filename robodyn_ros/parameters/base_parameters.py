# SPDX-License-Identifier: Apache-2.0
"""
The base (minimal) inertial parameters of a robot, from its DH table alone (Gautier, Khalil 1988).

Step a, parameters without effect; step b, regrouping from link n to 1; step c, what more the first
links allow: all three come out of ``elimination`` and ``regrouping`` at once, automatically.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.arguments import checked_array, checked_number
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.parameters.combinations import (
    LengthStyle,
    LinearCombination,
    length_symbol,
    rows_of,
)
from robodyn_ros.parameters.elimination import Elimination, eliminations
from robodyn_ros.parameters.regressor import StandardParameters, excitation
from robodyn_ros.parameters.regrouping import Monomial, evaluated, lengths, regrouped
from robodyn_ros.record import Record, Rows, Table
from robodyn_ros.spatial import FloatArray

# The count is also taken at tolerances so many times smaller and larger: a geometry within that
# distance of a singular one has a count that depends on where the line is drawn.
_TOLERANCE_RANGE = 1e3


@dataclass(frozen=True, eq=False, repr=False)
class BaseParameters(Record):
    """
    The base (minimal) inertial parameters of a model.

    Attributes
    ----------
    standard : StandardParameters
        What they are made of; knows the model.
    columns : tuple of int
        Which columns of the standard regressor remain, base to tip.
    polynomials : mapping of products of lengths to array, shape (count, standard_count)
        The base parameters in terms of the standard ones.
    general_links : tuple of n bool
        Whether the general relations (20), (21) say all about a link, or whether, near the base,
        more is eliminated because the link cannot move in every direction.
    tolerance : float
    """

    standard: StandardParameters
    columns: tuple[int, ...]
    polynomials: Mapping[Monomial, FloatArray]
    general_links: tuple[bool, ...]
    tolerance: float

    def __repr__(self) -> str:
        name = self.standard.model.name
        return f'BaseParameters of {name!r}: {self.count} of {self.standard_count}'

    def __str__(self) -> str:
        return self.text()

    def _tables(self) -> Iterable[Table]:
        rows = rows_of(self.expressions, 'numbers')
        return [Table(LinearCombination._row_header, rows, repr(self))]

    def text(self, lengths: LengthStyle = 'numbers') -> str:
        """
        Return the base parameters as text, link by link: value, unit and formula.

        Parameters
        ----------
        lengths : 'numbers', 'symbols' or 'paper'
            How formulas write lengths; see ``LinearCombination.text``.

        Raises
        ------
        InvalidArgument
        """
        gravity = ', '.join(f'{component:g}' for component in self.standard.model.gravity)
        lines = [
            f'{self.count} base (minimal) parameters out of {self.standard_count} standard ones, '
            f'gravity ({gravity}) m/s²',
            f'condition number {self.conditioning:.3g}; '
            f'regrouping changes the regressor by {self.residual:.1g} of its largest element',
        ]
        if self.depends_on_tolerance:
            fewest, most = self.count_range
            lines.append(
                f'the geometry is close to a singular one: {fewest} to {most} parameters, '
                'depending on the tolerance'
            )
        rows = rows_of(self.expressions, lengths)
        widths = [max((len(row[k]) for row in rows), default=0) for k in range(5)]
        link_before = None
        for link, name, value, unit, formula in rows:
            if link != link_before:
                link_before = link
                lines += ['', link]
            lines.append(
                f'  {name:<{widths[1]}}  {value:>{widths[2]}} {unit:<{widths[3]}}  {formula}'
            )
        lines += ['', f'without effect: {" ".join(self.no_effect) or "none"}']
        if lengths != 'numbers' and self.expressions:
            named = (
                f'{length_symbol(name, lengths)} = {value:.6g}'
                for name, value in self.expressions[0].lengths.items()
            )
            lines.append(f'lengths [m]: {", ".join(named) or "none"}')
        return '\n'.join(lines)

    @property
    def count(self) -> int:
        """Number of base parameters."""
        return len(self.columns)

    @cached_property
    def count_range(self) -> tuple[int, int]:
        """
        Smallest and largest count for tolerances from a thousandth to a thousand times the one.

        Where they differ the geometry is close to a singular one, such as two axes that are nearly
        parallel, and some parameters hardly move the torques.
        """
        levels = (self.tolerance / _TOLERANCE_RANGE, min(self.tolerance * _TOLERANCE_RANGE, 0.1))
        counts = [
            self.standard_count
            - sum(len(link.eliminated) for link in _eliminations(self.standard, level))
            for level in levels
        ]
        return min(self.count, *counts), max(self.count, *counts)

    @property
    def depends_on_tolerance(self) -> bool:
        """Whether the count is a matter of tolerance; see ``count_range``."""
        return self.count_range[0] != self.count_range[1]

    @property
    def standard_count(self) -> int:
        """Number of standard parameters: ten a link, and rotors and friction where asked for."""
        return self.standard.count

    @cached_property
    def regrouping(self) -> FloatArray:
        """The matrix (count, standard_count) from standard to base parameters."""
        matrix = evaluated(self.polynomials, lengths(self.standard.model.dh))
        matrix.setflags(write=False)
        return matrix

    @cached_property
    def names(self) -> tuple[str, ...]:
        """XXR2 where others are regrouped into XX2, XY2 where it stands alone."""
        alone = (self.regrouping != 0.0).sum(axis=1) == 1
        standard = (self.standard.names[k] for k in self.columns)
        return tuple(
            name if single else _regrouped_name(name)
            for name, single in zip(standard, alone, strict=True)
        )

    @cached_property
    def values(self) -> FloatArray:
        """Values (count,) for the model's parameters [kg m², kg m, kg and friction units]."""
        values = self.regrouping @ self.standard.values
        values.setflags(write=False)
        return values

    @cached_property
    def no_effect(self) -> tuple[str, ...]:
        """Names of the unidentifiable standard parameters: they act on no torque in any motion."""
        unused = ~(self.regrouping != 0.0).any(axis=0)
        return tuple(name for name, none in zip(self.standard.names, unused, strict=True) if none)

    @cached_property
    def expressions(self) -> Rows[LinearCombination]:
        """Each base parameter as a linear combination of standard ones."""
        terms: list[dict[int, dict[tuple[str, ...], float]]] = [{} for _ in self.columns]
        for monomial, array in sorted(self.polynomials.items()):
            for row, column in np.argwhere(array):
                if self.regrouping[row, column] != 0.0:
                    factors = terms[row].setdefault(int(column), {})
                    factors[monomial] = float(array[row, column])
        known_lengths = lengths(self.standard.model.dh)
        result = []
        for k, column in enumerate(self.columns):
            order = [column, *sorted(terms[k].keys() - {column})]
            result.append(
                LinearCombination(
                    name=self.names[k],
                    link=self.standard.links[column],
                    unit=self.standard.units[column],
                    value=float(self.values[k]),
                    terms={self.standard.names[other]: terms[k][other] for other in order},
                    lengths=known_lengths,
                )
            )
        return Rows(result)

    @cached_property
    def conditioning(self) -> float:
        """
        Condition number of the base regressor over a seeded excitation, columns normalised.

        A measure of the structure, not of any trajectory that a robot was made to follow.
        """
        stacked = self._excited[..., self.columns].reshape(-1, self.count)
        if self.count == 0:
            return 1.0
        singular = np.linalg.svd(stacked / np.linalg.norm(stacked, axis=0), compute_uv=False)
        return float(singular[0] / singular[-1])

    @cached_property
    def residual(self) -> float:
        """
        Largest difference that regrouping makes to the regressor over a seeded excitation.

        Relative to the regressor's largest element: rounding, or of the order of the tolerance.
        """
        difference = self._excited[..., self.columns] @ self.regrouping - self._excited
        return float(np.abs(difference).max() / max(np.abs(self._excited).max(), 1e-300))

    @cached_property
    def _excited(self) -> FloatArray:
        return self.standard.regressor(*excitation(self.standard.model))

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> NDArray:
        """
        Return the base regressor, which times ``values`` is the joint torque.

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Joint positions, velocities and accelerations [rad or m, and per s, s²].

        Returns
        -------
        array, shape (n, count) or (N, n, count)

        Raises
        ------
        InvalidArgument, NonFiniteValue
        """
        return self.standard.regressor(q, qd, qdd)[..., self.columns]

    def to_inertial_parameters(self, values: ArrayLike | None = None) -> FloatArray:
        """
        Return ten parameters for every link (n, 10) that give the same torques.

        For programs that need ten for each link. The eliminated ones are zero, so that a link may
        have first moments and no mass: no real body, and no set to compute a kinetic energy of
        single links from. ``to_rotor_inertia`` completes it where rotors count.

        Parameters
        ----------
        values : array-like, shape (count,), optional
            Base parameters, identified ones for example; the model's own where not given.

        Raises
        ------
        InvalidArgument, NonFiniteValue
        """
        return self._spread(values)[: 10 * self.standard.model.n].reshape(-1, 10)

    def to_rotor_inertia(self, values: ArrayLike | None = None) -> FloatArray:
        """
        Return the rotor inertias (n,) that go with ``to_inertial_parameters``.

        Parameters
        ----------
        values : array-like, shape (count,), optional
            As in ``to_inertial_parameters``.

        Raises
        ------
        InvalidArgument, NonFiniteValue
        """
        n = self.standard.model.n
        if not self.standard.rotor_inertia:
            return np.zeros(n)
        return self._spread(values)[10 * n : 11 * n]

    def _spread(self, values: ArrayLike | None) -> FloatArray:
        if values is not None:
            values = checked_array('values', values, (self.count,))
        result = np.zeros(self.standard_count)
        result[list(self.columns)] = self.values if values is None else values
        return result


def base_parameters(
    model: RobotModel,
    *,
    tolerance: float = 1e-9,
    rotor_inertia: bool | None = None,
    friction: bool = False,
) -> BaseParameters:
    """
    Return the base (minimal) inertial parameters: the fewest that the joint torques depend on.

    Parameters
    ----------
    model : RobotModel
        Its geometry and the direction of gravity decide which they are.
    tolerance : float
        What reaches the torques with less than this, relative, counts as without effect.
    rotor_inertia : bool, optional
        Count the rotor inertias among the parameters; where not given, if the model has any.
    friction : bool
        Count viscous and Coulomb coefficients; they never regroup.

    Returns
    -------
    BaseParameters

    Raises
    ------
    InvalidArgument
        The tolerance is not between 0 and 1.

    Notes
    -----
    Closed form: no sampling, no random numbers. ``residual`` and ``conditioning`` verify it on a
    seeded excitation, when asked for. Holds for every open chain and tree of revolute and
    prismatic joints, gravity in any direction or none.

    References
    ----------
    Gautier and Khalil 1988, sections 5 to 8.
    """
    checked_model(model)
    tolerance = checked_number('tolerance', tolerance)
    if not 0.0 < tolerance < 1.0:
        raise InvalidArgument('argument tolerance', tolerance, 'between 0 and 1')
    if rotor_inertia is None:
        rotor_inertia = bool(model.rotor_inertia.any())
    standard = StandardParameters(model, rotor_inertia, friction)
    taken = _eliminations(standard, tolerance)
    n = model.n
    gone = {
        10 * j + k if k < 10 else 10 * n + j
        for j, link in enumerate(taken)
        for k in link.eliminated
    }
    columns = [k for k in range(standard.count) if k not in gone]
    polynomials = {
        monomial: rows
        for monomial, array in regrouped(model.dh, taken, standard.count).items()
        if (rows := array[columns]).any()
    }
    return BaseParameters(
        standard=standard,
        columns=tuple(columns),
        polynomials=polynomials,
        general_links=tuple(link.general for link in taken),
        tolerance=tolerance,
    )


def _eliminations(standard: StandardParameters, tolerance: float) -> list[Elimination]:
    model = standard.model
    return eliminations(
        model.dh, model.gravity, tolerance=tolerance, rotor_inertia=standard.rotor_inertia
    )


def parameters_record(base: BaseParameters) -> dict[str, Any]:
    """Return the base parameters for JSON: numbers, strings, lists and dicts only."""
    model = base.standard.model
    lengths = dict(base.expressions[0].lengths) if base.expressions else {}
    return {
        'joint_names': list(model.joint_names),
        'gravity': model.gravity.tolist(),
        'count': base.count,
        'classical_count': base.standard_count,
        'count_range': list(base.count_range),
        'depends_on_tolerance': base.depends_on_tolerance,
        'tolerance': base.tolerance,
        'conditioning': base.conditioning,
        'residual': base.residual,
        'lengths': lengths,
        'parameters': [_expression_record(each) for each in base.expressions],
        'no_effect': list(base.no_effect),
    }


def _expression_record(found: LinearCombination) -> dict[str, Any]:
    return {
        'name': found.name,
        'link': found.link,
        'unit': found.unit,
        'value': found.value,
        'expression': found.text(),
        'terms': [
            {
                'parameter': name,
                'coefficient': found.number_of(coefficient),
                'polynomial': [
                    {'factor': factor, 'lengths': list(monomial)}
                    for monomial, factor in coefficient.items()
                ],
            }
            for name, coefficient in found.terms.items()
        ],
    }


def _regrouped_name(name: str) -> str:
    """Return the paper's name of a parameter that others are regrouped into: XXR2 for XX2."""
    letters = name.rstrip('0123456789')
    return f'{letters}R{name[len(letters) :]}'
