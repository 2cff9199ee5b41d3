# SPDX-License-Identifier: Apache-2.0
"""
Time every formulation of the inverse dynamics against the number of joints.

    python benchmarks/formulations.py [--joints 2 4 6 ...] [--batch 64]

For random chains of n joints, revolute and prismatic, it prints microseconds per call for one
configuration, and per configuration in a batch, where the cost of calling NumPy is shared and
arithmetic shows. It is processor time, on one thread; the formulations take turns, and the fastest
of the rounds counts, so that the ratios hold under any load of the machine. The last rows hold the
exponent p of a fit c n^p to the chains of 10 joints and more, how far the worst time lies from the
straight line a + b n through all of them, and the cost relative to Newton-Euler.

operation_counts.py counts the operations of the same code.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from time import process_time

os.environ['OPENBLAS_NUM_THREADS'] = '1'  # read when NumPy is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from oracles import random_states
from robots import random_chain

from robodyn_ros import RobotModel
from robodyn_ros.dynamics import METHODS, lagrange_euler

ROUNDS = 7
SHORTEST_ROUND = 0.02
FITTED_FROM = 10
ROADS: dict[str, Callable] = {
    **METHODS,
    'lagrange_euler, complete': partial(lagrange_euler.joint_torques, leading_transforms=True),
}


def seconds_per_call(function: Callable[[], object]) -> float:
    """Return the mean of as many calls as fill a short while."""
    count, start = 0, process_time()
    while (elapsed := process_time() - start) < SHORTEST_ROUND:
        function()
        count += 1
    return elapsed / count


def microseconds(n: int, batch: int | None) -> dict[str, float]:
    """Return microseconds per configuration of each road, for a chain of n joints."""
    text = random_chain(np.random.default_rng(n), n)
    arm = RobotModel.from_urdf(text, tip_link='tip')
    states = random_states(arm, batch or 1, seed=n)
    if batch is None:
        states = tuple(x[0] for x in states)
    best = dict.fromkeys(ROADS, np.inf)
    for _ in range(ROUNDS):
        for name, road in ROADS.items():
            best[name] = min(best[name], seconds_per_call(lambda road=road: road(arm, *states)))
    return {name: 1e6 * seconds / (batch or 1) for name, seconds in best.items()}


def exponent(joints: list[int], times: list[float]) -> float:
    """Return p of the least-squares fit of c n^p to the longer chains."""
    fitted = [(n, time) for n, time in zip(joints, times) if n >= FITTED_FROM]
    if len(fitted) < 2:
        return float('nan')
    return float(np.polyfit(*np.log(np.array(fitted)).T, deg=1)[0])


def distance_from_line(joints: list[int], times: list[float]) -> float:
    """Return the largest relative distance from a + b n, fitted to relative distances."""
    n, time = np.array(joints, dtype=float), np.array(times)
    columns = np.stack([1 / time, n / time], axis=1)
    line, *_ = np.linalg.lstsq(columns, np.ones_like(time), rcond=None)
    return float(np.abs(columns @ line - 1).max())


def print_table(joints: list[int], batch: int | None) -> None:
    """Measure, and print a Markdown table."""
    rows = {n: microseconds(n, batch) for n in joints}
    times = {name: [rows[n][name] for n in joints] for name in ROADS}
    print(f'\n{"one configuration" if batch is None else f"batch of {batch}"} [us]\n')
    print('| n | ' + ' | '.join(ROADS) + ' |')
    print('|---' * (len(ROADS) + 1) + '|')

    def print_row(label: str, cells: Iterable[str]) -> None:
        print(f'| {label} | ' + ' | '.join(cells) + ' |')

    for n, row in rows.items():
        print_row(str(n), (f'{row[name]:.{0 if row[name] > 99.5 else 1}f}' for name in ROADS))
    print_row('exponent', (f'{exponent(joints, times[name]):.2f}' for name in ROADS))
    print_row('off a line', (f'{distance_from_line(joints, times[name]):.0%}' for name in ROADS))
    for n in (6, 30):
        if n in rows:
            base = rows[n]['newton_euler']
            print_row(f'ratio at {n}', (f'{rows[n][name] / base:.2f}' for name in ROADS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--joints', type=int, nargs='+', default=[2, 4, 6, 8, 10, 14, 20, 30])
    parser.add_argument('--batch', type=int, default=64)
    arguments = parser.parse_args()
    print_table(arguments.joints, None)
    print_table(arguments.joints, arguments.batch)


if __name__ == '__main__':
    main()
