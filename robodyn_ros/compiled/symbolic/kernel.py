# SPDX-License-Identifier: Apache-2.0
"""A function as straight-line code: an expression for every output."""

from __future__ import annotations

import math
from dataclasses import dataclass

from robodyn_ros.compiled.symbolic.expression import (
    SCALAR_FUNCTIONS,
    Scalar,
    graph_of,
    live_nodes,
    operation_count,
)


@dataclass(frozen=True)
class Kernel:
    """
    Straight-line code of one function.

    Attributes
    ----------
    name : str
    inputs : tuple of (name, size)
        Those of the caller, in order.
    results : tuple of (name, shape)
        The arrays that it returns.
    outputs : tuple of scalars
        The results one after the other, each row by row.
    pivots : tuple of scalars
        What must be positive for the results to exist.
    optional : tuple of str
        The last inputs, zero where a caller from Python leaves them out.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[Scalar, ...]
    pivots: tuple[Scalar, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def sizes(self) -> list[int]:
        """How many of the outputs each result takes."""
        return [math.prod(shape) for _, shape in self.results]

    @property
    def has_scalar_functions(self) -> bool:
        """Whether it calls the C library for more than sines and cosines."""
        nodes = graph_of(self.outputs).nodes
        return any(nodes[node][0] in SCALAR_FUNCTIONS for node in live_nodes(self.outputs))

    @property
    def operation_count(self) -> tuple[int, int]:
        """Multiplications, with divisions, and additions."""
        return operation_count([*self.outputs, *self.pivots])
