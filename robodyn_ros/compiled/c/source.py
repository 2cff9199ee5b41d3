# SPDX-License-Identifier: Apache-2.0
"""
Straight-line C from the expressions of a kernel, as statements that the files beside it wrap.

All names are made here, from numbers: nothing that a robot description holds becomes source code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from robodyn_ros.compiled.symbolic.expression import (
    FUNCTIONS,
    INPUT,
    LEAVES,
    NUMBER,
    SCALAR_FUNCTIONS,
    Expression,
    Graph,
    Scalar,
    angle_nodes,
    graph_of,
    live_nodes,
)
from robodyn_ros.compiled.symbolic.kernel import Kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import PARAMETERS

_LONGEST_TEXT = 64
# With more operations than this, one state does not wait for all its sines and cosines, unless
# they are many.
_MOST_FOR_VECTORS, _MOST_ALONE = 250, 16
# NaN stays NaN.
_IN_C = {
    'tanh': 'tanh({0})',
    'abs': 'fabs({0})',
    'sign': '({0} > 0.0 ? 1.0 : {0} < 0.0 ? -1.0 : {0})',
}


@dataclass(frozen=True)
class StraightLine:
    """
    Statements that compute a kernel.

    Attributes
    ----------
    inputs : list of (name, k)
        The components that are read.
    angles : list of str
        Expressions of the inputs; sine and cosine of angle k are called ``s{k}`` and ``c{k}``.
    functions : list of (name, function, k)
        The sines and cosines that are used: ``('s3', 'sin', 3)`` is that of angle 3.
    statements : list of (name, expression)
    sections : list of str
        What each statement belongs to.
    outputs : list of str
    """

    inputs: list[tuple[str, int]]
    angles: list[str]
    functions: list[tuple[str, str, int]]
    statements: list[tuple[str, str]]
    sections: list[str]
    outputs: list[str]


def straight_line(outputs: Sequence[Scalar]) -> StraightLine:
    """Return the statements of outputs; what is used once is written where it is used."""
    graph, nodes = graph_of(outputs), live_nodes(outputs)
    uses = Counter(output.node for output in outputs if isinstance(output, Expression))
    for node in nodes:
        operator, a, b = graph.nodes[node]
        if operator not in LEAVES:
            uses.update([a] if b is None else [a, b])
    in_angles = {k for parts in angle_nodes(graph, nodes).values() for k in parts}
    writer = _Writer(graph, uses, in_angles)
    for node in nodes:
        writer.write(node)
    texts = [
        _signed(writer.text[x.node], x.sign) if isinstance(x, Expression) else _number(x)
        for x in outputs
    ]
    return StraightLine(
        writer.inputs, writer.angles, writer.functions, writer.statements, writer.sections, texts
    )


def kernel_signature(name: str, kernel: Kernel) -> str:
    """Return the head of a kernel's function without run-time inputs; names begin with name."""
    arguments = [f'const double {input}[{width}]' for input, width in kernel.inputs]
    results = [f'double {result}[{size}]' for result, size in sized_results(kernel)]
    kind = 'int' if kernel.pivots else 'void'
    return f'{kind} {name}_{kernel.name}({", ".join([*arguments, *results])})'


def kernel_function(name: str, kernel: Kernel) -> str:
    """Return a kernel without run-time inputs as a function; -1: a pivot is not positive."""
    inputs = {input: input for input, _ in kernel.inputs}
    lines, wrong = _body(kernel, inputs, [result for result, _ in kernel.results])
    return '\n'.join(
        [
            kernel_signature(name, kernel),
            '{',
            *lines,
            *([f'    return {wrong} ? -1 : 0;'] if wrong else []),
            '}\n',
        ]
    )


def loaded_function(kernel: Kernel, *, in_lanes: bool = False) -> str:
    """
    Return a kernel as a function ``..._one`` of run-time inputs, too, for its own file alone.

    It returns 0 where a pivot is not positive. In lanes, sines and cosines are those of
    ``vectors.h``.
    """
    inputs = {input: f'in[{k}]' for k, (input, _) in enumerate(kernel.inputs)}
    # Not by one pointer for each result: GCC 12 would not pair the stores of a long one, and a
    # regressor of 30 joints take 1.17 times as long.
    results = [f'out[{k}]' for k in range(len(kernel.results))]
    lines, wrong = _body(kernel, {**inputs, PARAMETERS: PARAMETERS}, results, in_lanes)
    returned = f'!({wrong})' if wrong else '1'
    return '\n'.join([kernel_head(kernel, 'one'), '{', *lines, f'    return {returned};', '}\n'])


def kernel_head(kernel: Kernel, suffix: str) -> str:
    """Return the head of one of a kernel's functions of run-time inputs."""
    return (
        f'static int {kernel.name}_{suffix}('
        f'const double *{PARAMETERS}, const double *const *in, double *const *out)'
    )


def sized_results(kernel: Kernel) -> list[tuple[str, int]]:
    """Return name and size of each result."""
    return [(result, size) for (result, _), size in zip(kernel.results, kernel.sizes)]


