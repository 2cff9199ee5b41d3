# SPDX-License-Identifier: Apache-2.0
"""
Coefficients written out: sums of products of sines, cosines and joint positions.

    d_22 = 4.73 - 5.26 q3 + 6.48 q3^2 + 0.23 q3 cos(q5) + ...

A formula can be read, evaluated, differentiated, and put into straight-line code. Those of the
inertial and gravitational coefficients are found to ten digits: a joint enters the transforms of
the links beyond it through cos q and sin q, or through q itself, so that G_i is at most of first
degree in each joint, d_ij at most of second, trigonometric polynomials that their values on three
or five positions of each joint determine. Nothing is fitted, and nothing is derived by hand.

Sines and cosines of single joints are written as products, save where axes are parallel: those
joints make one group, written in cosines and sines of sums such as q2 + q3, since that is how
they turn the links beyond. Of cos^2 and sin^2 the one is kept that leaves fewer terms.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.analysis.quantities import inertia_unit, symbol
from robodyn_ros.compiled.symbolic.expression import Scalar, sine_and_cosine
from robodyn_ros.dynamics.lagrangian_coefficients import gravitational_coefficients
from robodyn_ros.dynamics.mass_matrix import composite_mass_matrix
from robodyn_ros.model import RobotModel, checked_model, force_unit
from robodyn_ros.record import Record, Rows, latex_number, latex_symbol
from robodyn_ros.spatial import FloatArray

Function = Literal['position', 'cos', 'sin']

# Terms under this fraction of the largest are rounding, of the description's numbers or ours.
_ROUNDING = 1e-10
# Numbers keep so many digits, so that those which are equal but for rounding are equal.
_DIGITS = 11
# Axes that make no more than this angle [rad] count as parallel. That chooses between two exact
# ways to write the same thing.
_NEARLY_PARALLEL = 0.05
_LARGEST_GROUP = 4
_WHOLE_QUARTERS = 1e-9
_BATCH = 4096


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


@dataclass(frozen=True, eq=False, repr=False)
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


@dataclass(frozen=True, eq=False, repr=False)
class Formula(Record):
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


def inertia_formulas(model: RobotModel) -> tuple[Rows[Formula], ...]:
    """
    Return d_ij for all i <= j as row i of formulas d_ii to d_in, rotor inertia included.

    Notes
    -----
    Row i takes 5^k mass matrices, k being the number of joints it depends on: a fraction of a
    second for seven joints, five times as much for each further one.
    """
    rows = []
    for i in range(checked_model(model).n):

        def row(q: NDArray, i: int = i) -> NDArray:
            return composite_mass_matrix(model, q)[:, i, i:]

        prismatic = model.dh.prismatic
        symbols = [symbol('d', i, j) for j in range(i, model.n)]
        units = [inertia_unit(prismatic[[i, j]]) for j in range(i, model.n)]
        offset = model.rotor_matrix[i, i:]
        rows.append(_formulas(model, row, 2, symbols, units, offset))
    return tuple(rows)


def gravity_formulas(model: RobotModel) -> Rows[Formula]:
    """Return G_1 to G_n [N m or N]; 3^k configurations, k being the joints they depend on."""
    symbols = [symbol('G', i) for i in range(checked_model(model).n)]
    units = [force_unit(prismatic) for prismatic in model.dh.prismatic]
    none = np.zeros(model.n)
    return _formulas(
        model, lambda q: gravitational_coefficients(model, q), 1, symbols, units, none
    )


def _formulas(
    model: RobotModel,
    function: Callable[[NDArray], NDArray],
    degree: int,
    symbols: Sequence[str],
    units: Sequence[str],
    offset: FloatArray,
) -> Rows[Formula]:
    joints = _joints_that_matter(model, function)
    groups = _groups(model, joints)
    bases = [_Basis(model, group, degree) for group in groups]
    order = [j for group in groups for j in group]
    nodes = [_nodes(bool(model.dh.prismatic[j]), degree, _shift(model, j)) for j in order]
    positions = np.zeros((math.prod(map(len, nodes)), model.n))
    if order:
        positions[:, order] = np.array(list(itertools.product(*nodes)))
    values = np.concatenate(
        [function(positions[k : k + _BATCH]) for k in range(0, len(positions), _BATCH)]
    )
    scale = np.abs(values).max(initial=0.0)
    tensors = np.moveaxis(values + offset, -1, 0).reshape(-1, *[len(b.products) for b in bases])
    for axis, basis in enumerate(bases, start=1):
        tensors = np.moveaxis(np.tensordot(basis.from_values, tensors, (1, axis)), 0, axis)
    return Rows(
        Formula(name, unit, _terms(tensor, bases, scale))
        for name, unit, tensor in zip(symbols, units, tensors)
    )


def _joints_that_matter(model: RobotModel, function: Callable[[NDArray], NDArray]) -> list[int]:
    """Return the joints whose motion changes any value at seeded configurations."""
    generator = np.random.default_rng(0)
    q = generator.uniform(-1, 1, (16, model.n))
    values = function(q)
    moved = np.repeat(q[None], model.n, axis=0)
    joints = np.arange(model.n)
    moved[joints, :, joints] += 1.0
    changes = function(moved.reshape(-1, model.n)).reshape(model.n, *values.shape) - values
    scale = np.abs(values).max(axis=0) + (np.abs(values).max() * 1e-3)
    return [j for j in range(model.n) if (np.abs(changes[j]) > _ROUNDING * scale).any()]


def _groups(model: RobotModel, joints: Sequence[int]) -> list[list[int]]:
    """Return the joints, those that turn about parallel axes together."""
    dh = model.dh
    groups: list[list[int]] = []
    parallel_to: list[int] = []
    run = 0
    for j in range(model.n):
        bent = abs(math.sin(dh.alpha[j])) + abs(math.sin(dh.beta[j])) > _NEARLY_PARALLEL
        run += bent or dh.parents[j] != j - 1 or j == 0
        if j not in joints:
            continue
        alone = bool(dh.prismatic[j])
        if not alone and run in parallel_to:
            group = groups[len(parallel_to) - 1 - parallel_to[::-1].index(run)]
            if len(group) < _LARGEST_GROUP:
                group.append(j)
                continue
        groups.append([j])
        parallel_to.append(-1 if alone else run)
    return groups


def _nodes(prismatic: bool, degree: int, shift: float) -> FloatArray:
    count = 2 * degree + 1
    if prismatic:
        return np.linspace(-1.0, 1.0, degree + 1)
    return 2 * np.pi * np.arange(count) / count - shift


def _shift(model: RobotModel, joint: int) -> float:
    """Return the offset of a joint's DH angle, unless it is of whole quarter turns."""
    offset = float(model.dh.theta[joint])
    rest = offset - round(offset / (np.pi / 2)) * (np.pi / 2)
    return 0.0 if model.dh.prismatic[joint] or abs(rest) < _WHOLE_QUARTERS else offset


