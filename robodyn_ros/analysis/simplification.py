# SPDX-License-Identifier: Apache-2.0
"""
Simplified models: mass matrix and gravity in the few terms that matter (Bejczy 1974, VII.D).

Every coefficient is written out exactly (``formulas``), and terms are dropped, the smallest first,
as long as the error stays under a given one. It is weighed against

    d_ij : sqrt(d_ii d_jj) at the same position; for i = j that is the relative error,
    G_i  : the largest |G_i| of the joint space.

What is left keeps its exact numbers, so that coefficients go on sharing subexpressions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.analysis.formulas import (
    Formula,
    expressions,
    gravity_formulas,
    inertia_formulas,
    products,
)
from robodyn_ros.analysis.joint_space import JointSpace, Limits
from robodyn_ros.analysis.quantities import quotient
from robodyn_ros.arguments import checked_number, checked_sequence, checked_states
from robodyn_ros.compiled.c.export import reference_states, write_c
from robodyn_ros.compiled.symbolic.expression import (
    FUNCTIONS,
    Graph,
    Scalar,
    live_nodes,
    operation_count,
)
from robodyn_ros.compiled.symbolic.kernel import Kernel
from robodyn_ros.dynamics.lagrangian_coefficients import gravitational_coefficients
from robodyn_ros.dynamics.mass_matrix import composite_mass_matrix
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.record import Record, Rows, Table
from robodyn_ros.spatial import FloatArray

SimplifiedFunction = Literal['gravity_torque', 'mass_matrix', 'inverse_dynamics']
Part = Literal['inertia', 'gravity']
Measure = Literal['largest', 'mean']
PARTS: tuple[Part, ...] = get_args(Part)
MEASURES: tuple[Measure, ...] = get_args(Measure)
_CHOOSING, _MEASURING = 2048, 8192
_MEASURING_SEED = 21
# Terms are chosen at some positions and the error is measured at others: leave room for those.
_MARGIN = 0.9
# A gravity load under this fraction of the arm's largest is rounding, and no scale for an error.
_ROUNDING = 1e-9

_Place = tuple[int, int]
"""A coefficient's index, and that of a term in it."""


@dataclass(frozen=True, eq=False, repr=False)
class Operations(Record):
    """What code takes; ``functions`` are sines and cosines."""

    multiplications: int
    additions: int
    functions: int

    @property
    def total(self) -> int:
        """Multiplications and additions."""
        return self.multiplications + self.additions


@dataclass(frozen=True, eq=False, repr=False)
class Simplification(Record):
    """
    A coefficient in few terms.

    Attributes
    ----------
    formula : Formula
        The terms that are kept.
    dropped_terms : int
    mean_error, largest_error : float
        Over the joint space, as fractions of what the coefficient is weighed against.
    """

    formula: Formula
    dropped_terms: int
    mean_error: float
    largest_error: float


