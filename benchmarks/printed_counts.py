# SPDX-License-Identifier: Apache-2.0
"""Others' counts of operations: the papers' polynomials, to be evaluated, and SymPyBotics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Count = tuple[int, int]
"""Multiplications, with divisions, and additions."""


@dataclass(frozen=True)
class Polynomial:
    """A polynomial in n by its coefficients, that of the highest power first."""

    coefficients: tuple[Fraction, ...]

    @classmethod
    def of(cls, *coefficients: str | int | Fraction) -> Polynomial:
        """Return the polynomial with coefficients such as '128/3', the highest power first."""
        return cls(tuple(Fraction(x) for x in coefficients))

    def __call__(self, n: int) -> Fraction:
        """Return its value for n joints."""
        return sum((c * n**k for k, c in enumerate(reversed(self.coefficients))), Fraction(0))

    def __add__(self, other: Polynomial) -> Polynomial:
        size = max(len(self.coefficients), len(other.coefficients))
        rows = (
            (Fraction(0),) * (size - len(x)) + x for x in (self.coefficients, other.coefficients)
        )
        return Polynomial(tuple(a + b for a, b in zip(*rows)))

    def __mul__(self, other: Polynomial) -> Polynomial:
        result = [Fraction(0)] * (len(self.coefficients) + len(other.coefficients) - 1)
        for i, a in enumerate(self.coefficients):
            for k, b in enumerate(other.coefficients):
                result[i + k] += a * b
        return Polynomial(tuple(result))


@dataclass(frozen=True)
class PrintedCount:
    """
    A row of a table: multiplications and additions, and for six joints.

    ``polynomials`` is None where the paper gives the six joints alone, ``printed_six`` False where
    it gives the polynomials alone.
    """

    name: str
    polynomials: tuple[Polynomial, Polynomial] | None
    six: tuple[int, int]
    printed_six: bool = True


def _row(
    name: str,
    multiplications: Sequence[str | int],
    additions: Sequence[str | int],
    six: tuple[int, int],
    printed_six: bool = True,
) -> PrintedCount:
    return PrintedCount(
        name, (Polynomial.of(*multiplications), Polynomial.of(*additions)), six, printed_six
    )


# 001 prints no numbers for six joints; those are its polynomials'.
PRINTED = (
    _row('001, Table 3.1, Lagrange-Euler', ('128/3', '512/3', '844/3', '76/3', 0),
         ('98/3', '781/6', '637/3', '107/6', 0), (102440, 78203), False),
    _row('001, Table 3.4, Newton-Euler, PUMA', (117, -24), (103, -21), (678, 597), False),
    _row('001, Table 3.5, Lagrange-Euler', ('128/3', '512/3', '739/3', '169/3', 0),
         ('98/3', '781/6', '559/3', '245/6', 0), (101366, 77405), False),
    _row('001, Table 3.5, Newton-Euler', (132, 0), (111, -4), (792, 662), False),
    _row("001, Table 3.5, generalized d'Alembert", ('13/6', '105/2', '268/3', 69),
         ('4/3', 44, '146/3', 45), (2963, 2209), False),
    _row('003, Table 1, standard parameters', (101, -129), (90, -118), (477, 422)),
    _row('003, Table 1, minimum parameters', (92, -127), (81, -117), (425, 369)),
    _row('004, Table 1, Hollerbach 1980', (412, -277), (320, -201), (2195, 1719)),
    _row('004, Table 1, Luh et al.', (150, -48), (131, -48), (852, 738)),
    _row('004, Table 1, Walker and Orin', (137, -22), (101, -11), (800, 595)),
    PrintedCount('004, Table 1, Hollerbach and Sahar 1983', None, (688, 558)),
    PrintedCount('004, Table 1, Kane and Levinson', None, (646, 394)),
    _row('004, Table 1, Khalil et al.', (105, -92), (94, -86), (538, 478)),
    _row('004, Table 1, Angeles et al. (Kane)', (105, -109), (90, -105), (521, 435)),
    PrintedCount('004, the same, Z₀ along Z₁', None, (513, 432)),
)  # fmt: skip

_N = Polynomial.of(1, 0)


def _n(offset: int) -> Polynomial:
    return Polynomial.of(1, offset)


_NONE = Polynomial.of(0)
_THIRD = Polynomial.of('128/3')
_HALF = Polynomial.of('65/2')
_SIXTH = Polynomial.of('1/6')
_TRACES = _N * _n(1) * _n(2)
_SUMS = _SIXTH * _N * _n(-1) * _n(1)

# Rows of 001: multiplications and additions of each.
TABLE_3_1 = {
    'A': (Polynomial.of(32) * _N * _n(-1), Polynomial.of(24) * _N * _n(-1)),
    'm g U r': (Polynomial.of(4) * _N * Polynomial.of(9, -7), _N * Polynomial.of('51/2', '-45/2')),
    'sum of m g U r': (_NONE, Polynomial.of('1/2') * _N * _n(-1)),
    'Tr(U J UT)': (_THIRD * _TRACES, _HALF * _TRACES),
    'sum of Tr(U J UT)': (_NONE, _SUMS),
    'Tr(U2 J UT)': (_THIRD * _N * _TRACES, _HALF * _N * _TRACES),
    'sum of Tr(U2 J UT)': (_NONE, _N * _SUMS),
}
TABLE_3_4 = {
    'w': (Polynomial.of(9, 0), Polynomial.of(7, 0)),
    'wd': (Polynomial.of(9, 0), Polynomial.of(9, 0)),
    'vd': (Polynomial.of(27, 0), Polynomial.of(22, 0)),
    'a': (Polynomial.of(15, 0), Polynomial.of(14, 0)),
    'F': (Polynomial.of(3, 0), _NONE),
    'f': (Polynomial.of(9, -9), Polynomial.of(9, -6)),
    'N': (Polynomial.of(24, 0), Polynomial.of(18, 0)),
    'n': (Polynomial.of(21, -15), Polynomial.of(24, -15)),
}
# 004, section 6: what the steps of each stage cost for revolute joints, summed over the links.
KANE_STEPS = {
    'w': (Polynomial.of(8, -8), Polynomial.of(5, -5)),
    'wd': (Polynomial.of(10, -10), Polynomial.of(7, -7)),
    'W': (Polynomial.of(6, -5), Polynomial.of(9, -9)),
    'pdd': (Polynomial.of(26, -14), Polynomial.of(25, -16)),
    'hd': (Polynomial.of(24, -16), Polynomial.of(18, -16)),
    'u': (Polynomial.of(3, 0), _NONE),
    'Q v, v': (Polynomial.of(8, -8), Polynomial.of(7, -7)),
    'k': (Polynomial.of(12, -6), Polynomial.of(12, -6)),
    'Q w, w': (Polynomial.of(8, -8), Polynomial.of(7, -7)),
}
# Totals of the stages as printed, (52), (56), (57) and before the last cycle is trimmed.
KANE_STAGES = {
    '(52)': (_NONE, _NONE),
    '(56)': (Polynomial.of(50, -47), Polynomial.of(46, -47)),
    'before (57)': (Polynomial.of(55, -38), Polynomial.of(44, -38)),
    '(57)': (Polynomial.of(55, -62), Polynomial.of(44, -58)),
}

# SymPyBotics with base parameters.
SYMPYBOTICS: dict[str, Count] = {
    'general 6R': (512, 376),
    'PUMA 560': (314, 253),
    'SCEMI, RX90': (286, 226),
    'UR5': (301, 244),
    'Panda': (362, 288),
}
# Gautier and Khalil 1988, Table 1: general and simplified inertias, by minimum parameters and by
# standard ones.
TABLE_1: dict[str, tuple[Count, Count | None]] = {
    'general 6R': ((425, 369), None),
    'Stanford': ((232, 218), (142, 99)),
    'SCEMI, RX90': ((253, 238), (159, 113)),
}
TABLE_1_STANDARD: dict[str, tuple[Count, Count | None]] = {
    'general 6R': ((477, 422), None),
    'Stanford': ((291, 284), (193, 149)),
    'SCEMI, RX90': ((294, 283), (201, 152)),
}
