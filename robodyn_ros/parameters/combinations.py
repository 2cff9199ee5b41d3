# SPDX-License-Identifier: Apache-2.0
"""
Base parameters as linear combinations of standard ones: data, and text as papers print it.

A coefficient is a polynomial in the DH table's lengths, a mapping from products of lengths to
factors: {('a3', 'a3'): -1.0} is -a3^2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple, get_args

from robodyn_ros.errors import InvalidArgument
from robodyn_ros.record import Record, latex_number, latex_symbol

Coefficient = Mapping[tuple[str, ...], float]
Polynomial = tuple[tuple[tuple[str, ...], float], ...]

LengthStyle = Literal['numbers', 'symbols', 'paper']
LENGTH_STYLES: tuple[LengthStyle, ...] = get_args(LengthStyle)
_SUPERSCRIPTS = str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹')
# Factors that agree to so many digits are one factor: they came by different sums.
_DIGITS_THAT_COUNT = 12
_DIGITS_IN_TEXT = 6
# Values this small against the largest of their unit are shown as zero.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class LinearCombination(Record):
    """
    A base parameter: the linear combination of standard parameters that it stands for.

    Attributes
    ----------
    name : str
        ``XXR2`` where others are regrouped into XX2, ``XY2`` where it stands alone.
    link : str
        The link whose parameter it is named after.
    unit : str
    value : float
        [unit]
    terms : mapping of standard parameter to coefficient
        Each coefficient a mapping from products of lengths, () for none, to factors.
    lengths : mapping of name to length [m]
        The lengths a_j, b_j, d_j that the coefficients speak of.
    """

    name: str
    link: str
    unit: str
    value: float
    terms: Mapping[str, Coefficient]
    lengths: Mapping[str, float]

    @property
    def coefficients(self) -> dict[str, float]:
        """Standard parameter to the number it is multiplied by."""
        return {name: self.number_of(coefficient) for name, coefficient in self.terms.items()}

    def text(self, lengths: LengthStyle = 'numbers') -> str:
        """
        Return the equation, as ``XXR2 = XX2 − YY2 − D3² (m3 + m4 + m5 + m6)``.

        Parameters
        ----------
        lengths : 'numbers', 'symbols' or 'paper'
            Lengths multiplied out [m], as a3 and d4 (this package's table), or as D3 and RL4
            (Gautier and Khalil 1988).

        Raises
        ------
        InvalidArgument
        """
        parts = []
        for negative, polynomial, names in self._groups(lengths):
            factor = _polynomial(polynomial, lengths, _AS_TEXT)
            total = ' + '.join(names)
            if factor and len(names) > 1:
                total = f'({total})'
            parts.append(' '.join(filter(None, ['−' if negative else '+', factor, total])))
        return f'{self.name} = {" ".join(parts).removeprefix("+ ")}'

    def latex(self, lengths: LengthStyle = 'numbers') -> str:
        """
        Return the equation as LaTeX, without dollars; as ``text`` otherwise.

        Parameters
        ----------
        lengths : 'numbers', 'symbols' or 'paper'

        Raises
        ------
        InvalidArgument
        """
        parts = []
        for negative, polynomial, names in self._groups(lengths):
            factor = _polynomial(polynomial, lengths, _AS_LATEX)
            total = ' + '.join(map(latex_symbol, names))
            if factor and len(names) > 1:
                total = rf'\left({total}\right)'
            product = r' \, '.join(filter(None, [factor, total]))
            parts.append(f'{"-" if negative else "+"} {product}')
        return f'{latex_symbol(self.name)} = {" ".join(parts).removeprefix("+ ")}'

    def _groups(self, lengths: LengthStyle) -> Iterator[tuple[bool, Polynomial, list[str]]]:
        """Yield whether it is subtracted, factor, and parameters that it multiplies."""
        if lengths not in LENGTH_STYLES:
            raise InvalidArgument('argument lengths', lengths, ', '.join(map(repr, LENGTH_STYLES)))
        groups: dict[tuple[Polynomial, bool, str | None], list[str]] = {}
        for name, coefficient in self.terms.items():
            if lengths == 'numbers':
                coefficient = {(): self.number_of(coefficient)}
            negative = next(iter(coefficient.values())) < 0
            key = tuple(
                (monomial, _rounded(-factor if negative else factor))
                for monomial, factor in sorted(coefficient.items())
            )
            # Terms with the factor one stand alone, each with its own sign.
            alone = name if key == (((), 1.0),) else None
            groups.setdefault((key, negative, alone), []).append(name)
        for (key, negative, _), names in groups.items():
            yield negative, key, names

    _row_header = ('link', 'name', 'value', 'unit', 'formula')

    def _row(self) -> tuple[str, ...]:
        return rows_of([self], 'numbers')[0]

    def _repr_latex_(self) -> str:
        return rf'$\displaystyle {self.latex()}$'

    def __str__(self) -> str:
        return self.text()

    def number_of(self, coefficient: Coefficient) -> float:
        """Return a coefficient's value with this robot's lengths."""
        return sum(
            factor * prod(self.lengths[name] for name in monomial)
            for monomial, factor in coefficient.items()
        )


class _Notation(NamedTuple):
    """How a polynomial is written."""

    minus: str
    power: Callable[[str, int], str]
    number: Callable[[float], str]
    times: str
    brackets: tuple[str, str]


_AS_TEXT = _Notation(
    '−',
    lambda symbol, power: symbol + str(power).translate(_SUPERSCRIPTS) * (power > 1),
    f'{{:.{_DIGITS_IN_TEXT}g}}'.format,
    ' ',
    ('(', ')'),
)
_AS_LATEX = _Notation(
    '-',
    lambda symbol, power: latex_symbol(symbol) + f'^{{{power}}}' * (power > 1),
    latex_number,
    r' \, ',
    (r'\left(', r'\right)'),
)


def _polynomial(polynomial: Polynomial, lengths: LengthStyle, notation: _Notation) -> str:
    """Return a polynomial whose first factor is positive; nothing for one."""
    parts = []
    for monomial, factor in polynomial:
        symbols = [
            notation.power(length_symbol(name, lengths), power)
            for name, power in Counter(monomial).items()
        ]
        size = notation.number(abs(factor))
        number = [] if size == '1' else [size]
        product = notation.times.join([*number, *symbols]) or '1'
        parts.append(f'{notation.minus if factor < 0 else "+"} {product}')
    text = ' '.join(parts).removeprefix('+ ')
    if len(parts) > 1:
        return text.join(notation.brackets)
    return '' if text == '1' else text


def length_symbol(name: str, lengths: LengthStyle) -> str:
    """Return how a style of ``LENGTH_STYLES`` writes the length a3 or d4."""
    if lengths == 'paper':
        return {'a': 'D', 'b': 'B', 'd': 'RL'}[name[0]] + name[1:]
    return name


def _rounded(factor: float) -> float:
    return float(f'{factor:.{_DIGITS_THAT_COUNT}g}')


def rows_of(
    expressions: Sequence[LinearCombination], lengths: LengthStyle
) -> list[tuple[str, str, str, str, str]]:
    """Return link, name, value, unit and formula of base parameters, rounding shown as zero."""
    largest: dict[str, float] = defaultdict(float)
    for each in expressions:
        largest[each.unit] = max(largest[each.unit], abs(each.value))
    return [
        (
            each.link,
            each.name,
            f'{each.value:.6g}' if abs(each.value) > _ROUNDING * largest[each.unit] else '0',
            each.unit,
            each.text(lengths).partition(' = ')[2],
        )
        for each in expressions
    ]
