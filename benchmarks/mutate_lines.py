# SPDX-License-Identifier: Apache-2.0
"""
Change single lines of the code, and see which stage of the tests notices.

    python benchmarks/mutate_lines.py RESULTS --drawn-from COMMIT [--count 100]
                                      [--within FOLDER] ... [--stage check 'make check'] ...
                                      [--limit SECONDS]

Lines are drawn from a commit by its hash, all executable lines of the package and the controller
(or of the folders that are given) alike, C and C++ included; lines that have changed since are
passed over. Of each, one thing changes: a sign, a comparison, a limit (min and max, 0 and 1, a
factor), a condition, or the line is dropped. Each change is made in this checkout, which has to be
clean and built, one at a time; the stages run in turn, each until its first failure, and the
change is undone. RESULTS, a file of JSON lines, is read first: the lines that were drawn and what
became of them stand there, so that a run that was ended goes on. Stages are commands of the shell,
in which {room} is the folder of tests of the changed file.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import io
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COMPILED = ('.hpp', '.cpp', '.h', '.c')
FOLDERS = ('robodyn_ros', 'robodyn_controllers/include', 'robodyn_controllers/src')
NOTICED, SURVIVED = 'noticed', 'survived'
# What a line may have, and what it becomes.
_OPERATORS = (
    (r'(?<=[\w)\]]) < (?=[\w(-])', (' <= ', ' > ')),
    (r'(?<=[\w)\]]) > (?=[\w(-])', (' >= ', ' < ')),
    (r' <= ', (' < ', ' >= ')),
    (r' >= ', (' > ', ' <= ')),
    (r' == ', (' != ',)),
    (r' != ', (' == ',)),
    (r'(?<=[\w)\]]) \+ ', (' - ',)),
    (r'(?<=[\w)\]]) - ', (' + ',)),
    (r'(?<=[\w)\]]) \* ', (' / ',)),
    (r'(?<=[\w)\]]) / ', (' * ',)),
    (r' and ', (' or ',)),
    (r' or ', (' and ',)),
    (r' && ', (' || ',)),
    (r' \|\| ', (' && ',)),
    (r'(?<=[(=,\[ ])-(?=[a-zA-Z(])', ('',)),
    (r'\bnot (?!in\b)', ('',)),
    (r'\bis not\b', ('is',)),
    (r'(?<=[(&|] )!(?=[\w(])|(?<=\()!(?=[\w(])', ('',)),
    (r'\bmin\(', ('max(',)),
    (r'\bmax\(', ('min(',)),
    (r'\bminimum\(', ('maximum(',)),
    (r'\bmaximum\(', ('minimum(',)),
    (r'\bTrue\b', ('False',)),
    (r'\bFalse\b', ('True',)),
    (r'\btrue\b', ('false',)),
    (r'\bfalse\b', ('true',)),
    (r'(?<![\w.\'"])\d+\.\d+(?:e-?\d+)?(?![\w.])', ('x2',)),
    (r'(?<![\w.\'"])[01](?![\w.])', ('flip',)),
)  # fmt: skip


class Change(NamedTuple):
    """One line of one file, as it is and as it becomes; lines are counted from 0."""

    path: str
    line: int
    old: str
    new: str

    @property
    def name(self) -> str:
        return f'{self.path}:{self.line + 1}'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('results', type=Path)
    parser.add_argument('--drawn-from', required=True, metavar='COMMIT')
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--within', action='append', metavar='FOLDER', help='draw from here alone')
    parser.add_argument('--stage', nargs=2, action='append', metavar=('NAME', 'COMMAND'))
    parser.add_argument('--limit', type=float, default=1800.0, help='for one stage [s]')
    parser.add_argument('--build', default='make setup', help='run where C or C++ changes')
    given = parser.parse_args()
    if subprocess.check_output(['git', 'status', '--porcelain', '-uno'], cwd=ROOT):
        raise SystemExit('the checkout has changes of its own: commit them first')
    known = stored(given.results)
    if not known:
        seed = subprocess.check_output(['git', 'rev-parse', given.drawn_from], cwd=ROOT, text=True)
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(
                ['git', 'archive', seed.strip(), *FOLDERS], cwd=ROOT, stdout=PIPE, check=True
            )
            subprocess.run(['tar', '-x', '-C', folder], input=archive.stdout, check=True)
            changes = drawn(Path(folder), seed.strip(), given.count, given.within or FOLDERS)
        record = {'key': 'drawn', 'changes': changes}
        given.results.write_text(json.dumps(record) + '\n', encoding='utf-8')
        known = stored(given.results)
    changes = [Change(*change) for change in known['drawn']['changes']]
    stages = given.stage or [('check', 'make check')]
    for k, change in enumerate(changes):
        for name, command in stages:
            key = f'{k} {name}'
            if key not in known:
                room = command.replace('{room}', tests_of(change.path))
                known[key] = outcome(change, room, given.build, given.limit)
                record = {'key': key, **change._asdict(), **known[key]}
                with given.results.open('a', encoding='utf-8') as file:
                    file.write(json.dumps(record) + '\n')
                words = f'{known[key]["verdict"]}, {known[key]["seconds"]:.0f} s'
                print(f'{key}: {change.name}: {words}', flush=True)
            if known[key]['verdict'] != SURVIVED:
                break
    print_table(changes, known, [name for name, _ in stages])
    return 0


def stored(results: Path) -> dict[str, dict[str, Any]]:
    if not results.exists():
        return {}
    lines = results.read_text(encoding='utf-8').splitlines()
    return {record['key']: record for record in map(json.loads, lines)}


def print_table(
    changes: list[Change], known: dict[str, dict[str, Any]], stages: list[str]
) -> None:
    left = list(enumerate(changes))
    for name in stages:
        verdicts = {k: known.get(f'{k} {name}', {}).get('verdict', 'not run') for k, _ in left}
        survivors = [(k, change) for k, change in left if verdicts[k] == SURVIVED]
        print(f'{name}: {len(left) - len(survivors)} of {len(left)} noticed')
        left = survivors
    for k, change in left:
        print(f'{k} {change.name}\n  - {change.old.strip()}\n  + {change.new.strip()}')


# --- lines -------------------------------------------------------------------------------------


def drawn(root: Path, seed: str, count: int, folders: Sequence[str]) -> list[Change]:
    """Return changes of lines that are drawn without replacement from all that are executable."""
    chance = random.Random(hashlib.sha256(seed.encode()).hexdigest())
    lines = [(path, line) for path in files(root, folders) for line in executable_lines(path)]
    chance.shuffle(lines)
    found: list[Change] = []
    for path, line in lines:
        change = changed(root, path, line, chance)
        if change is not None and is_here(change):
            found.append(change)
        if len(found) == count:
            break
    return found


def files(root: Path, folders: Sequence[str]) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (root / folder).rglob('*')
        if path.suffix in ('.py', *COMPILED)
    )


def is_here(change: Change) -> bool:
    path = ROOT / change.path
    return path.exists() and change.old in path.read_text(encoding='utf-8').splitlines()


def executable_lines(path: Path) -> Iterator[int]:
    """Yield the lines that say what happens: no comments, docstrings, imports, signatures."""
    text = path.read_text(encoding='utf-8')
    lines = text.splitlines()
    if path.suffix in COMPILED:
        inside = re.compile(r'^\s{2,}\S.*[;{]\s*(//.*)?$')
        for k, line in enumerate(lines):
            is_declared = re.match(r'\s*(//|\*|#|using |public|private|struct|class|enum)', line)
            if inside.match(line) and not is_declared:
                yield k
        return
    left = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            left |= set(range(node.lineno, node.end_lineno + 1))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left |= set(range(node.lineno, node.end_lineno + 1))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            left |= set(range(node.lineno, node.body[0].lineno))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    strings = {
        k
        for token in tokens
        if token.type == tokenize.STRING and token.end[0] > token.start[0]
        for k in range(token.start[0], token.end[0] + 1)
    }
    for k, line in enumerate(lines, 1):
        if k not in left | strings and len(line.strip()) > 3 and not line.strip().startswith('#'):
            yield k - 1


def changed(root: Path, path: Path, line: int, chance: random.Random) -> Change | None:
    """Return one change of a line after which the file can still be read; None: there is none."""
    text = path.read_text(encoding='utf-8')
    lines = text.splitlines()
    old = lines[line]
    code = re.sub(r'\s+(#|//) .*$', '', old)
    options = [
        code[: match.start()] + replaced(match.group(), new) + code[match.end() :]
        for pattern, news in _OPERATORS
        for match in re.finditer(pattern, code)
        for new in news
        if not _is_in_text(code, match.start())
    ]
    dropped = _without(path, code)
    if dropped is not None:
        options.append(dropped)
    chance.shuffle(options)
    for new in options:
        after = '\n'.join([*lines[:line], new, *lines[line + 1 :]]) + '\n'
        if path.suffix == '.py':
            try:
                if ast.dump(ast.parse(after)) == ast.dump(ast.parse(text)):
                    continue
            except SyntaxError:
                continue
        return Change(path.relative_to(root).as_posix(), line, old, new)
    return None


def replaced(found: str, new: str) -> str:
    if new == 'x2':
        return f'{2.0 * float(found)!r}' if float(found) else '1.0'
    if new == 'flip':
        return '1' if found == '0' else '0'
    return new


def _is_in_text(code: str, at: int) -> bool:
    before = code[:at]
    return before.count("'") % 2 == 1 or before.count('"') % 2 == 1


def _without(path: Path, code: str) -> str | None:
    """Return a line in the place of a whole statement; None: it declares, or is only a part."""
    indent = code[: len(code) - len(code.lstrip())]
    if path.suffix in COMPILED:
        is_statement = re.fullmatch(r'\s+[\w.\[\]>()-]+ [-+*/|]?= .*;|\s+[\w.>-]+\(.*\);', code)
        return f'{indent};' if is_statement else None
    try:
        node = ast.parse(code.strip()).body[0]
    except (SyntaxError, IndexError):
        return None
    is_dropped = isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise))
    return f'{indent}pass' if is_dropped else None


def tests_of(path: str) -> str:
    """Return the folder of tests of a file of the package or the controller."""
    folders = Path(path).parts[1:-1] if path.startswith('robodyn_ros/') else ('controllers',)
    for k in range(len(folders), 0, -1):
        room = Path('test', *folders[:k])
        if (ROOT / room).is_dir():
            return str(room)
    return 'test/project'


# --- stages ------------------------------------------------------------------------------------


def outcome(change: Change, command: str, build: str, limit: float) -> dict[str, object]:
    """Return what a stage makes of a change, which is undone afterwards whatever happens."""
    path = ROOT / change.path
    text = path.read_text(encoding='utf-8')
    lines = text.splitlines()
    is_compiled = path.suffix in COMPILED
    begin = time.monotonic()
    line = nearest(lines, change)
    if line is None:
        return {'verdict': 'no longer there', 'seconds': 0.0}
    lines[line] = change.new
    try:
        path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
        if is_compiled:
            code, said = run(build, limit)
            if code:
                return {'verdict': 'does not compile', 'seconds': time.monotonic() - begin}
        code, said = run(command, limit)
    finally:
        path.write_text(text, encoding='utf-8')
        if is_compiled:
            run(build, limit)
    failed = re.findall(r'^(?:FAILED|ERROR) (\S+)', said, re.M)
    return {
        'verdict': NOTICED if code else SURVIVED,
        'seconds': time.monotonic() - begin,
        'by': failed[:1],
    }


def nearest(lines: list[str], change: Change) -> int | None:
    """Return where the line is now, which may have moved since it was drawn."""
    places = [k for k, line in enumerate(lines) if line == change.old]
    return min(places, key=lambda k: abs(k - change.line), default=None)


def run(command: str, limit: float) -> tuple[int, str]:
    """Return how a command ended, and the end of what it printed; 1: it took too long."""
    process = subprocess.Popen(
        ['bash', '-c', command],
        cwd=ROOT,
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=limit)
        return process.returncode, said[-20_000:]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=20.0)
        except subprocess.TimeoutExpired:
            process.kill()
        return 1, f'longer than {limit} s'


if __name__ == '__main__':
    sys.exit(main())
