# SPDX-License-Identifier: Apache-2.0
"""
Try every command on fifty arms of a folder of URDFs, drawn by a seed.

    python benchmarks/fifty_arms.py [DIR ...] [--count 50] [--seed 0] [--part 1/1] [--skip report]

`check`, `dh`, `params`, `simulate`, `torque` along a sine, `export` with its self-test, `report`:
each succeeds, or says in one line why not. Exit code 1: one of them did neither.
Without a folder: the packages example-robot-data and rtb-data. `--part 2/10` tries every tenth of
them, from the second on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from click.testing import CliRunner
from robots import public_urdfs

import robodyn_ros as rd
from robodyn_ros.cli import robodyn
from robodyn_ros.description.chain import Chain, LinkTree, serial_chain
from robodyn_ros.description.urdf import description_of_urdf
from robodyn_ros.motions import table_as_csv

FEWEST_JOINTS = 3
MOST_JOINTS = 9
SELF_TEST = ('cc', '-O1', '-Wall', '-Wextra', '-Werror', 'arm.c', 'arm_test.c', '-lm', '-o', 'arm')


def arms_of(path: Path) -> list[Chain]:
    """Return the arms of a file, root to leaf, one for each set of joints."""
    try:
        description = description_of_urdf(path)
        tree = LinkTree(description)
    except rd.RobodynError:
        return []
    arms: dict[tuple[str, ...], Chain] = {}
    for root in tree.roots:
        for leaf in tree.below(root):
            if tree.child_joints[leaf]:
                continue
            try:
                chain = serial_chain(description, base_link=root, tip_link=leaf)
            except rd.RobodynError:
                continue
            if FEWEST_JOINTS <= len(chain.joints) <= MOST_JOINTS:
                arms.setdefault(chain.joint_names, chain)
    return list(arms.values())


def drawn(paths: list[Path], count: int, seed: int) -> list[tuple[Path, Chain]]:
    """Return arms of different files."""
    generator = np.random.default_rng(seed)
    result: list[tuple[Path, Chain]] = []
    for index in generator.permutation(len(paths)):
        arms = arms_of(paths[index])
        if arms:
            result.append((paths[index], arms[int(generator.integers(len(arms)))]))
        if len(result) == count:
            break
    return result


def outcome(command: str, *arguments: object) -> str:
    """Return 'done', the line that a command is refused with, or what else went wrong."""
    words = [str(each) for each in arguments]
    result = CliRunner().invoke(robodyn, [command, *words])
    if isinstance(result.exception, rd.RobodynError):
        line = f'{type(result.exception).__name__}: {result.exception}'
        return line if '\n' not in line else f'BAD, more than one line: {line}'
    if result.exit_code in ((0, 1) if command == 'check' else (0,)):
        return 'done'
    return f'BAD, exit code {result.exit_code}: {result.exception!r} {result.output[-300:]}'


def self_test(folder: Path) -> str:
    """Compile what was exported and let it compare itself with the library."""
    built = subprocess.run(SELF_TEST, cwd=folder, capture_output=True, text=True, timeout=600)
    if built.returncode:
        return f'BAD, compiler: {built.stderr[-300:]}'
    ran = subprocess.run(['./arm'], cwd=folder, capture_output=True, text=True, timeout=600)
    return 'done' if ran.returncode == 0 else f'BAD, self-test: {ran.stdout[-300:]}'


def tried(path: Path, chain: Chain, skipped: set[str]) -> dict[str, str]:
    """Return what became of each command."""
    ends = (path, '--base', chain.base_link, '--tip', *chain.tip_links)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        motion = folder / 'motion.csv'
        found = {command: outcome(command, *ends) for command in ('check', 'dh', 'params')}
        found['simulate'] = outcome('simulate', *ends, '-o', folder / 'simulated.csv')
        t = np.linspace(0.0, 1.0, 101)
        sines = 0.1 * np.sin(np.outer(t, np.arange(1, len(chain.joints) + 1)))
        motion.write_text(table_as_csv(chain.joint_names, t, sines), encoding='utf-8')
        found['torque'] = outcome('torque', *ends, motion)
        if 'export' not in skipped:
            found['export'] = outcome('export', *ends, '-o', folder)
            if found['export'] == 'done':
                found['self-test'] = self_test(folder)
        if 'report' not in skipped:
            found['report'] = outcome('report', *ends, '-o', folder / 'report.html')
    return found


def part_of(text: str) -> tuple[int, int]:
    """Return which part of how many."""
    part, parts = map(int, text.split('/'))
    if not 1 <= part <= parts:
        raise argparse.ArgumentTypeError(f'{text}: K of K/N is 1 to N')
    return part, parts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('folders', nargs='*', type=Path)
    parser.add_argument('--count', type=int, default=50)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--part', type=part_of, default=(1, 1), metavar='K/N')
    parser.add_argument('--skip', action='append', default=[], choices=['export', 'report'])
    arguments = parser.parse_args()
    paths = [
        path
        for folder in arguments.folders
        for path in sorted(folder.rglob('*'))
        if path.suffix.lower() == '.urdf' and path.is_file()
    ]
    counts: Counter[tuple[str, str]] = Counter()
    part, parts = arguments.part
    arms = drawn(paths or public_urdfs(), arguments.count, arguments.seed)
    for path, chain in arms[part - 1 :: parts]:
        start = time.monotonic()
        found = tried(path, chain, set(arguments.skip))
        for command, what in found.items():
            kind = 'done' if what == 'done' else 'bad' if what.startswith('BAD') else 'refused'
            counts[command, kind] += 1
        odd = ''.join(f'\n    {key}: {what}' for key, what in found.items() if what != 'done')
        seconds = time.monotonic() - start
        print(f'{path.name} {chain.ends}, {len(chain.joints)} joints, {seconds:.0f} s{odd}')
        sys.stdout.flush()
    print('\n| command | done | refused in one line | bad |\n|---|---|---|---|')
    for command in dict.fromkeys(command for command, _ in counts):
        row = ' | '.join(str(counts[command, kind]) for kind in ('done', 'refused', 'bad'))
        print(f'| {command} | {row} |')
    return int(any(kind == 'bad' for _, kind in counts))


if __name__ == '__main__':
    sys.exit(main())
