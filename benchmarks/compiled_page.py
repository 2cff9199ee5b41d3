# SPDX-License-Identifier: Apache-2.0
"""The page docs/benchmarks.md from what ``compiled.py`` measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pinocchio as pin


def versions() -> str:
    """Return the versions of the competitors that are installed."""
    names = ('drake', 'idyntree', 'mujoco', 'frax', 'jax', 'roboticstoolbox-python')
    found = []
    for name in names:
        with suppress(PackageNotFoundError):
            found.append(f'{name} {version(name)}')
    return ', '.join(found)


def machine() -> str:
    name = platform.processor() or platform.machine()
    try:
        lines = Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines()
        name = next(line.split(':')[1].strip() for line in lines if line.startswith('model name'))
    except (OSError, StopIteration):
        pass
    return (
        f'{name}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, '
        f'Python {platform.python_version()}, NumPy {np.__version__}, Pinocchio {pin.__version__}'
    )


def markdown(
    tables: dict,
    batches: dict,
    times: list,
    by_function: dict,
    rows: list[tuple],
    samples: int,
    load: str,
) -> str:
    lines = [
        '# How fast the compiled functions are',
        '',
        'Made by `python benchmarks/compiled.py --write` in one run; the competitors take turns,',
        'and the fastest of many rounds counts.',
        '',
        f'{machine()}. {versions()}. Load average of the machine: {load}.',
        '',
        '![Microseconds per call](images/compiled.png)',
        '',
        '## Microseconds per call from Python',
        '',
        "In brackets, how many times as long Pinocchio's function takes. One state; arguments and",
        'result are NumPy arrays, and each call but `out=` allocates its result.',
        '',
        '- MuJoCo reads its state from its data structure; its forward dynamics includes',
        '  kinematics and the search for contacts, of which there are none.',
        '- Drake and iDynTree are timed with the setting of their state. frax is compiled by JAX.',
        '- roboticstoolbox computes its own DH models of these arms.',
        "- Our regressor is that of the base parameters, Pinocchio's has ten columns a link.",
        '- The derivatives include the mass matrix (inverse dynamics) or its inverse (forward',
        "  dynamics), as Pinocchio's `computeRNEADerivatives` and `computeABADerivatives` do.",
    ]
    for arm, table in tables.items():
        timed = {label for row in table.values() for label in row}
        labels = [label for label in _LABELS if label in timed]
        lines += ['', f'### {arm}', '', '| | ' + ' | '.join(labels) + ' |']
        lines.append('|---|' + '--:|' * len(labels))
        for name, row in table.items():
            cells = (_cell(row, label) for label in labels)
            lines.append(f'| {name.replace("_", " ")} | ' + ' | '.join(cells) + ' |')
    lines += [
        '',
        f'## Trajectories of {samples} samples: microseconds per sample of inverse dynamics',
        '',
        "Processor time, one thread; Pinocchio's is `rneaInParallel`.",
        '',
        '| | Pinocchio | C |',
        '|---|---|---|',
    ]
    for arm, row in batches.items():
        cells = (_cell(row, label) for label in ('Pinocchio', 'C'))
        lines.append(f'| {arm} | ' + ' | '.join(cells) + ' |')
    lines += [
        '',
        '## Compiling what a node needs, Panda',
        '',
        'Its inverse dynamics, for any gravity and a payload on any link: '
        f'{times[0][0]:.2f} s the first time, {times[1][0]:.3f} s from the cache.',
        f'Each function alone takes {_extreme(min, by_function)} to {_extreme(max, by_function)};',
        'what was not named to `compile_model` is compiled when it is read first.',
        '',
        '## Growth with the number of joints',
        '',
        'Inverse dynamics of random revolute chains, their constants folded in.',
        '',
        '| joints | µs per call, `out=` | multiplications | additions |',
        '|---|---|---|---|',
        *(f'| {n} | {time:.3f} | {m} | {a} |' for n, time, m, a in rows),
        '',
    ]
    return '\n'.join(lines)


_LABELS = (
    'Pinocchio',
    'C',
    'C, out=',
    'Drake',
    'iDynTree',
    'MuJoCo',
    'frax',
    'roboticstoolbox',
)


def _extreme(which: Callable, by_function: dict[str, tuple[float, float]]) -> str:
    name, (clock, _) = which(by_function.items(), key=lambda item: item[1][0])
    return f'{clock:.1f} s ({name.replace("_", " ")})'


def _cell(row: dict[str, float], label: str) -> str:
    if label not in row:
        return ''
    if not label.startswith('C'):
        return f'{row[label]:.3f}'
    return f'{row[label]:.3f} (×{_two_digits(row["Pinocchio"] / row[label])})'


def _two_digits(ratio: float) -> str:
    return f'{ratio:.1f}' if ratio >= 1.0 else f'{ratio:.2g}'
