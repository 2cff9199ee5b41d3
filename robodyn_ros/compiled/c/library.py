# SPDX-License-Identifier: Apache-2.0
"""
The shared library of kernels that Python calls: its source, compiled and loaded.

The source has each kernel for one sample and for many at once; nothing in it is Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import platform
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from robodyn_ros.compiled.c.compiler import WANTED, c_compiler, compiler_version, output_of
from robodyn_ros.compiled.c.source import (
    StraightLine,
    input_name,
    kernel_head,
    loaded_function,
    straight_line,
)
from robodyn_ros.compiled.symbolic.kernels import KINDS, WRENCH, Kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import PARAMETERS
from robodyn_ros.errors import NoBackend, Phrase
from robodyn_ros.spatial import FloatArray

FLAGS = ('-std=gnu11', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-fno-math-errno')
_NATIVE = '-march=native'
# Twenty times what a laptop takes [s]: 1 s for a Panda's inverse dynamics, of 600 operations.
_LONGEST_COMPILATION = 10.0
_LONGEST_PER_OPERATION = 0.02
# With more operations, compiling takes long and lanes gain little: one sample at a time.
_LARGEST_FOR_LANES = 3000
_loaded: dict[bytes, Any] = {}  # by the digest of their code: the loader never lets go of one


def build_identity() -> str:
    """Return what a compiled library depends on besides the arm."""
    command = c_compiler()
    return '\n'.join(
        [
            ' '.join(command),
            compiler_version(command),
            ' '.join(FLAGS),
            _processor(),
        ]
    )


def _processor() -> str:
    """Return what -march=native depends on: a home directory may serve several machines."""
    with contextlib.suppress(OSError), open('/proc/cpuinfo', encoding='utf-8') as file:
        wanted = ('model name', 'flags', 'Features', 'CPU part')
        return ''.join(sorted({line for line in file if line.startswith(wanted)}))
    return platform.processor() + platform.machine()


def compiled_library(kernels: Sequence[Kernel], model: str = '') -> bytes:
    """
    Return the binary of a library with these kernels, and of the ``robodyn_model`` made of them.

    Raises
    ------
    NoBackend
        The compiler failed; the value is what it said.
    """
    operations = sum(sum(kernel.operation_count) for kernel in kernels)
    command = c_compiler()
    deadline = time.monotonic() + _LONGEST_COMPILATION + _LONGEST_PER_OPERATION * operations
    try:
        with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
            file, library = Path(folder, 'kernels.c'), Path(folder, 'kernels.so')
            file.write_text(library_source(kernels, model), encoding='utf-8')
            for native in ([_NATIVE], []):
                code, said = output_of(
                    [*command, *FLAGS, *native, str(file), '-lm', '-o', str(library)],
                    max(deadline - time.monotonic(), 0.0),
                    'stderr',
                )
                if code == 0:
                    return library.read_bytes()
    except OSError as error:
        raise NoBackend('C compiler', Phrase(str(error)), WANTED) from error
    raise NoBackend('C compiler', Phrase(said.strip()[-500:] or f'exit code {code}'), WANTED)


def loaded_library(code: bytes) -> Any:
    """
    Return the kernels of a binary that was just compiled or verified.

    The dynamic loader reads it from a fresh directory that is the user's alone. The same code is
    mapped once, however often it is asked for.

    Raises
    ------
    NoBackend
        It cannot be loaded.
    """
    digest = hashlib.sha256(code).digest()
    if digest not in _loaded:
        try:
            with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
                path = Path(folder, 'kernels.so')
                path.write_bytes(code)
                _loaded[digest] = _wrapper().load(path)
        except OSError as error:
            allowed = 'one that can be loaded'
            raise NoBackend('compiled library', Phrase(str(error)), allowed) from error
    return _loaded[digest]


def bound_functions(library: Any, parameters: FloatArray) -> dict[str, Any]:
    """Return a library's functions, bound to run-time parameters."""
    return _wrapper().bind(library, parameters)


def model_of(library: Any) -> Any:
    """Return the ``robodyn_model`` of a library for the core."""
    return _wrapper().model(library)


def _wrapper() -> Any:
    try:
        import robodyn_ros.compiled.c.wrapper as wrapper
    except ImportError as error:
        raise NoBackend(
            'wrapper of compiled code',
            Phrase(str(error)),
            'robodyn_ros installed anew where there is a C compiler with Python.h',
        ) from error
    return wrapper


# --- source ----------------------------------------------------------------------------------


def library_source(kernels: Sequence[Kernel], model: str = '') -> str:
    """Return the source of a library with these kernels; one symbol lists them."""
    # Of a robodyn_model the inverse dynamics alone takes rows.
    in_lanes = ['inverse_dynamics'] if model else [kernel.name for kernel in kernels]
    try:
        vectors = files(__package__).joinpath('vectors.h').read_text(encoding='utf-8')
    except OSError as error:
        raise NoBackend('file vectors.h', Phrase(str(error)), 'a complete installation') from error
    # The wrench's kernel comes first: the inverse dynamics refers to it.
    ordered = sorted(kernels, key=lambda kernel: kernel.name != WRENCH)
    has_wrench = ordered[0].name == WRENCH
    addresses = ', '.join(f'&{kernel.name}_kernel' for kernel in kernels)
    return '\n'.join(
        [
            vectors,
            *(line for x in ordered for line in _kernel(x, has_wrench, x.name in in_lanes)),
            '__attribute__((visibility("default")))',
            f'const Kernel *const robodyn_kernels[] = {{{addresses}, NULL}};\n',
            model,
        ]
    )