@dataclass(frozen=True, eq=False, repr=False)
class SimplifiedModel(Record):
    """
    An arm's mass matrix and gravity torques in few terms; made by ``simplified_model``.

    Attributes
    ----------
    joint_names : tuple of str
    error : float
        What was allowed.
    measure : 'largest' or 'mean'
        Over the joint space: what ``error`` bounds.
    inertia : tuple of Simplification
        d_11, d_12, ... d_1n, d_22, ... d_nn, rotor inertia included; empty if not asked for.
    gravity : tuple of Simplification
        G_1 to G_n; empty if not asked for.
    operations, exact_operations : Operations
        Of the formulas that are kept, and of the complete ones.
    """

    joint_names: tuple[str, ...]
    error: float
    measure: Measure
    inertia: tuple[Simplification, ...]
    gravity: tuple[Simplification, ...]
    operations: Operations
    exact_operations: Operations

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    @property
    def formulas(self) -> Rows[Formula]:
        """All formulas, those of the inertia first."""
        return Rows(x.formula for x in (*self.inertia, *self.gravity))

    def mass_matrix(self, q: ArrayLike) -> NDArray:
        """Return the simplified M(q) (n, n), or (N, n, n) for N positions (N, n)."""
        (q,) = checked_states(self.n, q=q)
        self._must_hold('inertia')
        return self._symmetric([x.formula for x in self.inertia], q)

    def gravity_torque(self, q: ArrayLike) -> NDArray:
        """Return the simplified g(q) (n,) [N m or N], or (N, n) for N positions (N, n)."""
        (q,) = checked_states(self.n, q=q)
        self._must_hold('gravity')
        return np.stack([x.formula.values(q) for x in self.gravity], axis=-1)

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> NDArray:
        """
        Return the torques (n,) or (N, n) [N m or N] of the simplified model.

        Centrifugal and Coriolis torques are those of the simplified mass matrix, by its exact
        derivatives: energy is conserved as in the complete model.
        """
        q, qd, qdd = checked_states(self.n, q=q, qd=qd, qdd=qdd)
        self._must_hold('inertia')
        velocity = np.zeros_like(q)
        for k, formulas in enumerate(self._derivatives):
            rate = self._symmetric(formulas, q)
            moved = (rate @ qd[..., None])[..., 0]
            velocity += qd[..., k, None] * moved
            velocity[..., k] -= (qd * moved).sum(axis=-1) / 2
        inertia = (self.mass_matrix(q) @ qdd[..., None])[..., 0]
        return inertia + velocity + self.gravity_torque(q)

    @property
    def kernels(self) -> list[Kernel]:
        """
        The model as straight-line code, like that of the complete one.

        ``gravity_torque(q)``, ``mass_matrix(q)`` and ``inverse_dynamics(q, qd, qdd)``, as far as
        the parts are held.
        """
        n, result = self.n, []
        torque = (('tau', (n,)),)
        if self.gravity:
            (q,) = _symbols(n, 'q')
            result.append(
                Kernel('gravity_torque', (('q', n),), torque, tuple(self._gravity_at(q)))
            )
        if self.inertia:
            (q,) = _symbols(n, 'q')
            mass = _mirrored(n, expressions([x.formula for x in self.inertia], q))
            outputs = tuple(x for row in mass for x in row)
            result.append(Kernel('mass_matrix', (('q', n),), (('mass', (n, n)),), outputs))
        if self.gravity and self.inertia:
            q, qd, qdd = _symbols(n, 'q', 'qd', 'qdd')
            mass = _mirrored(n, expressions([x.formula for x in self.inertia], q))
            total = [x + _dot(row, qdd) for x, row in zip(self._gravity_at(q), mass)]
            for k, formulas in enumerate(self._derivatives):
                rate = _mirrored(n, expressions(formulas, q))
                moved = [_dot(row, qd) for row in rate]
                total = [x + qd[k] * y for x, y in zip(total, moved)]
                total[k] = total[k] - 0.5 * _dot(moved, qd)
            inputs = (('q', n), ('qd', n), ('qdd', n))
            result.append(Kernel('inverse_dynamics', inputs, torque, tuple(total)))
        return result

    def export_c(
        self,
        folder: str | Path,
        *,
        name: str = 'arm',
        functions: Sequence[SimplifiedFunction] = (),
    ) -> list[Path]:
        """
        Write ``kernels`` as C99, header, source and self-test, as ``compiled.export_c`` does.

        Parameters
        ----------
        folder, name
            As there.
        functions : sequence of str
            Of those to write; all where not given.

        Raises
        ------
        InvalidArgument, OSError
        """
        about = (
            f'Simplified dynamics of an arm of {self.n} joints:',
            f'every coefficient within {self.error:.2%} of its peak, '
            + ('everywhere.' if self.measure == 'largest' else 'in the mean.'),
        )
        states = reference_states(self.n)
        kernels = [x for x in self.kernels if not functions or x.name in functions]
        held = [x.name for x in self.kernels]
        for function in functions:
            if function not in held:
                raise InvalidArgument('argument functions', function, ', '.join(map(repr, held)))
        expected = {
            kernel.name: [getattr(self, kernel.name)(*(states[key] for key, _ in kernel.inputs))]
            for kernel in kernels
        }
        return write_c(folder, name, kernels, about, states, expected)

    def _gravity_at(self, q: Sequence[Scalar]) -> list[Scalar]:
        return expressions([x.formula for x in self.gravity], q)

    @cached_property
    def _derivatives(self) -> list[list[Formula]]:
        return [[x.formula.derivative(k) for x in self.inertia] for k in range(self.n)]

    def _symmetric(self, formulas: Sequence[Formula], q: NDArray) -> NDArray:
        result = np.empty((*q.shape, self.n), dtype=q.dtype)
        for i, j, formula in zip(*np.triu_indices(self.n), formulas):
            result[..., i, j] = result[..., j, i] = formula.values(q)
        return result

    def _must_hold(self, part: str) -> None:
        if part not in PARTS or not getattr(self, part):
            held = ', '.join(repr(name) for name in PARTS if getattr(self, name))
            raise InvalidArgument('part of the simplified model', part, held)

    def _tables(self) -> Iterable[Table]:
        header = (*Formula._row_header, 'terms dropped', 'mean error', 'largest error')
        rows = (
            [
                *x.formula._row(),
                str(x.dropped_terms),
                f'{x.mean_error:.2%}',
                f'{x.largest_error:.2%}',
            ]
            for x in (*self.inertia, *self.gravity)
        )
        return [Table(header, rows)]

    def __str__(self) -> str:
        return '\n'.join(
            f'{x.formula}\n    # {x.dropped_terms} terms dropped, error {x.mean_error:.2%} in the '
            f'mean, {x.largest_error:.2%} at most'
            for x in (*self.inertia, *self.gravity)
        )


