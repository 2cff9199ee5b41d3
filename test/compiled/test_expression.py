# SPDX-License-Identifier: Apache-2.0
"""Symbolic scalars: what folds, what is shared, what is counted."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robodyn_ros.compiled.c.source import straight_line
from robodyn_ros.compiled.symbolic.expression import (
    Expression,
    Graph,
    evaluated,
    executed_operations,
    live_nodes,
    operation_count,
)


@pytest.fixture
def xyz():
    return Graph().input('x', 3)


def test_zeros_and_ones_fold(xyz):
    x, y, _ = xyz
    assert x * 0 == 0.0
    assert (x * 1).node == x.node
    assert (x + 0).node == (0 + x).node == x.node
    assert operation_count([x * -1, -y, x * 1 + 0]) == (0, 0)


def test_numbers_fold_among_themselves(xyz):
    x, _, _ = xyz
    assert operation_count([2 * (3 * x)]) == (1, 0)
    assert operation_count([2 * x + 3 * x]) == (1, 0)
    assert 2 * x - 2 * x == 0.0
    assert evaluated([2 * (3 * x)], {'x': np.array([5.0, 0, 0])}) == [30.0]


def test_equal_subexpressions_are_one_node(xyz):
    x, y, z = xyz
    assert (x * y).node == (y * x).node
    assert (x + y).node == (y + x).node
    assert (x - y).node == (y - x).node == (x + -y).node
    assert operation_count([x * y + z, y * x - z]) == (1, 2)


def test_without_sharing_every_operation_counts():
    graph = Graph(shared=False)
    x, y = graph.input('x', 2)
    _ = x * y + y * x
    assert executed_operations(graph) == (2, 1)


def test_dead_code_is_left_out(xyz):
    x, y, z = xyz
    _ = x * y * z
    kept = x + y
    assert len(live_nodes([kept])) == 3
    assert operation_count([kept]) == (0, 1)


def test_signs_are_free(xyz):
    x, y, z = xyz
    assert operation_count([-(x * y), (-x) * y, x * -y, -z]) == (1, 0)
    assert operation_count([-x - y]) == (0, 1)


def test_constants_are_computed_beforehand():
    graph = Graph()
    (x,) = graph.input('x', 1)
    a, b = graph.symbol('a', 2.0), graph.symbol('b', 3.0)
    assert operation_count([(a * b + a) * x]) == (1, 0)
    assert evaluated([a * (b * x)], {'x': np.array([1.0])}) == [6.0]


def test_sines_and_cosines_of_arrays_are_not_counted(xyz):
    angles = np.array(xyz[:2], dtype=object)
    c, s = np.cos(angles), np.sin(angles)
    assert operation_count([c[0] * s[1]]) == (1, 0)
    assert np.cos(-angles)[0].node == c[0].node


OPERATORS = {'+': operator.add, '-': operator.sub, '*': operator.mul}


@given(
    st.lists(
        st.tuples(st.sampled_from('+-*'), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=25,
    ),
    st.integers(0, 2**31),
)
def test_any_formula_gives_what_floats_give(steps, seed):
    inputs = np.random.default_rng(seed).uniform(-2, 2, 4)
    symbols = [*Graph().input('x', 4), 0.0, 1.0, -1.0, 0.5, 2.0]
    numbers = [*inputs, 0.0, 1.0, -1.0, 0.5, 2.0]
    for sign, i, k in steps:
        for values in (symbols, numbers):
            a, b = values[i % len(values)], values[k % len(values)]
            values.append(OPERATORS[sign](a, b))
    outputs = [value for value in symbols if isinstance(value, Expression)]
    expected = [n for n, s in zip(numbers, symbols) if isinstance(s, Expression)]
    np.testing.assert_allclose(evaluated(outputs, {'x': inputs}), expected, rtol=1e-9, atol=1e-9)
    assert_code_computes(outputs, inputs, expected)


def assert_code_computes(outputs, inputs, expected):
    code = straight_line(outputs)
    scope = {f'x_{k}': inputs[k] for _, k in code.inputs}
    for name, text in code.statements:
        scope[name] = eval(text, {}, scope)
    values = [eval(text, {}, scope) for text in code.outputs]
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


def test_code_reads_only_what_it_needs(xyz):
    x, y, _ = xyz
    code = straight_line([(x + 0.5).sin() * y, y])
    assert code.inputs == [('x', 0), ('x', 1)]
    assert code.angles == ['x_0 + 0.5']
    assert code.functions == [('s0', 'sin', 0)]
    assert code.outputs[1] == 'x_1'


def test_sums_that_several_angles_share_are_written_in_each():
    x, y, z = Graph().input('x', 3)
    code = straight_line([(x + y).sin() * (x + y + z).sin(), (0.5 + (x + y)).cos()])
    assert code.angles == ['x_0 + x_1', 'x_2 + x_0 + x_1', 'x_0 + x_1 + 0.5']
    assert code.statements == []
