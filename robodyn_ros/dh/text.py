# SPDX-License-Identifier: Apache-2.0
"""A DH table as the table in a paper: symbols for joint variables, right angles as pi/2."""

from __future__ import annotations

import math

from numpy.typing import NDArray

_RIGHT_ANGLES = {0: '0', 1: 'π/2', -1: '-π/2', 2: 'π', -2: '-π'}


def matrix_text(matrix: NDArray) -> str:
    """Return a matrix as aligned lines, rounding noise shown as zero."""
    rows = [[f'{0.0 if abs(x) < 1e-12 else x:.9g}' for x in row] for row in matrix]
    width = max(len(cell) for row in rows for cell in row)
    return '\n'.join('  ' + '  '.join(cell.rjust(width) for cell in row) for row in rows)


def angle_text(angle: float) -> str:
    """Return an angle as text, exact multiples of pi/2 by symbol."""
    quarters = round(angle / (math.pi / 2))
    if angle == quarters * (math.pi / 2) and quarters in _RIGHT_ANGLES:
        return _RIGHT_ANGLES[quarters]
    return number_text(angle)


def number_text(number: float) -> str:
    """Return a number with up to nine digits, so that 1.57 is not mistaken for pi/2."""
    return f'{number:.9g}' if number else '0'
