# SPDX-License-Identifier: Apache-2.0
"""LLVM code straight from the expressions of a kernel; needs llvmlite, which comes with numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from robodyn_ros.compiled.symbolic.expression import (
    FUNCTIONS,
    INPUT,
    NUMBER,
    Expression,
    angle_nodes,
    graph_of,
    live_nodes,
)
from robodyn_ros.compiled.symbolic.kernels import Kernel

_DOUBLE, _INTEGER = ir.DoubleType(), ir.IntType(64)
# As in extension.h: pi/2 in three parts, and the polynomials of fdlibm in the angle's square.
_FARTHEST_ANGLE = 5e5
_ROUND = 6755399441055744.0
_QUARTERS = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_SINE = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
    -1.66666666666666324348e-01,
)
_COSINE = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
    -0.5,
)


def emit_kernel(builder: Any, kernel: Kernel, arrays: dict[str, Any], out: Any) -> Any:
    """
    Emit a kernel; return 0, or 1 where a pivot is not positive.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    kernel : Kernel
    arrays : dict of input name to pointer to double
    out : pointer to double
    """
    outputs = [*kernel.outputs, *kernel.pivots]
    graph, live = graph_of(outputs), live_nodes(outputs)
    values: dict[int, Any] = {}
    binary = {'+': builder.fadd, '-': builder.fsub, '*': builder.fmul, '/': builder.fdiv}

    def compute(nodes: Sequence[int]) -> None:
        for node in nodes:
            operator, a, b = graph.nodes[node]
            if operator == NUMBER:
                values[node] = ir.Constant(_DOUBLE, a)
            elif operator in binary and node not in values:
                values[node] = binary[operator](values[a], values[b], flags=['contract'])

    def result(output: Any) -> Any:
        if not isinstance(output, Expression):
            return ir.Constant(_DOUBLE, float(output))
        value = values[output.node]
        return value if output.sign > 0 else builder.fneg(value)

    # Inputs are read before results are written: both may be the same array.
    for node in live:
        operator, name, k = graph.nodes[node]
        if operator == INPUT:
            values[node] = builder.load(_element(builder, arrays[name], k))
    angles = angle_nodes(graph, live)
    for parts in angles.values():
        compute(parts)
    both = dict(zip(angles, _sines_and_cosines(builder, [values[angle] for angle in angles])))
    for node in live:
        operator, angle, _ = graph.nodes[node]
        if operator in FUNCTIONS:
            values[node] = both[angle][operator == 'cos']
    compute(live)
    for k, output in enumerate(kernel.outputs):
        builder.store(result(output), _element(builder, out, k))
    singular = ir.Constant(ir.IntType(1), 0)
    for pivot in kernel.pivots:
        wrong = builder.fcmp_ordered('<=', result(pivot), ir.Constant(_DOUBLE, 0.0))
        singular = builder.or_(singular, wrong)
    return builder.zext(singular, _INTEGER)


def _element(builder: Any, array: Any, k: int) -> Any:
    return builder.gep(array, [ir.Constant(_INTEGER, k)])


def _sines_and_cosines(builder: Any, angles: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Emit sine and cosine of all angles at once, as one vector."""
    if not angles:
        return []
    kind = ir.VectorType(_DOUBLE, len(angles))
    integers = ir.VectorType(_INTEGER, len(angles))

    def constant(value: float) -> Any:
        return ir.Constant(kind, [value] * len(angles))

    def whole(value: int) -> Any:
        return ir.Constant(integers, [value] * len(angles))

    def polynomial(z: Any, coefficients: Sequence[float]) -> Any:
        total = constant(coefficients[0])
        for coefficient in coefficients[1:]:
            total = builder.fadd(builder.fmul(total, z, **fused), constant(coefficient), **fused)
        return total

    def flipped(value: Any, quarters: Any) -> Any:
        sign = builder.shl(builder.and_(quarters, whole(2)), whole(62))
        return builder.bitcast(builder.xor(builder.bitcast(value, integers), sign), kind)

    fused: dict[str, Any] = {'flags': ['contract']}
    x = _vector(builder, kind, angles)
    shifted = builder.fadd(builder.fmul(x, constant(0.63661977236758134308)), constant(_ROUND))
    quarters = builder.bitcast(shifted, integers)
    k = builder.fsub(shifted, constant(_ROUND))
    r = x
    for part in _QUARTERS:
        r = builder.fsub(r, builder.fmul(k, constant(part), **fused), **fused)
    z = builder.fmul(r, r)
    s = builder.fadd(r, builder.fmul(builder.fmul(r, z), polynomial(z, _SINE)), **fused)
    c = builder.fadd(constant(1.0), builder.fmul(z, polynomial(z, _COSINE)), **fused)
    odd = builder.icmp_signed('!=', builder.and_(quarters, whole(1)), whole(0))
    near = [
        flipped(builder.select(odd, c, s), quarters),
        flipped(builder.select(odd, s, c), builder.add(quarters, whole(1))),
    ]
    is_far = builder.or_(
        builder.fcmp_unordered('>', x, constant(_FARTHEST_ANGLE)),
        builder.fcmp_unordered('<', x, constant(-_FARTHEST_ANGLE)),
    )
    any_far = builder.icmp_unsigned(
        '!=', builder.bitcast(is_far, ir.IntType(len(angles))), ir.IntType(len(angles))(0)
    )
    start = builder.block
    with builder.if_then(any_far, likely=False):
        far = []
        for name in FUNCTIONS:
            function = builder.module.declare_intrinsic(f'llvm.{name}', [_DOUBLE])
            far.append(_vector(builder, kind, [builder.call(function, [a]) for a in angles]))
        end = builder.block
    both = []
    for close, distant in zip(near, far):
        phi = builder.phi(kind)
        phi.add_incoming(close, start)
        phi.add_incoming(distant, end)
        both.append(phi)
    return [
        (builder.extract_element(both[0], place), builder.extract_element(both[1], place))
        for place in (ir.IntType(32)(k) for k in range(len(angles)))
    ]


def _vector(builder: Any, kind: Any, values: Sequence[Any]) -> Any:
    vector = ir.Constant(kind, ir.Undefined)
    for k, value in enumerate(values):
        vector = builder.insert_element(vector, value, ir.IntType(32)(k))
    return vector
