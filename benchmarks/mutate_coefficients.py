# SPDX-License-Identifier: Apache-2.0
"""
Change coefficients of the mechanics by 1 %, one at a time, and see whether a test fails.

    python benchmarks/mutate_coefficients.py [--count 30] [--seed 1974] [--only K ...]

A coefficient is the factor, written or 1, of a term of a sum or of a product of floating-point
numbers in ``analysis/``, ``parameters/`` or ``dynamics/``. Sites are drawn by a seed; each is
changed in a copy of the checkout, where the tests of its room then run until the first one fails.
What is not a floating-point number where it stands, an index or a size, is left and the next site
drawn. Exit code 1 where a change survives that ``NO_MECHANICS`` does not excuse.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ('analysis', 'parameters', 'dynamics')
FACTOR = 1.01
NO_NUMBER = 'not a floating-point number'
SURVIVED = 'SURVIVED'
# Sites of which a hundredth more changes nothing that is promised, by file and text: why.
NO_MECHANICS: dict[tuple[str, str], str] = {
    ('robodyn_ros/analysis/trajectory_split.py', '_ROUNDING * scale'): 'what counts as rounding',
    ('robodyn_ros/analysis/formulas.py', '_ROUNDING * scale'): 'what counts as rounding',
    (
        'robodyn_ros/analysis/formulas.py',
        'np.abs(values).max() * 1e-3',
    ): 'what counts as rounding',
}

_PRODUCTS = (ast.Mult, ast.Div, ast.MatMult)
_SUMS = (ast.Add, ast.Sub)
_IMPORTS = 'from __future__ import annotations\n'
_HELPER = f"""
import numpy as np


def scaled(x):
    kind = getattr(getattr(x, 'dtype', None), 'kind', None)
    if isinstance(x, float) or kind in ('f', 'c') or type(x).__name__ == 'Expression':
        return {FACTOR} * x
    if kind == 'O':
        return np.asarray({FACTOR} * x, dtype=object)
    raise RuntimeError({NO_NUMBER!r})
"""


@dataclass(frozen=True)
class Site:
    """A term or a product in a file of the package, from character ``start`` to ``end``."""

    file: str
    line: int
    start: int
    end: int
    text: str

    @property
    def room(self) -> str:
        """The folder it is in."""
        return self.file.split('/')[1]


def sites() -> list[Site]:
    """Return every site of the rooms."""
    paths = sorted(x for room in ROOMS for x in (ROOT / 'robodyn_ros' / room).glob('*.py'))
    return [site for path in paths for site in _sites_of(path)]


def drawn_sites(seed: int) -> list[Site]:
    """Return the sites in an order that a seed draws, and that new code hardly changes."""
    seen: Counter[tuple[str, str]] = Counter()
    keys = {}
    for site in sites():
        seen[site.file, site.text] += 1
        text = f'{seed} {site.file} {site.text} {seen[site.file, site.text]}'
        keys[site] = hashlib.sha256(text.encode()).hexdigest()
    return sorted(keys, key=keys.__getitem__)


def _sites_of(path: Path) -> Iterator[Site]:
    source = path.read_text(encoding='utf-8')
    # Columns of the syntax tree count bytes.
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    data = source.encode()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in _terms(statement):
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[node.end_lineno - 1] + node.end_col_offset
                text = ' '.join(data[start:end].decode().split())
                yield Site(str(path.relative_to(ROOT)), node.lineno, start, end, text)


def _terms(node: ast.AST) -> Iterator[ast.expr]:
    """Yield terms of sums, and products, outside of indices, texts and nested functions."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.JoinedStr | ast.Slice):
        return
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, _SUMS):
            for term in (node.left, node.right):
                if not isinstance(term, ast.BinOp | ast.Constant | ast.List | ast.Tuple):
                    yield term
        elif isinstance(node.op, _PRODUCTS):
            yield node
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.Subscript):
        children = iter([node.value])
    for child in children:
        yield from _terms(child)


def mutate(site: Site, copy: Path) -> None:
    """Write the file of a site, changed, into a copy of the checkout."""
    data = (ROOT / site.file).read_bytes()
    inner = data[site.start : site.end]
    changed = data[: site.start] + b'_scaled((' + inner + b'))' + data[site.end :]
    helper = 'from robodyn_ros._mutation import scaled as _scaled\n'
    text = changed.decode().replace(_IMPORTS, _IMPORTS + helper, 1)
    (copy / site.file).write_text(text, encoding='utf-8')


def verdict(room: str, copy: Path, run_with: list[str], timeout: float) -> tuple[str, float]:
    """Return what the tests of a room say of a copy, and how long they took [s]."""
    began = time.monotonic()
    command = [
        *run_with, sys.executable, '-m', 'pytest', '-q', '-x', '-p', 'no:cacheprovider',
        '-m', 'not slow', f'test/{room}',
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=copy, capture_output=True, text=True, timeout=timeout,
            env={**_environment(), 'PYTHONPATH': str(copy)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 'took too long', time.monotonic() - began
    took = time.monotonic() - began
    if NO_NUMBER in done.stdout:
        return NO_NUMBER, took
    if done.returncode == 0:
        return SURVIVED, took
    failed = [x for x in done.stdout.splitlines() if x.startswith(('FAILED', 'ERROR'))]
    return (failed[0].partition(' - ')[0] if failed else 'no test ran'), took


def _environment() -> dict[str, str]:
    return {**os.environ, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--count', type=int, default=30)
    parser.add_argument('--seed', type=int, default=1974)
    parser.add_argument('--only', type=int, nargs='+', help='numbers of the drawing to run alone')
    parser.add_argument('--run-with', default='', help='put before every call of pytest')
    parser.add_argument('--timeout', type=float, default=1800.0, help='[s] of one change')
    parser.add_argument(
        '--unchecked', action='store_true', help='do not run the tests as they are first'
    )
    parser.add_argument('--list', action='store_true', help='print the sites in drawn order')
    options = parser.parse_args()
    drawn = drawn_sites(options.seed)
    if options.list:
        for k, site in enumerate(drawn):
            print(f'{k:4} {site.file}:{site.line}: {site.text}')
        return
    run_with = shlex.split(options.run_with)
    survivors, counted = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / 'checkout'
        ignore = shutil.ignore_patterns('.git', '.venv', '__pycache__', 'build', 'images')
        shutil.copytree(ROOT, copy, ignore=ignore)
        (copy / 'robodyn_ros' / '_mutation.py').write_text(_HELPER, encoding='utf-8')
        for room in () if options.unchecked else ROOMS:
            found, took = verdict(room, copy, run_with, options.timeout)
            print(f'{room} as it is: {found} ({took:.0f} s)', flush=True)
            if found != SURVIVED:
                raise SystemExit(f'the tests of {room} do not pass to begin with')
        for k, site in enumerate(drawn):
            if counted == options.count or (options.only and k > max(options.only)):
                break
            if options.only and k not in options.only:
                continue
            mutate(site, copy)
            found, took = verdict(site.room, copy, run_with, options.timeout)
            shutil.copy(ROOT / site.file, copy / site.file)
            excuse = NO_MECHANICS.get((site.file, site.text), '')
            if found != NO_NUMBER:
                counted += 1
                survivors += found == SURVIVED and not excuse
            print(f'{k:4} {site.file}:{site.line}: {site.text}', flush=True)
            print(f'     {found} ({took:.0f} s) {excuse}', flush=True)
    print(f'{counted} changes of 1 %, {survivors} survived')
    raise SystemExit(1 if survivors else 0)


if __name__ == '__main__':
    main()
