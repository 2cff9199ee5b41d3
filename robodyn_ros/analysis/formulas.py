# SPDX-License-Identifier: Apache-2.0
"""
Coefficients written out: sums of products of sines, cosines and joint positions.

    d_22 = 4.73 - 5.26 q3 + 6.48 q3^2 + 0.23 q3 cos(q5) + ...

A formula can be read, evaluated, differentiated, and put into straight-line code.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.analysis.records import Record
from robodyn_ros.compiled.symbolic.expression import Scalar, sine_and_cosine
from robodyn_ros.notebook import Row, latex_number, latex_symbol
from robodyn_ros.spatial import FloatArray

Function = Literal['position', 'cos', 'sin']


@dataclass(frozen=True, order=True)
class Factor(Record):
    """
    A function of the joint positions, to some power.

    Attributes
    ----------
    function : 'position', 'cos' or 'sin'
        Of the angle sum over k of multiples[k] q[joints[k]], plus phase; 'position' is q itself.
    joints : tuple of int
        From 0, base to tip.
    multiples : tuple of int
    phase : float [rad]
    power : int
    """

    joints: tuple[int, ...]
    function: Function
    multiples: tuple[int, ...] = (1,)
    phase: float = 0.0
    power: int = 1

    def to_power(self, power: int) -> Factor:
        """Return the factor to another power."""
        return Factor(self.joints, self.function, self.multiples, self.phase, power)

    def values(self, q: NDArray) -> NDArray:
        """Return its values (...) at q (..., n)."""
        if self.function == 'position':
            return q[..., self.joints[0]] ** self.power
        angle = q[..., list(self.joints)] @ np.array(self.multiples, dtype=float) + self.phase
        return (np.cos if self.function == 'cos' else np.sin)(angle) ** self.power

    def latex(self) -> str:
        r"""Return it as LaTeX, as ``\cos\left(q_{2} + q_{3}\right)``."""
        names = [rf'q_{{{j + 1}}}' for j in self.joints]
        power = f'^{{{self.power}}}' if self.power > 1 else ''
        if self.function == 'position':
            return names[0] + power
        parts = [_signed(k, name, latex_number) for k, name in zip(self.multiples, names)]
        if self.phase:
            parts.append(_signed(self.phase, '', latex_number))
        angle = ' '.join(parts).removeprefix('+ ')
        return rf'\{self.function}{power}\left({angle}\right)'

    def __str__(self) -> str:
        names = [f'q{j + 1}' for j in self.joints]
        power = f'^{self.power}' if self.power > 1 else ''
        if self.function == 'position':
            return names[0] + power
        parts = [_signed(k, name) for k, name in zip(self.multiples, names)]
        if self.phase:
            parts.append(_signed(self.phase, ''))
        return f'{self.function}({" ".join(parts).removeprefix("+ ")}){power}'


Product = tuple[Factor, ...]


@dataclass(frozen=True)
class Term(Record):
    """A number times a product of factors, each function once, sorted."""

    coefficient: float
    factors: Product

    def latex(self) -> str:
        """Return it as LaTeX, its sign before it."""
        factors = (factor.latex() for factor in self.factors)
        return r' \, '.join([_signed(self.coefficient, '', latex_number), *factors])

    def __str__(self) -> str:
        return ' '.join([_signed(self.coefficient, ''), *map(str, self.factors)])


@dataclass(frozen=True)
class Formula(Record, Row):
    """A sum of terms, and its unit."""

    symbol: str
    unit: str
    terms: tuple[Term, ...]

    def values(self, q: NDArray) -> NDArray:
        """Return the values (...) at joint positions q (..., n) [rad or m]."""
        result = np.zeros(q.shape[:-1], dtype=q.dtype)
        for coefficient, column in zip(self.coefficients, products(self.terms, q)):
            result = result + coefficient * column
        return result

    @property
    def coefficients(self) -> FloatArray:
        """The numbers of its terms."""
        return np.array([term.coefficient for term in self.terms])

    @property
    def joints(self) -> tuple[int, ...]:
        """The joints it depends on, from 0."""
        factors = {factor for term in self.terms for factor in term.factors}
        return tuple(sorted({joint for factor in factors for joint in factor.joints}))

    def derivative(self, joint: int) -> Formula:
        """Return the derivative with respect to the position of a joint, numbered from 0."""
        total: defaultdict[Product, float] = defaultdict(float)
        for term in self.terms:
            for factor in term.factors:
                if joint in factor.joints:
                    rest = [f for f in term.factors if f is not factor]
                    _add_derivative(total, term.coefficient, factor, joint, rest)
        return Formula(
            f'd {self.symbol} / d q{joint + 1}',
            self.unit,
            tuple(Term(value, product) for product, value in sorted(total.items()) if value),
        )

    def latex(self) -> str:
        """Return the equation as LaTeX, without dollars: numbers with six digits."""
        terms = ' '.join(term.latex() for term in self.terms).removeprefix('+ ')
        return f'{latex_symbol(self.symbol)} = {terms or "0"}'

    def _repr_latex_(self) -> str:
        return rf'$\displaystyle {self.latex()}$'

    _row_header = ('symbol', 'formula', 'unit')

    def _row(self) -> tuple[str, str, str]:
        symbol, _, formula = str(self).partition(' = ')
        return symbol, formula, self.unit

    def __str__(self) -> str:
        return f'{self.symbol} = {" ".join(map(str, self.terms)).removeprefix("+ ") or "0"}'


def _add_derivative(
    total: defaultdict[Product, float],
    coefficient: float,
    factor: Factor,
    joint: int,
    rest: Sequence[Factor],
) -> None:
    coefficient *= factor.power * factor.multiples[factor.joints.index(joint)]
    inner: list[Factor] = []
    if factor.function != 'position':
        coefficient *= 1 if factor.function == 'sin' else -1
        other: Function = 'cos' if factor.function == 'sin' else 'sin'
        inner = [Factor(factor.joints, other, factor.multiples, factor.phase)]
    if factor.power > 1:
        inner.append(factor.to_power(factor.power - 1))
    total[product_of([*rest, *inner])] += coefficient


def product_of(factors: Iterable[Factor]) -> Product:
    """Return factors sorted, powers of one function gathered."""
    powers: Counter[Factor] = Counter()
    for factor in factors:
        powers[factor.to_power(1)] += factor.power
    return tuple(factor.to_power(power) for factor, power in sorted(powers.items()))


def products(terms: Sequence[Term], q: NDArray) -> NDArray:
    """Return the terms' values without their numbers, (number of terms, ...), at q (..., n)."""
    seen: dict[Factor, NDArray] = {}
    result = np.ones((len(terms), *q.shape[:-1]), dtype=q.dtype)
    for k, term in enumerate(terms):
        for factor in term.factors:
            if factor not in seen:
                seen[factor] = factor.values(q)
            result[k] *= seen[factor]
    return result