def _symbols(n: int, *names: str) -> list[list[Scalar]]:
    """Return inputs of n components each, of one graph."""
    graph = Graph()
    return [list(graph.input(name, n)) for name in names]


def _mirrored(n: int, values: Sequence[Scalar]) -> list[list[Scalar]]:
    """Return the symmetric matrix of an upper triangle, given row by row."""
    rows: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    for i, j, value in zip(*np.triu_indices(n), values):
        rows[i][j] = rows[j][i] = value
    return rows


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return sum((x * y for x, y in zip(a, b)), 0.0)


def simplified_model(
    model: RobotModel,
    error: float,
    *,
    measure: Measure = 'largest',
    parts: Sequence[Part] = PARTS,
    negligible_torque: float = 0.0,
    limits: Limits | None = None,
) -> SimplifiedModel:
    """
    Return a model with the terms that a given error needs.

    Parameters
    ----------
    model : RobotModel
        With its payload, if it is to carry one.
    error : float
        Allowed fraction, as 0.02 for 2 %.
    measure : 'largest' or 'mean'
        Whether the error over the joint space is to stay under it everywhere or in the mean.
    parts : sequence of 'inertia', 'gravity'
    negligible_torque : float [N m or N]
        A negligible gravity torque: errors in G_i are weighed against at least ``negligible_torque
        / error``.
    limits : mapping of joint name to (lower, upper), optional
        See ``JointSpace.of``.

    Raises
    ------
    InvalidArgument, NoSuchName

    Notes
    -----
    Terms are dropped one by one, and, for a second candidate, by the number in front, wherever
    it occurs: a number is a product of inertial parameters and lengths, and to drop it everywhere
    keeps common subexpressions common. The candidate that takes fewer operations is returned.
    Errors are measured at positions that had no part in the choice.
    """
    checked_model(model)
    if measure not in MEASURES:
        raise InvalidArgument('argument measure', measure, ', '.join(map(repr, MEASURES)))
    for name, value in (('error', error), ('negligible_torque', negligible_torque)):
        if not 0 <= checked_number(name, value) < np.inf:
            raise InvalidArgument(f'argument {name}', value, 'zero or more')
    for part in checked_sequence('parts', parts, str, "'inertia', 'gravity'"):
        if part not in PARTS:
            raise InvalidArgument('argument parts', part, ', '.join(map(repr, PARTS)))
    joint_space = JointSpace.of(model, limits)
    if negligible_torque and not error:
        raise InvalidArgument('argument error', error, 'more than zero beside a negligible torque')
    smallest_peak = negligible_torque / error if negligible_torque else 0.0
    groups: dict[str, tuple[Simplification, ...]] = dict.fromkeys(PARTS, ())
    complete: list[Formula] = []
    for part in sorted(set(parts), key=PARTS.index):
        weighed = _WeighedFormulas(model, part, joint_space, smallest_peak)
        groups[part] = weighed.simplified(error, measure)
        complete += weighed.formulas
    kept = [x.formula for group in groups.values() for x in group]
    return SimplifiedModel(
        model.joint_names,
        error,
        measure,
        groups['inertia'],
        groups['gravity'],
        _operations_of(kept, model.n),
        _operations_of(complete, model.n),
    )