class _Basis:
    """
    The functions that the joints of a group enter through, and how to find their coefficients.

    ``products`` are the functions; ``from_values`` (size, size) takes values at the nodes to
    coefficients. ``square`` is the index of sin^2 in the basis of a single joint, else None.
    """

    def __init__(self, model: RobotModel, group: Sequence[int], degree: int) -> None:
        self.square = None
        shifts = {j: _shift(model, j) for j in group}
        first = group[0]
        if model.dh.prismatic[first]:
            self.products: list[Product] = [()]
            self.products += [(Factor((first,), 'position', power=k + 1),) for k in range(degree)]
        elif len(group) == 1:
            c, s = (Factor((first,), name, (1,), shifts[first]) for name in ('cos', 'sin'))
            self.products = [(), (c,), (s,)]
            if degree == 2:
                self.products += [(c, s), (s.to_power(2),)]
                self.square = 4
        else:
            self.products = [()]
            for multiples in itertools.product(range(-degree, degree + 1), repeat=len(group)):
                if next((k for k in reversed(multiples) if k), 0) > 0:
                    kept = tuple((j, k) for j, k in zip(group, multiples) if k)
                    joints, numbers = tuple(j for j, _ in kept), tuple(k for _, k in kept)
                    phase = sum(k * shifts[j] for j, k in kept)
                    self.products += [
                        (Factor(joints, name, numbers, phase),) for name in ('cos', 'sin')
                    ]
        nodes = [_nodes(bool(model.dh.prismatic[j]), degree, shifts[j]) for j in group]
        q = np.zeros((len(self.products), model.n))
        q[:, list(group)] = np.array(list(itertools.product(*nodes)))
        at_nodes = np.stack(
            [
                math.prod((f.values(q) for f in product), start=np.ones(len(q)))
                for product in self.products
            ],
            axis=1,
        )
        self.from_values = np.linalg.inv(at_nodes)


def _terms(tensor: NDArray, bases: Sequence[_Basis], scale: float) -> tuple[Term, ...]:
    floor = _ROUNDING * scale
    products = [list(basis.products) for basis in bases]
    for axis, basis in enumerate(bases):
        if basis.square is None:
            continue
        # a + b sin^2 = (a + b) - b cos^2
        other = np.moveaxis(tensor.copy(), axis, 0)
        other[0] += other[basis.square]
        other[basis.square] *= -1
        other = np.moveaxis(other, 0, axis)
        if np.count_nonzero(np.abs(other) > floor) < np.count_nonzero(np.abs(tensor) > floor):
            tensor = other
            cosine = products[axis][1][0]
            products[axis][basis.square] = (cosine.to_power(2),)
    terms = []
    for index in np.argwhere(np.abs(tensor) > floor):
        factors = [f for axis, k in enumerate(index) for f in products[axis][k]]
        coefficient = float(f'{tensor[tuple(index)]:.{_DIGITS}g}')
        terms.append(Term(coefficient, tuple(sorted(factors))))
    return tuple(terms)
