# SPDX-License-Identifier: Apache-2.0
"""
The C extension module that Python uses: its functions' source, compiled and loaded.

The source has each kernel for one sample and for many at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import platform
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.resources import files
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.compiled.c.compiler import WANTED, c_compiler, compiler_version, output_of
from robodyn_ros.compiled.c.source import StraightLine, input_name, straight_line
from robodyn_ros.compiled.symbolic.kernels import DESCRIPTIONS, WRENCH, Kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import PARAMETERS
from robodyn_ros.errors import InvalidArgument, NoBackend, NoSolution, Phrase
from robodyn_ros.spatial import FloatArray

FLAGS = ('-std=gnu11', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-fno-math-errno')
_NATIVE = '-march=native'
_MODULE = 'robodyn_kernels'
# Twenty times what a laptop takes [s]: 1 s for a Panda's inverse dynamics, of 600 operations.
_LONGEST_COMPILATION = 10.0
_LONGEST_PER_OPERATION = 0.02
# With more operations, compiling takes long and lanes gain little: one sample at a time.
_LARGEST_FOR_LANES = 3000
_loaded: dict[bytes, Any] = {}  # by the digest of their code: the loader never lets go of one


def build_identity() -> str:
    """Return what a compiled extension depends on besides the arm."""
    command = c_compiler()
    return '\n'.join(
        [
            ' '.join(command),
            compiler_version(command),
            ' '.join(FLAGS),
            sys.version,
            np.__version__,
            sysconfig.get_config_var('SOABI') or '',
            _processor(),
        ]
    )


def _processor() -> str:
    """Return what -march=native depends on: a home directory may serve several machines."""
    with contextlib.suppress(OSError), open('/proc/cpuinfo', encoding='utf-8') as file:
        wanted = ('model name', 'flags', 'Features', 'CPU part')
        return ''.join(sorted({line for line in file if line.startswith(wanted)}))
    return platform.processor() + platform.machine()


def compiled_module(kernels: Sequence[Kernel]) -> bytes:
    """
    Return the binary of an extension module with these kernels.

    Raises
    ------
    NoBackend
        The compiler failed; the value is what it said.
    """
    operations = sum(sum(kernel.operation_count) for kernel in kernels)
    return compiled_source(extension_source(kernels), _LONGEST_PER_OPERATION * operations)


def compiled_source(source: str, longer: float = 0.0) -> bytes:
    """
    Return the binary of an extension module.

    Parameters
    ----------
    source : str
        All of it, for Python and NumPy.
    longer : float
        Than ten seconds the compiler may take [s].

    Raises
    ------
    NoBackend
        The compiler failed; the value is what it said.
    """
    command = c_compiler()
    deadline = time.monotonic() + _LONGEST_COMPILATION + longer
    try:
        with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
            file, module = Path(folder, 'kernels.c'), Path(folder, 'kernels.so')
            file.write_text(source, encoding='utf-8')
            headers = [f'-I{sysconfig.get_path("include")}', f'-I{np.get_include()}']
            for native in ([_NATIVE], []):
                code, said = output_of(
                    [*command, *FLAGS, *native, *headers, str(file), '-o', str(module)],
                    max(deadline - time.monotonic(), 0.0),
                    'stderr',
                )
                if code == 0:
                    return module.read_bytes()
    except OSError as error:
        raise NoBackend('C compiler', Phrase(str(error)), WANTED) from error
    raise NoBackend('C compiler', Phrase(said.strip()[-500:] or f'exit code {code}'), WANTED)


def load_module(code: bytes, name: str = _MODULE) -> Any:
    """
    Return the extension module of a binary that was just compiled or verified.

    The dynamic loader reads it from a fresh directory that is the user's alone. The same code is
    mapped once, however often it is asked for.

    Raises
    ------
    NoBackend
        It cannot be loaded.
    """
    digest = hashlib.sha256(code).digest()
    if digest not in _loaded:
        _loaded[digest] = _mapped(code, name)
    return _loaded[digest]


def _mapped(code: bytes, name: str) -> Any:
    try:
        with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
            path = Path(folder, 'kernels.so')
            path.write_bytes(code)
            loader = ExtensionFileLoader(name, str(path))
            module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
            loader.exec_module(module)
            return module
    except (ImportError, OSError) as error:
        raise NoBackend('compiled module', Phrase(str(error)), 'one that can be loaded') from error


def bound_functions(module: Any, parameters: FloatArray) -> dict[str, Any]:
    """Return a module's functions, bound to run-time parameters."""
    return module.bind(parameters, InvalidArgument, NoSolution)