def expressions(formulas: Sequence[Formula], q: Sequence[Scalar]) -> list[Scalar]:
    """
    Return the formulas as symbolic scalars.

    Parameters
    ----------
    formulas : sequence of Formula
    q : sequence of n scalars
        The joint positions, of one graph; equal parts of the formulas are shared.

    Notes
    -----
    The functions of the innermost joint are taken out first, then those of the next: what is left
    inside belongs to the links beyond, and is the same in many coefficients.
    """
    return [_nested([(t.coefficient, t.factors) for t in f.terms], q) for f in formulas]


def _nested(terms: list[tuple[float, Product]], q: Sequence[Scalar]) -> Scalar:
    """Return a sum of terms by Horner's scheme in the functions of one joint after the other."""
    innermost = min((f.joints for _, factors in terms for f in factors), default=None)
    if innermost is None:
        return math.fsum(coefficient for coefficient, _ in terms)
    inside: defaultdict[Product, list[tuple[float, Product]]] = defaultdict(list)
    for coefficient, factors in terms:
        taken = tuple(f for f in factors if f.joints == innermost)
        rest = tuple(f for f in factors if f.joints != innermost)
        inside[taken].append((coefficient, rest))
    result: Scalar = 0.0
    for taken in sorted(inside, reverse=True):
        value = _nested(inside[taken], q)
        for factor in taken:
            for _ in range(factor.power):
                value = _scalar(factor, q) * value
        result = result + value
    return result


def _scalar(factor: Factor, q: Sequence[Scalar]) -> Scalar:
    if factor.function == 'position':
        return q[factor.joints[0]]
    angle: Scalar = factor.phase
    for multiple, joint in zip(factor.multiples, factor.joints):
        angle = angle + multiple * q[joint]
    sine, cosine = sine_and_cosine(angle)
    return cosine if factor.function == 'cos' else sine


def _signed(value: float, name: str, number: Callable[[float], str] = '{:.6g}'.format) -> str:
    sign, size = '-' if value < 0 else '+', abs(value)
    if not name:
        return f'{sign} {number(size)}'
    return f'{sign} {name}' if size == 1 else f'{sign} {number(size)} {name}'
