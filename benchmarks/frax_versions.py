# SPDX-License-Identifier: Apache-2.0
"""
Time frax under several versions of JAX, beside Pinocchio's bindings and compile_model.

    python benchmarks/frax_versions.py PYTHON [PYTHON ...]

Each PYTHON is an interpreter that has frax and a version of JAX; it runs frax_calls.py. All read
the same URDF, every result is compared before it is timed, and of many rounds the fastest counts.

For a quiet machine: at a load average of 12 on two cores the rows of JAX 0.10.2 were forty times
those of a quiet run, those of JAX 0.4.30 and of Pinocchio were not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from timeit import Timer

os.environ['OPENBLAS_NUM_THREADS'] = '1'  # read when NumPy is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
import peers
import pinocchio as pin
from compiled import OURS, expected_results, fastest, machine, our_timer, sources
from oracles import random_states

import robodyn_ros as rd
from robodyn_ros.compiled import compile_model

HERE = Path(__file__).resolve().parent
ARMS = ('UR5', 'Panda')
FUNCTIONS = ('inverse_dynamics', 'gravity_torque', 'mass_matrix')
Row = tuple[str, dict[str, float]]
"""What is called, and microseconds by function."""


def beside(urdf: Path, arm: rd.RobotModel, state: dict, rounds: int) -> list[Row]:
    """Return the microseconds of Pinocchio's bindings and of compile_model."""
    pinocchio = peers.pinocchio_calls(urdf, arm, state)
    compiled = compile_model(arm, kernels=list(FUNCTIONS))
    words = {'Pinocchio': f'Pinocchio {pin.__version__}, its bindings', 'C': '`compile_model`'}
    best: dict[str, dict[str, float]] = {label: {} for label in words}
    for name in FUNCTIONS:
        call, scope = pinocchio[name]
        timers = {
            'Pinocchio': Timer(call, globals=scope),
            'C': our_timer(OURS[name], compiled, name, state),
        }
        for label, taken in fastest(timers, rounds).items():
            best[label][name] = taken
    return [(words[label], taken) for label, taken in best.items()]


def of_frax(python: str, urdf: Path, state: Path, rounds: int) -> list[Row]:
    """Return the microseconds of frax in an interpreter."""
    command = [python, HERE / 'frax_calls.py', urdf, state, str(rounds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    rows = []
    for where, given in (('', 'NumPy arrays'), (', on the device', 'arrays of JAX')):
        taken = {name: answer['taken'][name + where] for name in FUNCTIONS}
        rows.append((f'frax {answer["frax"]} with JAX {answer["jax"]}, {given}', taken))
    return rows


def markdown(tables: dict[str, list[Row]], load: str) -> str:
    lines = [
        '# frax under two versions of JAX',
        '',
        'Microseconds per call from Python, one state; the fastest of many rounds counts.',
        '',
        f'{machine()}. Load average of the machine: {load}.',
        '',
        '- frax is compiled by JAX on the processor, in double precision and without its thread',
        '  pool; a call waits for its result. Its authors recommend JAX 0.4.30 there.',
        '- Pinocchio and `compile_model` take NumPy arrays; each call allocates its result.',
    ]
    for arm, rows in tables.items():
        heads = ' | '.join(name.replace('_', ' ') for name in FUNCTIONS)
        lines += ['', f'## {arm}', '', f'| called from Python | {heads} |']
        lines.append('|---|' + '--:|' * len(FUNCTIONS))
        for what, taken in rows:
            cells = ' | '.join(f'{taken[name]:.3f}' for name in FUNCTIONS)
            lines.append(f'| {what} | {cells} |')
    return '\n'.join([*lines, ''])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n')[0])
    parser.add_argument('pythons', nargs='+', metavar='PYTHON')
    parser.add_argument('--rounds', type=int, default=40)
    arguments = parser.parse_args()
    before, tables = os.getloadavg()[0], {}
    with tempfile.TemporaryDirectory() as name:
        urdf, given = Path(name, 'arm.urdf'), Path(name, 'state.npz')
        for label in ARMS:
            source, base, tip = sources()[label]
            arm = rd.RobotModel.from_urdf(source, base_link=base, tip_link=tip)
            urdf.write_text(peers.plain_urdf(arm), encoding='utf-8')
            plain = rd.RobotModel.from_urdf(urdf)
            state = dict(zip(('q', 'qd', 'qdd'), (x[0] for x in random_states(plain, 1, seed=1))))
            state['tau'] = 5.0 * state['qdd']
            expected = expected_results(plain, state)
            np.savez(given, **state, **{f'expected_{f}': expected[f] for f in FUNCTIONS})
            tables[label] = beside(urdf, plain, state, arguments.rounds)
            for python in arguments.pythons:
                tables[label] += of_frax(python, urdf, given, arguments.rounds)
    load = f'{before:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end'
    print(markdown(tables, load))


if __name__ == '__main__':
    main()
