# SPDX-License-Identifier: Apache-2.0
"""Numbers and names formatted for readers; the template escapes them for HTML."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from robodyn_ros.errors import spelled_out

if TYPE_CHECKING:
    from markupsafe import Markup

_SUPERSCRIPTS = str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹')
NOISE = 1e-12
"""Lengths, angles, masses and their products that rounding leaves are smaller."""

_LONGEST_FORMULAS, _BEGINNING = 20_000, 160  # characters, all together and of each
_PLAIN = 1e6  # written without powers of ten
_NO_BREAK = '\u00a0'
_COEFFICIENT = re.compile(r'\b([DdGhc])_(\d+(?:,\d+)*)')
# Papers write the mass matrix D or d, gravity G, Coriolis torques h: a page has one for each.
_LETTERS = {'D': 'M', 'd': 'M', 'G': 'g', 'h': '(C\u00a0q̇)', 'c': 'c'}
_INDEXED = re.compile(r'\b([A-Za-z]+)(\d+)(?!\d)')
_POWER = re.compile(r'\^(\d+)')


def number(value: float | None, digits: int = 4, noise: float = 0.0) -> str:
    """Return a number of so many digits; what is not larger than the noise is zero."""
    if value is None or math.isnan(value):
        return '–'
    if math.isinf(value):
        return '∞' if value > 0 else '−∞'
    text = f'{value if abs(value) > noise else 0.0:.{digits}g}'
    if 'e+' in text and abs(value) < _PLAIN:
        text = f'{value:.0f}'
    mantissa, _, exponent = text.partition('e')
    mantissa = true_minus(mantissa)
    return f'{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}' if exponent else mantissa


def quantity(value: float | None, unit: str, digits: int = 4, noise: float = 0.0) -> str:
    """Return a number and its unit, between which no line ends; without a number 'unknown'."""
    if value is None or math.isnan(value):
        return 'unknown'
    return unbroken(f'{number(value, digits, noise)} {unit}'.rstrip())


def unbroken(text: str) -> str:
    """Return a text whose spaces no line ends at."""
    return text.replace(' ', _NO_BREAK)


def coefficients(text: str) -> Markup:
    """Return a text with symbols as ``d_12`` or ``G_3`` in the letters of a page: M and g."""
    from markupsafe import Markup, escape

    powers = _POWER.sub(lambda m: m[1].translate(_SUPERSCRIPTS), text)
    return Markup(
        _COEFFICIENT.sub(lambda m: f'{_LETTERS[m[1]]}<sub>{m[2]}</sub>', str(escape(powers)))
    )


def indexed(text: str) -> Markup:
    """Return a text with names as ``mZ3`` of inertial parameters and lengths, indices lowered."""
    from markupsafe import Markup, escape

    return Markup(_INDEXED.sub(r'\1<sub>\2</sub>', str(escape(text))))


def true_minus(text: str) -> str:
    """Return a text with minus signs for hyphens."""
    return text.replace('-', '−')


def percent(value: float | None) -> str:
    """Return a fraction as a percentage of two or three digits."""
    if value is None:
        return '–'
    size = 100 * value
    if size == 0:
        return unbroken('0 %')
    if size < 0.01:
        return unbroken('< 0.01 %')
    return unbroken(f'{float(f"{size:.2g}"):g} %' if size < 99.5 else f'{size:.0f} %')


def plural(count: int, noun: str) -> str:
    """Return a count and its noun."""
    return f'{count} {noun}' if count == 1 else f'{count} {noun}s'


def visible(name: str) -> str:
    r"""Return a name with what cannot be seen, or turns the writing round, as \n or \u202e."""
    return spelled_out(name)


def matrix_rows(matrix: NDArray) -> list[list[str]]:
    """Return the numbers of a matrix, rounding noise as zero."""
    return [[number(float(x), 6, NOISE) for x in row] for row in matrix]


def shortened(formulas: list[str]) -> list[str]:
    """Return formulas; those that are long as they begin, where they would fill pages."""
    if sum(map(len, formulas)) < _LONGEST_FORMULAS:
        return formulas
    return [
        f'{text[:_BEGINNING].rpartition(" ")[0]} … ({len(text)} characters in all)'
        if len(text) > 2 * _BEGINNING
        else text
        for text in formulas
    ]
