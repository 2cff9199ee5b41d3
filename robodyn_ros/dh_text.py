# SPDX-License-Identifier: Apache-2.0
"""A DH table as the table in a paper: symbols for joint variables, right angles as pi/2."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from robodyn_ros.dh import DHTable

_RIGHT_ANGLES = {0: '0', 1: 'π/2', -1: '-π/2', 2: 'π', -2: '-π'}


def printed_table(table: DHTable) -> str:
    """Return the rows of a table as text: lengths in metres, angles in radians."""
    rows = table_rows(table)
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return '\n'.join(
        '  '.join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def table_rows(table: DHTable) -> list[list[str]]:
    """Return the cells of a table as text, the headings first."""
    with_beta = bool(table.beta.any())
    angle_and_length = ['α [rad]', 'a [m]'] + ['β [rad]'] * with_beta
    joint_columns = ['θ [rad]', 'd [m]']
    modified = table.convention == 'modified'
    if modified:
        header = ['i', *angle_and_length, *joint_columns]
    else:
        header = ['i', *joint_columns, *(['a [m]', 'α [rad]'] + ['β [rad]'] * with_beta)]
    rows = [header]
    for i in range(table.n):
        alpha, a, beta = angle_text(table.alpha[i]), number_text(table.a[i]), table.beta[i]
        theta, d = angle_text(table.theta[i]), number_text(table.d[i])
        if table.prismatic[i]:
            d = _with_variable(i, d)
        else:
            theta = _with_variable(i, theta)
        constants = [alpha, a] if modified else [a, alpha]
        constants += [angle_text(beta)] * with_beta
        variables = [theta, d]
        halves = [*constants, *variables] if modified else [*variables, *constants]
        rows.append([str(i + 1), *halves])
    return rows


def row_formula(table: DHTable) -> str:
    """Return what one row of the table stands for."""
    beta = ' Rot(y, β)' if table.beta.any() else ''
    if table.convention == 'modified':
        return f'Rot(x, α) Trans(x, a){beta} Rot(z, θ) Trans(z, d)'
    return f'Rot(z, θ) Trans(z, d) Trans(x, a) Rot(x, α){beta}'


def table_as_dict(table: DHTable) -> dict[str, Any]:
    """Return a table as plain lists, for JSON."""
    names = ('alpha', 'a', 'beta', 'theta', 'd', 'prismatic', 'base_transform', 'tip_transform')
    lists = {name: getattr(table, name).tolist() for name in names}
    return {'convention': table.convention, **lists}


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


def _with_variable(i: int, offset: str) -> str:
    if offset == '0':
        return f'q{i + 1}'
    sign = '-' if offset.startswith('-') else '+'
    return f'q{i + 1} {sign} {offset.lstrip("-")}'
