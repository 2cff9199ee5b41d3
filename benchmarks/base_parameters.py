# SPDX-License-Identifier: Apache-2.0
"""
Count the base parameters of known arms, and time how they are found.

    python benchmarks/base_parameters.py

The first table counts, for each arm, standard and base parameters, the latter upright and with
the base tilted, those without effect, and the condition number of the base regressor. The
second one times the closed form, the formulas, the numeric method that they are checked with, and
the regressor: processor time on one thread, the fastest of several rounds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

os.environ['OPENBLAS_NUM_THREADS'] = '1'  # read when NumPy is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from numeric_reduction import numeric_reduction
from oracles import random_states
from parameter_arms import DOWN, TILTED, dh_arm, generic_arm
from robots import public_urdf

from robodyn_ros import RobotModel, base_parameters, regressor

ROUNDS = 20
URDFS = Path(__file__).resolve().parents[1] / 'urdf'


def arms() -> dict[str, RobotModel]:
    urdf = RobotModel.from_urdf
    return {
        'SCEMI': urdf(URDFS / 'scemi.urdf'),
        'PUMA 560': urdf(URDFS / 'puma560.urdf'),
        'Stanford': urdf(URDFS / 'stanford.urdf'),
        'JPL RRP': urdf(URDFS / 'jpl_rrp.urdf'),
        'Cobra 600': dh_arm('RRPR', [0, 0, 180, 0], [0, 0.325, 0.275, 0], [0.387, 0, 0, 0]),
        'UR5': urdf(public_urdf('ur5_robot.urdf'), base_link='base_link', tip_link='tool0'),
        'Panda': urdf(public_urdf('panda.urdf'), base_link='panda_link0', tip_link='panda_link8'),
        'iiwa 14': urdf(
            public_urdf('lbr_iiwa_14_r820.urdf'), base_link='base_link', tip_link='tool0'
        ),
        'general 6R': generic_arm('RRRRRR'),
        'general 7R': generic_arm('RRRRRRR'),
    }


def milliseconds(function: Callable[[], object], rounds: int = ROUNDS) -> float:
    best = np.inf
    for _ in range(rounds):
        start = process_time()
        function()
        best = min(best, process_time() - start)
    return 1e3 * best


def print_counts(models: dict[str, RobotModel]) -> None:
    print(f'{"arm":<12}{"standard":>10}{"upright":>9}{"tilted":>8}{"no effect":>11}{"cond":>8}')
    for name, model in models.items():
        upright = base_parameters(model.with_gravity(DOWN))
        tilted = base_parameters(model.with_gravity(TILTED))
        print(
            f'{name:<12}{upright.standard_count:>10}{upright.count:>9}{tilted.count:>8}'
            f'{len(upright.no_effect):>11}{upright.conditioning:>8.2g}'
        )


def print_times(models: dict[str, RobotModel]) -> None:
    columns = ['closed form', '+ formulas', 'numeric QR', 'regressor', 'per state of 1000']
    print('\n[ms]'.ljust(13) + ''.join(f'{column:>{len(column) + 3}}' for column in columns))
    for name, model in models.items():
        one = [x[0] for x in random_states(model, 1, seed=0)]
        many = random_states(model, 1000, seed=0)
        times = [
            milliseconds(lambda model=model: base_parameters(model).values),
            milliseconds(lambda model=model: [str(e) for e in base_parameters(model).expressions]),
            milliseconds(lambda model=model: numeric_reduction(model), 5),
            milliseconds(lambda model=model, one=one: regressor(model, *one)),
            milliseconds(lambda model=model, many=many: regressor(model, *many), 5) / 1000,
        ]
        print(
            name.ljust(12)
            + ''.join(
                f'{t:>{len(column) + 3}.3g}' for t, column in zip(times, columns, strict=True)
            )
        )


if __name__ == '__main__':
    known = arms()
    print_counts(known)
    print_times(known)