# --- source ----------------------------------------------------------------------------------


def extension_source(kernels: Sequence[Kernel]) -> str:
    """Return the source of a module with these kernels as functions."""
    names = [kernel.name for kernel in kernels]
    parts = [
        _shared('extension.h'),
        kernel_source(kernels),
        *(_function(name) for name in names),
        'static PyMethodDef kernel_methods[] = {',
    ]
    for kernel in kernels:
        inputs = [x if x not in kernel.optional else f'{x}=None' for x, _ in kernel.inputs]
        arguments = ', '.join([*inputs, 'out=None'])
        if WRENCH in names and kernel.name == 'inverse_dynamics':
            arguments += ', *, tip_wrench=None'
        parts.append(
            f'    {{"{kernel.name}", (PyCFunction)(void (*)(void)){kernel.name},'
            f' METH_FASTCALL | METH_KEYWORDS,\n'
            f'     "{kernel.name}($self, {arguments})\\n--\\n\\n'
            f'{DESCRIPTIONS[kernel.name]}"}},'
        )
    parts.append('    {NULL, NULL, 0, NULL},\n};\n')
    addresses = ', '.join(f'&{name}_kernel' for name in names)
    parts.append(f'static const Kernel *const all_kernels[] = {{{addresses}, NULL}};\n')
    return _shared('vectors.h') + '\n'.join(parts)


def kernel_source(kernels: Sequence[Kernel]) -> str:
    """Return the kernels as ``Kernel`` structures, behind vectors.h; nothing in them is Python."""
    # The wrench's kernel comes first: others refer to it.
    ordered = sorted(kernels, key=lambda kernel: kernel.name != WRENCH)
    has_wrench = ordered[0].name == WRENCH
    return '\n'.join(line for kernel in ordered for line in _kernel(kernel, has_wrench))


def _shared(header: str) -> str:
    try:
        return files('robodyn_ros.compiled.c').joinpath(header).read_text(encoding='utf-8')
    except OSError as error:
        raise NoBackend(f'file {header}', Phrase(str(error)), 'a complete installation') from error


def _function(name: str) -> str:
    return (
        f'static PyObject *{name}(PyObject *self, PyObject *const *args, Py_ssize_t count,'
        ' PyObject *names)\n'
        '{\n'
        f'    return call_kernel(&{name}_kernel, self, args, count, names);\n'
        '}\n'
    )