def _kernel(kernel: Kernel, has_wrench: bool, in_lanes: bool) -> list[str]:
    name, results = kernel.name, range(len(kernel.results))
    shapes = [_result(shape) for _, shape in kernel.results]
    widths = dict(kernel.inputs)
    in_lanes = (
        in_lanes
        and sum(kernel.operation_count) <= _LARGEST_FOR_LANES
        and not kernel.has_scalar_functions
    )
    many = f'{name}_lanes' if in_lanes else f'{name}_one'
    with_wrench = has_wrench and name == 'inverse_dynamics'
    arguments = [x if x not in kernel.optional else f'{x}=None' for x in widths]
    arguments += ['out=None', *(['*', 'tip_wrench=None'] if with_wrench else [])]
    signature = f'{name}($self, {", ".join(arguments)})\\n--\\n\\n{KINDS[name].description}'
    return [
        loaded_function(kernel, in_lanes=True),
        *(_lanes(kernel, list(widths)) if in_lanes else []),
        f'static int {name}_many(const double *{PARAMETERS}, ptrdiff_t count,'
        ' const double *const *in, double *const *out)',
        '{',
        f'    const double *row[] = {{{", ".join(f"in[{k}]" for k in range(len(widths)))}}};',
        f'    double *to[] = {{{", ".join(f"out[{r}]" for r in results)}}};',
        '    int exists = 1;',
        '    while (count > 0) {',
        f'        const int step = {"count < LANES ? 1 : LANES" if in_lanes else "1"};',
        f'        exists &= (step == 1 ? {name}_one : {many})({PARAMETERS}, row, to);',
        *(f'        row[{k}] += step * {width};' for k, width in enumerate(widths.values())),
        *(f'        to[{r}] += step * {width};' for r, width in enumerate(kernel.sizes)),
        '        count -= step;',
        '    }',
        '    return exists;',
        '}\n',
        f'static const Kernel {name}_kernel = {{',
        f'    "{name}",',
        f'    "{signature}",',
        f'    {len(widths)}, {len(widths) - len(kernel.optional)},',
        f'    {{{", ".join(map(_quoted, widths))}}}, {{{", ".join(map(str, widths.values()))}}},',
        f'    {len(shapes)}, {{{", ".join(shapes)}}},',
        f'    {name}_one, {name}_many, {f"&{WRENCH}_kernel" if with_wrench else "NULL"}',
        '};\n',
    ]


def _quoted(text: str) -> str:
    return f'"{text}"'


def _result(shape: tuple[int, ...]) -> str:
    lengths = ', '.join(str(x) for x in (*shape, 0, 0)[:3])
    return f'{{{len(shape)}, {{{lengths}}}, {math.prod(shape)}}}'


def _lanes(kernel: Kernel, names: list[str]) -> list[str]:
    """Return the function for LANES samples at once."""
    code, size = straight_line([*kernel.outputs, *kernel.pivots]), len(kernel.outputs)
    return [
        kernel_head(kernel, 'lanes'),
        '{',
        *_lane_inputs(code, names, dict(kernel.inputs)),
        *_lane_angles(code),
        *(f'    const vec {variable} = {text};' for variable, text in code.statements),
        f'    vec result[{size}];',
        *(
            f'    result[{k}] = (vec){{0}} + {text if text[0] != "-" else f"({text})"};'
            for k, text in enumerate(code.outputs[:size])
        ),
        *_lane_outputs(kernel.sizes),
        *_lane_existence(code.outputs[size:]),
        '}\n',
    ]


def _lane_outputs(sizes: Sequence[int]) -> list[str]:
    """Return the lines that write each sample's results where they belong."""
    lines, first = [], 0
    for r, size in enumerate(sizes):
        lines += [
            '    for (int lane = 0; lane < LANES; lane++)',
            f'        for (int k = 0; k < {size}; k++)'
            f' out[{r}][lane * {size} + k] = result[{first} + k][lane];',
        ]
        first += size
    return lines


def _lane_inputs(code: StraightLine, names: list[str], widths: dict[str, int]) -> list[str]:
    lines = ['    (void)parameters, (void)in;']
    for name, k in sorted(code.inputs):
        variable = input_name(name, k)
        if name == PARAMETERS:
            lines.append(f'    const vec {variable} = (vec){{0}} + parameters[{k}];')
        else:
            element = f'in[{names.index(name)}][lane * {widths[name]} + {k}]'
            lines += [
                f'    vec {variable};',
                f'    for (int lane = 0; lane < LANES; lane++) {variable}[lane] = {element};',
            ]
    return lines


def _lane_angles(code: StraightLine) -> list[str]:
    lines = []
    for k, text in enumerate(code.angles):
        lines += [
            f'    vec s{k}, c{k};',
            f'    const vec angle{k} = {text};',
            f'    sines_and_cosines(&angle{k}, &s{k}, &c{k});',
        ]
    return lines


def _lane_existence(pivots: list[str]) -> list[str]:
    lines = ['    int exists = 1;']
    if pivots:
        wrong = ' | '.join(f'((vec){{0}} + {pivot} <= 0.0)' for pivot in pivots)
        lines += [
            f'    const ivec wrong = {wrong};',
            '    for (int lane = 0; lane < LANES; lane++) exists &= !wrong[lane];',
        ]
    return [*lines, '    return exists;']
