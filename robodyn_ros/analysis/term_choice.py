# SPDX-License-Identifier: Apache-2.0
"""
Which terms of d_ij and G_i an error allows to drop.

The error is weighed against

    d_ij : sqrt(d_ii d_jj) at the same position; for i = j that is the relative error,
    G_i  : the largest |G_i| of the joint space.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.analysis.expansion import gravity_formulas, inertia_formulas
from robodyn_ros.analysis.formulas import Formula, expressions, products
from robodyn_ros.analysis.joint_space import JointSpace
from robodyn_ros.analysis.quantities import quotient
from robodyn_ros.analysis.records import Record
from robodyn_ros.compiled.symbolic.expression import FUNCTIONS, Graph, live_nodes, operation_count
from robodyn_ros.dynamics.lagrangian_coefficients import gravitational_coefficients
from robodyn_ros.dynamics.mass_matrix import composite_mass_matrix
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

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

Place = tuple[int, int]
"""A coefficient's index, and that of a term in it."""


@dataclass(frozen=True)
class Operations(Record):
    """What code takes; ``functions`` are sines and cosines."""

    multiplications: int
    additions: int
    functions: int

    @property
    def total(self) -> int:
        """Multiplications and additions."""
        return self.multiplications + self.additions


@dataclass(frozen=True)
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


class WeighedFormulas:
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
        inertia = composite_mass_matrix(self.model, q) + np.diag(self.model.rotor_inertia)
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
        numbers: defaultdict[float, list[Place]] = defaultdict(list)
        for row, k in places:
            numbers[abs(self.formulas[row].terms[k].coefficient)].append((row, k))
        candidates = [
            self._without(_droppable(parts, units, _MARGIN * error, measure))
            for units in ([[place] for place in places], list(numbers.values()))
        ]
        n = self.model.n
        kept = min(candidates, key=lambda formulas: operations_of(formulas, n).total)
        return tuple(self._measured(kept))

    def _without(self, dropped: set[Place]) -> list[Formula]:
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
    parts: Sequence[NDArray], units: Sequence[Sequence[Place]], error: float, measure: Measure
) -> set[Place]:
    """
    Return the terms (row, k) that can go: whole units, the smallest fraction first.

    ``parts[row][k]`` (N,) is term k of coefficient ``row`` as a fraction, at N positions.
    """
    total = [np.zeros(part.shape[1]) for part in parts]
    dropped: set[Place] = set()
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


def operations_of(formulas: Sequence[Formula], n: int) -> Operations:
    """Return what straight-line code of formulas of n joint positions takes."""
    graph = Graph()
    outputs = expressions(formulas, graph.input('q', n))
    functions = sum(graph.nodes[node][0] in FUNCTIONS for node in live_nodes(outputs))
    return Operations(*operation_count(outputs), functions)
