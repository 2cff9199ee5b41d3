# SPDX-License-Identifier: Apache-2.0
"""A DH table, modified or standard, with its base and tip transforms; as text and as lists."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.errors import InvalidArgument, Phrase
from robodyn_ros.record import Record, Table
from robodyn_ros.spatial import FloatArray, rotation_x, rotation_y, rotation_z, transform

Convention = Literal['modified', 'standard']
_ROUNDING = 1e-10  # [m or rad]: what a URDF's digits leave of a zero
_RIGHT_ANGLES = {0: '0', 1: 'π/2', -1: '-π/2', 2: 'π', -2: '-π'}


@dataclass(frozen=True, eq=False, repr=False)
class DHTable(Record):
    """
    A DH table with its base and tip transforms, of a chain or of a tree.

    Attributes
    ----------
    alpha, beta, theta : array, shape (n,) [rad]
        Constants; for a revolute joint theta is the offset that the joint variable is added to.
    a, d : array, shape (n,) [m]
        Constants; for a prismatic joint d is the offset.
    prismatic : bool array, shape (n,)
    base_transform : array, shape (4, 4)
        Frame 0 in the base link's frame.
    tip_transform : array, shape (4, 4), or (k, 4, 4) for k tips
        The tip link's frame in frame n, or each tip link's in frame ``tips[i] + 1``.
    convention : 'modified' or 'standard'
        A modified row is Rx(alpha) Tx(a) Ry(beta) Rz(theta) Tz(d), and frame i moves with joint
        i; a standard row is Rz(theta) Tz(d) Tx(a) Rx(alpha) Ry(beta), and joint i acts about
        z_(i-1).
    parents : int array, shape (n,)
        Index of the row before each one, -1: the base. Rows come depth first: what a joint moves
        is its row and the next ones. Those of a chain where not given.
    gamma : array, shape (n,) [rad]
    b : array, shape (n,) [m]
        The row of a second child begins with Rz(gamma) Tz(b) (Khalil and Kleinfinger 1986); zero
        elsewhere, and where not given.
    tips : int array, shape (k,)
        Index of the row that each tip link moves with; the last one where not given.
    """

    alpha: FloatArray
    a: FloatArray
    beta: FloatArray
    theta: FloatArray
    d: FloatArray
    prismatic: NDArray[np.bool_]
    base_transform: FloatArray
    tip_transform: FloatArray
    convention: Convention = 'modified'
    parents: NDArray[np.int_] = field(default_factory=lambda: np.zeros(0, dtype=int))
    gamma: FloatArray = field(default_factory=lambda: np.zeros(0))
    b: FloatArray = field(default_factory=lambda: np.zeros(0))
    tips: NDArray[np.int_] = field(default_factory=lambda: np.zeros(0, dtype=int))

    def __post_init__(self) -> None:
        of_chain = {
            'parents': np.arange(-1, self.n - 1),
            'gamma': np.zeros(self.n),
            'b': np.zeros(self.n),
            'tips': np.array([self.n - 1]),
        }
        for name, values in of_chain.items():
            if not len(getattr(self, name)):
                object.__setattr__(self, name, values)
        super().__post_init__()

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.alpha)

    @property
    def is_chain(self) -> bool:
        """Whether each body carries one joint, and the last one the only tip."""
        return self.n - 1 == self.tips[0] and len(self.tips) == len(self.branches) == 1

    @cached_property
    def branches(self) -> tuple[range, ...]:
        """The rows from the base, or a second child, through first children to an end."""
        starts = np.flatnonzero(self.parents != np.arange(-1, self.n - 1)).tolist()
        return tuple(map(range, [0, *starts], [*starts, self.n]))

    @cached_property
    def carries(self) -> NDArray[np.bool_]:
        """Whether joint j moves body i at [i, j], (n, n)."""
        carries = np.eye(self.n, dtype=bool)
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                carries[i] |= carries[parent]
        return carries

    @cached_property
    def ends(self) -> NDArray[np.int_]:
        """Of each joint the row behind the last one of those that it moves, (n,)."""
        return np.arange(self.n) + self.carries.sum(axis=0)

    @cached_property
    def tip_transforms(self) -> FloatArray:
        """Each tip link's frame in that of its body, (k, 4, 4)."""
        return self.tip_transform.reshape(-1, 4, 4)

    @property
    def structure(self) -> str:
        """Kinds of the joints, base to tip: ``6R``, ``2RP3R``; of a tree by branches."""
        return ' + '.join(map(self._kinds, self.branches))

    def _kinds(self, branch: range) -> str:
        runs = groupby('P' if self.prismatic[i] else 'R' for i in branch)
        counts = ((kind, len(list(run))) for kind, run in runs)
        return ''.join(f'{count if count > 1 else ""}{kind}' for kind, count in counts)

    @cached_property
    def plane_rotations(self) -> FloatArray:
        """Cosines and sines of alpha, beta, gamma, exact at right angles, (n, 3, 2)."""
        angles = np.stack([self.alpha, self.beta, self.gamma], axis=1)
        return np.array([[rotation_x(angle)[1:, 1] for angle in row] for row in angles])

    @cached_property
    def constant_rotations(self) -> FloatArray:
        """Rot(z, gamma) Rot(x, alpha) Rot(y, beta) of each row, (n, 3, 3)."""
        return np.array(
            [
                rotation_z(gamma) @ rotation_x(alpha) @ rotation_y(beta)
                for gamma, alpha, beta in zip(self.gamma, self.alpha, self.beta, strict=True)
            ]
        )

    @cached_property
    def constant_steps(self) -> FloatArray:
        """Trans(z, b) Rot(z, gamma) Trans(x, a) of each row, (n, 3) [m]."""
        rows = zip(self.gamma, self.a, self.b, strict=True)
        return np.array([rotation_z(gamma) @ (a, 0.0, b) for gamma, a, b in rows])

    def standard(self) -> DHTable:
        """
        Return the standard table of the same axes.

        The product of all modified rows, regrouped one half row further, is the product of all
        standard rows: row i keeps theta_i and d_i and takes alpha, a and beta of row i + 1.

        Raises
        ------
        InvalidArgument
            A tree: a standard row ends at the next axis, and a body may carry two of them.
        """
        if self.convention == 'standard':
            return self
        if not self.is_chain:
            raise InvalidArgument(
                'DH convention',
                Phrase('standard'),
                'modified for a tree: a standard row ends at the next axis, and a body may carry '
                'several',
            )
        base = self.base_transform @ constant_transform(self.alpha[0], self.a[0], self.beta[0])
        return replace(
            self,
            alpha=np.append(self.alpha[1:], 0.0),
            a=np.append(self.a[1:], 0.0),
            beta=np.append(self.beta[1:], 0.0),
            base_transform=base,
            convention='standard',
        )

    def __str__(self) -> str:
        return printed_table(self)

    def _tables(self) -> Iterable[Table]:
        header, *rows = table_rows(self)
        return [Table(header, rows, f'{self.convention} DH: {row_formula(self)}')]


