# SPDX-License-Identifier: Apache-2.0
"""
Time the analysis of known arms, and count what simplified models save.

    python benchmarks/analysis.py

The first table times structure, formulas, ranges of D_ii and G_i without payload, and the coupling
of all pairs: processor time. The second one counts multiplications, additions, and sines and
cosines of gravity torques and mass matrix: as formulas in full, simplified, and by the customized
recursion.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from robots import public_urdf

from robodyn_ros import RobotModel
from robodyn_ros.analysis import (
    coupling_over_joint_space,
    gravity_formulas,
    inertia_formulas,
    inertial_characteristics,
    ranges,
    simplified_model,
)
from robodyn_ros.compiled.symbolic.kernels import build_kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime

URDFS = Path(__file__).resolve().parents[1] / 'urdf'
ERRORS = (0.02, 0.05)
NEGLIGIBLE = 0.05  # N m


def seconds(function: Callable[[RobotModel], object], model: RobotModel) -> float:
    start = process_time()
    function(model)
    return process_time() - start


def print_times(models: dict[str, RobotModel]) -> None:
    columns: dict[str, Callable[[RobotModel], object]] = {
        'structure': inertial_characteristics,
        'M formulas': inertia_formulas,
        'g formulas': gravity_formulas,
        'ranges': ranges,
        'coupling': coupling_over_joint_space,
    }
    print('[s]'.ljust(10) + ''.join(f'{name:>12}' for name in columns))
    for name, model in models.items():
        inertial_characteristics(model)  # imports and caches
        times = [seconds(function, model) for function in columns.values()]
        print(name.ljust(10) + ''.join(f'{time:>12.3f}' for time in times))


def print_operations(models: dict[str, RobotModel]) -> None:
    heads = ['in full', *(f'under {error:.0%}' for error in ERRORS), 'recursion']
    print('\nx / + / sin'.ljust(23) + ''.join(f'{head:>16}' for head in heads))
    for name, model in models.items():
        for part, kernel in (('gravity', 'gravity_torque'), ('inertia', 'mass_matrix')):
            found = [
                simplified_model(model, error, parts=[part], negligible_torque=NEGLIGIBLE)
                for error in ERRORS
            ]
            counts = [found[0].exact_operations, *(x.operations for x in found)]
            texts = [f'{c.multiplications} / {c.additions} / {c.functions}' for c in counts]
            recursion = build_kernel(kernel, RunTime.of(model, ())).operation_count
            texts.append('{} / {}'.format(*recursion))
            print(f'{name:<12}{part:<10}' + ''.join(f'{text:>16}' for text in texts))


if __name__ == '__main__':
    arms = {
        'JPL RRP': RobotModel.from_urdf(URDFS / 'jpl_rrp.urdf'),
        'PUMA 560': RobotModel.from_urdf(URDFS / 'puma560.urdf'),
        'UR5': RobotModel.from_urdf(
            public_urdf('ur5_robot.urdf'), base_link='base_link', tip_link='tool0'
        ),
        'Panda': RobotModel.from_urdf(
            public_urdf('panda.urdf'), base_link='panda_link0', tip_link='panda_link8'
        ),
    }
    print_times(arms)
    print_operations(arms)