def _kernel(kernel: Kernel, has_wrench: bool) -> list[str]:
    name, size = kernel.name, len(kernel.outputs)
    places = _places(kernel)
    shapes = [_result(shape) for _, shape in kernel.results]
    code = straight_line([*kernel.outputs, *kernel.pivots])
    widths = dict(kernel.inputs)
    names = [input for input, _ in kernel.inputs]
    in_lanes = (
        sum(kernel.operation_count) <= _LARGEST_FOR_LANES and not kernel.has_scalar_functions
    )
    many = f'{name}_lanes' if in_lanes else f'{name}_one'
    quoted = ', '.join(f'"{input}"' for input in names)
    wrench = f'&{WRENCH}_kernel' if has_wrench and name == 'inverse_dynamics' else 'NULL'
    return [
        f'static int {name}_one('
        'const double *parameters, const double *const *in, double *const *out)',
        '{',
        *_inputs(code, names),
        *_angles(code),
        *(f'    const double {t} = {text};' for t, text in code.statements),
        *(f'    out[{r}][{k}] = {text};' for (r, k), text in zip(places, code.outputs[:size])),
        *_existence(code.outputs[size:]),
        '}\n',
        *(_lanes(kernel, code, names) if in_lanes else []),
        f'static int {name}_many(const double *parameters, ptrdiff_t count,'
        ' const double *const *in, double *const *out)',
        '{',
        f'    const double *row[] = {{{", ".join(f"in[{k}]" for k in range(len(names)))}}};',
        f'    double *to[] = {{{", ".join(f"out[{r}]" for r in range(len(kernel.results)))}}};',
        '    int exists = 1;',
        '    while (count > 0) {',
        f'        const int step = {"count < LANES ? 1 : LANES" if in_lanes else "1"};',
        f'        exists &= (step == 1 ? {name}_one : {many})(parameters, row, to);',
        *(f'        row[{k}] += step * {widths[input]};' for k, input in enumerate(names)),
        *(f'        to[{r}] += step * {width};' for r, width in enumerate(kernel.sizes)),
        '        count -= step;',
        '    }',
        '    return exists;',
        '}\n',
        f'static const Kernel {name}_kernel = {{',
        f'    "{name}", {len(names)}, {len(names) - len(kernel.optional)},'
        f' {{{quoted}}},'
        f' {{{", ".join(str(widths[input]) for input in names)}}},',
        f'    {len(shapes)}, {{{", ".join(shapes)}}},',
        f'    {name}_one, {name}_many, {wrench}',
        '};\n',
    ]


def _places(kernel: Kernel) -> list[tuple[int, int]]:
    """Return result and element that each output is."""
    return [(r, k) for r, size in enumerate(kernel.sizes) for k in range(size)]


def _result(shape: tuple[int, ...]) -> str:
    lengths = ', '.join(str(x) for x in (*shape, 0, 0)[:3])
    return f'{{{len(shape)}, {{{lengths}}}, {math.prod(shape)}}}'


def _lanes(kernel: Kernel, code: StraightLine, names: list[str]) -> list[str]:
    """Return the function for LANES samples at once."""
    size = len(kernel.outputs)
    return [
        f'static int {kernel.name}_lanes('
        'const double *parameters, const double *const *in, double *const *out)',
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


def _inputs(code: StraightLine, names: list[str]) -> list[str]:
    """Return the lines that load all inputs first, so that results may overwrite them."""
    lines = ['    (void)parameters, (void)in;']
    for name, k in sorted(code.inputs):
        array = name if name == PARAMETERS else f'in[{names.index(name)}]'
        lines.append(f'    const double {input_name(name, k)} = {array}[{k}];')
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


def _angles(code: StraightLine) -> list[str]:
    if not code.angles:
        return []
    count = len(code.angles)
    lines = [
        f'    vec angles[PADDED({count}) / LANES], sines[PADDED({count}) / LANES],'
        f' cosines[PADDED({count}) / LANES];',
        f'    const double angle[PADDED({count})] = {{{", ".join(code.angles)}}};',
        '    memcpy(angles, angle, sizeof angles);',
        f'    for (int k = 0; k < PADDED({count}) / LANES; k++)',
        '        sines_and_cosines(angles + k, sines + k, cosines + k);',
    ]
    for name, function, k in code.functions:
        array = {'sin': 'sines', 'cos': 'cosines'}[function]
        lines.append(f'    const double {name} = {array}[{k} / LANES][{k} % LANES];')
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


def _existence(pivots: list[str]) -> list[str]:
    return ['    return ' + ' && '.join(f'!({pivot} <= 0.0)' for pivot in pivots or ['1.0']) + ';']


def _lane_existence(pivots: list[str]) -> list[str]:
    lines = ['    int exists = 1;']
    if pivots:
        wrong = ' | '.join(f'((vec){{0}} + {pivot} <= 0.0)' for pivot in pivots)
        lines += [
            f'    const ivec wrong = {wrong};',
            '    for (int lane = 0; lane < LANES; lane++) exists &= !wrong[lane];',
        ]
    return [*lines, '    return exists;']
