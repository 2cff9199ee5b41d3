# SPDX-License-Identifier: Apache-2.0
"""
Time update of the ros2_control controller, mode by mode, without ROS.

    python benchmarks/controller_update.py [--rounds 10000] [--tick 250]

A C++ program runs the controller's logic on the exported library of a Panda: in turns a cycle of
each mode and some fixed arithmetic, with a pause (--tick, microseconds; 0: none) before each. It
prints percentiles of the thread's processor time. What fixed arithmetic takes more in its 99th
percentile than in its median is the machine's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from compiled_arms import public_arm
from controller_core import STRICT, cpp_compiler, exported, headers

SOURCE = Path(__file__).with_suffix('.cpp')
OPTIONS = ('-O2', '-DNDEBUG', '-ffp-contract=off')


def compiled(folder: Path) -> Path:
    program = folder / SOURCE.stem
    command = [cpp_compiler(), *STRICT, *OPTIONS, *headers(folder), str(SOURCE)]
    subprocess.run([*command, '-o', str(program), '-ldl'], check=True)
    return program


def times(rounds: int, tick: int) -> dict[str, np.ndarray]:
    """Return processor times [us] by mode."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [compiled(folder), exported(public_arm('panda'), folder), rounds, tick]
        done = subprocess.run(
            [str(word) for word in command], check=True, capture_output=True, text=True
        )
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: 1e-3 * np.array(taken, dtype=float) for name, *taken in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n')[0])
    parser.add_argument('--rounds', type=int, default=10_000)
    parser.add_argument('--tick', type=int, default=250, help='[us]')
    arguments = parser.parse_args()
    taken = times(arguments.rounds, arguments.tick)
    percents = 50.0, 99.0, 99.9
    others = [np.percentile(taken['computed_torque'], percent) for percent in percents]
    print('thread time [us]       p50    p99    p99.9, divided by that of computed torque')
    for name, each in taken.items():
        found = [np.percentile(each, percent) for percent in percents]
        numbers = ' '.join(f'{number:6.2f}' for number in found)
        ratios = ' '.join(f'{number / other:5.2f}' for number, other in zip(found, others))
        print(f'{name:20} {numbers}   {ratios}')


if __name__ == '__main__':
    main()
