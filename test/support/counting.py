# SPDX-License-Identifier: Apache-2.0
"""
How many multiplications and additions the inverse dynamics of an arm take.

Of generated code, with the arm's own numbers or for all arms of its structure, and of the
formulations of ``robodyn_ros.dynamics``, which run unchanged on scalars that record what is done
to them. Sines, cosines, changes of sign, factors of 0 and +-1, and what is known before the joint
positions are, do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from robodyn_ros.compiled.symbolic.arm import symbolic_arm
from robodyn_ros.compiled.symbolic.equivalent_inertias import EquivalentInertias
from robodyn_ros.compiled.symbolic.expression import (
    Graph,
    Scalar,
    executed_operations,
    operation_count,
)
from robodyn_ros.compiled.symbolic.newton_euler import joint_torques
from robodyn_ros.dynamics import METHODS, kane
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray, pseudo_inertia

Count = tuple[int, int]
"""Multiplications, with divisions, and additions."""


class StandardInertias(EquivalentInertias):
    """Inertial parameters as they are: nothing is regrouped."""

    def pseudo_inertias(self, parameters: FloatArray) -> FloatArray:
        """Return pseudo-inertias (n, 4, 4) of inertial parameters (n, 10)."""
        return pseudo_inertia(parameters)


def structural_program(
    model: RobotModel, *, terminal_forces: bool = False, regrouped: bool = True
) -> list[Scalar]:
    """
    Return the torques of the customised recursion for any arm of the model's structure.

    Every number of the model other than 0 and +-1 counts as a symbolic constant: one for each
    distinct length, sine or cosine, one for each inertial parameter that regrouping leaves.

    Parameters
    ----------
    model : RobotModel
    terminal_forces : bool
        Whether force and moment at the tip are inputs, in the axes of frame n.
    regrouped : bool
        Whether inertial parameters are regrouped first, or stand as they are.
    """
    graph = Graph()
    q, qd, qdd = (list(graph.input(name, model.n)) for name in ('q', 'qd', 'qdd'))
    inertias = (EquivalentInertias if regrouped else StandardInertias)(model.dh)
    arm = symbolic_arm(model, q, inertias, symbols=graph)
    tip: list[Any] = [graph.input(name, 3) for name in ('f', 'm')] if terminal_forces else []
    return joint_torques(arm, qd, qdd, *tip)


def structural_count(model: RobotModel, **options: bool) -> Count:
    """Return the operations of ``structural_program``."""
    return operation_count(structural_program(model, **options))


def folded_count(model: RobotModel) -> Count:
    """Return the operations of the customised recursion with the model's own numbers."""
    graph = Graph()
    q, qd, qdd = (list(graph.input(name, model.n)) for name in ('q', 'qd', 'qdd'))
    equivalent_inertias = EquivalentInertias.fewest_operations(model.dh, model.inertial_parameters)
    torques: list[Scalar] = joint_torques(symbolic_arm(model, q, equivalent_inertias), qd, qdd)
    return operation_count(torques)


def formulation_count(model: RobotModel, method: str) -> Count:
    """Return the operations that a formulation of ``robodyn_ros.dynamics`` carries out."""
    graph = Graph(shared=False)
    states = [np.array(graph.input(name, model.n), dtype=object) for name in ('q', 'qd', 'qdd')]
    formulation: Callable[..., Any] = METHODS[method]
    formulation(model, *states)
    return executed_operations(graph)


# The calls of ``kane.joint_torques`` in their order: what is done between the last call and this
# one belongs to the first step, the call to the other.
_KANE_CALLS = (
    ('q + d', 'outward', 'w'),
    ('wd', 'cross', 'wd'),
    ('wd', 'outward', 'wd'),
    ('W', '_swing', 'W'),
    ('pdd', 'matrix_times', 'pdd'),
    ('pdd', 'cross', 'pdd'),
    ('pdd', 'matrix_times', 'pdd'),
    ('pdd', 'outward', 'pdd'),
    ('u', 'matrix_times', 'hd'),
    ('hd', 'matrix_times', 'hd'),
    ('hd', 'cross', 'hd'),
    ('hd', 'cross', 'k'),
    ('k', 'inward', 'Q v, v'),
    ('k', 'cross', 'k'),
    ('k', 'inward', 'Q w, w'),
)


def kane_steps(model: RobotModel) -> dict[str, Count]:
    """Return what each step of ``kane.joint_torques`` costs as it runs, by the print's names."""
    graph = Graph(shared=False)
    states = [np.array(graph.input(name, model.n), dtype=object) for name in ('q', 'qd', 'qdd')]
    calls = iter(_KANE_CALLS)
    steps: dict[str, Count] = {}
    filed = (0, 0)

    def file(step: str) -> None:
        nonlocal filed
        done = executed_operations(graph)
        before = steps.get(step, (0, 0))
        steps[step] = before[0] + done[0] - filed[0], before[1] + done[1] - filed[1]
        filed = done

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            between, expected, step = next(calls)
            assert name == expected, f'{name} where {expected} was'
            file(between)
            result = function(*arguments, **keywords)
            file(step)
            return result

        return call

    rotations = kane._Rotations
    places: list[tuple[Any, str]] = [(kane, x) for x in ('cross', 'matrix_times', '_swing')]
    places += [(rotations, x) for x in ('outward', 'inward')]
    patches = [patch.object(x, name, watched(name, getattr(x, name))) for x, name in places]
    for each in patches:
        each.start()
    try:
        kane.joint_torques(model, *states)
    finally:
        for each in patches:
            each.stop()
    assert next(calls, None) is None
    return {step: count for step, count in steps.items() if count != (0, 0)}
