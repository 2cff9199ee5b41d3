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
from robodyn_ros.dynamics import METHODS
from robodyn_ros.model import RobotModel

Count = tuple[int, int]
"""Multiplications, with divisions, and additions."""


def structural_count(model: RobotModel, *, terminal_forces: bool = False) -> Count:
    """
    Return the operations of the customised recursion for any arm of the model's structure.

    Every number of the model other than 0 and +-1 counts as a symbolic constant: one for each
    distinct length, sine or cosine, one for each inertial parameter that regrouping leaves.

    Parameters
    ----------
    model : RobotModel
    terminal_forces : bool
        Whether force and moment at the tip are inputs, in the axes of frame n.
    """
    graph = Graph()
    q, qd, qdd = (list(graph.input(name, model.n)) for name in ('q', 'qd', 'qdd'))
    arm = symbolic_arm(model, q, EquivalentInertias(model.dh), symbols=graph)
    tip: list[Any] = [graph.input(name, 3) for name in ('f', 'm')] if terminal_forces else []
    return operation_count(joint_torques(arm, qd, qdd, *tip))


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
