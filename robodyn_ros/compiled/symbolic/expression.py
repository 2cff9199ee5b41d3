# SPDX-License-Identifier: Apache-2.0
"""
Symbolic scalars that fold constants, share common subexpressions and count operations.

Formulas written for floats run on them unchanged and leave straight-line code behind. An
expression is a node of a graph with a sign, so that a change of sign costs nothing. A number is
folded where it can be: products with 0 and +-1, sums with 0, numbers among themselves. A symbolic
constant stands for a number that is known before the formula runs: what is made of constants
alone is computed beforehand and not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from robodyn_ros.spatial import FloatArray

Scalar = Union['Expression', float]

INPUT, CONSTANT, NUMBER = 'input', 'constant', 'number'
LEAVES = (INPUT, CONSTANT, NUMBER)
# Functions of angles, evaluated before everything else.
FUNCTIONS: dict[str, Callable[..., Any]] = {'sin': np.sin, 'cos': np.cos}
# Functions of whatever was computed, evaluated where they stand.
SCALAR_FUNCTIONS: dict[str, Callable[..., Any]] = {
    'tanh': np.tanh,
    'abs': np.abs,
    'sign': np.sign,
}


class Graph:
    """
    The nodes of one computation, each an operator and its operands, in order of creation.

    Parameters
    ----------
    shared : bool
        Whether equal subexpressions are one node. Without, every operation that a formula carries
        out is a node: that counts algorithms as they are written.

    Attributes
    ----------
    nodes : list of (operator, left, right)
        ``('input', name, k)``, ``('constant', name, value)``, ``('number', value, None)``,
        ``('sin' | 'cos' | 'tanh' | 'abs' | 'sign', node, None)``,
        ``('+' | '-' | '*' | '/', node, node)``.
    constant : list of bool
        Whether a node is made of constants alone.
    section : str
        What is being computed, for the readers of the code.
    sections : list of str
        In which section each node was made.
    """

    def __init__(self, shared: bool = True) -> None:
        self.shared = shared
        self.nodes: list[tuple[str, Any, Any]] = []
        self.constant: list[bool] = []
        self.section = ''
        self.sections: list[str] = []
        self._index: dict[tuple[str, Any, Any], int] = {}

    def input(self, name: str, size: int) -> list[Expression]:
        """Return the ``size`` components of an input."""
        return [Expression(self, self._node(INPUT, name, k), 1) for k in range(size)]

    def symbol(self, name: str, value: float = 0.0) -> Expression:
        """Return a symbolic constant."""
        return Expression(self, self._node(CONSTANT, name, value), 1)

    def apply(self, operator: str, a: int, b: int | None = None) -> int:
        """Return the node of an operation."""
        return self._node(operator, a, b)

    def number(self, value: float) -> int:
        """Return the node of a number."""
        return self._node(NUMBER, value, None)

    def _node(self, operator: str, a: Any, b: Any) -> int:
        key = (operator, a, b)
        index = self._index.get(key) if self.shared or operator in LEAVES else None
        if index is None:
            index = len(self.nodes)
            self.nodes.append(key)
            self.sections.append(self.section)
            if operator in LEAVES:
                self.constant.append(operator != INPUT)
            else:
                self.constant.append(self.constant[a] and (b is None or self.constant[b]))
            self._index[key] = index
        return index


class Expression:
    """
    A scalar of a graph: plus or minus one of its nodes.

    Arithmetic with floats and other expressions of the graph gives expressions, or floats where
    everything folds.
    """

    __slots__ = ('graph', 'node', 'sign')

    def __init__(self, graph: Graph, node: int, sign: int) -> None:
        self.graph = graph
        self.node = node
        self.sign = sign

    def __neg__(self) -> Expression:
        return Expression(self.graph, self.node, -self.sign)

    def __pos__(self) -> Expression:
        return self

    def __add__(self, other: Scalar) -> Scalar:
        if not isinstance(other, Expression):
            if other == 0:
                return self
            other = _numeral(self.graph, float(other))
        return _sum(self, other)

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Scalar:
        return self + (-other)

    def __rsub__(self, other: Scalar) -> Scalar:
        return (-self) + other

    def __mul__(self, other: Scalar) -> Scalar:
        if not isinstance(other, Expression):
            if other == 0:
                return 0.0
            if other == 1:
                return self
            if other == -1:
                return -self
            other = _numeral(self.graph, float(other))
        return _product(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Scalar:
        if not isinstance(other, Expression):
            return self * (1.0 / other)
        node = self.graph.apply('/', self.node, other.node)
        return Expression(self.graph, node, self.sign * other.sign)

    def __rtruediv__(self, other: float) -> Scalar:
        return 0.0 if other == 0 else _numeral(self.graph, float(other)) / self

    def __pow__(self, exponent: int) -> Scalar:
        result: Scalar = 1.0
        for _ in range(exponent):
            result = result * self
        return result

    def sin(self) -> Expression:
        """Return the sine; NumPy calls it on arrays of expressions."""
        return Expression(self.graph, self.graph.apply('sin', self.node), self.sign)

    def cos(self) -> Expression:
        """Return the cosine; NumPy calls it on arrays of expressions."""
        return Expression(self.graph, self.graph.apply('cos', self.node), 1)

    def tanh(self) -> Expression:
        """Return the hyperbolic tangent; NumPy calls it on arrays of expressions."""
        return Expression(self.graph, self.graph.apply('tanh', self.node), self.sign)

    def __abs__(self) -> Expression:
        return Expression(self.graph, self.graph.apply('abs', self.node), 1)

    def __repr__(self) -> str:
        operator, a, b = self.graph.nodes[self.node]
        return f'{"-" if self.sign < 0 else ""}{operator}({a}, {b})'


def _numeral(graph: Graph, value: float) -> Expression:
    return Expression(graph, graph.number(abs(value)), 1 if value >= 0 else -1)


def _sum(a: Expression, b: Expression) -> Scalar:
    graph = a.graph
    if a.node == b.node and graph.shared:
        return 0.0 if a.sign != b.sign else a * 2.0
    if a.node > b.node:
        a, b = b, a
    if graph.shared:
        combined = _combined(a, b)
        if combined is not None:
            return combined
    # a + b, a - b and their negatives are one node.
    node = graph.apply('+' if a.sign == b.sign else '-', a.node, b.node)
    return Expression(graph, node, a.sign)


def _combined(a: Expression, b: Expression) -> Scalar | None:
    """Return k1 x + k2 x as (k1 + k2) x for constants k1, k2, or None."""
    (k1, x1), (k2, x2) = _factors(a), _factors(b)
    if x1 is None or x1 != x2:
        return None
    return (k1 + k2) * Expression(a.graph, x1, 1)


def _factors(a: Expression) -> tuple[Scalar, int | None]:
    """Return constant factor and variable node of an expression; no node if it is constant."""
    graph = a.graph
    if graph.constant[a.node]:
        return 1.0, None
    operator, left, right = graph.nodes[a.node]
    if operator == '*' and graph.constant[left]:
        return _value_or_constant(graph, left, a.sign), right
    return float(a.sign), a.node


def _value_or_constant(graph: Graph, node: int, sign: int) -> Scalar:
    operator, value, _ = graph.nodes[node]
    return sign * value if operator == NUMBER else Expression(graph, node, sign)


def _product(a: Expression, b: Expression) -> Scalar:
    graph = a.graph
    sign = a.sign * b.sign
    left, right = a.node, b.node
    if graph.constant[right]:
        left, right = right, left
    if graph.nodes[left][0] == NUMBER and graph.nodes[right][0] == NUMBER:
        return sign * graph.nodes[left][1] * graph.nodes[right][1]
    if graph.constant[left] and graph.shared:
        # A constant stands left, and swallows that of a product on its right.
        operator, inner, variable = graph.nodes[right]
        if operator == '*' and graph.constant[inner] and not graph.constant[right]:
            k = _value_or_constant(graph, left, sign) * _value_or_constant(graph, inner, 1)
            return k * Expression(graph, variable, 1)
    elif not graph.constant[left] and left > right:
        left, right = right, left
    return Expression(graph, graph.apply('*', left, right), sign)


def sine_and_cosine(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Return sine and cosine of an expression or a number."""
    if isinstance(angle, Expression):
        return angle.sin(), angle.cos()
    return math.sin(angle), math.cos(angle)