class _WeighedFormulas:
    """The complete formulas of one part, and what their errors are weighed against."""

    def __init__(
        self, model: RobotModel, part: Part, joint_space: JointSpace, smallest_peak: float
    ) -> None:
        self.model, self.part, self.smallest_peak = model, part, smallest_peak
        self.choosing = joint_space.sample(_CHOOSING)
        self.measuring = joint_space.sample(_MEASURING, _MEASURING_SEED)
        if part == 'inertia':
            self.formulas = [f for row in inertia_formulas(model) for f in row]
        else:
            self.formulas = list(gravity_formulas(model))

    def values_and_scales(self, q: FloatArray) -> tuple[NDArray, NDArray]:
        """Return exact coefficients and what they are weighed against (number of them, N)."""
        if self.part == 'gravity':
            values = gravitational_coefficients(self.model, q).T
            peak = np.abs(values).max(axis=1)
            peak = np.maximum(peak, max(self.smallest_peak, _ROUNDING * peak.max()))
            return values, np.broadcast_to(peak[:, None], values.shape)
        inertia = composite_mass_matrix(self.model, q) + self.model.rotor_matrix
        i, j = np.triu_indices(self.model.n)
        self_inertia = np.diagonal(inertia, axis1=1, axis2=2)
        scale = np.sqrt(np.maximum(self_inertia[:, i] * self_inertia[:, j], 0.0))
        return inertia[:, i, j].T, scale.T

    def simplified(self, error: float, measure: Measure) -> tuple[Simplification, ...]:
        """Return all coefficients of the part with the terms that the error needs."""
        _, scales = self.values_and_scales(self.choosing)
        parts = [
            quotient(f.coefficients[:, None] * products(f.terms, self.choosing), scale)
            for f, scale in zip(self.formulas, scales)
        ]
        places = [(row, k) for row, f in enumerate(self.formulas) for k in range(len(f.terms))]
        numbers: defaultdict[float, list[_Place]] = defaultdict(list)
        for row, k in places:
            numbers[abs(self.formulas[row].terms[k].coefficient)].append((row, k))
        candidates = [
            self._without(_droppable(parts, units, _MARGIN * error, measure))
            for units in ([[place] for place in places], list(numbers.values()))
        ]
        n = self.model.n
        kept = min(candidates, key=lambda formulas: _operations_of(formulas, n).total)
        return tuple(self._measured(kept))

    def _without(self, dropped: set[_Place]) -> list[Formula]:
        return [
            Formula(
                f.symbol,
                f.unit,
                tuple(t for k, t in enumerate(f.terms) if (row, k) not in dropped),
            )
            for row, f in enumerate(self.formulas)
        ]

    def _measured(self, kept: Sequence[Formula]) -> list[Simplification]:
        values, scales = self.values_and_scales(self.measuring)
        result = []
        for formula, complete, value, scale in zip(kept, self.formulas, values, scales):
            errors = np.abs(quotient(formula.values(self.measuring) - value, scale))
            dropped = len(complete.terms) - len(formula.terms)
            result.append(
                Simplification(formula, dropped, float(errors.mean()), float(errors.max()))
            )
        return result


def _droppable(
    parts: Sequence[NDArray], units: Sequence[Sequence[_Place]], error: float, measure: Measure
) -> set[_Place]:
    """
    Return the terms (row, k) that can go: whole units, the smallest fraction first.

    ``parts[row][k]`` (N,) is term k of coefficient ``row`` as a fraction, at N positions.
    """
    total = [np.zeros(part.shape[1]) for part in parts]
    dropped: set[_Place] = set()
    sizes = [max(float(np.abs(parts[row][k]).max()) for row, k in unit) for unit in units]
    for index in np.argsort(sizes, kind='stable'):
        change: dict[int, NDArray] = {}
        for row, k in units[index]:
            change[row] = change.get(row, total[row]) + parts[row][k]
        sized = [
            np.abs(x).max() if measure == 'largest' else np.abs(x).mean() for x in change.values()
        ]
        if max(sized) <= error:
            dropped.update(units[index])
            for row, errors in change.items():
                total[row] = errors
    return dropped


def _operations_of(formulas: Sequence[Formula], n: int) -> Operations:
    """Return what straight-line code of formulas of n joint positions takes."""
    graph = Graph()
    outputs = expressions(formulas, graph.input('q', n))
    functions = sum(graph.nodes[node][0] in FUNCTIONS for node in live_nodes(outputs))
    return Operations(*operation_count(outputs), functions)