def _body(
    kernel: Kernel, inputs: Mapping[str, str], results: Sequence[str], in_lanes: bool = False
) -> tuple[list[str], str]:
    """Return the lines from inputs to results, and what is true where they do not exist."""
    code = straight_line([*kernel.outputs, *kernel.pivots])
    size = len(kernel.outputs)
    places = [
        f'{result}[{k}]' for result, count in zip(results, kernel.sizes) for k in range(count)
    ]
    read = {input for input, _ in code.inputs}
    lines = [f'    (void){inputs[input]};' for input in inputs if input not in read]
    lines += [
        f'    const double {input_name(input, k)} = {inputs[input]}[{k}];'
        for input, k in sorted(code.inputs)
    ]
    lines += (
        _angles(kernel, code)
        if in_lanes
        else [
            f'    const double {variable} = {function}({code.angles[k]});'
            for variable, function, k in code.functions
        ]
    )
    section = ''
    for (variable, text), belongs in zip(code.statements, code.sections):
        if belongs != section:
            lines.append(f'    /* {belongs} */')
            section = belongs
        lines.append(f'    const double {variable} = {text};')
    lines += [f'    {place} = {text};' for place, text in zip(places, code.outputs[:size])]
    return lines, ' || '.join(f'{pivot} <= 0.0' for pivot in code.outputs[size:])


def _angles(kernel: Kernel, code: StraightLine) -> list[str]:
    """Return the lines that take sines and cosines from ``vectors.h``."""
    lines = []
    is_long = sum(kernel.operation_count) > _MOST_FOR_VECTORS
    if (is_long and len(code.angles) <= _MOST_ALONE) or not code.angles:
        for k, text in enumerate(code.angles):
            lines += [f'    double s{k}, c{k};', f'    sine_and_cosine({text}, &s{k}, &c{k});']
        return lines
    lines = [
        f'    enum {{ VECTORS = ({len(code.angles)} + LANES - 1) / LANES }};',
        '    vec angles[VECTORS], sines[VECTORS], cosines[VECTORS];',
        f'    const double angle[VECTORS * LANES] = {{{", ".join(code.angles)}}};',
        '    memcpy(angles, angle, sizeof angles);',
        '    for (int k = 0; k < VECTORS; k++)',
        '        sines_and_cosines(angles + k, sines + k, cosines + k);',
    ]
    for name, function, k in code.functions:
        array = {'sin': 'sines', 'cos': 'cosines'}[function]
        lines.append(f'    const double {name} = {array}[{k} / LANES][{k} % LANES];')
    return lines


class _Writer:
    """Gives every node its text: a name, or an expression where it is used once."""

    def __init__(self, graph: Graph, uses: Counter[int], in_angles: set[int]) -> None:
        self.text: dict[int, str] = {}
        self.inputs: list[tuple[str, int]] = []
        self.angles: list[str] = []
        self.functions: list[tuple[str, str, int]] = []
        self.statements: list[tuple[str, str]] = []
        self.sections: list[str] = []
        self._graph = graph
        self._uses = uses
        self._in_angles = in_angles
        self._angle_of: dict[int, int] = {}

    def write(self, node: int) -> None:
        operator, a, b = self._graph.nodes[node]
        if operator == INPUT:
            self.inputs.append((a, b))
            self.text[node] = input_name(a, b)
        elif operator == NUMBER:
            self.text[node] = _number(a)
        elif operator in FUNCTIONS:
            if a not in self._angle_of:
                self._angle_of[a] = len(self.angles)
                self.angles.append(self.text[a])
            name = f'{operator[0]}{self._angle_of[a]}'
            self.functions.append((name, operator, self._angle_of[a]))
            self.text[node] = name
        elif operator in SCALAR_FUNCTIONS:
            self._name(node, _IN_C[operator].format(_in_brackets(self.text[a])))
        else:
            self._write_operation(node, operator, a, b)

    def _write_operation(self, node: int, operator: str, a: int, b: int) -> None:
        left, right = self.text[a], self.text[b]
        if operator in '*/':
            left, right = _in_brackets(left), _in_brackets(right)
        elif operator == '-':
            right = _in_brackets(right)
        text = f'{left} {operator} {right}'
        if node in self._in_angles or (self._uses[node] == 1 and len(text) <= _LONGEST_TEXT):
            self.text[node] = text
        else:
            self._name(node, text)

    def _name(self, node: int, text: str) -> None:
        name = f't{len(self.statements)}'
        self.statements.append((name, text))
        self.sections.append(self._graph.sections[node])
        self.text[node] = name


def input_name(name: str, k: int) -> str:
    """Return the variable that holds a component of an input."""
    return f'{name}_{k}'


def _in_brackets(text: str) -> str:
    return f'({text})' if ' ' in text else text


def _signed(text: str, sign: int) -> str:
    return text if sign > 0 else f'-{_in_brackets(text)}'


def _number(value: Scalar) -> str:
    assert not isinstance(value, Expression)
    return repr(float(value))