def sign(value: Scalar) -> Scalar:
    """Return -1, 0 or 1 as an expression or a number is negative, zero or positive."""
    if isinstance(value, Expression):
        return Expression(value.graph, value.graph.apply('sign', value.node), value.sign)
    return float(np.sign(value))


def graph_of(outputs: Iterable[Scalar]) -> Graph:
    """Return the graph of outputs, an empty one where all are numbers."""
    return next((output.graph for output in outputs if isinstance(output, Expression)), Graph())


def live_nodes(outputs: Sequence[Scalar]) -> list[int]:
    """Return the nodes that outputs need, operands first: what is left without dead code."""
    graph = graph_of(outputs)
    needed = bytearray(len(graph.nodes))
    stack = [output.node for output in outputs if isinstance(output, Expression)]
    while stack:
        node = stack.pop()
        if needed[node]:
            continue
        needed[node] = 1
        operator, a, b = graph.nodes[node]
        if operator not in LEAVES:
            stack.append(a)
            if b is not None:
                stack.append(b)
    return [node for node, flag in enumerate(needed) if flag]


def angle_nodes(graph: Graph, nodes: Sequence[int]) -> dict[int, list[int]]:
    """
    Return the arguments of the sines and cosines among nodes, and for each what it is made of.

    Arguments are sums of inputs and numbers, so that all functions can be evaluated first.
    """
    calls = (node for node in nodes if graph.nodes[node][0] in FUNCTIONS)
    angles = dict.fromkeys(graph.nodes[node][1] for node in calls)
    return {angle: live_nodes([Expression(graph, angle, 1)]) for angle in angles}