def constant_transform(alpha: float, a: float, beta: float) -> FloatArray:
    """Return Rot(x, alpha) Trans(x, a) Rot(y, beta) (4, 4), what of a row no joint moves."""
    return transform(rotation_x(alpha) @ rotation_y(beta), (a, 0.0, 0.0))


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
    branching = len(table.branches) > 1
    if modified:
        before = ['parent', 'γ [rad]', 'b [m]'] * branching
        header = ['i', *before, *angle_and_length, *joint_columns]
    else:
        header = ['i', *joint_columns, *(['a [m]', 'α [rad]'] + ['β [rad]'] * with_beta)]
    rows = [header]
    for i in range(table.n):
        alpha, a, beta = _angle_text(table.alpha[i]), _number_text(table.a[i]), table.beta[i]
        theta, d = _angle_text(table.theta[i]), _number_text(table.d[i])
        if table.prismatic[i]:
            d = _with_variable(i, d)
        else:
            theta = _with_variable(i, theta)
        constants = [alpha, a] if modified else [a, alpha]
        constants += [_angle_text(beta)] * with_beta
        if branching:
            before = [str(table.parents[i] + 1), _angle_text(table.gamma[i])]
            constants = [*before, _number_text(table.b[i]), *constants]
        variables = [theta, d]
        halves = [*constants, *variables] if modified else [*variables, *constants]
        rows.append([str(i + 1), *halves])
    return rows


def row_formula(table: DHTable) -> str:
    """Return what one row of the table stands for."""
    beta = ' Rot(y, β)' if table.beta.any() else ''
    if table.convention == 'modified':
        branch = 'Rot(z, γ) Trans(z, b) ' if len(table.branches) > 1 else ''
        return f'{branch}Rot(x, α) Trans(x, a){beta} Rot(z, θ) Trans(z, d)'
    return f'Rot(z, θ) Trans(z, d) Trans(x, a) Rot(x, α){beta}'


def table_as_dict(table: DHTable) -> dict[str, Any]:
    """Return a table as plain lists, for JSON."""
    names = ['alpha', 'a', 'beta', 'theta', 'd', 'prismatic', 'base_transform', 'tip_transform']
    if not table.is_chain:
        names += ['parents', 'gamma', 'b', 'tips']
    lists = {name: getattr(table, name).tolist() for name in names}
    return {'convention': table.convention, **lists}


def _with_variable(i: int, offset: str) -> str:
    if offset == '0':
        return f'q{i + 1}'
    sign = '-' if offset.startswith('-') else '+'
    return f'q{i + 1} {sign} {offset.lstrip("-")}'


def matrix_text(matrix: NDArray) -> str:
    """Return a matrix as aligned lines, rounding noise shown as zero."""
    rows = [[f'{0.0 if abs(x) < 1e-12 else x:.9g}' for x in row] for row in matrix]
    width = max(len(cell) for row in rows for cell in row)
    return '\n'.join('  ' + '  '.join(cell.rjust(width) for cell in row) for row in rows)


def _angle_text(angle: float) -> str:
    """Return an angle as text, exact multiples of pi/2 by symbol."""
    quarters = round(angle / (math.pi / 2))
    if angle == quarters * (math.pi / 2) and quarters in _RIGHT_ANGLES:
        return _RIGHT_ANGLES[quarters]
    return _number_text(angle)


def _number_text(number: float) -> str:
    """Return a number with up to nine digits, so that 1.57 is not mistaken for pi/2."""
    return '0' if abs(number) < _ROUNDING else f'{number:.9g}'
