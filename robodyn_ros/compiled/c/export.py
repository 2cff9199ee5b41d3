# SPDX-License-Identifier: Apache-2.0
"""
Kernels as scalar C99 with a self-test, for a microcontroller or a controller in C or C++.

No allocation, no state, no dependency but ``sin`` and ``cos``, for friction ``tanh`` and ``fabs``.
Nothing that a robot description holds, no name of it, becomes part of the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from robodyn_ros.compiled.c.source import kernel_function, kernel_signature, sized_results
from robodyn_ros.compiled.symbolic.kernel import EXPORTED, USUAL, ExportedName, Kernel
from robodyn_ros.compiled.symbolic.kernels import DESCRIPTIONS, build_kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime
from robodyn_ros.compiled.verification import REFERENCES
from robodyn_ros.dynamics import (
    forward_dynamics,
    forward_dynamics_derivatives,
    friction_torque,
    inverse_dynamics,
    linearization,
    mass_matrix,
    smooth_friction_torque,
)
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.spatial import FloatArray

_STATES = 5
_SEED = 1
_TOLERANCE = 1e-9
_ROUNDING = 1e-14
_WIDTH = 0.01  # rad/s or m/s
_RETURNS = ' Returns 0, or -1 without inertia.'
_OF_TORQUE = ('forward_dynamics', 'forward_dynamics_derivatives', 'linearization')


def export_c(
    model: RobotModel,
    folder: str | Path,
    *,
    name: str = 'arm',
    kernels: Sequence[ExportedName] = USUAL,
) -> list[Path]:
    """
    Write a header, a source and a self-test with reference values; return their paths.

    Parameters
    ----------
    model : RobotModel
    folder : str or Path
        Made where it is missing; files of the same names are overwritten.
    name : str
        Of the files, and what the functions' names begin with: a C identifier in lower case.
    kernels : sequence of str
        Of ``EXPORTED``; ``USUAL`` where not given.

    Raises
    ------
    InvalidArgument
    OSError
    """
    checked_model(model)
    for kernel in kernels:
        if kernel not in EXPORTED:
            raise InvalidArgument('argument kernels', kernel, ', '.join(map(repr, EXPORTED)))
    built = [build_kernel(kernel, RunTime.of(model, ())) for kernel in kernels]
    kinds = ''.join('P' if prismatic else 'R' for prismatic in model.dh.prismatic)
    gravity = ', '.join(f'{x:g}' for x in model.gravity)
    about = (
        f'Dynamics of an arm of {model.n} joints ({kinds}).',
        f"Gravity {gravity} m/s² in the base link's axes. Friction is apart.",
    )
    states = reference_states(model.n)
    states['tau'] = inverse_dynamics(model, states['q'], states['qd'], states['qdd'])
    states['rigid_torque'] = states['tau']
    states['width'] = np.full((_STATES, 1), _WIDTH)
    expected: dict[str, Sequence[FloatArray]] = {
        kernel: _expected(kernel, model, states) for kernel in kernels
    }
    tolerances = _tolerances(model, states) if {*_OF_TORQUE} & {*kernels} else {}
    return write_c(folder, name, built, about, states, expected, tolerances)


def reference_states(n: int) -> dict[str, FloatArray]:
    """Return positions, velocities and accelerations (5, n) to compare results at."""
    generator = np.random.default_rng(_SEED)
    return {key: generator.uniform(-2, 2, (_STATES, n)) for key in ('q', 'qd', 'qdd')}


def write_c(
    folder: str | Path,
    name: str,
    kernels: Sequence[Kernel],
    about: Sequence[str],
    states: Mapping[str, FloatArray],
    expected: Mapping[str, Sequence[FloatArray]],
    tolerances: Mapping[str, float] = MappingProxyType({}),
) -> list[Path]:
    """
    Write kernels of one arm, and a self-test of them; return the paths.

    Parameters
    ----------
    folder, name
        As in ``export_c``.
    kernels : sequence of Kernel
        Without run-time parameters.
    about : sequence of str
        What the header begins with.
    states : mapping of input to (5, n)
    expected : mapping of kernel to arrays (5, ...)
        Each of its results at the states, computed without generated code.
    tolerances : mapping of kernel to float, optional
        What its results may differ by, relative; 1e-9 where not given.

    Raises
    ------
    InvalidArgument, OSError
    """
    if not re.fullmatch('[a-z][a-z0-9_]{0,30}', name):
        raise InvalidArgument(
            'argument name', name, 'a C identifier in lower case, at most 31 long'
        )
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    texts = {
        f'{name}.h': _header(name, kernels, about),
        f'{name}.c': _source(name, kernels),
        f'{name}_test.c': _self_test(name, kernels, states, expected, tolerances),
    }
    for file, text in texts.items():
        target.joinpath(file).write_text(text, encoding='utf-8')
    return [target / file for file in texts]


def _header(name: str, kernels: Sequence[Kernel], about: Sequence[str]) -> str:
    guard = f'{name.upper()}_H'
    joints = kernels[0].inputs[0][1]
    lines = [
        '/*',
        *(f' * {line}' for line in about),
        ' * Generated by robodyn_ros.',
        ' *',
        ' * SI units; arrays in chain order, base to tip; M(q) qdd + C(q, qd) qd + g(q) = tau.',
        ' * A result may be written over an argument.',
        ' */',
        f'#ifndef {guard}\n#define {guard}\n',
        f'#define {name.upper()}_JOINTS {joints}\n',
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
    ]
    for kernel in kernels:
        multiplications, additions = kernel.operation_count
        lines += [
            f'/* {DESCRIPTIONS[kernel.name]}{_RETURNS if kernel.pivots else ""}',
            f' * {multiplications} multiplications, {additions} additions. */',
            f'{kernel_signature(name, kernel)};\n',
        ]
    return '\n'.join([*lines, '#ifdef __cplusplus\n}\n#endif\n', '#endif\n'])


def _source(name: str, kernels: Sequence[Kernel]) -> str:
    parts = [
        f'/* Generated by robodyn_ros; see {name}.h. */',
        f'#include "{name}.h"\n#include <math.h>\n',
    ]
    return '\n'.join([*parts, *(kernel_function(name, kernel) for kernel in kernels)])


def _self_test(
    name: str,
    kernels: Sequence[Kernel],
    states: Mapping[str, FloatArray],
    expected: Mapping[str, Sequence[FloatArray]],
    tolerances: Mapping[str, float],
) -> str:
    used = {input for kernel in kernels for input, _ in kernel.inputs}
    lines = [
        f'/* Self-test of {name}.c, generated by robodyn_ros: 0 where all values agree. */',
        f'#include "{name}.h"\n#include <math.h>\n#include <stdio.h>\n',
        *(_table(key, values) for key, values in states.items() if key in used),
    ]
    body = []
    for kernel in kernels:
        results = sized_results(kernel)
        called = [f'result_{k}' for k in range(len(results))]
        call = ', '.join([*(f'{key}[i]' for key, _ in kernel.inputs), *called])
        body.append(f'        {name}_{kernel.name}({call});')
        for (result, size), variable, values in zip(results, called, expected[kernel.name]):
            table = f'expected_{kernel.name}' + (f'_{result}' if len(results) > 1 else '')
            lines.append(_table(table, values.reshape(_STATES, size)))
            body.append(
                f'        wrong += differs("{kernel.name}", i, {variable}, {table}[i],'
                f' {size}, {tolerances.get(kernel.name, _TOLERANCE):.3g});'
            )
    most = max(len(kernel.results) for kernel in kernels)
    largest = max(size for kernel in kernels for size in kernel.sizes)
    return '\n'.join(
        [
            *lines,
            'static int differs(const char *name, int state, const double *value,',
            '                   const double *expected, int size, double tolerance)',
            '{',
            '    double scale = 1.0, difference = 0.0;',
            '    for (int k = 0; k < size; k++) scale = fmax(scale, fabs(expected[k]));',
            '    for (int k = 0; k < size; k++)',
            '        difference = fmax(difference, fabs(value[k] - expected[k]) / scale);',
            '    if (difference < tolerance) return 0;',
            '    printf("%s, state %d: differs by %g\\n", name, state, difference);',
            '    return 1;',
            '}\n',
            'int main(void)',
            '{',
            '    double ' + ', '.join(f'result_{k}[{largest}]' for k in range(most)) + ';',
            '    int wrong = 0;',
            f'    for (int i = 0; i < {_STATES}; i++) {{',
            *body,
            '    }',
            '    printf(wrong ? "%d results differ\\n" : "all results agree\\n", wrong);',
            '    return wrong != 0;',
            '}\n',
        ]
    )


def _tolerances(model: RobotModel, states: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return what accelerations may differ by: rounding, times the mass matrix's condition."""
    condition = float(np.linalg.cond(mass_matrix(model, states['q'])).max())
    return dict.fromkeys(_OF_TORQUE, max(_TOLERANCE, _ROUNDING * condition))


def _expected(
    kernel: str, model: RobotModel, states: Mapping[str, FloatArray]
) -> tuple[FloatArray, ...]:
    """Return what robodyn_ros computes without generated code."""
    q, qd, tau = (states[key] for key in ('q', 'qd', 'tau'))
    of_torque = (forward_dynamics, forward_dynamics_derivatives, linearization)
    if kernel in _OF_TORQUE:
        results: Any = of_torque[_OF_TORQUE.index(kernel)](model, q, qd, tau)
    elif kernel == 'friction_torque':
        results = friction_torque(model, qd, rigid_torque=tau)
    elif kernel == 'smooth_friction_torque':
        results = smooth_friction_torque(model, _WIDTH, qd, tau)
    else:
        inputs, reference = REFERENCES[kernel]
        results = reference(model, *(states[key] for key in ('q', 'qd', 'qdd')[:inputs]))
    return results if isinstance(results, tuple) else (results,)


def _table(name: str, values: FloatArray) -> str:
    rows = ',\n'.join(f'    {{{", ".join(repr(float(x)) for x in row)}}}' for row in values)
    return f'static const double {name}[{len(values)}][{values.shape[1]}] = {{\n{rows},\n}};\n'