def operation_count(outputs: Sequence[Scalar]) -> tuple[int, int]:
    """
    Return how many multiplications (with divisions) and additions outputs take.

    Sines, cosines and other functions, sign changes, products with 0 and +-1, and what is made of
    constants alone are not counted.
    """
    return _counted(graph_of(outputs), live_nodes(outputs))


def executed_operations(graph: Graph) -> tuple[int, int]:
    """Return how many multiplications and additions made a graph, dead code included."""
    return _counted(graph, range(len(graph.nodes)))


def _counted(graph: Graph, nodes: Iterable[int]) -> tuple[int, int]:
    operators = [graph.nodes[node][0] for node in nodes if not graph.constant[node]]
    return (
        operators.count('*') + operators.count('/'),
        operators.count('+') + operators.count('-'),
    )


def evaluated(outputs: Sequence[Scalar], inputs: Mapping[str, FloatArray]) -> FloatArray:
    """
    Return the values of outputs (..., number of outputs) at inputs (..., size), broadcasting.

    This interprets the graph node by node with NumPy: slow for one state, handy for many.
    """
    graph = graph_of(outputs)
    batch = np.broadcast_shapes(*(array.shape[:-1] for array in inputs.values()))
    values: dict[int, Any] = {}
    for node in live_nodes(outputs):
        operator, a, b = graph.nodes[node]
        if operator == INPUT:
            values[node] = inputs[a][..., b]
        elif operator == CONSTANT:
            values[node] = b
        elif operator == NUMBER:
            values[node] = a
        elif operator in FUNCTIONS or operator in SCALAR_FUNCTIONS:
            values[node] = (FUNCTIONS | SCALAR_FUNCTIONS)[operator](values[a])
        else:
            values[node] = _ARITHMETIC[operator](values[a], values[b])
    result = np.empty((*batch, len(outputs)))
    for k, output in enumerate(outputs):
        result[..., k] = (
            output.sign * values[output.node] if isinstance(output, Expression) else output
        )
    return result


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    '+': lambda a, b: a + b,
    '-': lambda a, b: a - b,
    '*': lambda a, b: a * b,
    '/': lambda a, b: a / b,
}
